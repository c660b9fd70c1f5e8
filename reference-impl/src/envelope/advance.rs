//! A deterministic pipeline of six agents. Each call runs the next agent.

use super::agents::{AGENTS, section};
use super::choices::Pending;
use super::members::BOUNDS;
use super::validate::{count, over_bound};
use super::{Config, Members, datetime, get, names, number, object, set, slot};
use crate::json::Value;

/// Runs the next agent of a complete, valid envelope. `now` is the current time in the envelope's notation.
pub(crate) fn advance(members: &mut Members, config: &Config, now: &str) {
    let is = |members: &Members, name: &str, value: &Value| get(members, name) == Some(value);
    if is(members, "terminated", &Value::Bool(true)) {
        return;
    }
    if let Some(reason) = over_bound(members) {
        return terminate(members, reason, now);
    }
    for (pending, response, reason) in [
        ("clarification_pending", "clarification_response", "clarification_required"),
        ("confirmation_pending", "confirmation_response", "confirmation_required"),
    ] {
        if !is(members, pending, &Value::Bool(true)) {
            continue;
        }
        match get(members, response) {
            Some(Value::Null) | None => {
                if config.choices.pending_input == Pending::Terminate {
                    terminate(members, reason, now);
                }
                return;
            }
            Some(Value::Bool(false)) => {
                set(members, pending, Value::Bool(false));
                return terminate(members, "denied_by_policy", now);
            }
            Some(_) => set(members, pending, Value::Bool(false)),
        }
    }
    let Some(agent) = next_agent(members) else {
        set(members, "current_stage", Value::from("end"));
        return terminate(members, "completed_successfully", now);
    };
    let calls = i64::from(agent != "execution");
    for (counter, cost) in [("llm_call_count", calls), ("agent_hop_count", 1)] {
        let bound = BOUNDS.iter().find(|(name, ..)| *name == counter);
        if let Some((_, most, reason)) = bound
            && count(members, counter) + cost as f64 > count(members, most)
        {
            return terminate(members, reason, now);
        }
    }
    run(members, &agent, calls, now);
}

/// Name of the next agent: the one after the current stage, or the first if the pipeline has no stage of this name.
fn next_agent(members: &Members) -> Option<String> {
    let own = get(members, "stage_order").and_then(Value::as_array).unwrap_or_default();
    let order: Vec<&str> = match own {
        [] => AGENTS.to_vec(),
        own => own.iter().filter_map(Value::as_str).collect(),
    };
    let stage = get(members, "current_stage").and_then(Value::as_str).unwrap_or_default();
    match order.iter().position(|name| *name == stage) {
        _ if stage == "end" => None,
        Some(at) => order.get(at + 1).map(|name| (*name).to_owned()),
        None => order.first().map(|name| (*name).to_owned()),
    }
}

fn run(members: &mut Members, agent: &str, calls: i64, now: &str) {
    let input = get(members, "raw_input").and_then(Value::as_text).map(|text| text.to_lossy().into_owned());
    let input = input.unwrap_or_default();
    if matches!(slot(members, "stage_order"), Value::Array(order) if order.is_empty()) {
        set(members, "stage_order", names(AGENTS));
    }
    let has_none = |name: &str| get(members, name).and_then(Value::as_array).is_none_or(<[_]>::is_empty);
    if agent == "intent" && has_none("all_goals") && has_none("remaining_goals") {
        let goal = format!("Answer: {}", input.trim());
        set(members, "all_goals", names([goal.as_str()]));
        set(members, "remaining_goals", names([goal.as_str()]));
        set(members, "goal_completion_status", object([(goal.as_str(), Value::from("pending"))]));
    }
    let left = get(members, "remaining_goals").and_then(Value::as_array).unwrap_or_default().to_vec();
    if let (Some(section), Value::Object(outputs)) = (section(agent, &input, &left), slot(members, "outputs"))
    {
        set(outputs, agent, section);
    }
    if agent == "critic" {
        satisfy(members, &left);
    }
    for (counter, cost) in [("llm_call_count", calls), ("agent_hop_count", 1)] {
        let value = slot(members, counter);
        if let Some(count) = value.as_i64() {
            *value = number(count + cost);
        }
    }
    let record = object([
        ("agent", Value::from(agent)),
        (
            "stage_order",
            number(i64::try_from(AGENTS.iter().take_while(|name| **name != agent).count()).unwrap_or(0) + 1),
        ),
        ("started_at", Value::from(now)),
        ("completed_at", Value::from(now)),
        ("duration_ms", number(0)),
        ("status", Value::from("success")),
        ("error", Value::Null),
        ("llm_calls", number(calls)),
    ]);
    if let Value::Array(history) = slot(members, "processing_history") {
        history.push(record);
    }
    set(members, "current_stage", Value::from(agent));
}

/// Marks goals as satisfied and the stage as completed.
fn satisfy(members: &mut Members, goals: &[Value]) {
    if let Value::Object(statuses) = slot(members, "goal_completion_status") {
        for goal in goals.iter().filter_map(Value::as_text) {
            match statuses.iter_mut().find(|(name, _)| name == goal) {
                Some((_, status)) => *status = Value::from("satisfied"),
                None => statuses.push((goal.clone(), Value::from("satisfied"))),
            }
        }
    }
    set(members, "remaining_goals", Value::Array(Vec::new()));
    let stage = object([
        ("stage_number", slot(members, "current_stage_number").clone()),
        ("satisfied_goals", Value::Array(goals.to_vec())),
        ("summary", object([("verdict", Value::from("approved"))])),
        ("plan_id", Value::from("plan_1")),
    ]);
    if let Value::Array(stages) = slot(members, "completed_stages") {
        stages.push(stage);
    }
}

/// Terminates the envelope. Its end is never earlier than its receipt.
fn terminate(members: &mut Members, reason: &str, now: &str) {
    let read = |text: &str| datetime::read(text).map(|time| time.unix_us);
    let received = get(members, "received_at").and_then(Value::as_str).map(str::to_owned);
    let end = received.filter(|received| read(received) > read(now)).unwrap_or_else(|| now.to_owned());
    set(members, "terminated", Value::Bool(true));
    set(members, "terminal_reason", Value::from(reason));
    set(members, "termination_reason", Value::from(format!("the pipeline ended: {reason}").as_str()));
    set(members, "completed_at", Value::from(end.as_str()));
}
