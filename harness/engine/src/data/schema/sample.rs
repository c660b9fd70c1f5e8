//! Sample values of a JSON Schema.

use serde_json::{Map, Value, json};

/// Maximum depth of nested schemas.
const DEPTH_MAX: usize = 6;

/// Sample value of a schema whose references point into `root`. `all` includes optional members of objects. The sample
/// may violate keywords that this function ignores.
pub fn sample(schema: &Value, root: &Value, all: bool) -> Option<Value> {
    nested(schema, root, all, 0)
}

fn nested(schema: &Value, root: &Value, all: bool, depth: usize) -> Option<Value> {
    if depth > DEPTH_MAX {
        return None;
    }
    let next = |schema: &Value| nested(schema, root, all, depth + 1);
    if let Some(path) = schema["$ref"].as_str() {
        return next(root.pointer(path.strip_prefix('#')?)?);
    }
    if let Some(value) = schema.get("const") {
        return Some(value.clone());
    }
    if let Some(value) = schema["enum"].as_array().and_then(|values| values.first()) {
        return Some(value.clone());
    }
    if let Some(value) = schema.get("default").filter(|value| !value.is_null()) {
        return Some(value.clone());
    }
    for name in ["anyOf", "oneOf"] {
        if let Some(branches) = schema[name].as_array() {
            return branches.iter().find_map(next);
        }
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ if schema.get("properties").is_some() => vec!["object"],
        _ => vec!["string"],
    };
    let number = |name: &str| schema[name].as_f64();
    match *types.first()? {
        "object" => {
            let required: Vec<&str> =
                schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let mut members = Map::new();
            for (name, member) in schema["properties"].as_object().into_iter().flatten() {
                let is_needed = required.contains(&name.as_str());
                match next(member) {
                    Some(value) if is_needed || all => {
                        members.insert(name.clone(), value);
                    }
                    None if is_needed => return None,
                    _ => {}
                }
            }
            Some(Value::Object(members))
        }
        "array" => {
            let least = schema["minItems"].as_u64().unwrap_or(0).min(10);
            let item = schema.get("items").map_or(Some(json!(1)), next);
            (0..least).map(|_| item.clone()).collect::<Option<Vec<Value>>>().map(Value::Array)
        }
        "boolean" => Some(json!(false)),
        "integer" => {
            let least = number("minimum").or(number("exclusiveMinimum").map(|least| least + 1.0));
            let most = number("maximum").or(number("exclusiveMaximum").map(|most| most - 1.0));
            let value = least.map_or(1.0, f64::ceil).max(1.0_f64.min(most.unwrap_or(1.0)));
            Some(json!(value as i64))
        }
        "number" => {
            let least = number("minimum").or(number("exclusiveMinimum").map(|least| least + 0.5));
            let most = number("maximum").or(number("exclusiveMaximum").map(|most| most - 0.5));
            Some(json!(least.unwrap_or(1.0).max(1.0_f64.min(most.unwrap_or(1.0)))))
        }
        "string" => Some(json!(text(schema))),
        "null" => Some(Value::Null),
        _ => None,
    }
}

/// Sample string of a schema.
fn text(schema: &Value) -> String {
    let text = match schema["format"].as_str() {
        Some("date") => "2025-01-02",
        Some("date-time") => "2025-01-02T03:04:05Z",
        Some("time") => "03:04:05Z",
        Some("uri" | "url" | "uri-reference") => "https://example.com/",
        Some("email") => "a@example.com",
        Some("uuid") => "123e4567-e89b-12d3-a456-426614174000",
        _ => "peerproof",
    };
    let least = schema["minLength"].as_u64().map_or(0, |least| least.min(10_000) as usize);
    let mut text = text.to_owned();
    while text.len() < least {
        text.push('x');
    }
    if let Some(most) = schema["maxLength"].as_u64().and_then(|most| usize::try_from(most).ok()) {
        text.truncate(most);
    }
    text
}
