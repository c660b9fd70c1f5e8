//! Conformance and fuzzing harness for agent-tool boundaries.

pub mod budget;
pub mod clause;
pub mod facts;
pub mod fixture;
pub mod json;
pub mod payload;
pub mod plan;
pub mod rng;
pub mod schema;
pub mod transcript;
pub mod transport;
