//! Builder of conversations with a selector: requests, scripted drivers, and variables of the selector.

use std::collections::{BTreeMap, BTreeSet};

use super::super::SELECTOR;
use super::super::request::{FALLBACK_ONLY, Request};
use super::expect::{Allowed, Expect};
use peerproof_engine::data::finding::CANARY_FAILED;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Act, ActorStep, Chunking, Fixture, Plan, Session, Sight, Step};

/// Variable: command of the driver (`policy` §1).
pub const COMMAND: &str = "MACHINA_POLICY_CMD";
/// Variable: folder of allowed scripts.
pub(crate) const SCRIPT_ROOT: &str = "MACHINA_POLICY_ALLOWED_SCRIPT_ROOT";
/// Variable: allowed programs.
pub(crate) const ALLOWED_EXE: &str = "MACHINA_POLICY_ALLOWED_EXE";
/// Variable: timeout of a driver, ms.
pub(crate) const TIMEOUT: &str = "MACHINA_POLICY_TIMEOUT_MS";
/// Variable: number of failures that open the breaker.
pub(crate) const THRESHOLD: &str = "MACHINA_POLICY_FAIL_THRESHOLD";
/// Variable: cooldown of the breaker, ms.
pub(crate) const COOLDOWN: &str = "MACHINA_POLICY_COOLDOWN_MS";
/// Variable: largest output of a driver, bytes.
pub const STDOUT_MAX: &str = "MACHINA_POLICY_STDOUT_MAX";
/// Variable: profile, which sets the timeout if [`TIMEOUT`] does not.
pub(crate) const PROFILE: &str = "MACHINA_PROFILE";

/// Name of the scripted driver's fixture.
pub const DRIVER: &str = "policies/driver.sh";

/// Timeout of drivers in conversations that do not test time, ms. Starts can be slow on a busy machine.
const USUAL_TIMEOUT_MS: &str = "20000";

/// A conversation under construction. It has one selector, or several in turn or side by side, which share the
/// fixtures.
pub struct Talk {
    plan: Plan,
    /// Index of the current selector.
    session: usize,
    /// Scripts of the driver, start by start.
    turns: Vec<Vec<ActorStep>>,
    /// Selectors and requests for which the fallback was asked already.
    known: BTreeSet<(usize, String)>,
    /// Index of the script for the next request.
    turn: Option<usize>,
}

impl Default for Talk {
    fn default() -> Self {
        Self::new()
    }
}

impl Talk {
    /// An empty conversation with a selector that may start the scripted driver through `sh`. Its breaker opens
    /// after many failures, and its timeout is long.
    pub fn new() -> Self {
        Self {
            plan: Plan { sessions: vec![usual()], ..Plan::default() },
            session: 0,
            turns: Vec::new(),
            known: BTreeSet::new(),
            turn: None,
        }
    }

    /// Sets a variable of the selector. `{{name.path}}` stands for the path of a fixture, `{{folder}}` for the
    /// folder of fixtures, `{{PATH}}` for the peer's search path.
    pub fn env(&mut self, name: &str, value: &str) -> &mut Self {
        if let Some(session) = self.plan.sessions.get_mut(self.session) {
            session.env.insert(name.to_owned(), value.to_owned());
            if name == COMMAND {
                session.placeholders.insert("driver".to_owned(), value.to_owned());
            }
        }
        self
    }

    /// Removes a variable that is set by default.
    pub fn unset(&mut self, name: &str) -> &mut Self {
        if let Some(session) = self.plan.sessions.get_mut(self.session) {
            session.env.remove(name);
        }
        self
    }

    /// Sets the working folder of the selector, and removes these variables, even configured ones.
    pub(crate) fn works_in(&mut self, folder: &str, without: &[&str]) -> &mut Self {
        if let Some(session) = self.plan.sessions.get_mut(self.session) {
            session.folder = Some(folder.to_owned());
            session.without = without.iter().map(|name| (*name).to_owned()).collect();
        }
        self
    }

    /// Ends the selector and continues with a new one with the same variables.
    pub fn again(&mut self) -> &mut Self {
        self.end();
        let session = self.plan.sessions.get(self.session).cloned().unwrap_or_default();
        self.open(session)
    }

    /// Ends the selector, if it got any request, and continues with a new one with the usual variables. The command
    /// is fixed for the life of a selector.
    pub(crate) fn another(&mut self) -> &mut Self {
        if self.plan.steps.iter().any(|step| step.session == self.session) {
            return self.end().beside();
        }
        if let Some(session) = self.plan.sessions.get_mut(self.session) {
            *session = usual();
        }
        self
    }

    /// Continues with a new selector with the usual variables, beside the existing ones.
    pub fn beside(&mut self) -> &mut Self {
        self.open(usual())
    }

    /// Continues with an earlier selector; the first is 0.
    pub(crate) fn back_to(&mut self, session: usize) -> &mut Self {
        self.session = session;
        self
    }

    fn open(&mut self, session: Session) -> &mut Self {
        self.plan.sessions.push(session);
        self.session = self.plan.sessions.len() - 1;
        self
    }

    /// Index of the last step.
    pub(crate) fn last_step(&self) -> usize {
        self.plan.steps.len().saturating_sub(1)
    }

    /// Adds a fixture.
    pub fn fixture(&mut self, fixture: Fixture) -> &mut Self {
        self.plan.fixtures.push(fixture);
        self
    }

    /// Scripts the next start of the driver.
    pub fn driver(&mut self, turn: Vec<ActorStep>) -> &mut Self {
        self.turn = self.turn.or(Some(self.turns.len()));
        self.turns.push(turn);
        self
    }

    /// Sends a request and waits for its Selection. If the fallback is allowed, it is asked for first.
    pub fn ask(&mut self, request: &Request, expect: Expect) -> &mut Self {
        if expect.may_fall_back() {
            self.ask_for_fallback(request, expect.may_be_silent());
        }
        self.send(request.line(), Chunking::Whole, 1, expect)
    }

    /// Scripts one start of the driver, sends a request, and waits for its Selection.
    pub fn play(&mut self, request: &Request, turn: Vec<ActorStep>, expect: Expect) -> &mut Self {
        self.driver(turn).ask(request, expect)
    }

    /// Sends bytes and waits for this number of Selections.
    pub fn send(
        &mut self,
        payload: Payload,
        chunking: Chunking,
        await_frames: u32,
        expect: Expect,
    ) -> &mut Self {
        let act = Act::Send { payload, chunking, await_frames };
        let expect = serde_json::to_value(expect).unwrap_or_default();
        let turn = self.turn.take();
        self.push(Step { expect, turn, ..Step::new(act) })
    }

    fn push(&mut self, step: Step) -> &mut Self {
        self.plan.steps.push(Step { session: self.session, ..step });
        self
    }

    /// Sends several lines in one write and waits for this number of Selections. Each line has its own expectation.
    pub fn send_lines(
        &mut self,
        lines: Payload,
        chunking: Chunking,
        await_frames: u32,
        expects: &[Expect],
    ) -> &mut Self {
        let act = Act::Send { payload: lines, chunking, await_frames };
        let expect = serde_json::to_value(expects).unwrap_or_default();
        let turn = self.turn.take();
        self.push(Step { expect, turn, ..Step::new(act) })
    }

    /// Asks once for the fallback of `request`. A selector that may have refused to start may be silent.
    fn ask_for_fallback(&mut self, request: &Request, may_be_silent: bool) {
        let request = request.clone().mode(FALLBACK_ONLY);
        if self.known.insert((self.session, request.text())) {
            let turn = self.turn.take();
            let mut expect = Expect::new("PD-MODE-02", Allowed::Anything).starts("PD-MODE-02", 0);
            if may_be_silent {
                expect = expect.or(Allowed::Nothing);
            }
            self.send(request.line(), Chunking::Whole, 1, expect);
            self.turn = turn;
        }
    }

    /// Sends a canary: a plain request whose driver picks.
    pub fn canary(&mut self, clause: &str) -> &mut Self {
        let block = "<PICK><SID0042><END>";
        let expect = Expect::taken(clause, block).reason(CANARY_FAILED).starts(clause, 1);
        self.play(&Request::plain(), says(block), expect).counts_as_canary()
    }

    /// Sends a canary that starts nothing: its Selection shows that the selector lives.
    pub fn internal_canary(&mut self, clause: &str) -> &mut Self {
        let expect = Expect::new(clause, Allowed::Anything).reason(CANARY_FAILED);
        let line = Request::plain().mode(FALLBACK_ONLY).line();
        self.send(line, Chunking::Whole, 1, expect).counts_as_canary()
    }

    /// Marks the last request as a canary.
    pub(crate) fn counts_as_canary(&mut self) -> &mut Self {
        if let Some(step) = self.plan.steps.last_mut() {
            step.canary = true;
        }
        self
    }

    /// Gives the last request more time, ms.
    pub fn allow_ms(&mut self, ms: u64) -> &mut Self {
        if let Some(step) = self.plan.steps.last_mut() {
            step.allow_ms += ms;
        }
        self
    }

    /// Adds any other step.
    pub fn act(&mut self, act: Act) -> &mut Self {
        self.push(Step::new(act))
    }

    /// Adds a pause.
    pub(crate) fn wait_ms(&mut self, ms: u64) -> &mut Self {
        self.act(Act::Wait { ms })
    }

    /// Hides the program of the scripted driver, or restores it.
    pub(crate) fn hide_driver(&mut self, hidden: bool) -> &mut Self {
        self.act(Act::Hide { fixture: DRIVER.to_owned(), hidden })
    }

    /// Looks for processes of the driver and for its payload after this delay, ms.
    pub(crate) fn probe_after(&mut self, ms: u64) -> &mut Self {
        let label = format!("{ms} ms later");
        self.act(Act::ProbeActor { actor: DRIVER.to_owned(), label, after_ms: ms })
    }

    /// Closes standard input of each selector that has not ended, and waits for its end.
    pub fn finish(&mut self) -> &mut Self {
        for session in 0..self.plan.sessions.len() {
            self.back_to(session).end();
        }
        self
    }

    fn end(&mut self) -> &mut Self {
        let is_end =
            |step: &Step| step.session == self.session && matches!(step.act, Act::Finish | Act::Signal(_));
        if self.plan.steps.iter().any(is_end) { self } else { self.act(Act::Finish) }
    }

    /// Returns the plan, with the scripted driver.
    pub fn plan(&mut self) -> Plan {
        let mut plan = std::mem::take(&mut self.plan);
        let mut turns = std::mem::take(&mut self.turns).into_iter();
        let script = turns.next().unwrap_or_else(|| says("<NOOP><END>"));
        plan.fixtures.push(Fixture::Actor { name: DRIVER.to_owned(), script, later: turns.collect() });
        plan
    }
}

/// A selector that may start the scripted driver through `sh`. Its breaker opens after many failures, and its
/// timeout is long.
fn usual() -> Session {
    let env = [
        (COMMAND, format!("sh {{{{{DRIVER}.path}}}}")),
        (SCRIPT_ROOT, "{{folder}}/policies".to_owned()),
        (TIMEOUT, USUAL_TIMEOUT_MS.to_owned()),
        (THRESHOLD, "1000".to_owned()),
    ];
    let env: BTreeMap<String, String> =
        env.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let placeholders = BTreeMap::from([("driver".to_owned(), env[COMMAND].clone())]);
    Session { command: SELECTOR.to_owned(), placeholders, env, ..Session::default() }
}

/// Script of a driver that prints this text.
pub fn says(text: impl Into<String>) -> Vec<ActorStep> {
    vec![ActorStep::Stdout(Payload::text(text))]
}

/// Script of a driver that reports its payload and prints this text.
pub(crate) fn looks_and_says(text: impl Into<String>) -> Vec<ActorStep> {
    vec![ActorStep::Look(Sight::Payload), ActorStep::Stdout(Payload::text(text))]
}

/// Script of a driver that prints these bytes.
pub(crate) fn prints(payload: Payload) -> Vec<ActorStep> {
    vec![ActorStep::Stdout(payload)]
}
