//! The golden record: what every check says of the correct peers and of every mutant, as text to be kept and compared.
//!
//! It comes of the proof itself and costs nothing more. A change that moves code changes none of it; one that means to
//! change a verdict changes the line that says so.
//!
//! Two runs write the same. In this process time is virtual, and every verdict is settled. Of a process a check that
//! measures, waits for the contract's own times or watches every conversation is left out: what it says is a matter of the
//! moment. Where the verdict of another check is one of time, of luck or of this machine, `~` stands for it, and
//! agrees with anything.

use std::collections::{BTreeMap, BTreeSet};

use super::{MutantRow, OF_MACHINE, Workshop};
use crate::check::Check;
use crate::finding::{Finding, Nature};
use crate::peer::Peer;
use crate::played::Mutant;
use crate::results::verdicts;
use crate::runner::Outcome;
use crate::verdict::{CheckResult, Verdict};

/// Stands for a verdict that another run or another machine may not come to.
const UNSETTLED: &str = "~";

/// What each check came to, by id, as [`verdicts::line`] writes it behind the id.
pub(super) type Said = BTreeMap<String, String>;

impl Workshop<'_> {
    /// Takes down what a check said of a peer, where that belongs into the record.
    pub(super) fn hear(&self, said: &mut Said, peer: &Peer, outcome: &Outcome) {
        let result = &outcome.result;
        let check = self.boundary().checks().iter().find(|check| check.id == result.id);
        if peer.is_process() && check.is_none_or(is_of_the_moment) {
            return;
        }
        let line = verdicts::line(result);
        let of_machine = matches!(&result.verdict, Verdict::Untestable(why) if why.starts_with(OF_MACHINE));
        let verdict = match line.split_once(' ') {
            Some((_, verdict)) if !(of_machine || peer.is_process() && is_unsettled(result)) => verdict,
            _ => UNSETTLED,
        };
        said.insert(result.id.clone(), verdict.to_owned());
    }
}

/// Whether what a check says of a process depends on when it is run, and beside what.
fn is_of_the_moment(check: &Check) -> bool {
    check.exclusive || check.waits || check.slow || check.ambient
}

/// Whether another run may come to another verdict about a process: it tells of time, of what outlived the process for a
/// moment, or of nothing at all.
fn is_unsettled(result: &CheckResult) -> bool {
    let is_lucky = |finding: &Finding| finding.is_of_time() || finding.nature == Nature::Leak;
    match &result.verdict {
        Verdict::Masked(_) | Verdict::Flaky(_) | Verdict::HarnessError(_) => true,
        Verdict::Untestable(why) if why.starts_with("too_busy") => true,
        _ => result.findings.iter().any(is_lucky),
    }
}

/// The record of one boundary: a paragraph for each correct peer with every check, then one for each mutant with what was
/// said of it and of no correct peer.
pub(super) fn record(correct: &BTreeMap<String, Said>, mutants: &[Mutant], rows: &[MutantRow]) -> String {
    let mut record = String::new();
    for (commands, said) in correct {
        paragraph(&mut record, &format!("correct {commands}"), said.iter());
    }
    let usual: BTreeSet<(&String, &String)> = correct.values().flatten().collect();
    for mutant in mutants {
        let row = rows.iter().find(|row| row.id == mutant.id);
        let said = row.into_iter().flat_map(|row| &row.said).filter(|line| !usual.contains(line));
        paragraph(&mut record, &format!("mutant {}", mutant.id), said);
    }
    record
}

fn paragraph<'a>(record: &mut String, title: &str, said: impl Iterator<Item = (&'a String, &'a String)>) {
    record.push_str(&format!("= {title}\n"));
    for (check, verdict) in said {
        record.push_str(&format!("{check} {verdict}\n"));
    }
}

/// Where a record says something else than the one that was kept: a sentence for each check. An unsettled verdict agrees
/// with anything.
pub fn differences(kept: &str, now: &str) -> Vec<String> {
    let (kept, now) = (verdicts_of(kept), verdicts_of(now));
    let places: BTreeSet<_> = kept.keys().chain(now.keys()).collect();
    let mut differences = Vec::new();
    for place @ (peer, check) in places {
        let (before, after) = (kept.get(place), now.get(place));
        if before != after && ![before, after].contains(&Some(&UNSETTLED)) {
            let word =
                |verdict: Option<&&str>| verdict.map_or("nothing of its own", |verdict| *verdict).to_owned();
            differences.push(format!("{peer}: {check}: {}, before: {}", word(after), word(before)));
        }
    }
    differences
}

/// Paragraph and check → verdict. The title of each paragraph stands for itself.
fn verdicts_of(record: &str) -> BTreeMap<(&str, &str), &str> {
    let mut peer = "";
    let verdict = |line| {
        let (check, verdict) = str::split_once(line, ' ').unwrap_or((line, ""));
        if check == "=" {
            peer = verdict;
        }
        ((peer, check), verdict)
    };
    record.lines().map(verdict).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_settled_agrees_with_anything() {
        let kept = "= correct run\na pass\nb ~\n= mutant m\na fail C-1 x\nb ~\nc ~\n";
        let now = "= correct run\na pass\nb pass\n= mutant m\na ~\nb fail C-2 y\n";
        assert_eq!(differences(kept, now), Vec::<String>::new());
        assert_eq!(differences(now, kept), Vec::<String>::new());
    }

    #[test]
    fn each_check_that_says_something_else_is_named() {
        let kept = "= correct run\na pass\n= mutant m\na fail C-1 x\n= mutant n\n";
        let now = "= correct run\na open(k)\n= mutant m\nb hang C-1 y\n";
        let expected = [
            "correct run: a: open(k), before: pass",
            "mutant m: a: nothing of its own, before: fail C-1 x",
            "mutant m: b: hang C-1 y, before: nothing of its own",
            "mutant n: =: nothing of its own, before: mutant n",
        ];
        assert_eq!(differences(kept, now), expected);
    }
}
