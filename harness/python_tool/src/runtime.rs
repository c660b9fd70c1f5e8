//! The consumer: a runtime that has tools run by programs, services and containers, which the harness plays.
//!
//! A conversation is one process with one scenario. What it started and sent is in the transcript, and what it says of its calls
//! is in its results, which the transcript holds as well.

pub mod cases;
pub mod face;
mod fate;
mod generate;
mod rules;

pub use generate::conversation;

/// Name under which the command of a runtime is known; a configuration may call it `command`.
pub const COMMAND: &str = "runtime";

/// Feature: it runs containers.
pub const CONTAINER: &str = "container";

/// Feature: calls may go on without assurance.
pub const UNSAFE_OVERRIDE: &str = "unsafe_override";

/// Time of a call that says nothing about it, ms.
pub const USUAL_MS: u64 = 10_000;

/// Bytes of a reply that are taken in any case.
pub const USUAL_BYTES_MAX: usize = 1 << 20;

/// Where a service takes handshakes.
pub const HANDSHAKE_PATH: &str = "/capabilities/handshake";
