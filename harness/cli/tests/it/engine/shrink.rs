//! Tests of shrinking and reproducers, with faulty peers in this process and as processes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use peerproof::table;
use peerproof_engine::contract::boundary::{self, Boundary};
use peerproof_engine::data::budget::Budget;
use peerproof_engine::data::clause::Side;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::finding::Nature;
use peerproof_engine::data::payload::{Payload, Vars};
use peerproof_engine::data::plan::{Act, Chunking, Plan};
use peerproof_engine::data::transcript::Transcript;
use peerproof_engine::drive::fixture::ActorExe;
use peerproof_engine::drive::lab::Lab;
use peerproof_engine::drive::peer::{Origin, Peer};
use peerproof_engine::run::reproducer::{self, Explain, explain_failures};
use peerproof_engine::run::runner::{self, CheckOutcome, Failure, Options, Surroundings};
use peerproof_engine::run::shrink::{Shrunk, shrink};
use peerproof_toolhost::expect::Expect;
use peerproof_toolhost::talk::{Request, Talk};

use crate::start::{Command, actor_exe};

fn toolhost() -> &'static dyn Boundary {
    table::find("toolhost").unwrap()
}

fn facts() -> Facts {
    toolhost().full_facts(Side::Provider)
}

/// Reference in this process, or a mutant of it.
fn in_process(mutant: Option<&str>) -> Peer {
    let boundary = toolhost();
    let extra: Vec<String> = mutant.iter().flat_map(|id| ["--mutant".to_owned(), (*id).to_owned()]).collect();
    let reference = table::played(boundary).references().remove(0);
    let commands = reference.commands.into_iter().map(|(name, args)| (name.to_owned(), args));
    Peer {
        name: mutant.unwrap_or("reference").to_owned(),
        boundary,
        commands: commands.collect(),
        env: Vec::new(),
        facts: facts(),
        features_given: true,
        origin: Origin::InProcess(Arc::new(move |args, env| {
            table::played(boundary).reference_machine(&[args, &extra].concat(), env)
        })),
        pace: Arc::default(),
    }
}

struct Room {
    scratch: tempfile::TempDir,
    actor_exe: ActorExe,
}

impl Room {
    fn new() -> Self {
        let actor_exe = actor_exe();
        Self { scratch: tempfile::tempdir().unwrap(), actor_exe }
    }

    fn lab<'a>(&'a self, peer: &'a Peer) -> Lab<'a> {
        Lab {
            peer,
            budget: Budget::default(),
            actor_exe: &self.actor_exe,
            scratch: self.scratch.path(),
            timeout_scale: 1.0,
        }
    }
}

/// Runs `plan` and takes the first finding with this reason.
fn failure(lab: &Lab<'_>, plan: &Plan, reason: &str) -> Failure {
    let transcript = lab.execute("toolhost/serve/test/shrink", plan).unwrap();
    let findings = boundary::judge(toolhost(), &transcript).findings;
    let finding = findings.iter().find(|finding| finding.reason == reason);
    let finding = finding.unwrap_or_else(|| panic!("no {reason} in {findings:#?}")).clone();
    Failure { check: transcript.check.clone(), transcript, finding }
}

fn shrunk(lab: &Lab<'_>, failure: &Failure) -> Shrunk {
    let shrunk =
        shrink(lab, Some(table::played(toolhost())), failure, Instant::now() + Duration::from_secs(300));
    assert_eq!(shrunk.finding.key(), failure.finding.key());
    let again = boundary::judge(toolhost(), &shrunk.transcript).findings;
    assert!(again.iter().any(|finding| finding.key() == failure.finding.key()), "{again:#?}");
    assert_eq!(*shrunk.transcript.plan, shrunk.plan);
    shrunk
}

fn is_clean_on_the_reference(room: &Room, plan: &Plan) -> bool {
    let reference = in_process(None);
    let transcript = room.lab(&reference).execute("reference", plan).unwrap();
    let findings = boundary::judge(toolhost(), &transcript).findings;
    assert!(findings.is_empty(), "{findings:#?} in {plan:#?}");
    findings.is_empty()
}

fn sent(plan: &Plan) -> Vec<String> {
    let text = |act: &Act| match act {
        Act::Send { payload, .. } => {
            Some(String::from_utf8_lossy(&payload.expand(&Vars::new()).unwrap()).into_owned())
        }
        _ => None,
    };
    plan.steps.iter().filter_map(|step| text(&step.act)).collect()
}

#[test]
fn what_does_not_matter_goes_and_the_end_stays() {
    let room = Room::new();
    let peer = in_process(Some("defaults-aid"));
    let lab = room.lab(&peer);
    let facts = facts();
    let mut talk = Talk::serve(&facts);
    for _ in 0..8 {
        talk.canary_for("TH-FRAME-01");
    }
    let request = Request::empty().input(r#"{"a":[1,2,3],"b":"long enough to be cut"}"#).key("k");
    talk.send_as(request.line(), Chunking::Dribble, 1, Expect::refused("TH-REQ-02"));
    for _ in 0..8 {
        talk.canary();
    }
    let plan = talk.finish().plan();
    let shrunk = shrunk(&lab, &failure(&lab, &plan, "accepted"));
    assert!(shrunk.confirmed, "{shrunk:#?}");
    assert_eq!((shrunk.steps_before, shrunk.steps_after), (18, 2), "{:#?}", shrunk.plan);
    assert!(matches!(shrunk.plan.steps[1].act, Act::Finish));
    assert!(matches!(shrunk.plan.steps[0].act, Act::Send { chunking: Chunking::Whole, .. }));
    let line = &sent(&shrunk.plan)[0];
    assert!(line.len() < request.line().len(&Vars::new()) / 2, "{line}");
    assert!(!line.contains("aid") && line.ends_with('\n'), "{line}");
    assert!(shrunk.runs > 3 && shrunk.runs_per_s > 0.0);
    is_clean_on_the_reference(&room, &shrunk.plan);
}

#[test]
fn a_long_run_shrinks_to_the_edge_of_the_fault() {
    let room = Room::new();
    let peer = in_process(Some("dies-of-nesting"));
    let lab = room.lab(&peer);
    let facts = facts();
    let mut talk = Talk::serve(&facts);
    talk.canary_for("TH-FRAME-01");
    let deep = Payload::default().repeat("[", 100_000).repeat("]", 100_000).then(Payload::text("\n"));
    talk.send(deep, Expect::refused("TH-JSON-06"));
    let plan = talk.canary().finish().plan();
    let transcript = lab.execute("deep", &plan).unwrap();
    let finding = boundary::judge(toolhost(), &transcript)
        .findings
        .into_iter()
        .find(|finding| finding.nature == Nature::Crash)
        .unwrap();
    let failure = Failure { check: "deep".to_owned(), transcript, finding };
    let shrunk = shrunk(&lab, &failure);
    assert!(shrunk.bytes_after < 1_100 && shrunk.bytes_after >= 1_000, "{shrunk:#?}");
    is_clean_on_the_reference(&room, &shrunk.plan);
}

#[test]
fn what_a_finding_needs_from_before_stays() {
    let room = Room::new();
    let peer = in_process(Some("sliding-keys"));
    let lab = room.lab(&peer);
    let options = Options { slow: true, confirm: 1, ..Options::default() };
    let outcomes = run(&room, &peer, &options, |id| id.contains("idempotency"));
    let failures: Vec<Failure> =
        outcomes.into_iter().filter_map(|outcome| Some(outcome.failure?.into())).collect();
    assert!(!failures.is_empty());
    for failure in &failures {
        let shrunk = shrunk(&lab, failure);
        // A sliding key shows only after a hit, some time, and a later use of the key.
        assert!(sent(&shrunk.plan).len() >= 3, "{:#?}", shrunk.plan);
        is_clean_on_the_reference(&room, &shrunk.plan);
    }
}

/// Runs the checks whose id satisfies `wanted`.
fn run(room: &Room, peer: &Peer, options: &Options, wanted: impl Fn(&str) -> bool) -> Vec<CheckOutcome> {
    let interrupted = Arc::<AtomicBool>::default();
    let around =
        Surroundings { actor_exe: &room.actor_exe, scratch: room.scratch.path(), interrupted: &interrupted };
    let checks: Vec<_> = toolhost().checks().iter().filter(|check| wanted(&check.id)).collect();
    let outcomes = Mutex::new(Vec::new());
    runner::run(peer, &checks, options, around, &|outcome| outcomes.lock().unwrap().push(outcome));
    outcomes.into_inner().unwrap()
}

#[test]
fn every_shrunk_failure_of_a_mutant_is_one_of_the_mutant_alone() {
    let room = Room::new();
    let options = Options { confirm: 1, keep_going: true, ..Options::default() };
    let mut seen = 0;
    for mutant in ["defaults-aid", "unwraps-arrays", "no-cache", "deltas-replace", "state-not-delta"] {
        let peer = in_process(Some(mutant));
        let clauses =
            table::played(toolhost()).mutants().into_iter().find(|known| known.id == mutant).unwrap().clauses;
        let at_risk = |id: &str| {
            let check = toolhost().checks().iter().find(|check| check.id == id).unwrap();
            check.command == "serve" && clauses.iter().any(|clause| check.clauses.contains(&(*clause).into()))
        };
        let outcomes = run(&room, &peer, &options, at_risk);
        for failure in outcomes.into_iter().filter_map(|outcome| outcome.failure).take(3) {
            let lab = room.lab(&peer);
            let shrunk = shrunk(&lab, &failure.into());
            assert!(shrunk.steps_after <= shrunk.steps_before && shrunk.bytes_after <= shrunk.bytes_before);
            is_clean_on_the_reference(&room, &shrunk.plan);
            seen += 1;
        }
    }
    assert!(seen >= 5, "{seen}");
}

#[test]
fn without_time_the_original_comes_back() {
    let room = Room::new();
    let peer = in_process(Some("defaults-aid"));
    let lab = room.lab(&peer);
    let facts = facts();
    let mut talk = Talk::serve(&facts);
    talk.send(Request::empty().input("{}").line(), Expect::refused("TH-REQ-02"));
    let plan = talk.canary().finish().plan();
    let failure = failure(&lab, &plan, "accepted");
    let shrunk = shrink(&lab, Some(table::played(toolhost())), &failure, Instant::now());
    assert_eq!((shrunk.runs, shrunk.confirmed), (0, false));
    assert_eq!(shrunk.plan, plan);
    assert_eq!(shrunk.finding, failure.finding);
}

/// Peer that dies of the first line that begins with `g`, and ignores all others.
const DIES: &str = "while read -r line; do case $line in g*) kill -ABRT $$ ;; esac; done";

/// Process of sh.
fn shell(script: &str) -> Peer {
    let path = std::env::var_os("PATH").unwrap();
    Peer {
        name: "sh".to_owned(),
        commands: BTreeMap::from([("serve".to_owned(), ["sh", "-c", script].map(str::to_owned).to_vec())]),
        env: vec![("GREETING".to_owned(), "it's me".to_owned()), ("API_KEY".to_owned(), "s3cret".to_owned())],
        origin: Origin::Process {
            base_env: vec![("PATH".to_owned(), path)],
            current_dir: None,
            cpus: Vec::new(),
        },
        ..in_process(None)
    }
}

/// Failure of a peer that dies of malformed JSON.
fn death(lab: &Lab<'_>) -> Failure {
    let facts = facts();
    let mut talk = Talk::serve(&facts);
    talk.send(Payload::text("garbage\n"), Expect::refused("TH-SERVE-01"));
    failure(lab, &talk.finish().plan(), "crashed")
}

fn outcome(failure: Failure) -> CheckOutcome {
    use peerproof_engine::data::clause::Level;
    use peerproof_engine::run::verdict::{CheckResult, ClauseRef, Verdict};
    CheckOutcome {
        result: CheckResult {
            id: failure.check.clone(),
            title: "A line that is no JSON is refused.".to_owned(),
            verdict: Verdict::Crash,
            rung: peerproof_engine::data::rung::Rung::Ordinary,
            first_canary: None,
            reason: Some(failure.finding.reason.clone()),
            clauses: vec![ClauseRef { id: failure.finding.clause.clone(), level: Level::Must }],
            choice: None,
            findings: vec![failure.finding.clone()],
            rest: None,
            counted: Default::default(),
            confirmed_by: None,
            reproducer: None,
            wrong_line: None,
            others: Vec::new(),
            conversation: Vec::new(),
            ms: 1,
        },
        failure: Some(failure.into()),
    }
}

fn explained(room: &Room, peer: &Peer, outcome: &mut CheckOutcome, out: &Path, peer_args: &[String]) {
    let lab = room.lab(peer);
    let interrupted = Arc::<AtomicBool>::default();
    let with = Explain {
        played: Some(table::played(toolhost())),
        lab: &lab,
        out_dir: Some(out),
        numbers: &BTreeMap::from([("toolhost/serve/test/shrink".to_owned(), 1)]),
        budget: Duration::from_secs(5),
        jobs: 1,
        peer_args,
        interrupted: &interrupted,
    };
    let mut told = 0;
    explain_failures([outcome], &with, |_, explained| {
        told += 1;
        assert_eq!(explained.problem, None);
    });
    assert_eq!(told, 1);
}

#[test]
fn once_interrupted_what_is_left_is_written_for_a_moment_only() {
    let room = Room::new();
    let peer = shell(DIES);
    let failure = death(&room.lab(&peer));
    let mut outcomes = [outcome(failure.clone()), outcome(failure)];
    let out = tempfile::tempdir().unwrap();
    let with = Explain {
        played: None,
        lab: &room.lab(&peer),
        out_dir: Some(out.path()),
        numbers: &BTreeMap::new(),
        budget: Duration::from_secs(5),
        jobs: 1,
        peer_args: &[],
        interrupted: &AtomicBool::new(true),
    };
    // The first takes longer than the allowed moment.
    let left_out =
        explain_failures(&mut outcomes, &with, |_, _| std::thread::sleep(2 * reproducer::LAST_WORDS));
    assert_eq!(left_out, 1);
    assert_eq!(outcomes.iter().filter(|outcome| outcome.result.reproducer.is_some()).count(), 1);
    assert!(outcomes.iter().all(|outcome| outcome.failure.is_some()));
}

#[test]
fn a_static_stimulus_is_reproduced_by_sh_alone() {
    let room = Room::new();
    let peer = shell(DIES);
    let mut outcome = outcome(death(&room.lab(&peer)));
    let out = tempfile::tempdir().unwrap();
    explained(&room, &peer, &mut outcome, out.path(), &[]);

    let result = &outcome.result;
    assert_eq!(result.reproducer.as_deref(), Some("01-toolhost__serve__test__shrink"));
    let conversation = result.conversation.join("\n");
    assert!(conversation.starts_with("→ ") && conversation.contains("✗ signal 6"), "{conversation}");
    let folder = out.path().join("01-toolhost__serve__test__shrink");
    let script = std::fs::read_to_string(folder.join("repro.sh")).unwrap();
    assert!(!script.contains("s3cret") && script.contains("'GREETING=it'\\''s me'"), "{script}");
    assert!(script.contains("# expected: ") && script.contains("TH-SERVE-01"), "{script}");
    let stdin = std::fs::read(folder.join("stdin.bin")).unwrap();
    assert_eq!(stdin.last(), Some(&b'\n'));

    let sh = |key: Option<&str>| {
        let mut command = Command::new("sh");
        command.arg(folder.join("repro.sh"));
        match key {
            Some(key) => command.env("API_KEY", key),
            None => command.env_remove("API_KEY"),
        };
        command.assert()
    };
    sh(Some("s3cret")).code(128 + 6).stderr(predicates::str::contains("exit status 134"));
    sh(None).failure().stderr(predicates::str::contains("this file does not contain its value"));

    let stored = Transcript::load(std::io::BufReader::new(
        std::fs::File::open(folder.join("transcript.ndjson")).unwrap(),
    ))
    .unwrap();
    let findings = boundary::judge(toolhost(), &stored).findings;
    assert!(findings.iter().any(|finding| finding.key() == result.findings[0].key()), "{findings:#?}");
}

#[test]
fn what_depends_on_replies_is_reproduced_through_replay() {
    let room = Room::new();
    let peer = shell(DIES);
    let facts = facts();
    let mut talk = Talk::serve(&facts);
    let act = Act::SampleMemory { label: "memory".to_owned() };
    talk.send(Payload::text("garbage\n"), Expect::refused("TH-SERVE-01")).act(act);
    let plan = talk.finish().plan();
    let failure = failure(&room.lab(&peer), &plan, "crashed");
    let out = tempfile::tempdir().unwrap();
    let args = ["--env", "API_KEY=s3cret", "--", "sh", "-c", DIES].map(str::to_owned);
    let name = reproducer::folder_name("a/b", None);
    reproducer::write(out.path(), &name, &failure, &room.lab(&peer), &args, true).unwrap();
    assert_eq!(name, "a__b");
    let script = std::fs::read_to_string(out.path().join("a__b/repro.sh")).unwrap();
    assert!(!script.contains("s3cret") && script.contains("replay --live"), "{script}");
    Command::new("sh")
        .arg(out.path().join("a__b/repro.sh"))
        .env("API_KEY", "x")
        .assert()
        .code(1)
        .stdout(predicates::str::contains("TH-SERVE-01"));
}

#[test]
fn known_input_is_reproduced_by_sh_with_its_pieces_and_pauses() {
    let room = Room::new();
    let peer = shell(DIES);
    let facts = facts();
    let mut talk = Talk::serve(&facts);
    talk.act(Act::Wait { ms: 20 }).send(Payload::text("garbage\n"), Expect::refused("TH-SERVE-01"));
    let mut plan = talk.finish().plan();
    for step in &mut plan.steps {
        if let Act::Send { chunking, .. } = &mut step.act {
            *chunking = Chunking::Every(5);
        }
    }
    let failure = failure(&room.lab(&peer), &plan, "crashed");
    let out = tempfile::tempdir().unwrap();
    reproducer::write(out.path(), "a", &failure, &room.lab(&peer), &[], true).unwrap();
    let path = out.path().join("a/repro.sh");
    let script = std::fs::read_to_string(&path).unwrap();
    assert!(script.contains("  sleep 0.020\n  part 1 5\n  part 6 3\n"), "{script}");
    Command::new("sh")
        .arg(path)
        .env("API_KEY", "x")
        .assert()
        .code(128 + 6)
        .stderr(predicates::str::contains("exit status 134"));
}

#[test]
fn a_reproducer_that_cannot_be_written_is_one_sentence() {
    let room = Room::new();
    let peer = in_process(Some("defaults-aid"));
    let lab = room.lab(&peer);
    let facts = facts();
    let mut talk = Talk::serve(&facts);
    talk.send(Request::empty().input("{}").line(), Expect::refused("TH-REQ-02"));
    let failure = failure(&lab, &talk.finish().plan(), "accepted");
    let error = reproducer::write(Path::new("/proc/none"), "a__b", &failure, &lab, &[], true).unwrap_err();
    assert!(error.to_string().starts_with("cannot write the reproducer /proc/none/a__b"), "{error}");
}
