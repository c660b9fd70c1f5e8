//! Verdicts: results of checks.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::data::check::{Untestable, topic_of};
use crate::data::clause::{ClauseId, Level};
use crate::data::finding::{ChoiceSeen, Finding, Nature};
use crate::data::rung::Rung;

/// Verdict of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "verdict", content = "detail")]
pub enum Verdict {
    /// The peer obeys the clauses, as far as this check can tell.
    Pass,
    /// A clause is broken.
    Fail,
    /// The peer crashed.
    Crash,
    /// The peer did not answer or end in time.
    Hang,
    /// A process or file outlived the peer.
    Leak,
    /// The clause is open; the peer showed one of the named behaviours.
    Open(String),
    /// The check could not run or decide; this never counts as a pass.
    Untestable(Untestable),
    /// The check belongs to a feature that the peer does not claim.
    NotClaimed(String),
    /// The check was not requested, such as a slow one without `--slow`.
    NotRun(String),
    /// Another check reports the fault that appeared here: the fault, and that check.
    Masked(String),
    /// The check failed as the expectations file says.
    Expected(String),
    /// The check failed in some repetitions only: `k/n`.
    Flaky(String),
    /// The harness is at fault.
    HarnessError(String),
}

impl Verdict {
    /// Verdict for the gravest nature among `findings`; `None` if empty.
    pub fn of_findings(findings: &[Finding]) -> Option<Self> {
        findings.iter().map(|finding| finding.nature).max().map(|nature| match nature {
            Nature::Violation => Self::Fail,
            Nature::Leak => Self::Leak,
            Nature::Hang => Self::Hang,
            Nature::Crash => Self::Crash,
        })
    }

    /// Word in reports and expectations files.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Crash => "crash",
            Self::Hang => "hang",
            Self::Leak => "leak",
            Self::Open(_) => "open",
            Self::Untestable(_) => "untestable",
            Self::NotClaimed(_) => "not_claimed",
            Self::NotRun(_) => "not_run",
            Self::Masked(_) => "masked",
            Self::Expected(_) => "expected",
            Self::Flaky(_) => "flaky",
            Self::HarnessError(_) => "harness_error",
        }
    }

    /// Text beside the word: the reason, the choice or the count.
    pub fn detail(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Untestable(why) => Some(why.to_string().into()),
            Self::Open(text)
            | Self::NotClaimed(text)
            | Self::NotRun(text)
            | Self::Masked(text)
            | Self::Expected(text)
            | Self::Flaky(text)
            | Self::HarnessError(text) => Some(text.into()),
            _ => None,
        }
    }

    /// Reason why nothing was decided; `None` if something was.
    pub fn undecided(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Untestable(_) | Self::NotClaimed(_) | Self::NotRun(_) | Self::Masked(_) => self.detail(),
            _ => None,
        }
    }

    /// True if untestable with this code.
    pub fn is_untestable(&self, code: &str) -> bool {
        matches!(self, Self::Untestable(why) if why.code == code)
    }

    /// True if a clause was found broken.
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Fail | Self::Crash | Self::Hang | Self::Leak)
    }

    /// True if the check found nothing wrong: it passed, or the peer made a choice that the contract leaves open.
    pub fn is_good(&self) -> bool {
        matches!(self, Self::Pass | Self::Open(_))
    }
}

/// Detail of [`Verdict::Masked`]: the masking fault, and the check that reports it.
pub fn mask(clause: &ClauseId, reason: &str, by: &str) -> String {
    format!("{clause} {reason}{TOLD_BY}{by}")
}

/// Check that reports the masking fault, and its reason code.
pub fn told_by(mask: &str) -> Option<(&str, &str)> {
    let (fault, by) = mask.rsplit_once(TOLD_BY)?;
    Some((by, fault.split_once(' ').map_or("", |(_, reason)| reason)))
}

const TOLD_BY: &str = ": told by ";

/// Result of one check in one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckResult {
    /// Id of the check.
    pub id: String,
    /// One sentence: the stimulus and the required behaviour.
    pub title: String,
    /// Verdict of the check.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Distance of its input from that of a correct counterpart.
    #[serde(default, skip_serializing_if = "Rung::is_usual")]
    pub rung: Rung,
    /// Command whose first canary this check is; missing in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_canary: Option<String>,
    /// Reason code of the first finding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Clauses under test.
    pub clauses: Vec<ClauseRef>,
    /// Behaviour seen for an open clause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<ChoiceSeen>,
    /// Findings of the check.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Verdict of its conversation for the clauses without a finding. It counts only if all findings are about SHOULDs;
    /// otherwise those clauses are undecided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<Verdict>,
    /// Counters of its conversation, by phrase.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counted: BTreeMap<String, u64>,
    /// Check that confirmed the cause of the first finding, so that this one ran only once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed_by: Option<String>,
    /// Folder of the reproducer, relative to the output folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reproducer: Option<String>,
    /// Shortest conversation that shows the failure, one line per message or event, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conversation: Vec<String>,
    /// Index of its line that shows the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrong_line: Option<usize>,
    /// Views of the conversation for its findings of other kinds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherView>,
    /// Wall time of the first run, milliseconds.
    pub ms: u64,
}

/// Conversation as it shows the findings of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherView {
    /// Clause of the findings.
    pub clause: ClauseId,
    /// Reason code of the findings.
    pub reason: String,
    /// One line per message or event.
    pub conversation: Vec<String>,
    /// Index of the line that shows the first finding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrong_line: Option<usize>,
}

/// Clause in results.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ClauseRef {
    /// Id of the clause.
    pub id: ClauseId,
    /// Level of the clause.
    pub level: Level,
}

impl CheckResult {
    /// Part of the id by which reports group.
    pub fn topic(&self) -> &str {
        topic_of(&self.id)
    }

    /// Strictest level among the clauses in its findings. A clause missing in `clauses` counts as MUST.
    pub fn broken_level(&self) -> Option<Level> {
        self.findings
            .iter()
            .map(|finding| {
                self.clauses
                    .iter()
                    .find(|clause| clause.id == finding.clause)
                    .map_or(Level::Must, |c| c.level)
            })
            .min()
    }

    /// Conversation as it shows the findings of this clause and reason code, and the index of the line that shows the
    /// first of them.
    pub fn view(&self, clause: &ClauseId, reason: &str) -> (&[String], Option<usize>) {
        let is_it = |view: &&OtherView| view.clause == *clause && view.reason == reason;
        match self.others.iter().find(is_it) {
            Some(view) => (&view.conversation, view.wrong_line),
            None => (&self.conversation, self.wrong_line),
        }
    }

    /// Verdict for the clauses without a finding.
    pub fn of_others(&self) -> &Verdict {
        let rest = self.rest.as_ref().filter(|_| self.broken_level() == Some(Level::Should));
        rest.unwrap_or(&self.verdict)
    }

    /// Reason why tested clauses were not decided: the verdict about them, and its detail.
    pub fn undecided(&self) -> Option<(&'static str, Cow<'_, str>)> {
        let verdict = self.of_others();
        Some((verdict.word(), verdict.undecided()?))
    }
}
