//! JSON Schema of `peerproof.toml`, for editors that complete and check it.

use serde_json::{Map, Value, json};

use super::vocabulary::{Member, is_general, is_worded, keys, lowest, members};
use crate::contract::boundary::{Boundary, ConfigKey};
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
            .entry(key.table)
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
    match key.table {
        "peer" if is_general(key.name) => general(key),
        "peer" if key.name == HTTP => json!({ "anyOf": [strings(), http()] }),
        "peer" => strings(),
        "features" => feature(key),
        "roles" => table_of(key),
        "limits" => json!({ "type": "integer", "minimum": lowest(key) }),
        _ => one_of(key.values),
    }
}

fn general(key: &ConfigKey) -> Value {
    match key.name {
        "env" => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        "pass_env" => strings(),
        _ if key.values.is_empty() => json!({ "type": "string" }),
        _ => json!({ "type": "string", "enum": key.values }),
    }
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

fn feature(key: &ConfigKey) -> Value {
    if key.is_setting() {
        return json!({});
    }
    let mut forms = vec![json!({ "type": "boolean" })];
    if is_worded(key) {
        let word = json!({ "enum": key.values });
        forms.push(word.clone());
        forms.push(json!({ "type": "array", "items": word }));
    }
    if !key.members.is_empty() {
        forms.push(table_of(key));
    }
    if forms.len() == 1 { forms.remove(0) } else { json!({ "anyOf": forms }) }
}

fn table_of(key: &ConfigKey) -> Value {
    let members = members(key);
    let properties: Map<String, Value> = members
        .iter()
        .flat_map(|member| member.names.iter().map(|name| ((*name).to_owned(), of_kind(member))))
        .collect();
    let is_alone = |member: &&Member| member.names.len() == 1;
    let required: Vec<&str> = members
        .iter()
        .filter(is_alone)
        .filter(|member| member.is_required)
        .map(|member| member.names[0])
        .collect();
    let either: Vec<Value> = members
        .iter()
        .filter(|member| !is_alone(member))
        .map(|member| {
            let each = member.names.iter().map(|name| json!({ "required": [name] }));
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

fn of_kind(member: &Member) -> Value {
    match member.kind {
        "string" | "file" => json!({ "type": "string", "minLength": 1 }),
        "object" => json!({ "type": "object" }),
        "integer" => json!({ "type": "integer", "minimum": 0 }),
        "empty" => json!({ "type": "object", "maxProperties": 0 }),
        "pointer" => json!({ "type": "string", "pattern": "^/" }),
        _ => json!({}),
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
