//! Measuring of live peers.
