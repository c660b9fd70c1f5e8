//! Questions about the messages of a protocol while a conversation runs.

use serde_json::Value;

use crate::contract::counterpart::Counterpart;
use crate::contract::program::Program;
use crate::data::facts::Facts;
use crate::data::plan::{Plan, Step};

/// Circumstances of a write that no plan can know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteContext {
    /// Time of day, milliseconds since 1970, on the peer's clock, which may be virtual.
    pub unix_ms: u64,
    /// Word that is unique to this conversation.
    pub run: String,
    /// Index of the step in the plan.
    pub step: usize,
    /// Set if the bytes are one message, even if they contain line feeds.
    pub is_one_body: bool,
}

/// Frame that answers nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnmatchedFrame {
    /// Bytes that the harness writes at once, delimiter included.
    pub reply: Option<Vec<u8>>,
}

/// Help of a boundary while a conversation runs: what the harness plays, what it writes, and which answers it awaits.
/// A boundary whose messages need no help implements it without methods.
pub trait Wire {
    /// Counterpart of a peer that asks, for the `script` of a step
    /// [`Act::Play`](crate::data::plan::Act::Play) in `plan`. `None` if the boundary plays
    /// none or the script is invalid.
    fn counterpart(&self, _plan: &Plan, _script: &Value) -> Option<Box<dyn Counterpart>> {
        None
    }

    /// Program of this name that an actor plays to answer requests
    /// ([`ActorStep::Converse`](crate::data::plan::ActorStep::Converse)); `argv` is the command line it was started with.
    fn program(&self, _name: &str, _argv: &[String]) -> Option<Box<dyn Program>> {
        None
    }

    /// True if `frame` is certainly the answer to the canary `step`. The harness then stops waiting for an earlier
    /// reply, which is lost.
    fn answers_canary(&self, _step: &Step, _frame: &[u8]) -> bool {
        false
    }

    /// Recognizes a frame that answers nothing, such as a notification or a request of the peer's own. All other frames
    /// count as replies.
    fn unmatched_frame(&self, _facts: &Facts, _plan: &Plan, _frame: &[u8]) -> Option<UnmatchedFrame> {
        None
    }

    /// Secret that a whole frame of a recorded provider gives out, such as a token. Secrets are not stored.
    fn issued(&self, _facts: &Facts, _frame: &[u8]) -> Option<String> {
        None
    }

    /// Fills in timestamps and signatures just before `bytes` are written. Returns `None` if nothing needs filling in.
    /// The transcript records the returned bytes.
    fn seal(&self, _facts: &Facts, _bytes: &[u8], _moment: &WriteContext) -> Option<Vec<u8>> {
        None
    }

    /// Minimum number of reply frames for these complete lines; `None` if the bytes alone do not tell.
    fn frames_due(&self, _facts: &Facts, _bytes: &[u8]) -> Option<u32> {
        None
    }
}
