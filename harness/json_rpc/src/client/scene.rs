//! Builds conversations with a client.

use std::collections::BTreeMap;

use serde_json::Value;

use super::expect::{Allowed, CallExpect, Expect};
use super::scenario::{Auth, Call, Scenario};
use super::script::{Deed, On, Rule, Script};
use super::{COMMAND, RESULTS, SCENARIO};
use peerproof_engine::json::Json;
use peerproof_engine::payload::Payload;
use peerproof_engine::plan::{Act, Fixture, Plan, Session, Step};

/// Name of the call that shows that the client still works.
pub const CANARY: &str = "canary";

/// A conversation in the making: a scenario, what the server does, and how each call may end.
pub struct Scene {
    scenario: Scenario,
    script: Script,
    expect: Expect,
    extra_ms: u64,
    canary: bool,
}

impl Scene {
    /// A conversation about `clause`.
    pub fn about(clause: &str) -> Self {
        let expect = Expect { clause: clause.into(), calls: BTreeMap::new(), delays: false, choice: None };
        Self { scenario: Scenario::default(), script: Script::default(), expect, extra_ms: 0, canary: true }
    }

    /// Requests are signed.
    pub fn auth(&mut self, auth: Auth) -> &mut Self {
        self.scenario.auth = Some(auth);
        self
    }

    /// Attempts in all and middle of the first delay, for calls that do not say themselves.
    pub fn retry(&mut self, max_attempts: u64, base_ms: u64) -> &mut Self {
        self.scenario.retry = Some((max_attempts, base_ms));
        self
    }

    /// Adds a call that the server answers as usual.
    pub fn usual(&mut self, call: Call) -> &mut Self {
        let value = if call.notify {
            Allowed::of("sent")
        } else {
            Allowed::result(&usual_result(&call.name)).attempts(1)
        };
        self.call(call, [value])
    }

    /// Adds a call that may end in one of these ways.
    pub fn call(&mut self, call: Call, allowed: impl IntoIterator<Item = Allowed>) -> &mut Self {
        self.expect.calls.insert(call.name.clone(), CallExpect::new(allowed));
        self.scenario.calls.push(call);
        self
    }

    /// The end of the last call is judged under another clause.
    pub fn under(&mut self, clause: &str) -> &mut Self {
        if let Some(call) = self.scenario.calls.last()
            && let Some(expect) = self.expect.calls.get_mut(&call.name)
        {
            expect.clause = Some(clause.into());
        }
        self
    }

    /// What the server does when a request of this call comes.
    pub fn on(&mut self, name: &str, deeds: impl IntoIterator<Item = Deed>) -> &mut Self {
        self.rule(On::Call { name: name.to_owned(), attempt: None }, deeds)
    }

    /// What the server does when this attempt comes.
    pub fn on_attempt(
        &mut self,
        name: &str,
        attempt: u32,
        deeds: impl IntoIterator<Item = Deed>,
    ) -> &mut Self {
        self.rule(On::Call { name: name.to_owned(), attempt: Some(attempt) }, deeds)
    }

    /// What the server does when something happens.
    pub fn rule(&mut self, on: On, deeds: impl IntoIterator<Item = Deed>) -> &mut Self {
        self.script.rules.push(Rule { on, deeds: deeds.into_iter().collect() });
        self
    }

    /// The conversation takes so much longer, ms.
    pub fn takes_ms(&mut self, ms: u64) -> &mut Self {
        self.extra_ms += ms;
        self
    }

    /// The delays of all retries are measured together.
    pub fn measures_delays(&mut self) -> &mut Self {
        self.expect.delays = true;
        self
    }

    /// The conversation shows this choice.
    pub fn choice(&mut self, key: &str) -> &mut Self {
        self.expect.choice = Some(key.to_owned());
        self
    }

    /// Nothing is asked at the end.
    pub fn without_canary(&mut self) -> &mut Self {
        self.canary = false;
        self
    }

    /// The plan. A last call, after all others, shows that the client still works.
    pub fn plan(&mut self) -> Plan {
        if std::mem::take(&mut self.canary) {
            let mut canary = Call::new(CANARY);
            canary.after = self.scenario.calls.iter().map(|call| call.name.clone()).collect();
            self.usual(canary);
            if let Some(expect) = self.expect.calls.get_mut(CANARY) {
                expect.canary = true;
            }
        }
        // One after the other is a way to make calls, too.
        let waits = |name: &str| {
            self.expect.calls.get(name).is_some_and(|expect| {
                expect.allowed.iter().any(|allowed| matches!(allowed.outcome.as_str(), "timeout"))
            })
        };
        let waiting: u64 =
            self.scenario.calls.iter().filter(|call| waits(&call.name)).map(|call| call.timeout_ms).sum();
        let file = |name: &str, content: Payload, kept: bool| Fixture::File {
            name: name.to_owned(),
            content,
            mode: None,
            kept,
        };
        let path = |name: &str| (name.to_owned(), format!("{{{{{name}.path}}}}"));
        let act = Act::Play {
            script: serde_json::to_value(&self.script).unwrap_or(Value::Null),
            life_ms: waiting + self.extra_ms + 2_000,
        };
        Plan {
            fixtures: vec![
                file(SCENARIO, Payload::from_bytes(self.scenario.to_text().as_bytes()), false),
                file(RESULTS, Payload::default(), true),
            ],
            sessions: vec![Session {
                command: COMMAND.to_owned(),
                placeholders: BTreeMap::from([path(SCENARIO), path(RESULTS)]),
                ..Session::default()
            }],
            steps: vec![Step {
                expect: serde_json::to_value(&self.expect).unwrap_or(Value::Null),
                ..Step::new(act)
            }],
            ..Plan::default()
        }
    }
}

/// The result of the usual answer.
pub fn usual_result(name: &str) -> String {
    Json::object([("answer", Json::from(name))]).to_text()
}
