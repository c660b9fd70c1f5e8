//! Builder of conversations with a dispatcher: calls, and their scripted toolhosts.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::talk::quoted;
use super::expect::{CallExpect, Expect};
use peerproof_engine::data::finding::CANARY_FAILED;
use peerproof_engine::data::json::{Json, Presentation, present};
use peerproof_engine::data::payload::{Payload, Segment};
use peerproof_engine::data::plan::{Act, ActorStep, Chunking, Fixture, PathKind, Plan, Session, Step};
use peerproof_engine::data::rng::Rng;

/// Default action id of a call.
pub(crate) const AID: &str = "AID.PEERPROOF.CALL.v1";

/// Environment variable with the time limit of a toolhost in seconds (`ipc` §7).
pub(crate) const TIMEOUT_VARIABLE: &str = "MACHINA_TOOLHOST_TIMEOUT";

/// Largest standard output of a toolhost in bytes (`ipc` §7 `_TOOLHOST_MAX_OUTPUT`), inclusive.
pub(crate) const REPLY_BYTES_MAX: usize = 1_048_576;

/// Label of the probe one second after a timeout, when the contract demands that the processes are gone.
pub(crate) const LATER: &str = "1 s later";

/// Builder of a call.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    body: Payload,
    chunking: Chunking,
    timeout_s: Option<String>,
    allow_ms: u64,
}

impl Call {
    /// A small call.
    pub(crate) fn plain() -> Self {
        Self::of(AID, "{\"query\":\"test\",\"k\":3}")
    }

    /// A call of `aid` with these inputs (JSON text of an object).
    pub(crate) fn of(aid: &str, inputs: &str) -> Self {
        Self::written(Payload::text(format!("{{\"aid\":{},\"inputs\":{inputs}}}", quoted(aid))))
    }

    /// A call in exactly these bytes.
    pub(crate) fn written(body: Payload) -> Self {
        Self { body, chunking: Chunking::Whole, timeout_s: None, allow_ms: 0 }
    }

    /// Splits the input of the dispatcher into chunks.
    #[must_use]
    pub(crate) fn cut(mut self, chunking: Chunking) -> Self {
        self.chunking = chunking;
        self
    }

    /// Sets the time limit of the toolhost, and extends that of the call by as much.
    #[must_use]
    pub(crate) fn timeout_s(mut self, timeout_s: u32) -> Self {
        self.timeout_s = Some(timeout_s.to_string());
        self.allow_ms += u64::from(timeout_s) * 1_000;
        self
    }

    /// Sets the variable of the time limit to any text.
    #[must_use]
    pub(crate) fn timeout_text(mut self, text: &str) -> Self {
        self.timeout_s = Some(text.to_owned());
        self
    }

    /// Lets the call take longer.
    #[must_use]
    pub(crate) fn allow_ms(mut self, ms: u64) -> Self {
        self.allow_ms += ms;
        self
    }
}

/// Builder of a conversation. Every call has its own dispatcher process and toolhost.
pub(crate) struct Talk {
    plan: Plan,
    nonce: u64,
}

impl Talk {
    /// Creates an empty conversation. `rng` makes its outputs differ from those of any other.
    pub(crate) fn new(rng: &mut Rng) -> Self {
        Self { plan: Plan::default(), nonce: rng.below(1 << 40) }
    }

    /// JSON text of an unpredictable output.
    pub(crate) fn output(&mut self) -> String {
        self.nonce += 1;
        format!("{{\"answer\":{}}}", self.nonce)
    }

    /// Scripts a toolhost. Returns its path for [`Talk::begin`].
    pub(crate) fn toolhost(&mut self, script: Vec<ActorStep>) -> String {
        let name = format!("toolhost{}", self.plan.fixtures.len());
        let path = format!("{{{{{name}.path}}}}");
        self.plan.fixtures.push(Fixture::Actor { name, script, later: Vec::new() });
        path
    }

    /// Puts another kind of file in place of a toolhost. Returns its path.
    pub(crate) fn obstacle(&mut self, what: PathKind) -> String {
        let name = format!("path{}", self.plan.fixtures.len());
        let path = format!("{{{{{name}.path}}}}");
        self.plan.fixtures.push(Fixture::Path { name, what });
        path
    }

    /// Starts a dispatcher and makes a call. Returns its session.
    pub(crate) fn begin(&mut self, call: &Call, path: &str, expect: impl Into<CallExpect>) -> usize {
        let session = self.open(path, call.timeout_s.as_deref());
        self.send(session, call, expect.into());
        self.act(session, Act::CloseStdin);
        session
    }

    /// Starts a dispatcher and writes a call without ending its input. Returns its session.
    pub(crate) fn begin_open(&mut self, call: &Call, path: &str, expect: impl Into<CallExpect>) -> usize {
        let session = self.open(path, call.timeout_s.as_deref());
        self.send(session, call, expect.into());
        session
    }

    fn open(&mut self, path: &str, timeout_s: Option<&str>) -> usize {
        let env = timeout_s.map(|text| (TIMEOUT_VARIABLE.to_owned(), text.to_owned()));
        self.plan.sessions.push(Session {
            command: "command".to_owned(),
            placeholders: BTreeMap::from([("peer".to_owned(), path.to_owned())]),
            env: env.into_iter().collect(),
            ..Session::default()
        });
        self.plan.sessions.len() - 1
    }

    fn send(&mut self, session: usize, call: &Call, expect: CallExpect) {
        let payload = call.body.clone();
        let act = Act::Send { payload, chunking: call.chunking, await_frames: 0 };
        let expect = serde_json::to_value(expect).unwrap_or(Value::Null);
        self.plan.steps.push(Step { session, expect, ..Step::new(act) });
    }

    /// Waits until the dispatcher has printed a line or exited.
    pub(crate) fn result(&mut self, session: usize, call: &Call) -> &mut Self {
        let nothing = Payload::default();
        let act = Act::Send { payload: nothing, chunking: Chunking::Whole, await_frames: 1 };
        self.plan.steps.push(Step { session, allow_ms: call.allow_ms, ..Step::new(act) });
        self
    }

    /// Adds a step of a session.
    pub(crate) fn act(&mut self, session: usize, act: Act) -> &mut Self {
        self.plan.steps.push(Step { session, ..Step::new(act) });
        self
    }

    /// Probes the processes of the toolhost of `session`.
    pub(crate) fn probe(&mut self, session: usize, label: &str) -> &mut Self {
        self.probe_after(session, 0, label)
    }

    fn probe_after(&mut self, session: usize, after_ms: u64, label: &str) -> &mut Self {
        let path = &self.plan.sessions[session].placeholders["peer"];
        let actor = path.trim_start_matches('{').trim_end_matches(".path}}").to_owned();
        self.act(session, Act::ProbeActor { actor, label: label.to_owned(), after_ms })
    }

    /// Waits for the dispatcher to exit.
    pub(crate) fn finish(&mut self, session: usize) -> &mut Self {
        self.act(session, Act::Finish)
    }

    /// Makes a complete call with a scripted toolhost.
    pub(crate) fn call(
        &mut self,
        call: &Call,
        script: Vec<ActorStep>,
        expect: impl Into<CallExpect>,
    ) -> &mut Self {
        let path = self.toolhost(script);
        let session = self.begin(call, &path, expect);
        self.result(session, call).finish(session)
    }

    /// Marks the last call as a canary, which must succeed.
    pub(crate) fn counts_as_canary(&mut self) -> &mut Self {
        if let Some(step) = self.plan.steps.iter_mut().rev().find(|step| !step.expect.is_null()) {
            step.canary = true;
        }
        self
    }

    /// Marks the wait for the last result as a measurement of the dispatcher's latency.
    pub(crate) fn shows_latency(&mut self) -> &mut Self {
        let waits = |step: &&mut Step| matches!(step.act, Act::Send { await_frames: 1.., .. });
        if let Some(step) = self.plan.steps.iter_mut().rev().find(waits) {
            step.canary = true;
        }
        self
    }

    /// Makes a plain call that must succeed, for `clause`.
    pub(crate) fn canary(&mut self, clause: &str) -> &mut Self {
        let output = self.output();
        let expect = Expect::output(clause, &output).reason(CANARY_FAILED);
        self.call(&Call::plain(), answering(Reply::ok(&output).payload()), expect).counts_as_canary()
    }

    /// Probes the processes of the toolhost `ms` after the result of `session`, and ends the call.
    pub(crate) fn linger(&mut self, session: usize, ms: u64) -> &mut Self {
        self.probe_after(session, ms, LATER).finish(session)
    }

    /// Finished plan.
    pub(crate) fn plan(&mut self) -> Plan {
        std::mem::take(&mut self.plan)
    }
}

/// Steps of a toolhost that reads its request, writes `reply` at once and exits with 0.
pub(crate) fn answering(reply: Payload) -> Vec<ActorStep> {
    vec![ActorStep::ReadRequest, ActorStep::Stdout(reply)]
}

/// Builder of a reply (`ipc` §4).
#[derive(Debug, Clone)]
pub(crate) struct Reply(pub Json);

impl Reply {
    /// A complete success with this output (JSON text).
    pub(crate) fn ok(output: &str) -> Self {
        let artifact = Json::object([
            ("type", Json::from("note")),
            ("provenance", Json::from("peerproof")),
            ("content_json", Json::from("{}")),
            ("size_bytes", Json::from(2_u64)),
        ]);
        let slots = Json::object([("0", artifact)]);
        Self(Json::object([
            ("ok", Json::from(true)),
            ("status", Json::from("OK")),
            ("output_json", Json::from(output)),
            ("error", Json::from("")),
            ("ds_state", Json::object([("slots", slots)])),
        ]))
    }

    /// A host error.
    pub(crate) fn failed(error: &str) -> Self {
        Self(Json::object([("ok", Json::from(false)), ("error", Json::from(error))]))
    }

    /// Sets a member.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: impl Into<Json>) -> Self {
        self.0.set(name, value);
        self
    }

    /// Takes a member out.
    #[must_use]
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.0.remove(name);
        self
    }

    /// Its compact text.
    pub(crate) fn text(&self) -> String {
        self.0.to_text()
    }

    /// The text as one write, without a line feed.
    pub(crate) fn payload(&self) -> Payload {
        Payload::text(self.text())
    }

    /// The text in another presentation.
    pub(crate) fn presented(&self, how: Presentation, rng: &mut Rng) -> String {
        present(&self.0, how, &mut || rng.next_u64())
    }

    /// The reply with an unknown member that pads it to exactly `bytes` bytes with `unit` (no characters that need
    /// escaping). If `bytes` is too small, the padding is empty.
    pub(crate) fn padded_to(&self, bytes: usize, unit: &str) -> Payload {
        let text = self.text();
        let head = format!("{},\"x_peerproof_pad\":\"", &text[..text.len() - 1]);
        let room = bytes.saturating_sub(head.len() + 2);
        let (times, rest) = (room / unit.len(), room % unit.len());
        Payload(vec![
            Segment::Text(format!("{head}{}", "x".repeat(rest))),
            Segment::Repeat { unit: unit.to_owned(), times: times as u64 },
            Segment::Text("\"}".to_owned()),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use peerproof_engine::data::json::{DecodeLimits, decode};
    use peerproof_engine::data::payload::Vars;

    #[test]
    fn padding_hits_the_size_and_stays_json() {
        for (bytes, unit) in [(1000, "x"), (1001, "é"), (1048576, "𝄞"), (1048577, "\\u0041")] {
            let text = Reply::ok("{}").padded_to(bytes, unit).expand(&Vars::new()).unwrap();
            assert_eq!(text.len(), bytes);
            assert!(decode(&text, &DecodeLimits::default()).is_ok(), "{unit}");
        }
    }

    #[test]
    fn a_probe_names_the_actor_of_its_session() {
        let mut talk = Talk::new(&mut Rng::new(1));
        let path = talk.toolhost(Vec::new());
        let session = talk.begin(&Call::plain(), &path, Expect::error("C", &[]));
        talk.probe(session, LATER);
        let plan = talk.plan();
        let Some(Act::ProbeActor { actor, .. }) = plan.steps.last().map(|step| &step.act) else {
            panic!("no probe")
        };
        assert_eq!(actor, "toolhost0");
    }
}
