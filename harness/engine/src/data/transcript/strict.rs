//! Strict deserialization of stored files: unknown members are errors, because ignoring one would blame the peer.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::data::blame::Misconfigured;
use crate::data::nearest::{did_you_mean, nearest, then};
use crate::data::plan::Plan;

/// Members that are omitted if they have their default.
const OPTIONAL: [&str; 35] = [
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
    "learned",
    "limits",
    "location",
    "manner",
    "mode",
    "pair",
    "pid",
    "placeholders",
    "recorded",
    "requirements",
    "setup",
    "shared",
    "timeout_scale",
    "turn",
    "unread_ms",
    "watched",
    "without",
];
/// Advice for a user whose stored file is refused.
pub(crate) const ADVICE: &str = "correct it, or judge the file with the version of peerproof that wrote it";

/// Deserializes a value and refuses unknown members; `place` locates it in error messages.
///
/// # Errors
/// Names the member, its place and the closest known member.
pub fn read<T: DeserializeOwned + Serialize>(value: &Value, place: &str) -> Result<T, Misconfigured> {
    let read = T::deserialize(value).map_err(|error| unreadable(value, place, &error))?;
    let back = serde_json::to_value(&read).map_err(|error| error.to_string())?;
    compare(value, &back, place)?;
    Ok(read)
}

fn unreadable(value: &Value, place: &str, error: &serde_json::Error) -> String {
    let error = error.to_string();
    let missing = error.strip_prefix("missing field `").and_then(|rest| rest.split('`').next());
    match missing.and_then(|name| Some((name, likely(value, name)?))) {
        Some((name, there)) => {
            let hint = format!("; did you mean {name:?}?");
            format!("{}{there:?} is unknown{}", at(place), then(&hint, ADVICE))
        }
        None => format!("{}{error}; {ADVICE}", at(place)),
    }
}

/// Prefix with the place, for an error message.
fn at(place: &str) -> String {
    if place.is_empty() { String::new() } else { format!("{}: ", place.trim_start_matches('/')) }
}

/// Member of `value`, at any depth, that was probably meant to be `name`.
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

/// Refuses members of `stored` that are missing in `read`.
fn compare(stored: &Value, read: &Value, place: &str) -> Result<(), Misconfigured> {
    match (stored, read) {
        (Value::Object(stored), Value::Object(read)) => {
            for (name, value) in stored {
                // Bytes have several representations; their parts are deserialized strictly.
                let is_name = value.is_array() && matches!(name.as_str(), "path" | "from" | "to");
                if matches!(name.as_str(), "bytes" | "head" | "body") || is_name {
                    continue;
                }
                let Some(read) = read.get(name) else {
                    let known = read.keys().map(String::as_str).filter(|known| !stored.contains_key(*known));
                    let hint = did_you_mean(name, known.chain(OPTIONAL));
                    return Err(format!(
                        "{}the member {name:?} is not allowed here{}",
                        at(place),
                        then(&hint, ADVICE)
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

/// Deserializes the expectation of every step as a `T` or a list of them.
///
/// # Errors
/// As [`read`].
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
