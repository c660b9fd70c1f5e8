//! Findings: violations of one clause each, with their evidence.

pub mod occasion;

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use crate::data::check::Untestable;
use crate::data::clause::ClauseId;
use crate::data::payload::shorten_pair;
use crate::data::text::visible;
use crate::data::transcript::Exit;
use occasion::Occasion;

/// Maximum length of `expected` and `got`, characters.
const CHARS_MAX: usize = 400;

/// Kind of failure that a finding shows. It decides the verdict of the check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Nature {
    /// The peer did something forbidden or omitted something required.
    Violation,
    /// A process or file of the peer outlived it.
    Leak,
    /// The peer did not answer or did not end in time.
    Hang,
    /// The peer crashed.
    Crash,
}

pub use crate::data::plan::CANARY_FAILED;

/// Answer of a peer that was silent until the harness ended the conversation.
pub(crate) const NO_REPLY_UNTIL_THE_END: &str = "no reply until the end of the conversation";

/// Reason code of an answer that comes only after its input has ended.
pub const LATE_REPLY: &str = "late_reply";

/// Smallest edit of the peer's behaviour that makes it allowed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Repair {
    /// Send the missing answer.
    Send,
    /// Omit an answer.
    Drop,
    /// Answer or end sooner.
    Sooner,
    /// Send separate answers together.
    Wrap,
    /// Use another value at a place.
    Set {
        /// JSON Pointer; empty for the whole answer.
        at: String,
        /// JSON text of the value; `None` if there are several.
        to: Option<String>,
    },
    /// Exit this way.
    Exit(Exit),
    /// Cause a missing effect.
    Do,
    /// Avoid an effect.
    Undo,
}

impl Repair {
    /// Requires this JSON text as the value at a place.
    pub fn set(at: impl Into<String>, to: impl Into<String>) -> Self {
        Self::Set { at: at.into(), to: Some(to.into()) }
    }

    /// Requires some other value at a place.
    pub fn other(at: impl Into<String>) -> Self {
        Self::Set { at: at.into(), to: None }
    }
}

/// Violation of one clause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Broken clause.
    pub clause: ClauseId,
    /// Stable snake_case code of the fault, such as `ran_oversized_input`. Expectations and shrinking use it.
    pub reason: String,
    /// Kind of failure.
    pub nature: Nature,
    /// Step of the plan that shows it.
    pub step: Option<usize>,
    /// Behaviour that the clause allows, in one phrase without control characters.
    #[serde(deserialize_with = "shown")]
    pub expected: String,
    /// Behaviour of the peer, shortened to one phrase without control characters.
    #[serde(deserialize_with = "shown")]
    pub got: String,
    /// Set if it is about time: a busy machine may be the reason.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed: bool,
    /// Set if complete output is wrong by itself: no lateness explains it.
    #[serde(skip)]
    pub is_of_output: bool,
    /// Smallest edit that makes the behaviour allowed, if the judge knows one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair: Option<Repair>,
    /// The occasion on which it was made. [`boundary::judge`](crate::contract::boundary::judge) fills it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occasion: Option<Box<Occasion>>,
}

/// Removes control characters, which a file may hold but no finding of ours.
fn shown<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    String::deserialize(deserializer).map(|text| visible(&text).into_owned())
}

impl Finding {
    /// Violation without a step. Pass the whole texts: long ones are shortened around their difference.
    pub fn new(
        clause: impl Into<ClauseId>,
        reason: impl Into<String>,
        expected: impl Into<String>,
        got: impl Into<String>,
    ) -> Self {
        Self::of(clause.into(), reason.into(), &expected.into(), &got.into())
    }

    fn of(clause: ClauseId, reason: String, expected: &str, got: &str) -> Self {
        let (expected, got) = shorten_pair(&visible(expected), &visible(got), CHARS_MAX);
        Self {
            clause,
            reason,
            nature: Nature::Violation,
            step: None,
            expected,
            got,
            timed: false,
            is_of_output: false,
            repair: None,
            occasion: None,
        }
    }

    /// Marks the finding as a matter of time although the peer did not hang.
    #[must_use]
    pub fn timed(mut self) -> Self {
        self.timed = true;
        self
    }

    /// Marks the finding as a fault of complete output.
    #[must_use]
    pub fn of_output(mut self) -> Self {
        self.is_of_output = true;
        self
    }

    /// True if an answer is missing, whatever reason code its step uses for that.
    pub fn lacks_answer(&self) -> bool {
        self.reason == "no_reply" || self.repair == Some(Repair::Send)
    }

    /// True if a request was answered where it must be refused, or refused with another code.
    pub fn is_of_refusal(&self) -> bool {
        matches!(self.reason.as_str(), "accepted" | "no_error" | "wrong_code")
    }

    /// True if it is about time, for which a busy machine may be the reason.
    pub fn is_of_time(&self) -> bool {
        self.timed || self.nature == Nature::Hang
    }

    /// Sets the repair. [`Repair::Sooner`] marks the finding as a matter of time.
    #[must_use]
    pub fn repaired_by(mut self, repair: Repair) -> Self {
        self.timed |= matches!(repair, Repair::Sooner);
        self.repair = Some(repair);
        self
    }

    /// Sets the step of the plan.
    #[must_use]
    pub fn at(mut self, step: usize) -> Self {
        self.step = Some(step);
        self
    }

    /// Sets the kind of failure.
    #[must_use]
    pub fn of_nature(mut self, nature: Nature) -> Self {
        self.nature = nature;
        self
    }

    /// Clause and reason code, which identify equal findings.
    pub fn key(&self) -> (&ClauseId, &str) {
        (&self.clause, &self.reason)
    }

    /// True if this finding repeats `other`, a finding from another run of the conversation: both have equal keys, or
    /// both are hangs under one clause. The reason code of a hang depends on how late the answer came.
    pub fn repeats(&self, other: &Self) -> bool {
        let both_late = self.nature == Nature::Hang && other.nature == Nature::Hang;
        self.key() == other.key() || (both_late && self.clause == other.clause)
    }
}

/// Judgement of one transcript.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Findings in the order of the conversation.
    pub findings: Vec<Finding>,
    /// Number of correctly answered canaries. Without one nothing is proved.
    pub canaries_answered: usize,
    /// Number of canaries answered wrongly by a message that belongs to them. The peer works, but nothing is proved.
    pub canaries_misanswered: usize,
    /// Behaviour that the peer showed for an open clause.
    pub choice: Option<ChoiceSeen>,
    /// Reason why the conversation decides nothing, such as a limit of this machine or a misbehaving role.
    pub untestable: Option<Untestable>,
    /// Counters for the report, by phrase.
    pub counted: BTreeMap<String, u64>,
}

impl Judgement {
    /// True if a canary was answered, correctly or not.
    pub(crate) fn is_at_work(&self) -> bool {
        self.canaries_answered + self.canaries_misanswered > 0
    }

    /// True if the peer answered and no finding or doubt is left.
    pub(crate) fn is_clean(&self) -> bool {
        self.canaries_answered > 0 && self.findings.is_empty() && self.untestable.is_none()
    }

    /// True if it proves neither a fault nor its absence.
    pub(crate) fn is_undecided(&self) -> bool {
        self.findings.is_empty() && self.untestable.is_some()
    }
}

/// Behaviour that a peer chose where the contract is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChoiceSeen {
    /// Key as under `[choices]`.
    pub key: String,
    /// Value from the named set.
    pub value: String,
    /// Set if `[choices]` pins it. A choice inferred from one answer says nothing about other answers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
}

impl ChoiceSeen {
    /// Key and value, with `inferred` if not pinned.
    pub fn phrase(&self) -> String {
        format!("{}={}{}", self.key, self.value, if self.pinned { "" } else { ", inferred" })
    }
}
