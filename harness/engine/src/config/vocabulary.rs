//! The words of a configuration: which keys there are and which values they take.

use std::collections::BTreeMap;

use serde_json::Value;

use super::command::placeholders;
use crate::blame::Misconfigured;
use crate::boundary::{Boundary, ConfigKey};
use crate::clause::Side;
use crate::nearest::did_you_mean;

const fn general(name: &'static str, values: &'static [&'static str], meaning: &'static str) -> ConfigKey {
    ConfigKey { table: "peer", name, values, members: &[], meaning, side: None }
}

/// Keys of `[peer]` that every boundary has.
const GENERAL: &[ConfigKey] = &[
    general("name", &[], "name of the peer in reports"),
    general("boundary", &[], "the contract that the peer is held to"),
    general(
        "side",
        &["provider", "consumer"],
        "the end of the boundary that the peer is; inferred from its commands",
    ),
    general(
        "env",
        &[],
        "a table of variables; the rest is cleared but for PATH, HOME, TMPDIR and what a check sets",
    ),
    general("pass_env", &[], "a list of names: variables that are passed through from the harness"),
    general("cwd", &[], "working folder of the peer, relative to the folder of the file"),
    general("requirements", &[], "which clauses bind the peer, where the boundary has several sets"),
    general("stop", &["eof"], "how the peer is asked to end"),
];

/// Every key that a configuration for `boundary` may hold, table by table.
pub fn keys(boundary: &dyn Boundary) -> Vec<ConfigKey> {
    let of_this = |key: &ConfigKey| match key.name {
        "requirements" => ConfigKey { values: boundary.requirements(), ..*key },
        _ => *key,
    };
    GENERAL.iter().map(of_this).chain(boundary.config_keys().iter().copied()).collect()
}

/// Those keys that say something of a peer of this side.
pub fn keys_of(boundary: &dyn Boundary, side: Side) -> Vec<ConfigKey> {
    keys(boundary).into_iter().filter(|key| key.side.is_none_or(|own| own == side)).collect()
}

/// The names that every boundary has under `[peer]`; the others there are commands.
pub(super) fn is_general(name: &str) -> bool {
    GENERAL.iter().any(|key| key.name == name)
}

/// The key `name` of `table`.
///
/// # Errors
/// There is none; the nearest is named.
pub(super) fn find(boundary: &dyn Boundary, table: &str, name: &str) -> Result<ConfigKey, Misconfigured> {
    let known = keys(boundary);
    let here = || known.iter().filter(|key| key.table == table);
    here().find(|key| key.name == name).copied().ok_or_else(|| {
        let boundary = boundary.name();
        if here().next().is_none() {
            return format!("{boundary} has nothing under [{table}]; remove {name:?}").into();
        }
        if let Some(elsewhere) = known.iter().find(|key| key.name == name) {
            return format!("{name:?} belongs under [{}], not [{table}]", elsewhere.table).into();
        }
        let hint = did_you_mean(name, here().map(|key| key.name));
        format!(
            "{boundary} has no {name:?} under [{table}]{hint} \
             (`peerproof list --config-keys {boundary}` shows every key)"
        )
        .into()
    })
}

/// Checks a value against the named set of `key`.
///
/// # Errors
/// It is not in the set; the nearest is named.
pub(super) fn check_choice(key: &ConfigKey, value: &str) -> Result<(), Misconfigured> {
    if key.values.is_empty() || key.values.contains(&value) {
        return Ok(());
    }
    let hint = did_you_mean(value, key.values.iter().copied());
    Err(format!("{:?} cannot be {value:?}{hint}; it can be {}", key.name, key.values.join(", ")).into())
}

/// Checks a number against the lowest that `key` can have.
///
/// # Errors
/// It is lower.
pub(super) fn check_limit(key: &ConfigKey, value: u64) -> Result<(), Misconfigured> {
    let lowest = key.values.first().and_then(|from| from.strip_suffix("..")?.parse::<u64>().ok());
    match lowest.filter(|lowest| value < *lowest) {
        Some(lowest) => {
            Err(format!("the limit {:?} cannot be {value}; it is {lowest} at least", key.name).into())
        }
        None => Ok(()),
    }
}

/// Refuses a feature of a server that is claimed without the settings that it cannot do without.
///
/// # Errors
/// Names the first such feature.
pub(super) fn refuse_untold(
    boundary: &dyn Boundary,
    features: &BTreeMap<String, Value>,
) -> Result<(), Misconfigured> {
    for key in boundary.config_keys().iter().filter(|key| key.table == "features" && key.values == ["false"])
    {
        if features.get(key.name) == Some(&Value::Bool(true)) {
            let (name, members) = (key.name, key.members.join(", "));
            return Err(format!("the feature {name:?} is false or a table with {members}, not true").into());
        }
    }
    Ok(())
}

/// Whether a feature has words of its own for values.
fn is_worded(key: &ConfigKey) -> bool {
    !key.values.is_empty() && !key.values.contains(&"true") && key.values != ["false"]
}

/// Checks the value of a feature: a boolean, or its table where it has members.
///
/// # Errors
/// It is neither, or a member is wrong.
pub(super) fn check_feature(key: &ConfigKey, value: &Value) -> Result<(), Misconfigured> {
    match value {
        Value::Bool(_) => Ok(()),
        Value::String(word) if is_worded(key) => check_choice(key, word),
        Value::Array(words) if is_worded(key) => words.iter().try_for_each(|word| match word {
            Value::String(word) => check_choice(key, word),
            other => Err(format!("the feature {:?} is a list of words, without {other}", key.name).into()),
        }),
        Value::Object(_) if !key.members.is_empty() => check_members(key, value),
        _ if key.members.is_empty() => {
            Err(format!("the feature {:?} is true or false, not {value}", key.name).into())
        }
        _ => Err(format!(
            "the feature {:?} is true, false or a table with {}, not {value}",
            key.name,
            key.members.join(", ")
        )
        .into()),
    }
}

/// Checks the members of a table against those of `key`.
///
/// # Errors
/// Names the first member that is missing, unknown or of a wrong type.
pub(super) fn check_members(key: &ConfigKey, value: &Value) -> Result<(), Misconfigured> {
    let name = key.name;
    let list = || key.members.join(", ");
    let Value::Object(given) = value else {
        return Err(format!("{name:?} is a table with {}, not {value}", list()).into());
    };
    let written = |member: &'static str| {
        let (word, kind) = member.split_once(": ").unwrap_or((member, "any"));
        (word.trim_end_matches('?'), word.ends_with('?'), kind)
    };
    let known: Vec<(&str, bool, &str)> = key
        .members
        .iter()
        .flat_map(|member| {
            let (words, optional, kind) = written(member);
            words.split('|').map(move |word| (word, optional || words.contains('|'), kind))
        })
        .collect();
    for (member, value) in given {
        let Some((_, _, kind)) = known.iter().find(|(known, _, _)| known == member) else {
            let hint = did_you_mean(member, known.iter().map(|(known, _, _)| *known));
            return Err(format!("{name:?} has no member {member:?}{hint}; it has {}", list()).into());
        };
        let mut kind = kind.split(' ');
        let (kind, placeholders) = (kind.next().unwrap_or_default(), kind.collect::<Vec<_>>());
        let fits = match kind {
            "string" | "file" => value.as_str().is_some_and(|text| !text.is_empty()),
            "object" => value.is_object(),
            "integer" => value.is_u64(),
            "empty" => value.as_object().is_some_and(serde_json::Map::is_empty),
            "pointer" => value.as_str().is_some_and(|text| text.starts_with('/')),
            _ => true,
        };
        if !fits {
            return Err(format!("{member:?} of {name:?} has to be {}, not {value}", described(kind)).into());
        }
        if !placeholders.is_empty() {
            check_template(value, &placeholders)
                .map_err(|error| format!("{member:?} of {name:?}: {error}"))?;
        }
    }
    for (words, _, _) in key.members.iter().map(|member| written(member)).filter(|it| it.0.contains('|')) {
        if words.split('|').filter(|word| given.contains_key(*word)).count() != 1 {
            let words = words.replace('|', " or ");
            return Err(format!("{name:?} has either {words}; it is a table with {}", list()).into());
        }
    }
    match known.iter().find(|(member, optional, _)| !optional && !given.contains_key(*member)) {
        Some((member, _, _)) => {
            Err(format!("{name:?} has no {member:?}; it is a table with {}", list()).into())
        }
        None => Ok(()),
    }
}

/// Checks that the strings of a template name no other placeholders than these, which have their braces.
fn check_template(template: &Value, known: &[&str]) -> Result<(), Misconfigured> {
    match template {
        Value::String(text) => {
            for placeholder in placeholders(text)? {
                if !known.contains(&placeholder.as_str()) {
                    return Err(format!(
                        "unknown placeholder {placeholder}; it can have {}",
                        known.join(", ")
                    )
                    .into());
                }
            }
            Ok(())
        }
        Value::Array(items) => items.iter().try_for_each(|item| check_template(item, known)),
        Value::Object(members) => members.values().try_for_each(|value| check_template(value, known)),
        _ => Ok(()),
    }
}

fn described(kind: &str) -> &str {
    match kind {
        "string" => "a string that is not empty",
        "file" => "the path of a file",
        "object" => "a table",
        "integer" => "a whole number",
        "empty" => "an empty table: checks call this method without params",
        "pointer" => "a JSON Pointer such as \"/token_id\"",
        _ => kind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_may_be_a_word_or_a_list_of_words() {
        let key = ConfigKey::worded_feature("level", &["low", "high"], "how far");
        for value in ["\"low\"", "[\"low\",\"high\"]", "[]", "false"] {
            assert_eq!(check_feature(&key, &value.parse().unwrap()), Ok(()), "{value}");
        }
        for value in ["\"lo\"", "[\"mid\"]", "[1]", "7", "{}"] {
            assert!(check_feature(&key, &value.parse().unwrap()).is_err(), "{value}");
        }
        let flag = ConfigKey::feature("flag", "on or off");
        assert!(check_feature(&flag, &"\"true\"".parse().unwrap()).is_err());
    }
}
