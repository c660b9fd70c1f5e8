//! Runner: selects, orders and schedules checks, and turns their transcripts into verdicts.

mod ambient;
mod aside;
mod company;
mod confirm;
mod first_contact;
mod first_look;
mod isolate;
mod memory_limit;
mod prepare;
pub mod probe;
mod process_reuse;
mod retry;
pub(crate) mod silence;
mod skip;
mod trial;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use crate::contract::boundary;
use crate::data::budget::Budget;
use crate::data::check::{Check, Untestable};
use crate::data::clause::{ClauseId, Level};
use crate::data::finding::{CANARY_FAILED, Finding, Judgement, LATE_REPLY, Nature, Repair};
use crate::data::plan::Act;
use crate::data::rung::Rungs;
use crate::data::text::visible;
use crate::data::transcript::{EventKind, Packed, Transcript};
use crate::drive::fixture::ActorExe;
use crate::drive::lab::{Lab, Pool};
use crate::drive::peer::Peer;
use crate::run::verdict::{CheckResult, ClauseRef, Verdict};

use ambient::{FinishedAmbient, ReportedClauses, Routed};
use aside::Deferred;
pub use company::{Company, Seat};
use company::{Turn, TurnKind, WAITERS_MAX};
pub use first_contact::{SilentCanary, prepare_for};
use first_look::{DeferredLook, FirstLook};
use memory_limit::{Load, MemoryLimit};
pub use prepare::{find_roles, learn, prepare, probe, try_roles};
use silence::{Silences, Wait};
pub use skip::skip_reason;

/// Settings of a run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Run checks that wait for times of the contract.
    pub slow: bool,
    /// Run checks that take longer than other slow ones, too.
    pub very_slow: bool,
    /// Set once enough is known about the peer: no further check is begun.
    pub enough: Arc<AtomicBool>,
    /// Go on if the first canary of a command fails.
    pub keep_going: bool,
    /// Number of workers.
    pub jobs: usize,
    /// Seed of every random choice.
    pub rng_seed: u64,
    /// Factor on the time limits of a peer.
    pub timeout_scale: f64,
    /// Number of failures, including the first, for a failing check to count as failed.
    pub confirm: u32,
    /// Lock shared by parallel runs. A check that must run alone, or whose times are confirmed, excludes all others.
    pub quiet: Option<Arc<RwLock<()>>>,
    /// Seat among parallel runs that share processors and memory.
    pub seat: Option<Seat>,
    /// Peer inside this process, for checks that need no real process.
    pub inside: Option<Arc<Peer>>,
    /// First canary to which the peer was silent during preparation, from [`prepare_for`].
    pub silent: Option<Arc<SilentCanary>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            slow: false,
            very_slow: false,
            enough: Arc::default(),
            keep_going: false,
            jobs: 2,
            rng_seed: 1,
            timeout_scale: 1.0,
            confirm: 3,
            quiet: None,
            seat: None,
            inside: None,
            silent: None,
        }
    }
}

impl Options {
    /// Waits until a check may run in parallel with others. Takes the turn before the lock, so that waiting for a turn
    /// keeps no other check from running alone.
    fn beside(&self, kind: TurnKind) -> ParallelPermit<'_> {
        let turn = self.seat.as_ref().map(|seat| seat.turn(kind));
        let quiet = self.quiet.as_ref().map(|quiet| quiet.read().unwrap_or_else(PoisonError::into_inner));
        ParallelPermit { _quiet: quiet, _turn: turn }
    }
}

/// Permission to run in parallel with other checks, until dropped.
struct ParallelPermit<'a> {
    _quiet: Option<RwLockReadGuard<'a, ()>>,
    _turn: Option<Turn<'a>>,
}

/// Surroundings of a run: resources of this machine.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// Binary that plays actors.
    pub actor_exe: &'a ActorExe,
    /// Folder for temporary folders.
    pub scratch: &'a Path,
    /// Set when the user asks to stop: no further check is begun, and running ones are cut short.
    pub interrupted: &'a Arc<AtomicBool>,
}

/// Failing check with the data for its reproducer.
#[derive(Debug, Clone)]
pub struct Failure<T = Transcript> {
    /// Id of the check.
    pub check: String,
    /// Transcript that shows it.
    pub transcript: T,
    /// Finding to reproduce.
    pub finding: Finding,
}

impl From<Failure> for Failure<Packed> {
    fn from(Failure { check, transcript, finding }: Failure) -> Self {
        Self { check, transcript: transcript.into(), finding }
    }
}

impl From<Failure<Packed>> for Failure {
    fn from(Failure { check, transcript, finding }: Failure<Packed>) -> Self {
        Self { check, transcript: transcript.into(), finding }
    }
}

/// Finished check, with the transcript of a failure.
pub struct CheckOutcome {
    /// Result of the check.
    pub result: CheckResult,
    /// Failure for the shrinker and the reproducer.
    pub failure: Option<Failure<Packed>>,
}

/// Lab for `peer` under `options`.
pub fn lab<'a>(peer: &'a Peer, options: &Options, around: Surroundings<'a>) -> Lab<'a> {
    Lab {
        peer,
        budget: Budget { interrupted: Arc::clone(around.interrupted), ..Budget::default() }
            .scaled(options.timeout_scale),
        actor_exe: around.actor_exe,
        scratch: around.scratch,
        timeout_scale: options.timeout_scale,
    }
}

/// Runs `checks` against `peer` and passes each outcome to `done`, in no fixed order; ambient checks come last.
pub fn run(
    peer: &Peer,
    checks: &[&Check],
    options: &Options,
    around: Surroundings<'_>,
    done: &(dyn Fn(CheckOutcome) + Sync),
) {
    RunContext {
        peer,
        options,
        around,
        done,
        levels: peer.boundary.clauses().iter().map(|clause| (clause.id.clone(), clause.level)).collect(),
        rungs: Rungs::new(peer.boundary.name(), peer.boundary.description().rungs),
        owners: checks
            .iter()
            .filter(|check| check.ambient && skip_reason(peer, check, options).is_none())
            .flat_map(|check| {
                check.clauses.iter().map(|clause| (clause.clone(), (check.command.clone(), check.id.clone())))
            })
            .fold(BTreeMap::new(), |mut owners: BTreeMap<ClauseId, Vec<_>>, (clause, owner)| {
                owners.entry(clause).or_default().push(owner);
                owners
            }),
        ambient: Mutex::default(),
        told: Mutex::default(),
        routed: Mutex::default(),
        aside: Mutex::default(),
        again: Mutex::default(),
        reporting: Mutex::default(),
        silent_canaries: Mutex::default(),
        dead_commands: Mutex::default(),
        working_commands: Mutex::default(),
        confirmed_causes: Mutex::default(),
        silences: Silences::default(),
        later: Mutex::default(),
        kept: Pool::default(),
        room: MemoryLimit::default(),
        held: Load::default(),
    }
    .run(checks);
}

/// Detail of [`Verdict::NotRun`] for checks skipped because of [`Options::enough`].
pub const ENOUGH: &str = "stopped: the limit of --max-causes was reached";

/// Default detail of [`Untestable::NO_WORKING_REPLY`].
pub const NO_CANARY_ANSWERED: &str = "the peer answered no canary";

/// Command whose first canary was refused, so that nothing about it could be decided.
pub fn refused_command(result: &CheckResult) -> Option<&str> {
    result.first_canary.as_deref().filter(|_| result.verdict.is_untestable(Untestable::NO_WORKING_REPLY))
}

/// Behaviour of the peer instead of answering the first canary.
fn instead(result: &CheckResult) -> String {
    if let Some(finding) = result.findings.first() {
        return finding.got.clone();
    }
    match &result.verdict {
        Verdict::Untestable(why) if why.code == Untestable::NO_WORKING_REPLY => why.detail.clone(),
        verdict => verdict.detail().map_or_else(|| verdict.word().to_owned(), Cow::into_owned),
    }
}

/// Number of additional workers per job once a peer is known to be silent.
const WAITERS_PER_JOB: usize = 3;
/// Interval at which an additional worker looks whether the peer is silent.
const LOOK_FOR_SILENCE_EVERY: Duration = Duration::from_millis(50);

/// Queue of checks for several workers.
struct Queue<'a> {
    checks: Vec<&'a Check>,
    next: AtomicUsize,
}

impl<'a> Queue<'a> {
    fn new(checks: Vec<&'a Check>) -> Self {
        Self { checks, next: AtomicUsize::new(0) }
    }

    fn is_empty(&self) -> bool {
        self.next.load(Ordering::Relaxed) >= self.checks.len()
    }

    fn work(&self, one: impl Fn(&Check)) {
        while let Some(check) = self.checks.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            one(check);
        }
    }
}

/// Command whose first canary was answered.
struct Working {
    /// Set if an answer to it was correct.
    is_right: bool,
    /// Check id of the canary.
    canary: String,
    /// Findings about wrong answers to it.
    told: Vec<Finding>,
}

struct RunContext<'a> {
    peer: &'a Peer,
    options: &'a Options,
    around: Surroundings<'a>,
    done: &'a (dyn Fn(CheckOutcome) + Sync),
    levels: BTreeMap<ClauseId, Level>,
    rungs: Rungs,
    /// Ambient checks of each clause: command and id.
    owners: BTreeMap<ClauseId, Vec<(String, String)>>,
    /// Finished ambient checks, held back until all conversations are known.
    ambient: Mutex<Vec<FinishedAmbient>>,
    /// Findings of the other checks.
    told: Mutex<ReportedClauses>,
    /// Findings for ambient checks from other checks' conversations, at most one per key.
    routed: Mutex<Vec<Routed>>,
    /// Failing checks to be confirmed when nothing else runs.
    aside: Mutex<Vec<Deferred<Packed>>>,
    /// Checks that are masked or met a busy machine, until everything else is done.
    again: Mutex<Vec<(Check, CheckOutcome)>>,
    /// Ids of failed and flaky checks, and of first canaries that were run only for other checks.
    reporting: Mutex<BTreeSet<String>>,
    /// First canaries to which the peer was silent for as long as any start may take.
    silent_canaries: Mutex<BTreeSet<String>>,
    /// Commands whose first canary failed, with the behaviour seen instead.
    dead_commands: Mutex<BTreeMap<String, String>>,
    /// Commands whose first canary was answered.
    working_commands: Mutex<BTreeMap<String, Working>>,
    /// Keys of confirmed causes, each with the confirming check.
    confirmed_causes: Mutex<BTreeMap<String, String>>,
    /// Silences of the peer.
    silences: Silences,
    /// Checks that met a silence for which another check waits in full.
    later: Mutex<Vec<DeferredLook>>,
    /// Kept processes for further conversations.
    kept: Pool,
    /// Memory limits of conversations.
    room: MemoryLimit,
    /// Bytes held by conversations, for a run without parallel runs.
    held: Load,
}

impl RunContext<'_> {
    fn run(&self, checks: &[&Check]) {
        let (first, rest): (Vec<&Check>, Vec<&Check>) =
            checks.iter().copied().partition(|check| check.first_canary);
        for check in first {
            let _beside = self.options.beside(TurnKind::Opening);
            self.one(check);
        }
        self.ask_unasked(&rest);
        let (alone, rest): (Vec<&Check>, Vec<&Check>) = rest.into_iter().partition(|check| check.exclusive);
        let (slow, quick): (Vec<&Check>, Vec<&Check>) =
            rest.into_iter().partition(|check| check.slow || check.waits);
        // Slow checks wait nearly all the time, so they run in parallel with the others, several per thread.
        let (slow, quick, quiet) = (&Queue::new(slow), &Queue::new(quick), self.options.quiet.as_ref());
        let work = || {
            quick.work(|check| {
                let _beside = self.options.beside(TurnKind::Busy);
                self.one(check);
            });
            self.catch_up();
        };
        std::thread::scope(|scope| {
            for _ in 0..slow.checks.len().min(WAITERS_MAX) {
                scope.spawn(|| {
                    slow.work(|check| {
                        let _beside = self.options.beside(TurnKind::Waiting);
                        self.one(check);
                    });
                    self.catch_up();
                });
            }
            let jobs = self.options.jobs.max(1);
            for _ in 0..jobs {
                scope.spawn(work);
            }
            // A silent process costs time but no processor, and an in-process peer not even time. Beside other runs
            // there are no turns for more workers.
            let waits = self.peer.is_process() && self.options.seat.is_none();
            let waiters = if waits { jobs * WAITERS_PER_JOB } else { 0 };
            for _ in 0..waiters {
                scope.spawn(move || {
                    while !self.silences.any_confirmed() && !quick.is_empty() {
                        std::thread::sleep(LOOK_FOR_SILENCE_EVERY);
                    }
                    work();
                });
            }
        });
        let is_more_to_come = !alone.is_empty() || !lock(&self.aside).is_empty() || self.is_to_be_run_again();
        if let Some(seat) = &self.options.seat {
            seat.is_done();
            if is_more_to_come {
                seat.await_others();
            }
        }
        let quiet = quiet.filter(|_| is_more_to_come);
        let _alone = quiet.map(|it| it.write().unwrap_or_else(PoisonError::into_inner));
        for check in alone {
            self.one(check);
        }
        self.settle_again();
        self.settle_ambient();
    }

    /// Runs the first canary of commands that checks rely on, if it is not among the checks to run.
    fn ask_unasked(&self, checks: &[&Check]) {
        let resting = checks
            .iter()
            .filter(|check| check.vouched && skip_reason(self.peer, check, self.options).is_none());
        let commands: BTreeSet<&str> = resting.map(|check| check.command.as_str()).collect();
        for canary in self.peer.boundary.checks().iter().filter(|check| check.first_canary) {
            let asked = lock(&self.dead_commands).contains_key(&canary.command)
                || lock(&self.working_commands).contains_key(&canary.command);
            if !asked
                && commands.contains(canary.command.as_str())
                && let Ok((judgement, transcript)) = self.ask(canary)
            {
                self.note_working(canary, &judgement, &transcript);
                lock(&self.reporting).insert(canary.id.clone());
            }
        }
    }

    /// Records that a command works if its first canary was answered in time and while its input was open. Its exit
    /// afterwards does not matter.
    fn note_working(&self, canary: &Check, judgement: &Judgement, transcript: &Transcript) {
        let is_right = judgement.canaries_answered > 0;
        let is_late = judgement.findings.iter().any(|finding| finding.reason == LATE_REPLY);
        // A peer that asks and never ends would use up its time in each check and prove nothing.
        let asks = transcript.plan.steps.iter().any(|step| matches!(step.act, Act::Play { .. }));
        let hangs = asks && judgement.findings.iter().any(|finding| finding.nature == Nature::Hang);
        if judgement.is_at_work() && !is_late && !hangs {
            let about_answers = |finding: &&Finding| is_about_canary(finding, transcript);
            let told = judgement.findings.iter().filter(about_answers).cloned().collect();
            let working = Working { is_right, canary: canary.id.clone(), told };
            lock(&self.working_commands).insert(canary.command.clone(), working);
        }
    }

    /// Removes wrong answers to canaries that the first canary of the command already reports.
    fn leave_out_told(&self, check: &Check, judgement: &mut Judgement, transcript: &Transcript) {
        let working = lock(&self.working_commands);
        let Some(working) = working.get(&check.command).filter(|_| !check.first_canary) else { return };
        judgement.findings.retain(|finding| {
            let is_told = || working.told.iter().any(|told| place(told) == place(finding));
            !(finding.reason == CANARY_FAILED && is_about_canary(finding, transcript) && is_told())
        });
    }

    fn ask(&self, canary: &Check) -> Result<(Judgement, Transcript), Verdict> {
        let _beside = self.options.beside(TurnKind::Opening);
        self.attempt(canary, Wait::Full)
    }

    fn one(&self, check: &Check) {
        let Some(outcome) = self.outcome(check) else { return };
        let is_asked = || lock(&self.working_commands).contains_key(&check.command);
        if check.first_canary && !self.options.keep_going && !is_asked() {
            lock(&self.dead_commands).insert(check.command.clone(), instead(&outcome.result));
        }
        self.report(check, outcome);
    }

    /// Runs a check; `None` if it is confirmed later.
    fn outcome(&self, check: &Check) -> Option<CheckOutcome> {
        let began = Instant::now();
        let verdict = if self.around.interrupted.load(Ordering::Relaxed) {
            Some(interrupted())
        } else if self.options.enough.load(Ordering::Relaxed) {
            Some(Verdict::NotRun(ENOUGH.to_owned()))
        } else {
            let dead = || {
                let instead = lock(&self.dead_commands).get(&check.command).cloned()?;
                let detail = format!("the first canary failed: {instead}");
                Some(Verdict::Untestable(Untestable::new(Untestable::NO_WORKING_REPLY, detail)))
            };
            skip_reason(self.peer, check, self.options).or_else(dead)
        };
        if let Some(verdict) = verdict {
            return Some(self.finish(check, verdict, Judgement::default(), None, began.elapsed()));
        }
        let looked = self.first_look(check);
        self.looked(check, looked, began.elapsed())
    }

    /// Continues with a check after its first look; `None` if it is confirmed later.
    fn looked(
        &self,
        check: &Check,
        looked: Result<Option<FirstLook<'_>>, Verdict>,
        elapsed: Duration,
    ) -> Option<CheckOutcome> {
        let FirstLook { judgement, transcript, earlier, elapsed, claim: _claim } = match looked {
            Ok(looked) => looked?,
            Err(verdict) => {
                return Some(self.finish(check, verdict, Judgement::default(), None, elapsed));
            }
        };
        if check.first_canary {
            self.note_working(check, &judgement, &transcript);
        }
        let mut failed = Deferred {
            check: check.clone(),
            verdict: Verdict::Pass,
            judgement,
            transcript,
            earlier,
            elapsed,
            owner: None,
            burst: None,
        };
        if self.is_burst(&mut failed) {
            return self.to_confirm(failed);
        }
        self.tried(failed, None)
    }

    /// Plans, runs and judges a check. Uses a kept process if that shows nothing wrong.
    fn attempt(&self, check: &Check, wait: Wait) -> Result<(Judgement, Transcript), Verdict> {
        guarded(|| {
            let plan = self.plan(check)?;
            match self.go_on(check, &plan, wait) {
                Some(clean) => Ok(clean),
                None => self.converse(check, plan, None, wait, 1.0),
            }
        })
    }

    /// Plans, runs and judges a check in a process of its own, with time limits multiplied by `times`.
    fn attempt_within(
        &self,
        check: &Check,
        wait: Wait,
        times: f64,
    ) -> Result<(Judgement, Transcript), Verdict> {
        guarded(|| self.converse(check, self.plan(check)?, None, wait, times))
    }

    /// Judges the conversation of a check.
    fn judged(&self, check: &Check, transcript: Transcript) -> Result<(Judgement, Transcript), Verdict> {
        if let Some(finding) = first_contact::deaf(check, &transcript) {
            return Ok((Judgement { findings: vec![finding], ..Judgement::default() }, transcript));
        }
        for event in &transcript.events {
            if let EventKind::StartFailed { error } = &event.kind {
                let why = Untestable::new(Untestable::NOT_STARTED, visible(error));
                return Err(Verdict::Untestable(why));
            }
        }
        let mut judgement = boundary::judge(self.peer.boundary, &transcript);
        self.leave_out_told(check, &mut judgement, &transcript);
        if judgement.counted.is_empty() {
            judgement.counted = transcript.kills();
        }
        if judgement.untestable.is_none() {
            judgement.untestable =
                trial::left_out(self.peer.boundary, &transcript, judgement.choice.is_some())
                    .or_else(|| trial::broken_off(&transcript, &judgement.findings));
        }
        if let Some(choice) = &mut judgement.choice
            && let Some(pinned) = self.peer.facts.choices.get(&choice.key)
        {
            // A behaviour that fits several values is written `a|b`.
            if choice.value.split('|').any(|value| value == pinned) {
                choice.value.clone_from(pinned);
                choice.pinned = true;
            } else if let Some(clause) = check.clauses.first() {
                let got = format!("{} = {}", choice.key, choice.value);
                let expected = format!("{} = {pinned}, as set under [choices]", choice.key);
                judgement.findings.push(Finding::new(clause.0.as_str(), "other_choice", expected, got));
            }
        }
        Ok((judgement, transcript))
    }

    fn verdict(&self, check: &Check, judgement: &Judgement) -> Verdict {
        Verdict::of_findings(&judgement.findings).unwrap_or_else(|| self.without_findings(check, judgement))
    }

    /// Verdict for the clauses without a finding.
    fn without_findings(&self, check: &Check, judgement: &Judgement) -> Verdict {
        if let Some(reason) = &judgement.untestable {
            return Verdict::Untestable(reason.clone());
        }
        let working = lock(&self.working_commands);
        let working = working.get(&check.command);
        let vouched = check.vouched && working.is_some_and(|working| working.is_right);
        if judgement.canaries_answered == 0 && !vouched {
            let is_misanswered = judgement.canaries_misanswered > 0 || check.vouched;
            let told = working.filter(|_| is_misanswered && !check.first_canary);
            if let Some((working, told)) = told.and_then(|working| Some((working, working.told.first()?))) {
                return Verdict::Masked(ambient::mask(told, &working.canary));
            }
            return Verdict::Untestable(Untestable::new(Untestable::NO_WORKING_REPLY, NO_CANARY_ANSWERED));
        }
        match &judgement.choice {
            Some(choice) => Verdict::Open(choice.phrase()),
            None if self.all_open(check) => Verdict::Open("within the allowed set".to_owned()),
            None => Verdict::Pass,
        }
    }

    fn is_should(&self, finding: &Finding) -> bool {
        self.levels.get(&finding.clause) == Some(&Level::Should)
    }

    fn all_open(&self, check: &Check) -> bool {
        check.clauses.iter().all(|clause| self.levels.get(clause) == Some(&Level::Open))
    }

    fn finish(
        &self,
        check: &Check,
        verdict: Verdict,
        judgement: Judgement,
        transcript: Option<Transcript>,
        elapsed: Duration,
    ) -> CheckOutcome {
        let failure = transcript.and_then(|transcript| {
            judgement.findings.first().map(|finding| Failure {
                check: check.id.clone(),
                transcript: transcript.into(),
                finding: finding.clone(),
            })
        });
        let is_named = |clause: &ClauseId| judgement.findings.iter().any(|finding| finding.clause == *clause);
        let of_should = judgement.findings.iter().all(|finding| self.is_should(finding));
        let has_rest = !judgement.findings.is_empty() && of_should && !check.clauses.iter().all(is_named);
        let result = CheckResult {
            id: check.id.clone(),
            title: check.title.clone(),
            rung: self.rungs.of_check(&check.id),
            first_canary: check.first_canary.then(|| check.command.clone()),
            reason: judgement.findings.first().map(|finding| finding.reason.clone()),
            verdict,
            rest: has_rest.then(|| self.without_findings(check, &judgement)),
            clauses: self.clauses_of(check, &judgement.findings),
            choice: judgement.choice,
            findings: judgement.findings,
            counted: judgement.counted,
            confirmed_by: None,
            reproducer: None,
            conversation: Vec::new(),
            wrong_line: None,
            others: Vec::new(),
            ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
        };
        CheckOutcome { result, failure }
    }

    /// Clauses of a check and of its findings, each with its own level.
    fn clauses_of(&self, check: &Check, findings: &[Finding]) -> Vec<ClauseRef> {
        let mut clauses = check.clauses.clone();
        for finding in findings {
            if !clauses.contains(&finding.clause) {
                clauses.push(finding.clause.clone());
            }
        }
        clauses.iter().map(|clause| self.clause_ref(clause)).collect()
    }

    fn clause_ref(&self, clause: &ClauseId) -> ClauseRef {
        ClauseRef { id: clause.clone(), level: self.levels.get(clause).copied().unwrap_or(Level::Must) }
    }
}

/// True for a finding about a timely but wrong answer to a canary.
fn is_about_canary(finding: &Finding, transcript: &Transcript) -> bool {
    let step = finding.step.and_then(|step| transcript.plan.steps.get(step));
    let is_missing = finding.is_of_time() || finding.lacks_answer();
    step.is_some_and(|step| step.canary) && finding.nature == Nature::Violation && !is_missing
}

/// Repair of a finding without the correct value, which belongs to the message.
fn place(finding: &Finding) -> Option<Repair> {
    finding.repair.clone().map(|repair| match repair {
        Repair::Set { at, .. } => Repair::other(at),
        other => other,
    })
}

/// Verdict of a check that an interrupt kept from running, finishing or being confirmed.
pub fn interrupted() -> Verdict {
    Verdict::Untestable(Untestable::new(Untestable::INTERRUPTED, ""))
}

/// Runs an attempt. A panic becomes a harness fault of this check alone.
fn guarded<T>(attempt: impl FnOnce() -> Result<T, Verdict>) -> Result<T, Verdict> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(attempt)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str);
        let said = said.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Err(Verdict::HarnessError(format!("peerproof panicked: {said}")))
    })
}

/// Locks a mutex. A panic of a worker has already been reported, and its data is still valid.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
