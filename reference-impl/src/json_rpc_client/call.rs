//! One call on its way.

use super::scenario::CallSpec;
use super::stream::Stream;
use crate::json::{Value, write_str, write_value};
use crate::machine::Millis;

/// How far a call is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// Other calls have to finish before.
    Waiting,
    /// Its answer is waited for, under this id.
    InFlight(Value),
    /// It is sent again at this time.
    Resting(Millis),
    /// It has an outcome.
    Done,
}

/// A call and what has become of it.
#[derive(Debug)]
pub struct Call {
    /// What it is.
    pub spec: CallSpec,
    /// How far it is.
    pub phase: Phase,
    /// Requests that were handed over to be written.
    pub attempts: u32,
    /// When it began.
    pub began: Millis,
    /// What the server streamed in this attempt.
    pub stream: Option<Stream>,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// A result came.
    Result(Value),
    /// An error came that is final.
    Error(Value),
    /// The time was over.
    Timeout,
    /// The server was gone.
    Disconnected,
    /// What came was no response.
    Invalid,
    /// A notification went out.
    Sent,
    /// The message is too large.
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
    /// A call that has not begun.
    pub fn new(spec: CallSpec) -> Self {
        Self { spec, phase: Phase::Waiting, attempts: 0, began: 0, stream: None }
    }

    /// When its time is over.
    pub fn deadline(&self) -> Millis {
        self.began.saturating_add(self.spec.timeout_ms)
    }

    /// Whether it has begun and not ended.
    pub fn is_open(&self) -> bool {
        matches!(self.phase, Phase::InFlight(_) | Phase::Resting(_))
    }

    /// Its line in the results.
    pub fn line(&self, outcome: &Outcome, now: Millis) -> Vec<u8> {
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
