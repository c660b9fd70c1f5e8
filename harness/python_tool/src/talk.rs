//! Builds conversations: a scratch project, and in it a process for each request.

use std::collections::BTreeMap;

use peerproof_engine::face::Aim;
use peerproof_engine::facts::Facts;
use peerproof_engine::finding::CANARY_FAILED;
use peerproof_engine::payload::Payload;
use peerproof_engine::plan::{Act, Chunking, Fixture, Manner, Placing, Plan, Session, Step};

use super::face::COMMAND;
use super::probe::{LISTENERS, Probe, VARIABLE};
use super::project::{self, IMPORTED, PROJECT};
use super::roles::{entry_of, tool_of, usual_payload};

/// A conversation in the making.
pub struct Talk<'a> {
    facts: &'a Facts,
    plan: Plan,
    /// Looks and modules so far: each has a number of its own.
    count: usize,
}

/// How a request is sent.
#[derive(Debug, Clone, Default)]
pub struct Sending {
    /// The clause that it is about; `None`: whichever its bytes say.
    pub clause: Option<String>,
    /// How it is cut.
    pub chunking: Chunking,
    /// Environment of the runner.
    pub env: BTreeMap<String, String>,
    /// Time that the tool takes, milliseconds.
    pub allow_ms: u64,
    /// What is done to the process in the place of closing its input and waiting for its end.
    pub acts: Vec<Act>,
}

impl<'a> Talk<'a> {
    /// A conversation with nothing but a project.
    pub fn without_canary(facts: &'a Facts) -> Self {
        let plan = Plan { by_model: true, fixtures: project::fixtures(), ..Plan::default() };
        Self { facts, plan, count: 0 }
    }

    /// A conversation that begins with a canary.
    pub fn new(facts: &'a Facts) -> Self {
        let mut talk = Self::without_canary(facts);
        talk.canary();
        talk
    }

    fn open(&mut self, env: BTreeMap<String, String>) -> usize {
        let project = format!("{{{{{PROJECT}.path}}}}");
        let mut session = Session { command: COMMAND.to_owned(), env, ..Session::default() };
        session.env.entry("PYTHONPATH".to_owned()).or_insert_with(|| project.clone());
        session.folder = Some(project);
        self.plan.sessions.push(session);
        self.plan.sessions.len() - 1
    }

    /// A plain call whose answer shows that the peer works.
    pub fn canary(&mut self) {
        let payload = self.request("any", Payload::text("{}"), &[]);
        let session = self.open(BTreeMap::new());
        let aim = Aim { clause: "PT-FRAME-01".into(), reason: Some(CANARY_FAILED.to_owned()) };
        let expect = serde_json::to_value(aim).unwrap_or_default();
        let act = Act::Send { payload, chunking: Chunking::Whole, await_frames: 0 };
        let send = Step { canary: true, session, expect, ..Step::new(act) };
        let finish = Step { canary: true, session, ..Step::new(Act::Finish) };
        self.plan.steps.extend([send, finish]);
    }

    /// A request: a call of `role` with other members, each a name with a JSON text; an empty one takes it away.
    pub fn request(&self, role: &str, payload: Payload, with: &[(&str, &str)]) -> Payload {
        let (entry, tool) = (entry_of(self.facts, role), tool_of(self.facts, role));
        let given = |name: &str| with.iter().find(|(own, _)| *own == name).map(|(_, text)| *text);
        let mut parts = Payload::text("{");
        let mut put = |name: &str, text: Payload| {
            let comma = if parts.0.len() > 1 { "," } else { "" };
            let whole = std::mem::take(&mut parts);
            parts = whole.then(Payload::text(format!("{comma}\"{name}\":"))).then(text);
        };
        let own = [
            ("protocol_version", Payload::text("1")),
            ("tool", Payload::text(format!("{tool:?}"))),
            ("entry", Payload::text(format!("{entry:?}"))),
            ("payload", payload),
        ];
        for (name, text) in own {
            match given(name) {
                Some("") => {}
                Some(other) => put(name, Payload::text(other)),
                None => put(name, text),
            }
        }
        for (name, text) in with {
            let is_own = ["protocol_version", "tool", "entry", "payload"].contains(name);
            if !is_own && !text.is_empty() {
                put(name, Payload::text(*text));
            }
        }
        parts.then(Payload::text("}")).merged()
    }

    /// A payload as a row has it: `$PATH` is a path of its own in the project, which is looked at afterwards.
    pub fn payload(&mut self, role: &str, text: Option<&str>) -> (Payload, Option<String>) {
        let text = text.unwrap_or_else(|| usual_payload(role));
        let Some((before, behind)) = text.split_once("$PATH") else { return (Payload::text(text), None) };
        self.count += 1;
        let label = format!("made-{}", self.count);
        let path = Payload::text(before).var(format!("{PROJECT}.path"));
        (path.then(Payload::text(format!("/{label}{behind}"))), Some(label))
    }

    /// Sends a request to a process of its own, and looks at what it made.
    pub fn send(&mut self, request: Payload, label: Option<String>, how: Sending) {
        let session = self.open(how.env);
        let step = |act| Step { session, ..Step::new(act) };
        let expect = how.clause.map(|clause| Aim { clause: clause.as_str().into(), reason: None });
        let expect = expect.and_then(|aim| serde_json::to_value(aim).ok()).unwrap_or_default();
        let act = Act::Send { payload: request, chunking: how.chunking, await_frames: 0 };
        self.plan.steps.push(Step { expect, ..step(act) });
        match how.acts.is_empty() {
            true => self.plan.steps.push(Step { allow_ms: how.allow_ms, ..step(Act::Finish) }),
            false => self.plan.steps.extend(how.acts.into_iter().map(step)),
        }
        if let Some(label) = label {
            let path = Payload::text(format!("{PROJECT}/{label}"));
            self.plan.steps.push(step(Act::Look { label, path, after_ms: 0 }));
        }
    }

    /// Writes the module anew that plays a role while it is imported; the next request is to call it.
    pub fn import(&mut self, role: &str, payload: Payload) {
        self.count += 1;
        let (path, content) = (Payload::text(IMPORTED), project::imported(role, payload, self.count));
        let session = self.plan.sessions.len();
        let put = Act::Put { path, content, by: Placing::Write };
        self.plan.steps.push(Step { session, ..Step::new(put) });
    }

    /// A probe of a guarantee with what it needs around it: fixtures, a value in the environment. Gives its payload, the look
    /// that shows its effect, and the environment.
    pub fn probe(
        &mut self,
        probe: &mut Probe<'_>,
        host: &str,
        catch: bool,
    ) -> (Payload, Option<String>, BTreeMap<String, String>) {
        self.count += 1;
        probe.number = self.count;
        let mut env = BTreeMap::new();
        self.plan.fixtures.extend(probe.fixtures());
        if probe.role == "connect" && !self.plan.fixtures.iter().any(|it| it.name() == LISTENERS[0]) {
            let manner = Manner { datagrams: true, ..Manner::default() };
            self.plan.fixtures.extend(LISTENERS.map(|name| Fixture::Listener {
                name: name.to_owned(),
                status: 200,
                location: None,
                body: Payload::text("ok"),
                manner: manner.clone(),
            }));
        }
        if probe.role == "env_read" {
            env.insert(VARIABLE.to_owned(), probe.token.to_owned());
        }
        let label = matches!(probe.role, "write" | "process").then(|| probe.label());
        (probe.payload(host, catch), label, env)
    }

    /// The conversation.
    pub fn plan(self) -> Plan {
        self.plan
    }
}
