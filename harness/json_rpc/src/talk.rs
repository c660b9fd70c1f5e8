//! Builds conversations with a JSON-RPC server.

use serde_json::Value;

use super::model::{self, Aim};
use super::role::{Role, role};
use peerproof_engine::carriage::{Carriage, HTTP};
use peerproof_engine::facts::Facts;
use peerproof_engine::finding::CANARY_FAILED;
use peerproof_engine::json::Json;
use peerproof_engine::packing::Packing;
use peerproof_engine::payload::{Payload, Vars};
use peerproof_engine::plan::{Act, Chunking, Plan, Session, Step};

/// A method that no peer has.
pub const UNKNOWN_METHOD: &str = "peerproof.no_such_method";

/// A JSON string literal for `text`.
pub fn quoted(text: &str) -> String {
    Json::from(text).to_text()
}

/// A request as JSON text; `params` and `id` are JSON texts, and without an id it is a notification.
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

/// A request that the peer certainly answers, with its id as JSON text.
pub fn good(facts: &Facts, nonce: u64, id: &str) -> String {
    if let Some(echo) = role(facts, "echo") {
        return call(&echo.method, Some(&format!("{{\"canary\":{nonce}}}")), Some(id));
    }
    if let Some(Role { method, params: Some(params), .. }) = role(facts, "named") {
        return call(&method, Some(&params.to_string()), Some(id));
    }
    // Every server answers a method that it does not have.
    call(UNKNOWN_METHOD, None, Some(id))
}

/// Numbers of canaries from here on are in no other conversation.
const ISOLATED_FROM: u64 = 1_000_000;

/// A conversation in the making.
pub struct Talk<'a> {
    facts: &'a Facts,
    plan: Plan,
    nonce: u64,
    aim: Option<Aim>,
}

impl<'a> Talk<'a> {
    /// A conversation with one process whose steps are about `clause`.
    pub fn about(facts: &'a Facts, clause: &str) -> Self {
        // A server that is spoken to over HTTP alone is asked there.
        let command = if !facts.commands.contains("command") && facts.commands.contains(HTTP) {
            HTTP
        } else {
            "command"
        };
        let session = Session { command: command.to_owned(), ..Session::default() };
        let plan = Plan { sessions: vec![session], by_model: true, ..Plan::default() };
        Self { facts, plan, nonce: 0, aim: Some(Aim { clause: clause.into(), reason: None }) }
    }

    /// A conversation whose steps are about what their bytes say.
    pub fn plain(facts: &'a Facts) -> Self {
        Self { aim: None, ..Self::about(facts, "") }
    }

    /// The conversation is with the process of another command.
    #[must_use]
    pub fn over(mut self, command: &str) -> Self {
        self.plan.sessions.iter_mut().for_each(|session| session.command = command.to_owned());
        self
    }

    /// Following steps are about another clause.
    pub fn aim(&mut self, clause: &str) -> &mut Self {
        self.aim = Some(Aim { clause: clause.into(), reason: None });
        self
    }

    /// Following steps are about what their bytes say.
    pub fn aim_at_nothing(&mut self) -> &mut Self {
        self.aim = None;
        self
    }

    /// Name of the method that plays a role which the check has declared as needed.
    pub fn method(&self, name: &str) -> String {
        role(self.facts, name).map(|role| role.method).unwrap_or_default()
    }

    /// Sends one message (JSON text without its line feed) and waits for what has to come.
    pub fn send(&mut self, message: &str) -> &mut Self {
        self.send_as(Payload::text(format!("{message}\n")), Chunking::Whole)
    }

    /// Sends whole lines and waits for as many frames as have to come.
    pub fn send_as(&mut self, payload: Payload, chunking: Chunking) -> &mut Self {
        let due = payload.expand(&Vars::new()).map_or(0, |bytes| model::frames_due(self.facts, &bytes));
        self.push(payload, chunking, due)
    }

    /// Sends bytes and goes on.
    pub fn queue(&mut self, payload: Payload) -> &mut Self {
        self.push(payload, Chunking::Whole, 0)
    }

    /// Sends a text in a compressed form and waits for what has to come: as a line that wraps it, or as a body.
    pub fn send_packed(&mut self, text: &str, packing: Packing) -> &mut Self {
        if self.is_over(HTTP) {
            self.push(Payload::text(format!("{text}\n")), Chunking::Whole, 1);
            return self.last(|step| step.http = Some(Carriage::post().gzip(packing)));
        }
        // Known by its word only, so that it is not counted in what is due.
        let line = wrapper(&packed(text, packing)) + "\n";
        self.push(Payload::text(line), Chunking::Whole, 1)
    }

    fn is_over(&self, command: &str) -> bool {
        self.plan.sessions.first().is_some_and(|session| session.command == command)
    }

    /// Sends bytes in chunks and waits for so many frames more.
    pub fn push(&mut self, payload: Payload, chunking: Chunking, await_frames: u32) -> &mut Self {
        // Pieces that come while a server still starts would be one to it. One that listens has started.
        if chunking != Chunking::Whole && !self.is_over(HTTP) && !self.plan.has_canary(0) {
            self.canary();
        }
        let expect =
            self.aim.as_ref().map_or(Value::Null, |aim| serde_json::to_value(aim).unwrap_or_default());
        let act = Act::Send { payload, chunking, await_frames };
        self.plan.steps.push(Step { expect, ..Step::new(act) });
        self
    }

    /// Canaries differ from those of a conversation with another number.
    pub fn numbered(&mut self, number: u64) -> &mut Self {
        self.nonce = ISOLATED_FROM + number;
        self
    }

    /// A plain valid request in a write of its own, whose answer shows that the peer still works and had its chance.
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

    /// Lets the last step take so much time beyond what a reply may take, milliseconds.
    pub fn allow_ms(&mut self, ms: u64) -> &mut Self {
        self.last(|step| step.allow_ms = ms)
    }

    /// Adds any other step.
    pub fn act(&mut self, act: Act) -> &mut Self {
        self.plan.steps.push(Step::new(act));
        self
    }

    /// The last step is one of another process, and of the same command.
    pub fn in_session(&mut self, session: usize) -> &mut Self {
        let like = self.plan.sessions.first().cloned().unwrap_or_default();
        self.plan.sessions.resize(self.plan.sessions.len().max(session + 1), like);
        self.last(|step| step.session = session)
    }

    /// What the oracle is told of the whole conversation.
    pub fn expect(&mut self, expect: Value) -> &mut Self {
        self.plan.expect = expect;
        self
    }

    /// Goes on with the conversation of a plan.
    pub fn adopt(&mut self, plan: Plan) -> &mut Self {
        self.plan = plan;
        self
    }

    /// Closes standard input, which has to end the process, unless it has ended, and gives the plan.
    pub fn finish(&mut self) -> Plan {
        let ends = |step: &Step| matches!(step.act, Act::Finish | Act::Signal(_));
        if !self.plan.steps.last().is_some_and(ends) {
            self.act(Act::Finish);
        }
        self.plan()
    }

    /// The plan as it is.
    pub fn plan(&mut self) -> Plan {
        std::mem::take(&mut self.plan)
    }
}

/// A word that stands for a compressed form of a text, as a JSON string ([`super::seal`]).
pub fn packed(text: &str, packing: Packing) -> String {
    quoted(&format!("@gzip{}:{text}", packing.word()))
}

/// A line that wraps a compressed message, given as a JSON string.
pub fn wrapper(body: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"encoding\":\"gzip\",\"body\":{body}}}")
}
