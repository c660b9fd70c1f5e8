//! Vocabulary of a configuration: its keys and their values.

use std::collections::BTreeMap;

use serde_json::Value;

use super::command::placeholders;
use crate::contract::boundary::{Boundary, ConfigKey, KeyForm, Member, MemberKind};
use crate::data::blame::Misconfigured;
use crate::data::clause::Side;
use crate::data::nearest::{did_you_mean, then};

/// Keys of `[peer]` that every boundary has.
const GENERAL: &[ConfigKey] = &[
    ConfigKey::general("name", &[], "Name of the peer in reports"),
    ConfigKey::general("boundary", &[], "Boundary whose contract the peer implements"),
    ConfigKey::general(
        "side",
        &["provider", "consumer"],
        "Side of the boundary that the peer is on; inferred from its commands",
    ),
    ConfigKey::general(
        "env",
        &[],
        "Table of environment variables for the peer; it also gets PATH, HOME, TMPDIR and the variables \
         that a check sets",
    ),
    ConfigKey::general(
        "pass_env",
        &[],
        "Names of environment variables that the peer inherits from peerproof",
    ),
    ConfigKey::general("cwd", &[], "Working folder of the peer, relative to the folder of the file"),
    ConfigKey::general(
        "requirements",
        &[],
        "Set of clauses that apply to the peer, if the boundary has several",
    ),
    ConfigKey::general("stop", &["eof"], "Method to end the peer; `eof` closes its standard input"),
];

/// All keys of a configuration for `boundary`, table by table.
pub fn keys(boundary: &dyn Boundary) -> Vec<ConfigKey> {
    let of_this = |key: &ConfigKey| match key.name {
        "requirements" => ConfigKey { form: KeyForm::General(boundary.description().requirements), ..*key },
        _ => *key,
    };
    GENERAL.iter().map(of_this).chain(boundary.description().config_keys.iter().copied()).collect()
}

/// Keys that apply to a peer of this side.
pub fn keys_of(boundary: &dyn Boundary, side: Side) -> Vec<ConfigKey> {
    keys(boundary).into_iter().filter(|key| key.side.is_none_or(|own| own == side)).collect()
}

/// Looks up the key `name` of `table`.
///
/// # Errors
/// Fails for an unknown key and suggests the closest one.
pub(super) fn find(boundary: &dyn Boundary, table: &str, name: &str) -> Result<ConfigKey, Misconfigured> {
    let known = keys(boundary);
    let here = || known.iter().filter(|key| key.table() == table);
    here().find(|key| key.name == name).copied().ok_or_else(|| {
        let boundary = boundary.name();
        if here().next().is_none() {
            return format!("{boundary} has nothing under [{table}]; remove {name:?}").into();
        }
        if let Some(elsewhere) = known.iter().find(|key| key.name == name) {
            return format!("{name:?} belongs under [{}], not [{table}]", elsewhere.table()).into();
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
    let words = key.words();
    if words.is_empty() || words.contains(&value) {
        return Ok(());
    }
    let hint = did_you_mean(value, words.iter().copied());
    let known = then(&hint, &format!("it must be one of: {}", words.join(", ")));
    Err(format!("{:?} cannot be {value:?}{known}", key.name).into())
}

/// Checks a number against the minimum of `key`.
///
/// # Errors
/// Fails below the minimum.
pub(super) fn check_limit(key: &ConfigKey, value: u64) -> Result<(), Misconfigured> {
    match key.form {
        KeyForm::Limit(lowest) if value < lowest => {
            Err(format!("the limit {:?} cannot be {value}; it must be at least {lowest}", key.name).into())
        }
        _ => Ok(()),
    }
}

/// Refuses a feature that is claimed with `true` but needs settings.
///
/// # Errors
/// Names the first such feature.
pub(super) fn refuse_untold(
    boundary: &dyn Boundary,
    features: &BTreeMap<String, Value>,
) -> Result<(), Misconfigured> {
    let is_table = |key: &&ConfigKey| matches!(key.form, KeyForm::OptionalTable(_));
    let mut tables = boundary.description().config_keys.iter().filter(is_table);
    match tables.find(|key| features.get(key.name) == Some(&Value::Bool(true))) {
        Some(key) => {
            let (name, members) = (key.name, key.shown_members().join(", "));
            Err(format!("the feature {name:?} must be false or a table with {members}, not true").into())
        }
        None => Ok(()),
    }
}

/// Checks the value of a feature: a boolean, one of its words, or a table of its members.
///
/// # Errors
/// Fails for another kind of value or a wrong member.
pub(super) fn check_feature(key: &ConfigKey, value: &Value) -> Result<(), Misconfigured> {
    let name = key.name;
    match (value, key.form) {
        (Value::Bool(_), _) => Ok(()),
        (Value::String(word), KeyForm::Words(_)) => check_choice(key, word),
        (Value::Array(words), KeyForm::Words(_)) => words.iter().try_for_each(|word| match word {
            Value::String(word) => check_choice(key, word),
            other => Err(format!("the feature {name:?} takes a list of words; {other} is not a word").into()),
        }),
        (Value::Object(_), KeyForm::Settings(_) | KeyForm::OptionalTable(_)) => check_members(key, value),
        (_, KeyForm::Settings(_) | KeyForm::OptionalTable(_)) => {
            let members = key.shown_members().join(", ");
            Err(format!("the feature {name:?} must be true, false or a table with {members}, not {value}")
                .into())
        }
        _ => Err(format!("the feature {name:?} must be true or false, not {value}").into()),
    }
}

/// Checks the members of a table against those of `key`.
///
/// # Errors
/// Names the first member that is missing, unknown or of a wrong type.
pub(super) fn check_members(key: &ConfigKey, value: &Value) -> Result<(), Misconfigured> {
    let name = key.name;
    let list = || key.shown_members().join(", ");
    let Value::Object(given) = value else {
        return Err(format!("{name:?} must be a table with {}, not {value}", list()).into());
    };
    let members = key.members();
    let known: Vec<&str> = members.iter().flat_map(Member::names).collect();
    for (member, value) in given {
        let Some(Member { kind, placeholders, .. }) =
            members.iter().find(|known| known.names().any(|name| name == member))
        else {
            let hint = did_you_mean(member, known);
            let known = then(&hint, &format!("its members are {}", list()));
            return Err(format!("{name:?} has no member {member:?}{known}").into());
        };
        let fits = match kind {
            MemberKind::String | MemberKind::File => value.as_str().is_some_and(|text| !text.is_empty()),
            MemberKind::Object => value.is_object(),
            MemberKind::Integer => value.is_u64(),
            MemberKind::Empty => value.as_object().is_some_and(serde_json::Map::is_empty),
            MemberKind::Pointer => value.as_str().is_some_and(|text| text.starts_with('/')),
            MemberKind::Any => true,
        };
        if !fits {
            return Err(format!("{member:?} of {name:?} must be {}, not {value}", described(*kind)).into());
        }
        if !placeholders.is_empty() {
            check_template(value, placeholders)
                .map_err(|error| format!("{member:?} of {name:?}: {error}"))?;
        }
    }
    let count = |member: &Member| member.names().filter(|name| given.contains_key(*name)).count();
    for member in members {
        match (member.alternative, count(member)) {
            (Some(_), 1) | (None, 1..) => {}
            (Some(other), _) => {
                let words = format!("{} or {other}", member.name);
                return Err(
                    format!("{name:?} must have either {words}; it is a table with {}", list()).into()
                );
            }
            (None, 0) if member.is_required => {
                return Err(
                    format!("{name:?} has no {:?}; it is a table with {}", member.name, list()).into()
                );
            }
            (None, 0) => {}
        }
    }
    Ok(())
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

fn described(kind: MemberKind) -> &'static str {
    match kind {
        MemberKind::Any => "any value",
        MemberKind::String => "a string that is not empty",
        MemberKind::File => "the path of a file",
        MemberKind::Object => "a table",
        MemberKind::Integer => "a whole number",
        MemberKind::Empty => "an empty table: checks call this method without params",
        MemberKind::Pointer => "a JSON Pointer such as \"/token_id\"",
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
