//! Vocabulary of a configuration: its keys and their values.

use std::collections::BTreeMap;

use serde_json::Value;

use super::command::placeholders;
use crate::contract::boundary::{Boundary, ConfigKey};
use crate::data::blame::Misconfigured;
use crate::data::clause::Side;
use crate::data::nearest::did_you_mean;

const fn general(name: &'static str, values: &'static [&'static str], meaning: &'static str) -> ConfigKey {
    ConfigKey { table: "peer", name, values, members: &[], meaning, side: None }
}

/// Keys of `[peer]` that every boundary has.
const GENERAL: &[ConfigKey] = &[
    general("name", &[], "Name of the peer in reports"),
    general("boundary", &[], "Boundary whose contract the peer implements"),
    general(
        "side",
        &["provider", "consumer"],
        "Side of the boundary that the peer is on; inferred from its commands",
    ),
    general(
        "env",
        &[],
        "Table of environment variables for the peer; it also gets PATH, HOME, TMPDIR and the variables \
         that a check sets",
    ),
    general("pass_env", &[], "Names of environment variables that the peer inherits from peerproof"),
    general("cwd", &[], "Working folder of the peer, relative to the folder of the file"),
    general("requirements", &[], "Set of clauses that apply to the peer, if the boundary has several"),
    general("stop", &["eof"], "Method to end the peer; `eof` closes its standard input"),
];

/// All keys of a configuration for `boundary`, table by table.
pub fn keys(boundary: &dyn Boundary) -> Vec<ConfigKey> {
    let of_this = |key: &ConfigKey| match key.name {
        "requirements" => ConfigKey { values: boundary.requirements(), ..*key },
        _ => *key,
    };
    GENERAL.iter().map(of_this).chain(boundary.config_keys().iter().copied()).collect()
}

/// Keys that apply to a peer of this side.
pub fn keys_of(boundary: &dyn Boundary, side: Side) -> Vec<ConfigKey> {
    keys(boundary).into_iter().filter(|key| key.side.is_none_or(|own| own == side)).collect()
}

/// True for a key that every boundary has under `[peer]`; other keys there are commands.
pub fn is_general(name: &str) -> bool {
    GENERAL.iter().any(|key| key.name == name)
}

/// Looks up the key `name` of `table`.
///
/// # Errors
/// Fails for an unknown key and suggests the closest one.
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

/// Checks a value against the allowed values of `key`.
///
/// # Errors
/// Fails for another value and suggests the closest one.
pub(super) fn check_choice(key: &ConfigKey, value: &str) -> Result<(), Misconfigured> {
    if key.values.is_empty() || key.values.contains(&value) {
        return Ok(());
    }
    let hint = did_you_mean(value, key.values.iter().copied());
    Err(format!("{:?} cannot be {value:?}{hint}; it must be one of: {}", key.name, key.values.join(", "))
        .into())
}

/// Checks a number against the minimum of `key`.
///
/// # Errors
/// Fails below the minimum.
pub(super) fn check_limit(key: &ConfigKey, value: u64) -> Result<(), Misconfigured> {
    match lowest(key) {
        lowest if value < lowest => {
            Err(format!("the limit {:?} cannot be {value}; it must be at least {lowest}", key.name).into())
        }
        _ => Ok(()),
    }
}

/// Minimum of a limit.
pub(super) fn lowest(key: &ConfigKey) -> u64 {
    key.values.first().and_then(|from| from.strip_suffix("..")?.parse().ok()).unwrap_or(0)
}

/// Refuses a feature that is claimed with `true` but needs settings.
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
            return Err(
                format!("the feature {name:?} must be false or a table with {members}, not true").into()
            );
        }
    }
    Ok(())
}

/// True for a feature with words of its own as values.
pub(super) fn is_worded(key: &ConfigKey) -> bool {
    !key.values.is_empty() && !key.values.contains(&"true") && key.values != ["false"] && !key.is_setting()
}

/// Checks the value of a feature: a boolean, one of its words, or a table of its members.
///
/// # Errors
/// Fails for another kind of value or a wrong member.
pub(super) fn check_feature(key: &ConfigKey, value: &Value) -> Result<(), Misconfigured> {
    match value {
        Value::Bool(_) => Ok(()),
        Value::String(word) if is_worded(key) => check_choice(key, word),
        Value::Array(words) if is_worded(key) => words.iter().try_for_each(|word| match word {
            Value::String(word) => check_choice(key, word),
            other => {
                Err(format!("the feature {:?} takes a list of words; {other} is not a word", key.name).into())
            }
        }),
        Value::Object(_) if !key.members.is_empty() => check_members(key, value),
        _ if key.members.is_empty() => {
            Err(format!("the feature {:?} must be true or false, not {value}", key.name).into())
        }
        _ => Err(format!(
            "the feature {:?} must be true, false or a table with {}, not {value}",
            key.name,
            key.members.join(", ")
        )
        .into()),
    }
}

/// Member of a table under `[roles]` or `[features]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Alternative names; a table has exactly one of them.
    pub names: Vec<&'static str>,
    /// Set if a table without it is refused.
    pub is_required: bool,
    /// Type of its value: `string`, `file`, `object`, `integer`, `pointer`, `empty` or `any`.
    pub kind: &'static str,
    /// Placeholders allowed in the strings of its value, with their braces.
    pub placeholders: Vec<&'static str>,
}

/// Members of the table that `key` takes.
pub fn members(key: &ConfigKey) -> Vec<Member> {
    let member = |text: &'static str| {
        let (word, rest) = text.split_once(": ").unwrap_or((text, "any"));
        let mut rest = rest.split(' ');
        Member {
            names: word.trim_end_matches('?').split('|').collect(),
            is_required: !word.ends_with('?'),
            kind: rest.next().unwrap_or_default(),
            placeholders: rest.collect(),
        }
    };
    key.members.iter().copied().map(member).collect()
}

/// Checks the members of a table against those of `key`.
///
/// # Errors
/// Names the first member that is missing, unknown or of a wrong type.
pub(super) fn check_members(key: &ConfigKey, value: &Value) -> Result<(), Misconfigured> {
    let name = key.name;
    let list = || key.members.join(", ");
    let Value::Object(given) = value else {
        return Err(format!("{name:?} must be a table with {}, not {value}", list()).into());
    };
    let members = members(key);
    let known: Vec<&str> = members.iter().flat_map(|member| member.names.iter().copied()).collect();
    for (member, value) in given {
        let Some(Member { kind, placeholders, .. }) =
            members.iter().find(|known| known.names.contains(&member.as_str()))
        else {
            let hint = did_you_mean(member, known);
            return Err(format!("{name:?} has no member {member:?}{hint}; its members are {}", list()).into());
        };
        let fits = match *kind {
            "string" | "file" => value.as_str().is_some_and(|text| !text.is_empty()),
            "object" => value.is_object(),
            "integer" => value.is_u64(),
            "empty" => value.as_object().is_some_and(serde_json::Map::is_empty),
            "pointer" => value.as_str().is_some_and(|text| text.starts_with('/')),
            _ => true,
        };
        if !fits {
            return Err(format!("{member:?} of {name:?} must be {}, not {value}", described(kind)).into());
        }
        if !placeholders.is_empty() {
            check_template(value, placeholders)
                .map_err(|error| format!("{member:?} of {name:?}: {error}"))?;
        }
    }
    for Member { names, .. } in members.iter().filter(|member| member.names.len() > 1) {
        if names.iter().filter(|word| given.contains_key(**word)).count() != 1 {
            let words = names.join(" or ");
            return Err(format!("{name:?} must have either {words}; it is a table with {}", list()).into());
        }
    }
    let is_missing =
        |member: &&Member| member.is_required && !member.names.iter().any(|name| given.contains_key(*name));
    match members.iter().find(is_missing) {
        Some(member) => {
            Err(format!("{name:?} has no {:?}; it is a table with {}", member.names[0], list()).into())
        }
        None => Ok(()),
    }
}

/// Checks that the strings of a template name only these placeholders, given with their braces.
fn check_template(template: &Value, known: &[&str]) -> Result<(), Misconfigured> {
    match template {
        Value::String(text) => {
            for placeholder in placeholders(text)? {
                if !known.contains(&placeholder.as_str()) {
                    return Err(format!(
                        "unknown placeholder {placeholder}; the placeholders are {}",
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
        let key = ConfigKey::feature_with_values("level", &["low", "high"], "how far");
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
