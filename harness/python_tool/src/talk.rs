//! Builder of conversations: a scratch project with one process per request, or with one service for many requests.

use std::collections::BTreeMap;

use peerproof_engine::contract::face::Aim;
use peerproof_engine::data::carriage::{Carriage, HTTP};
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::finding::CANARY_FAILED;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Act, Chunking, Fixture, ListenerSettings, Placing, Plan, Session, Step};

use super::probe::{LISTENERS, Probe};
use super::project::{self, IMPORTED, PROJECT, TEMPORARY};
use super::roles::{entry_of, tool_of, usual_payload};

/// Path of handshakes.
pub(crate) const HANDSHAKE: &str = "/capabilities/handshake";

/// Clause of a plain call over HTTP, and clause of a canary after other calls.
const CANARIES: [&str; 2] = ["PT-SRV-01", "PT-SRV-25"];

/// Member in the payload of a canary after other calls; its value is a unique word.
pub(crate) const CANARY: &str = "canary";

/// First number of canaries that isolate a message, above all numbers of a conversation.
const ISOLATED_FROM: usize = 1 << 20;

/// A conversation under construction.
pub(crate) struct Talk<'a> {
    facts: &'a Facts,
    command: &'static str,
    plan: Plan,
    /// True if the next request needs a new service.
    needs_session: bool,
    /// Number of looks, modules and canaries so far.
    count: usize,
    /// True if a request to a service is not yet followed by a canary.
    owes_canary: bool,
    /// Longest duration of a call to the service, ms.
    longest_ms: u64,
    /// Clause of canaries after other calls.
    lives_on: &'static str,
}

/// Settings of a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sending {
    /// Clause that it tests; `None`: judged by its bytes.
    pub clause: Option<String>,
    /// Reason code of its finding.
    pub reason: Option<String>,
    /// Division into chunks.
    pub chunking: Chunking,
    /// Environment of the runner.
    pub env: BTreeMap<String, String>,
    /// Time that the tool takes, ms.
    pub allow_ms: u64,
    /// Actions that replace the end of input and the wait for the process, or that follow the call to a service.
    pub acts: Vec<Act>,
    /// Settings of the HTTP request, if unusual.
    pub http: Option<Carriage>,
    /// Number of replies to wait for over HTTP; by default the canary after it is awaited.
    pub await_frames: Option<u32>,
    /// Delay of the look at created files, ms.
    pub look_after_ms: u64,
}

impl<'a> Talk<'a> {
    /// A conversation with only a project.
    pub(crate) fn without_canary(facts: &'a Facts, command: &'static str) -> Self {
        let plan = Plan { by_model: true, fixtures: project::fixtures(), ..Plan::default() };
        Self {
            facts,
            command,
            plan,
            needs_session: true,
            count: 0,
            owes_canary: false,
            longest_ms: 0,
            lives_on: CANARIES[1],
        }
    }

    /// A conversation that begins with a canary.
    pub(crate) fn new(facts: &'a Facts, command: &'static str) -> Self {
        let mut talk = Self::without_canary(facts, command);
        talk.canary();
        talk
    }

    /// Sets the clause of canaries after other calls to a service.
    pub(crate) fn lives_on(&mut self, clause: &'static str) {
        self.lives_on = clause;
    }

    /// True for a conversation with a service.
    pub(crate) fn is_posted(&self) -> bool {
        self.command == HTTP
    }

    /// Makes the next request go to a new service.
    pub(crate) fn anew(&mut self) {
        self.needs_session = true;
    }

    /// Opens a session for a request: a new process, or the running service.
    fn open(&mut self, env: BTreeMap<String, String>) -> usize {
        if self.is_posted() && !std::mem::take(&mut self.needs_session) && env.is_empty() {
            return self.plan.sessions.len() - 1;
        }
        self.end();
        let project = format!("{{{{{PROJECT}.path}}}}");
        let mut session = Session { command: self.command.to_owned(), env, ..Session::default() };
        session.env.entry("PYTHONPATH".to_owned()).or_insert_with(|| project.clone());
        session.folder = Some(project);
        self.plan.sessions.push(session);
        self.plan.sessions.len() - 1
    }

    /// Starts a new service with this environment.
    pub(crate) fn open_with(&mut self, env: BTreeMap<String, String>) {
        self.needs_session = true;
        self.open(env);
    }

    /// Facts of the peer.
    pub(crate) fn facts(&self) -> &'a Facts {
        self.facts
    }

    /// Ends the running service.
    fn end(&mut self) {
        if let Some(session) = self.plan.sessions.len().checked_sub(1).filter(|_| self.is_posted()) {
            let allow_ms = std::mem::take(&mut self.longest_ms);
            self.plan.steps.push(Step { canary: true, session, allow_ms, ..Step::new(Act::Finish) });
        }
    }

    /// Adds a plain call whose reply shows that the peer works.
    pub(crate) fn canary(&mut self) {
        self.owes_canary = false;
        let is_first = self.plan.sessions.is_empty();
        let payload = if is_first {
            self.request("any", Payload::text("{}"), &[])
        } else {
            self.count += 1;
            self.request("echo", Payload::text(format!("{{\"{CANARY}\":\"behind {}\"}}", self.count)), &[])
        };
        let session = self.open(BTreeMap::new());
        let clause = match self.is_posted() {
            true if is_first => CANARIES[0],
            true => self.lives_on,
            false => "PT-FRAME-01",
        };
        let aim = Aim { clause: clause.into(), reason: Some(CANARY_FAILED.to_owned()) };
        let expect = serde_json::to_value(aim).unwrap_or_default();
        let http = self.is_posted().then(Carriage::post);
        let act = Act::Send { payload, chunking: Chunking::Whole, await_frames: u32::from(http.is_some()) };
        self.plan.steps.push(Step { canary: true, session, expect, http, ..Step::new(act) });
        if !self.is_posted() {
            self.plan.steps.push(Step { canary: true, session, ..Step::new(Act::Finish) });
        }
    }

    /// A canary step for a service that is unique to this number.
    pub(crate) fn isolating(facts: &'a Facts, number: u64) -> Option<Step> {
        let mut talk = Self::new(facts, HTTP);
        talk.count = usize::try_from(number).ok()?.saturating_add(ISOLATED_FROM);
        talk.canary();
        talk.plan.steps.pop()
    }

    /// Adds a canary if one is missing.
    pub(crate) fn canary_where_due(&mut self) {
        if self.owes_canary {
            self.canary();
        }
    }

    /// Asks a service for guarantees for a tool. `required` is JSON text; `with` are further members.
    pub(crate) fn handshake(
        &mut self,
        tool: &str,
        required: &str,
        with: &[(&str, &str)],
        clause: Option<&str>,
    ) {
        let name = format!("{tool:?}");
        let own = [
            ("protocol_version", "1"),
            ("tool_name", name.as_str()),
            ("runner", "\"service\""),
            ("required_guarantees", required),
        ];
        let payload = object(own.map(|(name, text)| (name, Payload::text(text))), with);
        let http = Some(Carriage { path: Some(HANDSHAKE.to_owned()), ..Carriage::post() });
        let how = Sending { clause: clause.map(str::to_owned), http, ..Sending::default() };
        self.send(payload, None, how);
    }

    /// A request: a call of `role` with changed members, given as names and JSON texts. Empty text removes a
    /// member.
    pub(crate) fn request(&self, role: &str, payload: Payload, with: &[(&str, &str)]) -> Payload {
        let (entry, tool) = (entry_of(self.facts, role), tool_of(self.facts, role));
        let name = if self.is_posted() { "tool_name" } else { "tool" };
        let own = [
            ("protocol_version", Payload::text("1")),
            (name, Payload::text(format!("{tool:?}"))),
            ("entry", Payload::text(format!("{entry:?}"))),
            ("payload", payload),
        ];
        object(own, with)
    }

    /// Payload of a row. `$PATH` becomes a new path in the project, which is looked at afterwards; it is returned.
    pub(crate) fn payload(&mut self, role: &str, text: Option<&str>) -> (Payload, Option<String>) {
        let text = text.unwrap_or_else(|| usual_payload(role));
        let Some((before, behind)) = text.split_once("$PATH") else { return (Payload::text(text), None) };
        self.count += 1;
        let label = format!("made-{}", self.count);
        let path = Payload::text(before).var(format!("{PROJECT}.path"));
        (path.then(Payload::text(format!("/{label}{behind}"))), Some(format!("{PROJECT}/{label}")))
    }

    /// Sends a request, and looks at the created file at this path among the fixtures.
    pub(crate) fn send(&mut self, request: Payload, made: Option<String>, how: Sending) {
        let session = self.open(how.env);
        let step = |act| Step { session, ..Step::new(act) };
        let expect = how.clause.map(|clause| Aim { clause: clause.as_str().into(), reason: how.reason });
        let expect = expect.and_then(|aim| serde_json::to_value(aim).ok()).unwrap_or_default();
        let http = self.is_posted().then(|| how.http.unwrap_or_else(Carriage::post));
        let is_answered = http.as_ref().is_some_and(|http| !http.is_raw() && !http.is_cut());
        // A refusal may have no body to wait for. Then the canary after it shows that nothing more comes. A slow
        // reply would be overtaken by the canary.
        let has_canary = is_answered && how.await_frames.is_none() && how.allow_ms == 0;
        // A local runner answers after the end of its input.
        let await_frames = match self.is_posted() {
            true => how.await_frames.unwrap_or(u32::from(is_answered)),
            false => 0,
        };
        let act = Act::Send { payload: request, chunking: how.chunking, await_frames };
        let allow_ms = if self.is_posted() { how.allow_ms } else { 0 };
        self.longest_ms = self.longest_ms.max(allow_ms);
        self.plan.steps.push(Step { expect, http, allow_ms, ..step(act) });
        match how.acts.is_empty() && !self.is_posted() {
            true => self.plan.steps.push(Step { allow_ms: how.allow_ms, ..step(Act::Finish) }),
            false => self.plan.steps.extend(how.acts.into_iter().map(step)),
        }
        self.owes_canary = self.is_posted() && how.allow_ms == 0;
        if has_canary {
            self.canary();
        }
        if let Some(path) = made {
            let label = path.rsplit('/').next().unwrap_or_default().to_owned();
            let path = Payload::text(path);
            self.plan.steps.push(step(Act::Look { label, path, after_ms: how.look_after_ms }));
        }
    }

    /// Sends a request to a new runner in two halves with a pause.
    pub(crate) fn paused(&mut self, text: &str, ms: u64, how: Sending) {
        let (first, rest) = text.split_at_checked(text.len() / 2).unwrap_or((text, ""));
        let send =
            |text| Act::Send { payload: Payload::text(text), chunking: Chunking::Whole, await_frames: 0 };
        let acts = vec![Act::Wait { ms }, send(rest), Act::Finish];
        self.send(Payload::text(first), None, Sending { acts, ..how });
    }

    /// Writes the module that plays a role at import, for the next request to call.
    pub(crate) fn import(&mut self, role: &str, payload: Payload) {
        self.count += 1;
        // A service may cache imported modules.
        self.needs_session = true;
        let (path, content) = (Payload::text(IMPORTED), project::imported(role, payload, self.count));
        let session = self.plan.sessions.len();
        let put = Act::Put { path, content, by: Placing::Write };
        self.plan.steps.push(Step { session, ..Step::new(put) });
    }

    /// Adds the fixtures of a probe. Returns its payload.
    pub(crate) fn probe(&mut self, probe: &mut Probe<'_>, host: &str, catch: bool) -> Payload {
        self.count += 1;
        probe.number = self.count;
        let has = |name: &str, plan: &Plan| plan.fixtures.iter().any(|it| it.name() == name);
        if probe.temporary && !has(TEMPORARY, &self.plan) {
            let name = TEMPORARY.to_owned();
            self.plan.fixtures.push(Fixture::Folder { name, folders: Vec::new(), watched: false });
        }
        self.plan.fixtures.extend(probe.fixtures());
        if probe.is_heard() && !has(LISTENERS[0], &self.plan) {
            let manner = ListenerSettings { datagrams: true, ..ListenerSettings::default() };
            self.plan.fixtures.extend(LISTENERS.map(|name| Fixture::Listener {
                name: name.to_owned(),
                status: 200,
                location: None,
                body: Payload::text("ok"),
                manner: manner.clone(),
            }));
        }
        probe.payload(host, catch)
    }

    /// Ends the service and returns the plan.
    pub(crate) fn plan(mut self) -> Plan {
        self.end();
        self.plan
    }
}

/// An object of members, some replaced or added by JSON texts; empty text removes a member.
fn object<const N: usize>(own: [(&'static str, Payload); N], with: &[(&str, &str)]) -> Payload {
    let names = own.each_ref().map(|(name, _)| *name);
    let given = |name: &str| with.iter().find(|(own, _)| *own == name).map(|(_, text)| *text);
    let own = own.into_iter().filter_map(|(name, text)| match given(name) {
        Some("") => None,
        other => Some((name, other.map_or(text, Payload::text))),
    });
    let more = with.iter().filter(|(name, text)| !names.contains(name) && !text.is_empty());
    let members: Vec<_> = own.chain(more.map(|(name, text)| (*name, Payload::text(*text)))).collect();
    let mut parts = Payload::text("{");
    for (at, (name, text)) in members.into_iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        parts = parts.then(Payload::text(format!("{comma}\"{name}\":"))).then(text);
    }
    parts.then(Payload::text("}")).merged()
}
