//! Fuzzing of live peers.
