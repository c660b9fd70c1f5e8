//! State of one call.

use super::scenario::CallSpec;
use super::stream::Stream;
use crate::json::{Value, write_str, write_value};
use crate::machine::Millis;

/// Phase of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Phase {
    /// Waiting for other calls to finish.
    Waiting,
    /// Waiting for the response with this id.
    InFlight(Value),
    /// Waiting to be sent again at this time.
    Resting(Millis),
    /// Finished with an outcome.
    Done,
}

/// A call with its state.
#[derive(Debug)]
pub(super) struct Call {
    /// Its entry in the scenario.
    pub spec: CallSpec,
    /// Its phase.
    pub phase: Phase,
    /// Number of requests sent.
    pub attempts: u32,
    /// Time of its first request.
    pub began: Millis,
    /// Stream of the current attempt.
    pub stream: Option<Stream>,
}

/// Outcome of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A result.
    Result(Value),
    /// A final error.
    Error(Value),
    /// No response in time.
    Timeout,
    /// The server has gone.
    Disconnected,
    /// An invalid response.
    Invalid,
    /// A notification was sent.
    Sent,
    /// The request exceeds the size limit.
    TooLarge,
}

impl Outcome {
    fn word(&self) -> &'static str {
        match self {
            Self::Result(_) => "result",
            Self::Error(_) => "error",
            Self::Timeout => "timeout",
            Self::Disconnected => "disconnected",
            Self::Invalid => "invalid",
            Self::Sent => "sent",
            Self::TooLarge => "too_large",
        }
    }
}

impl Call {
    /// Creates a call that has not begun.
    pub(super) fn new(spec: CallSpec) -> Self {
        Self { spec, phase: Phase::Waiting, attempts: 0, began: 0, stream: None }
    }

    /// Deadline of all attempts.
    pub(super) fn deadline(&self) -> Millis {
        self.began.saturating_add(self.spec.timeout_ms)
    }

    /// True if it has begun and not finished.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.phase, Phase::InFlight(_) | Phase::Resting(_))
    }

    /// Its line in the results.
    pub(super) fn line(&self, outcome: &Outcome, now: Millis) -> Vec<u8> {
        let mut line = b"{\"ref\":".to_vec();
        write_str(&mut line, &self.spec.name);
        let elapsed_ms = if self.phase == Phase::Waiting { 0 } else { now.saturating_sub(self.began) };
        let numbers = format!(
            ",\"outcome\":\"{}\",\"attempts\":{},\"elapsed_ms\":{elapsed_ms}",
            outcome.word(),
            self.attempts
        );
        line.extend_from_slice(numbers.as_bytes());
        if let Outcome::Result(value) | Outcome::Error(value) = outcome {
            line.extend_from_slice(format!(",\"{}\":", outcome.word()).as_bytes());
            write_value(&mut line, value);
        }
        if let Some(stream) = &self.stream {
            let told = format!(",\"chunks\":{},\"stream_ok\":{}", stream.chunks, stream.is_whole());
            line.extend_from_slice(told.as_bytes());
        }
        line.extend_from_slice(b"}\n");
        line
    }
}
