//! Standing of each clause after all checks, and the exit status of a run.

use std::collections::BTreeMap;

use crate::data::clause::{ClauseId, Level};
use crate::run::runner;
use crate::run::verdict::{CheckResult, ClauseRef, Verdict};

/// Standing of a clause after a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// A finding shows the clause broken; with distinct reason codes.
    Broken(Vec<String>),
    /// The clause is broken as the expectations file says; with distinct reason codes.
    ExpectedBroken(Vec<String>),
    /// A check of the clause failed in some repetitions only.
    Flaky,
    /// Every check of the clause that applies found nothing wrong.
    Proved,
    /// Some checks found nothing wrong; this many could not decide or did not run.
    Partly(usize),
    /// The peer does not claim its feature.
    NotClaimed,
    /// No check of the clause could decide; with the first reason.
    Undecided(String),
}

impl Standing {
    /// Word in reports.
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

    /// Text after the word, without brackets; often empty.
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
struct ClauseTally {
    level: Option<Level>,
    broken: Vec<String>,
    expected: Vec<String>,
    flaky: bool,
    good: usize,
    undecided: Vec<String>,
    not_claimed: usize,
}

/// Standing of every clause that a check tests or a finding names, by id.
pub fn standings(checks: &[CheckResult]) -> Vec<(ClauseRef, Standing)> {
    let mut tallies: BTreeMap<ClauseId, ClauseTally> = BTreeMap::new();
    for check in checks {
        for clause in &check.clauses {
            let tally = tallies.entry(clause.id.clone()).or_default();
            tally.level = Some(clause.level);
            match check.of_others() {
                Verdict::Pass | Verdict::Open(_) => tally.good += 1,
                Verdict::NotClaimed(_) => tally.not_claimed += 1,
                // A check that failed for a MUST counts through its findings and says nothing about its other clauses.
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

impl ClauseTally {
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

/// Exit status of finished checks, ignoring interruption and stale expectations. With `strict`, broken and flaky
/// SHOULDs count, too. An undeclared behaviour for an open clause counts like a broken MUST.
///
/// 1: a clause is broken · 70: harness fault · 6: only flaky failures · 4: nothing was decided, or nothing about one of
/// the commands · 0: otherwise. A broken SHOULD does not make the undecided clauses of its check decided.
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
        // Nothing is known about a whole configured command, whatever else was decided.
        4
    } else if checks.iter().any(decided) {
        0
    } else {
        4
    }
}
