//! Smaller conversations with a client: fewer calls, fewer reactions of the server, simpler params and lines.
//!
//! The allowed ends of each call follow from the remaining parts.

use std::collections::BTreeSet;

use serde::Deserialize as _;

use super::SCENARIO;
use super::scenario::Scenario;
use super::script::{Reaction, ReactionAction, Script, Trigger};
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::pieces::without_pieces;
use peerproof_engine::data::plan::{Act, Chunking, Fixture, Plan};
use peerproof_engine::run::shrink::{payloads, simpler};

/// A scenario and its script.
#[derive(Clone)]
struct Parts {
    scenario: Scenario,
    script: Script,
}

/// Smaller variants of the conversation that step `at` plays, most promising first.
pub(crate) fn variants(plan: &Plan, at: usize) -> Vec<Plan> {
    let Some(parts) = Parts::of(plan, at) else { return Vec::new() };
    let mut all = Vec::new();
    parts.without_calls(&mut all);
    parts.without_deeds(&mut all);
    parts.with_simpler_calls(&mut all);
    parts.with_simpler_deeds(&mut all);
    all.into_iter().filter_map(|parts| parts.plan(plan, at)).collect()
}

impl Parts {
    fn of(plan: &Plan, at: usize) -> Option<Self> {
        let step = plan.steps.get(at)?;
        let Act::Play { script, .. } = &step.act else { return None };
        let script = Script::deserialize(script).ok()?;
        Some(Self { scenario: Scenario::of(plan)?, script })
    }

    /// The plan with these parts in it.
    fn plan(self, before: &Plan, at: usize) -> Option<Plan> {
        let mut plan = before.clone();
        let step = plan.steps.get_mut(at)?;
        let Act::Play { script, .. } = &mut step.act else { return None };
        *script = serde_json::to_value(&self.script).ok()?;
        let content = plan.fixtures.iter_mut().find_map(|fixture| match fixture {
            Fixture::File { name, content, .. } if name == SCENARIO => Some(content),
            _ => None,
        })?;
        *content = Payload::from_bytes(self.scenario.to_text().as_bytes());
        Some(plan)
    }

    /// Removes large groups of calls, then single ones.
    fn without_calls(&self, all: &mut Vec<Self>) {
        let names: Vec<&str> = self.scenario.calls.iter().map(|call| call.name.as_str()).collect();
        let fewer = without_pieces(&names).into_iter().filter(|kept| !kept.is_empty());
        all.extend(
            fewer.map(|kept| {
                self.without(&names.iter().copied().filter(|name| !kept.contains(name)).collect())
            }),
        );
    }

    /// Removes these calls and all that refers to them.
    fn without(&self, gone: &BTreeSet<&str>) -> Self {
        let mut parts = self.clone();
        let is_gone = |name: &str| gone.contains(name);
        parts.scenario.calls.retain(|call| !is_gone(&call.name));
        for call in &mut parts.scenario.calls {
            call.after.retain(|name| !is_gone(name));
        }
        for rule in &mut parts.script.rules {
            if let Trigger::All(names) = &mut rule.on {
                names.retain(|name| !is_gone(name));
            }
            // The id of a call that is not made has no value.
            rule.deeds.retain(|deed| match &deed.what {
                ReactionAction::Write { payload, .. } => payload
                    .variables()
                    .filter_map(|name| name.strip_prefix("id:"))
                    .all(|name| !is_gone(name.split(':').next().unwrap_or(name))),
                ReactionAction::HangUp | ReactionAction::Die => true,
            });
        }
        parts.script.rules.retain(|rule| match &rule.on {
            Trigger::Call { name, .. } => !is_gone(name),
            Trigger::All(names) => !names.is_empty(),
            Trigger::Start => true,
        });
        parts
    }

    /// Removes whole rules, then parts of their reactions.
    fn without_deeds(&self, all: &mut Vec<Self>) {
        for at in 0..self.script.rules.len() {
            all.push(self.changed(|parts| drop(parts.script.rules.remove(at))));
        }
        for (at, rule) in self.script.rules.iter().enumerate() {
            let fewer = without_pieces(&rule.deeds).into_iter();
            all.extend(fewer.map(|deeds| self.changed(|parts| parts.script.rules[at].deeds = deeds)));
        }
    }

    fn with_simpler_calls(&self, all: &mut Vec<Self>) {
        if self.scenario.auth.is_some() {
            all.push(self.changed(|parts| parts.scenario.auth = None));
        }
        if self.scenario.retry.is_some() {
            all.push(self.changed(|parts| parts.scenario.retry = None));
        }
        for (at, call) in self.scenario.calls.iter().enumerate() {
            if call.params.is_some() {
                all.push(self.changed(|parts| parts.scenario.calls[at].params = None));
            }
            if call.retry.is_some() {
                all.push(self.changed(|parts| parts.scenario.calls[at].retry = None));
            }
            if call.batch.is_some() {
                all.push(self.changed(|parts| parts.scenario.calls[at].batch = None));
            }
            for before in 0..call.after.len() {
                all.push(self.changed(|parts| drop(parts.scenario.calls[at].after.remove(before))));
            }
            for params in call.params.iter().flat_map(simpler) {
                all.push(self.changed(|parts| parts.scenario.calls[at].params = Some(params)));
            }
        }
    }

    fn with_simpler_deeds(&self, all: &mut Vec<Self>) {
        for (at, rule) in self.script.rules.iter().enumerate() {
            for (number, deed) in rule.deeds.iter().enumerate() {
                let with = |deed: Reaction| self.changed(|parts| parts.script.rules[at].deeds[number] = deed);
                if deed.after_ms > 0 {
                    all.push(with(Reaction { after_ms: 0, ..deed.clone() }));
                }
                let ReactionAction::Write { payload, chunking } = &deed.what else { continue };
                let write = |payload: Payload, chunking: Chunking| Reaction {
                    what: ReactionAction::Write { payload, chunking },
                    ..deed.clone()
                };
                if *chunking != Chunking::Whole {
                    all.push(with(write(payload.clone(), Chunking::Whole)));
                }
                all.extend(payloads(payload).map(|payload| with(write(payload, *chunking))));
            }
        }
    }

    fn changed(&self, change: impl FnOnce(&mut Self)) -> Self {
        let mut parts = self.clone();
        change(&mut parts);
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::super::scenario::Call;
    use super::super::scene::Scene;
    use super::super::script::{error, result};
    use super::*;

    fn plan() -> Plan {
        let mut scene = Scene::about("RPC-CLIENT-09");
        scene.call(Call::new("a"));
        scene.on("a", [Reaction::line("noise"), Reaction::line(&result("[1,{\"b\":2}]")).in_ms(5)]);
        scene.call(Call::new("b").after("a"));
        scene.on(
            "b",
            [Reaction::line(&error(r#"{"code":1,"message":"m"}"#)), Reaction::line("{\"id\":$id:a}")],
        );
        scene.plan()
    }

    #[test]
    fn a_call_goes_with_all_that_is_about_it() {
        let plan = plan();
        let all = variants(&plan, 0);
        let alone = all
            .iter()
            .filter_map(|plan| Parts::of(plan, 0))
            .find(|parts| parts.scenario.calls.iter().all(|call| call.name == "b"))
            .or_else(|| {
                let parts = Parts::of(&plan, 0).unwrap();
                Some(parts.without(&["a", "canary"].into()))
            })
            .unwrap();
        assert!(alone.scenario.calls[0].after.is_empty());
        assert_eq!(alone.scenario.calls.len(), 1);
        assert_eq!((alone.script.rules.len(), alone.script.rules[0].deeds.len()), (1, 1));
        assert!(all.len() > 20, "{}", all.len());
    }

    #[test]
    fn answers_get_simpler_and_ids_stay_ids() {
        let plan = plan();
        let simpler: Vec<Parts> = variants(&plan, 0).iter().filter_map(|plan| Parts::of(plan, 0)).collect();
        let found = simpler.iter().any(|parts| {
            let Some(rule) = parts.script.rules.first() else { return false };
            rule.deeds.iter().any(|deed| match &deed.what {
                ReactionAction::Write { payload, .. } => {
                    payload.summary(200).contains("\"result\":[1]") && payload.variables().eq(["id"])
                }
                _ => false,
            })
        });
        assert!(found);
    }
}
