//! Full check runs of mutants: number of causes that one fault produces, and whether the first one names it.

use std::collections::BTreeSet;
use std::sync::Mutex;

use serde::Serialize;

use super::Workshop;
use super::row::is_at_risk;
use crate::data::blame::HarnessFault;
use crate::data::check::Check;
use crate::drive::peer::Peer;
use crate::drive::reference_peers::Mutant;
use crate::run::causes::{Cause, causes};
use crate::run::runner::{self, Options};
use crate::run::verdict::CheckResult;

/// Mutant after all checks.
#[derive(Debug, Serialize)]
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
    /// True if the first cause names a clause that the mutant breaks.
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

/// Results for several mutants.
#[derive(Debug, Default)]
pub struct Blame {
    /// Mutants with a cause.
    pub rows: Vec<Blamed>,
    /// Mutants that no check notices.
    pub unnoticed: Vec<&'static str>,
    /// Mutants that could not be started, or whose causes do not contain each finding exactly once; with the reason.
    pub problems: Vec<String>,
    /// Number of pairs of mutants with different clauses whose results were merged.
    pub pairs: usize,
    /// Pairs in which one fault is no longer named.
    pub lost: Vec<(&'static str, &'static str)>,
}

impl Blame {
    /// Merges the results of each mutant with those of the next one that breaks other clauses, as if one peer had both
    /// faults. Records the pairs in which one fault is no longer named.
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

/// Merges the findings of two runs of the same checks.
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
    /// Checks each mutant as a user would, inside this process if its fault shows there, otherwise as a process.
    pub fn blame(&self, mutants: &[Mutant], said: &(dyn Fn(String) + Sync)) -> Blame {
        let runs = self.each(1, mutants, |mutant| {
            said(format!("mutant {}", mutant.id));
            self.blamed(mutant)
        });
        let mut blame = Blame::default();
        for (mutant, run) in mutants.iter().zip(runs) {
            let results = match run {
                Ok(results) => results,
                Err(error) => {
                    blame.problems.push(format!("{}: {error}", mutant.id));
                    continue;
                }
            };
            let causes = causes(&results);
            let told: usize = causes.iter().map(Cause::findings).sum();
            let found: usize = results.iter().map(|result| result.findings.len()).sum();
            if told != found {
                blame.problems.push(format!("{}: {found} findings, {told} of them in causes", mutant.id));
            }
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

    /// Results of all checks of a mutant, for the first reference that shows its fault.
    fn blamed(&self, mutant: &Mutant) -> Result<Vec<CheckResult>, HarnessFault> {
        let mut results = Vec::new();
        for reference in self.played.references() {
            if !self.played.plays(&reference, mutant) {
                continue;
            }
            let machine = self.machine_mutant(&reference, mutant).map(|peer| (peer, true));
            let forms = machine.into_iter().map(Ok).chain(
                [()].into_iter().map(|()| self.process_peer(&reference, mutant).map(|peer| (peer, false))),
            );
            for form in forms {
                let (peer, is_inside) = form?;
                results = self.results(&peer, mutant, is_inside);
                if results.iter().any(|result| !result.findings.is_empty()) {
                    return Ok(results);
                }
            }
        }
        Ok(results)
    }

    /// Results of all checks of the commands that a mutant affects, without those that would wait in real time.
    fn results(&self, peer: &Peer, mutant: &Mutant, is_inside: bool) -> Vec<CheckResult> {
        let checks = self.boundary().checks();
        let at_risk = checks.iter().filter(|check| is_at_risk(check, mutant));
        let commands: BTreeSet<&str> = at_risk.map(|check| check.command.as_str()).collect();
        let is_run = |check: &&Check| {
            !(is_inside && check.needs_process)
                && commands.contains(check.command.as_str())
                && peer.commands.contains_key(&check.command)
        };
        let checks: Vec<&Check> = checks.iter().filter(is_run).collect();
        let options =
            Options { slow: is_inside, very_slow: is_inside, jobs: 1, confirm: 1, ..self.options.clone() };
        let results = Mutex::new(Vec::new());
        runner::run(peer, &checks, &options, self.around, &|outcome| {
            results.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(outcome.result);
        });
        results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
