//! Builder of conversations: one process per envelope, or one server for all.

use std::collections::BTreeMap;

use peerproof_engine::contract::face::Aim;
use peerproof_engine::contract::memory;
use peerproof_engine::data::carriage::{Carriage, HTTP};
use peerproof_engine::data::finding::CANARY_FAILED;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::payload::{Payload, Vars};
use peerproof_engine::data::plan::{Act, Capture, Chunking, Plan, Session, Step};

use super::shape;

/// Clause: no request ends a server or harms later ones.
pub(crate) const LIVES: &str = "ENV-HTTP-05";

/// Most calls of a chain.
pub(crate) const CHAIN_MAX: usize = 50;

/// A plain envelope: the eight required members, before any stage.
pub const PLAIN: &str = r#"{"envelope_id":"env_0123456789abcdef","request_id":"req_0123456789abcdef","user_id":"u","session_id":"sess_0123456789abcdef","raw_input":"Analyze the authentication flow","outputs":{},"current_stage":"start","terminated":false}"#;

/// The six agents, in order.
const STAGES: &str = r#"["perception","intent","plan","execution","critic","integration"]"#;

/// Beginning of the ids of canaries after other requests.
pub(crate) const CANARY_ID: &str = "env_ca";

/// A conversation under construction.
pub struct Talk {
    plan: Plan,
    command: &'static str,
    /// Number of ids used.
    ids: usize,
    /// Bytes written to the current server.
    written: usize,
}

/// Sizes of two over-long envelopes in bytes, with the labels of the memory samples after them.
const OVER_SIZE: [(u64, &str); 2] = [(16_000_000, memory::AFTER_SMALLER), (60_000_000, memory::AFTER_LARGER)];

/// Size that a pipe does not hold, bytes: once written, the peer has begun to read.
const READ_BYTES: u64 = 256 << 10;

/// First number of canaries that isolate a message, above all ids of a conversation.
const ISOLATED_FROM: usize = 1 << 20;

/// Most bytes written to one server, which may return several times as many.
const SERVER_BYTES_MAX: usize = 12 << 20;

impl Talk {
    /// A conversation that begins with two canaries. The stages in the second show if the engine runs any.
    pub fn new(command: &'static str) -> Self {
        let plan = Plan { by_model: true, ..Plan::default() };
        let mut talk = Self { plan, command, ids: 0, written: 0 };
        talk.canary(PLAIN).canary(&with(PLAIN, [("stage_order", STAGES)]));
        talk
    }

    /// Continues over another transport.
    pub fn over(&mut self, command: &'static str) -> &mut Self {
        self.end();
        self.command = command;
        self.canary(PLAIN)
    }

    fn aimed(&self, clause: &str, reason: Option<&str>, act: Act) -> Step {
        let aim = Aim { clause: clause.into(), reason: reason.map(str::to_owned) };
        let session = self.plan.sessions.len() - 1;
        let http = (self.command == HTTP && matches!(act, Act::Send { .. })).then(Carriage::post);
        Step { session, http, expect: serde_json::to_value(aim).unwrap_or_default(), ..Step::new(act) }
    }

    /// Adds a session for the next step: a process, the current server, or a new one after many bytes.
    fn open(&mut self, bytes: usize) {
        let is_server = self.plan.sessions.last().is_some_and(|session| session.command == HTTP);
        self.written += bytes;
        if self.command == HTTP && is_server {
            if self.written <= SERVER_BYTES_MAX {
                return;
            }
            self.end();
        }
        self.written = bytes;
        self.plan.sessions.push(Session { command: self.command.to_owned(), ..Session::default() });
    }

    /// Writes to the peer. Except over HTTP, the end of input ends the message.
    fn write(&mut self, clause: &str, reason: Option<&str>, payload: Payload, chunking: Chunking) {
        self.open(payload.len(&Vars::new()));
        let await_frames = u32::from(self.command == HTTP);
        let canary = reason.is_some();
        let send = self.aimed(clause, reason, Act::Send { payload, chunking, await_frames });
        self.plan.steps.push(Step { canary, ..send });
        if self.command != HTTP {
            let session = self.plan.sessions.len() - 1;
            self.plan.steps.push(Step { canary, session, ..Step::new(Act::Finish) });
        }
    }

    /// Ends the server, if there is one.
    fn end(&mut self) {
        if self.command == HTTP {
            let session = self.plan.sessions.len() - 1;
            self.plan.steps.push(Step { canary: true, session, ..Step::new(Act::Finish) });
        }
    }

    /// Sends an envelope whose reply shows that the peer works.
    pub fn canary(&mut self, text: &str) -> &mut Self {
        let clause = if self.command == HTTP { "ENV-HTTP-01" } else { "ENV-FRAME-01" };
        self.write(clause, Some(CANARY_FAILED), Payload::text(text), Chunking::Whole);
        self
    }

    /// Sends an envelope over HTTP whose reply shows that earlier requests did no harm.
    pub fn canary_behind(&mut self) -> &mut Self {
        self.ids += 1;
        let id = format!("\"{CANARY_ID}{:014x}\"", self.ids);
        let text = with(PLAIN, [("envelope_id", id.as_str())]);
        self.write(LIVES, Some(CANARY_FAILED), Payload::text(text), Chunking::Whole);
        self
    }

    /// A step like [`Talk::canary_behind`], with an id that only steps of this number have.
    pub(crate) fn isolating(number: u64) -> Option<Step> {
        let mut talk = Talk::new(HTTP);
        talk.ids = usize::try_from(number).ok()?.saturating_add(ISOLATED_FROM);
        talk.canary_behind();
        talk.plan.steps.pop()
    }

    /// An envelope with ids that no other envelope of the conversation has.
    pub fn with_own_ids(&mut self, text: &str) -> String {
        self.ids += 1;
        let own = ["env", "req", "sess"].map(|prefix| format!("\"{prefix}_{:016x}\"", self.ids));
        with(
            text,
            ["envelope_id", "request_id", "session_id"].into_iter().zip(own.iter().map(String::as_str)),
        )
    }

    /// Sends an input about `clause` to a new process, or over HTTP with a canary after it.
    pub fn send(&mut self, clause: &str, payload: Payload, chunking: Chunking) -> &mut Self {
        self.write(clause, None, payload, chunking);
        if self.command == HTTP {
            self.canary_behind();
        }
        self
    }

    /// Sends an envelope to a new process in two halves with a pause.
    pub(crate) fn paused(&mut self, clause: &str, text: &str, ms: u64) {
        let (first, rest) = text.split_at_checked(text.len() / 2).unwrap_or((text, ""));
        self.open(text.len());
        for act in [send_all(first), Act::Wait { ms }, send_all(rest), Act::Finish] {
            self.push(clause, act);
        }
    }

    /// Sends an input over HTTP with these settings, and waits for this number of replies.
    pub fn carry(&mut self, clause: &str, payload: Payload, chunking: Chunking, how: Carriage, awaited: u32) {
        self.open(payload.len(&Vars::new()));
        let act = Act::Send { payload, chunking, await_frames: awaited };
        let send = self.aimed(clause, None, act);
        self.plan.steps.push(Step { http: Some(how), ..send });
    }

    /// Feeds the output back until it is terminated, with at most this number of calls.
    pub fn chain(&mut self, clause: &str, first: Payload, calls: usize) -> &mut Self {
        for call in 0..calls {
            let payload = if call == 0 { first.clone() } else { Payload::default().var("envelope") };
            self.write(clause, None, payload, Chunking::Whole);
            if let Some(last) = self.plan.steps.last_mut().filter(|_| call + 1 < calls) {
                last.capture = Some(Capture {
                    pointer: String::new(),
                    var: "envelope".to_owned(),
                    secret: false,
                    until: Some("/terminated".to_owned()),
                });
            }
        }
        self
    }

    /// Sends two envelopes that white space makes over-long, and samples the peer's memory before and after each:
    /// of a server once it has answered another request, of a process once it has begun to read.
    pub(crate) fn over_size(&mut self, clause: &str) -> &mut Self {
        let behind = PLAIN.strip_prefix('{').unwrap_or_default();
        let await_frames = u32::from(self.command == HTTP);
        let send = |payload| Act::Send { payload, chunking: Chunking::Whole, await_frames };
        if self.command == HTTP {
            self.push(clause, memory::sample(memory::IDLE));
        }
        for (bytes, label) in OVER_SIZE {
            if self.command == HTTP {
                let payload = Payload::text("{").repeat(" ", bytes);
                self.push(clause, send(payload.then(Payload::text(behind))));
                self.written = 0;
                self.canary_behind();
                self.push(clause, memory::sample(label));
                continue;
            }
            self.open(0);
            self.push(clause, send(Payload::text("{").repeat(" ", READ_BYTES)));
            self.push(clause, Act::Flush);
            self.push(clause, memory::sample(memory::IDLE));
            self.push(clause, send(Payload::default().repeat(" ", bytes)));
            self.push(clause, Act::Flush);
            self.push(clause, memory::sample(label));
            self.push(clause, send(Payload::text(behind)));
            self.push(clause, Act::Finish);
        }
        self
    }

    fn push(&mut self, clause: &str, act: Act) {
        let step = self.aimed(clause, None, act);
        self.plan.steps.push(step);
    }

    /// Other actions with a new process or the server.
    pub fn acts(&mut self, clause: &str, acts: &[Act]) -> &mut Self {
        self.open(0);
        acts.iter().for_each(|act| self.push(clause, act.clone()));
        self
    }

    /// Ends the server and returns the plan.
    pub fn plan(mut self) -> Plan {
        self.end();
        self.plan
    }
}

fn send_all(text: &str) -> Act {
    Act::Send { payload: Payload::text(text), chunking: Chunking::Whole, await_frames: 0 }
}

/// An envelope with changed members, given as names and JSON texts; empty text removes a member.
pub fn with<'a>(base: &str, changes: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut members = split(base);
    for (name, text) in changes {
        let name = format!("{name:?}");
        let place = members.iter().position(|(known, _)| *known == name);
        match place {
            Some(place) if text.is_empty() => {
                members.remove(place);
            }
            Some(place) => members[place].1 = text.to_owned(),
            None if text.is_empty() => {}
            None => members.push((name, text.to_owned())),
        }
    }
    let members: Vec<String> = members.iter().map(|(name, text)| format!("{name}:{text}")).collect();
    format!("{{{}}}", members.join(","))
}

/// An envelope with changed members: JSON texts, and literal strings.
pub fn changed(base: &str, members: &BTreeMap<String, String>, texts: &BTreeMap<String, String>) -> String {
    let quoted = texts.iter().map(|(name, text)| (name, Json::from(text.as_str()).to_text()));
    let all: Vec<_> = members.iter().map(|(name, text)| (name, text.clone())).chain(quoted).collect();
    with(base, all.iter().map(|(name, text)| (name.as_str(), text.as_str())))
}

/// Members of a base as JSON texts.
fn split(base: &str) -> Vec<(String, String)> {
    let parsed: Json = base.parse().unwrap_or_default();
    let members = parsed.as_object().unwrap_or_default();
    members.iter().map(|(name, value)| (format!("{name:?}"), value.to_text())).collect()
}

/// A base: `plain`, `done` (terminated), `full` or `full-done` (with every documented member).
pub fn base(name: &str) -> Option<String> {
    let done = [("terminated", "true"), ("terminal_reason", "\"completed_successfully\"")];
    match name {
        "plain" => Some(PLAIN.to_owned()),
        "done" => Some(with(PLAIN, done)),
        "full" => Some(full()),
        "full-done" => {
            Some(with(&full(), [("completed_at", "\"2025-12-10T10:00:05.5Z\"")].into_iter().chain(done)))
        }
        _ => None,
    }
}

/// An envelope with every documented member, with values other than the defaults where possible.
fn full() -> String {
    let own = [
        ("received_at", "\"2025-12-10T10:00:00.123456Z\""),
        ("outputs", "{\"perception\":{\"normalized_input\":\"x\"},\"other\":{\"a\":[1,null,{}]}}"),
        ("current_stage", "\"perception\""),
        ("iteration", "1"),
        ("max_iterations", "4"),
        ("llm_call_count", "2"),
        ("max_llm_calls", "11"),
        ("agent_hop_count", "3"),
        ("max_agent_hops", "22"),
        ("all_goals", "[\"a\",\"b\"]"),
        ("remaining_goals", "[\"b\"]"),
        ("goal_completion_status", "{\"a\":\"satisfied\",\"b\":\"pending\"}"),
        ("stage_order", STAGES),
        ("max_stages", "6"),
        ("terminal_reason", "null"),
        ("completed_at", "null"),
        ("terminated", "false"),
        ("clarification_pending", "false"),
        ("confirmation_pending", "false"),
    ];
    let samples =
        shape::envelope().members().iter().map(|(name, shape)| (name.clone(), shape.samples()[0].clone()));
    let samples: Vec<(String, String)> = samples.collect();
    let samples = samples.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    with(PLAIN, samples.filter(|(name, _)| !PLAIN.contains(&format!("\"{name}\""))).chain(own))
}
