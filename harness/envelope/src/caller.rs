//! The consumer: a caller that sends envelopes to programs and servers. The harness plays these.
//!
//! A conversation is one process with one scenario. The transcript holds the programs and requests that it started,
//! and the results file in which it reports its calls.

mod allowed_outcome;
pub(crate) mod cases;
pub(crate) mod face;
mod generate;
mod outcomes;
mod rules;

pub use generate::conversation;

use peerproof_engine::contract::asking::AskingMembers;

/// Canonical name of the caller's command; a configuration may call it `command`.
pub const COMMAND: &str = "caller";

/// Members of a scenario and of its calls.
pub(crate) const MEMBERS: AskingMembers =
    AskingMembers { scenario: &[], call: &["transport", "command", "url", "envelope"] };

/// Default timeout of a call, ms.
pub(crate) const USUAL_MS: u64 = 10_000;

/// Size of a reply above which a caller may refuse it, bytes.
pub const REPLY_BYTES_MAX: usize = 16 << 20;
