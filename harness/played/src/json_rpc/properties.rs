//! Properties of the reference server and the model for any bytes and conversation. Fuzz targets and tests call the
//! same functions, which panic if a property does not hold.

mod spell;
#[cfg(test)]
mod stored;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use peerproof_reference::json::{BigNumbers, DuplicateKeys, LoneSurrogates, Policy, Value, write_value};
use peerproof_reference::json_rpc::{
    AuthConfig, Config, HmacVerifier, Verifier as _, machine, signature as sign, write_jcs,
};
use peerproof_reference::limits::Limits;
use peerproof_reference::machine::{Action, Event, Machine};

use peerproof_engine::data::clause::Side;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::json::{self, DecodeErrorKind, DecodeLimits, Json};
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Act, Chunking, Plan, Session, Step as Planned};
use peerproof_engine::data::transcript::{Bytes, Event as Happened, EventKind, Exit, Transcript};
use peerproof_json_rpc::{full_facts, server};

use crate::input::{Conversation, Line, Pieces, ShortList};
pub use spell::{Element, Sent, Step};

/// Conversation of lines.
pub type Talk = Conversation<Line<Sent>>;
/// Elements of a batch.
pub type Batch = ShortList<Element, 200>;
/// Conversation about tasks that may stream.
pub type Tasks = Conversation<Step>;

/// Maximum nesting at which both decoders are compared.
const DEPTH: usize = 64;
/// Maximum number of lines of a conversation.
const LINES_MAX: usize = 100;
/// Maximum length of a response of the reference beyond its request, bytes.
const REPLY_BYTES_MAX: usize = 2_048;
/// Maximum growth of a byte that comes back as `\u00XX` or in a replacement character.
const ESCAPED_MAX: usize = 6;

/// Both decoders agree about validity and value of a text, written values are read back equal, and the model allows the
/// reference's answer to the line.
///
/// # Panics
/// Panics if the property does not hold.
pub fn decode(data: &[u8]) {
    let ours = json::decode(data, &DecodeLimits { depth_max: DEPTH, ..DecodeLimits::default() });
    let theirs = Value::parse(data, DEPTH, &Policy::default());
    match (&ours, &theirs) {
        (Ok(ours), Ok(theirs)) => {
            let mut text = Vec::new();
            write_value(&mut text, theirs);
            let again = Value::parse(&text, DEPTH, &Policy::default());
            assert_eq!(again.as_ref(), Ok(theirs), "what is written is read as the same");
            if !ours.facts.duplicate_keys && !ours.facts.lone_surrogates {
                assert_eq!(read(&text), ours.value, "both read the same");
                assert_eq!(read(ours.value.to_text().as_bytes()), ours.value);
                assert_eq!(read(ours.value.to_text_pretty().as_bytes()), ours.value);
            }
        }
        (Err(_), Err(_)) => {}
        (Err(error), Ok(_)) if matches!(error.kind, DecodeErrorKind::TooDeep { .. }) => {}
        (Ok(_), Err(error)) => panic!("the reference refuses what is JSON: {error}"),
        (Err(error), Ok(_)) => panic!("the reference takes what is no JSON: {error}"),
    }
    let mut server = Server::new(Config::default());
    for line in data.split(|byte| *byte == b'\n').take(LINES_MAX) {
        server.turn(&[line, b"\n"].concat());
    }
    server.finish();
}

/// Runs conversations of calls and notifications, valid, wrong and malformed, alone and in batches. Returns the number
/// of lines.
///
/// # Panics
/// Panics if the model finds a fault.
pub fn converse(conversation: &Talk) -> usize {
    let mut server = Server::new(Config::default());
    for line in conversation.steps.iter() {
        server.turn_in(&line.bytes(Sent::text), conversation.pieces);
    }
    server.finish()
}

/// Runs a batch: each id is answered once, each invalid element gets an error, each notification nothing. The answer's
/// length is bounded by the request's, and the model agrees.
///
/// # Panics
/// Panics if the property does not hold.
pub fn batch(batch: &Batch) {
    let (mut ids, mut without_id) = (Vec::new(), 0);
    let mut elements = Vec::new();
    for (at, element) in batch.iter().enumerate() {
        match element {
            Element::NoRequest(_) => without_id += 1,
            Element::Notification(..) => {}
            Element::Call(..) => ids.push(format!("b{at}")),
        }
        elements.push(element.text(&format!("b{at}")));
    }
    let line = format!("[{}]\n", elements.join(","));
    let mut server = Server::new(Config::default());
    let out = server.turn(line.as_bytes());
    assert!(out.len() <= line.len() * ESCAPED_MAX + (elements.len() + 1) * REPLY_BYTES_MAX, "{}", out.len());
    if elements.is_empty() {
        assert_eq!(read(&out).pointer("/error/code").and_then(Json::as_i64), Some(-32600));
    } else if ids.is_empty() && without_id == 0 {
        assert!(out.is_empty(), "a batch of notifications is answered");
    } else {
        let reply = read(&out);
        let items = reply.as_array().unwrap_or_else(|| panic!("no array: {reply:?}"));
        let mut answered: Vec<&str> =
            items.iter().filter_map(|item| item.get("id").and_then(Json::as_str)).collect();
        answered.sort_unstable();
        ids.sort_unstable();
        assert_eq!(answered, ids, "each id once");
        assert_eq!(items.len() - answered.len(), without_id, "each element that is no request, once");
    }
    server.finish();
}

/// Runs streaming tasks with different paces and timeouts, started and awaited in any order. Each stream begins once,
/// counts without gaps, ends once and before its response, and then is silent; every task has one response. Returns the
/// number of streams.
///
/// # Panics
/// Panics if the property does not hold.
pub fn stream(conversation: &Tasks) -> usize {
    const TASKS_MAX: usize = 24;
    let mut server = Server::new(Config::default());
    let mut tasks = 0;
    for step in conversation.steps.iter() {
        match step {
            Step::Pass(ms) => server.pass(u64::from(*ms)),
            Step::Task(task) if tasks < TASKS_MAX => {
                server.turn_in((task.text(tasks) + "\n").as_bytes(), conversation.pieces);
                tasks += 1;
            }
            Step::Task(_) | Step::Notification => {
                server.turn(b"{\"jsonrpc\":\"2.0\",\"method\":\"peerproof.counter\"}\n");
            }
        }
    }
    // At the end of its input a server may give up tasks. So give each the time that it asks for.
    server.pass(700_000);
    let out = server.out.clone();
    server.finish();
    let mut streams: BTreeMap<String, (String, u64, bool)> = BTreeMap::new();
    let mut answered: BTreeMap<String, u32> = BTreeMap::new();
    for line in out.split_inclusive(|byte| *byte == b'\n') {
        let message = read(line);
        let of = |name: &str| message.pointer(&format!("/params/{name}")).map(Json::to_text);
        let stream_id = of("stream_id").unwrap_or_default();
        match message.get("method").and_then(Json::as_str) {
            Some("stream_start") => {
                let task = of("task_id").unwrap_or_default();
                assert!(!answered.contains_key(&task), "a stream begins after its response");
                assert!(streams.insert(stream_id, (task, 0, false)).is_none(), "a stream begins twice");
            }
            Some("stream_data") => {
                let (task, count, ended) = streams.get_mut(&stream_id).expect("data of a stream that began");
                *count += 1;
                assert!(!*ended && !answered.contains_key(task), "data after the end");
                assert_eq!(of("sequence"), Some(count.to_string()), "a gap");
            }
            Some("stream_end") => {
                let (task, count, ended) =
                    streams.get_mut(&stream_id).expect("the end of a stream that began");
                assert!(!std::mem::replace(ended, true) && !answered.contains_key(task), "a second end");
                assert_eq!(of("total_chunks"), Some(count.to_string()));
            }
            Some(other) => panic!("a call of {other}"),
            None => {
                *answered.entry(message.get("id").map(Json::to_text).unwrap_or_default()).or_default() += 1
            }
        }
    }
    assert!(streams.values().all(|(.., ended)| *ended), "a stream has no end: {streams:?}");
    assert_eq!(answered.len(), tasks, "{answered:?}");
    assert!(answered.values().all(|count| *count == 1), "{answered:?}");
    streams.len()
}

/// Canonical form: it is stable, has the meaning of the message, and does not depend on presentation or an existing
/// signature. A valid signature verifies in every presentation, but not with a further member. Returns true if there
/// was something to sign.
///
/// # Panics
/// Panics if the property does not hold.
pub fn signature(data: &[u8]) -> bool {
    const KEY: &[u8] = b"test-key";
    const NOW_S: u64 = 1_634_567_890;
    let strict = Policy {
        duplicate_keys: DuplicateKeys::Refuse,
        lone_surrogates: LoneSurrogates::Refuse,
        big_numbers: BigNumbers::Refuse,
    };
    let Ok(value) = Value::parse(data, DEPTH, &strict) else { return false };
    let canonical = |value: &Value| {
        let mut text = Vec::new();
        write_jcs(&mut text, value);
        text
    };
    let text = canonical(&value);
    // A large double with a fraction is written without one and looks like an unsignable integer.
    let written = Policy { big_numbers: BigNumbers::Round, ..strict };
    let again = Value::parse(&text, DEPTH, &written).unwrap_or_else(|error| panic!("{error}: no JSON"));
    assert_eq!(canonical(&again), text, "the canonical form is its own");
    let (said, meant) = (read(&text), read(data));
    assert!(alike(&said, &meant), "{said:?} is not {meant:?}");
    if said.as_object().is_none() {
        return false;
    }
    let auth = |signature: &str| {
        Json::object([
            ("signature", Json::from(signature)),
            ("nonce", Json::from("n-1")),
            ("timestamp", Json::from(NOW_S)),
        ])
    };
    let mut message = meant;
    message.set("auth", auth("x"));
    let signed = sign(KEY, message.to_text().as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    message.set("auth", auth(&signed));
    let config = AuthConfig { key: KEY.to_vec(), key_id: None };
    let verifier = HmacVerifier::new(config, &Limits::default());
    let verify = |text: &str| verifier.verify(text.as_bytes(), NOW_S).is_some();
    assert!(verify(&message.to_text()), "what was signed verifies");
    assert!(verify(&message.to_text_pretty()), "white space is no part of it");
    let members = message.as_object().unwrap_or_default().to_vec();
    let reversed = Json::object(members.into_iter().rev());
    assert!(verify(&reversed.to_text()), "the order of members is no part of it");
    let mut name = "z".to_owned();
    while message.get(&name).is_some() {
        name.push('z');
    }
    message.set(&name, Json::from(0_u64));
    assert!(!verify(&message.to_text()), "a member more is refused");
    message.remove(&name);
    message.set("auth", auth(&signed.chars().rev().collect::<String>()));
    let palindrome = signed.chars().rev().eq(signed.chars());
    assert!(palindrome || !verify(&message.to_text()), "another signature is refused");
    true
}

/// True if two values are equal to a reader with doubles.
fn alike(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Number(a), Json::Number(b)) => a.as_f64() == b.as_f64(),
        (Json::Array(a), Json::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b)),
        (Json::Object(a), Json::Object(members)) => {
            a.len() == members.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| alike(a, b)))
        }
        (a, b) => a == b,
    }
}

fn read(bytes: &[u8]) -> Json {
    json::decode(bytes, &DecodeLimits::default())
        .unwrap_or_else(|error| panic!("{error} in {:?}", String::from_utf8_lossy(bytes)))
        .value
}

fn facts() -> &'static Arc<Facts> {
    static FACTS: OnceLock<Arc<Facts>> = OnceLock::new();
    FACTS.get_or_init(|| Arc::new(full_facts::facts(Side::Provider)))
}

/// The reference in this process, on a controlled clock.
struct Server {
    machine: Box<dyn Machine + Send>,
    now: u64,
    wake_at: Option<u64>,
    /// Output of the server so far.
    out: Vec<u8>,
    exited: bool,
    events: Vec<Happened>,
    steps: Vec<Planned>,
}

impl Server {
    fn new(config: Config) -> Self {
        Self {
            machine: machine(config),
            now: 0,
            wake_at: None,
            out: Vec::new(),
            exited: false,
            events: Vec::new(),
            steps: Vec::new(),
        }
    }

    fn note(&mut self, kind: EventKind) {
        let at_us = self.now * 1_000 + self.events.len() as u64 % 1_000;
        self.events.push(Happened { at_us, session: 0, kind });
    }

    fn event(&mut self, event: Event<'_>) {
        let mut actions = Vec::new();
        self.machine.handle(event, self.now, &mut actions);
        for action in actions {
            assert!(!self.exited, "nothing follows the end");
            match action {
                Action::Stdout(bytes) => {
                    self.out.extend_from_slice(&bytes);
                    self.note(EventKind::Received { bytes: Bytes(bytes) });
                }
                Action::WakeAt(time) => self.wake_at = Some(time),
                Action::Exit(status) => {
                    assert_eq!(status, 0, "it ends well");
                    self.exited = true;
                }
                Action::Stderr(_) => {}
                other => panic!("unexpected {other:?}"),
            }
        }
    }

    /// Advances the clock, with every wake-up on the way.
    fn pass(&mut self, ms: u64) {
        let end = self.now + ms;
        while let Some(at) = self.wake_at.filter(|at| *at <= end && !self.exited) {
            self.now = self.now.max(at);
            self.wake_at = None;
            self.event(Event::Wake);
        }
        // Record the time of its end, not the later time.
        if !self.exited {
            self.now = end;
        }
    }

    /// Sends bytes at once; returns the output that comes without delay.
    fn turn(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.turn_in(bytes, Pieces::Whole)
    }

    fn turn_in(&mut self, bytes: &[u8], pieces: Pieces) -> Vec<u8> {
        let (step, payload) = (self.steps.len(), Payload::from_bytes(bytes));
        self.note(EventKind::Sent { step, payload: payload.clone() });
        self.steps.push(Planned::new(Act::Send { payload, chunking: Chunking::Whole, await_frames: 0 }));
        let before = self.out.len();
        pieces.of(bytes).for_each(|piece| self.event(Event::Stdin(piece)));
        self.pass(0);
        self.out[before..].to_vec()
    }

    /// Ends the input, awaits the end of the server and judges everything by the model; returns the number of steps.
    fn finish(mut self) -> usize {
        self.note(EventKind::StdinClosed);
        self.event(Event::StdinEof);
        self.pass(700_000);
        assert!(self.exited, "the end of the input ends the server");
        self.note(EventKind::StdoutClosed);
        self.note(EventKind::Exited { exit: Exit::Code(0) });
        let count = self.steps.len();
        self.steps.push(Planned::new(Act::Finish));
        let session = Session { command: "command".to_owned(), ..Session::default() };
        let plan = Plan { sessions: vec![session], steps: self.steps, by_model: true, ..Plan::default() };
        let transcript = Transcript {
            boundary: "json_rpc".to_owned(),
            check: "property".to_owned(),
            facts: Arc::clone(facts()),
            plan: Arc::new(plan),
            timeout_scale: 1.0,
            events: self.events,
        };
        let judgement = server::judge(&transcript);
        let lines = peerproof_engine::data::lines::of_session(&transcript, 0);
        let said =
            || -> String { lines.iter().map(|line| String::from_utf8_lossy(&line.bytes) + "\n").collect() };
        assert!(judgement.findings.is_empty(), "{:#?}\nin {}", judgement.findings, said());
        count
    }
}
