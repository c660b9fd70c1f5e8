//! Proof that the suite works: the correct reference is clean with every allowed choice and harmless presentation,
//! checks of each broken clause notice every mutant, and null peers pass nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::thread::ScopedJoinHandle;

use serde::Serialize;

use crate::contract::boundary::Boundary;
use crate::data::blame::HarnessFault;
use crate::data::check::Check;
use crate::data::clause::{Clause, ClauseId, Level};
use crate::data::facts::Facts;
use crate::data::finding::Finding;
use crate::data::payload::Vars;
use crate::data::plan::{Act, Plan, Step};
use crate::data::rng::Rng;
use crate::drive::parallel;
use crate::drive::peer::{Origin, Peer};
use crate::drive::presentation;
use crate::drive::reference_peers::{Mutant, Played, Reference, peer_inside};
use crate::run::runner::{self, CheckOutcome, Options, Surroundings};

pub mod blame;
mod correct;
pub mod golden;
pub mod kinds;
mod look;
pub(crate) mod null_peers;
mod row;

pub use correct::shows;
use correct::{FormResults, Variant};
use golden::{GoldenDifference, GoldenRecord};
use kinds::{Differing, TroubleKind};
use look::{WAITERS_PER_JOB, all_killers};
pub use row::MutantRow;
use row::is_at_risk;

/// Makes a reference peer as a process, with further arguments.
pub type MakePeer<'a> = dyn Fn(&Reference, &[String]) -> Result<Peer, HarnessFault> + Sync + 'a;

/// Scope of a proof.
pub struct Scope<'a> {
    /// Mutants to prove.
    pub mutants: Vec<Mutant>,
    /// Forms of the correct peers to run.
    pub correct: Forms,
    /// Golden record to compare with.
    pub kept: Option<&'a GoldenRecord>,
    /// Checks to run against each mutant.
    pub against: Against,
}

/// Checks to run against a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Against {
    /// Checks that noticed it according to the golden record; others only if those miss a clause or differ from the
    /// record.
    Known,
    /// Checks of its clauses, with a process only if a clause is left.
    Clauses,
    /// As [`Against::Clauses`], and then each check that has noticed no mutant.
    Each,
}

/// Forms of the correct peers to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forms {
    /// No correct peer.
    None,
    /// The usual form of each.
    Usual,
    /// Every choice and harmless presentation of each, plus null peers and, with all mutants, all kinds of trouble.
    All,
}

/// Means to run reference peers, as child processes and inside this process.
#[derive(Clone, Copy)]
pub struct Workshop<'a> {
    /// Reference peers of the boundary under proof.
    pub played: &'static dyn Played,
    /// Makes a reference peer as a process, with arguments beyond the usual ones.
    pub process: &'a MakePeer<'a>,
    /// Settings of the runs.
    pub options: &'a Options,
    /// Resources of this machine.
    pub around: Surroundings<'a>,
}

/// Last line of `selftest --format json`.
#[derive(Debug, Default, Serialize)]
pub struct SelftestSummary {
    /// Number of mutants.
    pub mutants: usize,
    /// Number of mutants noticed by a check of each of their clauses.
    pub killed: usize,
    /// `mutant: clause` for clauses whose break no check noticed.
    pub survivors: Vec<String>,
    /// Number of checks.
    pub checks: usize,
    /// `mutant: clause` for clauses that a check could only judge on another machine.
    pub untestable: Vec<String>,
    /// `mutant: clause` for clauses that no line of the golden record names. Refers to the kept record if given, or
    /// else the new one.
    pub blind: Vec<String>,
    /// Checks that fail for no mutant of their clauses. The boundary gives a reason for each.
    pub redundant: Vec<String>,
    /// Number of forms run for the kinds of trouble, see [`TroubleKind`].
    pub forms_of_kinds: usize,
    /// Number of checks whose result differs when run alone.
    pub alone_differs: usize,
    /// Number of findings against correct peers.
    pub false_positives: usize,
    /// Number of observable MUST clauses.
    pub clauses_must: usize,
    /// Number of these that a mutant breaks and a check notices.
    pub clauses_must_proved: usize,
}

/// Finding against a correct peer.
#[derive(Debug)]
pub struct FalsePositive {
    /// Form of the correct peer.
    pub variant: String,
    /// Id of the check.
    pub check: String,
    /// The finding.
    pub finding: Finding,
}

/// Result of a proof.
#[derive(Debug, Default)]
pub struct Proof {
    /// Closing line.
    pub summary: SelftestSummary,
    /// Kill matrix.
    pub rows: Vec<MutantRow>,
    /// Findings against correct peers.
    pub false_positives: Vec<FalsePositive>,
    /// MUST clauses that no mutant proves.
    pub unproved: Vec<ClauseId>,
    /// Null peers that passed a check: name and check.
    pub false_greens: Vec<(String, String)>,
    /// Redundant checks with the reason to keep them.
    pub excused: Vec<(String, &'static str)>,
    /// Redundant checks for which the boundary gives no reason.
    pub unexcused: Vec<String>,
    /// Number of forms of the correct peers that were run.
    pub variants: usize,
    /// Kinds of trouble, each with its number of forms and the number of checks in all of them.
    pub kinds: Vec<(TroubleKind, usize, usize)>,
    /// Checks whose result differs when run alone.
    pub differing: Vec<Differing>,
    /// Number of null peers tried.
    pub null_peers: usize,
    /// Peers or checks that could not be run, with the reason.
    pub problems: Vec<String>,
    /// New golden record of the peers proved by all checks of their clauses.
    pub record: GoldenRecord,
    /// Differences from the kept record.
    pub changes: Vec<GoldenDifference>,
}

impl Proof {
    /// True if every requirement is met.
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

    /// Proves the suite or a part of it. Passes progress to `said`, one short phrase at a time. If mutants are left
    /// out, clauses and checks without a mutant are not counted against the suite.
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
        // The only part that measures, so nothing else runs.
        let plain = if variants.is_empty() { FormResults::default() } else { self.correct_process(said) };
        let kinds = if has_all_mutants && has_all_forms { TroubleKind::ALL } else { &[] };
        for kind in kinds {
            self.enter_kind(*kind, &mut proof, said);
        }
        // Processes mostly wait: they run beside work that needs the processor.
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
        proof.record = GoldenRecord::new(&correct, mutants, &proof.rows);
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

    /// Plan that a check makes of these facts; `None` once the user asks to stop, because all plans of a boundary take
    /// seconds.
    fn plan(&self, check: &Check, facts: &Facts) -> Option<Plan> {
        if self.is_interrupted() {
            return None;
        }
        (check.planner)(facts, &mut Rng::new(self.options.rng_seed).fork(&check.id)).ok()
    }

    /// Number of bytes that a check writes to a reference peer.
    fn bytes_written(&self, check: &Check, reference: &Reference) -> usize {
        let Some(plan) = self.plan(check, &self.played.facts_of(reference)) else { return 0 };
        let bytes = |step: &Step| match &step.act {
            Act::Send { payload, .. } => payload.len(&Vars::new()),
            _ => 0,
        };
        plan.steps.iter().map(bytes).sum()
    }

    /// Checks that can run in this process, cheapest first.
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
        // A check of only open clauses records a choice, and fails only for an undeclared value.
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
        let description = self.boundary().description();
        for check in &proof.summary.redundant {
            match description.reasons_to_keep().find(|(id, _)| id == check) {
                Some((_, reason)) => proof.excused.push((check.clone(), reason)),
                None => proof.unexcused.push(check.clone()),
            }
        }
        for (id, _) in description.reasons_to_keep() {
            if !self.boundary().checks().iter().any(|check| check.id == *id) {
                proof.problems.push(format!("a reason is given for {id}, which is not a check"));
            }
        }
    }

    /// Runs `checks`; a failure counts if it shows `confirm` times.
    fn run(
        &self,
        peer: &Peer,
        checks: &[&Check],
        slow: bool,
        confirm: u32,
        note: &mut (dyn FnMut(CheckOutcome) + Send),
    ) {
        // In this process the clock is virtual.
        let very_slow = slow && matches!(peer.origin, Origin::InProcess(_));
        let options = Options { slow, very_slow, keep_going: true, jobs: 1, confirm, ..self.options.clone() };
        let note = Mutex::new(note);
        runner::run(peer, checks, &options, self.around, &|outcome| {
            (note.lock().unwrap_or_else(std::sync::PoisonError::into_inner))(outcome);
        });
    }

    /// Makes a reference peer inside this process.
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

    /// Runs `work` for each item on `threads_per_job` threads per job; results come in the order of the items. After an
    /// interrupt, only finished items have results.
    fn each<T: Sync, R: Send>(
        &self,
        threads_per_job: usize,
        items: &[T],
        work: impl Fn(&T) -> R + Sync,
    ) -> Vec<R> {
        let items = items.iter().take_while(|_| !self.is_interrupted());
        // Results of interrupted work mean nothing.
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

/// Mutants whose id contains `only`. If there are none, mutants that break a clause of a check whose id contains it.
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
