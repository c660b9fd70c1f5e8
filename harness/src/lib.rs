//! Conformance and fuzzing harness for agent-tool boundaries.

pub mod bench;
pub mod boundary;
pub mod budget;
pub mod case;
pub mod check;
pub mod clause;
pub mod cli;
pub mod config;
pub mod ending;
pub mod expectation;
pub mod facts;
pub mod finding;
pub mod fixture;
pub mod fuzz;
pub mod json;
pub mod lab;
pub mod lines;
pub mod payload;
pub mod peer;
pub mod plan;
pub mod report;
pub mod reproducer;
pub mod results;
pub mod rng;
pub mod runner;
pub mod schema;
pub mod selftest;
pub mod shrink;
pub mod test_runner;
pub mod transcript;
pub mod transport;
pub mod verdict;

pub use test_runner::cargo_test;
