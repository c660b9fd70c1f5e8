//! Builder of conversations with a driver: a payload in a file, and one start for it.

use std::collections::BTreeMap;

use super::super::block::is_sid;
use super::super::request::{Request, sids};
use super::super::{BRIDGE, DRIVER, full_facts};
use super::expect::Expect;
use super::leaf::with_leaf;
use peerproof_engine::data::check::Untestable;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::finding::CANARY_FAILED;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{
    Act, Chunking, FOLDER, Fixture, Limits, ListenerSettings, PathKind, Plan, ReplyFault, Session, Step,
};

/// Time for a driver to start and open its payload before it gets SIGTERM, ms; a slower one is not at fault.
const START_MS: u64 = 600;

/// Variable: URL of the model.
pub(crate) const URL: &str = "MACHINA_POLICY_LLM_URL";

/// Variable: value of the `Authorization` header.
pub(crate) const AUTHORIZATION: &str = "MACHINA_POLICY_LLM_AUTH";

/// Begin of the names of folders with a payload and nothing else.
pub(crate) const BESIDE: &str = "beside";

/// Name of a payload in such a folder.
pub(crate) const PAYLOAD: &str = "payload";

/// Label of a memory measurement.
pub(crate) const MEASURED: &str = "while it reads";

/// A conversation under construction. Each decision has a process of its own.
pub(crate) struct Talk<'a> {
    facts: &'a Facts,
    plan: Plan,
    command: &'static str,
    env: BTreeMap<String, String>,
    limits: Limits,
    /// Step of the decision that later ones are compared with.
    twin: Option<usize>,
    /// Reason why a step could not be built.
    missing: Option<Untestable>,
}

impl<'a> Talk<'a> {
    /// An empty conversation with a driver.
    pub(crate) fn new(facts: &'a Facts) -> Self {
        Self {
            facts,
            plan: Plan::default(),
            command: DRIVER,
            env: BTreeMap::new(),
            limits: Limits::default(),
            twin: None,
            missing: None,
        }
    }

    /// An empty conversation with a bridge.
    pub(crate) fn bridge(facts: &'a Facts) -> Self {
        Self { command: BRIDGE, ..Self::new(facts) }
    }

    /// Facts about the driver.
    pub(crate) fn facts(&self) -> &'a Facts {
        self.facts
    }

    /// Sets a variable for the following decisions.
    pub(crate) fn env(&mut self, name: &str, value: &str) -> &mut Self {
        self.env.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Sets resource limits for the processes of the following decisions.
    pub(crate) fn limits(&mut self, limits: Limits) -> &mut Self {
        self.limits = limits;
        self
    }

    /// Payload of a role. `None` if the role is not configured, or its menu has no SID.
    pub(crate) fn role(&self, role: &str) -> Option<Request> {
        let payload = self.facts.roles.get(role)?.get("payload")?;
        let request = payload.to_string().parse().ok().map(Request)?;
        sids(&request.0).into_iter().any(is_sid).then_some(request)
    }

    /// Payloads of all configured roles.
    pub(crate) fn roles(&self) -> Vec<(&'static str, Request)> {
        full_facts::payloads().into_iter().filter_map(|(role, _)| Some((role, self.role(role)?))).collect()
    }

    /// A payload for each role; the usual one if the role is not configured.
    pub(crate) fn payloads(&self) -> [Request; 3] {
        full_facts::payloads().map(|(role, usual)| self.role(role).unwrap_or(usual))
    }

    /// Payload of a role that the check needs. Without it the check is untestable.
    pub(crate) fn needed_role(&mut self, role: &str) -> Option<Request> {
        let request = self.role(role);
        if request.is_none() {
            let why = "has no menu with a SID; add a menu from which the driver picks";
            self.misses(Untestable::new(
                "nothing_to_pick",
                format!("the payload of the role `{role}` {why}"),
            ));
        }
        request
    }

    /// Payload of a role with the JSON text `value` in its inputs, at a place that a driver may copy. Without such
    /// a place the check is untestable.
    pub(crate) fn role_with_leaf(&mut self, role: &str, value: &str) -> Option<String> {
        let request = self.needed_role(role)?;
        let text = with_leaf(&request, value);
        if text.is_none() {
            let why =
                "has no string and no number in its inputs; add one that the driver copies to its patch";
            self.misses(Untestable::new(
                "nothing_to_copy",
                format!("the payload of the role `{role}` {why}"),
            ));
        }
        text
    }

    /// Records why a step could not be built.
    pub(crate) fn misses(&mut self, what: Untestable) {
        self.missing.get_or_insert(what);
    }

    /// A payload with a pick, if the driver promises one, and the expectation.
    pub(crate) fn pickable(&self, clause: &str) -> (Request, Expect) {
        match self.role("pick") {
            Some(request) => (request, Expect::pick(clause)),
            None => (Request::plain(), Expect::block(clause)),
        }
    }

    /// Adds a model for the following bridges, which answers each request with this reply. `target` is path and
    /// query of its URL.
    pub(crate) fn model(
        &mut self,
        target: &str,
        status: u16,
        body: Payload,
        fault: Option<ReplyFault>,
    ) -> &mut Self {
        let name = format!("model{}", self.plan.fixtures.len());
        let content_type = Some("application/json".to_owned());
        let manner = ListenerSettings { whole: true, content_type, fault, ..ListenerSettings::default() };
        self.env(URL, &format!("http://{{{{{name}.address}}}}{target}"));
        self.fixture(Fixture::Listener { name, status, location: None, body, manner })
    }

    /// Adds a fixture.
    pub(crate) fn fixture(&mut self, fixture: Fixture) -> &mut Self {
        self.plan.fixtures.push(fixture);
        self
    }

    /// Adds a start that is not judged. Its payload has an empty menu, so its duration is the start-up time of a
    /// driver.
    pub(crate) fn starts(&mut self) -> &mut Self {
        let name = format!("payload{}", self.plan.fixtures.len());
        let session = self.start_on(&name, Payload::text(Request::of(&[]).text()), None);
        self.plan.sessions[session].shows_start = Some(true);
        self.plan.steps.push(Step { session, allow_ms: self.timeout_ms(), ..Step::new(Act::Finish) });
        self
    }

    /// Adds a decision about a request.
    pub(crate) fn decide(&mut self, request: &Request, expect: Expect) -> &mut Self {
        self.decide_on(Payload::text(request.text()), expect)
    }

    /// Adds a decision about a payload file with these bytes.
    pub(crate) fn decide_on(&mut self, content: Payload, expect: Expect) -> &mut Self {
        let name = format!("payload{}", self.plan.fixtures.len());
        self.decide_in(&name, content, expect)
    }

    /// Adds a decision about a payload file with this name and these bytes.
    pub(crate) fn decide_in(&mut self, name: &str, content: Payload, expect: Expect) -> &mut Self {
        self.decide_in_file(name, content, None, expect)
    }

    /// A decision about a request whose payload has a folder of its own, into which somebody looks when the driver has ended.
    pub(crate) fn decide_in_a_folder(&mut self, request: &Request, expect: Expect) -> &mut Self {
        let folder = format!("{BESIDE}{}", self.plan.fixtures.len());
        let own = Fixture::Folder { name: folder.clone(), folders: Vec::new(), watched: false };
        self.fixture(own).decide_in(&format!("{folder}/{PAYLOAD}"), Payload::text(request.text()), expect);
        let session = self.plan.sessions.len().saturating_sub(1);
        let look = Act::Look { label: folder.clone(), path: Payload::text(folder), after_ms: 0 };
        self.plan.steps.push(Step { session, ..Step::new(look) });
        self
    }

    /// Adds a decision about a request in a file without read permission.
    pub(crate) fn decide_without_permission(&mut self, request: &Request, expect: Expect) -> &mut Self {
        let name = format!("payload{}", self.plan.fixtures.len());
        self.decide_in_file(&name, Payload::text(request.text()), Some(0), expect)
    }

    fn decide_in_file(
        &mut self,
        name: &str,
        content: Payload,
        mode: Option<u32>,
        expect: Expect,
    ) -> &mut Self {
        let session = self.start_on(name, content, mode);
        self.end(session, Expect { payload: name.to_owned(), ..expect })
    }

    /// Adds a file and the process that reads it; returns its session.
    fn start_on(&mut self, name: &str, content: Payload, mode: Option<u32>) -> usize {
        self.plan.fixtures.push(Fixture::File { name: name.to_owned(), content, kept: false, mode });
        self.start(&format!("{{{{{name}.path}}}}"))
    }

    /// Adds a decision about an entry that is not a readable file.
    pub(crate) fn decide_on_path(&mut self, what: PathKind, expect: Expect) -> &mut Self {
        let name = format!("path{}", self.plan.fixtures.len());
        self.plan.fixtures.push(Fixture::Path { name: name.clone(), what });
        let path = format!("{{{{{name}.path}}}}");
        let session = self.start(&path);
        self.end(session, Expect { payload: name, ..expect })
    }

    /// Adds the process of one decision; returns its session.
    fn start(&mut self, path: &str) -> usize {
        self.plan.sessions.push(Session {
            command: self.command.to_owned(),
            placeholders: BTreeMap::from([("payload".to_owned(), path.to_owned())]),
            env: self.env.clone(),
            limits: self.limits,
            // The duration of a decision shows nothing about the start-up. For a bridge there is no other measure.
            shows_start: (self.command == DRIVER).then_some(false),
            ..Session::default()
        });
        self.plan.sessions.len() - 1
    }

    /// Closes standard input and waits for the end of the process; sets the expectation.
    fn end(&mut self, session: usize, expect: Expect) -> &mut Self {
        self.last_act(session, Act::Finish, expect)
    }

    fn last_act(&mut self, session: usize, act: Act, expect: Expect) -> &mut Self {
        let twin = expect.copied().and(self.twin);
        let expect = serde_json::to_value(Expect { twin, ..expect }).unwrap_or_default();
        let allow_ms = if act == Act::Finish { self.timeout_ms() } else { 0 };
        self.plan.steps.push(Step { session, expect, allow_ms, ..Step::new(act) });
        self
    }

    /// Adds a driver whose payload is a pipe without a writer. It gets SIGTERM once it has had time to start.
    pub(crate) fn end_by_sigterm(&mut self, clause: &str) -> &mut Self {
        let name = format!("path{}", self.plan.fixtures.len());
        self.plan.fixtures.push(Fixture::Path { name: name.clone(), what: PathKind::Fifo });
        let session = self.start(&format!("{{{{{name}.path}}}}"));
        let start = Act::Wait { ms: START_MS };
        self.plan.steps.push(Step { session, ..Step::new(start) });
        let expect = Expect { payload: name, ..Expect::no_pick(clause) };
        self.last_act(session, Act::Signal("TERM".to_owned()), expect)
    }

    /// Samples the memory of the last decision for this time, ms, while the driver runs.
    pub(crate) fn measured_for(&mut self, ms: u64) -> &mut Self {
        if let Some(step) = self.plan.steps.last() {
            let session = step.session;
            let at = self.plan.steps.len() - 1;
            let sample = Act::SampleMemory { label: MEASURED.to_owned() };
            // Several samples, because a driver that uses too much may end before the last one.
            let acts = [Act::Wait { ms: ms / 4 }, sample].into_iter().cycle().take(8);
            let steps = acts.map(|act| Step { session, ..Step::new(act) });
            self.plan.steps.splice(at..at, steps);
        }
        self
    }

    /// Makes the temporary folder the working folder of the last decision's driver, so that every file left in it
    /// is found.
    pub(crate) fn works_where_it_is_watched(&mut self) -> &mut Self {
        let last = self.plan.sessions.len().saturating_sub(1);
        if let Some(session) = self.plan.sessions.last_mut() {
            session.folder = Some(format!("{{{{{FOLDER}}}}}/tmp{last}"));
        }
        self
    }

    /// Makes the last decision the twin of later ones.
    pub(crate) fn is_twin(&mut self) -> &mut Self {
        self.twin = self.plan.steps.len().checked_sub(1);
        self
    }

    /// Keeps standard input of the last decision open after these bytes, until the driver has printed or its time
    /// has passed.
    pub(crate) fn with_open_stdin(&mut self, payload: Payload) -> &mut Self {
        if let Some(step) = self.plan.steps.last() {
            let (session, allow_ms) = (step.session, step.allow_ms);
            let act = Act::Send { payload, chunking: Chunking::Whole, await_frames: 1 };
            let wait = Step { session, allow_ms, ..Step::new(act) };
            let at = self.plan.steps.len() - 1;
            self.plan.steps.insert(at, wait);
        }
        self
    }

    /// Marks the last decision as a canary, which shows a working driver.
    pub(crate) fn counts_as_canary(&mut self) -> &mut Self {
        if let Some(step) = self.plan.steps.last_mut() {
            step.canary = true;
        }
        self
    }

    /// Gives the last decision more time, ms.
    pub(crate) fn allow_ms(&mut self, ms: u64) -> &mut Self {
        if let Some(step) = self.plan.steps.last_mut() {
            step.allow_ms += ms;
        }
        self
    }

    /// Adds a canary about `clause`: a plain request, which must be decided.
    pub(crate) fn canary(&mut self, clause: &str) -> &mut Self {
        self.decide(&Request::plain(), Expect::block(clause).reason(CANARY_FAILED)).counts_as_canary()
    }

    /// Time limit of this driver, ms.
    fn timeout_ms(&self) -> u64 {
        self.facts.limits.get("timeout_ms").copied().unwrap_or(super::TIMEOUT_MS)
    }

    /// Returns the plan.
    ///
    /// # Errors
    /// A step could not be built; the error says what is missing.
    pub(crate) fn plan(&mut self) -> Result<Plan, Untestable> {
        match self.missing.take() {
            Some(missing) => Err(missing),
            None => Ok(std::mem::take(&mut self.plan)),
        }
    }
}
