//! The binary as a user starts it, and the engine with real processes: those of the same binary.
//!
//! One binary, so that it is linked once and its tests run beside each other.
#![allow(clippy::unwrap_used, reason = "clippy takes helpers of an integration test for library code")]

mod commands;
mod docs;
mod engine;
mod start;
