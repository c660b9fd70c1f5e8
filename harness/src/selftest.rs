//! The suite proves itself: the correct reference stays clean under every allowed choice and every harmless
//! presentation, every mutant is noticed by a check of each clause it breaks, and null peers prove nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;

use crate::boundary::{Boundary, Mutant, Reference};
use crate::check::Check;
use crate::clause::{Clause, ClauseId, Level};
use crate::finding::Finding;
use crate::peer::{Origin, Peer};
use crate::runner::{self, Options, Outcome, Surroundings};

pub mod null_peers;
pub mod presentation;

/// Makes a reference peer that runs as a process, with further arguments.
pub type MakePeer<'a> = dyn Fn(&Reference, &[String]) -> Result<Peer, String> + Sync + 'a;

/// What starts reference peers: as child processes and inside this process.
#[derive(Clone, Copy)]
pub struct Workshop<'a> {
    /// The boundary that is proved.
    pub boundary: &'static dyn Boundary,
    /// A reference peer as a process: side and arguments beyond the usual ones.
    pub process: &'a MakePeer<'a>,
    /// How runs are done.
    pub options: &'a Options,
    /// This machine's resources.
    pub around: Surroundings<'a>,
}

/// The line that `selftest --format json` ends with.
#[derive(Debug, Default, Serialize)]
pub struct Summary {
    /// Number of mutants.
    pub mutants: usize,
    /// Mutants that a check of each of their clauses noticed.
    pub killed: usize,
    /// `mutant: clause` for what no check noticed.
    pub survivors: Vec<String>,
    /// Number of checks.
    pub checks: usize,
    /// Checks that no mutant of their clauses fails.
    pub redundant: Vec<String>,
    /// Number of findings against correct peers.
    pub false_positives: usize,
    /// MUST clauses that can be observed.
    pub clauses_must: usize,
    /// Those of them that a mutant breaks and a check notices.
    pub clauses_must_proved: usize,
}

/// One mutant and what the checks said.
#[derive(Debug)]
pub struct MutantRow {
    /// Its id.
    pub id: &'static str,
    /// For each clause that it breaks, the checks that noticed.
    pub killers: BTreeMap<&'static str, Vec<String>>,
    /// Number of checks that were run against it.
    pub checks_run: usize,
}

/// A correct peer that a check complained about.
#[derive(Debug)]
pub struct FalsePositive {
    /// How the correct peer was presented.
    pub variant: String,
    /// The check.
    pub check: String,
    /// What it said.
    pub finding: Finding,
}

/// Everything that came out.
#[derive(Debug, Default)]
pub struct Proof {
    /// The closing line.
    pub summary: Summary,
    /// The kill matrix.
    pub rows: Vec<MutantRow>,
    /// Complaints about correct peers.
    pub false_positives: Vec<FalsePositive>,
    /// MUST clauses that no mutant proves.
    pub unproved: Vec<ClauseId>,
    /// Null peers that passed something: name and check.
    pub false_greens: Vec<(String, String)>,
    /// Variants of the correct peer that were tried.
    pub variants: usize,
    /// Null peers that were tried.
    pub null_peers: usize,
    /// What could not be run at all.
    pub problems: Vec<String>,
}

impl Proof {
    /// Whether every gate holds.
    pub fn holds(&self) -> bool {
        self.summary.survivors.is_empty()
            && self.false_positives.is_empty()
            && self.unproved.is_empty()
            && self.false_greens.is_empty()
            && self.problems.is_empty()
    }
}

impl Workshop<'_> {
    /// Proves the whole suite. `said` is told what is being done, one short phrase at a time.
    pub fn prove(&self, only: &dyn Fn(&str) -> bool, said: &(dyn Fn(String) + Sync)) -> Proof {
        let mut proof = Proof::default();
        let mutants: Vec<Mutant> =
            self.boundary.mutants().into_iter().filter(|mutant| only(mutant.id)).collect();
        self.correct(&mut proof, said);
        self.mutants(&mutants, &mut proof, said);
        null_peers::prove(self, &mut proof, said);
        self.summarise(&mutants, &mut proof);
        proof
    }

    /// Every variant of the correct peer against every check that can run in this process; then once as processes.
    fn correct(&self, proof: &mut Proof, said: &(dyn Fn(String) + Sync)) {
        let mut variants: Vec<(String, Vec<String>, Option<presentation::Harmless>)> =
            vec![("plain".to_owned(), Vec::new(), None)];
        for key in self.boundary.config_keys().iter().filter(|key| key.table == "choices") {
            for value in key.values {
                let choice = format!("{}={value}", key.name);
                variants.push((choice.clone(), vec!["--choice".to_owned(), choice], None));
            }
        }
        for how in presentation::Harmless::ALL {
            variants.push((format!("presented as {}", how.name()), Vec::new(), Some(how)));
        }
        proof.variants = variants.len();
        let checks: Vec<&Check> =
            self.boundary.checks().iter().filter(|check| !check.needs_process).collect();
        let found = self.each(&variants, |(name, extra, how)| {
            said(format!("correct peer: {name}"));
            let mut found = Vec::new();
            for reference in self.boundary.references() {
                let Some(peer) = self.machine_peer(&reference, extra, *how) else { continue };
                self.run(&peer, &checks, true, &mut |outcome| {
                    for finding in outcome.result.findings {
                        let check = outcome.result.id.clone();
                        found.push(FalsePositive { variant: name.clone(), check, finding });
                    }
                });
            }
            found
        });
        proof.false_positives.extend(found.into_iter().flatten());
        said("correct peer: as a process".to_owned());
        for reference in self.boundary.references() {
            let peer = match (self.process)(&reference, &[]) {
                Ok(peer) => peer,
                Err(error) => {
                    proof.problems.push(error);
                    continue;
                }
            };
            let checks: Vec<&Check> = self
                .boundary
                .checks()
                .iter()
                .filter(|check| check.needs_process && peer.commands.contains_key(&check.command))
                .collect();
            let false_positives = &mut proof.false_positives;
            self.run(&peer, &checks, false, &mut |outcome| {
                for finding in outcome.result.findings {
                    let check = outcome.result.id.clone();
                    false_positives.push(FalsePositive { variant: "process".to_owned(), check, finding });
                }
            });
        }
    }

    /// Every mutant against the checks of the clauses that it breaks.
    fn mutants(&self, mutants: &[Mutant], proof: &mut Proof, said: &(dyn Fn(String) + Sync)) {
        let rows = self.each(mutants, |mutant| {
            said(format!("mutant {}", mutant.id));
            self.mutant(mutant)
        });
        for row in rows {
            match row {
                Ok(row) => proof.rows.push(row),
                Err(error) => proof.problems.push(error),
            }
        }
    }

    fn mutant(&self, mutant: &Mutant) -> Result<MutantRow, String> {
        let mut row = MutantRow { id: mutant.id, killers: BTreeMap::new(), checks_run: 0 };
        let broken: BTreeSet<&str> = mutant.clauses.iter().copied().collect();
        let extra = vec!["--mutant".to_owned(), mutant.id.to_owned()];
        let puts_at_risk = |check: &&Check| check.clauses.iter().any(|id| broken.contains(id.0.as_str()));
        for reference in self.boundary.references().iter().filter(|reference| reference.side == mutant.side) {
            let checks: Vec<&Check> = self.boundary.checks().iter().filter(puts_at_risk).collect();
            let machine =
                if mutant.needs_process { None } else { self.machine_peer(reference, &extra, None) };
            let (inside, outside): (Vec<&Check>, Vec<&Check>) =
                checks.into_iter().partition(|check| machine.is_some() && !check.needs_process);
            let note = |outcome: Outcome, row: &mut MutantRow| {
                row.checks_run += 1;
                if !outcome.result.verdict.is_failure() {
                    return;
                }
                for clause in &broken {
                    let listed = outcome.result.clauses.iter().any(|listed| listed.id.0 == *clause);
                    let found = outcome.result.findings.iter().any(|finding| finding.clause.0 == *clause);
                    if listed && found {
                        row.killers.entry(clause).or_default().push(outcome.result.id.clone());
                    }
                }
            };
            if let Some(peer) = machine {
                self.run(&peer, &inside, true, &mut |outcome| note(outcome, &mut row));
            }
            // A process is needed where a check observes one, or where nothing inside noticed.
            let noticed = broken.iter().all(|clause| row.killers.contains_key(clause));
            if !outside.is_empty() && !noticed {
                let peer = (self.process)(reference, &extra)?;
                let (slow, quick): (Vec<&Check>, Vec<&Check>) = outside
                    .into_iter()
                    .filter(|check| peer.commands.contains_key(&check.command))
                    .partition(|check| check.slow);
                self.run(&peer, &quick, false, &mut |outcome| note(outcome, &mut row));
                // Real time is spent only where nothing else can notice.
                if !broken.iter().all(|clause| row.killers.contains_key(clause)) {
                    self.run(&peer, &slow, true, &mut |outcome| note(outcome, &mut row));
                }
            }
        }
        Ok(row)
    }

    fn summarise(&self, mutants: &[Mutant], proof: &mut Proof) {
        let killed = |row: &MutantRow, clause: &str| row.killers.contains_key(clause);
        let clauses: BTreeMap<&str, &Clause> =
            self.boundary.clauses().iter().map(|clause| (clause.id.0.as_str(), clause)).collect();
        let mut proved = BTreeSet::new();
        let mut killers = BTreeSet::new();
        for mutant in mutants {
            let Some(row) = proof.rows.iter().find(|row| row.id == mutant.id) else { continue };
            let mut all = true;
            for clause in mutant.clauses {
                if killed(row, clause) {
                    proved.insert(*clause);
                } else {
                    all = false;
                    proof.summary.survivors.push(format!("{}: {clause}", mutant.id));
                }
            }
            proof.summary.killed += usize::from(all);
            killers.extend(row.killers.values().flatten().cloned());
        }
        let must: Vec<&ClauseId> = clauses
            .values()
            .filter(|clause| clause.level == Level::Must && clause.excluded.is_none())
            .map(|clause| &clause.id)
            .collect();
        proof.unproved =
            must.iter().filter(|id| !proved.contains(id.0.as_str())).map(|id| (*id).clone()).collect();
        let decides = |check: &&Check| {
            check.clauses.iter().any(|id| clauses.get(id.0.as_str()).is_some_and(|c| c.level != Level::Open))
        };
        let summary = &mut proof.summary;
        summary.mutants = mutants.len();
        summary.checks = self.boundary.checks().len();
        summary.redundant = self
            .boundary
            .checks()
            .iter()
            .filter(decides)
            .filter(|check| !killers.contains(&check.id))
            .map(|check| check.id.clone())
            .collect();
        summary.false_positives = proof.false_positives.len();
        summary.clauses_must = must.len();
        summary.clauses_must_proved = must.len() - proof.unproved.len();
    }

    /// Runs `checks` once each, without confirmation: what is judged here are the checks.
    fn run(&self, peer: &Peer, checks: &[&Check], slow: bool, note: &mut (dyn FnMut(Outcome) + Send)) {
        let options = Options { slow, keep_going: true, jobs: 1, confirm: 1, ..self.options.clone() };
        let note = Mutex::new(note);
        runner::run(peer, checks, &options, self.around, &|outcome| {
            (note.lock().unwrap_or_else(std::sync::PoisonError::into_inner))(outcome);
        });
    }

    /// A reference peer inside this process.
    fn machine_peer(
        &self,
        reference: &Reference,
        extra: &[String],
        how: Option<presentation::Harmless>,
    ) -> Option<Peer> {
        let boundary = self.boundary;
        let (_, first) = reference.commands.first()?;
        let probe: Vec<String> = first.iter().chain(extra).cloned().collect();
        boundary.reference_machine(&probe, &[])?;
        let commands = reference
            .commands
            .iter()
            .map(|(name, args)| ((*name).to_owned(), args.iter().chain(extra).cloned().collect()))
            .collect();
        Some(Peer {
            name: format!("reference {}", boundary.name()),
            boundary,
            commands,
            env: Vec::new(),
            facts: boundary.reference_facts(reference.side),
            features_given: true,
            origin: Origin::InProcess(std::sync::Arc::new(move |args, env| {
                let machine = boundary.reference_machine(args, env)?;
                Some(match how {
                    Some(how) => presentation::wrap(machine, how),
                    None => machine,
                })
            })),
            latency_us: std::sync::Arc::default(),
        })
    }

    /// Does `work` for each item on as many threads as there are jobs; results in the order of the items.
    fn each<T: Sync, R: Send>(&self, items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
        let next = AtomicUsize::new(0);
        let done = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..self.options.jobs.max(1) {
                scope.spawn(|| {
                    while let Some(item) = {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        items.get(index).map(|item| (index, item))
                    } {
                        let result = work(item.1);
                        done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((item.0, result));
                    }
                });
            }
        });
        let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        done.sort_by_key(|(index, _)| *index);
        done.into_iter().map(|(_, result)| result).collect()
    }
}
