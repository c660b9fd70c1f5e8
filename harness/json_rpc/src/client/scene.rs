//! Builder of conversations with a client.

use std::collections::BTreeMap;

use serde_json::Value;

use super::client_conversation::{ClientConversation, LATE_MS};
use super::scenario::{Call, Scenario};
use super::script::{Reaction, Rule, Script, Trigger};
use super::{CANARY, COMMAND, RESULTS, SCENARIO, outcomes};
use peerproof_engine::contract::face::Aim;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Act, Fixture, Plan, Session, Step};

/// A conversation under construction: the client's scenario and the server's script.
#[derive(Clone)]
pub(crate) struct Scene {
    /// Scenario of the client.
    pub scenario: Scenario,
    script: Script,
    /// Clause that the conversation tests; without it each call is judged under its own.
    pub aim: Option<Aim>,
    /// Extra duration of the conversation, ms.
    pub extra_ms: u64,
    canary: bool,
}

impl Scene {
    /// A conversation about `clause`.
    pub(crate) fn about(clause: &str) -> Self {
        Self {
            scenario: Scenario::default(),
            script: Script::default(),
            aim: Some(Aim { clause: clause.into(), reason: None }),
            extra_ms: 0,
            canary: true,
        }
    }

    /// Adds a call. The server answers it as usual unless a rule applies.
    pub(crate) fn call(&mut self, call: Call) -> &mut Self {
        self.scenario.calls.push(call);
        self
    }

    /// Adds a rule: the server's reaction to each request of this call.
    pub(crate) fn on(&mut self, name: &str, deeds: impl IntoIterator<Item = Reaction>) -> &mut Self {
        self.rule(Trigger::Call { name: name.to_owned(), attempt: None }, deeds)
    }

    /// Adds a rule: the server's reaction to one attempt of this call.
    pub(crate) fn on_attempt(
        &mut self,
        name: &str,
        attempt: u32,
        deeds: impl IntoIterator<Item = Reaction>,
    ) -> &mut Self {
        self.rule(Trigger::Call { name: name.to_owned(), attempt: Some(attempt) }, deeds)
    }

    /// Adds a rule for any trigger.
    pub(crate) fn rule(&mut self, on: Trigger, deeds: impl IntoIterator<Item = Reaction>) -> &mut Self {
        self.script.rules.push(Rule { on, deeds: deeds.into_iter().collect() });
        self
    }

    /// Leaves out the last call, the canary.
    pub(crate) fn without_canary(&mut self) -> &mut Self {
        self.canary = false;
        self
    }

    /// Builds the plan. Adds a canary after all other calls.
    pub(crate) fn plan(&mut self) -> Plan {
        if std::mem::take(&mut self.canary) {
            let mut canary = Call::new(CANARY);
            canary.after = self.scenario.calls.iter().map(|call| call.name.clone()).collect();
            self.call(canary);
        }
        let (scenario, script) = (self.scenario.clone(), self.script.clone());
        let known =
            ClientConversation { scenario, script, late_ms: LATE_MS, ..ClientConversation::default() };
        let waits =
            |at: &usize| outcomes::of(&known, *at).allowed_answers().any(|(_, way)| way.outcome == "timeout");
        // Clients may also make calls one after another.
        let calls = &self.scenario.calls;
        let waiting: u64 = (0..calls.len()).filter(waits).map(|at| calls[at].timeout_ms).sum();
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
                expect: serde_json::to_value(&self.aim).unwrap_or(Value::Null),
                ..Step::new(act)
            }],
            ..Plan::default()
        }
    }
}

/// The result of the usual answer.
pub(crate) fn usual_result(name: &str) -> String {
    Json::object([("answer", Json::from(name))]).to_text()
}
