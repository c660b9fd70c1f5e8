//! Allowed ends of a call, and the form of its line in the results file.

use peerproof_engine::contract::asking::CallResult;
use peerproof_engine::data::json::Json;

/// Clause: each call has one well-formed line.
pub(crate) const RESULTS: &str = "PT-RT-01";

/// Tolerance for clocks of two processes and for timers that round, ms.
pub(crate) const EARLY_MS: f64 = 100.0;

/// Outcomes that the contract knows.
const OUTCOMES: [&str; 8] =
    ["result", "tool_error", "timeout", "crash", "invalid", "unavailable", "blocked", "bad_call"];

/// The face of a runtime.
pub(super) struct Runtime;

/// One allowed end of a call.
#[derive(Debug, Clone)]
pub(super) enum AllowedOutcome {
    /// The outcome `result` with this value.
    Result(Box<Json>),
    /// The outcome `tool_error` with this error; `None` allows any.
    ToolError(Option<Box<Json>>),
    /// The outcome `timeout`, after the first time and not much later than the second, ms.
    Timeout(u64, u64),
    /// An outcome without further members.
    Plain(&'static str),
}

/// Fault of a line of the results file, apart from its ref.
pub(super) fn wrong(noted: &CallResult) -> Option<&'static str> {
    match noted.outcome.as_str() {
        outcome if !OUTCOMES.contains(&outcome) => Some("no such outcome"),
        "result" if noted.line.get("result").is_none() => Some("no `result`"),
        _ => None,
    }
}

/// Duration in the trace of a call, ms.
pub(crate) fn duration_ms(noted: &CallResult) -> Option<f64> {
    noted.line.get("trace")?.get("duration_ms")?.as_f64()
}
