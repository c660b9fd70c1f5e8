//! Validation of envelopes, and their defaults.

use super::choices::{Kept, Missing, NullMember};
use super::kind::is_of_kind;
use super::members::{BOUNDS, Kind, MEMBERS, Member, STAGE_MEMBERS};
use super::{Choices, Config, Members, agents, datetime, get};
use crate::json::{Text, Value};
use crate::refusal::Refusal;

/// Checks an envelope and completes it with defaults. The documented members come first, in the order of the document,
/// followed by the undocumented ones.
///
/// # Errors
/// One sentence that names the invalid member.
pub(crate) fn complete(envelope: Value, config: &Config) -> Result<Members, Refusal> {
    let Value::Object(mut given) = envelope else { return Err("an envelope is an object".into()) };
    let choices = &config.choices;
    let mut members = taken(&mut given, MEMBERS, choices, "")?;
    for (at, row) in MEMBERS.iter().filter(|row| row.core).enumerate() {
        if get(&members, row.name).is_none() {
            if choices.missing_required == Missing::Refuse {
                return Err(format!("{} is missing", row.name).into());
            }
            members.push((row.name.into(), missing(row, config.id_seed.wrapping_add(at as u64))));
        }
    }
    let place = |name: &Text| MEMBERS.iter().position(|row| *name == *row.name);
    members.sort_by_key(|(name, _)| place(name));
    members.append(&mut given);
    if choices.agent_shapes == Kept::Refuse {
        agents::check(get(&members, "outputs"))?;
    }
    Ok(members)
}

/// Removes the documented members from `given`, checks them and adds defaults. Undocumented members stay in `given`.
fn taken(given: &mut Members, rows: &[Member], choices: &Choices, at: &str) -> Result<Members, Refusal> {
    let mut members = Vec::new();
    for row in rows {
        let place = given.iter().position(|(name, _)| *name == *row.name);
        let value = place.map(|place| given.remove(place).1);
        let value = match value {
            Some(Value::Null) if !row.nullable => match default(row) {
                Some(empty @ (Value::Array(_) | Value::Object(_))) => Some(empty),
                _ if choices.null_member == NullMember::Absent => None,
                _ => return Err(format!("{at}{} is null", row.name).into()),
            },
            Some(mut value) => {
                check(&mut value, row, choices, at)?;
                Some(value)
            }
            None => None,
        };
        let absent = || default(row).filter(|_| !row.core);
        members.extend(value.or_else(absent).map(|value| (row.name.into(), value)));
    }
    Ok(members)
}

/// The default of a member.
pub(crate) fn default(row: &Member) -> Option<Value> {
    Value::parse(row.default.as_bytes(), 2, &crate::json::Policy::default()).ok()
}

/// Replacement for a missing required member: a generated id, or the default.
fn missing(row: &Member, seed: u64) -> Value {
    match row.kind {
        Kind::Id(prefix) => Value::from(format!("{prefix}{:016x}", mixed(seed)).as_str()),
        _ => default(row).unwrap_or(Value::Null),
    }
}

/// Hash of a number (splitmix64).
fn mixed(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Checks a value that is present, and completes its nested members.
fn check(value: &mut Value, row: &Member, choices: &Choices, at: &str) -> Result<(), Refusal> {
    let is_right = match (row.kind, &mut *value) {
        (_, Value::Null) => row.nullable,
        (Kind::Stages, Value::Array(stages)) => {
            for (index, stage) in stages.iter_mut().enumerate() {
                let Value::Object(given) = stage else {
                    return Err(format!("{}[{index}] is no object", row.name).into());
                };
                let mut members = taken(given, STAGE_MEMBERS, choices, "completed_stages: ")?;
                members.append(given);
                *given = members;
            }
            true
        }
        (kind, value) => is_of_kind(value, kind, choices),
    };
    is_right.then_some(()).ok_or_else(|| format!("{at}{} has a value that it cannot have", row.name).into())
}

/// Value of a counter in a complete envelope.
pub(crate) fn count(members: &Members, name: &str) -> f64 {
    match get(members, name) {
        Some(Value::Number(number)) => number.as_f64(),
        _ => 0.0,
    }
}

/// Terminal reason for the first counter of a complete envelope that exceeds its maximum.
pub(crate) fn over_bound(members: &Members) -> Option<&'static str> {
    let is_over = |(counter, most, _): &&(&str, &str, &str)| count(members, counter) > count(members, most);
    BOUNDS.iter().find(is_over).map(|(_, _, reason)| *reason)
}

/// True if members of a complete envelope contradict each other.
pub(crate) fn is_inconsistent(members: &Members) -> bool {
    let of = |name: &str| get(members, name).unwrap_or(&Value::Null);
    let time = |name: &str| of(name).as_str().and_then(datetime::read).map(|time| time.unix_us);
    let is_terminated = *of("terminated") == Value::Bool(true);
    let is_early = time("completed_at").zip(time("received_at")).is_some_and(|(end, begin)| end < begin);
    let (all, left) = (of("all_goals"), of("remaining_goals"));
    let (all, left) = (all.as_array().unwrap_or_default(), left.as_array().unwrap_or_default());
    let is_satisfied = |goal: &Value| {
        let statuses = of("goal_completion_status").as_object().unwrap_or_default();
        statuses
            .iter()
            .any(|(name, status)| Some(name) == goal.as_text() && status.as_str() == Some("satisfied"))
    };
    is_terminated != (*of("terminal_reason") != Value::Null)
        || *of("completed_at") != Value::Null && (!is_terminated || is_early)
        || left.iter().any(|goal| !all.is_empty() && !all.contains(goal) || is_satisfied(goal))
}
