//! Findings: violations of one clause each, with the evidence.

pub mod occasion;

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use crate::check::Untestable;
use crate::clause::ClauseId;
use crate::payload::shorten_pair;
use crate::text::visible;
use crate::transcript::Exit;
use occasion::Occasion;

/// Most characters of what was expected, and of what came.
const CHARS_MAX: usize = 400;

/// What sort of failure a finding shows; it decides the verdict of the check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Nature {
    /// The peer did something that the clause forbids, or left out what it asks for.
    Violation,
    /// Something of the peer outlived it.
    Leak,
    /// The peer did not answer or did not end in time.
    Hang,
    /// The peer died.
    Crash,
}

pub use crate::plan::CANARY_FAILED;

/// Reason code of an answer that comes when its input has ended, and not before.
pub const LATE_REPLY: &str = "late_reply";

/// The smallest edit of what a peer did that would have made it allowed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Repair {
    /// Answer where nothing came.
    Send,
    /// Leave out what came.
    Drop,
    /// Answer sooner, or end sooner.
    Sooner,
    /// Give answers together that came apart.
    Wrap,
    /// Another value at a place.
    Set {
        /// JSON Pointer; empty: all of it.
        at: String,
        /// JSON text of the value; `None`: one of several.
        to: Option<String>,
    },
    /// End so.
    Exit(Exit),
    /// Bring about an effect that was not seen.
    Do,
    /// Keep from an effect that was seen.
    Undo,
}

impl Repair {
    /// This JSON text as the value at a place.
    pub fn set(at: impl Into<String>, to: impl Into<String>) -> Self {
        Self::Set { at: at.into(), to: Some(to.into()) }
    }

    /// One of several other values at a place.
    pub fn other(at: impl Into<String>) -> Self {
        Self::Set { at: at.into(), to: None }
    }
}

/// One violation. It cannot be made without a clause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The clause that is broken.
    pub clause: ClauseId,
    /// Stable snake_case code of what is wrong, such as `ran_oversized_input`; expectations and shrinking go by it.
    pub reason: String,
    /// Sort of failure.
    pub nature: Nature,
    /// Step of the plan that shows it.
    pub step: Option<usize>,
    /// What the clause lets one expect, in one phrase without control characters.
    #[serde(deserialize_with = "shown")]
    pub expected: String,
    /// What came instead, in one phrase (shortened) without control characters.
    #[serde(deserialize_with = "shown")]
    pub got: String,
    /// It is about how long something took: a busy machine may be why.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed: bool,
    /// The smallest edit that would have made it allowed, where the judge knows one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair: Option<Repair>,
    /// The occasion on which it was made. [`boundary::judge`](crate::boundary::judge) fills it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occasion: Option<Box<Occasion>>,
}

/// A file may hold what no finding of ours does.
fn shown<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    String::deserialize(deserializer).map(|text| visible(&text).into_owned())
}

impl Finding {
    /// A violation without a step. Long texts are cut where they differ, so both are best given whole.
    pub fn new(
        clause: impl Into<ClauseId>,
        reason: impl Into<String>,
        expected: impl Into<String>,
        got: impl Into<String>,
    ) -> Self {
        let (expected, got) = shorten_pair(&visible(&expected.into()), &visible(&got.into()), CHARS_MAX);
        Self {
            clause: clause.into(),
            reason: reason.into(),
            nature: Nature::Violation,
            step: None,
            expected,
            got,
            timed: false,
            repair: None,
            occasion: None,
        }
    }

    /// Says that it is about how long something took, though it is no hang.
    #[must_use]
    pub fn timed(mut self) -> Self {
        self.timed = true;
        self
    }

    /// True where an answer is missing, under whatever reason its step has for that.
    pub fn lacks_answer(&self) -> bool {
        self.reason == "no_reply" || self.repair == Some(Repair::Send)
    }

    /// Whether it is about time, which a busy machine may have taken.
    pub fn is_of_time(&self) -> bool {
        self.timed || self.nature == Nature::Hang
    }

    /// Says what would have made it allowed. What should have come sooner is about time.
    #[must_use]
    pub fn repaired_by(mut self, repair: Repair) -> Self {
        self.timed |= matches!(repair, Repair::Sooner);
        self.repair = Some(repair);
        self
    }

    /// Points at a step of the plan.
    #[must_use]
    pub fn at(mut self, step: usize) -> Self {
        self.step = Some(step);
        self
    }

    /// Sets the sort of failure.
    #[must_use]
    pub fn of_nature(mut self, nature: Nature) -> Self {
        self.nature = nature;
        self
    }

    /// What makes two findings the same: clause and reason code.
    pub fn key(&self) -> (&ClauseId, &str) {
        (&self.clause, &self.reason)
    }

    /// Whether this one, of another run of the same conversation, shows again what `other` shows: the same, or that the
    /// peer took too long for the same clause. How late it was decides whether an answer was still seen.
    pub fn repeats(&self, other: &Self) -> bool {
        let both_late = self.nature == Nature::Hang && other.nature == Nature::Hang;
        self.key() == other.key() || (both_late && self.clause == other.clause)
    }
}

/// What an oracle says about one transcript.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Everything that is wrong, in the order of the conversation.
    pub findings: Vec<Finding>,
    /// Number of canaries that were answered as they must be; without one nothing is proved.
    pub canaries_answered: usize,
    /// Number of canaries that were answered wrongly, by a message that belongs to them. The peer works, but proves nothing.
    pub canaries_misanswered: usize,
    /// Outcome of an open clause that this conversation shows.
    pub choice: Option<ChoiceSeen>,
    /// Why the conversation could not decide anything (this machine cannot enforce it, the role misbehaves).
    pub untestable: Option<Untestable>,
    /// How often the conversation met what the report counts, each by a phrase.
    pub counted: BTreeMap<String, u64>,
}

impl Judgement {
    /// True where a canary was answered, rightly or not.
    pub fn is_at_work(&self) -> bool {
        self.canaries_answered + self.canaries_misanswered > 0
    }

    /// True if the peer answered, and nothing is wrong or undecided.
    pub(crate) fn is_clean(&self) -> bool {
        self.canaries_answered > 0 && self.findings.is_empty() && self.untestable.is_none()
    }

    /// Whether it shows nothing, neither that something is wrong nor that nothing is.
    pub(crate) fn is_undecided(&self) -> bool {
        self.findings.is_empty() && self.untestable.is_some()
    }
}

/// The outcome that a peer chose where the contract leaves it open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChoiceSeen {
    /// Key as under `[choices]`.
    pub key: String,
    /// Value out of the named set.
    pub value: String,
    /// The configuration says so under `[choices]`; what is inferred from an answer asserts nothing of other answers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
}

impl ChoiceSeen {
    /// The choice with what it rests on.
    pub fn phrase(&self) -> String {
        format!("{}={}{}", self.key, self.value, if self.pinned { "" } else { ", inferred" })
    }
}
