//! Result of a mutant.

use std::collections::{BTreeMap, BTreeSet};

use crate::data::check::{Check, Untestable};
use crate::drive::reference_peers::Mutant;
use crate::run::runner::CheckOutcome;

/// Maximum number of attempts at a mutant, or a check that noticed none, with processes.
pub(super) const LOOKS: u32 = 3;

/// Verdicts about one peer by check id, each in the form of [`crate::run::results::verdicts::line`] without the id. Empty if the check ran
/// but the record has nothing to say.
pub(super) type CheckLines = BTreeMap<String, String>;

/// Mutant with the results of its checks.
#[derive(Debug)]
pub struct MutantRow {
    /// Id of the mutant.
    pub id: &'static str,
    /// Checks that noticed it, by broken clause.
    pub killers: BTreeMap<&'static str, Vec<String>>,
    /// Clauses that this machine cannot decide, according to a check.
    pub untestable: BTreeSet<&'static str>,
    /// Number of checks run against it.
    pub checks_run: usize,
    /// Number of attempts: more than one if processes are involved and the first attempt missed a clause.
    pub looks: u32,
    /// Set if the checks known from the golden record confirmed it and no others were run.
    pub is_known: bool,
    /// Set if it was run as a process.
    pub(super) looked_outside: bool,
    /// Lines for the golden record.
    pub(super) said: CheckLines,
}

impl MutantRow {
    pub(super) fn new(mutant: &Mutant) -> Self {
        Self {
            id: mutant.id,
            killers: BTreeMap::new(),
            untestable: BTreeSet::new(),
            checks_run: 0,
            looks: 0,
            is_known: false,
            looked_outside: false,
            said: CheckLines::new(),
        }
    }

    pub(super) fn is_noticed(&self, mutant: &Mutant) -> bool {
        mutant.clauses.iter().all(|clause| self.killers.contains_key(clause))
    }

    /// Records a check that noticed the mutant: it lists a clause that the mutant breaks and reports it broken.
    pub(super) fn note(&mut self, outcome: &CheckOutcome, mutant: &Mutant) {
        self.checks_run += 1;
        let verdict = &outcome.result.verdict;
        let of_machine = verdict.is_untestable(Untestable::MACHINE);
        if !verdict.is_failure() && !of_machine {
            return;
        }
        for clause in mutant.clauses {
            let listed = outcome.result.clauses.iter().any(|listed| listed.id.0 == *clause);
            if listed && of_machine {
                self.untestable.insert(clause);
            }
            let found = outcome.result.findings.iter().any(|finding| finding.clause.0 == *clause);
            let killers = self.killers.get(clause).map_or(&[][..], Vec::as_slice);
            if listed && found && !killers.contains(&outcome.result.id) {
                self.killers.entry(clause).or_default().push(outcome.result.id.clone());
            }
        }
    }
}

pub(super) fn is_at_risk(check: &Check, mutant: &Mutant) -> bool {
    check.clauses.iter().any(|id| mutant.clauses.contains(&id.0.as_str()))
}
