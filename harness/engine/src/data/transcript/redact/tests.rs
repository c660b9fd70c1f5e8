//! Tests that secrets are replaced in every event, also in escaped and partial form.

use std::sync::Arc;

use super::super::{Awaited, Bytes, Event, Exit, FolderChange, FoundKind, StdinState, strict};
use super::*;
use crate::data::clause::Side;
use crate::data::facts::Facts;
use crate::data::plan::{Plan, Session};

const SECRET: &str = "tok/3n-Secret";

fn secrets(texts: &[&str]) -> Secrets {
    let mut secrets = Secrets::default();
    texts.iter().for_each(|text| secrets.add(text));
    secrets
}

fn covered_text(text: &str) -> String {
    let mut text = text.to_owned();
    secrets(&[SECRET]).cover_text(&mut text);
    text
}

fn transcript(kinds: Vec<EventKind>) -> Transcript {
    let plan = Plan { sessions: vec![Session::default()], ..Plan::default() };
    Transcript {
        boundary: "toy".to_owned(),
        check: "x".to_owned(),
        facts: Arc::new(Facts::new(Side::Provider)),
        plan: Arc::new(plan),
        timeout_scale: 1.0,
        events: kinds.into_iter().map(|kind| Event { at_us: 0, session: 0, kind }).collect(),
    }
}

/// All kinds of events, with the secret wherever a peer's text may be.
fn every_kind() -> Vec<EventKind> {
    let text = || format!("a {SECRET} b");
    let bytes = || Bytes(text().into_bytes());
    let argv = || vec!["x".to_owned(), text()];
    let label = || "l".to_owned();
    let seen = [
        SightResult::Payload {
            path: text(),
            bytes: bytes(),
            total_bytes: 1,
            mode: 0,
            folder_mode: 0,
            is_own: true,
        },
        SightResult::NoPayload { path: text(), error: text() },
        SightResult::Environment { bytes: bytes() },
        SightResult::Limits { text: text() },
        SightResult::Stdin { state: StdinState::Open, bytes: bytes() },
        SightResult::Status { text: text() },
    ];
    let found = FoundEntry {
        path: bytes(),
        kind: FoundKind::File,
        inode: 1,
        mode: 0,
        total_bytes: 1,
        bytes: Some(bytes()),
    };
    let mut kinds = vec![
        EventKind::Started { argv: argv() },
        EventKind::StartFailed { error: text() },
        EventKind::Clock { unix_ms: 1 },
        EventKind::Sent {
            step: 0,
            payload: Payload::text(text()).var("v").then(Payload::from_bytes(&bytes().0)),
        },
        EventKind::Answered { bytes: bytes() },
        EventKind::StdinClosed,
        EventKind::StdinBroken { unwritten_bytes: 1 },
        EventKind::Received { bytes: bytes() },
        EventKind::HttpReply {
            step: 0,
            of_step: 0,
            connection: 0,
            reused: false,
            status: 200,
            content_type: Some(text()),
            head: bytes(),
            body_bytes: 0,
            body: Some(bytes()),
            keeps_open: true,
            took_us: 0,
        },
        EventKind::HttpFailed {
            step: 0,
            of_step: 0,
            connection: 0,
            reason: text(),
            wholly_sent: true,
            will_retry: false,
        },
        EventKind::StdoutClosed,
        EventKind::StdoutOverflow { bytes_max: 1, lines_max: None },
        EventKind::Stderr { bytes: bytes(), total_bytes: 1 },
        EventKind::ClientStderr { bytes: bytes(), total_bytes: 1 },
        EventKind::Signalled { signal: label() },
        EventKind::Exited { exit: Exit::Code(0) },
        EventKind::DeadlinePassed { awaited: Awaited::Exit, waited_ms: 1, slept: false },
        EventKind::Killed,
        EventKind::Waited { ms: 1 },
        EventKind::Memory { label: label(), hwm_bytes: 1 },
        EventKind::Processor { label: label(), used_ms: 1 },
        EventKind::LeakedProcess { pid: 1, command: text() },
        EventKind::LeftFile { path: text() },
        EventKind::ListenerHit { listener: label(), head: bytes(), body: bytes() },
        EventKind::ActorStarted { actor: label(), argv: argv(), pid: 1 },
        EventKind::ActorReceived { actor: label(), bytes: bytes(), pid: None },
        EventKind::ListenerReplied { listener: label(), status: 200, bytes: 1, whole: true },
        EventKind::ActorWrote { actor: label(), pid: 1, bytes: Payload::text(text()), whole: true },
        EventKind::ActorEnded { actor: label(), pid: 1, exit: Exit::Code(0) },
        EventKind::ClientStarted { argv: argv() },
        EventKind::ClientDeaf { unwritten_bytes: 1 },
        EventKind::ClientExited { exit: Exit::Signal(9) },
        EventKind::RecordingStopped { why: text() },
        EventKind::FileHeld { file: label(), bytes: bytes() },
        EventKind::Looked { label: label(), path: bytes(), found: vec![found], cut: false },
        EventKind::FilePut { path: bytes(), bytes: Payload::text(text()), error: Some(text()) },
        EventKind::FileMoved { from: bytes(), to: bytes(), error: Some(text()) },
        EventKind::FolderChanged {
            folder: label(),
            path: bytes(),
            change: FolderChange::Appeared,
            is_folder: false,
            pair: 1,
        },
        EventKind::WatchOverflow,
        EventKind::ActorAlive { actor: label(), label: label(), role: label() },
        EventKind::ActorFileStays { actor: label(), label: label(), path: text() },
    ];
    kinds.extend(seen.map(|seen| EventKind::ActorSaw { actor: label(), pid: 1, seen }));
    kinds
}

#[test]
fn no_event_is_stored_with_a_secret() {
    let mut transcript = transcript(every_kind());
    let mut before = Vec::new();
    transcript.store(&mut before).unwrap();
    transcript.redact(secrets(&[SECRET]));
    let mut after = Vec::new();
    transcript.store(&mut after).unwrap();
    let after = String::from_utf8(after).unwrap();
    assert!(!after.contains(SECRET), "{after}");
    assert!(String::from_utf8(before).unwrap().matches(SECRET).count() > 20);
    let lines = crate::run::reproducer::conversation(&transcript, 500, 500).join("\n");
    assert!(!lines.contains(SECRET) && lines.contains("RED"), "{lines}");
    // Serde lists the names of all kinds.
    let known = serde_json::from_str::<EventKind>(r#"{"what":"?"}"#).unwrap_err().to_string();
    let names = known.split('`').skip(3).step_by(2);
    for name in names {
        assert!(after.contains(&format!("\"what\":\"{name}\"")), "{name} is missing in this test");
    }
}

#[test]
fn every_event_is_read_strictly() {
    for event in transcript(every_kind()).events {
        let mut stored = serde_json::to_value(&event).unwrap();
        assert_eq!(strict::read::<Event>(&stored, "").unwrap(), event);
        stored["unheard_of"] = serde_json::Value::from(1);
        assert!(
            strict::read::<Event>(&stored, "").unwrap_err().to_string().contains("unheard_of"),
            "{stored}"
        );
        if let Some(found) = stored.pointer_mut("/found/0") {
            found["unheard_of"] = serde_json::Value::from(1);
            stored.as_object_mut().unwrap().remove("unheard_of");
            assert!(
                strict::read::<Event>(&stored, "").unwrap_err().to_string().contains("unheard_of"),
                "{stored}"
            );
        }
    }
}

#[test]
fn a_secret_is_found_wherever_reads_cut_it() {
    for cut in 1..SECRET.len() {
        let piece = |text: &str| EventKind::Received { bytes: Bytes(text.as_bytes().to_vec()) };
        let other =
            EventKind::ActorReceived { actor: "a".to_owned(), bytes: Bytes(b"xyz".to_vec()), pid: None };
        let mut transcript = transcript(vec![piece(&SECRET[..cut]), other.clone(), piece(&SECRET[cut..])]);
        transcript.redact(secrets(&[SECRET]));
        assert_eq!(String::from_utf8(transcript.stdout(0)).unwrap(), "RED/ACTED1_xx");
        assert_eq!(transcript.events[1].kind, other);
    }
}

#[test]
fn every_way_to_write_a_secret_has_a_placeholder_that_reads_the_same() {
    assert_eq!(covered_text("<tok/3n-Secret>"), "<RED/ACTED1_xx>");
    assert_eq!(covered_text(r#"{"a":"tok\/3n-Secret"}"#), r#"{"a":"RED\/ACTED1_xx"}"#);
    assert_eq!(covered_text(r#""{\"a\":\"tok\\/3n-Secret\"}""#), r#""{\"a\":\"RED\\/ACTED1_xx\"}""#);
    assert_eq!(covered_text(r"\u0074ok/3n-Secre\u0074"), r"\u0052ED/ACTED1_x\u0078");
    assert_eq!(covered_text(r"\\u0074ok/3n-Secret"), r"\\u0052ED/ACTED1_xx");
    assert_eq!(covered_text("a=tok%2F3n%2DSecret&b"), "a=RED%2FAC%54ED1_xx&b");
    assert_eq!(covered_text("tok/3n-Secre"), "RED/ACTED1_x", "the text ends within it");
    for other in ["tok/3n-Secre.", "tok/3n-secret", r"tok\u002", "%74o", "\\", "tok/3n-"] {
        assert_eq!(covered_text(other), other);
    }
    let mut text = r"é\ud83d\ude00abc \u00e9😀abc".to_owned();
    secrets(&["é😀abc"]).cover_text(&mut text);
    assert_eq!(text, r"é\ud83d\ude00RE1 \u00e9😀RE1");
}

#[test]
fn secrets_differ_after_they_were_replaced_and_longer_ones_go_first() {
    let all = ["abcd", "abce", "abcd-2", "123456", "123457", "a secret of more than twenty characters"];
    let mut lines = all.join("\n");
    secrets(&all).cover_text(&mut lines);
    let after: std::collections::BTreeSet<&str> = lines.lines().collect();
    assert_eq!(after.len(), all.len(), "{lines}");
    for (before, after) in all.iter().zip(lines.lines()) {
        assert!(before != &after && before.len() == after.len(), "{lines}");
        assert_eq!(before.parse::<u64>().is_ok(), after.parse::<u64>().is_ok(), "a number stays one");
    }
}

#[test]
fn words_and_numbers_of_a_protocol_are_no_secrets() {
    let mut configured = Secrets::default();
    ["true", "4096", "<END>", "key", "1.0e5", ""]
        .into_iter()
        .for_each(|text| configured.add_configured(text));
    assert!(configured.0.is_empty(), "{configured:?}");
    configured.add_configured("s3cr3t");
    configured.add_configured("correct-horse");
    assert_eq!(configured.0.len(), 2);

    let mut held = transcript(vec![EventKind::LeftFile { path: "provider/other-provider".to_owned() }]);
    let before = held.events.clone();
    held.redact(secrets(&["provider"]));
    assert_eq!(held.events, before, "the facts hold that word");
}

#[test]
fn a_secret_of_an_earlier_conversation_is_replaced_and_a_word_is_not() {
    for text in ["issued-4711-elsewhere", "succeeded", "a1"] {
        remember(text);
    }
    let text = b"{\"note\":\"issued-4711-elsewhere\",\"status\":\"succeeded\",\"x\":\"a1\"}";
    let mut later = transcript(vec![EventKind::Received { bytes: Bytes(text.to_vec()) }]);
    later.redact(Secrets::default());
    let said = String::from_utf8(later.stdout(0)).unwrap();
    assert!(!said.contains("issued-4711"), "{said}");
    assert!(said.ends_with("\"status\":\"succeeded\",\"x\":\"a1\"}"), "{said}");
    assert_eq!(said.len(), text.len());
}
