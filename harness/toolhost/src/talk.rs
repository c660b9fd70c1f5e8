//! Builder of toolhost conversations: requests as JSON lines, their expected replies, and canaries.

use serde_json::Value;

use super::expect::{Allowed, Expect, Outcome};
pub use super::frames::quoted;
use super::relation::Relation;
use super::role::{Role, role};
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::finding::CANARY_FAILED;
use peerproof_engine::data::payload::{Payload, Segment};
use peerproof_engine::data::plan::{Act, Capture, Chunking, Fixture, Plan, Session, Step};
use peerproof_engine::data::sizes::padded;

/// A request to a toolhost, member by member, as raw JSON texts.
#[derive(Debug, Clone, Default)]
pub struct Request {
    members: Vec<(String, Payload)>,
}

impl Request {
    /// Creates a request without members.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Creates a request for an action id.
    pub fn aid(aid: &str) -> Self {
        Self::empty().member("aid", quoted(aid))
    }

    /// Appends a member with this JSON text as its value, or other text for a malformed request.
    #[must_use]
    pub fn member(mut self, name: &str, json_text: impl Into<String>) -> Self {
        self.members.push((name.to_owned(), Payload::text(json_text)));
        self
    }

    /// Replaces the value of a member.
    #[must_use]
    pub fn with(mut self, name: &str, json_text: impl Into<String>) -> Self {
        self.members.retain(|(known, _)| known != name);
        self.member(name, json_text)
    }

    /// Appends a member with a payload as its raw value: a large one, or one with variables.
    #[must_use]
    pub fn payload(mut self, name: &str, value: Payload) -> Self {
        self.members.push((name.to_owned(), value));
        self
    }

    /// Appends `input_json`: the JSON text, wrapped in a string.
    #[must_use]
    pub fn input(self, json_text: &str) -> Self {
        self.member("input_json", quoted(json_text))
    }

    /// Appends `idempotency_key`.
    #[must_use]
    pub fn key(self, key: &str) -> Self {
        self.member("idempotency_key", quoted(key))
    }

    /// Appends `ds_state`, a JSON text.
    #[must_use]
    pub fn state(self, json_text: &str) -> Self {
        self.member("ds_state", json_text)
    }

    /// Appends `_lease_token` with the value of a captured variable.
    #[must_use]
    pub(crate) fn token_var(self, var: &str) -> Self {
        self.payload("_lease_token", Payload::text("\"").var(var).then(Payload::text("\"")))
    }

    /// The JSON object, without a line feed.
    pub fn body(&self) -> Payload {
        let mut body = Payload::text("{");
        for (index, (name, value)) in self.members.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            body = body.then(Payload::text(format!("{comma}{}:", quoted(name)))).then(value.clone());
        }
        body.then(Payload::text("}")).merged()
    }

    /// The object and a line feed.
    pub fn line(&self) -> Payload {
        self.body().then(Payload::text("\n")).merged()
    }

    /// The object without its opening brace, and a line feed.
    pub fn tail(&self) -> Payload {
        let mut line = self.line();
        if let Some(Segment::Text(text)) = line.0.first_mut() {
            text.remove(0);
        }
        line
    }

    /// The object with a padding member (`"pad":"xxx…"`, before the others), so that it has exactly `bytes` bytes.
    /// `bytes` must allow for the member.
    pub(crate) fn padded_to(&self, bytes: usize) -> Payload {
        self.padded_with("x", bytes)
    }

    /// [`Request::padded_to`] with padding made of `unit` and, for the remainder, of `x`.
    pub(crate) fn padded_with(&self, unit: &str, bytes: usize) -> Payload {
        padded(self.body(), unit, bytes)
    }
}

/// Clause of a canary by itself: a plain request is answered.
pub(crate) const ANSWERED: &str = "TH-FRAME-01";
/// Clause of a canary in run mode.
pub(crate) const RUN_ANSWERED: &str = "TH-RUN-04";
/// Clauses that demand answers to later requests. A canary after a step with one of them belongs to that clause too.
const GO_ON: &[&str] = &[
    "TH-FRAME-02",
    "TH-FRAME-04",
    "TH-FRAME-06",
    "TH-FRAME-07",
    "TH-JSON-06",
    "TH-LIMIT-05",
    "TH-LIMIT-07",
    "TH-SERVE-01",
    "TH-TOOL-02",
];

/// Time in ms after which the absence of a forbidden effect is checked again.
pub(crate) const LATER_MS: u64 = 1_200;

/// First number of canaries that no other conversation uses.
const ISOLATED_FROM: u64 = 1_000_000;

/// Builder of a conversation.
pub struct Talk<'a> {
    facts: &'a Facts,
    plan: Plan,
    session: usize,
    nonce: u64,
    /// Clause of the last step.
    clause: String,
}

impl<'a> Talk<'a> {
    /// Creates a conversation with one serve process.
    pub fn serve(facts: &'a Facts) -> Self {
        Self::with_env(facts, "serve", &[])
    }

    /// Creates a conversation with one serve process under additional environment variables.
    pub(crate) fn serve_env(facts: &'a Facts, env: &[(&str, &str)]) -> Self {
        Self::with_env(facts, "serve", env)
    }

    /// Creates a conversation without a process. [`Talk::run`] adds run-mode processes.
    pub fn runs(facts: &'a Facts) -> Self {
        Self { facts, plan: Plan::default(), session: 0, nonce: 0, clause: String::new() }
    }

    fn with_env(facts: &'a Facts, command: &str, env: &[(&str, &str)]) -> Self {
        let mut talk = Self::runs(facts);
        talk.add_session(command, &[], env);
        talk
    }

    /// Starts another process, which later steps use.
    pub(crate) fn add_session(
        &mut self,
        command: &str,
        placeholders: &[(&str, &str)],
        env: &[(&str, &str)],
    ) -> &mut Self {
        let own = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        self.plan.sessions.push(Session {
            command: command.to_owned(),
            placeholders: own(placeholders),
            env: own(env),
            ..Session::default()
        });
        self.session = self.plan.sessions.len() - 1;
        self
    }

    /// Makes later steps use an earlier process.
    pub fn on(&mut self, session: usize) -> &mut Self {
        self.session = session;
        self
    }

    /// Adds a fixture.
    pub fn fixture(&mut self, fixture: Fixture) -> &mut Self {
        self.plan.fixtures.push(fixture);
        self
    }

    /// Role that the check has declared as required.
    pub fn role(&self, name: &str) -> Role {
        role(self.facts, name).unwrap_or_else(|| Role { aid: String::new(), input: None, tier: None })
    }

    /// True if a role is mapped.
    pub fn has(&self, name: &str) -> bool {
        self.facts.roles.contains_key(name)
    }

    /// A request for the tool of `role` with this input (JSON text).
    pub fn ask(&self, role: &str, input: &str) -> Request {
        Request::aid(&self.role(role).aid).input(input)
    }

    /// Request known to succeed, with its expected answer. If the peer has an echo, each request is different.
    pub fn good(&mut self, clause: &str) -> (Request, Expect) {
        self.nonce += 1;
        if self.has("echo") {
            let input = format!("{{\"canary\":{}}}", self.nonce);
            return (self.ask("echo", &input), Expect::output(clause, input));
        }
        (self.any(true), Expect::ok(clause))
    }

    /// Sends a payload (with its line feed) and waits for one reply.
    pub fn send(&mut self, payload: Payload, expect: Expect) -> &mut Self {
        let least = u32::from(!expect.may_be_silent());
        self.send_as(payload, Chunking::Whole, least, expect)
    }

    /// Sends a payload in chunks and waits for `await_frames` replies.
    pub fn send_as(
        &mut self,
        payload: Payload,
        chunking: Chunking,
        await_frames: u32,
        expect: Expect,
    ) -> &mut Self {
        self.be_ready(chunking);
        self.clause.clone_from(&expect.clause.0);
        let value = serde_json::to_value(expect).unwrap_or(Value::Null);
        self.push(Act::Send { payload, chunking, await_frames }, value)
    }

    /// Adds a canary before the first chunked payload, because a peer that is still starting would read the chunks as
    /// one. A run has no such canary; its first chunk waits until it is read.
    fn be_ready(&mut self, chunking: Chunking) {
        if chunking != Chunking::Whole
            && self.plan.sessions[self.session].command == "serve"
            && !self.plan.has_canary(self.session)
        {
            self.canary();
        }
    }

    /// Sends several lines in one payload; `expects` has one entry per line. Waits for all required replies.
    pub fn send_all(&mut self, payload: Payload, chunking: Chunking, expects: Vec<Expect>) -> &mut Self {
        let await_frames = expects.iter().filter(|expect| !expect.may_be_silent()).count() as u32;
        self.be_ready(chunking);
        if let Some(last) = expects.last() {
            self.clause.clone_from(&last.clause.0);
        }
        let value = serde_json::to_value(expects).unwrap_or(Value::Null);
        self.push(Act::Send { payload, chunking, await_frames }, value)
    }

    /// Sends several lines in one payload without waiting for their replies.
    pub(crate) fn queue_all(
        &mut self,
        payload: Payload,
        chunking: Chunking,
        expects: Vec<Expect>,
    ) -> &mut Self {
        self.be_ready(chunking);
        if let Some(last) = expects.last() {
            self.clause.clone_from(&last.clause.0);
        }
        let value = serde_json::to_value(expects).unwrap_or(Value::Null);
        self.push(Act::Send { payload, chunking, await_frames: 0 }, value)
    }

    /// Sends a canary, a plain valid request. It has its own clause, or that of the previous step if that clause
    /// demands that the peer goes on.
    pub fn canary(&mut self) -> &mut Self {
        let clause = self.clause.clone();
        let goes_on = GO_ON.iter().find(|known| **known == clause);
        self.canary_for(goes_on.copied().unwrap_or(ANSWERED));
        self.clause = clause;
        self
    }

    /// Sends a request that nothing forbids. If the peer refuses it, refusals in this conversation may have any
    /// reason, and nothing is decided.
    pub(crate) fn control(&mut self, request: &Request) -> &mut Self {
        let clause = self.clause.clone();
        self.send(request.line(), Expect::ok(&clause).or(refused()));
        let step = self.at();
        self.relate(Relation::Control { step })
    }

    /// [`Talk::control`] in a new run-mode process.
    pub(crate) fn run_control(&mut self, aid: &str, request: &Request, env: &[(&str, &str)]) -> &mut Self {
        let clause = self.clause.clone();
        self.run(aid, request.body(), env, Expect::ok(&clause).or(refused()));
        let step = self.at() - 1;
        self.relate(Relation::Control { step })
    }

    /// Request of the role `any`. If `serve` is false, it has no aid.
    pub fn any(&self, serve: bool) -> Request {
        let any = self.role("any");
        let request = if serve { Request::aid(&any.aid) } else { Request::empty() };
        match &any.input {
            Some(input) => request.input(&input.to_string()),
            None => request,
        }
    }

    /// [`Talk::canary`] for the clause `clause`.
    pub fn canary_for(&mut self, clause: &str) -> &mut Self {
        let (request, expect) = self.good(clause);
        self.send(request.line(), expect.reason(CANARY_FAILED));
        if let Some(step) = self.plan.steps.last_mut() {
            step.canary = true;
        }
        self
    }

    /// Makes canaries differ from those of conversations with another number.
    pub(crate) fn numbered(&mut self, number: u64) -> &mut Self {
        self.nonce = ISOLATED_FROM + number;
        self
    }

    /// Marks the last step as a canary: its expected answer proves that the peer works.
    pub(crate) fn counts_as_canary(&mut self) -> &mut Self {
        if let Some(step) = self.plan.steps.last_mut() {
            step.canary = true;
        }
        self
    }

    /// Waits for only this many replies to the last step, because the others come at the end of input.
    pub(crate) fn await_only(&mut self, replies: u32) -> &mut Self {
        if let Some(Step { act: Act::Send { await_frames, .. }, .. }) = self.plan.steps.last_mut() {
            *await_frames = replies;
        }
        self
    }

    /// Gives the last step additional time.
    pub fn allow_ms(&mut self, ms: u64) -> &mut Self {
        if let Some(step) = self.plan.steps.last_mut() {
            step.allow_ms = ms;
        }
        self
    }

    /// Captures a value from the reply to the last step.
    pub fn capture(&mut self, pointer: &str, var: &str, secret: bool) -> &mut Self {
        if let Some(step) = self.plan.steps.last_mut() {
            step.capture =
                Some(Capture { pointer: pointer.to_owned(), var: var.to_owned(), secret, until: None });
        }
        self
    }

    /// Facts about the peer.
    pub fn facts(&self) -> &'a Facts {
        self.facts
    }

    /// Index of the last step, for relations.
    pub fn at(&self) -> usize {
        self.plan.steps.len().saturating_sub(1)
    }

    /// Adds a demand on several replies, or on several clauses of one reply.
    pub(crate) fn relate(&mut self, relation: Relation) -> &mut Self {
        relation.add_to(&mut self.plan);
        self
    }

    /// Adds any other step.
    pub fn act(&mut self, act: Act) -> &mut Self {
        self.push(act, Value::Null)
    }

    fn push(&mut self, act: Act, expect: Value) -> &mut Self {
        self.plan.steps.push(Step { session: self.session, expect, ..Step::new(act) });
        self
    }

    /// Runs one run-mode process: writes `body`, closes standard input, and waits for the exit.
    pub fn run(&mut self, aid: &str, body: Payload, env: &[(&str, &str)], expect: Expect) -> &mut Self {
        self.add_session("run", &[("aid", aid)], env);
        self.send_as(body, Chunking::Whole, 0, expect);
        self.act(Act::Finish)
    }

    /// Runs a run-mode process as a canary, which must succeed.
    pub(crate) fn run_canary(&mut self) -> &mut Self {
        self.nonce += 1;
        let (aid, body, expect) = self.good_run(RUN_ANSWERED);
        self.run(&aid, body, &[], expect.reason(CANARY_FAILED));
        self.run_counts_as_canary()
    }

    /// Marks the last run-mode process as a canary.
    pub(crate) fn run_counts_as_canary(&mut self) -> &mut Self {
        let sent = self.plan.steps.iter_mut().rev().find(|step| matches!(step.act, Act::Send { .. }));
        if let Some(step) = sent {
            step.canary = true;
        }
        self
    }

    /// Run-mode request known to succeed: action id, standard input, and expected reply.
    pub(crate) fn good_run(&mut self, clause: &str) -> (String, Payload, Expect) {
        let (aid, request, expect) = self.good_run_request(clause);
        (aid, request.body(), expect)
    }

    /// [`Talk::good_run`] with a request that can still be changed.
    pub(crate) fn good_run_request(&mut self, clause: &str) -> (String, Request, Expect) {
        self.nonce += 1;
        if self.has("echo") {
            let input = format!("{{\"canary\":{}}}", self.nonce);
            return (self.role("echo").aid, Request::empty().input(&input), Expect::output(clause, input));
        }
        (self.role("any").aid, self.any(false), Expect::ok(clause))
    }

    /// Closes the standard input of the current serve process, which must exit with status 0.
    pub fn finish(&mut self) -> &mut Self {
        self.act(Act::Finish)
    }

    /// Finished plan.
    pub fn plan(&mut self) -> Plan {
        Relation::seal(&mut self.plan);
        std::mem::take(&mut self.plan)
    }
}

/// Refusal with any error text.
pub fn refused() -> Allowed {
    Allowed::of(Outcome::Refused)
}
