//! Whether the tools that a toolhost maps roles to play them: one plain call of each.
//!
//! Where nothing is mapped nobody asks: the contract names the tools, and their checks tell what is wrong with them.

use peerproof_engine::facts::{Facts, RoleTrial};
use peerproof_engine::json::Json;
use peerproof_engine::payload::shorten;
use peerproof_engine::plan::Plan;
use peerproof_engine::transcript::Transcript;
use serde_json::{Value, json};

use super::genesis::kit::{GENESIS, ROLES, usual_aid};
use super::{ENQUEUE, SERVE, command_of, enqueue, genesis};

/// A call of each tool that is there, unless all are the usual ones.
pub fn plans(facts: &Facts) -> Vec<Plan> {
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

/// Says of the roles of each command that is configured which tool plays them, where the configuration does not.
pub fn fill_roles(facts: &mut Facts) {
    let enqueues = facts.commands.contains(ENQUEUE).then_some(enqueue::ROLE);
    let makes = facts.commands.contains(SERVE);
    for role in enqueues.into_iter().chain(ROLES.into_iter().filter(|_| makes)) {
        facts.roles.entry(role.to_owned()).or_insert_with(|| usual(role));
    }
}

/// Enters what came of the calls. A tool that the contract names misplays nothing: it has its checks.
pub fn enter(facts: &mut Facts, probes: &[Transcript]) {
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

/// What a refusal shows: a toolhost that knows no such tool refuses it itself, while one that fails is the peer's affair.
pub fn refused(reply: &str) -> RoleTrial {
    let value: Json = reply.parse().unwrap_or_default();
    let text = |name: &str| value.get(name).and_then(Json::as_str).unwrap_or_default();
    let error = shorten(text("error"), 80);
    match text("status") {
        "TOOL_ERROR" => RoleTrial::Untold(format!("it fails with {error:?}")),
        _ => RoleTrial::Misplays(format!("is refused: {error:?}")),
    }
}
