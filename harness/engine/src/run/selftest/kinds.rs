//! Kinds of trouble in which a correct peer must stay clean, and in which the result of a check must not depend on
//! other checks.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::correct::HEAVY_BYTES;
use super::look::{WAITERS_PER_JOB, arguments};
use super::row::is_at_risk;
use super::{FalsePositive, Proof, Workshop};
use crate::data::blame::HarnessFault;
use crate::data::check::{Check, Untestable};
use crate::data::plan::{Act, Plan};
use crate::drive::peer::{Origin, Peer};
use crate::drive::presentation::{Harmless, REPLY_AFTER_MS};
use crate::drive::reference_peers::Reference;
use crate::drive::slowdown::LOAD_ARGUMENT;
use crate::run::runner::{self, CheckOutcome, Options};
use crate::run::verdict::Verdict;

/// Kind of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TroubleKind {
    /// Minimal configuration of each role: checks must not be skipped silently.
    LeastRoles,
    /// Processes that wait five seconds before reading or writing.
    SlowStart,
    /// Peers that answer one second late. Peers that ask are excluded, because they have times of their own.
    LateReplies,
    /// Eight busy processes beside the peer.
    Busy,
    /// Each check run alone, whose result must equal that in the whole run.
    Alone,
}

impl TroubleKind {
    /// All kinds; the one that measures comes first.
    pub const ALL: &'static [Self] =
        &[Self::Busy, Self::LeastRoles, Self::SlowStart, Self::LateReplies, Self::Alone];

    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::LeastRoles => "least-roles",
            Self::SlowStart => "slow-start",
            Self::LateReplies => "late-replies",
            Self::Busy => "busy",
            Self::Alone => "alone",
        }
    }
}

/// Check whose result differs when run alone.
#[derive(Debug)]
pub struct Differing {
    /// Name of the peer.
    pub peer: String,
    /// Id of the check.
    pub check: String,
    /// Verdict and clauses of its findings when run alone.
    pub alone: String,
    /// Verdict and clauses of its findings in the whole run.
    pub whole: String,
}

/// Number of busy processes beside a peer.
const BUSY_PROCESSES: usize = 8;
/// Number of checks per reference that run as processes in real time.
const SAMPLE: usize = 24;
/// Number of checks per mutant that only processes can play.
const SAMPLE_OF_MUTANT: usize = 12;
/// Number of parallel conversations with processes that mostly wait.
const SLEEPERS: usize = 16;
/// Maximum number of processes in one conversation of a sample.
const SESSIONS_MAX: usize = 3;
/// One of this many mutants is run whole and check by check.
const MUTANTS_PER_SAMPLE: usize = 10;
/// Maximum number of mutants per reference that are compared inside this process.
const INSIDE_MUTANTS: usize = 8;
/// Maximum number of mutants per reference that are compared as processes.
const PROCESS_MUTANTS: usize = 4;

impl Workshop<'_> {
    /// Proof of one kind only, without mutants.
    pub fn prove_kind(&self, kind: TroubleKind, said: &(dyn Fn(String) + Sync)) -> Proof {
        let mut proof = Proof::default();
        self.enter_kind(kind, &mut proof, said);
        self.summarise(&[], &mut proof);
        proof.unproved.clear();
        proof.summary.redundant.clear();
        proof
    }

    /// Runs the peers of one kind and adds the results to the proof.
    pub(super) fn enter_kind(&self, kind: TroubleKind, proof: &mut Proof, said: &(dyn Fn(String) + Sync)) {
        said(format!("kind {}", kind.name()));
        let busy = (kind == TroubleKind::Busy).then(|| self.make_busy());
        let busy = match busy.transpose() {
            Ok(busy) => busy,
            Err(error) => return proof.problems.push(error.into()),
        };
        let mut found = KindResults::default();
        for reference in self.played.references().into_iter().take_while(|_| !self.is_interrupted()) {
            match kind {
                TroubleKind::LeastRoles => self.least_roles(&reference, &mut found),
                TroubleKind::SlowStart => self.slow(&reference, kind, Harmless::SlowStart, &mut found),
                TroubleKind::LateReplies => self.slow(&reference, kind, Harmless::LateReplies, &mut found),
                TroubleKind::Busy => self.sampled(&reference, kind, &[], self.options.jobs, &mut found),
                TroubleKind::Alone => self.alone(&reference, &mut found),
            }
        }
        drop(busy);
        let has_roles = self.boundary().description().config_keys.iter().any(|key| key.table() == "roles");
        if kind == TroubleKind::LeastRoles && has_roles && found.forms == 0 && !self.is_interrupted() {
            found.problems.push(format!("{}: no role has less in any form", kind.name()));
        }
        found.enter(kind, proof);
    }

    /// Starts processes that keep the processors busy until dropped.
    fn make_busy(&self) -> Result<Vec<Busy>, HarnessFault> {
        let start = |_| {
            let mut command = Command::new(&self.around.actor_exe.program);
            command.arg(LOAD_ARGUMENT).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
            let child = command.spawn().map_err(|error| format!("cannot start a busy process: {error}"))?;
            Ok(Busy(child))
        };
        (0..BUSY_PROCESSES).map(start).collect()
    }

    /// Runs the reference with one role at a time minimally configured, against the checks whose plans depend on it.
    fn least_roles(&self, reference: &Reference, found: &mut KindResults) {
        let usual = self.played.facts_of(reference);
        for (role, value) in self.played.least_roles(reference.side) {
            let mut facts = usual.clone();
            let is_absent = value.is_null();
            match is_absent {
                true => facts.roles.remove(role),
                false => facts.roles.insert(role.to_owned(), value),
            };
            let (peer, checks) = match self.machine_peer(reference, &[], None, None) {
                Some(peer) => (peer, self.light_checks(reference)),
                None => match (self.process)(reference, &[]) {
                    Ok(peer) => (peer, self.process_checks(reference, usize::MAX)),
                    Err(error) => return found.problems.push(error.into()),
                },
            };
            let peer = Peer { facts: facts.clone(), ..peer };
            let plans: BTreeMap<&str, (Option<Plan>, Option<Plan>)> = checks
                .iter()
                .map(|check| (check.id.as_str(), (self.plan(check, &usual), self.plan(check, &facts))))
                .filter(|(_, (usual, least))| usual != least)
                .collect();
            let needs = |check: &Check| is_absent && check.roles.iter().any(|needed| needed == role);
            let is_of = |check: &&Check| plans.contains_key(check.id.as_str()) || needs(check);
            let checks: Vec<&Check> = checks.into_iter().filter(is_of).collect();
            if checks.is_empty() {
                // The plans are equal, so there is nothing to try.
                continue;
            }
            let needing: BTreeSet<&str> =
                checks.iter().filter(|check| needs(check)).map(|check| check.id.as_str()).collect();
            let name = format!("role {role} {}", if is_absent { "absent" } else { "at its least" });
            let mut empty = Vec::new();
            self.run(&peer, &checks, !peer.is_process(), 1, &mut |outcome| {
                let id = outcome.result.id.as_str();
                let is_less = match plans.get(id) {
                    Some((Some(usual), Some(least))) => is_emptier(least, usual),
                    _ => false,
                };
                if outcome.result.verdict.is_good() && (is_less || needing.contains(id)) {
                    empty.push((name.clone(), outcome.result.id.clone()));
                }
                found.complain(&name, outcome);
            });
            found.false_greens.extend(empty);
            found.forms += 1;
        }
    }

    /// Checks that run in this process and write little.
    fn light_checks(&self, reference: &Reference) -> Vec<&Check> {
        let checks = self.checks_inside(reference);
        checks.into_iter().filter(|(bytes, _)| *bytes <= HEAVY_BYTES).map(|(_, check)| check).collect()
    }

    /// Up to `count` checks for processes of this reference, spread over the list, without those that measure or take
    /// long.
    fn process_checks(&self, reference: &Reference, count: usize) -> Vec<&Check> {
        let facts = self.played.facts_of(reference);
        let is_light = |check: &&Check| {
            let plan = self.plan(check, &facts);
            plan.is_some_and(|plan| plan.sessions.len() <= SESSIONS_MAX)
                && self.bytes_written(check, reference) <= HEAVY_BYTES
        };
        let checks = self.boundary().checks().iter().filter(|check| {
            !check.slow
                && !check.exclusive
                && reference.commands.iter().any(|(name, _)| *name == check.command)
        });
        let checks: Vec<&Check> = checks.filter(is_light).collect();
        let every = checks.len().div_ceil(count).max(1);
        checks.into_iter().step_by(every).collect()
    }

    /// Runs a slow reference: all possible checks on a virtual clock, and a sample as processes.
    fn slow(&self, reference: &Reference, kind: TroubleKind, how: Harmless, found: &mut KindResults) {
        if let Some(peer) = self.machine_peer(reference, &[], Some(how), None) {
            let mut checks = self.light_checks(reference);
            checks.retain(|check| self.is_of(kind, check, reference));
            let groups: Vec<&[&Check]> = checks.chunks(SAMPLE).collect();
            let outcomes = Mutex::new(Vec::new());
            self.each(1, &groups, |checks| {
                let peer = Peer { pace: Arc::default(), ..peer.clone() };
                self.run(&peer, checks, true, 1, &mut |outcome| lock(&outcomes).push(outcome));
            });
            for outcome in outcomes.into_inner().unwrap_or_default() {
                found.complain(kind.name(), outcome);
            }
            found.forms += 1;
        }
        self.sampled(reference, kind, &how.process_arguments(), SLEEPERS, found);
    }

    /// Runs a sample of a reference's checks with processes.
    fn sampled(
        &self,
        reference: &Reference,
        kind: TroubleKind,
        extra: &[String],
        jobs: usize,
        found: &mut KindResults,
    ) {
        let peer = match (self.process)(reference, extra) {
            Ok(peer) => peer,
            Err(error) => return found.problems.push(error.into()),
        };
        let mut checks = self.process_checks(reference, SAMPLE);
        checks.retain(|check| self.is_of(kind, check, reference));
        let options = Options { keep_going: true, jobs, ..self.options.clone() };
        let name = format!("{}, as processes", kind.name());
        let outcomes = self.outcomes(&peer, &checks, &options);
        if kind == TroubleKind::LateReplies && !is_late(&peer) {
            // It answers nobody, so it has no late replies.
            return;
        }
        let says_nothing = |outcome: &CheckOutcome| {
            let verdict = &outcome.result.verdict;
            !verdict.is_good() && !verdict.is_failure()
        };
        if !outcomes.is_empty() && outcomes.iter().all(says_nothing) {
            found.problems.push(format!("{name}: nothing was decided by {} checks", outcomes.len()));
        }
        for outcome in outcomes {
            found.complain(&name, outcome);
        }
        found.forms += 1;
    }

    /// True if a check applies to peers of this kind.
    fn is_of(&self, kind: TroubleKind, check: &Check, reference: &Reference) -> bool {
        let asks = |plan: &Plan| plan.steps.iter().any(|step| matches!(step.act, Act::Play { .. }));
        kind != TroubleKind::LateReplies
            || !self.plan(check, &self.played.facts_of(reference)).is_some_and(|plan| asks(&plan))
    }

    fn outcomes(&self, peer: &Peer, checks: &[&Check], options: &Options) -> Vec<CheckOutcome> {
        let outcomes = Mutex::new(Vec::new());
        runner::run(peer, checks, options, self.around, &|outcome| lock(&outcomes).push(outcome));
        outcomes.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Compares the whole run with each check alone, for the reference and some of its mutants.
    fn alone(&self, reference: &Reference, found: &mut KindResults) {
        let mutants = self.played.mutants();
        let mutants: Vec<_> = mutants.iter().filter(|it| self.played.plays(reference, it)).collect();
        let runs_inside = self.machine_peer(reference, &[], None, None).is_some();
        let chosen: Vec<_> = match runs_inside {
            true => {
                let inside: Vec<_> = mutants.into_iter().filter(|it| !it.needs_process).collect();
                let every = inside.len().div_ceil(INSIDE_MUTANTS).max(MUTANTS_PER_SAMPLE);
                inside.into_iter().step_by(every).collect()
            }
            false => {
                let every = mutants.len().div_ceil(PROCESS_MUTANTS).max(1);
                mutants.into_iter().step_by(every).collect()
            }
        };
        let ambient = self.boundary().checks().iter().filter(|check| check.ambient);
        let is_spoken = |check: &&Check| reference.commands.iter().any(|(name, _)| *name == check.command);
        let ambient: Vec<&Check> = ambient.filter(is_spoken).collect();
        let forms: Vec<_> = std::iter::once(None).chain(chosen.into_iter().map(Some)).collect();
        let all = self.each(1, &forms, |mutant| {
            let extra = mutant.map(arguments).unwrap_or_default();
            let name = mutant.map_or_else(|| "reference".to_owned(), |mutant| mutant.id.to_owned());
            if let Some(peer) =
                self.machine_peer(reference, &extra, None, mutant.and_then(|mutant| mutant.unclaimed))
            {
                let checks = self.light_checks(reference);
                return Ok((checks.len(), self.differing(&name, &peer, &checks, &checks)));
            }
            let peer = match mutant {
                Some(mutant) => self.process_peer(reference, mutant)?,
                None => (self.process)(reference, &[])?,
            };
            let mut checks: Vec<&Check> = match mutant {
                Some(mutant) => {
                    let light = self.process_checks(reference, usize::MAX);
                    let (at_risk, rest): (Vec<_>, Vec<_>) =
                        light.into_iter().partition(|check| is_at_risk(check, mutant));
                    at_risk.into_iter().chain(rest).take(SAMPLE_OF_MUTANT).collect()
                }
                None => self.process_checks(reference, SAMPLE),
            };
            let alone = checks.clone();
            let known: BTreeSet<&str> = alone.iter().map(|check| check.id.as_str()).collect();
            checks.extend(ambient.iter().filter(|check| !known.contains(check.id.as_str())));
            Ok((alone.len(), self.differing(&name, &peer, &checks, &alone)))
        });
        found.forms += forms.len();
        for one in all {
            match one {
                Ok((checks, differing)) => {
                    found.checks += checks;
                    found.differing.extend(differing);
                }
                Err(error) => found.problems.push(error),
            }
        }
    }

    /// Checks of `alone` whose result differs from that in a run of `whole`.
    fn differing(&self, name: &str, peer: &Peer, whole: &[&Check], alone: &[&Check]) -> Vec<Differing> {
        let slow = matches!(peer.origin, Origin::InProcess(_));
        let options = Options {
            slow,
            very_slow: slow,
            keep_going: true,
            jobs: 1,
            confirm: if slow { 1 } else { self.options.confirm },
            ..self.options.clone()
        };
        let fresh = || Peer { pace: Arc::default(), ..peer.clone() };
        let together: BTreeMap<String, CheckVerdict> = self
            .outcomes(&fresh(), whole, &options)
            .into_iter()
            .map(|outcome| (outcome.result.id.clone(), CheckVerdict::of(&outcome)))
            .collect();
        let watchers = self.boundary().checks().iter().filter(|check| check.ambient);
        let watched = watchers.flat_map(|check| &check.clauses).map(|clause| clause.0.as_str()).collect();
        let told = together.values().flat_map(|said| said.clauses.iter().map(String::as_str)).collect();
        // An unknown process is awaited for longer.
        let threads_per_job = if slow { 1 } else { WAITERS_PER_JOB };
        let differing = self.each(threads_per_job, alone, |check| {
            let outcomes = self.outcomes(&fresh(), &[*check], &options);
            let alone = outcomes.iter().find(|outcome| outcome.result.id == check.id).map(CheckVerdict::of);
            let (alone, whole) = (alone.unwrap_or_default(), together.get(&check.id));
            (!whole.is_some_and(|whole| alone.agrees(whole, check, &watched, &told))).then(|| Differing {
                peer: name.to_owned(),
                check: check.id.clone(),
                alone: alone.text(),
                whole: whole.map(CheckVerdict::text).unwrap_or_default(),
            })
        });
        differing.into_iter().flatten().collect()
    }
}

/// True if an answer of the peer was measurably late.
fn is_late(peer: &Peer) -> bool {
    let late = Some(Duration::from_millis(REPLY_AFTER_MS));
    peer.pace.all().values().any(|measured| measured.start_up >= late || measured.latency >= late)
}

/// Results of one kind.
#[derive(Default)]
struct KindResults {
    forms: usize,
    /// Number of checks that ran.
    checks: usize,
    false_positives: Vec<FalsePositive>,
    false_greens: Vec<(String, String)>,
    differing: Vec<Differing>,
    problems: Vec<String>,
}

impl KindResults {
    /// Records everything that an outcome says against the peer, even if it did not repeat.
    fn complain(&mut self, form: &str, outcome: CheckOutcome) {
        self.checks += 1;
        let check = outcome.result.id;
        if let Verdict::HarnessError(error) = outcome.result.verdict {
            self.problems.push(format!("{form}: {check}: {error}"));
        }
        self.false_positives.extend(outcome.result.findings.into_iter().map(|finding| FalsePositive {
            variant: form.to_owned(),
            check: check.clone(),
            finding,
        }));
    }

    fn enter(self, kind: TroubleKind, proof: &mut Proof) {
        proof.kinds.push((kind, self.forms, self.checks));
        proof.false_positives.extend(self.false_positives);
        proof.false_greens.extend(self.false_greens);
        proof.differing.extend(self.differing);
        proof.problems.extend(self.problems);
    }
}

/// Busy process, killed when dropped.
struct Busy(Child);

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Result of a check: its verdict, and the clauses in its findings or mask.
#[derive(Default)]
struct CheckVerdict {
    word: &'static str,
    clauses: BTreeSet<String>,
    masked_by: Option<String>,
    /// Set if the machine was too busy.
    was_too_busy: bool,
}

impl CheckVerdict {
    fn of(outcome: &CheckOutcome) -> Self {
        let verdict = &outcome.result.verdict;
        let masked_by = match verdict {
            Verdict::Masked(cause) => cause.split_whitespace().next().map(str::to_owned),
            _ => None,
        };
        let clauses = outcome.result.findings.iter().map(|finding| finding.clause.0.clone()).collect();
        let was_too_busy = verdict.is_untestable(Untestable::TOO_BUSY);
        Self { word: verdict.word(), clauses, masked_by, was_too_busy }
    }

    /// True if the result alone agrees with the whole run. There, an ambient check may take findings about the clauses
    /// in `watched`. An ambient check itself sees more there, but leaves the clauses in `told` to others.
    fn agrees(&self, whole: &Self, check: &Check, watched: &BTreeSet<&str>, told: &BTreeSet<&str>) -> bool {
        if self.was_too_busy || whole.was_too_busy {
            return true;
        }
        match &whole.masked_by {
            Some(clause) => self.clauses.contains(clause) || self.masked_by.as_ref() == Some(clause),
            None if check.ambient => self.clauses.difference(&whole.clauses).all(|clause| {
                told.contains(clause.as_str()) && !check.clauses.contains(&clause.as_str().into())
            }),
            None if self.clauses == whole.clauses => self.word == whole.word,
            None => {
                let is_watched = |clause: &String| watched.contains(clause.as_str());
                !whole.clauses.is_empty()
                    && self.clauses.is_superset(&whole.clauses)
                    && self.clauses.difference(&whole.clauses).all(is_watched)
            }
        }
    }

    fn text(&self) -> String {
        let clauses: Vec<&str> = self.clauses.iter().chain(&self.masked_by).map(String::as_str).collect();
        format!("{} {}", self.word, clauses.join(" ")).trim_end().to_owned()
    }
}

/// Number of steps that test something, without canaries.
fn tries(plan: &Plan) -> usize {
    let tries = |act: &Act| {
        matches!(act, Act::Send { .. } | Act::Play { .. } | Act::Signal(_) | Act::ProbeActor { .. })
    };
    plan.steps.iter().filter(|step| !step.canary && tries(&step.act)).count()
}

/// True if a plan omits tests of another. Generated conversations vary in length anyway.
fn is_emptier(plan: &Plan, than: &Plan) -> bool {
    let (tried, usual) = (tries(plan), tries(than));
    tried < usual && (tried == 0 || !plan.by_model)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::drive::fixture::ActorExe;
    use crate::run::runner::Surroundings;
    use crate::toy::Toy;

    #[test]
    fn no_plan_is_made_once_the_user_asks_to_stop() {
        let interrupted = Arc::new(AtomicBool::new(false));
        let (actor_exe, options) = (ActorExe::new(Path::new("/nowhere")), Options::default());
        let workshop = Workshop {
            played: &Toy,
            process: &|_, _| Err("no process is started here".into()),
            options: &options,
            around: Surroundings {
                actor_exe: &actor_exe,
                scratch: Path::new("/nowhere"),
                interrupted: &interrupted,
            },
        };
        let reference = &workshop.played.references()[0];
        assert!(!workshop.process_checks(reference, 1).is_empty());
        interrupted.store(true, Ordering::Relaxed);
        assert!(workshop.process_checks(reference, 1).is_empty());
    }
}
