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
use crate::played::{Mutant, Played, Reference};
use crate::rng::Rng;
use crate::runner::{self, Options, Outcome, Surroundings};
use crate::verdict::Verdict;

mod correct;
pub mod golden;
pub mod kinds;
pub mod null_peers;
pub mod presentation;
mod slow;

pub use correct::shows;
use correct::{Tried, Variant};
use golden::Said;
use kinds::{Differing, Kind};

/// Makes a reference peer that runs as a process, with further arguments.
pub type MakePeer<'a> = dyn Fn(&Reference, &[String]) -> Result<Peer, HarnessFault> + Sync + 'a;

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

/// One mutant and what the checks said.
#[derive(Debug)]
pub struct MutantRow {
    /// Its id.
    pub id: &'static str,
    /// For each clause that it breaks, the checks that noticed.
    pub killers: BTreeMap<&'static str, Vec<String>>,
    /// Clauses of it that were left to a fuller proof.
    pub left_out: Vec<&'static str>,
    /// Clauses of which a check said that this machine cannot show whether they are held.
    pub untestable: BTreeSet<&'static str>,
    /// Number of checks that were run against it.
    pub checks_run: usize,
    /// How often it was looked at: more than once where processes are in play and the first look left a clause.
    pub looks: u32,
    /// What the golden record has of it.
    said: Said,
}

impl MutantRow {
    fn is_noticed(&self, mutant: &Mutant) -> bool {
        mutant.clauses.iter().all(|clause| self.killers.contains_key(clause))
    }
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
    /// What every check says, to be kept (`selftest --golden`). None of a part of the proof.
    pub record: Option<String>,
    /// What the record that was kept says otherwise.
    pub changes: Vec<String>,
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

/// Most looks at a mutant, or at a check that noticed none, where processes are in play.
const LOOKS: u32 = 3;
/// Threads for work that waits most of its time, as a multiple of the jobs.
const WAITERS_PER_JOB: usize = 4;

impl Workshop<'_> {
    fn boundary(&self) -> &'static dyn Boundary {
        self.played.boundary()
    }

    /// Proves the whole suite. `said` is told what is being done, one short phrase at a time. Where `only` leaves out
    /// mutants, clauses and checks without a mutant are not held against the suite.
    pub fn prove(&self, only: Option<&str>, said: &(dyn Fn(String) + Sync)) -> Proof {
        self.prove_of(only, &self.variants(), said)
    }

    /// What the mutants prove, beside the correct peer in its usual form: without its other forms, kinds of trouble and null
    /// peers. Of some mutants alone, which `only` leaves, without the correct peer, too.
    pub fn prove_mutants(&self, only: Option<&str>, said: &(dyn Fn(String) + Sync)) -> Proof {
        self.prove_of(only, &[], said)
    }

    fn prove_of(&self, only: Option<&str>, variants: &[Variant], said: &(dyn Fn(String) + Sync)) -> Proof {
        let mut proof = Proof::default();
        let is_whole = !variants.is_empty();
        let mutants = mutants_of(self.played, only);
        // The one part that measures, while nothing else runs.
        let plain = if only.is_none() || is_whole { self.correct_process(said) } else { Tried::default() };
        let kinds = if only.is_none() && is_whole { Kind::ALL } else { &[] };
        for kind in kinds {
            self.enter_kind(*kind, &mut proof, said);
        }
        // Processes are mostly waited for: they are run beside what needs the processor.
        let (outside, inside): (Vec<Mutant>, Vec<Mutant>) =
            mutants.iter().cloned().partition(|mutant| mutant.needs_process);
        let (mut rows, mut tried, outside_rows, null) = std::thread::scope(|scope| {
            let null = scope.spawn(|| if is_whole { null_peers::prove(self, said) } else { Ok(Vec::new()) });
            let waiting = scope.spawn(|| {
                let tried = self.correct_processes(variants, said);
                (tried, self.rows(&outside, WAITERS_PER_JOB, said))
            });
            let mut tried = self.correct(variants, said);
            let rows = self.rows(&inside, 1, said);
            let (choices, outside_rows) = joined(waiting);
            tried.add(choices);
            (rows, tried, outside_rows, joined(null))
        });
        tried.add(plain);
        let correct = std::mem::take(&mut tried.said);
        tried.enter(variants, &mut proof);
        proof.null_peers = if is_whole { null_peers::count(self.boundary()) } else { 0 };
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
        if only.is_none() && !self.is_interrupted() {
            proof.record = Some(golden::record(&correct, &mutants, &proof.rows));
        }
        self.second_chance(&mutants, &mut proof, said);
        self.summarise(&mutants, &mut proof);
        if only.is_none() && !self.is_interrupted() {
            self.excuse(&mut proof);
        } else {
            proof.unproved.clear();
            proof.summary.redundant.clear();
        }
        proof
    }

    /// The part of the proof that needs no process: the correct peer with its default choices, in every presentation,
    /// and every mutant until a check of each of its clauses noticed. Clauses that no such check puts at risk,
    /// and those that `left_out` names, are left to [`Workshop::prove`].
    pub fn prove_inside(&self, left_out: &[&str], said: &(dyn Fn(String) + Sync)) -> Proof {
        let mut proof = Proof::default();
        let variants: Vec<Variant> =
            self.variants().into_iter().filter(|variant| variant.choice.is_none()).collect();
        let mutants: Vec<Mutant> =
            self.played.mutants().into_iter().filter(|mutant| !mutant.needs_process).collect();
        self.correct(&variants, said).enter(&variants, &mut proof);
        let rows = self.each(1, &mutants, |mutant| {
            said(format!("mutant {}", mutant.id));
            self.quick_row(mutant, left_out)
        });
        proof.rows = rows.into_iter().flatten().collect();
        self.summarise(&mutants, &mut proof);
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

    /// Every mutant against the checks of the clauses that it breaks.
    fn rows(
        &self,
        mutants: &[Mutant],
        threads_per_job: usize,
        said: &(dyn Fn(String) + Sync),
    ) -> Vec<Result<MutantRow, HarnessFault>> {
        self.each(threads_per_job, mutants, |mutant| {
            said(format!("mutant {}", mutant.id));
            self.row(mutant)
        })
    }

    /// A mutant that can be noticed is noticed, though the machine may be too busy to show a race at the first look.
    fn row(&self, mutant: &Mutant) -> Result<MutantRow, HarnessFault> {
        let mut row = new_row(mutant);
        while row.looks < LOOKS && !row.is_noticed(mutant) {
            row.looks += 1;
            let looked_outside = self.look(mutant, &mut row)?;
            if !looked_outside {
                break;
            }
        }
        Ok(row)
    }

    /// Runs the checks of the mutant's clauses, the quick ones first; tells whether some of them need a process.
    fn look(&self, mutant: &Mutant, row: &mut MutantRow) -> Result<bool, HarnessFault> {
        let mut looked_outside = false;
        let extra = arguments(mutant);
        let references = self.played.references();
        let played = references.iter().filter(|reference| self.played.plays(reference, mutant));
        for (place, reference) in played.enumerate() {
            // The record is of the first look. Whether a second reference is run as a process depends on the first.
            let is_first = row.looks == 1 && (place == 0 || !mutant.needs_process);
            let checks: Vec<&Check> =
                self.boundary().checks().iter().filter(|check| is_at_risk(check, mutant)).collect();
            let machine = match mutant.needs_process {
                true => None,
                false => self.machine_peer(reference, &extra, None, mutant.unclaimed),
            };
            let (inside, outside): (Vec<&Check>, Vec<&Check>) =
                checks.into_iter().partition(|check| machine.is_some() && !check.needs_process);
            if let Some(peer) = machine {
                self.run(&peer, &inside, true, 1, &mut |outcome| {
                    if is_first {
                        self.hear(&mut row.said, &peer, &outcome);
                    }
                    note(&outcome, mutant, row);
                });
            }
            // A process is needed where a check observes one, or where nothing inside noticed.
            if !outside.is_empty() && !row.is_noticed(mutant) {
                looked_outside = true;
                let peer = self.process_peer(reference, mutant)?;
                let (slow, quick): (Vec<&Check>, Vec<&Check>) = outside
                    .into_iter()
                    .filter(|check| peer.commands.contains_key(&check.command))
                    .partition(|check| check.slow);
                self.run(&peer, &quick, false, 1, &mut |outcome| {
                    if is_first && mutant.needs_process {
                        self.hear(&mut row.said, &peer, &outcome);
                    }
                    note(&outcome, mutant, row);
                });
                // Real time is spent only where nothing else can notice.
                if !row.is_noticed(mutant) {
                    self.run(&peer, &slow, true, 1, &mut |outcome| note(&outcome, mutant, row));
                }
            }
        }
        Ok(looked_outside)
    }

    /// One mutant inside this process until it is noticed; `None` where a fuller proof has to do all of it.
    fn quick_row(&self, mutant: &Mutant, left_out: &[&str]) -> Option<MutantRow> {
        let mut row = new_row(mutant);
        let references = self.played.references();
        let reference = references.iter().find(|reference| self.played.plays(reference, mutant))?;
        let peer = self.machine_peer(reference, &arguments(mutant), None, mutant.unclaimed)?;
        let checks = self.checks_inside(reference);
        row.left_out = mutant
            .clauses
            .iter()
            .copied()
            .filter(|clause| {
                let inside = checks.iter().any(|(_, check)| check.clauses.iter().any(|id| id.0 == *clause));
                !inside || left_out.contains(clause)
            })
            .collect();
        for clause in mutant.clauses.iter().filter(|clause| !row.left_out.contains(clause)) {
            for (_, check) in &checks {
                if row.killers.contains_key(clause) {
                    break;
                }
                if check.clauses.iter().any(|id| id.0 == *clause) {
                    let mut killers = new_row(mutant);
                    self.run(&peer, &[*check], true, 1, &mut |outcome| note(&outcome, mutant, &mut killers));
                    row.checks_run += 1;
                    row.killers.extend(killers.killers);
                }
            }
        }
        Some(row)
    }

    /// Checks that need a process were not run where something cheaper had noticed the mutant. Those that noticed none
    /// so far are tried on their own.
    fn second_chance(&self, mutants: &[Mutant], proof: &mut Proof, said: &(dyn Fn(String) + Sync)) {
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
                let mut row = new_row(mutant);
                for _ in 0..looks {
                    self.run(&peer, &[*check], false, 1, &mut |outcome| note(&outcome, mutant, &mut row));
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
                } else if !row.left_out.contains(clause) {
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
        let (played, boundary) = (self.played, self.boundary());
        let mut facts = played.facts_of(reference);
        facts.features.retain(|feature, _| Some(feature.as_str()) != unclaimed);
        let (_, first) = reference.commands.first()?;
        let probe: Vec<String> = first.iter().chain(extra).cloned().collect();
        played.reference_machine(&probe, &[])?;
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
            facts,
            features_given: true,
            origin: Origin::InProcess(std::sync::Arc::new(move |args, env| {
                let machine = played.reference_machine(args, env)?;
                Some(presentation::wrap_as(machine, how))
            })),
            pace: std::sync::Arc::default(),
        })
    }

    /// A mutant as a process.
    fn process_peer(&self, reference: &Reference, mutant: &Mutant) -> Result<Peer, HarnessFault> {
        let mut peer = (self.process)(reference, &arguments(mutant))?;
        peer.facts.features.retain(|feature, _| Some(feature.as_str()) != mutant.unclaimed);
        Ok(peer)
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

fn arguments(mutant: &Mutant) -> Vec<String> {
    vec!["--mutant".to_owned(), mutant.id.to_owned()]
}

fn new_row(mutant: &Mutant) -> MutantRow {
    MutantRow {
        id: mutant.id,
        killers: BTreeMap::new(),
        left_out: Vec::new(),
        untestable: BTreeSet::new(),
        checks_run: 0,
        looks: 0,
        said: Said::new(),
    }
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

fn is_at_risk(check: &Check, mutant: &Mutant) -> bool {
    check.clauses.iter().any(|id| mutant.clauses.contains(&id.0.as_str()))
}

/// How a check begins to say that the machine, not the peer, keeps it from telling.
pub const OF_MACHINE: &str = "machine: ";

/// Enters a check that noticed the mutant: one that lists a clause which the mutant breaks, and says it is broken.
fn note(outcome: &Outcome, mutant: &Mutant, row: &mut MutantRow) {
    row.checks_run += 1;
    let verdict = &outcome.result.verdict;
    let of_machine = matches!(verdict, Verdict::Untestable(why) if why.starts_with(OF_MACHINE));
    if !verdict.is_failure() && !of_machine {
        return;
    }
    for clause in mutant.clauses {
        let listed = outcome.result.clauses.iter().any(|listed| listed.id.0 == *clause);
        if listed && of_machine {
            row.untestable.insert(clause);
        }
        let found = outcome.result.findings.iter().any(|finding| finding.clause.0 == *clause);
        let killers = row.killers.get(clause).map_or(&[][..], Vec::as_slice);
        if listed && found && !killers.contains(&outcome.result.id) {
            row.killers.entry(clause).or_default().push(outcome.result.id.clone());
        }
    }
}

fn all_killers(rows: &[MutantRow]) -> BTreeSet<String> {
    rows.iter().flat_map(|row| row.killers.values().flatten().cloned()).collect()
}
