//! What one request lets one expect of a selector, as data.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::choice::Choice;
use super::given::Given;
use super::provided::Provided;
use peerproof_engine::check::Untestable;
use peerproof_engine::clause::ClauseId;
use peerproof_engine::payload::Payload;

/// Everything that is expected of one request line. Stored in the `expect` of the step that sends it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// The clause that is broken when nothing of `allowed` fits.
    pub clause: ClauseId,
    /// Any one of these is right.
    pub allowed: Vec<Allowed>,
    /// Reason code when none fits; by default it is derived from the Selection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Which of the allowed outcomes came is the value of this choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<Choice>,
    /// How many drivers are started for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts: Option<Starts>,
    /// The Selection comes within this time of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Within>,
    /// At the probe that follows no process of a driver lives, under this clause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone: Option<ClauseId>,
    /// Another fallback than that of FALLBACK_ONLY breaks this clause and not the one about fallbacks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_about_fallback: bool,
    /// What the driver that is started for it is provided with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provided: Vec<Provided>,
    /// How long all this is certain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certain: Option<Certain>,
    /// What a driver that looks at its payload finds there, beyond what holds of every payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<Given>,
}

/// A time for which an expectation is certain. Where the Selection came later and is another one, the machine may have
/// been too slow, and nobody is to blame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certain {
    /// The step from whose sending the time counts; without one it is that of the request itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<usize>,
    /// Milliseconds until the Selection.
    pub ms: u64,
}

/// A demand on the number of drivers that are started between this request and the next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Starts {
    /// Clause that is broken by another number.
    pub clause: ClauseId,
    /// The number.
    pub count: u32,
}

/// A demand on the time until the Selection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Within {
    /// Clause that is broken by more.
    pub clause: ClauseId,
    /// Milliseconds between the request and its Selection; more with `--timeout-scale`.
    pub ms: u64,
}

/// One allowed outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Allowed {
    /// The Selection that this block spells.
    Taken(Payload),
    /// That of the internal selector.
    Fallback,
    /// A Selection of kind INVALID.
    Invalid,
    /// A well-formed Selection, whatever it says.
    Anything,
    /// No Selection at all.
    Nothing,
    /// An outcome that leaves the matter open.
    Undecided {
        /// What came.
        came: Box<Allowed>,
        /// Why nothing is decided then.
        why: Untestable,
    },
}

impl Allowed {
    /// The Selection that `block` spells.
    pub fn taken(block: impl Into<String>) -> Self {
        Self::Taken(Payload::text(block))
    }

    fn phrase(&self) -> String {
        match self {
            Self::Taken(block) => format!("the Selection of {}", block.summary(160)),
            Self::Fallback => "the Selection of the internal selector".to_owned(),
            Self::Invalid => "a Selection of kind INVALID".to_owned(),
            Self::Anything => "a Selection".to_owned(),
            Self::Nothing => "nothing".to_owned(),
            Self::Undecided { came, .. } => came.phrase(),
        }
    }
}

impl Expect {
    /// One allowed outcome for `clause`.
    pub fn new(clause: &str, allowed: Allowed) -> Self {
        Self {
            clause: clause.into(),
            allowed: vec![allowed],
            reason: None,
            choice: None,
            starts: None,
            within: None,
            gone: None,
            is_about_fallback: false,
            provided: Vec::new(),
            certain: None,
            given: None,
        }
    }

    /// The driver's block is taken.
    pub fn taken(clause: &str, block: impl Into<String>) -> Self {
        Self::new(clause, Allowed::taken(block))
    }

    /// The internal selector answers.
    pub fn fallback(clause: &str) -> Self {
        Self::new(clause, Allowed::Fallback)
    }

    /// The internal selector answers, and it is this clause that says so.
    pub fn as_fallback(clause: &str) -> Self {
        Self { is_about_fallback: true, ..Self::fallback(clause) }
    }

    /// INVALID.
    pub fn invalid(clause: &str) -> Self {
        Self::new(clause, Allowed::Invalid)
    }

    /// The command is not allowed: INVALID, and nothing starts.
    pub fn refused(clause: &str) -> Self {
        Self::invalid(clause).starts(clause, 0)
    }

    /// Adds another allowed outcome.
    #[must_use]
    pub fn or(mut self, allowed: Allowed) -> Self {
        self.allowed.push(allowed);
        self
    }

    /// Adds an outcome with which the conversation decides nothing, and why.
    #[must_use]
    pub fn or_undecided(self, came: Allowed, why: Untestable) -> Self {
        self.or(Allowed::Undecided { came: Box::new(came), why })
    }

    /// Sets the reason code for a Selection that does not fit.
    #[must_use]
    pub fn reason(mut self, reason: &str) -> Self {
        self.reason = Some(reason.to_owned());
        self
    }

    /// Says which value of a choice each allowed outcome shows, in their order.
    #[must_use]
    pub fn choice(mut self, key: &str, values: &[&str]) -> Self {
        self.choice = Some(Choice::new(key, values));
        self
    }

    /// Demands so many starts, under `clause`.
    #[must_use]
    pub fn starts(mut self, clause: &str, count: u32) -> Self {
        self.starts = Some(Starts { clause: clause.into(), count });
        self
    }

    /// Demands a Selection within this time, under `clause`.
    #[must_use]
    pub fn within_ms(mut self, clause: &str, ms: u64) -> Self {
        self.within = Some(Within { clause: clause.into(), ms });
        self
    }

    /// Demands, under `clause`, that no process of a driver lives at the probe behind it.
    #[must_use]
    pub fn gone(mut self, clause: &str) -> Self {
        self.gone = Some(clause.into());
        self
    }

    /// Is certain only where the Selection comes within this time of the request: what a driver may take.
    #[must_use]
    pub fn certain_for_ms(mut self, ms: u64) -> Self {
        self.certain = Some(Certain { since: None, ms });
        self
    }

    /// Is certain only where the Selection comes within this time of the sending of `step`: a cooldown that began then
    /// at the earliest.
    #[must_use]
    pub fn certain_since(mut self, step: usize, ms: u64) -> Self {
        self.certain = Some(Certain { since: Some(step), ms });
        self
    }

    /// Says, by `clause`, what is broken by a payload that is not that of the request.
    #[must_use]
    pub fn given(mut self, clause: &str) -> Self {
        self.given = Some(Given { clause: clause.into(), inputs: Vec::new() });
        self
    }

    /// Lets the payload have other inputs than the request: each a JSON text, with the value of the choice that it shows.
    #[must_use]
    pub fn given_inputs(mut self, clause: &str, inputs: &[(&str, &str)]) -> Self {
        let inputs = inputs.iter().map(|(text, value)| ((*text).to_owned(), (*value).to_owned())).collect();
        self.given = Some(Given { clause: clause.into(), inputs });
        self
    }

    /// What a step expects: one for each line that it sends.
    pub fn of_step(expect: &Value) -> Vec<Self> {
        let read = |value: &Value| Self::deserialize(value).ok();
        match expect {
            Value::Array(all) => all.iter().filter_map(read).collect(),
            one => read(one).into_iter().collect(),
        }
    }

    /// Says what the driver is provided with.
    #[must_use]
    pub fn provided(mut self, provided: Provided) -> Self {
        self.provided.push(provided);
        self
    }

    /// Whether it may stay unanswered.
    pub fn may_be_silent(&self) -> bool {
        self.allowed.contains(&Allowed::Nothing)
    }

    /// Whether the internal selector may answer.
    pub fn may_fall_back(&self) -> bool {
        self.allowed.contains(&Allowed::Fallback)
    }

    /// What is expected, in one phrase.
    pub fn phrase(&self) -> String {
        self.allowed.iter().map(Allowed::phrase).collect::<Vec<_>>().join(", or ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survives_storage() {
        let expect = Expect::as_fallback("C")
            .or(Allowed::taken("<NOOP><END>"))
            .or_undecided(Allowed::Invalid, Untestable::new("code", "why"))
            .choice("k", &["a", "b"])
            .starts("D", 1)
            .within_ms("E", 1_500)
            .gone("F")
            .certain_since(7, 8)
            .given_inputs("G", &[("{}", "a")])
            .provided(Provided::Words { clause: "H".into(), words: vec![String::new()] });
        let text = serde_json::to_string(&expect).unwrap();
        assert_eq!(serde_json::from_str::<Expect>(&text).unwrap(), expect, "{text}");
    }
}
