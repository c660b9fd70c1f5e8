//! Mutants against the checks of the clauses they break.

use std::collections::BTreeSet;

use super::golden;
use super::row::{CheckLines, LOOKS, MutantRow, is_at_risk};
use super::{Proof, Workshop};
use crate::data::blame::HarnessFault;
use crate::data::check::Check;
use crate::drive::peer::Peer;
use crate::drive::reference_peers::{Mutant, Reference};

/// Threads per job for work that mostly waits.
pub(super) const WAITERS_PER_JOB: usize = 4;

pub(super) fn arguments(mutant: &Mutant) -> Vec<String> {
    vec!["--mutant".to_owned(), mutant.id.to_owned()]
}

impl Workshop<'_> {
    /// Runs each mutant against the checks of its clauses. With a golden record `known`, runs the checks that noticed
    /// it first, and others only if those differ from the record.
    pub(super) fn rows(
        &self,
        mutants: &[Mutant],
        known: Option<&golden::GoldenRecord>,
        threads_per_job: usize,
        said: &(dyn Fn(String) + Sync),
    ) -> Vec<Result<MutantRow, HarnessFault>> {
        self.each(threads_per_job, mutants, |mutant| {
            said(format!("mutant {}", mutant.id));
            if let Some(kept) = known.and_then(|record| record.of_mutant(mutant.id))
                && let Some(row) = self.known_row(mutant, kept)?
            {
                return Ok(row);
            }
            self.row(mutant)
        })
    }

    /// Repeats attempts at a mutant, because a busy machine may not show a race at the first one.
    fn row(&self, mutant: &Mutant) -> Result<MutantRow, HarnessFault> {
        let mut row = MutantRow::new(mutant);
        while row.looks < LOOKS && !row.is_noticed(mutant) {
            self.look(mutant, &mut row)?;
            if !row.looked_outside {
                break;
            }
        }
        Ok(row)
    }

    /// Runs the checks of the mutant's clauses, quick ones first.
    pub(super) fn look(&self, mutant: &Mutant, row: &mut MutantRow) -> Result<(), HarnessFault> {
        row.looks += 1;
        let references = self.played.references();
        for reference in references.iter().filter(|reference| self.played.plays(reference, mutant)) {
            let checks: Vec<&Check> =
                self.boundary().checks().iter().filter(|check| is_at_risk(check, mutant)).collect();
            let machine = self.machine_mutant(reference, mutant);
            let (inside, outside): (Vec<&Check>, Vec<&Check>) =
                checks.into_iter().partition(|check| machine.is_some() && !check.needs_process);
            if let Some(peer) = machine {
                self.run_against(&peer, &inside, true, mutant, row);
            }
            // A process is needed if a check observes one, or if no in-process check noticed.
            if !outside.is_empty() && !row.is_noticed(mutant) {
                row.looked_outside = true;
                let peer = self.process_peer(reference, mutant)?;
                let (slow, quick): (Vec<&Check>, Vec<&Check>) = outside
                    .into_iter()
                    .filter(|check| peer.commands.contains_key(&check.command))
                    .partition(|check| check.slow);
                self.run_against(&peer, &quick, false, mutant, row);
                // Spend real time only if nothing else noticed.
                if !row.is_noticed(mutant) {
                    self.run_against(&peer, &slow, true, mutant, row);
                }
            }
        }
        Ok(())
    }

    /// Runs the cheapest checks that noticed a mutant according to the golden record. `None` if they miss a clause or
    /// differ from `kept`: then all checks must run.
    fn known_row(&self, mutant: &Mutant, kept: &CheckLines) -> Result<Option<MutantRow>, HarnessFault> {
        let references = self.played.references();
        let mut played = references.iter().filter(|reference| self.played.plays(reference, mutant));
        let found = played.find_map(|of| Some((of, self.known_killers(mutant, of, kept)?)));
        let Some((reference, killers)) = found else { return Ok(None) };
        let mut row = MutantRow { looks: 1, is_known: true, ..MutantRow::new(mutant) };
        let machine = self.machine_mutant(reference, mutant);
        let (inside, outside): (Vec<&Check>, Vec<&Check>) =
            killers.iter().copied().partition(|check| machine.is_some() && !check.needs_process);
        if let Some(peer) = machine.filter(|_| !inside.is_empty()) {
            self.run_against(&peer, &inside, true, mutant, &mut row);
        }
        if !outside.is_empty() {
            self.run_against(&self.process_peer(reference, mutant)?, &outside, true, mutant, &mut row);
        }
        let says_the_same = |check: &&Check| {
            let line = |said: &CheckLines| said.get(&check.id).cloned().unwrap_or_default();
            golden::notices_the_same(&line(kept), &line(&row.said), mutant.clauses)
        };
        Ok((row.is_noticed(mutant) && killers.iter().all(says_the_same)).then_some(row))
    }

    /// For each clause of a mutant, the cheapest check of this reference that noticed it according to the golden
    /// record.
    fn known_killers(&self, mutant: &Mutant, of: &Reference, kept: &CheckLines) -> Option<Vec<&Check>> {
        let notices =
            |check: &Check, clause| kept.get(&check.id).is_some_and(|it| golden::notices(it, clause));
        let commands: Vec<&str> = of.commands.iter().map(|(name, _)| *name).collect();
        // An ambient check may have its finding from another check.
        let cost =
            |check: &&Check| (check.needs_process, check.slow, check.ambient, check.waits || check.exclusive);
        let mut killers: Vec<&Check> = Vec::new();
        for clause in mutant.clauses {
            if !killers.iter().any(|check| notices(check, clause)) {
                let checks = self.boundary().checks().iter().filter(|check| {
                    commands.contains(&check.command.as_str())
                        && is_at_risk(check, mutant)
                        && notices(check, clause)
                });
                killers.push(checks.min_by_key(cost)?);
            }
        }
        Some(killers)
    }

    /// Runs checks against a mutant once and records the results.
    fn run_against(&self, peer: &Peer, checks: &[&Check], slow: bool, mutant: &Mutant, row: &mut MutantRow) {
        self.run(peer, checks, slow, 1, &mut |outcome| {
            self.hear(&mut row.said, peer, &outcome, mutant.clauses);
            row.note(&outcome, mutant);
        });
    }

    /// Mutant inside this process; `None` if its fault shows only in a real process.
    pub(super) fn machine_mutant(&self, reference: &Reference, mutant: &Mutant) -> Option<Peer> {
        match mutant.needs_process {
            true => None,
            false => self.machine_peer(reference, &arguments(mutant), None, mutant.unclaimed),
        }
    }

    /// Mutant as a process.
    pub(super) fn process_peer(&self, reference: &Reference, mutant: &Mutant) -> Result<Peer, HarnessFault> {
        let mut peer = (self.process)(reference, &arguments(mutant))?;
        peer.facts.features.retain(|feature, _| Some(feature.as_str()) != mutant.unclaimed);
        Ok(peer)
    }

    /// Runs checks that need a process and have noticed no mutant so far. They were skipped if a cheaper check had
    /// noticed.
    pub(super) fn second_chance(
        &self,
        mutants: &[Mutant],
        proof: &mut Proof,
        said: &(dyn Fn(String) + Sync),
    ) {
        let killers = all_killers(&proof.rows);
        let left: Vec<&Check> = self
            .boundary()
            .checks()
            .iter()
            .filter(|check| check.needs_process && !check.slow && !killers.contains(&check.id))
            .collect();
        let description = self.boundary().description();
        let found = self.each(WAITERS_PER_JOB, &left, |check| {
            said(format!("check {}", check.id));
            let looks = if description.reasons_to_keep().any(|(id, _)| *id == check.id) { 1 } else { LOOKS };
            let references = self.played.references();
            for mutant in mutants.iter().filter(|mutant| is_at_risk(check, mutant)) {
                let reference = references.iter().find(|reference| {
                    self.played.plays(reference, mutant)
                        && reference.commands.iter().any(|(name, _)| *name == check.command)
                });
                let Some(peer) = reference.and_then(|of| self.process_peer(of, mutant).ok()) else {
                    continue;
                };
                let mut row = MutantRow::new(mutant);
                for _ in 0..looks {
                    self.run(&peer, &[*check], false, 1, &mut |outcome| row.note(&outcome, mutant));
                    if !row.killers.is_empty() {
                        return Some(row);
                    }
                }
            }
            None
        });
        for found in found.into_iter().flatten() {
            if let Some(row) = proof.rows.iter_mut().find(|row| row.id == found.id) {
                for (clause, checks) in found.killers {
                    row.killers.entry(clause).or_default().extend(checks);
                }
            }
        }
    }
}

/// Ids of all checks that noticed a mutant.
pub(super) fn all_killers(rows: &[MutantRow]) -> BTreeSet<String> {
    rows.iter().flat_map(|row| row.killers.values().flatten().cloned()).collect()
}
