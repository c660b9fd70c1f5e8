//! Whole checks of mutants: how many causes one fault comes to, and whether the first names it.

use std::collections::BTreeSet;
use std::sync::Mutex;

use super::Workshop;
use crate::causes::{Cause, causes};
use crate::check::Check;
use crate::peer::Peer;
use crate::played::{Mutant, Reference};
use crate::runner::{self, Options};
use crate::verdict::CheckResult;

/// One mutant under all checks.
#[derive(Debug)]
pub struct Blamed {
    /// Id of the mutant.
    pub id: &'static str,
    /// Clauses that it breaks.
    pub clauses: &'static [&'static str],
    /// Results of all checks.
    pub results: Vec<CheckResult>,
    /// Causes of all findings.
    pub causes: Vec<Cause>,
}

impl Blamed {
    /// True where the first cause names a clause that the mutant breaks.
    pub fn is_named_first(&self) -> bool {
        self.causes.first().is_some_and(|cause| self.breaks(cause))
    }

    fn breaks(&self, cause: &Cause) -> bool {
        self.clauses.contains(&cause.clause.0.as_str())
    }

    fn is_named_in(&self, causes: &[Cause]) -> bool {
        causes.iter().any(|cause| self.breaks(cause))
    }
}

/// Results of whole checks of mutants.
#[derive(Debug, Default)]
pub struct Blame {
    /// Mutants with a cause.
    pub rows: Vec<Blamed>,
    /// Mutants that no check in this process notices.
    pub unnoticed: Vec<&'static str>,
    /// Number of mutants that only a process shows.
    pub left_out: usize,
    /// Pairs of mutants with different clauses whose results were put together.
    pub pairs: usize,
    /// Pairs of which one fault was not named any more.
    pub lost: Vec<(&'static str, &'static str)>,
}

impl Blame {
    /// Puts the results of each mutant together with those of the next that breaks other clauses, as if one peer had both
    /// faults, and notes the pairs of which both are not named any more.
    fn pair(&mut self) {
        let named: Vec<&Blamed> = self.rows.iter().filter(|row| row.is_named_in(&row.causes)).collect();
        for (at, one) in named.iter().enumerate() {
            let is_other = |other: &&&Blamed| !other.clauses.iter().any(|id| one.clauses.contains(id));
            let Some(other) = named[at + 1..].iter().find(is_other) else { continue };
            let both = causes(&together(&one.results, &other.results));
            self.pairs += 1;
            if !one.is_named_in(&both) || !other.is_named_in(&both) {
                self.lost.push((one.id, other.id));
            }
        }
    }
}

/// The findings of two runs of the same checks.
fn together(one: &[CheckResult], other: &[CheckResult]) -> Vec<CheckResult> {
    let mut all: Vec<CheckResult> = one.to_vec();
    for result in other {
        match all.iter_mut().find(|it| it.id == result.id) {
            Some(same) if same.findings.is_empty() => *same = result.clone(),
            Some(same) => {
                let clauses = result.clauses.iter().filter(|clause| !same.clauses.contains(clause));
                let clauses: Vec<_> = clauses.cloned().collect();
                same.clauses.extend(clauses);
                same.findings.extend(result.findings.iter().cloned());
            }
            None => all.push(result.clone()),
        }
    }
    all
}

impl Workshop<'_> {
    /// Checks each mutant as a user would, inside this process where it can be played there.
    pub fn blame(&self, mutants: &[Mutant], said: &(dyn Fn(String) + Sync)) -> Blame {
        let rows = self.each(1, mutants, |mutant| {
            said(format!("mutant {}", mutant.id));
            self.blamed(mutant)
        });
        let mut blame = Blame::default();
        for (mutant, results) in mutants.iter().zip(rows) {
            let Some(results) = results else {
                blame.left_out += 1;
                continue;
            };
            let causes = causes(&results);
            match causes.is_empty() {
                true => blame.unnoticed.push(mutant.id),
                false => {
                    let (id, clauses) = (mutant.id, mutant.clauses);
                    blame.rows.push(Blamed { id, clauses, results, causes });
                }
            }
        }
        blame.pair();
        blame
    }

    /// The results of all checks of a mutant; `None` where only a process plays it.
    fn blamed(&self, mutant: &Mutant) -> Option<Vec<CheckResult>> {
        let references = self.played.references();
        let mut best: Option<Vec<CheckResult>> = None;
        for reference in references.iter().filter(|reference| self.played.plays(reference, mutant)) {
            let Some(peer) = self.machine_mutant(reference, mutant) else { continue };
            let results = self.results(&peer, reference);
            let shows = results.iter().any(|result| !result.findings.is_empty());
            if shows || best.is_none() {
                best = Some(results);
            }
            if shows {
                break;
            }
        }
        best
    }

    fn results(&self, peer: &Peer, reference: &Reference) -> Vec<CheckResult> {
        let commands: BTreeSet<&str> = reference.commands.iter().map(|(name, _)| *name).collect();
        let checks = self.boundary().checks().iter();
        let checks: Vec<&Check> = checks
            .filter(|check| !check.needs_process && commands.contains(check.command.as_str()))
            .collect();
        let options = Options { slow: true, very_slow: true, jobs: 1, confirm: 1, ..self.options.clone() };
        let results = Mutex::new(Vec::new());
        runner::run(peer, &checks, &options, self.around, &|outcome| {
            results.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(outcome.result);
        });
        results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
