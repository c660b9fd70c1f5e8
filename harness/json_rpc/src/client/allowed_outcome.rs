//! One allowed end of a call, and its comparison with a line of the results file.

use super::observations::CallResult;
use peerproof_engine::data::json::Json;

/// Tolerance for clocks of two processes and for timers that round, ms.
const EARLY_MS: u64 = 20;

/// One allowed end of a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct AllowedOutcome {
    /// Outcome.
    pub outcome: &'static str,
    /// Value of `result` or `error`; `None` allows any.
    pub value: Option<Json>,
    /// Exact number of requests. Zero is allowed as well if the call ended before its first request was written.
    pub attempts: Option<u64>,
    /// Shortest duration, ms.
    pub elapsed_ms_min: Option<u64>,
    /// Number of chunks.
    pub chunks: Option<u64>,
    /// True for a complete stream, false for an incomplete one.
    pub stream_ok: Option<bool>,
}

impl AllowedOutcome {
    /// This outcome with any other members.
    pub(crate) fn of(outcome: &'static str) -> Self {
        Self { outcome, ..Self::default() }
    }

    /// The outcome `error` with this error.
    pub(crate) fn error(error: &Json) -> Self {
        Self { value: Some(error.clone()), ..Self::of("error") }
    }

    /// The outcome `timeout` after at least this time.
    pub(crate) fn timeout(ms: u64) -> Self {
        Self { elapsed_ms_min: Some(ms), ..Self::of("timeout") }
    }

    /// Demands this number of requests.
    #[must_use]
    pub(crate) fn after(self, attempts: u64) -> Self {
        Self { attempts: Some(attempts), ..self }
    }

    /// Reason code of the first difference from a line of the results; `None` if it fits.
    pub(crate) fn misfit(&self, noted: &CallResult) -> Option<&'static str> {
        // A call may end before its first request was written. A separate rule counts the requests.
        let is_unwritten =
            noted.attempts == 0 && matches!(noted.outcome.as_str(), "timeout" | "disconnected" | "too_large");
        let differs = |wanted: Option<u64>, told: Option<u64>| wanted.is_some() && wanted != told;
        if noted.outcome != self.outcome {
            Some("wrong_outcome")
        } else if self.value.is_some() && self.value != noted.value {
            Some("wrong_value")
        } else if differs(self.attempts, Some(noted.attempts)) && !is_unwritten {
            Some("wrong_attempts")
        } else if self.elapsed_ms_min.is_some_and(|ms| noted.elapsed_ms + EARLY_MS < ms) {
            Some("too_early")
        } else if differs(self.chunks, noted.chunks) {
            Some("wrong_chunks")
        } else if self.stream_ok.is_some() && self.stream_ok != noted.stream_ok {
            Some("wrong_stream_ok")
        } else {
            None
        }
    }

    /// Describes the expectation in one phrase.
    pub(crate) fn phrase(&self) -> String {
        let number = |before: &str, number: Option<u64>, behind: &str| {
            number.map(|number| format!(" {before} {number} {behind}"))
        };
        let parts = [
            self.value.as_ref().map(|value| format!(" {}", value.to_text())),
            number("after", self.attempts, "requests"),
            number("not before", self.elapsed_ms_min, "ms"),
            number("with", self.chunks, "chunks"),
            self.stream_ok.map(|whole| format!(" with stream_ok {whole}")),
        ];
        parts.into_iter().flatten().fold(self.outcome.to_owned(), |text, part| text + &part)
    }
}
