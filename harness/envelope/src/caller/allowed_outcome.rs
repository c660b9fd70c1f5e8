//! Allowed ends of a call, and the form of its line in the results file.

use crate::model::Sent;
use peerproof_engine::contract::asking::CallResult;

/// Clause: each call has one well-formed line.
pub(crate) const RESULTS: &str = "ENV-CALL-01";

/// Outcomes that the contract knows.
const OUTCOMES: [&str; 6] = ["envelope", "refused", "invalid", "timeout", "failed", "bad_input"];

/// The face of a caller.
pub(super) struct Caller;

/// One allowed end of a call.
#[derive(Debug, Clone)]
pub(super) enum AllowedOutcome {
    /// The outcome `envelope`, with this reply.
    Envelope(Box<Sent>),
    /// The outcome `refused`, with this status.
    Refused(i64),
    /// The outcome `timeout`, after the first time and not much later than the second, ms.
    Timeout(u64, u64),
    /// An outcome without further members.
    Plain(&'static str),
}

/// Fault of a line of the results file, apart from its ref.
pub(super) fn wrong(noted: &CallResult) -> Option<&'static str> {
    let is_number =
        |name: &str| noted.line.get(name).is_some_and(|value| value.as_f64().is_some_and(|it| it >= 0.0));
    match noted.outcome.as_str() {
        outcome if !OUTCOMES.contains(&outcome) => Some("an unknown `outcome`"),
        _ if !is_number("elapsed_ms") => Some("`elapsed_ms` is not a number"),
        "envelope" if noted.line.get("envelope").is_none_or(|it| it.as_object().is_none()) => {
            Some("no `envelope`")
        }
        "refused" if !is_number("status") => Some("no `status`"),
        _ => None,
    }
}
