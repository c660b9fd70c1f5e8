//! Strict reading of what is stored: a member that nobody reads, misspelt or of another version, is refused, since what
//! it was to say would be passed over in silence and the peer blamed for it.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::blame::Misconfigured;
use crate::boundary::Boundary;
use crate::config;
use crate::facts::Facts;
use crate::nearest::{did_you_mean, nearest};
use crate::plan::{ActorStep, Fixture, Plan};
use crate::transcript::Transcript;

/// Members that are stored only where they say something.
const OPTIONAL: [&str; 32] = [
    "allow_ms",
    "after_ms",
    "arguments",
    "await_answers",
    "body",
    "by_model",
    "canary",
    "capture",
    "content_type",
    "env",
    "error",
    "expect",
    "fault",
    "fixtures",
    "folder",
    "folders",
    "http",
    "later",
    "limits",
    "location",
    "manner",
    "mode",
    "pair",
    "pid",
    "placeholders",
    "recorded",
    "requirements",
    "shared",
    "timeout_scale",
    "turn",
    "watched",
    "without",
];
const ADVICE: &str = "correct it, or judge the file with the peerproof that wrote it";

/// Reads a value all of whose members are read; `place` is where it stands.
///
/// # Errors
/// One sentence: the member, its place, and the nearest one that is known.
pub fn read<T: DeserializeOwned + Serialize>(value: &Value, place: &str) -> Result<T, Misconfigured> {
    let read = T::deserialize(value).map_err(|error| {
        let error = error.to_string();
        let missing = error.strip_prefix("missing field `").and_then(|rest| rest.split('`').next());
        match missing.and_then(|name| Some((name, likely(value, name)?))) {
            Some((name, there)) => {
                format!("{}{there:?} is unknown; did you mean {name:?}? {ADVICE}", at(place))
            }
            None => format!("{}{error}; {ADVICE}", at(place)),
        }
    })?;
    let back = serde_json::to_value(&read).map_err(|error| error.to_string())?;
    compare(value, &back, place)?;
    Ok(read)
}

/// A place before what is said of it.
fn at(place: &str) -> String {
    if place.is_empty() { String::new() } else { format!("{}: ", place.trim_start_matches('/')) }
}

/// The member of `value`, at any depth, that was probably meant to be `name`.
fn likely<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    match value {
        Value::Object(members) => {
            nearest(name, members.keys().map(String::as_str).filter(|key| *key != name))
                .or_else(|| members.values().find_map(|value| likely(value, name)))
        }
        Value::Array(items) => items.iter().find_map(|item| likely(item, name)),
        _ => None,
    }
}

/// Refuses members of `stored` that are gone in what was read from it.
fn compare(stored: &Value, read: &Value, place: &str) -> Result<(), Misconfigured> {
    match (stored, read) {
        (Value::Object(stored), Value::Object(read)) => {
            for (name, value) in stored {
                // Bytes have several descriptions; their parts are read strictly.
                let is_name = value.is_array() && matches!(name.as_str(), "path" | "from" | "to");
                if matches!(name.as_str(), "bytes" | "head" | "body") || is_name {
                    continue;
                }
                let Some(read) = read.get(name) else {
                    let known = read.keys().map(String::as_str).filter(|known| !stored.contains_key(*known));
                    let hint = did_you_mean(name, known.chain(OPTIONAL));
                    return Err(format!(
                        "{}the member {name:?} says nothing here{hint}; {ADVICE}",
                        at(place)
                    )
                    .into());
                };
                compare(value, read, &format!("{place}/{name}"))?;
            }
            Ok(())
        }
        (Value::Array(stored), Value::Array(read)) => stored
            .iter()
            .zip(read)
            .enumerate()
            .try_for_each(|(at, (stored, read))| compare(stored, read, &format!("{place}/{at}"))),
        _ => Ok(()),
    }
}

/// Reads what every step expects as a `T`, or as a list of them.
///
/// # Errors
/// Those of [`read`].
pub fn expectations<T: DeserializeOwned + Serialize>(plan: &Plan) -> Result<(), Misconfigured> {
    for (at, step) in plan.steps.iter().enumerate() {
        let place = format!("plan/steps/{at}/expect");
        match &step.expect {
            Value::Null => {}
            Value::Array(all) => all.iter().try_for_each(|one| read::<T>(one, &place).map(|_| ()))?,
            one => {
                read::<T>(one, &place)?;
            }
        }
    }
    Ok(())
}

/// Refuses a stored conversation that `boundary` does not wholly know: names of the configuration, clauses that its steps
/// are about, programs that its actors play, and what [`Boundary::admit`] refuses.
///
/// # Errors
/// One sentence.
pub fn admit(boundary: &dyn Boundary, transcript: &Transcript) -> Result<(), Misconfigured> {
    facts(boundary, &transcript.facts)?;
    boundary.admit(transcript)?;
    clauses(boundary, &transcript.plan)?;
    programs(boundary, &transcript.plan)
}

/// Refuses steps that are about no clause of the boundary: nothing would be broken, or a clause that nobody wrote.
fn clauses(boundary: &dyn Boundary, plan: &Plan) -> Result<(), Misconfigured> {
    let known = || boundary.clauses().iter().map(|clause| clause.id.0.as_str());
    for (at, step) in plan.steps.iter().enumerate() {
        let aims = step.expect.as_array().map_or(std::slice::from_ref(&step.expect), Vec::as_slice);
        for id in aims.iter().filter_map(|aim| aim.get("clause")?.as_str()) {
            if known().all(|known| known != id) {
                let hint = did_you_mean(id, known());
                return Err(format!(
                    "plan/steps/{at}/expect: there is no clause {id:?} of {}{hint}; {ADVICE}",
                    boundary.name()
                )
                .into());
            }
        }
    }
    Ok(())
}

/// Refuses actors that play a program which the boundary has not.
fn programs(boundary: &dyn Boundary, plan: &Plan) -> Result<(), Misconfigured> {
    for fixture in &plan.fixtures {
        let Fixture::Actor { name, script, later } = fixture else { continue };
        for step in later.iter().chain([script]).flatten() {
            if let ActorStep::Converse(program) | ActorStep::Perform(program) = step
                && boundary.program(program, &[]).is_none()
            {
                return Err(format!("plan/fixtures/{name}: there is no program {program:?}; {ADVICE}").into());
            }
        }
    }
    Ok(())
}

/// Refuses names of roles, features, choices and limits that were meant to be others.
///
/// # Errors
/// One sentence.
fn facts(boundary: &dyn Boundary, facts: &Facts) -> Result<(), Misconfigured> {
    let known = config::keys(boundary);
    let tables: [(&str, Vec<&String>); 4] = [
        ("roles", facts.roles.keys().collect()),
        ("features", facts.features.keys().collect()),
        ("choices", facts.choices.keys().collect()),
        ("limits", facts.limits.keys().collect()),
    ];
    for (table, names) in tables {
        let here = || known.iter().filter(|key| key.table == table).map(|key| key.name);
        for name in names.into_iter().filter(|name| here().all(|known| known != name.as_str())) {
            if let Some(near) = nearest(name, here()) {
                return Err(
                    format!("facts/{table}: {name:?} is unknown; did you mean {near:?}? {ADVICE}").into()
                );
            }
        }
    }
    Ok(())
}
