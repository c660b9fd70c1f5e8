//! The suite proves itself: the correct reference stays clean under every allowed choice and every harmless
//! presentation, every mutant is noticed by a check of each clause it breaks, and null peers prove nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::thread::ScopedJoinHandle;

use serde::Serialize;

use crate::blame::HarnessFault;
use crate::boundary::Boundary;
use crate::check::Check;
use crate::clause::{Clause, ClauseId, Level};
use crate::facts::Facts;
use crate::finding::Finding;
use crate::parallel;
use crate::payload::Vars;
use crate::peer::{Origin, Peer};
use crate::plan::{Act, Plan, Step};
use crate::played::{Mutant, Played, Reference, peer_inside};
use crate::presentation;
use crate::rng::Rng;
use crate::runner::{self, Options, Outcome, Surroundings};

pub mod blame;
mod correct;
pub mod golden;
pub mod kinds;
mod look;
pub mod null_peers;

pub use correct::shows;
use correct::{Tried, Variant};
use golden::{Difference, Record};
use kinds::{Differing, Kind};
pub use look::MutantRow;
use look::{WAITERS_PER_JOB, all_killers, is_at_risk};

/// Makes a reference peer that runs as a process, with further arguments.
pub type MakePeer<'a> = dyn Fn(&Reference, &[String]) -> Result<Peer, HarnessFault> + Sync + 'a;

/// Part of the suite's proof of itself that is asked for.
pub struct Scope<'a> {
    /// Mutants to be proved.
    pub mutants: Vec<Mutant>,
    /// Correct peers that are run beside them.
    pub correct: Forms,
    /// The golden record that the proof is compared with.
    pub kept: Option<&'a Record>,
    /// Checks that are run against each mutant.
    pub against: Against,
}

/// Checks that are run against a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Against {
    /// Those that noticed it by the golden record; the others only where those leave a clause or say something else.
    Known,
    /// Those of its clauses, with a process only where a clause is left.
    Clauses,
    /// Checks as for `Clauses`, and then each check that noticed no mutant so far.
    Each,
}

/// Forms of the correct peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forms {
    /// No correct peer.
    None,
    /// Each as it is usually run.
    Usual,
    /// Each with every choice and every harmless presentation, beside null peers and, with all mutants, all kinds of trouble.
    All,
}

/// What starts reference peers: as child processes and inside this process.
#[derive(Clone, Copy)]
pub struct Workshop<'a> {
    /// The reference peers of the boundary that is proved.
    pub played: &'static dyn Played,
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
    /// `mutant: clause` for what a check would notice on another machine, as it says itself.
    pub untestable: Vec<String>,
    /// `mutant: clause` for what no line of the golden record tells: the one that is compared with, else the new one.
    pub blind: Vec<String>,
    /// Checks that no mutant of their clauses fails; the boundary gives a reason for each.
    pub redundant: Vec<String>,
    /// Forms of the kinds of trouble that were run: see [`Kind`].
    pub forms_of_kinds: usize,
    /// Checks that say something else by themselves than in the whole run.
    pub alone_differs: usize,
    /// Number of findings against correct peers.
    pub false_positives: usize,
    /// MUST clauses that can be observed.
    pub clauses_must: usize,
    /// Those of them that a mutant breaks and a check notices.
    pub clauses_must_proved: usize,
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
    /// Redundant checks with the reason why they are kept.
    pub excused: Vec<(String, &'static str)>,
    /// Redundant checks that the boundary gives no reason for.
    pub unexcused: Vec<String>,
    /// Forms of the correct peers that were run.
    pub variants: usize,
    /// Kinds of trouble, in how many forms each was run, and the checks of all of them together.
    pub kinds: Vec<(Kind, usize, usize)>,
    /// Checks that say something else by themselves than in the whole run.
    pub differing: Vec<Differing>,
    /// Null peers that were tried.
    pub null_peers: usize,
    /// What could not be run at all.
    pub problems: Vec<String>,
    /// The golden record of the peers that were proved by all checks of their clauses.
    pub record: Record,
    /// Differences from the record that was kept.
    pub changes: Vec<Difference>,
}

impl Proof {
    /// Whether every gate holds.
    pub fn holds(&self) -> bool {
        self.summary.survivors.is_empty()
            && self.false_positives.is_empty()
            && self.unproved.is_empty()
            && self.false_greens.is_empty()
            && self.unexcused.is_empty()
            && self.differing.is_empty()
            && self.problems.is_empty()
            && self.changes.is_empty()
    }
}

impl Workshop<'_> {
    fn boundary(&self) -> &'static dyn Boundary {
        self.played.boundary()
    }

    /// Proves the suite, or a part of it. `said` is told what is being done, one short phrase at a time. Where mutants are left
    /// out, clauses and checks without a mutant are not held against the suite.
    pub fn prove(&self, scope: &Scope<'_>, said: &(dyn Fn(String) + Sync)) -> Proof {
        let mut proof = Proof::default();
        let mutants = &scope.mutants;
        let has_all_mutants = mutants.len() == self.played.mutants().len();
        let known = scope.kept.filter(|_| scope.against == Against::Known);
        let variants = match scope.correct {
            Forms::None => Vec::new(),
            Forms::Usual => vec![Variant::plain()],
            Forms::All => self.variants(),
        };
        let has_all_forms = scope.correct == Forms::All;
        // The one part that measures, while nothing else runs.
        let plain = if variants.is_empty() { Tried::default() } else { self.correct_process(said) };
        let kinds = if has_all_mutants && has_all_forms { Kind::ALL } else { &[] };
        for kind in kinds {
            self.enter_kind(*kind, &mut proof, said);
        }
        // Processes are mostly waited for: they are run beside what needs the processor.
        let (outside, inside): (Vec<Mutant>, Vec<Mutant>) =
            mutants.iter().cloned().partition(|mutant| mutant.needs_process);
        let (mut rows, mut tried, outside_rows, null) = std::thread::scope(|scope| {
            let null =
                scope.spawn(|| if has_all_forms { null_peers::prove(self, said) } else { Ok(Vec::new()) });
            let waiting = scope.spawn(|| {
                let tried = self.correct_processes(&variants, said);
                (tried, self.rows(&outside, known, WAITERS_PER_JOB, said))
            });
            let mut tried = self.correct(&variants, said);
            let rows = self.rows(&inside, known, 1, said);
            let (choices, outside_rows) = joined(waiting);
            tried.add(choices);
            (rows, tried, outside_rows, joined(null))
        });
        tried.add(plain);
        let correct = std::mem::take(&mut tried.said);
        tried.enter(&variants, &mut proof);
        proof.null_peers = if has_all_forms { null_peers::count(self.boundary()) } else { 0 };
        match null {
            Ok(greens) => proof.false_greens.extend(greens),
            Err(error) => proof.problems.push(error.into()),
        }
        rows.extend(outside_rows);
        for row in rows {
            match row {
                Ok(row) => proof.rows.push(row),
                Err(error) => proof.problems.push(error.into()),
            }
        }
        proof.record = Record::new(&correct, mutants, &proof.rows);
        if let Some(kept) = scope.kept.filter(|_| !self.is_interrupted()) {
            match self.differences(kept, &correct, mutants, &proof.rows, said) {
                Ok(changes) => proof.changes = changes,
                Err(error) => proof.problems.push(error.into()),
            }
        }
        let tries_each = scope.against == Against::Each;
        if tries_each {
            self.second_chance(mutants, &mut proof, said);
        }
        self.summarise(mutants, &mut proof);
        proof.summary.blind = scope.kept.unwrap_or(&proof.record).blind(mutants);
        if !has_all_mutants || self.is_interrupted() {
            proof.unproved.clear();
        }
        if tries_each && has_all_mutants && !self.is_interrupted() {
            self.excuse(&mut proof);
        } else {
            proof.summary.redundant.clear();
        }
        proof
    }

    /// The plan that a check makes of these facts. Once the user asks to stop, none: all the plans of a boundary take
    /// seconds.
    fn plan(&self, check: &Check, facts: &Facts) -> Option<Plan> {
        if self.is_interrupted() {
            return None;
        }
        (check.planner)(facts, &mut Rng::new(self.options.rng_seed).fork(&check.id)).ok()
    }

    /// Bytes that a check writes to a reference peer.
    fn bytes_written(&self, check: &Check, reference: &Reference) -> usize {
        let Some(plan) = self.plan(check, &self.played.facts_of(reference)) else { return 0 };
        let bytes = |step: &Step| match &step.act {
            Act::Send { payload, .. } => payload.len(&Vars::new()),
            _ => 0,
        };
        plan.steps.iter().map(bytes).sum()
    }

    /// Checks that can run in this process, the cheap ones first.
    fn checks_inside(&self, reference: &Reference) -> Vec<(usize, &Check)> {
        let commands: Vec<&str> = reference.commands.iter().map(|(name, _)| *name).collect();
        let mut checks: Vec<(usize, &Check)> = self
            .boundary()
            .checks()
            .iter()
            .filter(|check| !check.needs_process && commands.contains(&check.command.as_str()))
            .map(|check| (self.bytes_written(check, reference), check))
            .collect();
        checks.sort_by_key(|(bytes, _)| *bytes);
        checks
    }

    fn summarise(&self, mutants: &[Mutant], proof: &mut Proof) {
        let clauses: BTreeMap<&str, &Clause> =
            self.boundary().clauses().iter().map(|clause| (clause.id.0.as_str(), clause)).collect();
        let mut proved = BTreeSet::new();
        for mutant in mutants {
            let Some(row) = proof.rows.iter().find(|row| row.id == mutant.id) else { continue };
            let mut all = true;
            for clause in mutant.clauses {
                if row.killers.contains_key(clause) {
                    proved.insert(*clause);
                } else {
                    all = false;
                    let summary = &mut proof.summary;
                    let left = match row.untestable.contains(clause) {
                        true => &mut summary.untestable,
                        false => &mut summary.survivors,
                    };
                    left.push(format!("{}: {clause}", mutant.id));
                }
            }
            proof.summary.killed += usize::from(all);
        }
        let must: Vec<&ClauseId> = clauses
            .values()
            .filter(|clause| clause.level == Level::Must && clause.excluded.is_none())
            .map(|clause| &clause.id)
            .collect();
        proof.unproved =
            must.iter().filter(|id| !proved.contains(id.0.as_str())).map(|id| (*id).clone()).collect();
        // What a check of open clauses alone records is a choice; only a value outside the set fails it.
        let decides = |check: &&Check| {
            check.clauses.iter().any(|id| clauses.get(id.0.as_str()).is_some_and(|c| c.level != Level::Open))
        };
        let killers = all_killers(&proof.rows);
        let summary = &mut proof.summary;
        summary.mutants = mutants.len();
        summary.checks = self.boundary().checks().len();
        summary.redundant = self
            .boundary()
            .checks()
            .iter()
            .filter(decides)
            .filter(|check| !killers.contains(&check.id))
            .map(|check| check.id.clone())
            .collect();
        summary.false_positives = proof.false_positives.len();
        summary.forms_of_kinds = proof.kinds.iter().map(|(_, forms, _)| forms).sum();
        summary.alone_differs = proof.differing.len();
        summary.clauses_must = must.len();
        summary.clauses_must_proved = must.len() - proof.unproved.len();
    }

    /// Looks up the reasons for redundant checks.
    fn excuse(&self, proof: &mut Proof) {
        let reasons = self.boundary().redundant_checks();
        for check in &proof.summary.redundant {
            match reasons.iter().find(|(id, _)| id == check) {
                Some((_, reason)) => proof.excused.push((check.clone(), reason)),
                None => proof.unexcused.push(check.clone()),
            }
        }
        for (id, _) in reasons {
            if !self.boundary().checks().iter().any(|check| check.id == *id) {
                proof.problems.push(format!("a reason is given for {id}, which is no check"));
            }
        }
    }

    /// Runs `checks`; a failure counts when it shows `confirm` times.
    fn run(
        &self,
        peer: &Peer,
        checks: &[&Check],
        slow: bool,
        confirm: u32,
        note: &mut (dyn FnMut(Outcome) + Send),
    ) {
        // In this process the clock is ours.
        let very_slow = slow && matches!(peer.origin, Origin::InProcess(_));
        let options = Options { slow, very_slow, keep_going: true, jobs: 1, confirm, ..self.options.clone() };
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
        unclaimed: Option<&str>,
    ) -> Option<Peer> {
        let wrap = move |machine| presentation::wrap_as(machine, how);
        let mut peer = peer_inside(self.played, reference, extra, wrap)?;
        peer.facts.features.retain(|feature, _| Some(feature.as_str()) != unclaimed);
        Some(peer)
    }

    fn is_interrupted(&self) -> bool {
        self.around.interrupted.load(Ordering::Relaxed)
    }

    /// Does `work` for each item on as many threads as there are jobs, or a multiple of it; results in the order of the
    /// items. Where the user asks to stop, those of the items that were done by then.
    fn each<T: Sync, R: Send>(
        &self,
        threads_per_job: usize,
        items: &[T],
        work: impl Fn(&T) -> R + Sync,
    ) -> Vec<R> {
        let items = items.iter().take_while(|_| !self.is_interrupted());
        // What was cut short shows nothing.
        let whole = |item: &T| Some(work(item)).filter(|_| !self.is_interrupted());
        parallel::each(self.options.jobs.max(1) * threads_per_job, items, whole)
            .into_iter()
            .flatten()
            .collect()
    }
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The mutants whose id contains `only`; where there is none, those that break a clause of a check whose id contains it.
pub fn mutants_of(played: &dyn Played, only: Option<&str>) -> Vec<Mutant> {
    let mut all = played.mutants();
    let Some(part) = only else { return all };
    let is_named = |mutant: &Mutant| mutant.id.contains(part);
    if all.iter().any(is_named) {
        all.retain(is_named);
    } else {
        let checks: Vec<&Check> =
            played.boundary().checks().iter().filter(|check| check.id.contains(part)).collect();
        all.retain(|mutant| checks.iter().any(|check| is_at_risk(check, mutant)));
    }
    all
}
