//! Trials of mapped tools: one plain call of each shows whether it plays its role.
//!
//! Without a mapping there is no trial, because the contract fixes the tools and checks report their faults.

use peerproof_engine::data::facts::{Facts, RoleTrial};
use peerproof_engine::data::plan::Plan;
use peerproof_engine::data::transcript::Transcript;
use serde_json::{Value, json};

use super::genesis::kit::{GENESIS, ROLES, usual_aid};
use super::{ENQUEUE, SERVE, command_of, enqueue, genesis};

/// A trial call of each configured tool. Empty if all tools are the default ones.
pub(crate) fn plans(facts: &Facts) -> Vec<Plan> {
    let mut full = facts.clone();
    genesis::complete(&mut full);
    fill_roles(&mut full);
    if full.roles.iter().all(|(role, value)| is_usual(role, value)) {
        return Vec::new();
    }
    let mut plans = Vec::new();
    plans.extend(full.commands.contains(ENQUEUE).then(|| enqueue::trial(&full)));
    let makes = full.commands.contains(SERVE) && full.claims(GENESIS);
    plans.extend(makes.then(|| genesis::trial(&full)));
    plans
}

fn usual(role: &str) -> Value {
    let aid = if role == enqueue::ROLE { enqueue::AID.to_owned() } else { usual_aid(role) };
    json!({ "aid": aid })
}

fn is_usual(role: &str, value: &Value) -> bool {
    *value == usual(role)
}

/// Maps the roles of configured commands to the default tools, unless the configuration maps them.
pub(crate) fn fill_roles(facts: &mut Facts) {
    let enqueues = facts.commands.contains(ENQUEUE).then_some(enqueue::ROLE);
    let makes = facts.commands.contains(SERVE);
    for role in enqueues.into_iter().chain(ROLES.into_iter().filter(|_| makes)) {
        facts.roles.entry(role.to_owned()).or_insert_with(|| usual(role));
    }
}

/// Records the outcomes of the trial calls. A default tool is never recorded as misplaying, because checks report
/// its faults.
pub(crate) fn enter(facts: &mut Facts, probes: &[Transcript]) {
    let came = probes.iter().flat_map(|trial| match command_of(&trial.plan) {
        ENQUEUE => vec![(enqueue::ROLE, enqueue::tried(trial))],
        _ => genesis::tried(trial),
    });
    for (role, came) in came.collect::<Vec<_>>() {
        let tool = facts.roles.get(role).cloned().unwrap_or_default();
        let aid = tool.get("aid").and_then(Value::as_str).unwrap_or_default();
        let came = match came {
            RoleTrial::Misplays(why) if is_usual(role, &tool) => RoleTrial::Untold(why),
            RoleTrial::Misplays(why) => RoleTrial::Misplays(format!("{aid} as role `{role}` {why}")),
            other => other,
        };
        facts.enter(role, came);
    }
}
