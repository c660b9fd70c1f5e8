//! Conformance and fuzzing harness for agent-tool boundaries.

pub mod rng;
