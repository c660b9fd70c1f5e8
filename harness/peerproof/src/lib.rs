//! Conformance and fuzzing harness for agent-tool boundaries: all boundaries, reports, and checks as tests of a Rust
//! project ([`Suite`], [`cargo_test`]).

pub mod docs;
pub mod hidden;
pub mod report;
pub mod shard;
pub mod suite;
pub mod table;

pub use hidden::hidden;
pub use peerproof_engine::drive::machine;
pub use suite::{Suite, SuiteError, cargo_test};
