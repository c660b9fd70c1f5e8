//! Builder of conversations with a JSON-RPC server.

use serde_json::Value;

use super::model::{self, Aim};
use super::role::{Role, role};
use peerproof_engine::data::carriage::{Carriage, HTTP};
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::finding::CANARY_FAILED;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::packing::Packing;
use peerproof_engine::data::payload::{Payload, Vars};
use peerproof_engine::data::plan::{Act, Chunking, Plan, Session, Step};

/// Name of a method that no peer has.
pub const UNKNOWN_METHOD: &str = "peerproof.no_such_method";

/// A JSON string literal for `text`.
pub fn quoted(text: &str) -> String {
    Json::from(text).to_text()
}

/// A request as JSON text. `params` and `id` are JSON texts. Without an id it is a notification.
pub fn call(method: &str, params: Option<&str>, id: Option<&str>) -> String {
    let mut text = format!("{{\"jsonrpc\":\"2.0\",\"method\":{}", quoted(method));
    if let Some(params) = params {
        text.push_str(&format!(",\"params\":{params}"));
    }
    if let Some(id) = id {
        text.push_str(&format!(",\"id\":{id}"));
    }
    text.push('}');
    text
}

/// A request that the peer certainly answers; `id` is JSON text.
pub fn good(facts: &Facts, nonce: u64, id: &str) -> String {
    if let Some(echo) = role(facts, "echo") {
        return call(&echo.method, Some(&format!("{{\"canary\":{nonce}}}")), Some(id));
    }
    if let Some(Role { method, params: Some(params), .. }) = role(facts, "named") {
        return call(&method, Some(&params.to_string()), Some(id));
    }
    // Every server answers the call of an unknown method.
    call(UNKNOWN_METHOD, None, Some(id))
}

/// First canary number that [`Talk::numbered`] uses, above those of all other conversations.
const ISOLATED_FROM: u64 = 1_000_000;

/// A conversation under construction.
pub struct Talk<'a> {
    facts: &'a Facts,
    plan: Plan,
    nonce: u64,
    aim: Option<Aim>,
}

impl<'a> Talk<'a> {
    /// A conversation with one process whose steps test `clause`.
    pub fn about(facts: &'a Facts, clause: &str) -> Self {
        // A server with HTTP alone is tested over HTTP.
        let command = if !facts.commands.contains("command") && facts.commands.contains(HTTP) {
            HTTP
        } else {
            "command"
        };
        let session = Session { command: command.to_owned(), ..Session::default() };
        let plan = Plan { sessions: vec![session], by_model: true, ..Plan::default() };
        Self { facts, plan, nonce: 0, aim: Some(Aim { clause: clause.into(), reason: None }) }
    }

    /// A conversation whose steps have no aim; each is judged by its bytes.
    pub fn plain(facts: &'a Facts) -> Self {
        Self { aim: None, ..Self::about(facts, "") }
    }

    /// Sets the command of the conversation.
    #[must_use]
    pub fn over(mut self, command: &str) -> Self {
        self.plan.sessions.iter_mut().for_each(|session| session.command = command.to_owned());
        self
    }

    /// Sets the clause that the following steps test.
    pub fn aim(&mut self, clause: &str) -> &mut Self {
        self.aim = Some(Aim { clause: clause.into(), reason: None });
        self
    }

    /// Removes the aim of the following steps; each is judged by its bytes.
    pub fn aim_at_nothing(&mut self) -> &mut Self {
        self.aim = None;
        self
    }

    /// Name of the method with a role that the check needs.
    pub fn method(&self, name: &str) -> String {
        role(self.facts, name).map(|role| role.method).unwrap_or_default()
    }

    /// Sends one message (JSON text without line feed) and waits for the replies that are due.
    pub fn send(&mut self, message: &str) -> &mut Self {
        self.send_as(Payload::text(format!("{message}\n")), Chunking::Whole)
    }

    /// Sends whole lines and waits for the frames that are due.
    pub fn send_as(&mut self, payload: Payload, chunking: Chunking) -> &mut Self {
        let due = payload.expand(&Vars::new()).map_or(0, |bytes| model::frames_due(self.facts, &bytes));
        self.push(payload, chunking, due)
    }

    /// Sends bytes without waiting.
    pub fn queue(&mut self, payload: Payload) -> &mut Self {
        self.push(payload, Chunking::Whole, 0)
    }

    /// Sends a compressed text, as a wrapped line or as a body, and waits for one reply.
    pub(crate) fn send_packed(&mut self, text: &str, packing: Packing) -> &mut Self {
        if self.is_over(HTTP) {
            self.push(Payload::text(format!("{text}\n")), Chunking::Whole, 1);
            return self.last(|step| step.http = Some(Carriage::post().gzip(packing)));
        }
        // The placeholder hides the message from the count of due replies.
        let line = wrapper(&packed(text, packing)) + "\n";
        self.push(Payload::text(line), Chunking::Whole, 1)
    }

    fn is_over(&self, command: &str) -> bool {
        self.plan.sessions.first().is_some_and(|session| session.command == command)
    }

    /// Sends bytes in chunks and waits for this number of frames.
    pub fn push(&mut self, payload: Payload, chunking: Chunking, await_frames: u32) -> &mut Self {
        // A server that is still starting would read all chunks at once, so a canary goes first. An HTTP server
        // already listens.
        if chunking != Chunking::Whole && !self.is_over(HTTP) && !self.plan.has_canary(0) {
            self.canary();
        }
        let expect =
            self.aim.as_ref().map_or(Value::Null, |aim| serde_json::to_value(aim).unwrap_or_default());
        let act = Act::Send { payload, chunking, await_frames };
        self.plan.steps.push(Step { expect, ..Step::new(act) });
        self
    }

    /// Gives the canaries numbers that no other conversation has.
    pub fn numbered(&mut self, number: u64) -> &mut Self {
        self.nonce = ISOLATED_FROM + number;
        self
    }

    /// Sends a plain valid request in a write of its own. Its answer shows that the peer still works.
    pub fn canary(&mut self) -> &mut Self {
        self.nonce += 1;
        let text = good(self.facts, self.nonce, &quoted(&format!("canary-{}", self.nonce)));
        self.push(Payload::text(format!("{text}\n")), Chunking::Whole, 1);
        if let Some(step) = self.plan.steps.last_mut() {
            step.canary = true;
            if let Some(aim) = &self.aim {
                let aim = Aim { reason: Some(CANARY_FAILED.to_owned()), ..aim.clone() };
                step.expect = serde_json::to_value(aim).unwrap_or_default();
            }
        }
        self
    }

    /// Changes the last step.
    pub fn last(&mut self, change: impl FnOnce(&mut Step)) -> &mut Self {
        if let Some(step) = self.plan.steps.last_mut() {
            change(step);
        }
        self
    }

    /// Sets the time that the last step may take beyond that of a reply, ms.
    pub fn allow_ms(&mut self, ms: u64) -> &mut Self {
        self.last(|step| step.allow_ms = ms)
    }

    /// Adds any other step.
    pub fn act(&mut self, act: Act) -> &mut Self {
        self.plan.steps.push(Step::new(act));
        self
    }

    /// Moves the last step to another process with the same command.
    pub fn in_session(&mut self, session: usize) -> &mut Self {
        let like = self.plan.sessions.first().cloned().unwrap_or_default();
        self.plan.sessions.resize(self.plan.sessions.len().max(session + 1), like);
        self.last(|step| step.session = session)
    }

    /// Sets the expectation of the whole conversation.
    pub fn expect(&mut self, expect: Value) -> &mut Self {
        self.plan.expect = expect;
        self
    }

    /// Replaces the plan.
    pub(crate) fn adopt(&mut self, plan: Plan) -> &mut Self {
        self.plan = plan;
        self
    }

    /// Closes standard input unless the last step ends the process, and returns the plan.
    pub fn finish(&mut self) -> Plan {
        let ends = |step: &Step| matches!(step.act, Act::Finish | Act::Signal(_));
        if !self.plan.steps.last().is_some_and(ends) {
            self.act(Act::Finish);
        }
        self.plan()
    }

    /// Returns the plan as it is.
    pub fn plan(&mut self) -> Plan {
        std::mem::take(&mut self.plan)
    }
}

/// A JSON string that stands for the compressed form of a text ([`super::seal`]).
pub(crate) fn packed(text: &str, packing: Packing) -> String {
    quoted(&format!("@gzip{}:{text}", packing.word()))
}

/// A line that wraps a compressed message, given as JSON string.
pub(crate) fn wrapper(body: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"encoding\":\"gzip\",\"body\":{body}}}")
}
