//! Properties of the reference and the judges for any bytes and conversation. Fuzz targets and tests call the same
//! functions, which panic if a property does not hold.

mod spell;
#[cfg(test)]
mod stored;

use std::sync::{Arc, OnceLock};

use peerproof_reference::dispatcher;
use peerproof_reference::frame::{Frame, LineReader};
use peerproof_reference::limits::Limits;
use peerproof_reference::machine::{Action, ChildExit, Event, Machine};
use peerproof_reference::toolhost::{Config, Mode, machine};

use peerproof_engine::data::clause::Side;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Act, Chunking, Plan, Session, Step};
use peerproof_engine::data::transcript::{Bytes, Event as Happened, EventKind, Exit, Transcript};
use peerproof_toolhost::{full_facts, model, oracle, reply_rules};

use crate::input::{Conversation, Line, Pieces};
pub use spell::Request;

/// Conversation in serve mode.
pub type Talk = Conversation<Line<Request>>;

/// Small limits that a fuzzer crosses often.
fn small() -> Limits {
    Limits { stdin_bytes_max: 512, reply_bytes_max: 1024, idempotency_entries_max: 4, ..Limits::default() }
}

/// Framing: any division gives equal frames, lines over the limit are not held, and every byte of a shorter line comes
/// back, except a final CR.
///
/// # Panics
/// Panics if the property does not hold.
pub fn frame(data: &[u8]) {
    const LINE_BYTES_MAX: usize = 64;
    let read = |chunks: &mut dyn Iterator<Item = &[u8]>| {
        let mut reader = LineReader::new(LINE_BYTES_MAX);
        let mut frames = Vec::new();
        for chunk in chunks {
            let mut rest = chunk;
            while let Some(frame) = reader.next(&mut rest) {
                frames.push(owned(&frame));
            }
            assert!(reader.held_bytes() <= LINE_BYTES_MAX + 1, "{} bytes are held", reader.held_bytes());
        }
        if let Some(frame) = reader.finish() {
            frames.push(owned(&frame));
        }
        frames
    };
    let whole = read(&mut std::iter::once(data));
    let bytewise = read(&mut data.chunks(1));
    assert_eq!(whole, bytewise, "chunking carries no meaning");
    let fitting: Vec<Option<Vec<u8>>> = data
        .split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line).to_vec())
        .map(|line| (line.len() < LINE_BYTES_MAX).then_some(line))
        .collect();
    for (frame, line) in whole.iter().zip(&fitting) {
        if let (Some(frame), Some(line)) = (frame, line) {
            assert_eq!(frame, line, "a line that fits comes back");
        }
    }
}

fn owned(frame: &Frame<'_>) -> Option<Vec<u8>> {
    match frame {
        Frame::Line(line) => Some(line.to_vec()),
        Frame::TooLong => None,
    }
}

/// Run mode: any standard input gets exactly one valid reply, and exit status 0.
///
/// # Panics
/// Panics if the property does not hold.
pub fn run(data: &[u8]) {
    let mut config = Config::new(Mode::Run { aid: "AID.PEERPROOF.ECHO.v1".to_owned() });
    config.limits = small();
    let mut peer = machine(config);
    let mut actions = Vec::new();
    for chunk in data.chunks(100) {
        peer.handle(Event::Stdin(chunk), 0, &mut actions);
    }
    peer.handle(Event::StdinEof, 0, &mut actions);
    let out = stdout(&actions);
    let reply = decode(&out);
    let transcript = transcript("run", &[(data.to_vec(), out.clone())]);
    let faults = reply_rules::violations(&transcript, false, false, &reply, out.len().saturating_sub(1));
    assert!(faults.is_empty(), "{faults:?} in {:?}", String::from_utf8_lossy(&out));
    assert!(matches!(actions.last(), Some(Action::Exit(0))), "{actions:?}");
    let ok = reply.get("ok").and_then(Json::as_bool) == Some(true);
    assert!(!(ok && data.len() > small().stdin_bytes_max), "an input over the limit ran");
    // The decoders of harness and reference agree about validity.
    if ok {
        // The reference chooses to ignore a byte order mark.
        let text = data.strip_prefix(b"\xef\xbb\xbf").unwrap_or(data);
        json::decode(text, &DecodeLimits::default())
            .unwrap_or_else(|error| panic!("accepted what is no JSON: {error}"));
    }
}

/// Serve mode: the model allows the reference's answers. Returns the number of requests, for measuring.
///
/// # Panics
/// Panics if the model finds a fault.
pub fn serve(conversation: &Talk) -> usize {
    let mut peer = machine(Config::new(Mode::Serve));
    let mut turns = Vec::new();
    let mut actions = Vec::new();
    for line in lines(conversation) {
        actions.clear();
        give(&mut *peer, &line, conversation.pieces, &mut actions);
        if actions.iter().any(|action| matches!(action, Action::Abort)) {
            return turns.len();
        }
        turns.push((line, stdout(&actions)));
    }
    let findings = model::judge(&transcript("serve", &turns)).findings;
    let said = || -> String { turns.iter().map(|(line, _)| String::from_utf8_lossy(line)).collect() };
    assert!(findings.is_empty(), "{findings:#?}\nin {}", said());
    turns.len()
}

/// Serve mode with small limits that most conversations cross: replies are valid, one per line.
///
/// # Panics
/// Panics if the property does not hold.
pub fn serve_small(conversation: &Talk) {
    let mut config = Config::new(Mode::Serve);
    config.limits = small();
    let mut peer = machine(config);
    let mut actions = Vec::new();
    let mut asked = 0;
    for line in lines(conversation) {
        asked += usize::from(!is_blank(&line) || line.len() > small().stdin_bytes_max);
        give(&mut *peer, &line, conversation.pieces, &mut actions);
    }
    peer.handle(Event::StdinEof, u64::MAX / 2, &mut actions);
    let out = stdout(&actions);
    let replies: Vec<&[u8]> = out.split_inclusive(|byte| *byte == b'\n').collect();
    assert_eq!(replies.len(), asked, "one reply a line");
    let transcript = transcript("serve", &[]);
    for reply in replies {
        assert!(reply.len() <= small().reply_bytes_max, "a reply of {} bytes", reply.len());
        let faults = reply_rules::violations(&transcript, true, false, &decode(reply), reply.len() - 1);
        assert!(faults.is_empty(), "{faults:?} in {:?}", String::from_utf8_lossy(reply));
    }
}

/// Dispatcher: it takes a reply as a success only if that is one strict JSON object that says so.
///
/// # Panics
/// Panics if the property does not hold.
pub fn dispatcher_reply(data: &[u8]) {
    let config = dispatcher::Config::new("toolhost");
    let judged = dispatcher::reply::judge(data, ChildExit::Code(0), &config);
    let strict = json::decode(data, &DecodeLimits::default());
    match judged {
        Ok(output) => {
            let reply = strict.unwrap_or_else(|error| panic!("took {error} for a success")).value;
            assert_eq!(reply.get("ok").and_then(Json::as_bool), Some(true));
            let text = reply.get("output_json").and_then(Json::as_str).unwrap_or_default().to_owned();
            let expected = json::decode(text.as_bytes(), &DecodeLimits::default());
            let got = json::decode(output.as_bytes(), &DecodeLimits::default());
            let got = got.unwrap_or_else(|error| panic!("printed what is no JSON: {error}"));
            if let Ok(expected) = expected
                && !expected.facts.duplicate_keys
                && !expected.facts.lone_surrogates
            {
                assert_eq!(got.value, expected.value, "the output is printed as it is");
            }
        }
        Err(failure) => assert!(!failure.detail.is_empty(), "a failure says why"),
    }
    assert!(dispatcher::reply::judge(data, ChildExit::Code(1), &config).is_err(), "a crash is no success");
}

/// Judges: no transcript makes them panic, and a transcript always gives the same judgement.
///
/// # Panics
/// Panics if the property does not hold.
pub fn oracles(data: &[u8]) {
    let half = data.len() / 2;
    let (sent, received) = data.split_at(half);
    let turns: Vec<(Vec<u8>, Vec<u8>)> = lines(&Talk::of(sent))
        .zip(
            received
                .split_inclusive(|byte| *byte == b'\n')
                .map(<[u8]>::to_vec)
                .chain(std::iter::repeat(Vec::new())),
        )
        .collect();
    for command in ["serve", "run", "command"] {
        let transcript = transcript(command, &turns);
        assert_eq!(oracle::judge(&transcript), oracle::judge(&transcript));
        assert_eq!(model::judge(&transcript), model::judge(&transcript));
    }
    let stored = String::from_utf8_lossy(data);
    if let Ok(transcript) = Transcript::load(stored.as_bytes()) {
        let _ = oracle::judge(&transcript);
        let _ = model::judge(&transcript);
    }
}

fn lines(conversation: &Talk) -> impl Iterator<Item = Vec<u8>> {
    conversation.steps.iter().map(|line| line.bytes(Request::text))
}

/// Sends a line to a peer in pieces, and waits for its tools.
fn give(peer: &mut (dyn Machine + Send), line: &[u8], pieces: Pieces, actions: &mut Vec<Action>) {
    for piece in pieces.of(line) {
        peer.handle(Event::Stdin(piece), 0, actions);
        while !peer.wants_stdin() {
            peer.handle(Event::Wake, u64::MAX / 2, actions);
        }
    }
}

/// True if the reference chooses to ignore a line: JSON white space, perhaps after a byte order mark.
fn is_blank(line: &[u8]) -> bool {
    let text = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    text.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
}

fn stdout(actions: &[Action]) -> Vec<u8> {
    let mut out = Vec::new();
    for action in actions {
        if let Action::Stdout(bytes) = action {
            out.extend_from_slice(bytes);
        }
    }
    out
}

fn decode(bytes: &[u8]) -> Json {
    json::decode(bytes, &DecodeLimits::default())
        .unwrap_or_else(|error| panic!("{error} in {:?}", String::from_utf8_lossy(bytes)))
        .value
}

fn facts() -> &'static Arc<Facts> {
    static FACTS: OnceLock<Arc<Facts>> = OnceLock::new();
    FACTS.get_or_init(|| Arc::new(full_facts::facts(Side::Provider)))
}

/// Transcript of a finished session in lock-step.
fn transcript(command: &str, turns: &[(Vec<u8>, Vec<u8>)]) -> Transcript {
    let mut plan = Plan {
        sessions: vec![Session { command: command.to_owned(), ..Session::default() }],
        ..Plan::default()
    };
    let mut events = Vec::new();
    let mut at_us = 0;
    let mut push = |kind| {
        at_us += 1;
        events.push(Happened { at_us, session: 0, kind });
    };
    for (step, (sent, received)) in turns.iter().enumerate() {
        let payload = Payload::from_bytes(sent);
        push(EventKind::Sent { step, payload: payload.clone() });
        plan.steps.push(Step::new(Act::Send { payload, chunking: Chunking::Whole, await_frames: 1 }));
        if !received.is_empty() {
            push(EventKind::Received { bytes: Bytes(received.clone()) });
        }
    }
    plan.steps.push(Step::new(Act::Finish));
    push(EventKind::StdinClosed);
    push(EventKind::StdoutClosed);
    push(EventKind::Exited { exit: Exit::Code(0) });
    Transcript {
        boundary: "toolhost".to_owned(),
        check: "property".to_owned(),
        facts: Arc::clone(facts()),
        plan: plan.into(),
        timeout_scale: 1.0,
        events,
    }
}
