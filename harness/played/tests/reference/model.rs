//! The model never blames a correct peer for any input, and finds faulty peers.

#![allow(clippy::unwrap_used, reason = "clippy takes helpers of an integration test for library code")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use peerproof_engine::contract::boundary::Boundary;
use peerproof_engine::data::budget::Budget;
use peerproof_engine::data::clause::Side;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::finding::Finding;
use peerproof_engine::data::plan::{Act, Plan, Session, Step};
use peerproof_engine::data::rng::Rng;
use peerproof_engine::data::transcript::Transcript;
use peerproof_engine::drive::fixture::ActorExe;
use peerproof_engine::drive::lab::Lab;
use peerproof_engine::drive::machine::{Action, Machine, MachineEvent, Millis};
use peerproof_engine::drive::parallel;
use peerproof_engine::drive::peer::{MakeMachine, Origin, Peer};
use peerproof_engine::run::runner::Failure;
use peerproof_engine::run::shrink;
use peerproof_reference::toolhost::Choices;
use proptest::prelude::*;

fn toolhost() -> &'static dyn Boundary {
    peerproof_toolhost::boundary()
}

fn peer(choices: &[(&str, &str)], make: MakeMachine) -> Peer {
    let mut facts = toolhost().full_facts(Side::Provider);
    for (key, value) in choices {
        facts.choices.insert((*key).to_owned(), (*value).to_owned());
    }
    let commands = BTreeMap::from([
        ("serve".to_owned(), vec!["--serve".to_owned()]),
        ("run".to_owned(), vec!["--run".to_owned(), "{aid}".to_owned()]),
    ]);
    Peer {
        name: "reference".to_owned(),
        boundary: toolhost(),
        commands,
        env: Vec::new(),
        facts,
        features_given: true,
        origin: Origin::InProcess(make),
        pace: Arc::default(),
    }
}

/// Reference with these choices.
fn correct(choices: &[(&str, &str)]) -> MakeMachine {
    let options: Vec<String> =
        choices.iter().flat_map(|(key, value)| ["--choice".to_owned(), format!("{key}={value}")]).collect();
    Arc::new(move |args, env| {
        let mut args = args.to_vec();
        args.extend(options.iter().cloned());
        peerproof_played::toolhost::played().reference_machine(&args, env)
    })
}

/// Reference with a filter on its actions.
fn wrapped(filter: fn(usize, &[u8]) -> Option<Vec<u8>>) -> MakeMachine {
    let make = correct(&[]);
    Arc::new(move |args, env| {
        let inner = make(args, env)?;
        Some(Box::new(Wrapped { inner, filter, replies: 0 }))
    })
}

struct Wrapped {
    inner: Box<dyn Machine>,
    filter: fn(usize, &[u8]) -> Option<Vec<u8>>,
    replies: usize,
}

impl Machine for Wrapped {
    fn handle(&mut self, event: MachineEvent<'_>, now: Millis, actions: &mut Vec<Action>) {
        let mut inner = Vec::new();
        self.inner.handle(event, now, &mut inner);
        for action in inner {
            let Action::Stdout(bytes) = action else {
                actions.push(action);
                continue;
            };
            let mut out = Vec::new();
            for line in bytes.split_inclusive(|byte| *byte == b'\n') {
                self.replies += 1;
                out.extend((self.filter)(self.replies, line).unwrap_or_default());
            }
            if !out.is_empty() {
                actions.push(Action::Stdout(out));
            }
        }
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

fn execute(peer: &Peer, plan: &Plan) -> Transcript {
    let actor_exe = ActorExe::new("/nonexistent");
    with_lab(peer, &actor_exe, |lab| lab.execute("model", plan).unwrap())
}

fn with_lab<T>(peer: &Peer, actor_exe: &ActorExe, body: impl FnOnce(&Lab<'_>) -> T) -> T {
    body(&Lab { peer, budget: Budget::default(), actor_exe, scratch: Path::new("/tmp"), timeout_scale: 1.0 })
}

fn judged(peer: &Peer, plan: &Plan) -> (Transcript, Vec<Finding>) {
    let transcript = execute(peer, plan);
    let findings = toolhost().judge_by_model(&transcript).findings;
    (transcript, findings)
}

/// Lines of a transcript for the message of a failing test.
fn story(transcript: &Transcript, findings: &[Finding]) -> String {
    let at = findings.first().and_then(|finding| finding.step);
    let step = at.and_then(|at| transcript.plan.steps.get(at));
    format!("{findings:#?}\n{step:#?}")
}

fn all_choices() -> Vec<Vec<(&'static str, &'static str)>> {
    let mut all = vec![Vec::new()];
    for (key, values) in Choices::ALL {
        all.extend(values.iter().map(|value| vec![(*key, *value)]));
    }
    all
}

/// Number of threads of the longest test.
const PROCESSORS: usize = 2;

#[test]
fn is_silent_about_the_reference_with_every_choice() {
    let found = parallel::each(PROCESSORS, all_choices().into_iter().enumerate(), |(index, choices)| {
        let mut seen = BTreeMap::new();
        for pinned in [true, false] {
            let peer = peer(if pinned { &choices } else { &[] }, correct(&choices));
            for seed in 0..4 {
                let mut rng = Rng::new(seed + 1_000 * index as u64);
                let plan = toolhost().generate(&peer.facts, &mut rng);
                let (transcript, findings) = judged(&peer, &plan);
                if let Some(first) = findings.first() {
                    let what = format!("{} {}", first.clause, first.reason);
                    seen.entry(what).or_insert_with(|| {
                        format!("{choices:?} pinned {pinned} seed {seed}: {}", story(&transcript, &findings))
                    });
                }
            }
        }
        seen
    });
    let seen: BTreeMap<String, String> = found.into_iter().flatten().collect();
    assert!(seen.is_empty(), "{}", seen.into_values().collect::<Vec<_>>().join("\n"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn is_silent_whatever_is_sent(
        choice in 0..all_choices().len(),
        pieces in proptest::collection::vec(piece(), 1..30),
        closes in any::<bool>(),
    ) {
        let choices = &all_choices()[choice];
        let peer = peer(choices, correct(choices));
        let mut steps: Vec<Step> = pieces
            .iter()
            .map(|bytes| Step::new(Act::Send {
                payload: peerproof_engine::data::payload::Payload::from_bytes(bytes),
                chunking: Default::default(),
                await_frames: 0,
            }))
            .collect();
        if closes {
            steps.push(Step::new(Act::Finish));
        } else {
            steps.push(Step::new(Act::Flush));
        }
        let session = Session { command: "serve".to_owned(), ..Session::default() };
        let plan = Plan { sessions: vec![session], steps, by_model: true, ..Plan::default() };
        let (transcript, findings) = judged(&peer, &plan);
        prop_assert!(findings.is_empty(), "{choices:?}: {}", story(&transcript, &findings));
    }
}

/// Replies belong to the lines before the end of a session, even if a malformed line after it would accept them.
#[test]
fn an_ended_session_answers_what_stood_before_its_end() {
    let wrong_size = concat!(
        r#"{"aid":"AID.PEERPROOF.GET.v1","input_json":"{\"slot\":2}","ds_state":{"slots":{"2":{"type":"t","#,
        r#""provenance":"p","content_json":"y","size_bytes":2}}}}"#
    );
    let lines = ["\u{a0}", wrong_size, "", "no JSON", r#"{"aid":"AID.PEERPROOF.COUNTER.v1"}"#];
    for (pinned, count) in
        [(&[("blank_line", "end")][..], 4), (&[("blank_line", "end")], 5), (&[], 4), (&[], 5)]
    {
        let peer = peer(pinned, correct(&[("blank_line", "end")]));
        let send = |line: &&str| {
            let payload = peerproof_engine::data::payload::Payload::text(format!("{line}\n"));
            Step::new(Act::Send { payload, chunking: Default::default(), await_frames: 0 })
        };
        let mut steps: Vec<Step> = lines[..count].iter().map(send).collect();
        steps.push(Step::new(Act::Flush));
        let session = Session { command: "serve".to_owned(), ..Session::default() };
        let plan = Plan { sessions: vec![session], steps, by_model: true, ..Plan::default() };
        let (transcript, findings) = judged(&peer, &plan);
        assert!(findings.is_empty(), "{pinned:?}, {count} lines: {}", story(&transcript, &findings));
    }
}

/// Bytes similar to requests: whole lines, parts of lines, and noise.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(vec![
        r#"{"aid":"AID.PEERPROOF.ECHO.v1","input_json":"{\"a\":1}"}"#,
        r#"{"aid":"AID.PEERPROOF.COUNTER.v1"}"#,
        r#"{"aid":"AID.PEERPROOF.COUNTER.v1","idempotency_key":"k"}"#,
        r#"{"aid":"AID.PEERPROOF.GET.v1","input_json":"{\"slot\":1}"}"#,
        r#"{"aid":"AID.PEERPROOF.COUNTER.v1","aid":"AID.PEERPROOF.GET.v1"}"#,
        r#"{"aid":"AID.PEERPROOF.PUT.v1","input_json":"{\"slot\":1,\"artifact\":{\"type\":\"t\",\"provenance\":\"p\",\"content_json\":\"x\",\"size_bytes\":1}}"}"#,
        r#"{"aid":"AID.PEERPROOF.GET.v1","input_json":"{\"slot\":1}","ds_state":{"delta":true,"removed_slots":[1]}}"#,
        r#"{"aid":"AID.PEERPROOF.GET.v1","input_json":"{\"slot\":2}","ds_state":{"slots":{"2":{"type":"t","provenance":"p","content_json":"y","size_bytes":2}}}}"#,
        r#"{"aid":"AID.PEERPROOF.CRASH.v1"}"#,
        r#"{"aid":"AID.PEERPROOF.FAIL.v1","input_json":"{\"message\":\"m\"}","idempotency_key":"k"}"#,
    ]);
    prop_oneof![
        4 => known.clone().prop_map(|text| format!("{text}\n").into_bytes()),
        2 => (known, any::<prop::sample::Index>(), any::<u8>(), any::<bool>()).prop_map(|(text, at, byte, ends)| {
            let mut bytes = text.as_bytes().to_vec();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if ends {
                bytes.push(b'\n');
            }
            bytes
        }),
        1 => proptest::collection::vec(any::<u8>(), 0..20),
        1 => prop::sample::select(vec!["\n", " \n", "\r\n", "\u{feff}\n", "\u{feff}", "\u{a0}\n", "{", "\n\n"])
            .prop_map(|text| text.as_bytes().to_vec()),
    ]
}

fn send(line: &str) -> Step {
    let payload = peerproof_engine::data::payload::Payload::text(format!("{line}\n"));
    Step::new(Act::Send { payload, chunking: Default::default(), await_frames: 1 })
}

fn serve(steps: Vec<Step>) -> Plan {
    let session = Session { command: "serve".to_owned(), ..Session::default() };
    Plan { sessions: vec![session], steps, by_model: true, ..Plan::default() }
}

/// A wrongly refused request gives one finding: it ran nothing, so the counter, the key and the slots of later requests
/// are unchanged.
#[test]
fn a_request_refused_without_right_ran_nothing() {
    struct Refuses(Box<dyn Machine>);
    impl Machine for Refuses {
        fn handle(&mut self, event: MachineEvent<'_>, now: Millis, actions: &mut Vec<Action>) {
            match event {
                MachineEvent::Stdin(bytes) if memchr(bytes, b"\"note\"") => {
                    let refusal = b"{\"ok\":false,\"error\":\"malformed request\"}\n";
                    actions.push(Action::Stdout(refusal.to_vec()));
                }
                other => self.0.handle(other, now, actions),
            }
        }
        fn wants_stdin(&self) -> bool {
            self.0.wants_stdin()
        }
    }
    let count = r#"{"aid":"AID.PEERPROOF.COUNTER.v1","input_json":"{}"}"#;
    let keyed = r#"{"aid":"AID.PEERPROOF.COUNTER.v1","input_json":"{}","idempotency_key":"k"}"#;
    let get = r#"{"aid":"AID.PEERPROOF.GET.v1","input_json":"{\"slot\":0}"}"#;
    let state = r#","note":1,"ds_state":{"slots":{"0":{"type":"t","provenance":"p","content_json":"{}","size_bytes":2}}}}"#;
    let odd = format!("{}{state}", keyed.strip_suffix('}').unwrap());
    let make = correct(&[]);
    let peer = peer(&[], Arc::new(move |args, env| Some(Box::new(Refuses(make(args, env)?)))));
    let steps = [count, odd.as_str(), count, get, keyed, keyed, count].map(send).to_vec();
    let (_, findings) = judged(&peer, &serve(steps));
    let found: Vec<_> = findings.iter().map(|finding| (finding.step, finding.reason.as_str())).collect();
    assert_eq!(found, [(Some(1), "refused")], "{findings:#?}");
}

/// Generates conversations until one exposes the peer; returns the transcript and the first finding.
fn found_out(peer: &Peer) -> (Transcript, Finding) {
    for seed in 0..200 {
        let plan = toolhost().generate(&peer.facts, &mut Rng::new(seed));
        let (transcript, findings) = judged(peer, &plan);
        if let Some(finding) = findings.into_iter().next() {
            return (transcript, finding);
        }
    }
    panic!("not found out");
}

fn shrinks_to(make: MakeMachine, sends_max: usize) -> Finding {
    let peer = peer(&[], make);
    let (transcript, finding) = found_out(&peer);
    let actor_exe = ActorExe::new("/nonexistent");
    let failure = Failure { check: "model".to_owned(), transcript, finding };
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(300);
    let shrunk = with_lab(&peer, &actor_exe, |lab| {
        shrink::shrink(lab, Some(peerproof_played::toolhost::played()), &failure, deadline)
    });
    assert_eq!(shrunk.finding.key(), failure.finding.key());
    let lines: usize = shrunk
        .plan
        .steps
        .iter()
        .map(|step| match &step.act {
            Act::Send { payload, .. } => payload.lines(),
            _ => 0,
        })
        .sum();
    assert!(lines <= sends_max, "{lines} lines are left: {:#?}", shrunk.plan);
    shrunk.finding
}

/// After an interrupt nothing more is tried, not even with the reference, which knows of no interrupt.
#[test]
fn an_interrupt_ends_shrinking() {
    const BEFORE: usize = 4;
    let loses = wrapped(|n, line| (n % 9 != 0).then(|| line.to_vec()));
    let (transcript, finding) = found_out(&peer(&[], Arc::clone(&loses)));
    let failure = Failure { check: "model".to_owned(), transcript, finding };
    let interrupted = Arc::<AtomicBool>::default();
    let (starts, flag) = (AtomicUsize::new(0), Arc::clone(&interrupted));
    let make: MakeMachine = Arc::new(move |args, env| {
        if starts.fetch_add(1, Ordering::Relaxed) + 1 == BEFORE {
            flag.store(true, Ordering::Relaxed);
        }
        loses(args, env)
    });
    let (peer, actor_exe) = (peer(&[], make), ActorExe::new("/nonexistent"));
    let lab = Lab {
        peer: &peer,
        budget: Budget { interrupted, ..Budget::default() },
        actor_exe: &actor_exe,
        scratch: Path::new("/tmp"),
        timeout_scale: 1.0,
    };
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(300);
    let shrunk = shrink::shrink(&lab, Some(peerproof_played::toolhost::played()), &failure, deadline);
    // The best result so far is tried once more, in vain.
    assert!(shrunk.runs <= BEFORE + 1, "{} runs", shrunk.runs);
    assert_eq!(shrunk.finding, failure.finding);
}

fn replaced(line: &[u8], from: &str, to: &str) -> Option<Vec<u8>> {
    Some(String::from_utf8_lossy(line).replace(from, to).into_bytes())
}

#[test]
fn finds_a_peer_that_loses_a_reply() {
    let make = wrapped(|n, line| (n % 9 != 0).then(|| line.to_vec()));
    let finding = shrinks_to(make, 12);
    assert!(["no_reply", "hung"].contains(&finding.reason.as_str()), "{finding:?}");
}

#[test]
fn finds_a_peer_that_takes_malformed_lines() {
    let accepts = |_: usize, line: &[u8]| {
        let is_refusal = memchr(line, b"malformed request");
        let good = b"{\"ok\":true,\"status\":\"OK\",\"output_json\":\"{}\",\"error\":\"\",\"ds_state\":{\"delta\":true}}\n";
        Some(if is_refusal { good.to_vec() } else { line.to_vec() })
    };
    let finding = shrinks_to(wrapped(accepts), 2);
    assert_eq!(finding.reason, "accepted", "{finding:?}");
}

fn memchr(line: &[u8], part: &[u8]) -> bool {
    line.windows(part.len()).any(|window| window == part)
}

#[test]
fn finds_a_peer_that_hides_hits() {
    let make = wrapped(|_, line| replaced(line, "\"idempotent_hit\":true", "\"idempotent_hit\":false"));
    let finding = shrinks_to(make, 3);
    assert_eq!(finding.key(), (&"TH-IDEM-01".into(), "no_hit"));
}

#[test]
fn finds_a_peer_that_ignores_keys() {
    /// Hides idempotency keys from the machine.
    struct Keyless(Box<dyn Machine>);
    impl Machine for Keyless {
        fn handle(&mut self, event: MachineEvent<'_>, now: Millis, actions: &mut Vec<Action>) {
            match event {
                MachineEvent::Stdin(bytes) => {
                    let text = replaced_bytes(bytes, b"idempotency_key", b"idempotency_kex");
                    self.0.handle(MachineEvent::Stdin(&text), now, actions);
                }
                other => self.0.handle(other, now, actions),
            }
        }
        fn wants_stdin(&self) -> bool {
            self.0.wants_stdin()
        }
    }
    let make = correct(&[]);
    let finding = shrinks_to(Arc::new(move |args, env| Some(Box::new(Keyless(make(args, env)?)))), 3);
    assert!(finding.clause.0.starts_with("TH-IDEM"), "{finding:?}");
}

fn replaced_bytes(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    let mut at = 0;
    while let Some(found) = out[at..].windows(from.len()).position(|window| window == from) {
        out[at + found..at + found + from.len()].copy_from_slice(to);
        at += found + from.len();
    }
    out
}

#[test]
fn finds_a_peer_whose_deltas_say_nothing() {
    let make = wrapped(|_, line| {
        let text = String::from_utf8_lossy(line).into_owned();
        let at = text.find("\"slots\":{\"");
        Some(match at {
            Some(at) if text.contains("\"delta\":true") => {
                format!("{}\"slots\":{{}}}}}}\n", &text[..at]).into_bytes()
            }
            _ => line.to_vec(),
        })
    });
    let peer = peer(&[], make);
    let seen = (0..60).any(|seed| {
        let plan = toolhost().generate(&peer.facts, &mut Rng::new(seed));
        let (_, findings) = judged(&peer, &plan);
        findings.iter().any(|finding| finding.reason == "wrong_delta")
    });
    assert!(seen);
}

#[test]
fn generates_the_same_conversation_for_the_same_seed() {
    let facts: Facts = toolhost().full_facts(Side::Provider);
    let plans = |seed| {
        let mut rng = Rng::new(seed);
        (0..20).map(|_| toolhost().generate(&facts, &mut rng)).collect::<Vec<Plan>>()
    };
    assert_eq!(plans(7), plans(7));
    assert_ne!(plans(7), plans(8));
}
