//! Puts values into the payload of a role, where its inputs have another: what a driver copies to its patch comes from
//! there.

use super::super::request::Request;
use crate::json::Json;

/// Stands for the value while the text is made.
const MARK: &str = "\u{E000}peerproof\u{E000}";

/// The text of the payload with `value`, a JSON text, where the inputs have their first string or number; `None` where
/// they have none.
///
/// Those below other objects come first: a driver copies objects rather than what tells it to.
pub fn with_leaf(request: &Request, value: &str) -> Option<String> {
    let mut marked = request.0.clone();
    let inputs = marked.get_mut("inputs")?;
    *deepest(inputs)? = Json::from(MARK);
    Some(marked.to_text().replace(&format!("\"{MARK}\""), value))
}

/// The first string or number, that of an object below before that of this one.
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
}
