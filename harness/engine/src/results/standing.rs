//! What all checks together say about each clause, and the exit status of a run.

use std::collections::BTreeMap;

use crate::clause::{ClauseId, Level};
use crate::runner;
use crate::verdict::{CheckResult, ClauseRef, Verdict};

/// Where a clause stands after a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// A finding shows that it is broken; reason codes, without repetition.
    Broken(Vec<String>),
    /// It is broken as the expectations file says.
    ExpectedBroken(Vec<String>),
    /// A check of it failed in some runs only.
    Flaky,
    /// Every check of it decided in favour of the peer.
    Proved,
    /// Some checks decided in favour of the peer, this many could not decide or did not run.
    Partly(usize),
    /// The peer does not claim the feature.
    NotClaimed,
    /// No check of it decided anything; the first reason.
    Undecided(String),
}

impl Standing {
    /// The word used in reports.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Broken(_) => "broken",
            Self::ExpectedBroken(_) => "expected",
            Self::Flaky => "flaky",
            Self::Proved => "proved",
            Self::Partly(_) => "partly",
            Self::NotClaimed => "not_claimed",
            Self::Undecided(_) => "undecided",
        }
    }

    /// What stands beside the word, without brackets; often nothing.
    pub fn detail(&self) -> String {
        match self {
            Self::Broken(reasons) | Self::ExpectedBroken(reasons) => reasons.join(", "),
            Self::Partly(count) => format!("{count} undecided"),
            Self::Undecided(reason) => reason.clone(),
            Self::Flaky | Self::Proved | Self::NotClaimed => String::new(),
        }
    }
}

#[derive(Default)]
struct Tally {
    level: Option<Level>,
    broken: Vec<String>,
    expected: Vec<String>,
    flaky: bool,
    good: usize,
    undecided: Vec<String>,
    not_claimed: usize,
}

/// Where every clause stands that a check puts at risk or a finding names, by id.
pub fn standings(checks: &[CheckResult]) -> Vec<(ClauseRef, Standing)> {
    let mut tallies: BTreeMap<ClauseId, Tally> = BTreeMap::new();
    for check in checks {
        for clause in &check.clauses {
            let tally = tallies.entry(clause.id.clone()).or_default();
            tally.level = Some(clause.level);
            match check.of_others() {
                Verdict::Pass | Verdict::Open(_) => tally.good += 1,
                Verdict::NotClaimed(_) => tally.not_claimed += 1,
                // A check that failed for a MUST speaks through its findings, and says nothing about its other clauses.
                verdict => tally.undecided.push(match verdict.detail() {
                    Some(detail) => format!("{}: {detail}", verdict.word()),
                    None => format!("its check {} failed for another clause", check.id),
                }),
            }
        }
        for finding in &check.findings {
            let tally = tallies.entry(finding.clause.clone()).or_default();
            let reasons = match check.verdict {
                Verdict::Expected(_) => &mut tally.expected,
                Verdict::Flaky(_) => {
                    tally.flaky = true;
                    continue;
                }
                _ => &mut tally.broken,
            };
            if !reasons.contains(&finding.reason) {
                reasons.push(finding.reason.clone());
            }
        }
    }
    tallies
        .into_iter()
        .map(|(id, tally)| (ClauseRef { id, level: tally.level.unwrap_or(Level::Must) }, tally.standing()))
        .collect()
}

impl Tally {
    fn standing(self) -> Standing {
        if !self.broken.is_empty() {
            Standing::Broken(self.broken)
        } else if !self.expected.is_empty() {
            Standing::ExpectedBroken(self.expected)
        } else if self.flaky {
            Standing::Flaky
        } else if self.good > 0 && self.undecided.is_empty() {
            Standing::Proved
        } else if self.good > 0 {
            Standing::Partly(self.undecided.len())
        } else if let Some(reason) = self.undecided.into_iter().next() {
            Standing::Undecided(reason)
        } else {
            Standing::NotClaimed
        }
    }
}

/// The exit status that finished checks come to, without regard to interruption and stale expectations. With `strict`
/// a broken SHOULD decides too, and one that is broken now and then. An outcome outside the named set of an open clause breaks it like a MUST.
///
/// 1 a clause is broken · 70 harness fault · 6 flaky only · 4 nothing was decided, at least of one command · 0. That a SHOULD
/// is broken decides nothing of the other clauses of its check where these are undecided.
pub fn exit_code(checks: &[CheckResult], strict: bool) -> i32 {
    let counts = |check: &CheckResult| strict || check.broken_level() != Some(Level::Should);
    let broken = |check: &CheckResult| check.verdict.is_failure() && counts(check);
    let flaky = |check: &CheckResult| matches!(check.verdict, Verdict::Flaky(_)) && counts(check);
    let decided = |check: &CheckResult| {
        let others = check.of_others();
        others.is_good() || others.is_failure() || matches!(others, Verdict::Expected(_))
    };
    if checks.iter().any(broken) {
        1
    } else if checks.iter().any(|check| matches!(check.verdict, Verdict::HarnessError(_))) {
        70
    } else if checks.iter().any(flaky) {
        6
    } else if checks.iter().any(|check| runner::refused_command(check).is_some()) {
        // Whatever else was decided: of a whole command that the configuration names nothing is known.
        4
    } else if checks.iter().any(decided) {
        0
    } else {
        4
    }
}
