//! Verdicts: what one check came to.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::check::{Untestable, topic_of};
use crate::clause::{ClauseId, Level};
use crate::finding::{ChoiceSeen, Finding, Nature};
use crate::rung::Rung;

/// What a check came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "verdict", content = "detail")]
pub enum Verdict {
    /// The peer holds the clauses, as far as this check can tell.
    Pass,
    /// A clause is broken.
    Fail,
    /// The peer died.
    Crash,
    /// The peer did not answer or end in time.
    Hang,
    /// Something outlived the peer.
    Leak,
    /// The contract leaves it open; the outcome was one of the named set.
    Open(String),
    /// It could not be run or could not decide anything; never a pass.
    Untestable(Untestable),
    /// It belongs to a feature that the peer does not claim.
    NotClaimed(String),
    /// It was asked not to run: its time to live needs `--slow`.
    NotRun(String),
    /// A fault that another check tells of showed in its conversation: the fault, and that check.
    Masked(String),
    /// It failed as the expectations file says.
    Expected(String),
    /// It failed in some runs only: `k/n`.
    Flaky(String),
    /// The harness is at fault.
    HarnessError(String),
}

impl Verdict {
    /// The verdict of the gravest nature among `findings`, or none if there are none.
    pub fn of_findings(findings: &[Finding]) -> Option<Self> {
        findings.iter().map(|finding| finding.nature).max().map(|nature| match nature {
            Nature::Violation => Self::Fail,
            Nature::Leak => Self::Leak,
            Nature::Hang => Self::Hang,
            Nature::Crash => Self::Crash,
        })
    }

    /// The word used in reports and in expectations files.
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

    /// What stands beside the word: the reason, the choice, the count.
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

    /// Why nothing was decided, if that is so.
    pub fn undecided(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Untestable(_) | Self::NotClaimed(_) | Self::NotRun(_) | Self::Masked(_) => self.detail(),
            _ => None,
        }
    }

    /// Whether nothing was decided for the reason of this code.
    pub fn is_untestable(&self, code: &str) -> bool {
        matches!(self, Self::Untestable(why) if why.code == code)
    }

    /// Whether a clause was found broken.
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Fail | Self::Crash | Self::Hang | Self::Leak)
    }

    /// Whether the check decided in favour of the peer.
    pub fn is_good(&self) -> bool {
        matches!(self, Self::Pass | Self::Open(_))
    }
}

/// Detail of [`Verdict::Masked`]: the fault that masks a check, and the check that tells of it.
pub fn mask(clause: &ClauseId, reason: &str, by: &str) -> String {
    format!("{clause} {reason}{TOLD_BY}{by}")
}

/// The check that tells of a masking fault, and the reason code of that.
pub fn told_by(mask: &str) -> Option<(&str, &str)> {
    let (fault, by) = mask.rsplit_once(TOLD_BY)?;
    Some((by, fault.split_once(' ').map_or("", |(_, reason)| reason)))
}

const TOLD_BY: &str = ": told by ";

/// Everything about one check of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckResult {
    /// Id of the check.
    pub id: String,
    /// One sentence: what is done and what has to happen.
    pub title: String,
    /// What it came to.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Distance from what a correct counterpart sends.
    #[serde(default, skip_serializing_if = "Rung::is_usual")]
    pub rung: Rung,
    /// The command whose first canary it is; files of before have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_canary: Option<String>,
    /// Reason code of the first finding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Clauses it puts at risk.
    pub clauses: Vec<ClauseRef>,
    /// Outcome where the contract leaves it open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<ChoiceSeen>,
    /// What is wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// What its conversation came to for the clauses that no finding names. It counts where all findings are about SHOULD
    /// clauses; else those clauses are not decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<Verdict>,
    /// How often its conversation met what is counted, each by a phrase.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counted: BTreeMap<String, u64>,
    /// The check that confirmed the cause of its first finding: this one failed once and was not run again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed_by: Option<String>,
    /// Where the reproducer was written, relative to the output folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reproducer: Option<String>,
    /// The shortest conversation that shows the failure, one line a step, for humans.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conversation: Vec<String>,
    /// Place of its line that shows the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrong_line: Option<usize>,
    /// Wall time of the first run, milliseconds.
    pub ms: u64,
}

/// A clause as results name it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ClauseRef {
    /// Id.
    pub id: ClauseId,
    /// Level.
    pub level: Level,
}

impl CheckResult {
    /// The part of the id that reports group by.
    pub fn topic(&self) -> &str {
        topic_of(&self.id)
    }

    /// The gravest level among the clauses that its findings name; a finding about a clause outside its list counts
    /// as that clause's level is given in `clauses`, else as must.
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

    /// What it says of the clauses that no finding names.
    pub fn of_others(&self) -> &Verdict {
        let rest = self.rest.as_ref().filter(|_| self.broken_level() == Some(Level::Should));
        rest.unwrap_or(&self.verdict)
    }

    /// Why clauses that it puts at risk were not decided, if that is so: the word of the verdict about them, and the reason.
    pub fn undecided(&self) -> Option<(&'static str, Cow<'_, str>)> {
        let verdict = self.of_others();
        Some((verdict.word(), verdict.undecided()?))
    }
}
