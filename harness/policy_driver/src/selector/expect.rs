//! Expectation about a selector's answer to a request, as data.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::choice::Choice;
use peerproof_engine::data::check::Untestable;
use peerproof_engine::data::clause::ClauseId;
use peerproof_engine::data::payload::Payload;

/// Expectation about one request line. Stored in the `expect` of the step that sends it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// Clause that is broken if no allowed outcome fits.
    pub clause: ClauseId,
    /// Allowed outcomes.
    pub allowed: Vec<Allowed>,
    /// Reason code if none fits; by default derived from the Selection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Choice whose value is shown by the outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<Choice>,
    /// Required number of started drivers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts: Option<Starts>,
    /// Time limit of the Selection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<AnswerDeadline>,
    /// Clause that is broken if the next probe finds a process of a driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone: Option<ClauseId>,
    /// Makes a fallback other than that of FALLBACK_ONLY break `clause` instead of the clause about fallbacks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_about_fallback: bool,
    /// Required environment of the started driver.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provided: Vec<Provided>,
    /// Time for which the expectation is certain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certain: Option<Certain>,
    /// Required payload of a driver that looks at it, beyond the rules for all payloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<PayloadRequirement>,
}

/// Time for which an expectation is certain. A later Selection that does not fit may be due to a slow machine, so
/// it decides nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certain {
    /// Step whose sending begins the time; by default the request itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<usize>,
    /// Time until the Selection, ms.
    pub ms: u64,
}

/// Required number of drivers started between this request and the next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Starts {
    /// Clause that another number breaks.
    pub clause: ClauseId,
    /// Number of starts.
    pub count: u32,
}

/// Required time until the Selection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerDeadline {
    /// Clause that a longer time breaks.
    pub clause: ClauseId,
    /// Time between the request and its Selection, ms. Grows with `--timeout-scale`.
    pub ms: u64,
}

/// One allowed outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Allowed {
    /// The Selection that this block spells.
    Taken(Payload),
    /// The fallback: the Selection of the internal selector.
    Fallback,
    /// A Selection of kind INVALID.
    Invalid,
    /// Any well-formed Selection.
    Anything,
    /// No Selection.
    Nothing,
    /// An outcome that decides nothing.
    Undecided {
        /// The outcome.
        came: Box<Allowed>,
        /// Reason why it decides nothing.
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

/// Requirement for one payload, beyond the rules for all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PayloadRequirement {
    /// Clause that a payload breaks which differs from the request.
    pub clause: ClauseId,
    /// Allowed inputs as JSON texts, each with its value of the expectation's choice. Empty: the inputs must equal
    /// those of the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<(String, String)>,
}

/// Requirement for the environment of a driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Provided {
    /// Arguments, followed by the path of the payload.
    Words {
        /// Clause that other arguments break.
        clause: ClauseId,
        /// Expected arguments; `{{folder}}` matches any text.
        words: Vec<String>,
    },
    /// A variable that the driver must have.
    Variable {
        /// Clause that its absence breaks.
        clause: ClauseId,
        /// Its name.
        name: String,
        /// Text that its value contains.
        part: String,
    },
    /// A variable that the driver must not have.
    NoVariable {
        /// Clause that its presence breaks.
        clause: ClauseId,
        /// Its name.
        name: String,
    },
    /// A limit, shown by the driver's soft limit or by its failure.
    Limit {
        /// Clause that is broken if neither shows it.
        clause: ClauseId,
        /// Row of `/proc/self/limits`.
        row: String,
        /// Soft limit in the unit of the row.
        soft: u64,
        /// True if the driver exceeds the limit.
        is_tried: bool,
    },
    /// A limit that a variable raises. The driver exceeds the default.
    Raised {
        /// Clause that is broken if the soft limit is the default and the driver fails.
        clause: ClauseId,
        /// Row of `/proc/self/limits`.
        row: String,
        /// Default in the unit of the row.
        default: u64,
    },
}

impl Expect {
    /// An expectation with one allowed outcome.
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

    /// Expects the Selection that the driver's block spells.
    pub fn taken(clause: &str, block: impl Into<String>) -> Self {
        Self::new(clause, Allowed::taken(block))
    }

    /// Expects the fallback.
    pub(crate) fn fallback(clause: &str) -> Self {
        Self::new(clause, Allowed::Fallback)
    }

    /// Expects the fallback; another fallback breaks this clause.
    pub(crate) fn as_fallback(clause: &str) -> Self {
        Self { is_about_fallback: true, ..Self::fallback(clause) }
    }

    /// Expects INVALID.
    pub fn invalid(clause: &str) -> Self {
        Self::new(clause, Allowed::Invalid)
    }

    /// Expects a refusal of the command: INVALID, and no start.
    pub fn refused(clause: &str) -> Self {
        Self::invalid(clause).starts(clause, 0)
    }

    /// Adds another allowed outcome.
    #[must_use]
    pub fn or(mut self, allowed: Allowed) -> Self {
        self.allowed.push(allowed);
        self
    }

    /// Adds an allowed outcome that decides nothing, with the reason.
    #[must_use]
    pub(crate) fn or_undecided(self, came: Allowed, why: Untestable) -> Self {
        self.or(Allowed::Undecided { came: Box::new(came), why })
    }

    /// Sets the reason code of a Selection that does not fit.
    #[must_use]
    pub fn reason(mut self, reason: &str) -> Self {
        self.reason = Some(reason.to_owned());
        self
    }

    /// Sets the value of a choice for each allowed outcome, in order.
    #[must_use]
    pub fn choice(mut self, key: &str, values: &[&str]) -> Self {
        self.choice = Some(Choice::new(key, values));
        self
    }

    /// Requires this number of starts, under `clause`.
    #[must_use]
    pub fn starts(mut self, clause: &str, count: u32) -> Self {
        self.starts = Some(Starts { clause: clause.into(), count });
        self
    }

    /// Requires a Selection within this time, under `clause`.
    #[must_use]
    pub(crate) fn within_ms(mut self, clause: &str, ms: u64) -> Self {
        self.within = Some(AnswerDeadline { clause: clause.into(), ms });
        self
    }

    /// Requires, under `clause`, that the probe after it finds no process of a driver.
    #[must_use]
    pub fn gone(mut self, clause: &str) -> Self {
        self.gone = Some(clause.into());
        self
    }

    /// Makes the expectation certain only for Selections within this time after the request. It is the timeout of
    /// the driver.
    #[must_use]
    pub(crate) fn certain_for_ms(mut self, ms: u64) -> Self {
        self.certain = Some(Certain { since: None, ms });
        self
    }

    /// Makes the expectation certain only for Selections within this time after the sending of `step`, at which a
    /// cooldown began at the earliest.
    #[must_use]
    pub(crate) fn certain_since(mut self, step: usize, ms: u64) -> Self {
        self.certain = Some(Certain { since: Some(step), ms });
        self
    }

    /// Sets the clause that a payload breaks which differs from the request.
    #[must_use]
    pub fn given(mut self, clause: &str) -> Self {
        self.given = Some(PayloadRequirement { clause: clause.into(), inputs: Vec::new() });
        self
    }

    /// Allows other inputs in the payload: JSON texts, each with its value of the choice.
    #[must_use]
    pub(crate) fn given_inputs(mut self, clause: &str, inputs: &[(&str, &str)]) -> Self {
        let inputs = inputs.iter().map(|(text, value)| ((*text).to_owned(), (*value).to_owned())).collect();
        self.given = Some(PayloadRequirement { clause: clause.into(), inputs });
        self
    }

    /// Reads the expectations of a step, one for each line that it sends.
    pub fn of_step(expect: &Value) -> Vec<Self> {
        let read = |value: &Value| Self::deserialize(value).ok();
        match expect {
            Value::Array(all) => all.iter().filter_map(read).collect(),
            one => read(one).into_iter().collect(),
        }
    }

    /// Adds a required part of the driver's environment.
    #[must_use]
    pub(crate) fn provided(mut self, provided: Provided) -> Self {
        self.provided.push(provided);
        self
    }

    /// True if no Selection need come.
    pub(crate) fn may_be_silent(&self) -> bool {
        self.allowed.contains(&Allowed::Nothing)
    }

    /// True if the fallback is allowed.
    pub(crate) fn may_fall_back(&self) -> bool {
        self.allowed.contains(&Allowed::Fallback)
    }

    /// Describes the expectation in one phrase.
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
