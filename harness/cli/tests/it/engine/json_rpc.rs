//! Tests that the model of a JSON-RPC server never blames the reference, and that stored messages match the names of
//! their folders.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use peerproof::table;
use peerproof_engine::contract::boundary::Boundary;
use peerproof_engine::data::budget::Budget;
use peerproof_engine::data::clause::Side;
use peerproof_engine::data::finding::Finding;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Act, Chunking, Plan};
use peerproof_engine::data::rng::Rng;
use peerproof_engine::data::transcript::{Awaited, Bytes, Event, EventKind, Transcript};
use peerproof_engine::drive::fixture::ActorExe;
use peerproof_engine::drive::lab::Lab;
use peerproof_engine::drive::machine::{self, Action, Machine, Millis};
use peerproof_engine::drive::peer::{Origin, Peer};
use peerproof_json_rpc::talk::Talk;
use proptest::prelude::*;

fn json_rpc() -> &'static dyn Boundary {
    table::find("json-rpc").unwrap()
}

/// The reference with these choices, which no configuration states.
fn reference(choices: &[(&str, &str)]) -> Peer {
    let options: Vec<String> =
        choices.iter().flat_map(|(key, value)| ["--choice".to_owned(), format!("{key}={value}")]).collect();
    Peer {
        name: "reference".to_owned(),
        boundary: json_rpc(),
        commands: BTreeMap::from([("command".to_owned(), vec!["--stdio".to_owned()])]),
        env: Vec::new(),
        facts: json_rpc().full_facts(Side::Provider),
        features_given: true,
        origin: Origin::InProcess(Arc::new(move |args, env| {
            table::played(json_rpc()).reference_machine(&[args, &options].concat(), env)
        })),
        pace: Arc::default(),
    }
}

fn judged(peer: &Peer, plan: &Plan) -> (Transcript, Vec<Finding>) {
    let actor_exe = ActorExe::new("peerproof");
    let scratch = tempfile::tempdir().unwrap();
    let lab = Lab {
        peer,
        budget: Budget::default(),
        actor_exe: &actor_exe,
        scratch: scratch.path(),
        timeout_scale: 1.0,
    };
    let transcript = lab.execute("test", plan).unwrap();
    let findings = json_rpc().judge(&transcript).findings;
    (transcript, findings)
}

/// Lines in one write, between two canaries.
fn conversation(peer: &Peer, lines: &[u8]) -> Plan {
    let payload = match std::str::from_utf8(lines) {
        Ok(text) => Payload::text(text),
        Err(_) => Payload::from_bytes(lines),
    };
    let mut talk = Talk::plain(&peer.facts);
    talk.canary().send_as(payload, Chunking::Whole).canary().finish()
}

fn files(folder: &str) -> Vec<(String, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpora/json_rpc").join(folder);
    let mut found: Vec<_> = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.display().to_string(), fs::read(&path).unwrap()))
        .collect();
    found.sort();
    assert!(!found.is_empty(), "{folder} is empty");
    found
}

#[test]
fn stored_messages_are_answered_as_their_folders_say() {
    let peer = reference(&[]);
    for folder in ["accept", "reject", "either"] {
        for (path, mut bytes) in files(&format!("seeds/{folder}")) {
            bytes.push(b'\n');
            let (transcript, findings) = judged(&peer, &conversation(&peer, &bytes));
            assert!(findings.is_empty(), "{path}: {findings:?}");
            let out = String::from_utf8(transcript.stdout(0)).unwrap();
            let reply: Option<Json> = out.lines().nth(1).map(|line| line.parse().unwrap());
            let first = reply.as_ref().map(|reply| reply.as_array().map_or(reply, |all| &all[0]));
            match folder {
                "accept" => assert!(first.unwrap().get("result").is_some(), "{path}: {out}"),
                "reject" => assert!(first.unwrap().get("error").is_some(), "{path}: {out}"),
                _ => {}
            }
        }
    }
}

#[test]
fn stored_conversations_are_clean() {
    let peer = reference(&[]);
    for (path, bytes) in files("conversations") {
        let (_, findings) = judged(&peer, &conversation(&peer, &bytes));
        assert!(findings.is_empty(), "{path}: {findings:?}");
    }
}

fn any_choice() -> impl Strategy<Value = (&'static str, &'static str)> {
    let keys = json_rpc().description().config_keys.iter().filter(|key| key.table() == "choices");
    let all: Vec<(&str, &str)> =
        keys.flat_map(|key| key.words().iter().map(move |value| (key.name, *value))).collect();
    prop::sample::select(all)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Generated conversations with the reference under any one choice give no finding.
    #[test]
    fn is_silent_about_the_reference(seed in any::<u64>(), choice in any_choice()) {
        let peer = reference(&[choice]);
        let plan = json_rpc().generate(&peer.facts, &mut Rng::new(seed));
        let (_, findings) = judged(&peer, &plan);
        prop_assert!(findings.is_empty(), "{choice:?}: {findings:?}");
    }

    /// The reference answers any bytes, and the model agrees.
    #[test]
    fn is_silent_whatever_is_sent(lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..8)) {
        let peer = reference(&[]);
        let bytes: Vec<u8> = lines.into_iter().flat_map(|line| [line, b"\n".to_vec()].concat()).collect();
        let (_, findings) = judged(&peer, &conversation(&peer, &bytes));
        prop_assert!(findings.is_empty(), "{findings:?}");
    }
}

/// Findings if `line`, sent over HTTP to a server that lives on, is followed by these events.
fn over_http(line: &str, kinds: Vec<EventKind>) -> Vec<Finding> {
    let facts = Arc::new(json_rpc().full_facts(Side::Provider));
    let plan = Talk::plain(&facts).over("http").send(line).finish();
    let Act::Send { payload, .. } = plan.steps[0].act.clone() else { panic!("{plan:?}") };
    let kinds = [vec![EventKind::Sent { step: 0, payload }], kinds].concat();
    let transcript = Transcript {
        boundary: "json_rpc".to_owned(),
        check: "by-hand".to_owned(),
        facts,
        plan: Arc::new(plan),
        timeout_scale: 1.0,
        events: (0..).zip(kinds).map(|(at_us, kind)| Event { at_us, session: 0, kind }).collect(),
    };
    json_rpc().judge(&transcript).findings
}

fn replied(body: &str) -> Vec<EventKind> {
    let bytes = format!("{body}\n").into_bytes();
    let reply = EventKind::HttpReply {
        step: 0,
        of_step: 0,
        connection: 0,
        reused: false,
        status: 200,
        content_type: None,
        head: Bytes::default(),
        body_bytes: body.len() as u64,
        body: None,
        keeps_open: true,
        took_us: 1,
    };
    vec![reply, EventKind::Received { bytes: Bytes(bytes) }]
}

#[test]
fn what_answers_a_batch_over_http_belongs_to_the_batch() {
    let response = r#"{"jsonrpc":"2.0","error":{"code":-32601,"message":"m"},"id":null}"#;
    let note = r#"{"jsonrpc":"2.0","method":"peerproof.no_such_method"}"#;
    let call = r#"{"jsonrpc":"2.0","method":"peerproof.no_such_method","id":1}"#;
    let keys = |batch: &str, body: &str| -> Vec<(String, String)> {
        let found = over_http(batch, replied(body));
        found.into_iter().map(|finding| (finding.clause.0, finding.reason)).collect()
    };
    let key = |clause: &str, reason: &str| vec![(clause.to_owned(), reason.to_owned())];
    let notes = format!("[{note},{note}]");
    assert_eq!(keys(&notes, response), key("RPC-NOTE-01", "answered"));
    assert_eq!(keys(&notes, &format!("[{response}]")), key("RPC-NOTE-01", "answered"));
    let bare = response.replace("null", "1");
    assert_eq!(keys(&format!("[{call},{note}]"), &bare), key("RPC-BATCH-01", "no_array"));
}

#[test]
fn what_came_of_a_reply_over_http_is_told() {
    let came = "status 200 and 5 bytes of a body of which Content-Length says 9, and no more";
    let failed = EventKind::HttpFailed {
        step: 0,
        of_step: 0,
        connection: 0,
        reason: came.to_owned(),
        wholly_sent: true,
        will_retry: false,
    };
    let late = EventKind::DeadlinePassed { awaited: Awaited::Frames, waited_ms: 4_000, slept: false };
    let found = over_http(r#"{"jsonrpc":"2.0","method":"m","id":1}"#, vec![late, failed]);
    assert_eq!(found[0].got, format!("{came} within 4.0 s"));
}

/// The answer to bytes that are not text is an example; the end of the server belongs to another clause.
#[test]
fn a_server_that_dies_of_bytes_breaks_the_clause_about_going_on() {
    let mut peer = reference(&[]);
    peer.origin = Origin::InProcess(Arc::new(|args, env| {
        Some(Box::new(DiesOfBytes(table::played(json_rpc()).reference_machine(args, env)?)))
    }));
    let (_, found) = judged(&peer, &conversation(&peer, b"\"\xff\"\n"));
    assert_eq!(found[0].clause.0, "RPC-ERR-01");
    assert_eq!(found[0].reason, "crashed");
}

/// Server that ends at bytes that are not UTF-8.
struct DiesOfBytes(Box<dyn Machine>);

impl Machine for DiesOfBytes {
    fn handle(&mut self, event: machine::MachineEvent<'_>, now: Millis, actions: &mut Vec<Action>) {
        match event {
            machine::MachineEvent::Stdin(bytes) if std::str::from_utf8(bytes).is_err() => {
                actions.push(Action::Abort);
            }
            event => self.0.handle(event, now, actions),
        }
    }
}
