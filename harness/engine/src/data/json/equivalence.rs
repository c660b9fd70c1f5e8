//! Comparison of a value before and after its way through a peer.

use std::collections::BTreeSet;

use super::Json;

/// True if `came` equals `sent`, allowing for a peer that keeps large numbers and fractions as doubles. The last of
/// several members with one name counts.
pub fn is_kept(sent: &Json, came: &Json) -> bool {
    let mut pending = vec![(sent, came)];
    while let Some((sent, came)) = pending.pop() {
        match (sent, came) {
            (Json::Object(sent), Json::Object(members)) => {
                let names: BTreeSet<&str> = sent.iter().map(|(name, _)| name.as_str()).collect();
                let own: BTreeSet<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
                if names != own {
                    return false;
                }
                for name in names {
                    let last = |of: &Vec<(String, Json)>| of.iter().rposition(|(key, _)| key == name);
                    if let (Some(at), Some(to)) = (last(sent), last(members)) {
                        pending.push((&sent[at].1, &members[to].1));
                    }
                }
            }
            (Json::Array(sent), Json::Array(items)) if sent.len() == items.len() => {
                pending.extend(sent.iter().zip(items));
            }
            (Json::Number(sent), Json::Number(number)) => {
                let is_rounded = || match sent.as_f64() {
                    Some(nearest) => {
                        (sent.is_big() || !sent.is_integral()) && number.as_f64() == Some(nearest)
                    }
                    // Beyond the range of doubles, the largest double is the nearest.
                    None => number.as_f64().is_some_and(|it| it.abs() == f64::MAX),
                };
                if sent != number && !is_rounded() {
                    return false;
                }
            }
            // A number beyond the range of doubles may become null.
            (Json::Number(sent), Json::Null) if sent.is_beyond_double() => {}
            (Json::Null, Json::Null) => {}
            (Json::Bool(sent), Json::Bool(came)) if sent == came => {}
            (Json::String(sent), Json::String(came)) if sent == came => {}
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_told_from_what_was_changed() {
        let same = |sent: &str, came: &str| is_kept(&sent.parse().unwrap(), &came.parse().unwrap());
        assert!(same("{\"a\":[1,2.50],\"b\":null}", "{\"b\":null,\"a\":[1.0,25e-1]}"));
        assert!(same("9007199254740993", "9007199254740992"));
        assert!(!same("9007199254740991", "9007199254740992"));
        assert!(same("0.1234567890123456", "0.12345678901234559") && same("-1e-300", "-0.1e-299"));
        assert!(!same("0.1234567890123456", "0.1234568") && !same("1e-300", "0") && !same("0.5", "1"));
        assert!(!same("{\"a\":null}", "{}"));
        assert!(!same("\"1\"", "1"));
        assert!(same("1e999", "1e999") && same("1e999", "null") && same("1e999", "1.7976931348623157e308"));
        assert!(!same("{\"e\u{301}\":1}", "{\"\u{e9}\":1}"));
        assert!(!same("1e999", "\"Infinity\"") && !same("1e999", "1"));
    }
}
