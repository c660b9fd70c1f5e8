//! The engine with real processes: those of our own binary.

mod fixture;
mod fuzz;
mod json_rpc;
mod selftest;
mod shrink;
mod verdicts;
