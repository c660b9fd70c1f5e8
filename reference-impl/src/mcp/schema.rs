//! The parts of JSON Schema that the tools of the reference use.

use crate::json::Value;

/// Reason why `value` violates `schema`; `None` if it is valid. `at` names the value.
pub(super) fn fault(schema: &Value, value: &Value, at: &str) -> Option<String> {
    if let Some(name) = schema.get("type").and_then(Value::as_str)
        && !is_of_type(value, name)
    {
        return Some(format!("{at} is not of type {name}"));
    }
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array)
        && !allowed.contains(value)
    {
        return Some(format!("{at} has none of the allowed values"));
    }
    if schema.get("const").is_some_and(|only| only != value) {
        return Some(format!("{at} has not the allowed value"));
    }
    let bound = |name: &str| schema.get(name).and_then(Value::as_i64);
    match value {
        Value::Number(number) => {
            let number = number.as_i64().unwrap_or(i64::MAX);
            if bound("minimum").is_some_and(|bound| number < bound)
                || bound("maximum").is_some_and(|bound| number > bound)
            {
                return Some(format!("{at} is out of range"));
            }
        }
        Value::String(text) => {
            let length = i64::try_from(text.to_lossy().chars().count()).unwrap_or(i64::MAX);
            if bound("maxLength").is_some_and(|bound| length > bound) {
                return Some(format!("{at} is too long"));
            }
        }
        _ => {}
    }
    let members = value.as_object()?;
    for name in schema.get("required").and_then(Value::as_array).unwrap_or_default() {
        let name = name.as_str().unwrap_or_default();
        if value.get(name).is_none() {
            return Some(format!("{at}.{name} is missing"));
        }
    }
    let properties = schema.get("properties");
    for (name, value) in members {
        let name = name.to_lossy();
        match properties.and_then(|properties| properties.get(&name)) {
            Some(schema) => {
                if let Some(fault) = fault(schema, value, &format!("{at}.{name}")) {
                    return Some(fault);
                }
            }
            None if schema.get("additionalProperties") == Some(&Value::Bool(false)) => {
                return Some(format!("{at}.{name} is not known"));
            }
            None => {}
        }
    }
    None
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.as_object().is_some(),
        "array" => value.as_array().is_some(),
        "string" => value.as_text().is_some(),
        "boolean" => value.as_bool().is_some(),
        "null" => *value == Value::Null,
        "integer" => {
            value.as_i64().is_some()
                || matches!(value, Value::Number(number) if !number.as_str().contains(['.', 'e', 'E']))
        }
        _ => matches!(value, Value::Number(_)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Policy;

    #[test]
    fn faults_are_found() {
        let parse = |text: &str| Value::parse(text.as_bytes(), 9, &Policy::default()).unwrap();
        let schema = parse(
            r#"{"type":"object","properties":{"a":{"type":"integer","minimum":1,"maximum":3},"b":{"enum":["x"]},
                "c":{"type":"string","maxLength":2},"d":{"const":1}},"required":["a"],"additionalProperties":false}"#,
        );
        for (value, is_right) in [
            (r#"{"a":1}"#, true),
            (r#"{"a":1.0,"b":"x","c":"éé","d":1}"#, true),
            ("{}", false),
            ("[]", false),
            (r#"{"a":"1"}"#, false),
            (r#"{"a":1.5}"#, false),
            (r#"{"a":0}"#, false),
            (r#"{"a":4}"#, false),
            (r#"{"a":1,"b":"y"}"#, false),
            (r#"{"a":1,"c":"abc"}"#, false),
            (r#"{"a":1,"d":2}"#, false),
            (r#"{"a":1,"e":2}"#, false),
        ] {
            assert_eq!(fault(&schema, &parse(value), "arguments").is_none(), is_right, "{value}");
        }
    }
}
