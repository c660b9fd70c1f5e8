//! Tests of the binary as a user starts it, and of the engine with real processes of that binary.
//!
//! One test binary, which is linked once and runs its tests in parallel.
#![allow(clippy::unwrap_used, reason = "clippy takes helpers of an integration test for library code")]

mod commands;
mod docs;
mod engine;
mod start;
