//! Tests of the engine with real processes of our own binary.

mod fixture;
mod fuzz;
mod json_rpc;
mod selftest;
mod shrink;
mod verdicts;
