//! Tests of confirming lateness, with processes that never answer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

use crate::contract::boundary::{Benchmark, Boundary, Description, Discovery, Wire};
use crate::data::blame::Misconfigured;
use crate::data::carriage::HTTP;
use crate::data::check::{Check, Untestable};
use crate::data::clause::{Clause, Side};
use crate::data::facts::Facts;
use crate::data::finding::{Finding, Judgement, Nature};
use crate::data::plan::Plan;
use crate::data::rng::Rng;
use crate::data::transcript::Transcript;
use crate::drive::fixture::ActorExe;
use crate::drive::peer::{Origin, Peer};
use crate::run::runner::{Options, Surroundings, lock, prepare_for, run};
use crate::run::verdict::Verdict;
use crate::toy::{self, Toy};

/// Probe that dies at once, so that nothing excuses the peer.
const NO_PROBE: &str = "/bin/false";
/// Probe that always reports a machine too busy.
const SLOW_PROBE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/probe/slow.sh");
/// Probe that reports a machine on which a peer needs several times as long.
const BUSY_PROBE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/probe/busy.sh");
/// Reads everything and never answers.
const SILENT: &str = "while read -r _; do :; done; sleep 60";
/// Writes the beginning of a line, then never answers.
const CUT: &str = "printf hel; while read -r _; do :; done; sleep 60";

/// Toy boundary that records which conversations run.
#[derive(Default)]
struct Watched {
    quiet: Arc<RwLock<()>>,
    seen: Mutex<Occupancy>,
    /// Findings of each attempt, instead of those of the toy.
    told: Option<fn(usize) -> Vec<Finding>>,
    looks: AtomicUsize,
    /// Plans of its probes.
    probes: Vec<Plan>,
}

#[derive(Default)]
struct Occupancy {
    begun: BTreeSet<String>,
    /// Checks with a running conversation; true if it is their first.
    active: BTreeMap<String, bool>,
    /// Number of running conversations when the last one of each check began, itself included.
    company: BTreeMap<String, usize>,
    /// Maximum number of parallel confirmations.
    together: usize,
    /// Conversations that ran beside a confirmation.
    disturbed: Vec<String>,
}

impl Watched {
    fn begins(&self, check: &str) {
        let seen = &mut *lock(&self.seen);
        let is_first = seen.begun.insert(check.to_owned());
        let others = seen.active.clone();
        if others.values().any(|other| *other != is_first) || is_first == self.quiet.try_read().is_err() {
            seen.disturbed.push(format!("{check}, first {is_first}, beside {others:?}"));
        }
        seen.active.insert(check.to_owned(), is_first);
        seen.company.insert(check.to_owned(), seen.active.len());
        if !is_first {
            seen.together = seen.together.max(seen.active.len());
        }
    }
}

impl Boundary for Watched {
    fn description(&self) -> &'static Description {
        Toy.description()
    }

    fn clauses(&self) -> &[Clause] {
        Toy.clauses()
    }

    fn checks(&self) -> &[Check] {
        Toy.checks()
    }

    fn admit(&self, transcript: &Transcript) -> Result<(), Misconfigured> {
        Toy.admit(transcript)
    }

    fn judge(&self, transcript: &Transcript) -> Judgement {
        lock(&self.seen).active.remove(&transcript.check);
        let Some(told) = self.told else { return Toy.judge(transcript) };
        Judgement { findings: told(self.looks.fetch_add(1, Ordering::Relaxed)), ..Judgement::default() }
    }

    fn generate(&self, facts: &Facts, rng: &mut Rng) -> Plan {
        Toy.generate(facts, rng)
    }
}

impl Wire for Watched {}

impl Discovery for Watched {
    fn probes(&self, _facts: &Facts) -> Vec<Plan> {
        self.probes.clone()
    }
}

impl Benchmark for Watched {}

/// Peer that is a shell script.
fn peer(script: &str, watched: &'static Watched) -> Peer {
    let peer = Peer {
        name: "sh".to_owned(),
        boundary: watched,
        commands: [(toy::COMMAND.to_owned(), ["/bin/sh", "-c", script].map(str::to_owned).to_vec())].into(),
        env: Vec::new(),
        facts: Facts::new(Side::Provider),
        features_given: true,
        origin: Origin::Process { base_env: Vec::new(), current_dir: None, cpus: Vec::new() },
        pace: Arc::default(),
    };
    peer.pace.saw_start_up(toy::COMMAND, Duration::from_millis(300));
    peer
}

/// Runs this many checks against a shell peer beside this probe; returns the verdicts and a record of the
/// conversations.
fn run_all(script: &str, probe: &str, checks: usize) -> (Vec<Verdict>, Occupancy) {
    let watched: &'static Watched = Box::leak(Box::default());
    let clauses = Toy.checks()[0].clauses.clone();
    let check = |n: usize| {
        let id = format!("toy/{n}");
        let planner = {
            let id = id.clone();
            move |_: &Facts, _: &mut Rng| {
                watched.begins(&id);
                let mut plan = toy::plan();
                // Waits the whole time for a reply, without being a plan of canaries only.
                plan.steps[0].canary = true;
                plan.steps[1].expect = serde_json::Value::Bool(true);
                Ok(plan)
            }
        };
        // Checks that wait have threads of their own.
        Check { waits: n == 1, ..Check::new(id, "t", clauses.clone(), toy::COMMAND, planner) }
    };
    let checks: Vec<Check> = (0..checks).map(check).collect();
    let verdicts = run_checks(&peer(script, watched), probe, watched, &checks);
    (verdicts.into_values().collect(), std::mem::take(&mut lock(&watched.seen)))
}

/// Verdicts of these checks, by id.
fn run_checks(
    peer: &Peer,
    probe: &str,
    watched: &'static Watched,
    checks: &[Check],
) -> BTreeMap<String, Verdict> {
    let (scratch, verdicts) = (tempfile::tempdir().unwrap(), Mutex::<BTreeMap<_, _>>::default());
    let around = Surroundings {
        actor_exe: &ActorExe::new(probe),
        scratch: scratch.path(),
        interrupted: &Arc::default(),
    };
    let quiet = Some(Arc::clone(&watched.quiet));
    let mut options = Options { timeout_scale: 0.1, confirm: 2, quiet, ..Options::default() };
    let mut prepared = peer.clone();
    let all: Vec<&Check> = checks.iter().collect();
    options.silent = prepare_for(&all, &mut prepared, &options, around).unwrap();
    run(&prepared, &all, &options, around, &|outcome| {
        let before = lock(&verdicts).insert(outcome.result.id, outcome.result.verdict);
        assert_eq!(before, None, "a check is reported once");
    });
    verdicts.into_inner().unwrap()
}

#[test]
fn times_are_confirmed_together_and_beside_nothing_else() {
    let (verdicts, seen) = run_all(CUT, NO_PROBE, 6);
    assert_eq!(verdicts, vec![Verdict::Fail; 6]);
    assert_eq!(seen.disturbed, Vec::<String>::new());
    assert!(seen.together > 1, "one by one");
}

#[test]
fn times_are_confirmed_one_by_one_on_a_busy_machine() {
    let (verdicts, seen) = run_all(CUT, SLOW_PROBE, 2);
    for verdict in verdicts {
        assert!(verdict.is_untestable("too_busy"), "{verdict:?}");
    }
    assert_eq!(seen.disturbed, Vec::<String>::new());
    assert_eq!(seen.together, 2, "they were tried together before");
    assert_eq!(seen.company.into_values().collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn what_shows_with_more_time_is_no_lateness() {
    assert_eq!(run_all(SILENT, BUSY_PROBE, 1).0, [Verdict::Hang]);
}

#[test]
fn what_breaks_one_clause_each_time_fails_whatever_its_reason() {
    let told = |look: usize| {
        let of = |reason: &str| Finding::new("TOY-ECHO-01", reason, "a line", "another");
        // The second attempt shows only a secondary finding of the first.
        if look == 0 { vec![of("a"), of("b")] } else { vec![of("b")] }
    };
    let watched: &'static Watched = Box::leak(Box::new(Watched { told: Some(told), ..Watched::default() }));
    let check = Toy.checks()[0].clone();
    let verdicts = run_checks(&peer("cat", watched), NO_PROBE, watched, &[check]);
    assert_eq!(verdicts.into_values().collect::<Vec<_>>(), [Verdict::Fail]);
}

#[test]
fn what_stays_when_lateness_is_gone_is_not_flaky() {
    let told = |look: usize| {
        let late = Finding::new("TOY-OTHER-01", "late_reply", "a reply in time", "a late one");
        let stays = Finding::new("TOY-ECHO-01", "other", "a line", "another");
        if look == 0 { vec![late.of_nature(Nature::Hang), stays] } else { vec![stays] }
    };
    let watched: &'static Watched = Box::leak(Box::new(Watched { told: Some(told), ..Watched::default() }));
    let check = Toy.checks()[0].clone();
    let verdicts = run_checks(&peer("cat", watched), NO_PROBE, watched, &[check]);
    assert_eq!(verdicts.into_values().collect::<Vec<_>>(), [Verdict::Fail]);
}

/// One check's conversation breaks a clause of another by silence once, and never again.
#[test]
fn no_check_is_masked_by_one_that_passes() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "read -r line; if [ \"$line\" = other ] && mkdir {}/once 2>/dev/null; then sleep 60; fi; echo \"$line\"; cat",
        folder.path().display()
    );
    let watched: &'static Watched = Box::leak(Box::default());
    let of_line = |id: &str, clause: &str, line: &'static str| {
        Check::new(id, "t", [clause], toy::COMMAND, move |_, _| {
            let mut plan = toy::plan();
            if let crate::data::plan::Act::Send { payload, .. } = &mut plan.steps[0].act {
                *payload = crate::data::payload::Payload::text(line);
            }
            Ok(plan)
        })
    };
    let owner = Check { ambient: true, ..of_line("toy/owner", "TOY-ECHO-01", "owner\n") };
    let other = of_line("toy/other", "TOY-OTHER-01", "other\n");
    let verdicts = run_checks(&peer(&script, watched), NO_PROBE, watched, &[owner, other]);
    assert!(folder.path().join("once").exists(), "it was silent");
    for (check, verdict) in verdicts {
        // The toy has no canaries.
        assert!(verdict.is_untestable("no_working_reply"), "{check}: {verdict:?}");
    }
}

#[test]
fn a_check_that_the_machine_was_too_busy_for_runs_again_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    // Slow while checks are confirmed together and one by one, then without effect.
    let probe = folder.path().join("probe");
    let slow = std::fs::read_to_string(SLOW_PROBE).unwrap();
    let counts = "#!/bin/sh\necho >> \"$0.starts\"\n[ $(wc -l < \"$0.starts\") -gt 7 ] && exit 1\n";
    std::fs::write(&probe, format!("{counts}{slow}")).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&probe, mode).unwrap();
    assert_eq!(run_all(SILENT, &probe.to_string_lossy(), 1).0, [Verdict::Hang]);
}

#[test]
fn a_first_canary_that_is_silent_for_a_whole_start_is_asked_once_beside_a_probe() {
    // A busy machine does not keep a peer that sleeps.
    let cases = [(Vec::new(), NO_PROBE), (vec![toy::plan()], NO_PROBE), (vec![toy::plan()], SLOW_PROBE)];
    for (probes, machine) in cases {
        let folder = tempfile::tempdir().unwrap();
        let script = format!("echo >> {}/starts; exec sleep 60", folder.path().display());
        let looks = 1 + probes.len();
        let watched: &'static Watched = Box::leak(Box::new(Watched { probes, ..Watched::default() }));
        let peer = Peer { pace: Arc::default(), ..peer(&script, watched) };
        let canary = Check { first_canary: true, ..Toy.checks()[0].clone() };
        let began = Instant::now();
        let verdicts = run_checks(&peer, machine, watched, &[canary]);
        assert_eq!(verdicts.into_values().collect::<Vec<_>>(), [Verdict::Hang]);
        let starts = std::fs::read_to_string(folder.path().join("starts")).unwrap();
        assert_eq!(starts.lines().count(), looks);
        // A start may take three seconds.
        assert!(began.elapsed() < Duration::from_secs(6), "one after the other");
    }
}

#[test]
fn a_peer_that_is_silent_in_its_first_session_gets_no_second_one() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("echo >> {}/starts; exec sleep 60", folder.path().display());
    let watched: &'static Watched = Box::leak(Box::default());
    let peer = Peer { pace: Arc::default(), ..peer(&script, watched) };
    let plan = |_: &Facts, _: &mut Rng| {
        let mut plan = toy::plan();
        plan.sessions.push(plan.sessions[0].clone());
        let second = plan.steps.iter().cloned().map(|step| crate::data::plan::Step { session: 1, ..step });
        plan.steps.extend(second.collect::<Vec<_>>());
        Ok(plan)
    };
    let canary =
        Check { first_canary: true, ..Check::new("toy/two", "t", ["TOY-ECHO-01"], toy::COMMAND, plan) };
    let verdicts = run_checks(&peer, NO_PROBE, watched, &[canary]);
    assert_eq!(verdicts.into_values().collect::<Vec<_>>(), [Verdict::Hang]);
    assert_eq!(std::fs::read_to_string(folder.path().join("starts")).unwrap().lines().count(), 1);
}

#[test]
fn a_server_that_never_listens_hangs() {
    let watched: &'static Watched =
        Box::leak(Box::new(Watched { probes: vec![of_server()], ..Watched::default() }));
    let clauses = Toy.checks()[0].clauses.clone();
    let canary =
        Check { first_canary: true, ..Check::new("toy/http", "t", clauses, HTTP, |_, _| Ok(of_server())) };
    for machine in [NO_PROBE, SLOW_PROBE] {
        let folder = tempfile::tempdir().unwrap();
        let script = format!("echo >> {}/starts; exec sleep 60", folder.path().display());
        let commands = [(HTTP.to_owned(), ["/bin/sh", "-c", &script].map(str::to_owned).to_vec())].into();
        let peer = Peer { pace: Arc::default(), commands, ..peer("", watched) };
        let verdicts = run_checks(&peer, machine, watched, std::slice::from_ref(&canary));
        assert_eq!(verdicts.into_values().collect::<Vec<_>>(), [Verdict::Hang]);
        let starts = std::fs::read_to_string(folder.path().join("starts")).unwrap();
        assert_eq!(starts.lines().count(), 2, "for the probe and for the canary");
    }
}

fn of_server() -> Plan {
    let mut plan = toy::plan();
    plan.sessions[0].command = HTTP.to_owned();
    plan
}

#[test]
fn output_that_is_wrong_by_itself_needs_no_machine_with_time() {
    let verdict = |told: fn(usize) -> Vec<Finding>| {
        let watched: &'static Watched =
            Box::leak(Box::new(Watched { told: Some(told), ..Watched::default() }));
        let check = Toy.checks()[0].clone();
        run_checks(&peer(SILENT, watched), SLOW_PROBE, watched, &[check]).into_values().next()
    };
    fn finding() -> Finding {
        Finding::new("TOY-ECHO-01", "other_output", "a word", "another")
    }
    assert_eq!(verdict(|_| vec![finding().of_output()]), Some(Verdict::Fail));
    assert!(verdict(|_| vec![finding()]).is_some_and(|it| it.is_untestable(Untestable::TOO_BUSY)));
}
