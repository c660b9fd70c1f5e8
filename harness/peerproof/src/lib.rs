//! Conformance and fuzzing harness for agent-tool boundaries: the boundaries, reports, and checks as tests of a Rust
//! project ([`cargo_test`]).

pub mod hidden;
pub mod report;
pub mod shard;
pub mod table;
pub mod test_runner;

pub use hidden::hidden;
pub use test_runner::cargo_test;
