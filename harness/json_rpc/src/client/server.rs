//! The server that the harness plays.

use std::collections::BTreeSet;

use super::scenario::Scenario;
use super::script::{ReactionAction, Script, Trigger};
use peerproof_engine::contract::counterpart::{Agenda, Counterpart, CounterpartAction};
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::near_miss::{NEAR_IDS_MAX, near_ids, of_the_other_type};
use peerproof_engine::data::payload::{Payload, Vars};
use peerproof_engine::data::plan::Chunking;

/// A server that follows a script.
pub(crate) struct Server {
    script: Script,
    scenario: Scenario,
    vars: Vars,
    /// Number of attempts of each call so far.
    attempts: Vec<u32>,
    /// Indexes of one-time rules that have been applied.
    applied: BTreeSet<usize>,
    agenda: Agenda,
    begun: bool,
}

/// A request or notification of a known call.
struct KnownRequest {
    call: usize,
    id: Option<Json>,
}

impl Server {
    /// A server for the client of `scenario`.
    pub(crate) fn new(script: Script, scenario: Scenario) -> Self {
        Self {
            attempts: vec![0; scenario.calls.len()],
            script,
            scenario,
            vars: Vars::new(),
            applied: BTreeSet::new(),
            agenda: Agenda::default(),
            begun: false,
        }
    }

    /// Applies rule `at`; `id` is that of the triggering request.
    fn apply(&mut self, at: usize, id: Option<&Json>, now_us: u64) {
        let near = id.map(near_ids).unwrap_or_default();
        let near = (0..NEAR_IDS_MAX).map(|n| (format!("id-near-{n}"), near.get(n).cloned()));
        let others = [("id", id.cloned()), ("id-of-the-other-type", id.and_then(of_the_other_type))];
        for (name, id) in others.into_iter().map(|(name, id)| (name.to_owned(), id)).chain(near) {
            match id {
                Some(id) => self.vars.insert(name, id.to_text()),
                None => self.vars.remove(&name),
            };
        }
        for deed in self.script.rules[at].deeds.clone() {
            let due_us = now_us.saturating_add(deed.after_ms.saturating_mul(1_000));
            match deed.what {
                ReactionAction::HangUp => self.agenda.add(due_us, CounterpartAction::HangUp),
                ReactionAction::Die => self.agenda.add(due_us, CounterpartAction::Die),
                ReactionAction::Write { payload, chunking } => {
                    if let Ok(payload) = payload.filled(&self.vars) {
                        self.agenda.add(due_us, CounterpartAction::Write { payload, chunking });
                    }
                }
            }
        }
    }

    /// Index of the rule for this attempt of a call.
    fn rule_for(&self, call: &str, attempt: u32) -> Option<usize> {
        let fits = |on: &Trigger, wanted: Option<u32>| matches!(on, Trigger::Call { name, attempt } if name == call && *attempt == wanted);
        let find = |wanted| self.script.rules.iter().position(|rule| fits(&rule.on, wanted));
        find(Some(attempt)).or_else(|| find(None))
    }

    fn note(&mut self, message: &Json) -> Option<KnownRequest> {
        let method = message.get("method")?.as_str()?;
        let call = self.scenario.calls.iter().position(|call| call.method == method)?;
        let id = message.get("id").cloned();
        self.attempts[call] += 1;
        if let Some(id) = &id {
            let name = &self.scenario.calls[call].name;
            self.vars.insert(format!("id:{name}"), id.to_text());
            self.vars.insert(format!("id:{name}:{}", self.attempts[call]), id.to_text());
        }
        Some(KnownRequest { call, id })
    }

    /// The usual answer to a request without a rule. `None` for a notification.
    fn usual(&self, seen: &KnownRequest) -> Option<String> {
        let id = seen.id.as_ref()?.to_text();
        let name = Json::from(self.scenario.calls[seen.call].name.as_str()).to_text();
        Some(format!("{{\"jsonrpc\":\"2.0\",\"result\":{{\"answer\":{name}}},\"id\":{id}}}"))
    }
}

impl Counterpart for Server {
    fn take(&mut self, frame: &[u8], now_us: u64) {
        let Ok(decoded) = json::decode(frame, &DecodeLimits::default()) else { return };
        let is_batch = decoded.value.as_array().is_some();
        let messages = match decoded.value.as_array() {
            Some(messages) => messages.to_vec(),
            None => vec![decoded.value],
        };
        let seen: Vec<KnownRequest> = messages.iter().filter_map(|message| self.note(message)).collect();
        let mut usual = Vec::new();
        for seen in &seen {
            let name = self.scenario.calls[seen.call].name.clone();
            match self.rule_for(&name, self.attempts[seen.call]) {
                Some(at) => self.apply(at, seen.id.as_ref(), now_us),
                None if self.attempts[seen.call] == 1 && !self.script.answered_with(&name).is_empty() => {}
                None => usual.extend(self.usual(seen)),
            }
        }
        for at in 0..self.script.rules.len() {
            let Trigger::All(names) = &self.script.rules[at].on else { continue };
            let came = |name: &String| {
                let call = self.scenario.calls.iter().position(|call| call.name == *name);
                call.is_some_and(|call| self.attempts[call] > 0)
            };
            if names.iter().all(came) && self.applied.insert(at) {
                self.apply(at, None, now_us);
            }
        }
        if !usual.is_empty() {
            let text =
                if is_batch { format!("[{}]\n", usual.join(",")) } else { format!("{}\n", usual.join("\n")) };
            self.agenda.add(
                now_us,
                CounterpartAction::Write { payload: Payload::text(text), chunking: Chunking::Whole },
            );
        }
    }

    fn next(&mut self, now_us: u64) -> Option<CounterpartAction> {
        if !std::mem::replace(&mut self.begun, true) {
            for at in 0..self.script.rules.len() {
                if self.script.rules[at].on == Trigger::Start {
                    self.apply(at, None, now_us);
                }
            }
        }
        self.agenda.next(now_us)
    }

    fn due_us(&self) -> Option<u64> {
        self.agenda.due_us()
    }
}
