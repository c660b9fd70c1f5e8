//! Differences between two runs.

use std::collections::{BTreeMap, BTreeSet};

use super::printer::{Printer, Tone};
use super::screen::plural;
use peerproof_engine::run::causes::{Cause, Certainty};
use peerproof_engine::run::results::ResultsFile;
use peerproof_engine::run::verdict::{CheckResult, Verdict};

/// Kinds of changes, gravest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sort {
    /// Passed before, fails now.
    Regressed,
    /// Had a verdict before, is missing now.
    Gone,
    /// Passed before, is undecided or flaky now.
    Lost,
    /// Changed in another way.
    Changed,
    /// New check.
    New,
    /// Failed before, passes now.
    Fixed,
}

/// Check with a changed verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Kind of change.
    pub sort: Sort,
    /// Id of the check.
    pub id: String,
    /// Verdict and reason before; `None` if missing.
    pub before: Option<String>,
    /// Verdict and reason now; `None` if missing.
    pub after: Option<String>,
}

/// Changes from `old` to `new`, gravest first.
pub fn diff(old: &ResultsFile, new: &ResultsFile) -> Vec<Change> {
    let by_id = |file: &ResultsFile| -> BTreeMap<(String, String), CheckResult> {
        let runs = file.runs.iter();
        runs.flat_map(|run| {
            let side = format!("{} {}", run.header.boundary, run.header.side.word());
            run.checks.iter().map(move |check| ((side.clone(), check.id.clone()), check.clone()))
        })
        .collect()
    };
    let (before, after) = (by_id(old), by_id(new));
    let mut changes = Vec::new();
    for (key, was) in &before {
        let Some(is) = after.get(key) else {
            changes.push(Change {
                sort: Sort::Gone,
                id: was.id.clone(),
                before: Some(says(was)),
                after: None,
            });
            continue;
        };
        if let Some(sort) = sort(was, is) {
            changes.push(Change { sort, id: was.id.clone(), before: Some(says(was)), after: Some(says(is)) });
        }
    }
    for (key, is) in &after {
        if !before.contains_key(key) {
            changes.push(Change { sort: Sort::New, id: is.id.clone(), before: None, after: Some(says(is)) });
        }
    }
    changes.sort_by(|a, b| (a.sort, &a.id).cmp(&(b.sort, &b.id)));
    changes
}

/// Sentence, if the results are not about the same boundary and side.
pub fn mismatch(old: &ResultsFile, new: &ResultsFile) -> Option<String> {
    let subjects = |file: &ResultsFile| -> BTreeSet<String> {
        let headers = file.runs.iter().map(|run| &run.header);
        headers.map(|header| format!("{} {}", header.boundary, header.side.word())).collect()
    };
    let (before, after) = (subjects(old), subjects(new));
    let words = |subjects: BTreeSet<String>| subjects.into_iter().collect::<Vec<_>>().join(", ");
    before.is_disjoint(&after).then(|| {
        format!(
            "the results have no check in common: the old ones are of {}, the new ones of {}",
            words(before),
            words(after)
        )
    })
}

fn sort(was: &CheckResult, is: &CheckResult) -> Option<Sort> {
    let failed =
        |check: &CheckResult| check.verdict.is_failure() || matches!(check.verdict, Verdict::Flaky(_));
    if says(was) == says(is) {
        None
    } else if was.verdict.is_good() && is.verdict.is_failure() {
        Some(Sort::Regressed)
    } else if was.verdict.is_good() && !is.verdict.is_good() {
        Some(Sort::Lost)
    } else if failed(was) && is.verdict.is_good() {
        Some(Sort::Fixed)
    } else {
        Some(Sort::Changed)
    }
}

/// Cause that only one of two results has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CauseChange {
    /// True if new, false if gone.
    pub is_new: bool,
    /// The cause.
    pub cause: Cause,
}

/// Causes that came or went from `old` to `new`, in the order of the results.
pub fn causes(old: &ResultsFile, new: &ResultsFile) -> Vec<CauseChange> {
    let all = |file: &ResultsFile| -> Vec<Cause> {
        let causes = file.runs.iter().flat_map(|run| &run.causes);
        causes.filter(|cause| cause.certainty != Certainty::Undecided).cloned().collect()
    };
    let (before, after) = (all(old), all(new));
    let lacks = |others: &[Cause], cause: &Cause| others.iter().all(|other| other.id != cause.id);
    let came = after.iter().filter(|cause| lacks(&before, cause)).map(|cause| (true, cause));
    let went = before.iter().filter(|cause| lacks(&after, cause)).map(|cause| (false, cause));
    came.chain(went).map(|(is_new, cause)| CauseChange { is_new, cause: cause.clone() }).collect()
}

/// Verdict with its distinguishing detail: the reason of a failure, or the choice of an open clause. Leaves out counts
/// of flaky runs, which vary by chance.
fn says(check: &CheckResult) -> String {
    let word = check.verdict.word();
    match (&check.verdict, &check.reason) {
        (Verdict::Open(detail), _) => format!("{word} ({detail})"),
        (verdict, Some(reason)) if !verdict.is_good() => format!("{word} ({reason})"),
        (Verdict::Untestable(why), _) => format!("{word} ({})", why.short()),
        (verdict, _) => match verdict.undecided() {
            Some(detail) => format!("{word} ({})", detail.split(':').next().unwrap_or_default()),
            None => word.to_owned(),
        },
    }
}

/// Changes as text, causes first.
pub fn render(causes: &[CauseChange], changes: &[Change], printer: &Printer) -> String {
    let mut out = String::new();
    for CauseChange { is_new, cause } in causes {
        let (word, tone) = if *is_new { ("new cause", Tone::Bad) } else { ("no cause", Tone::Good) };
        let checks = plural(cause.checks.len(), "check");
        out.push_str(&format!(
            "{} {} {}  {} {}, {checks} such as {}\n",
            printer.paint(tone, word),
            cause.id,
            cause.clause,
            cause.level.word().to_uppercase(),
            cause.reason,
            cause.check
        ));
    }
    for change in changes {
        let (word, tone) = match change.sort {
            Sort::Regressed => ("regressed", Tone::Bad),
            Sort::Gone => ("gone", Tone::Warn),
            Sort::Lost => ("lost", Tone::Warn),
            Sort::Changed => ("changed", Tone::Warn),
            Sort::New => ("new", Tone::Name),
            Sort::Fixed => ("fixed", Tone::Good),
        };
        let before = change.before.as_deref().unwrap_or("–");
        let after = change.after.as_deref().unwrap_or("–");
        let word = printer.paint(tone, &format!("{word:9}"));
        out.push_str(&format!("{word} {}  {before} → {after}\n", change.id));
    }
    if changes.is_empty() {
        out.push_str("no verdict changed\n");
    }
    out
}
