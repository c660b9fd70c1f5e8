//! The consumer: a caller that has envelopes processed by programs and servers that the harness plays.
//!
//! A conversation is one process with one scenario. What it started and sent is in the transcript, and what it says of its calls
//! is in its results, which the transcript holds as well.

pub mod cases;
pub mod face;
mod fate;
mod generate;
mod rules;

pub use generate::conversation;

use peerproof_engine::asking::Members;

/// Name under which the command of a caller is known; a configuration may call it `command`.
pub const COMMAND: &str = "caller";

/// What a caller is told.
pub const MEMBERS: Members = Members { scenario: &[], call: &["transport", "command", "url", "envelope"] };

/// Time of a call that says nothing about it, ms.
pub const USUAL_MS: u64 = 10_000;

/// Bytes of a reply that may be too many.
pub const REPLY_BYTES_MAX: usize = 16 << 20;
