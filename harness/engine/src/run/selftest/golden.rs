//! Golden record: the results of every check for the correct peers and every mutant, as text to keep and compare.
//!
//! The proof produces it at no extra cost. A refactoring changes no line; an intended change of a verdict changes
//! exactly its line.
//!
//! In this process time is virtual, and a line is complete: verdict, clauses and reasons. With a real process, findings
//! about time vary, as do those of checks that measure, wait or watch every conversation. For these the record keeps
//! only the verdict and the mutant's broken clauses, and only if the check noticed the mutant. `~` stands for a verdict
//! that varies between runs or machines, and matches anything.
//!
//! Even so, a run may be lucky or short of processor time. Differences from the record are checked again while nothing
//! else runs, and count only if they show each time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::Workshop;
use super::row::{CheckLines, LOOKS, MutantRow, is_at_risk};
use crate::data::blame::HarnessFault;
use crate::data::check::{Check, Untestable};
use crate::data::finding::{Finding, Nature};
use crate::drive::peer::Peer;
use crate::drive::reference_peers::Mutant;
use crate::run::results::verdicts;
use crate::run::runner::CheckOutcome;
use crate::run::verdict::{CheckResult, Verdict};

/// Mark of a verdict that varies between runs or machines.
const UNSETTLED: &str = "~";
/// Maximum number of mutants, and of checks of a correct peer, that are run again because they differ from the record.
/// Luck affects fewer.
const LOOKED_AT_AGAIN_MAX: usize = 40;
/// Prefix of the title of a mutant's paragraph.
const MUTANT: &str = "mutant ";

/// Golden record of one boundary: a paragraph per correct peer with all checks, then one per mutant with the lines that
/// differ from the correct peers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GoldenRecord {
    /// Title of each paragraph, such as `correct run serve` or `mutant drops-ids`, with its lines.
    peers: Vec<(String, CheckLines)>,
}

/// Line in which a run and the record differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoldenDifference {
    /// Title of the paragraph.
    peer: String,
    /// Id of the check; `None` if the run lacks the whole peer.
    check: Option<String>,
    /// Line of the run; empty if it has none of its own.
    now: String,
    /// Line of the record; empty if it has none of its own.
    before: String,
}

impl fmt::Display for GoldenDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { peer, check, now, before } = self;
        let word =
            |said: &str| if said.is_empty() { "nothing of its own".to_owned() } else { said.to_owned() };
        match check {
            Some(check) => write!(f, "{peer}: {check}: {}, before: {}", word(now), word(before)),
            None => write!(f, "{peer}: in the record, but it does not exist"),
        }
    }
}

impl GoldenRecord {
    /// Parses a record written by `Display`. Ignores lines before the first title.
    pub fn read(text: &str) -> Self {
        let mut record = Self::default();
        for line in text.lines() {
            match (line.split_once(' ').unwrap_or((line, "")), record.peers.last_mut()) {
                (("=", title), _) => record.peers.push((title.to_owned(), CheckLines::new())),
                ((check, verdict), Some((_, said))) => {
                    said.insert(check.to_owned(), verdict.to_owned());
                }
                _ => {}
            }
        }
        record
    }

    /// Record of the results of correct peers, by their commands, and of mutants.
    pub(super) fn new(
        correct: &BTreeMap<String, CheckLines>,
        mutants: &[Mutant],
        rows: &[MutantRow],
    ) -> Self {
        let usual = CorrectLines::of(correct.values());
        let correct =
            correct.iter().map(|(commands, said)| (correct_title(commands), usual.worth(said, false)));
        let mutants = mutants.iter().map(|mutant| {
            let row = rows.iter().find(|row| row.id == mutant.id);
            (mutant_title(mutant.id), row.map(|row| usual.worth(&row.said, true)).unwrap_or_default())
        });
        Self { peers: correct.chain(mutants).collect() }
    }

    /// Paragraph of a mutant.
    pub(super) fn of_mutant(&self, id: &str) -> Option<&CheckLines> {
        self.of(&mutant_title(id))
    }

    fn of(&self, title: &str) -> Option<&CheckLines> {
        self.peers.iter().find(|(name, _)| name == title).map(|(_, said)| said)
    }

    /// `mutant: clause` for each clause of these mutants that no line of the mutant's paragraph names as broken.
    pub fn blind(&self, mutants: &[Mutant]) -> Vec<String> {
        let mut blind = Vec::new();
        for mutant in mutants {
            let said = self.of_mutant(mutant.id);
            let is_seen =
                |clause: &&&str| said.is_some_and(|said| said.values().any(|line| notices(line, clause)));
            let unseen = mutant.clauses.iter().filter(|clause| !is_seen(clause));
            blind.extend(unseen.map(|clause| format!("{}: {clause}", mutant.id)));
        }
        blind
    }

    /// Replaces each differing line by `~`.
    pub fn unsettle(&mut self, differences: &[GoldenDifference]) {
        for GoldenDifference { peer, check, .. } in differences {
            let said = self.peers.iter_mut().find(|(name, _)| name == peer);
            if let Some(((_, said), check)) = said.zip(check.as_ref()) {
                said.insert(check.clone(), UNSETTLED.to_owned());
            }
        }
    }
}

impl fmt::Display for GoldenRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (title, said) in &self.peers {
            writeln!(f, "= {title}")?;
            for (check, verdict) in said {
                writeln!(f, "{check} {verdict}")?;
            }
        }
        Ok(())
    }
}

fn correct_title(commands: &str) -> String {
    format!("correct {commands}")
}

fn mutant_title(id: &str) -> String {
    format!("{MUTANT}{id}")
}

/// Lines of the correct peers. A mutant's line that equals one of them is not its own.
struct CorrectLines<'a>(BTreeSet<(&'a String, &'a String)>);

impl<'a> CorrectLines<'a> {
    fn of(peers: impl Iterator<Item = &'a CheckLines>) -> Self {
        Self(peers.flatten().collect())
    }

    /// Lines of `said` that belong in the record; for a mutant only its own.
    fn worth(&self, said: &CheckLines, of_mutant: bool) -> CheckLines {
        let is_own = |line: &(&String, &String)| !of_mutant || !self.0.contains(line);
        let is_worth = |line: &(&String, &String)| !line.1.is_empty() && is_own(line);
        said.iter().filter(is_worth).map(|(check, line)| (check.clone(), line.clone())).collect()
    }

    /// Lines in which `now` and `before` differ. A check that did not run is ignored if `may_be_left` allows it.
    fn differences(
        &self,
        peer: &str,
        before: &CheckLines,
        now: &CheckLines,
        may_be_left: impl Fn(&str) -> bool,
    ) -> Vec<GoldenDifference> {
        let of_mutant = peer.starts_with(MUTANT);
        let own = self.worth(now, of_mutant);
        let before_own = self.worth(before, of_mutant);
        let checks: BTreeSet<&String> = own.keys().chain(before_own.keys()).collect();
        let unsettled = UNSETTLED.to_owned();
        // A line unsettled for the correct peers, too, is not repeated for a mutant.
        let line = |said: &CheckLines, check: &String| match said.get(check) {
            None if self.0.contains(&(check, &unsettled)) => unsettled.clone(),
            line => line.cloned().unwrap_or_default(),
        };
        let differences = checks.into_iter().filter(|check| now.contains_key(*check) || !may_be_left(check));
        let differences = differences.map(|check| GoldenDifference {
            peer: peer.to_owned(),
            check: Some(check.clone()),
            now: line(&own, check),
            before: line(&before_own, check),
        });
        let is_settled = |it: &GoldenDifference| ![&it.now, &it.before].iter().any(|line| *line == UNSETTLED);
        differences.filter(|it| it.now != it.before && is_settled(it)).collect()
    }
}

impl Workshop<'_> {
    /// Records the line of a check about a peer that breaks these clauses. Of several attempts, the one that noticed
    /// counts.
    pub(super) fn hear(&self, said: &mut CheckLines, peer: &Peer, outcome: &CheckOutcome, broken: &[&str]) {
        let result = &outcome.result;
        let check = self.boundary().checks().iter().find(|check| check.id == result.id);
        let line = match peer.is_process() {
            true => about_process(check.is_none_or(depends_on_timing), result, broken),
            false => about_machine(result).unwrap_or_else(|| whole(result)),
        };
        if said.get(&result.id).is_none_or(|before| !is_failure(before)) {
            said.insert(result.id.clone(), line);
        }
    }

    /// Lines in which the proof and the kept record differ.
    ///
    /// # Errors
    /// Fails if a mutant cannot be started.
    pub(super) fn differences(
        &self,
        kept: &GoldenRecord,
        correct: &BTreeMap<String, CheckLines>,
        mutants: &[Mutant],
        rows: &[MutantRow],
        said: &(dyn Fn(String) + Sync),
    ) -> Result<Vec<GoldenDifference>, HarnessFault> {
        let kept_correct = kept.peers.iter().filter(|(title, _)| !title.starts_with(MUTANT));
        let usual = CorrectLines::of(correct.values().chain(kept_correct.map(|(_, said)| said)));
        let mut differences = self.gone(kept, correct);
        let nothing = CheckLines::new();
        for (commands, now) in correct {
            let title = correct_title(commands);
            let before = kept.of(&title).unwrap_or(&nothing);
            let mut found = usual.differences(&title, before, now, |_| false);
            for _ in 1..LOOKS {
                if found.is_empty() || found.len() > LOOKED_AT_AGAIN_MAX {
                    break;
                }
                let is_found = |check: &&Check| found.iter().any(|it| it.check.as_ref() == Some(&check.id));
                let checks: Vec<&Check> = self.boundary().checks().iter().filter(is_found).collect();
                let again = self.usual(commands, &checks)?;
                let still = usual.differences(&title, before, &again, |_| false);
                found.retain(|one| still.iter().any(|other| other.check == one.check));
            }
            differences.extend(found);
        }
        let mut doubted = Vec::new();
        for row in rows.iter().filter(|row| !row.is_known) {
            let Some(mutant) = mutants.iter().find(|mutant| mutant.id == row.id) else { continue };
            let before = kept.of_mutant(mutant.id).unwrap_or(&nothing);
            let found = self.differences_of(mutant, row, before, &usual);
            if !found.is_empty() {
                doubted.push((mutant, row.looked_outside, before, found));
            }
        }
        let is_luck = doubted.iter().filter(|doubt| doubt.1).count() <= LOOKED_AT_AGAIN_MAX;
        for (mutant, looked_outside, before, mut found) in doubted {
            let looks = if is_luck && looked_outside { LOOKS } else { 1 };
            for _ in 1..looks {
                if found.is_empty() || self.is_interrupted() {
                    break;
                }
                said(format!("mutant {} again", mutant.id));
                let mut again = MutantRow::new(mutant);
                self.look(mutant, &mut again)?;
                let still = self.differences_of(mutant, &again, before, &usual);
                found.retain(|one| still.iter().any(|other| other.check == one.check));
            }
            differences.extend(found);
        }
        Ok(differences)
    }

    /// Peers of the record that no longer exist.
    fn gone(&self, kept: &GoldenRecord, correct: &BTreeMap<String, CheckLines>) -> Vec<GoldenDifference> {
        let mutants = self.played.mutants();
        let is_gone = |title: &&String| match title.strip_prefix(MUTANT) {
            Some(id) => !mutants.iter().any(|mutant| mutant.id == id),
            None => !correct.is_empty() && !correct.keys().any(|it| correct_title(it) == **title),
        };
        let titles = kept.peers.iter().map(|(title, _)| title);
        let gone = titles.filter(is_gone).map(|title| GoldenDifference {
            peer: title.clone(),
            check: None,
            now: String::new(),
            before: String::new(),
        });
        gone.collect()
    }

    /// Lines about one mutant in which the proof and the record differ.
    fn differences_of(
        &self,
        mutant: &Mutant,
        row: &MutantRow,
        before: &CheckLines,
        usual: &CorrectLines<'_>,
    ) -> Vec<GoldenDifference> {
        // Other checks decide if a process is used at all.
        let may_be_left = |check: &str| {
            let mut checks = self.boundary().checks().iter();
            row.looked_outside && checks.any(|it| it.id == check && is_at_risk(it, mutant))
        };
        usual.differences(&mutant_title(mutant.id), before, &row.said, may_be_left)
    }
}

/// True if a check's result about a process depends on the moment and on other load.
fn depends_on_timing(check: &Check) -> bool {
    check.exclusive || check.waits || check.slow || check.ambient
}

/// True if another run may reach another verdict about a process: because of time, of short-lived leftovers, or because
/// nothing was decided.
fn is_unsettled(result: &CheckResult) -> bool {
    let is_lucky = |finding: &Finding| finding.is_of_time() || finding.nature == Nature::Leak;
    match &result.verdict {
        Verdict::Masked(_) | Verdict::Flaky(_) | Verdict::HarnessError(_) => true,
        Verdict::Untestable(why) if why.code == Untestable::TOO_BUSY => true,
        _ => result.findings.iter().any(is_lucky),
    }
}

/// Complete line of a check.
fn whole(result: &CheckResult) -> String {
    let line = verdicts::line(result);
    line.strip_prefix(&result.id).unwrap_or(&line).trim_start().to_owned()
}

/// Line of a check that this machine could not decide.
fn about_machine(result: &CheckResult) -> Option<String> {
    let of_machine = result.verdict.is_untestable(Untestable::MACHINE);
    of_machine.then(|| UNSETTLED.to_owned())
}

/// Line of a check about a process that breaks these clauses.
fn about_process(depends_on_timing: bool, result: &CheckResult, broken: &[&str]) -> String {
    if let Some(line) = about_machine(result) {
        return line;
    }
    if !depends_on_timing && !is_unsettled(result) {
        return whole(result);
    }
    let named = |clause: &&&str| result.findings.iter().any(|finding| finding.clause.0 == **clause);
    let mut noticed: Vec<&str> = broken.iter().filter(named).copied().collect();
    noticed.sort_unstable();
    match (result.verdict.is_failure() && !noticed.is_empty(), depends_on_timing) {
        (true, _) => format!("{} {}", result.verdict.word(), noticed.join(" ")),
        (false, true) => String::new(),
        (false, false) => UNSETTLED.to_owned(),
    }
}

fn is_failure(line: &str) -> bool {
    let word = line.split(' ').next();
    [Verdict::Fail, Verdict::Crash, Verdict::Hang, Verdict::Leak].iter().any(|it| word == Some(it.word()))
}

/// True if a line says that this clause is broken.
pub(super) fn notices(line: &str, clause: &str) -> bool {
    is_failure(line) && line.split(' ').skip(1).any(|word| word == clause)
}

/// True if `now` names each of these clauses that `before` does, with the same reason if both give one.
pub(super) fn notices_the_same(before: &str, now: &str, broken: &[&str]) -> bool {
    let (before, now) = (noticed(before, broken), noticed(now, broken));
    before.iter().all(|(clause, reason)| {
        now.get(clause).is_some_and(|other| other.is_none() || reason.is_none() || other == reason)
    })
}

/// Clauses that a line names as broken, each with its reason if the line has one.
fn noticed<'a>(line: &'a str, broken: &[&str]) -> BTreeMap<&'a str, Option<&'a str>> {
    let words: Vec<&str> = line.split(' ').skip(1).collect();
    let is_reason = |word: &&str| word.starts_with(|first: char| first.is_ascii_lowercase());
    let clauses = words.iter().enumerate().filter(|(_, word)| is_failure(line) && broken.contains(word));
    clauses.map(|(at, word)| (*word, words.get(at + 1).copied().filter(is_reason))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn differences(before: &str, now: &str) -> Vec<String> {
        let [before, now] = [before, now].map(GoldenRecord::read);
        let usual = CorrectLines::of(before.peers.iter().take(1).map(|(_, said)| said));
        let mut differences = Vec::new();
        for (title, said) in &now.peers {
            let before = before.of(title).cloned().unwrap_or_default();
            differences.extend(usual.differences(title, &before, said, |check| check == "slow"));
        }
        differences.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_not_settled_agrees_with_anything() {
        let kept = "= correct run\na pass\nb ~\n= mutant m\na fail C-1 x\nb ~\nc ~\n";
        let now = "= correct run\na pass\nb pass\n= mutant m\na ~\nb fail C-2 y\n";
        assert_eq!(differences(kept, now), Vec::<String>::new());
        assert_eq!(differences(now, kept), Vec::<String>::new());
    }

    #[test]
    fn each_check_that_says_something_else_is_named() {
        let kept = "= correct run\na pass\n= mutant m\na fail C-1 x\nslow hang C-1\n";
        let now = "= correct run\na open(k)\n= mutant m\na pass\nb hang C-1 y\n";
        let expected = [
            "correct run: a: open(k), before: pass",
            "mutant m: a: nothing of its own, before: fail C-1 x",
            "mutant m: b: hang C-1 y, before: nothing of its own",
        ];
        assert_eq!(differences(kept, now), expected);
    }

    #[test]
    fn a_check_that_was_run_and_did_not_notice_differs_from_one_that_was_not_run() {
        let kept = "= correct run\n= mutant m\nslow hang C-1\n";
        assert_eq!(differences(kept, "= mutant m\n"), Vec::<String>::new());
        let ran = "= mutant m\nslow \n";
        assert_eq!(differences(kept, ran), ["mutant m: slow: nothing of its own, before: hang C-1"]);
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let text = "= correct run\na open(k, inferred)\n= mutant m\n= mutant n\na fail C-1 x C-2 y\nb ~\n";
        let mut record = GoldenRecord::read(text);
        assert_eq!(record.to_string(), text);
        let differing = GoldenDifference {
            peer: "mutant n".to_owned(),
            check: Some("a".to_owned()),
            now: "pass".to_owned(),
            before: "fail C-1 x C-2 y".to_owned(),
        };
        record.unsettle(&[differing]);
        assert!(record.to_string().ends_with("= mutant n\na ~\nb ~\n"));
    }

    #[test]
    fn a_line_that_names_another_clause_or_reason_does_not_notice_the_same() {
        let same = |before, now| notices_the_same(before, now, &["C-1", "C-3"]);
        assert!(same("fail C-1 x", "fail C-1 x C-2 y C-3 z"));
        assert!(same("fail C-1 x C-2 y", "crash C-1 x"));
        assert!(same("hang C-1 C-3", "fail C-1 x C-3 y"));
        for now in ["pass", "~", "", "fail C-3 x", "fail C-1 y", "masked(C-1 x)"] {
            assert!(!same("fail C-1 x", now), "{now}");
        }
        assert!(notices("leak C-1", "C-1") && !notices("leak C-12", "C-1") && !notices("open(C-1)", "C-1"));
    }
}
