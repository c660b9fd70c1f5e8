//! Smaller conversations with a client: fewer calls, a server that says less, simpler params and lines.
//!
//! What may come of a call is not worked out anew: it goes with the call, and follows a value that gets simpler. Who
//! shrinks has to ask the correct client whether it still holds.

use std::collections::BTreeSet;

use serde::Deserialize as _;
use serde_json::Value;

use super::SCENARIO;
use super::expect::Expect;
use super::scenario::Scenario;
use super::script::{Deed, On, Script, What};
use peerproof_engine::json::{self, DecodeLimits, Json};
use peerproof_engine::payload::{Payload, Segment};
use peerproof_engine::plan::{Act, Chunking, Fixture, Plan};
use peerproof_engine::shrink::simpler;

/// Longer lines lose runs, not members.
const LINE_BYTES_MAX: usize = 16 << 10;
/// Stands around the number of a variable in a line that is taken apart.
const MARK: char = '\u{10FFFC}';

/// A scenario, what the server does about it, and what may come of it.
#[derive(Clone)]
struct Parts {
    scenario: Scenario,
    script: Script,
    expect: Expect,
}

/// Smaller variants of the conversation that step `at` plays, most promising first.
pub fn variants(plan: &Plan, at: usize) -> Vec<Plan> {
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
        Some(Self { scenario: Scenario::of(plan)?, script, expect: Expect::deserialize(&step.expect).ok()? })
    }

    /// The plan with these parts.
    fn plan(self, before: &Plan, at: usize) -> Option<Plan> {
        let mut plan = before.clone();
        let step = plan.steps.get_mut(at)?;
        let Act::Play { script, .. } = &mut step.act else { return None };
        *script = serde_json::to_value(&self.script).ok()?;
        step.expect = serde_json::to_value(&self.expect).unwrap_or(Value::Null);
        let content = plan.fixtures.iter_mut().find_map(|fixture| match fixture {
            Fixture::File { name, content, .. } if name == SCENARIO => Some(content),
            _ => None,
        })?;
        *content = Payload::from_bytes(self.scenario.to_text().as_bytes());
        Some(plan)
    }

    /// Large groups of calls go first, then single ones.
    fn without_calls(&self, all: &mut Vec<Self>) {
        let names: Vec<&str> = self.scenario.calls.iter().map(|call| call.name.as_str()).collect();
        let mut size = names.len().div_ceil(2);
        while size > 0 && names.len() > 1 {
            for gone in names.chunks(size) {
                if gone.len() < names.len() {
                    all.push(self.without(&gone.iter().copied().collect()));
                }
            }
            size /= 2;
        }
    }

    /// Without these calls and everything that is about them.
    fn without(&self, gone: &BTreeSet<&str>) -> Self {
        let mut parts = self.clone();
        let is_gone = |name: &str| gone.contains(name);
        parts.scenario.calls.retain(|call| !is_gone(&call.name));
        for call in &mut parts.scenario.calls {
            call.after.retain(|name| !is_gone(name));
        }
        parts.expect.calls.retain(|name, _| !is_gone(name));
        for rule in &mut parts.script.rules {
            if let On::All(names) = &mut rule.on {
                names.retain(|name| !is_gone(name));
            }
            // An id of a call that is not made has no value.
            rule.deeds.retain(|deed| match &deed.what {
                What::Write { payload, .. } => payload
                    .variables()
                    .filter_map(|name| name.strip_prefix("id:"))
                    .all(|name| !is_gone(name.split(':').next().unwrap_or(name))),
                What::HangUp | What::Die => true,
            });
        }
        parts.script.rules.retain(|rule| match &rule.on {
            On::Call { name, .. } => !is_gone(name),
            On::All(names) => !names.is_empty(),
            On::Start => true,
        });
        parts
    }

    /// Whole rules go, then what they do, piece by piece.
    fn without_deeds(&self, all: &mut Vec<Self>) {
        for at in 0..self.script.rules.len() {
            all.push(self.changed(|parts| drop(parts.script.rules.remove(at))));
        }
        for (at, rule) in self.script.rules.iter().enumerate() {
            let mut size = rule.deeds.len().div_ceil(2);
            while size > 0 {
                for from in (0..rule.deeds.len()).step_by(size) {
                    let end = (from + size).min(rule.deeds.len());
                    all.push(self.changed(|parts| drop(parts.script.rules[at].deeds.drain(from..end))));
                }
                size /= 2;
            }
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
                let with = |deed: Deed| self.changed(|parts| parts.script.rules[at].deeds[number] = deed);
                if deed.after_ms > 0 {
                    all.push(with(Deed { after_ms: 0, ..deed.clone() }));
                }
                let What::Write { payload, chunking } = &deed.what else { continue };
                let write = |payload: Payload, chunking: Chunking| Deed {
                    what: What::Write { payload, chunking },
                    ..deed.clone()
                };
                if *chunking != Chunking::Whole {
                    all.push(with(write(payload.clone(), Chunking::Whole)));
                }
                for shorter in shorter_runs(payload) {
                    all.push(with(write(shorter, *chunking)));
                }
                for (payload, old, new) in simpler_lines(payload) {
                    let mut parts = with(write(payload, *chunking));
                    if let On::Call { name, .. } = &rule.on {
                        parts.follow(name, &old, &new);
                    }
                    all.push(parts);
                }
            }
        }
    }

    /// What was expected of a call follows its answer.
    fn follow(&mut self, name: &str, old: &Json, new: &Json) {
        let Some(expect) = self.expect.calls.get_mut(name) else { return };
        for allowed in &mut expect.allowed {
            let value = allowed.value.as_ref().and_then(|text| text.parse::<Json>().ok());
            for member in ["result", "error"] {
                if let (Some(_), Some(new)) =
                    (value.as_ref().filter(|value| old.get(member) == Some(value)), new.get(member))
                {
                    allowed.value = Some(new.to_text());
                }
            }
        }
    }

    fn changed(&self, change: impl FnOnce(&mut Self)) -> Self {
        let mut parts = self.clone();
        change(&mut parts);
        parts
    }
}

/// With each long run cut off, to a half and to nine tenths.
fn shorter_runs(payload: &Payload) -> Vec<Payload> {
    let mut out = Vec::new();
    for (at, segment) in payload.0.iter().enumerate() {
        let Segment::Repeat { unit, times } = segment else { continue };
        let fewer = [0, times / 2, times - times / 10];
        for times in fewer.into_iter().filter(|fewer| fewer < times) {
            let mut shorter = payload.clone();
            shorter.0[at] = Segment::Repeat { unit: unit.clone(), times };
            out.push(shorter);
        }
    }
    out
}

/// Simpler lines that are one JSON value, each with the value as it was and as it is.
fn simpler_lines(payload: &Payload) -> Vec<(Payload, Json, Json)> {
    let mut text = String::new();
    for (at, segment) in payload.0.iter().enumerate() {
        match segment {
            Segment::Text(part) => text.push_str(part),
            Segment::Var(_) => text.push_str(&format!("\"{MARK}{at}{MARK}\"")),
            Segment::Repeat { .. } | Segment::Hex(_) => return Vec::new(),
        }
    }
    if text.len() > LINE_BYTES_MAX {
        return Vec::new();
    }
    let body = text.trim_end_matches(['\n', '\r']);
    let Ok(decoded) = json::decode(body.as_bytes(), &DecodeLimits::default()) else { return Vec::new() };
    let ending = &text[body.len()..];
    let back = |value: Json| {
        let line = value.to_text() + ending;
        let mut out = Payload::default();
        for (n, part) in line.split(MARK).enumerate() {
            match (n % 2, part.parse().ok().and_then(|at: usize| payload.0.get(at))) {
                (0, _) => {
                    // The quotes around a variable are not its own.
                    let part = if n > 0 { part.strip_prefix('"').unwrap_or(part) } else { part };
                    let is_last = line.split(MARK).count() == n + 1;
                    let part = if is_last { part } else { part.strip_suffix('"').unwrap_or(part) };
                    out = out.then(Payload::text(part));
                }
                (_, Some(variable)) => out.0.push(variable.clone()),
                (_, None) => return None,
            }
        }
        Some((out, decoded.value.clone(), value))
    };
    simpler(&decoded.value).into_iter().filter_map(back).collect()
}

#[cfg(test)]
mod tests {
    use super::super::expect::Allowed;
    use super::super::scenario::Call;
    use super::super::scene::Scene;
    use super::super::script::{error, result};
    use super::*;

    fn plan() -> Plan {
        let mut scene = Scene::about("RPC-CLIENT-09");
        scene.call(Call::new("a"), [Allowed::result("[1,{\"b\":2}]").attempts(1)]);
        scene.on("a", [Deed::line("noise"), Deed::line(&result("[1,{\"b\":2}]")).in_ms(5)]);
        scene.call(Call::new("b").after("a"), [Allowed::error(r#"{"code":1,"message":"m"}"#)]);
        scene.on("b", [Deed::line(&error(r#"{"code":1,"message":"m"}"#)), Deed::line("{\"id\":$id:a}")]);
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
        assert_eq!(alone.expect.calls.keys().collect::<Vec<_>>(), ["b"]);
        assert_eq!((alone.script.rules.len(), alone.script.rules[0].deeds.len()), (1, 1));
        assert!(all.len() > 20, "{}", all.len());
    }

    #[test]
    fn what_is_expected_follows_a_simpler_answer_and_ids_stay_ids() {
        let plan = plan();
        let simpler: Vec<Parts> = variants(&plan, 0).iter().filter_map(|plan| Parts::of(plan, 0)).collect();
        let found = simpler.iter().any(|parts| {
            let Some(rule) = parts.script.rules.first() else { return false };
            let says = rule.deeds.iter().any(|deed| match &deed.what {
                What::Write { payload, .. } => {
                    payload.summary(200).contains("\"result\":[1]") && payload.variables().eq(["id"])
                }
                _ => false,
            });
            says && parts.expect.calls["a"].allowed[0].value.as_deref() == Some("[1]")
        });
        assert!(found);
    }
}
