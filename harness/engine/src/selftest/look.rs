//! Mutants against the checks of the clauses that they break.

use std::collections::{BTreeMap, BTreeSet};

use super::golden::{self, Said};
use super::{Proof, Workshop};
use crate::blame::HarnessFault;
use crate::check::{Check, Untestable};
use crate::peer::Peer;
use crate::played::{Mutant, Reference};
use crate::runner::Outcome;

/// Most looks at a mutant, or at a check that noticed none, where processes are in play.
pub(super) const LOOKS: u32 = 3;
/// Threads for work that waits most of its time, as a multiple of the jobs.
pub(super) const WAITERS_PER_JOB: usize = 4;

/// One mutant and what the checks said.
#[derive(Debug)]
pub struct MutantRow {
    /// Its id.
    pub id: &'static str,
    /// For each clause that it breaks, the checks that noticed.
    pub killers: BTreeMap<&'static str, Vec<String>>,
    /// Clauses of which a check said that this machine cannot show whether they are held.
    pub untestable: BTreeSet<&'static str>,
    /// Number of checks that were run against it.
    pub checks_run: usize,
    /// How often it was looked at: more than once where processes are in play and the first look left a clause.
    pub looks: u32,
    /// The checks that noticed it when the golden record was written said the same again, and no others were run.
    pub is_known: bool,
    /// A look took it for a process.
    pub(super) looked_outside: bool,
    /// Lines for the golden record.
    pub(super) said: Said,
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
            said: Said::new(),
        }
    }

    fn is_noticed(&self, mutant: &Mutant) -> bool {
        mutant.clauses.iter().all(|clause| self.killers.contains_key(clause))
    }

    /// Enters a check that noticed the mutant: one that lists a clause which the mutant breaks, and says it is broken.
    fn note(&mut self, outcome: &Outcome, mutant: &Mutant) {
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

pub(super) fn arguments(mutant: &Mutant) -> Vec<String> {
    vec!["--mutant".to_owned(), mutant.id.to_owned()]
}

pub(super) fn is_at_risk(check: &Check, mutant: &Mutant) -> bool {
    check.clauses.iter().any(|id| mutant.clauses.contains(&id.0.as_str()))
}

impl Workshop<'_> {
    /// Every mutant against the checks of the clauses that it breaks. Where `known`, the golden record, has checks that
    /// noticed a mutant, those come first, and the others only where they say something else than it has of them.
    pub(super) fn rows(
        &self,
        mutants: &[Mutant],
        known: Option<&golden::Record>,
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

    /// A mutant that can be noticed is noticed, though the machine may be too busy to show a race at the first look.
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

    /// Runs the checks of the mutant's clauses, the quick ones first.
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
            // A process is needed where a check observes one, or where nothing inside noticed.
            if !outside.is_empty() && !row.is_noticed(mutant) {
                row.looked_outside = true;
                let peer = self.process_peer(reference, mutant)?;
                let (slow, quick): (Vec<&Check>, Vec<&Check>) = outside
                    .into_iter()
                    .filter(|check| peer.commands.contains_key(&check.command))
                    .partition(|check| check.slow);
                self.run_against(&peer, &quick, false, mutant, row);
                // Real time is spent only where nothing else can notice.
                if !row.is_noticed(mutant) {
                    self.run_against(&peer, &slow, true, mutant, row);
                }
            }
        }
        Ok(())
    }

    /// Runs the cheapest of the checks that noticed a mutant when the golden record was written. `None` where they leave a
    /// clause, or say something else than `kept` has of them: then all checks have to tell.
    fn known_row(&self, mutant: &Mutant, kept: &Said) -> Result<Option<MutantRow>, HarnessFault> {
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
            let line = |said: &Said| said.get(&check.id).cloned().unwrap_or_default();
            golden::notices_the_same(&line(kept), &line(&row.said), mutant.clauses)
        };
        Ok((row.is_noticed(mutant) && killers.iter().all(says_the_same)).then_some(row))
    }

    /// A check of this reference for each clause that a mutant breaks, the cheapest that noticed it by the golden record.
    fn known_killers(&self, mutant: &Mutant, of: &Reference, kept: &Said) -> Option<Vec<&Check>> {
        let notices =
            |check: &Check, clause| kept.get(&check.id).is_some_and(|it| golden::notices(it, clause));
        let commands: Vec<&str> = of.commands.iter().map(|(name, _)| *name).collect();
        // One that watches every conversation may have been told by another check's.
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

    /// Runs checks against a mutant once and enters what they say.
    fn run_against(&self, peer: &Peer, checks: &[&Check], slow: bool, mutant: &Mutant, row: &mut MutantRow) {
        self.run(peer, checks, slow, 1, &mut |outcome| {
            self.hear(&mut row.said, peer, &outcome, mutant.clauses);
            row.note(&outcome, mutant);
        });
    }

    /// A mutant inside this process, where its fault shows there.
    pub(super) fn machine_mutant(&self, reference: &Reference, mutant: &Mutant) -> Option<Peer> {
        match mutant.needs_process {
            true => None,
            false => self.machine_peer(reference, &arguments(mutant), None, mutant.unclaimed),
        }
    }

    /// A mutant as a process.
    pub(super) fn process_peer(&self, reference: &Reference, mutant: &Mutant) -> Result<Peer, HarnessFault> {
        let mut peer = (self.process)(reference, &arguments(mutant))?;
        peer.facts.features.retain(|feature, _| Some(feature.as_str()) != mutant.unclaimed);
        Ok(peer)
    }

    /// Checks that need a process were not run where something cheaper had noticed the mutant. Those that noticed none
    /// so far are tried on their own.
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
        let reasons = self.boundary().redundant_checks();
        let found = self.each(WAITERS_PER_JOB, &left, |check| {
            said(format!("check {}", check.id));
            let looks = if reasons.iter().any(|(id, _)| *id == check.id) { 1 } else { LOOKS };
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

/// Ids of the checks that noticed a mutant.
pub(super) fn all_killers(rows: &[MutantRow]) -> BTreeSet<String> {
    rows.iter().flat_map(|row| row.killers.values().flatten().cloned()).collect()
}
