//! Builder of conversations with a server.

use serde_json::{Value, json};

use super::config;
use super::connection::{self, ANSWERS, INITIALIZE, INITIALIZED, OPENING, PING};
use super::model;
use super::server_knowledge::ServerKnowledge;
use peerproof_engine::contract::face::Aim;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::finding::CANARY_FAILED;
use peerproof_engine::data::payload::{Payload, Vars};
use peerproof_engine::data::plan::{Act, Chunking, Plan, Session, Step};
use peerproof_json_rpc::settings;
use peerproof_json_rpc::talk::call;

/// Clause of canaries: no input silences the server.
pub(crate) const LIVES_ON: &str = "MCP-BAS-12";

/// First id of canaries that isolate a message, above those of other conversations.
const ISOLATED_FROM: u64 = 1_000_000;
/// First id of canaries.
const CANARIES_FROM: u64 = 9_000;
/// Number of ids reserved for each conversation of a process, so that no id repeats within a session.
const IDS_PER_TURN: u64 = 20_000;

/// Methods that change the session for later conversations.
const CHANGING: [&str; 2] = ["logging/setLevel", "resources/subscribe"];

/// A conversation under construction.
pub struct Talk<'a> {
    facts: &'a Facts,
    plan: Plan,
    next_id: u64,
    canaries: u64,
    aim: Option<String>,
    session: usize,
}

impl<'a> Talk<'a> {
    /// A conversation with a process that was not opened.
    pub fn bare(facts: &'a Facts) -> Self {
        let session =
            Session { command: "command".to_owned(), shows_start: Some(true), ..Session::default() };
        let plan = Plan { sessions: vec![session], by_model: true, ..Plan::default() };
        let before = u64::from(facts.turn) * IDS_PER_TURN;
        Self { facts, plan, next_id: before + 1, canaries: before, aim: None, session: 0 }
    }

    /// A conversation over an open connection. Other checks report faults of the opening.
    pub fn opened(facts: &'a Facts) -> Self {
        Self::declaring(facts, &json!({}))
    }

    /// An opened conversation by a client with these capabilities.
    pub(crate) fn declaring(facts: &'a Facts, capabilities: &Value) -> Self {
        let mut talk = Self::bare(facts);
        if facts.features.contains_key(settings::OPENING) {
            talk.perform(settings::OPENING);
        } else {
            talk.open(connection::revision_asked(facts), &config::capabilities(facts, capabilities));
        }
        let steps = talk.plan.steps.len();
        talk.note(OPENING, json!(steps));
        if ServerKnowledge::of(facts).answers_initialized() {
            // The answer to the opening must come before the first request.
            talk.canary().last(|step| step.setup = true);
        }
        talk
    }

    /// Facts about the server.
    pub fn facts(&self) -> &'a Facts {
        self.facts
    }

    /// Opens the connection.
    pub fn open(&mut self, revision: &str, capabilities: &Value) -> &mut Self {
        self.request(INITIALIZE, Some(connection::opening(revision, capabilities)));
        self.last(|step| step.setup = true);
        self.notify(INITIALIZED, None).last(|step| step.setup = true)
    }

    /// Adds the steps that end a session, if it was opened and continues, and the last line is whole.
    fn close(&mut self) {
        let is_open = |step: &Step| match &step.act {
            Act::Send { payload, .. } => {
                payload.expand(&Vars::new()).is_ok_and(|bytes| bytes.ends_with(b"\n"))
            }
            act => !matches!(act, Act::Finish | Act::Signal(_)),
        };
        let was_opened = self.plan.expect.get(OPENING).is_some();
        if was_opened && self.plan.steps.last().is_none_or(is_open) {
            self.perform(settings::CLOSING);
        }
    }

    /// Adds configured steps, if there are any.
    fn perform(&mut self, key: &str) {
        let facts = self.facts;
        for step in facts.features.get(key).and_then(Value::as_array).into_iter().flatten() {
            match step["wait_ms"].as_u64() {
                Some(ms) => self.act(Act::Wait { ms }),
                None => {
                    let id = self.fresh_id();
                    let line = settings::filled(&step["send"], id, connection::revision_asked(facts));
                    let payload = line.unwrap_or_else(|_| Payload::text(format!("{}\n", step["send"])));
                    let is_awaited = step["send"].get("id").is_some() && step["await"] != "none";
                    self.push(payload, Chunking::Whole, u32::from(is_awaited))
                }
            };
            self.last(|step| step.setup = true);
        }
    }

    /// Sets the answer to a request of the server: a result, an error with `code`, or null for none.
    pub(crate) fn answering(&mut self, method: &str, answer: Value) -> &mut Self {
        self.apart();
        let mut answers = self.plan.expect.get(ANSWERS).cloned().unwrap_or_else(|| json!({}));
        answers[method] = answer;
        self.note(ANSWERS, answers)
    }

    fn note(&mut self, member: &str, value: Value) -> &mut Self {
        if self.plan.expect.is_null() {
            self.plan.expect = json!({});
        }
        self.plan.expect[member] = value;
        self
    }

    /// Sets the clause that the following steps test.
    pub(crate) fn aim(&mut self, clause: &str) -> &mut Self {
        self.aim = Some(clause.to_owned());
        self
    }

    /// Removes the aim of the following steps; each is judged by its bytes.
    pub(crate) fn aim_at_nothing(&mut self) -> &mut Self {
        self.aim = None;
        self
    }

    /// Puts the following steps into another process of the same command.
    pub(crate) fn in_session(&mut self, session: usize) -> &mut Self {
        let like = self.plan.sessions.first().cloned().unwrap_or_default();
        self.plan.sessions.resize(self.plan.sessions.len().max(session + 1), like);
        self.session = session;
        self
    }

    /// An id that is new in this conversation.
    pub(crate) fn fresh_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }

    /// Sends a request and waits for its answer; returns its id.
    pub fn request(&mut self, method: &str, params: Option<Value>) -> u64 {
        if CHANGING.contains(&method) {
            self.apart();
        }
        let id = self.fresh_id();
        let params = params.map(|params| params.to_string());
        self.send(&call(method, params.as_deref(), Some(&id.to_string())));
        id
    }

    /// Sends a request whose only param is the value of a variable.
    pub(crate) fn request_with(&mut self, method: &str, member: &str, var: &str) -> &mut Self {
        let id = self.fresh_id().to_string();
        let text = call(method, Some(&format!("{{\"{member}\":\"@\"}}")), Some(&id));
        let (before, behind) = text.split_once('@').unwrap_or((&text, ""));
        let payload = Payload::text(before).var(var).then(Payload::text(format!("{behind}\n")));
        self.push(payload, Chunking::Whole, 1)
    }

    /// Sends a request without waiting; returns its id.
    pub(crate) fn queue_request(&mut self, method: &str, params: Option<Value>) -> u64 {
        let id = self.fresh_id();
        let params = params.map(|params| params.to_string());
        let text = call(method, params.as_deref(), Some(&id.to_string()));
        self.push(Payload::text(text + "\n"), Chunking::Whole, 0);
        id
    }

    /// Sends a notification.
    pub(crate) fn notify(&mut self, method: &str, params: Option<Value>) -> &mut Self {
        let params = params.map(|params| params.to_string());
        self.send(&call(method, params.as_deref(), None))
    }

    /// Sends one line and waits for the replies that are due.
    pub fn send(&mut self, line: &str) -> &mut Self {
        self.send_as(Payload::text(format!("{line}\n")), Chunking::Whole)
    }

    /// Sends whole lines and waits for the replies that are due.
    pub fn send_as(&mut self, payload: Payload, chunking: Chunking) -> &mut Self {
        let due = payload.expand(&Vars::new()).map_or(0, |bytes| model::frames_due(self.facts, &bytes));
        self.push(payload, chunking, due)
    }

    /// Sends bytes in chunks and waits for this number of responses.
    pub fn push(&mut self, payload: Payload, chunking: Chunking, await_frames: u32) -> &mut Self {
        // A server that is still starting would read all chunks at once.
        if chunking != Chunking::Whole && !self.plan.has_canary(self.session) {
            self.canary();
        }
        let expect = self.aim.as_deref().map_or(Value::Null, Aim::about);
        let act = Act::Send { payload, chunking, await_frames };
        self.add(Step { expect, ..Step::new(act) })
    }

    fn add(&mut self, step: Step) -> &mut Self {
        self.plan.steps.push(Step { session: self.session, ..step });
        self
    }

    /// Gives the canaries ids that no other conversation has.
    pub(crate) fn numbered(&mut self, number: u64) -> &mut Self {
        self.canaries = ISOLATED_FROM + number;
        self
    }

    /// Sends a plain valid request whose answer shows that the server still works.
    pub fn canary(&mut self) -> &mut Self {
        self.canaries += 1;
        let id = CANARIES_FROM + self.canaries;
        let text = call(PING, None, Some(&id.to_string()));
        let clause = self.aim.clone().unwrap_or_else(|| LIVES_ON.to_owned());
        let aim = Aim { clause: clause.as_str().into(), reason: Some(CANARY_FAILED.to_owned()) };
        let act =
            Act::Send { payload: Payload::text(text + "\n"), chunking: Chunking::Whole, await_frames: 1 };
        let expect = serde_json::to_value(aim).unwrap_or_default();
        self.add(Step { expect, canary: true, ..Step::new(act) })
    }

    /// Changes the last step.
    pub fn last(&mut self, change: impl FnOnce(&mut Step)) -> &mut Self {
        if let Some(step) = self.plan.steps.last_mut() {
            change(step);
        }
        self
    }

    /// Adds any other step.
    pub fn act(&mut self, act: Act) -> &mut Self {
        if act == Act::Finish {
            self.close();
        }
        self.add(Step::new(act))
    }

    /// Makes the conversation use a process of its own, because it changes the session or chooses ids itself.
    pub fn apart(&mut self) -> &mut Self {
        self.session(|session| session.apart = true)
    }

    /// Changes the settings of the process.
    pub fn session(&mut self, change: impl FnOnce(&mut Session)) -> &mut Self {
        if let Some(session) = self.plan.sessions.first_mut() {
            change(session);
        }
        self
    }

    /// Returns the plan, with a canary at its end unless another step ends it.
    pub fn finish(&mut self) -> Plan {
        let ends = |step: &Step| step.canary || matches!(step.act, Act::Finish | Act::Signal(_));
        if !self.plan.steps.last().is_some_and(ends) {
            self.canary();
        }
        self.close();
        self.plan()
    }

    /// Returns the plan as it is.
    pub fn plan(&mut self) -> Plan {
        std::mem::take(&mut self.plan)
    }
}
