//! Sample values for schemas of tools: valid ones, and ones with a single fault.

use serde_json::{Value, json};

use super::model::arguments::{self, Fits};
use peerproof_engine::data::free_data;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::rng::Rng;
use peerproof_engine::data::schema::sample;

/// Valid arguments for a tool; with `all` including its optional members. `None` if none can be built.
pub(crate) fn valid(tool: &Value, all: bool) -> Option<Value> {
    let schema = &tool["inputSchema"];
    let value = sample(schema, schema, all)?;
    fits(tool, &value, Fits::Yes).then_some(value)
}

/// Arguments with one certain fault each, with a word for it.
pub(crate) fn invalid(tool: &Value) -> Vec<(String, Value)> {
    let schema = &tool["inputSchema"];
    let Some(good) = valid(tool, false).filter(Value::is_object) else { return Vec::new() };
    let mut found = Vec::new();
    for name in arguments::required(tool) {
        let mut bad = good.clone();
        if let Value::Object(members) = &mut bad {
            members.remove(name);
        }
        found.push((format!("without {name:?}"), bad));
    }
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        let wrong = [json!("peerproof"), json!(7.5), json!([{}]), json!({ "peerproof": 1 }), json!(true)];
        for value in wrong {
            let mut bad = good.clone();
            bad[name] = value;
            if member.get("type").is_some() && fits(tool, &bad, Fits::No) {
                found.push((format!("{name:?} of a wrong type"), bad));
                break;
            }
        }
        if member.get("enum").is_some() {
            let mut bad = good.clone();
            bad[name] = json!("peerproof-none");
            found.push((format!("{name:?} out of its set"), bad));
        }
    }
    found.retain(|(_, bad)| fits(tool, bad, Fits::No));
    found
}

/// Largest bound that is exceeded. Larger values cost time and memory and prove nothing more.
const BOUND_MAX: i64 = 10_000;

/// Arguments with one member beyond a bound each.
pub(crate) fn beyond(tool: &Value) -> Vec<Value> {
    let Some(good) = valid(tool, false).filter(Value::is_object) else { return Vec::new() };
    let mut found = Vec::new();
    for (name, member) in tool["inputSchema"]["properties"].as_object().into_iter().flatten() {
        let bound = |key: &str, by: i64| {
            let bound = member[key].as_f64().map(|bound| bound as i64 + by);
            bound.filter(|bound| bound.abs() <= BOUND_MAX)
        };
        let length = |key: &str, by| bound(key, by).and_then(|length| usize::try_from(length).ok());
        let numbers = [("minimum", -1), ("maximum", 1), ("exclusiveMinimum", 0), ("exclusiveMaximum", 0)];
        let numbers = numbers.into_iter().filter_map(|(key, by)| bound(key, by)).map(Value::from);
        let lengths =
            [("minLength", -1), ("maxLength", 1)].into_iter().filter_map(|(key, by)| length(key, by));
        let texts = lengths.map(|length| json!("x".repeat(length)));
        let counts = [("minItems", -1), ("maxItems", 1)].into_iter().filter_map(|(key, by)| length(key, by));
        let item = next_item(member, &tool["inputSchema"]);
        let items = counts.map(|count| Value::Array(vec![item.clone(); count]));
        for value in numbers.chain(texts).chain(items) {
            let mut bad = good.clone();
            bad[name] = value;
            if !fits(tool, &bad, Fits::Yes) {
                found.push(bad);
            }
        }
    }
    found
}

/// An item of an array.
fn next_item(array: &Value, root: &Value) -> Value {
    array.get("items").and_then(|items| sample(items, root, false)).unwrap_or_else(|| json!(1))
}

/// Valid arguments with one text that is long, nested, or easily damaged.
pub(crate) fn unusual(tool: &Value, rng: &mut Rng) -> Option<Value> {
    let mut arguments = valid(tool, true)?;
    let texts = arguments.as_object_mut()?.iter_mut().filter(|(_, value)| value.is_string());
    let mut texts: Vec<&mut Value> = texts.map(|(_, value)| value).collect();
    let at = rng.below(texts.len().max(1) as u64) as usize;
    **texts.get_mut(at)? = match rng.below(4) {
        0 => json!("x".repeat(1_usize << rng.below(18))),
        1 => json!("[".repeat(1_usize << rng.below(12))),
        _ => free_data::string(rng).to_text().parse().ok()?,
    };
    Some(arguments)
}

fn fits(tool: &Value, value: &Value, wanted: Fits) -> bool {
    let Ok(value) = value.to_string().parse::<Json>() else { return false };
    arguments::fit(tool, &value) == wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_made_of_schemas() {
        let tool = json!({ "name": "t", "inputSchema": {
            "type": "object",
            "properties": {
                "a": { "type": "integer", "minimum": 3 },
                "b": { "$ref": "#/$defs/b" },
                "c": { "anyOf": [{ "type": "string", "minLength": 20 }, { "type": "null" }] },
                "d": { "type": "array", "items": { "type": "number" }, "minItems": 2 },
                "e": { "type": "boolean" },
            },
            "required": ["a", "b", "c", "d"],
            "$defs": { "b": { "enum": ["x", "y"] } },
        }});
        let good = valid(&tool, false).unwrap();
        assert_eq!(good["a"], 3);
        assert_eq!(good["b"], "x");
        assert!(good.get("e").is_none() && valid(&tool, true).unwrap()["e"] == false);
        let bad = invalid(&tool);
        assert!(bad.len() >= 7, "{bad:?}");
        assert!(bad.iter().any(|(what, _)| what == "without \"a\""));
    }

    #[test]
    fn bounds_are_crossed_one_by_one() {
        let tool = json!({ "inputSchema": { "type": "object", "properties": {
            "n": { "type": "integer", "minimum": 0, "maximum": 9 },
            "s": { "type": "string", "maxLength": 3 },
            "a": { "type": "array", "items": { "type": "boolean" }, "maxItems": 1 },
            "far": { "type": "integer", "maximum": 3_600_000 },
        }}});
        let mut beyond: Vec<String> = beyond(&tool).iter().map(Value::to_string).collect();
        beyond.sort();
        assert_eq!(beyond, [r#"{"a":[false,false]}"#, r#"{"n":-1}"#, r#"{"n":10}"#, r#"{"s":"xxxx"}"#]);
        let unusual = unusual(&tool, &mut Rng::new(1)).unwrap();
        assert!(unusual["s"].is_string() && unusual["n"] == 1, "{unusual}");
    }

    #[test]
    fn a_schema_that_nobody_can_fill_gives_nothing() {
        let pattern = json!({ "inputSchema": {
            "type": "object",
            "properties": { "a": { "type": "string", "pattern": "^z{7}$" } },
            "required": ["a"],
        }});
        assert_eq!(valid(&pattern, false), None);
        assert!(invalid(&pattern).is_empty());
    }
}
