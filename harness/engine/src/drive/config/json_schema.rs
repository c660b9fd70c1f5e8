//! JSON Schema of `peerproof.toml`, for editors that complete and check it.

use serde_json::{Map, Value, json};

use super::vocabulary::keys;
use crate::contract::boundary::{Boundary, ConfigKey, KeyForm, Member, MemberKind};
use crate::data::carriage::HTTP;
use crate::drive::transport::http::URL_PREFIX;

/// Schema of a configuration for a peer of one of `boundaries`, in the dialect of 2020-12.
///
/// The value of `boundary` under `[peer]` selects the keys that a file may hold.
pub fn json_schema(boundaries: &[&'static dyn Boundary]) -> Value {
    let names: Vec<&str> = boundaries.iter().map(|boundary| boundary.name()).collect();
    let choose = |name: &&str| {
        json!({
            "if": {
                "required": ["peer"],
                "properties": { "peer": {
                    "required": ["boundary"], "properties": { "boundary": { "const": name } },
                } },
            },
            "then": { "$ref": format!("#/$defs/{name}") },
        })
    };
    let definitions: Map<String, Value> =
        boundaries.iter().map(|boundary| (boundary.name().to_owned(), file_of(*boundary))).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "peerproof.toml",
        "description": "Configuration of a peer under test",
        "type": "object",
        "required": ["peer"],
        "properties": { "peer": {
            "type": "object", "required": ["boundary"], "properties": { "boundary": { "enum": names } },
        } },
        "allOf": names.iter().map(choose).collect::<Vec<_>>(),
        "$defs": definitions,
    })
}

fn file_of(boundary: &dyn Boundary) -> Value {
    let mut tables: Map<String, Value> = Map::new();
    for key in keys(boundary) {
        let table = tables
            .entry(key.table())
            .or_insert_with(|| json!({ "type": "object", "additionalProperties": false, "properties": {} }));
        let mut value = value_of(&key);
        if let Value::Object(schema) = &mut value {
            schema.insert("description".to_owned(), Value::from(key.meaning));
        }
        table["properties"][key.name] = value;
    }
    json!({ "additionalProperties": false, "properties": tables })
}

fn value_of(key: &ConfigKey) -> Value {
    match key.form {
        KeyForm::General(words) => general(key.name, words),
        KeyForm::Command(_) if key.name == HTTP => json!({ "anyOf": [strings(), http()] }),
        KeyForm::Command(_) => strings(),
        KeyForm::Switch => flag(),
        KeyForm::Words(words) => {
            let word = json!({ "enum": words });
            json!({ "anyOf": [flag(), word, { "type": "array", "items": word }] })
        }
        KeyForm::Settings(members) | KeyForm::OptionalTable(members) => {
            json!({ "anyOf": [flag(), table_of(members)] })
        }
        KeyForm::Checked => json!({}),
        KeyForm::Role(members) => table_of(members),
        KeyForm::Choice(words) => one_of(words),
        KeyForm::Limit(lowest) => json!({ "type": "integer", "minimum": lowest }),
    }
}

fn general(name: &str, words: &[&str]) -> Value {
    match name {
        "env" => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        "pass_env" => strings(),
        _ if words.is_empty() => json!({ "type": "string" }),
        _ => json!({ "type": "string", "enum": words }),
    }
}

fn flag() -> Value {
    json!({ "type": "boolean" })
}

fn strings() -> Value {
    json!({ "type": "array", "items": { "type": "string" } })
}

/// Schema of an HTTP server that the harness starts, or that already runs at `url`.
fn http() -> Value {
    let text = json!({ "type": "string", "minLength": 1 });
    let mut command = strings();
    command["minItems"] = Value::from(1);
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "command": command,
            "url": { "type": "string", "pattern": format!("^{URL_PREFIX}") },
            "ready": {
                "type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": false,
                "properties": {
                    "stdout": text, "stderr": text, "get": { "type": "string", "pattern": "^/[!-~]*$" },
                },
            },
        },
    })
}

fn table_of(members: &[Member]) -> Value {
    let properties: Map<String, Value> = members
        .iter()
        .flat_map(|member| member.names().map(|name| (name.to_owned(), of_kind(member.kind))))
        .collect();
    let is_alone = |member: &&Member| member.alternative.is_none();
    let required: Vec<&str> = members
        .iter()
        .filter(is_alone)
        .filter(|member| member.is_required)
        .map(|member| member.name)
        .collect();
    let either: Vec<Value> = members
        .iter()
        .filter(|member| !is_alone(member))
        .map(|member| {
            let each = member.names().map(|name| json!({ "required": [name] }));
            json!({ "oneOf": each.collect::<Vec<_>>() })
        })
        .collect();
    let mut table = json!({
        "type": "object", "additionalProperties": false, "properties": properties, "required": required,
    });
    if !either.is_empty() {
        table["allOf"] = Value::from(either);
    }
    table
}

fn of_kind(kind: MemberKind) -> Value {
    match kind {
        MemberKind::String | MemberKind::File => json!({ "type": "string", "minLength": 1 }),
        MemberKind::Object => json!({ "type": "object" }),
        MemberKind::Integer => json!({ "type": "integer", "minimum": 0 }),
        MemberKind::Empty => json!({ "type": "object", "maxProperties": 0 }),
        MemberKind::Pointer => json!({ "type": "string", "pattern": "^/" }),
        MemberKind::Any => json!({}),
    }
}

/// Schema of one of these words. TOML may spell a number or a boolean among them without quotes.
fn one_of(words: &[&str]) -> Value {
    if words.is_empty() {
        return json!({});
    }
    let bare = words.iter().filter_map(|word| serde_json::from_str::<Value>(word).ok());
    let all: Vec<Value> = words.iter().map(|word| Value::from(*word)).chain(bare).collect();
    json!({ "enum": all })
}
