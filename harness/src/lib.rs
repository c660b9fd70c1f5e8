//! Conformance and fuzzing harness for agent-tool boundaries.
