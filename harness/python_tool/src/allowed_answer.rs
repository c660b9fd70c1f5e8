//! Allowed replies to a request, and facts that they are judged with.

use std::collections::BTreeSet;

use peerproof_engine::data::json::Json;

use super::model::Call;

/// Allowed reply to a request.
#[derive(Debug, Clone, PartialEq)]
pub enum AllowedReply {
    /// Success, with this result; `None` allows any.
    Success(Option<Json>),
    /// Failure with an exception of this class. True if the class is the tool's own.
    Raised(String, bool),
    /// Any failure.
    Failure,
    /// A refusal.
    Refused,
    /// The end of the process without output.
    Ended,
    /// A failure or a status that reports a timeout.
    TimedOut,
    /// A reply to a handshake. True if it may be negative.
    Handshake(bool),
}

/// Facts that a reply is judged with.
#[derive(Debug, Clone, Default)]
pub struct ReplyNotes {
    /// Call of the request.
    pub call: Option<Call>,
    /// Text of the exception that the tool raises.
    pub raises: Option<String>,
    /// True if a failure may have any exit status.
    pub any_exit: bool,
    /// True if the call meets a guarantee on a plain route that nothing catches or wraps.
    pub is_blocked: bool,
    /// True if the call may find an empty environment instead.
    pub may_be_empty: bool,
    /// Route of the probe.
    pub route: String,
    /// True if the request must be refused.
    pub is_refusal: bool,
    /// True if the tool may fail.
    pub may_fail: bool,
    /// Over HTTP: timeout of the tool in ms, and its clause.
    pub limit: Option<(u64, &'static str)>,
    /// Required guarantees of a handshake.
    pub required: Option<Vec<String>>,
    /// True if a guarantee was requested, but not assured.
    pub is_unclear: bool,
}

/// A handshake without a reply so far.
pub(crate) struct Pending {
    pub(super) session: usize,
    pub(super) step: usize,
    pub(super) tool: String,
    pub(super) required: BTreeSet<String>,
    /// True if the next output is its body.
    pub(super) is_next: bool,
}
