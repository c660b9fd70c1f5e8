//! What one scenario lets one expect of a client, as data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::seen::Noted;
use peerproof_engine::clause::ClauseId;
use peerproof_engine::json::Json;

/// Everything that is expected of one conversation. Stored in the `expect` of the step that plays the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// The clause that is broken by what belongs to no other.
    pub clause: ClauseId,
    /// How each call may end, by its ref.
    pub calls: BTreeMap<String, CallExpect>,
    /// The delays of all retries together are measured: how they are spread, and to a fraction of a second whether they
    /// are too long.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delays: bool,
    /// What the conversation shows of something the contract leaves open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<String>,
}

/// How a call may end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallExpect {
    /// The clause that another end breaks, where it is not that of the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clause: Option<ClauseId>,
    /// Any one of these is right.
    pub allowed: Vec<Allowed>,
    /// Its good end shows a working client.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub canary: bool,
}

/// One allowed end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allowed {
    /// The outcome.
    pub outcome: String,
    /// JSON text of `result` or `error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Exactly so many requests; none where the call ended before its first was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u64>,
    /// Not sooner than this, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elapsed_ms_min: Option<u64>,
    /// So many chunks were streamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunks: Option<u64>,
    /// The stream was whole, or was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream_ok: Option<bool>,
    /// Value of the conversation's choice that it shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shows: Option<String>,
}

impl Allowed {
    /// This outcome.
    pub fn of(outcome: &str) -> Self {
        Self { outcome: outcome.to_owned(), ..Self::default() }
    }

    /// The outcome `result` with this value (JSON text).
    pub fn result(value: &str) -> Self {
        Self { value: Some(value.to_owned()), ..Self::of("result") }
    }

    /// The outcome `error` with this error object (JSON text).
    pub fn error(value: &str) -> Self {
        Self { value: Some(value.to_owned()), ..Self::of("error") }
    }

    /// The outcome `timeout`, not before this time.
    pub fn timeout(ms: u64) -> Self {
        Self { elapsed_ms_min: Some(ms), ..Self::of("timeout") }
    }

    /// After exactly so many requests.
    #[must_use]
    pub fn attempts(mut self, attempts: u64) -> Self {
        self.attempts = Some(attempts);
        self
    }

    /// Shows this value of the choice.
    #[must_use]
    pub fn shows(mut self, value: &str) -> Self {
        self.shows = Some(value.to_owned());
        self
    }

    /// Why a line of the results is something else; `None` where it fits.
    pub fn misfit(&self, noted: &Noted) -> Option<&'static str> {
        /// Clocks of two processes, and timers that round.
        const EARLY_MS: u64 = 20;
        if noted.outcome != self.outcome {
            return Some("wrong_outcome");
        }
        let value = self.value.as_ref().and_then(|text| text.parse::<Json>().ok());
        if value.is_some() && value != noted.value {
            return Some("wrong_value");
        }
        // A call may end before its first request was written; what was written is counted by the conversation.
        let unwritten =
            noted.attempts == 0 && matches!(noted.outcome.as_str(), "timeout" | "disconnected" | "too_large");
        if self.attempts.is_some_and(|attempts| attempts != noted.attempts) && !unwritten {
            return Some("wrong_attempts");
        }
        if self.elapsed_ms_min.is_some_and(|ms| noted.elapsed_ms + EARLY_MS < ms) {
            return Some("too_early");
        }
        if self.chunks.is_some() && self.chunks != noted.chunks {
            return Some("wrong_chunks");
        }
        if self.stream_ok.is_some() && self.stream_ok != noted.stream_ok {
            return Some("wrong_stream_ok");
        }
        None
    }

    fn phrase(&self) -> String {
        let mut text = self.outcome.clone();
        if let Some(value) = &self.value {
            text.push_str(&format!(" {value}"));
        }
        if let Some(attempts) = self.attempts {
            text.push_str(&format!(" after {attempts} requests"));
        }
        if let Some(ms) = self.elapsed_ms_min {
            text.push_str(&format!(" not before {ms} ms"));
        }
        if let Some(chunks) = self.chunks {
            text.push_str(&format!(" with {chunks} chunks"));
        }
        if let Some(whole) = self.stream_ok {
            text.push_str(&format!(" with stream_ok {whole}"));
        }
        text
    }
}

impl CallExpect {
    /// Any one of `allowed`.
    pub fn new(allowed: impl IntoIterator<Item = Allowed>) -> Self {
        Self { clause: None, allowed: allowed.into_iter().collect(), canary: false }
    }

    /// Under another clause than the conversation's.
    #[must_use]
    pub fn under(mut self, clause: &str) -> Self {
        self.clause = Some(clause.into());
        self
    }

    /// What is expected, in one phrase.
    pub fn phrase(&self) -> String {
        self.allowed.iter().map(Allowed::phrase).collect::<Vec<_>>().join(", or ")
    }
}
