//! Replaces values in the payload of a role: one in its inputs, which a driver copies to its patch, or each of its
//! strings.

use super::super::request::Request;
use peerproof_engine::data::json::Json;

/// Marks the place of the value during the replacement.
const MARK: &str = "\u{E000}peerproof\u{E000}";

/// Text of the payload with the JSON text `value` instead of the first string or number of its inputs. `None` if
/// there is none.
///
/// Nested values come first, because a driver copies objects rather than its own instructions.
pub(crate) fn with_leaf(request: &Request, value: &str) -> Option<String> {
    let mut marked = request.0.clone();
    let inputs = marked.get_mut("inputs")?;
    *deepest(inputs)? = Json::from(MARK);
    Some(marked.to_text().replace(&format!("\"{MARK}\""), value))
}

/// Most strings of a payload that are replaced one by one; those of the inputs come first.
const PLACES_MAX: usize = 24;

/// Texts of the payload, each with the JSON text `value` instead of one string. SIDs and the control mode stay.
pub(crate) fn with_each_string(request: &Request, value: &str) -> Vec<String> {
    let mut texts = Vec::new();
    for in_inputs in [true, false] {
        for place in 0..PLACES_MAX {
            let mut marked = request.0.clone();
            let mut left = place;
            let members = marked.as_object_mut().into_iter().flatten();
            let mut chosen = members.filter(|(name, _)| (name == "inputs") == in_inputs);
            if !chosen.any(|(name, value)| mark(name, value, &mut left)) {
                break;
            }
            texts.push(marked.to_text().replace(&format!("\"{MARK}\""), value));
        }
    }
    texts.truncate(PLACES_MAX);
    texts
}

/// Marks the string with index `left`.
fn mark(name: &str, value: &mut Json, left: &mut usize) -> bool {
    match value {
        Json::String(_) if name == "sid" || name == "control_mode" => false,
        Json::String(_) if *left == 0 => {
            *value = Json::from(MARK);
            true
        }
        Json::String(_) => {
            *left -= 1;
            false
        }
        Json::Array(items) => items.iter_mut().any(|item| mark("", item, left)),
        Json::Object(members) => members.iter_mut().any(|(name, value)| mark(name, value, left)),
        _ => false,
    }
}

/// First string or number; that of a nested object comes first.
fn deepest(value: &mut Json) -> Option<&mut Json> {
    fn path(value: &Json) -> Option<Vec<String>> {
        let members = value.as_object()?;
        let below = members.iter().find_map(|(name, value)| {
            let mut rest = path(value)?;
            rest.insert(0, name.clone());
            Some(rest)
        });
        let is_leaf = |value: &Json| matches!(value, Json::String(_) | Json::Number(_));
        below.or_else(|| members.iter().find(|(_, value)| is_leaf(value)).map(|(name, _)| vec![name.clone()]))
    }
    let mut at = value;
    for name in path(at)? {
        at = at.get_mut(&name)?;
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::super::super::request::Entry;
    use super::*;

    #[test]
    fn the_deepest_leaf_is_replaced() {
        let request = Request::plain().inputs(r#"{"query":"q","patch":{"n":null,"k":"v"}}"#);
        let text = with_leaf(&request, "1e400").unwrap();
        assert!(text.contains(r#""inputs":{"query":"q","patch":{"n":null,"k":1e400}}"#), "{text}");
        let text = with_leaf(&Request::plain(), r#""\ud800""#).unwrap();
        assert!(text.contains(r#""inputs":{"query":"\ud800"}"#), "{text}");
        assert_eq!(with_leaf(&Request::plain().inputs("{}"), "1"), None);
    }

    #[test]
    fn each_string_is_replaced_once_but_for_sids_and_the_mode() {
        let request = Request::of(&[Entry::plain(7)]).inputs(r#"{"a":["x",{"b":"y"}],"n":1}"#);
        let texts = with_each_string(&request, "!");
        // Two in the inputs, two digests, aid, name and one tag.
        assert_eq!(texts.len(), 7, "{texts:#?}");
        assert!(texts[0].contains(r#""inputs":{"a":[!,{"b":"y"}],"n":1}"#), "{}", texts[0]);
        assert!(texts[6].contains(r#""tags":[!]"#), "{}", texts[6]);
        assert!(texts.iter().all(|text| text.matches('!').count() == 1), "{texts:#?}");
    }
}
