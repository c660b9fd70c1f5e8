//! Canonical text of values, to compare answers of several peers.

use std::collections::BTreeMap;

use crate::data::json::Json;

/// Maximum nesting; deeper values are cut.
const DEPTH_MAX: u32 = 64;

/// Canonical text of a JSON value: members sorted by name, numbers spelled by value.
pub fn canonical(value: &Json) -> String {
    let mut out = String::new();
    write_canonical(value, DEPTH_MAX, &mut out);
    out
}

fn write_canonical(value: &Json, depth: u32, out: &mut String) {
    match value {
        Json::Array(_) | Json::Object(_) if depth == 0 => out.push('…'),
        Json::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                write_canonical(item, depth - 1, out);
            }
            out.push(']');
        }
        Json::Object(members) => {
            // The last of several members with one name counts.
            let sorted: BTreeMap<&str, &Json> =
                members.iter().map(|(name, value)| (name.as_str(), value)).collect();
            out.push('{');
            for (at, (name, value)) in sorted.into_iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                out.push_str(&Json::from(name).to_text());
                out.push(':');
                write_canonical(value, depth - 1, out);
            }
            out.push('}');
        }
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => out.push_str(&integer.to_string()),
            (None, Some(float)) if !number.is_integral() => out.push_str(&float.to_string()),
            _ => out.push_str(number.text()),
        },
        other => out.push_str(&other.to_text()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presentation_makes_no_difference() {
        let canonical = |text: &str| canonical(&text.parse().unwrap());
        assert_eq!(canonical(r#"{"b":1.0,"a":[1e2,0.50]}"#), canonical(r#"{"a":[100,0.5],"b":1}"#));
        assert_ne!(canonical("9007199254740993"), canonical("9007199254740992"));
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(canonical(&deep).len() < 300);
    }
}
