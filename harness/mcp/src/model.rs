//! Model of an MCP server: derives the allowed answers from the bytes that were really written.
//!
//! The model of JSON-RPC (`peerproof-json-rpc`) decodes, matches and compares messages. MCP adds a session: the
//! opening, the declared capabilities, and the cursors of the server. A step may name the clause that it tests; by
//! default the message itself decides.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::connection::{DISCOVER, INITIALIZE, INITIALIZED, PING};
use super::revision::Revision;
use super::server_knowledge::{ServerKnowledge, list_of};
use peerproof_engine::contract::face::{
    Expectation, Expected, PlacedExpectation, Stimulus, StimulusKind as Stimulated, Subject,
};
use peerproof_engine::data::clause::{Clause, StimulusValidity as ClauseStimulus};
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::lines::RequestLine;
use peerproof_engine::data::transcript::{EventKind, Transcript};
use peerproof_json_rpc::frames::is_call;
use peerproof_json_rpc::model::allowed::{is_same_text, key};
use peerproof_json_rpc::model::{AllowedAnswer as RpcAnswer, AnswerKind, IdRule};

mod allowed_answer;
pub(crate) mod arguments;
pub(crate) mod request;

pub(crate) use allowed_answer::{Allowed, AllowedAnswer, RequestNotes, RequestPart};
pub(crate) use allowed_answer::{NO_ERROR, is_tool_error};
pub(crate) use request::{CANCELLED, LEVELS};

pub(crate) use super::unknown::{UNKNOWN_CURSOR, UNKNOWN_PROMPT, UNKNOWN_TASK, UNKNOWN_TOOL, UNKNOWN_URI};
use allowed_answer::{any_reply, error_but, error_of, error_with_any_id, result, unit};

/// Clause about requests that are pending at the end of input.
pub(crate) const PENDING_AT_END: &str = "MCP-END-04";

/// Clauses about canaries: behind valid messages, and behind invalid ones.
const ON_CANARIES: [&str; 2] = ["MCP-BAS-02", "MCP-BAS-12"];

/// Nesting that every server reads.
const DEPTH_CERTAIN: usize = 64;
/// Length of a line that no server takes for a long one, bytes.
const LINE_BYTES_SMALL: usize = 8 << 10;
/// Length of a line that every server reads, bytes.
const LINE_BYTES_CERTAIN: usize = 1_000_000;
/// Most bytes of output that are kept without a line feed.
const REST_BYTES_MAX: usize = 16 << 20;

/// An MCP server.
pub struct Server;

/// Allowed answers to one line.
pub(crate) type Asking = Expectation<AllowedAnswer, RequestNotes>;

/// True for a final status.
pub(crate) fn is_terminal(status: &str) -> bool {
    matches!(status, "completed" | "failed" | "cancelled")
}

/// State of one session of a conversation.
#[derive(Debug, Default)]
pub struct Session {
    /// True once `initialize` was sent.
    pub opening: bool,
    /// True once its result came.
    pub opened: bool,
    /// True once `notifications/initialized` was sent.
    pub ready: bool,
    /// Revision of the session, if the result names a known one.
    pub revision: Option<Revision>,
    /// Capabilities of the server, from its result.
    pub capabilities: Option<Json>,
    /// Cursors from the server, each with its list.
    pub cursors: BTreeSet<(String, String)>,
    /// Uris of the listed resources.
    pub uris: BTreeSet<String>,
    /// Last known status of each task.
    pub tasks: BTreeMap<String, String>,
    /// Step that wrote an invalid request.
    pub odd_step: Option<usize>,
    /// Step that wrote `notifications/initialized`.
    pub ready_step: Option<usize>,
    /// True if the server answered `server/discover` like servers of revision 2026-07-28. Then `initialize` is left
    /// open.
    pub modern: bool,
    pongs: Pongs,
    /// Requests without an answer: methods and keys of their ids.
    pending: BTreeMap<String, String>,
    rest: Vec<u8>,
}

impl Session {
    /// An opened session with a server of these facts.
    fn of_opened(facts: &Facts) -> Self {
        Self {
            opening: true,
            opened: true,
            ready: true,
            revision: ServerKnowledge::of(facts).revision(),
            ..Self::default()
        }
    }

    /// True if the server declares a capability: in this session, else according to the probe.
    pub(crate) fn declares(&self, known: ServerKnowledge<'_>, name: &str) -> bool {
        match &self.capabilities {
            Some(all) => {
                let value = all.pointer(&format!("/{name}"));
                value.is_some_and(|value| !value.is_null() && value.as_bool() != Some(false))
            }
            None => known.declares(name),
        }
    }

    /// Handles output of the server.
    fn hear(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.rest.len() < REST_BYTES_MAX {
                self.rest.extend_from_slice(piece);
            }
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.rest);
                if let Some(message) = peerproof_json_rpc::frames::message(&line) {
                    self.learn(&message);
                }
            }
        }
    }

    /// Removes the request that a message answers, and returns its method. An id of the wrong type counts, and the
    /// result of `initialize` is known by its content.
    fn answered(&mut self, message: &Json) -> Option<String> {
        if is_call(message) {
            return None;
        }
        let came = message.get("id").and_then(key).unwrap_or_default();
        if let Some(method) = self.pending.remove(&came) {
            return Some(method);
        }
        let opens = message.pointer("/result/protocolVersion").is_some();
        let is_its = |(due, method): &(&String, &String)| {
            is_same_text(due, &came) || opens && method.as_str() == INITIALIZE
        };
        let due = self.pending.iter().find(is_its).map(|(due, _)| due.clone())?;
        self.pending.remove(&due)
    }

    fn learn(&mut self, message: &Json) {
        let Some(method) = self.answered(message) else { return };
        let result = message.get("result");
        if method == PING {
            self.pongs.results += usize::from(result.is_some());
            self.pongs.errors += usize::from(message.get("error").is_some());
        }
        let Some(result) = result else { return };
        self.modern |= method == DISCOVER;
        if method == INITIALIZE {
            self.opened = true;
            self.revision = result.get("protocolVersion").and_then(Json::as_str).and_then(Revision::of);
            self.capabilities = result.get("capabilities").cloned();
        } else if let Some(cursor) = result.get("nextCursor").and_then(Json::as_str)
            && list_of(&method).is_some()
        {
            self.cursors.insert((method.clone(), cursor.to_owned()));
        }
        let task = result.get("task").unwrap_or(result);
        if let (Some(id), Some(status)) = (task.get("taskId"), task.get("status"))
            && let (Some(id), Some(status)) = (id.as_str(), status.as_str())
        {
            self.tasks.insert(id.to_owned(), status.to_owned());
        }
        if method == "resources/list" {
            let items = result.get("resources").and_then(Json::as_array).unwrap_or_default();
            let uris = items.iter().filter_map(|item| item.get("uri")?.as_str());
            self.uris.extend(uris.map(str::to_owned));
        }
    }

    /// Handles a message of the client.
    fn say(&mut self, message: &Json) {
        let Some(method) = message.get("method").and_then(Json::as_str) else { return };
        match message.get("id").and_then(key) {
            Some(key) => {
                self.opening |= method == INITIALIZE;
                self.pending.insert(key, method.to_owned());
            }
            None => self.ready |= method == INITIALIZED,
        }
    }
}

/// State of the model in a conversation.
pub struct State {
    facts: Arc<Facts>,
    sessions: Vec<Session>,
}

/// Answers to `ping` so far.
#[derive(Debug, Default)]
struct Pongs {
    results: usize,
    errors: usize,
}

impl State {
    /// State before the first message.
    pub fn new(transcript: &Transcript) -> Self {
        let sessions = transcript.plan.sessions.iter().map(|_| Session::default()).collect();
        Self { facts: Arc::clone(&transcript.facts), sessions }
    }

    /// A session of the conversation after the last stimulus.
    pub fn session(&self, session: usize) -> Option<&Session> {
        self.sessions.get(session)
    }

    /// Allowed answers to a stimulus.
    pub fn expect(&mut self, stimulus: &Stimulus<'_>) -> Option<Asking> {
        let session = self.sessions.get_mut(stimulus.session)?;
        match stimulus.what {
            Stimulated::Said(line) => {
                let mut due = said(session, &self.facts, line);
                due.parts.iter_mut().for_each(|unit| pin(unit, &self.facts));
                Some(due)
            }
            Stimulated::Happened(EventKind::Received { bytes }) => {
                session.hear(&bytes.0);
                None
            }
            Stimulated::Begun | Stimulated::Happened(_) => None,
        }
    }

    /// Lets cancelled requests go unanswered. A server that refuses each `ping`, or answers the end of the opening,
    /// is only blamed by the steps about that.
    pub fn complete(&mut self, asked: &mut [PlacedExpectation<Server>]) {
        blame_canaries(asked);
        let pongs =
            |count: fn(&Pongs) -> usize| self.sessions.iter().map(|it| count(&it.pongs)).sum::<usize>();
        let has_no_ping = pongs(|pongs| pongs.errors) > 0 && pongs(|pongs| pongs.results) == 0;
        for asked in asked.iter_mut() {
            let is_about = |clause: &str| asked.aim.as_ref().is_some_and(|aim| aim.clause.0 == clause);
            let (of_ping, of_notices) = (is_about("MCP-UTL-01"), is_about("MCP-BAS-05"));
            let is_answered = !of_notices && ServerKnowledge::of(&self.facts).answers_initialized();
            let of_end = is_about(PENDING_AT_END);
            for unit in &mut asked.due.parts {
                if has_no_ping
                    && !of_ping
                    && unit.extra.id.is_some()
                    && unit.extra.method.as_deref() == Some(PING)
                {
                    unit.allowed.push(error_but(&[]));
                }
                if of_end && unit.extra.method.as_deref() == Some("tools/call") {
                    unit.clause = PENDING_AT_END;
                    unit.choice = Some("mcp_eof_pending");
                    unit.allowed =
                        vec![any_reply(IdRule::Own).shows("answer"), Allowed::silence().shows("drop")];
                    pin(unit, &self.facts);
                }
                if ends_opening(unit) && is_answered {
                    unit.allowed.push(any_reply(IdRule::NullOrAbsent));
                }
            }
            // A surplus answer belongs to no request, least of all to the end of the opening.
            if !of_notices && !is_answered {
                asked.due.parts.retain(|unit| !ends_opening(unit));
            }
        }
        let cancels = asked.iter().enumerate().flat_map(|(at, asked)| {
            let keys = asked.due.parts.iter().filter_map(|part| part.extra.cancels.as_ref().and_then(key));
            keys.map(move |key| (at, asked.session, key)).collect::<Vec<_>>()
        });
        for (at, session, cancelled) in cancels.collect::<Vec<_>>() {
            let before = asked[..at].iter_mut().rev().filter(|asked| asked.session == session);
            let mut parts = before.flat_map(|asked| &mut asked.due.parts);
            if let Some(part) = parts.find(|part| part.key() == Some(cancelled.as_str())) {
                part.extra.was_cancelled = true;
                // A `ping` is answered before anybody can cancel it.
                part.choice = (part.extra.method.as_deref() == Some("tools/call")).then_some("mcp_cancelled");
                // Some servers tell of it by an error; a rule looks at that.
                part.allowed = vec![
                    Allowed::silence().shows("silent"),
                    result().shows("result"),
                    any_reply(IdRule::Own),
                ];
            }
        }
    }
}

/// Blames a lost canary on the message before it: behind an invalid one the server must live on, behind a valid one it
/// must answer.
fn blame_canaries(asked: &mut [PlacedExpectation<Server>]) {
    let mut is_behind_invalid = BTreeMap::new();
    for asked in asked {
        let behind = is_behind_invalid.entry(asked.session).or_default();
        if !asked.canary {
            *behind = asked.due.parts.iter().any(is_invalid);
        } else if let Some(aim) =
            asked.aim.as_mut().filter(|aim| ON_CANARIES.contains(&aim.clause.0.as_str()))
        {
            aim.clause = ON_CANARIES[usize::from(*behind)].into();
        }
    }
}

/// True for a message that the protocol forbids.
fn is_invalid(unit: &RequestPart) -> bool {
    let rows: &'static [Clause] = super::boundary().clauses();
    rows.iter().any(|row| row.id.0 == unit.clause && row.stimulus == ClauseStimulus::Invalid)
}

/// True for the notification that ends an opening.
pub(crate) fn ends_opening(unit: &RequestPart) -> bool {
    unit.extra.method.as_deref() == Some(INITIALIZED)
}

/// Removes outcomes that the pinned value of the choice forbids.
fn pin(unit: &mut RequestPart, facts: &Facts) {
    let Some(pinned) = unit.choice.and_then(|key| facts.choices.get(key)) else { return };
    let fits = |allowed: &Allowed| allowed.shows.is_none_or(|shows| shows == pinned);
    if unit.allowed.iter().any(fits) {
        unit.allowed.retain(fits);
    }
}

/// Smallest number of responses to these bytes, which are whole lines on an open connection.
pub(crate) fn frames_due(facts: &Facts, bytes: &[u8]) -> u32 {
    let mut session = Session::of_opened(facts);
    let mut due = 0;
    for bytes in bytes.split_inclusive(|byte| *byte == b'\n') {
        let Some(bytes) = bytes.strip_suffix(b"\n") else { continue };
        let asked = said(&mut session, facts, &RequestLine::alone(bytes));
        let own = asked.parts.iter().filter(|unit| !unit.may_be_silent()).count() as u32;
        due += if asked.together { own.min(1) } else { own };
    }
    due
}

/// Allowed answers to a line.
fn said(session: &mut Session, facts: &Facts, line: &RequestLine) -> Asking {
    let bytes = line.bytes.strip_suffix(b"\r").unwrap_or(&line.bytes);
    let decoded = match json::decode(bytes, &DecodeLimits::default()) {
        Ok(decoded) => decoded,
        Err(_) => {
            session.odd_step = Some(line.step);
            return Expectation::one(undecodable(bytes, line.ended));
        }
    };
    if let Json::Array(items) = &decoded.value {
        return match session.revision {
            Some(Revision::R2025Mar) if !items.is_empty() => of_batch(items, session, facts),
            _ => batch(items),
        };
    }
    let mut unit = match &decoded.value {
        value @ Json::Object(_) => request::unit_of(value, session, facts),
        _ => unit(None, "MCP-BAS-11", vec![error_of(&[-32600, -32700], IdRule::NullOrAbsent)]),
    };
    if session.ready_step == Some(line.step) && unit.extra.id.is_some() {
        // A request in the write that ended the opening must be answered, whatever it is.
        unit.clause = "MCP-INI-11";
        unit.allowed.push(any_reply(IdRule::Own));
    }
    if session.odd_step == Some(line.step) && unit.extra.id.is_some() {
        unit.clause = "MCP-BAS-13";
    }
    if bytes.len() > LINE_BYTES_SMALL && unit.extra.id.is_some() {
        // Whoever reads no line of this length cannot know its id, and may refuse it unread.
        (unit.extra.blame.id, unit.extra.blame.refused) = (Some("MCP-FRM-06"), Some("MCP-FRM-06"));
    }
    let was_ready = session.ready;
    session.say(&decoded.value);
    if session.ready && !was_ready {
        session.ready_step = Some(line.step);
    }
    let is_doubtful = decoded.facts.duplicate_keys || decoded.facts.lone_surrogates;
    if is_doubtful || decoded.facts.depth > DEPTH_CERTAIN || bytes.len() > LINE_BYTES_CERTAIN || !line.ended {
        unit.allowed.extend([any_reply(IdRule::Any), Allowed::silence()]);
    }
    Expectation::one(unit)
}

/// Allowed answers to a line that is not JSON.
fn undecodable(bytes: &[u8], ended: bool) -> RequestPart {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        let refused = error_of(&[-32700, -32600], IdRule::NullOrAbsent);
        return unit(None, "MCP-BAS-10", vec![Allowed::silence(), refused]);
    }
    if !ended {
        let error = AllowedAnswer::of(RpcAnswer {
            what: AnswerKind::Error(allowed_answer::ANY_CODE),
            id: IdRule::Any,
        });
        return unit(None, "MCP-END-05", vec![Allowed::silence(), Allowed::answer(error)]);
    }
    let refused = error_of(&[-32700], IdRule::NullOrAbsent);
    if std::str::from_utf8(bytes).is_err() {
        // A reader may replace what is no UTF-8, and then has a request.
        let allowed = vec![refused.shows("refuse"), any_reply(IdRule::Any).shows("replace")];
        return unit(None, "MCP-BAS-10", allowed).about("utf8_invalid");
    }
    unit(None, "MCP-BAS-10", vec![refused])
}

/// Allowed answers to a batch in a revision with batches: each request is answered, in an array or individually.
fn of_batch(items: &[Json], session: &mut Session, facts: &Facts) -> Asking {
    let part = |item: &Json| {
        let mut unit = match item {
            Json::Object(_) => request::unit_of(item, session, facts),
            _ => unit(None, "MCP-BAS-11", vec![any_reply(IdRule::Any), Allowed::silence()]),
        };
        match unit.extra.method {
            Some(_) if unit.extra.id.is_some() => unit.clause = "MCP-BAS-17",
            Some(_) => {}
            None => unit.allowed.extend([any_reply(IdRule::Any), Allowed::silence()]),
        }
        unit
    };
    Expectation { parts: items.iter().map(part).collect(), together: true, whole: None }
}

/// Allowed answers to an array in other revisions: any, as long as the server lives on.
fn batch(items: &[Json]) -> Asking {
    let free = |id: Option<&Json>| {
        let id = id.filter(|id| matches!(id, Json::String(_) | Json::Number(_)));
        let allowed = vec![
            error_with_any_id().shows("error"),
            any_reply(IdRule::Any).shows("answer"),
            Allowed::silence().shows("silent"),
        ];
        unit(id, "MCP-BAS-18", allowed).about("mcp_batch")
    };
    let parts = items.iter().map(|item| free(item.get("id"))).collect();
    Expectation { parts, together: true, whole: Some(free(None)) }
}

/// An expectation with the key of an id.
fn expected(id: Option<&Json>, clause: &'static str, allowed: Vec<Allowed>) -> RequestPart {
    Expected::new(clause, Subject::Key(id.and_then(key)), allowed)
}
