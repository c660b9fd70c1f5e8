//! Checks as tests of `cargo test`.
