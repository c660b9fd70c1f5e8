//! Smaller variants of a step's payload that only this boundary can make: fewer lines, and smaller messages whose
//! signature covers another text.

use super::{client, generate};
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::payload::{Payload, Vars};
use peerproof_engine::data::plan::{Act, Plan};
use peerproof_engine::run::shrink::simpler;

/// Placeholder before the text that was signed instead.
const SIGNATURE_OF: &str = "@signature-of:";

/// Smaller variants of step `at`, most promising first.
pub(crate) fn variants(plan: &Plan, at: usize) -> Vec<Plan> {
    if plan.steps.get(at).is_some_and(|step| matches!(step.act, Act::Play { .. })) {
        return client::shrink::variants(plan, at);
    }
    let mut variants = generate::variants(plan, at);
    let Some(Act::Send { payload, .. }) = plan.steps.get(at).map(|step| &step.act) else { return variants };
    let text = payload.expand(&Vars::new()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    // Decoding is skipped for texts without these placeholders.
    let Some(text) = text.filter(|text| text.contains(SIGNATURE_OF) || text.contains("@gzip")) else {
        return variants;
    };
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    for (index, line) in lines.iter().enumerate() {
        let Ok(decoded) = json::decode(line.as_bytes(), &DecodeLimits::default()) else { continue };
        let ending = if line.ends_with('\n') { "\n" } else { "" };
        for smaller in smaller(&decoded.value) {
            let changed =
                [&lines[..index].concat(), &smaller.to_text(), ending, &lines[index + 1..].concat()].concat();
            let mut variant = plan.clone();
            if let Act::Send { payload, .. } = &mut variant.steps[at].act {
                *payload = Payload::text(changed);
            }
            variants.push(variant);
        }
    }
    variants
}

/// Smaller messages with the same kind of signature.
fn smaller(message: &Json) -> Vec<Json> {
    let signed = message.pointer("/auth/signature").and_then(Json::as_str);
    if let Some(other) = signed.and_then(|word| word.strip_prefix(SIGNATURE_OF)?.parse::<Json>().ok()) {
        return together(message, &other);
    }
    let body = message.get("body").and_then(Json::as_str);
    let Some((word, inner)) =
        body.filter(|body| body.starts_with("@gzip")).and_then(|body| body.split_once(':'))
    else {
        return Vec::new();
    };
    let Ok(inner) = inner.parse::<Json>() else { return Vec::new() };
    let with = |inner: &Json| {
        let mut message = message.clone();
        message.set("body", format!("{word}:{}", inner.to_text()));
        message
    };
    simpler(&inner).iter().map(with).collect()
}

/// One step of a path into a value.
#[derive(Debug, Clone)]
enum PathStep {
    Member(String),
    Element(usize),
}

/// Removes parts that a message and the text signed instead have in common. Their difference stays.
fn together(message: &Json, other: &Json) -> Vec<Json> {
    let mut paths = Vec::new();
    let mut queue = std::collections::VecDeque::from([(Vec::new(), message, other)]);
    while let Some((path, one, two)) = queue.pop_front() {
        let mut each = |way: PathStep, one: &'_ Json, two: &'_ Json| {
            let mut path: Vec<PathStep> = path.clone();
            path.push(way);
            if one == two {
                paths.push(path.clone());
            }
            path
        };
        match (one, two) {
            (Json::Object(members), Json::Object(_)) => {
                for (name, value) in members.iter().filter(|(name, _)| !path.is_empty() || name != "auth") {
                    if let Some(beside) = two.get(name) {
                        queue.push_back((each(PathStep::Member(name.clone()), value, beside), value, beside));
                    }
                }
            }
            (Json::Array(items), Json::Array(others)) => {
                for (at, (item, beside)) in items.iter().zip(others).enumerate() {
                    queue.push_back((each(PathStep::Element(at), item, beside), item, beside));
                }
            }
            _ => {}
        }
    }
    let mut out = Vec::new();
    for path in paths {
        for change in [None, Some("")] {
            let (mut smaller, mut signed) = (message.clone(), other.clone());
            if !changed(&mut smaller, &path, change) || !changed(&mut signed, &path, change) {
                continue;
            }
            let word = format!("{SIGNATURE_OF}{}", signed.to_text());
            if let Some(auth) = smaller.get_mut("auth") {
                auth.set("signature", word);
                out.push(smaller);
            }
        }
    }
    out
}

/// Removes the value at `path`, or replaces its text by a shorter one. Returns true if something changed.
fn changed(value: &mut Json, path: &[PathStep], text: Option<&str>) -> bool {
    let Some((last, before)) = path.split_last() else { return false };
    let mut place = value;
    for way in before {
        let next = match (place, way) {
            (value @ Json::Object(_), PathStep::Member(name)) => value.get_mut(name),
            (Json::Array(items), PathStep::Element(at)) => items.get_mut(*at),
            _ => None,
        };
        let Some(next) = next else { return false };
        place = next;
    }
    match (place, last, text) {
        (value @ Json::Object(_), PathStep::Member(name), None) => value.remove(name).is_some(),
        (Json::Array(items), PathStep::Element(at), None) if *at < items.len() => {
            items.remove(*at);
            true
        }
        (value @ Json::Object(_), PathStep::Member(name), Some(text)) => {
            let is_longer = value.get(name).and_then(Json::as_str).is_some_and(|old| old.len() > text.len());
            if is_longer {
                value.set(name, text);
            }
            is_longer
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::talk::quoted;
    use super::*;

    #[test]
    fn what_two_messages_share_goes_from_both() {
        let other = r#"{"method":"m","params":{"a":1,"b":[2]},"id":1,"auth":{"nonce":"@nonce:a"}}"#;
        let text = format!(
            r#"{{"method":"m","params":{{"a":1,"b":[2]}},"id":1,"note":1,"auth":{{"nonce":"@nonce:a","signature":{}}}}}"#,
            quoted(&format!("{SIGNATURE_OF}{other}"))
        );
        let all = smaller(&text.parse().unwrap());
        assert!(!all.is_empty());
        for one in &all {
            let word = one.pointer("/auth/signature").and_then(Json::as_str).unwrap();
            let mut inner: Json = word.strip_prefix(SIGNATURE_OF).unwrap().parse().unwrap();
            // The member added after signing is still the only difference.
            inner.set("note", 1_u64);
            for name in ["method", "params", "id", "note"] {
                assert_eq!(inner.get(name), one.get(name), "{}", one.to_text());
            }
        }
        assert!(all.iter().any(|one| one.get("params").is_none()));
        assert!(all.iter().any(|one| one.pointer("/params/b").is_none() && one.get("params").is_some()));
    }

    #[test]
    fn compressed_messages_get_smaller_inside() {
        let message: Json = r#"{"jsonrpc":"2.0","encoding":"gzip","body":"@gzip:{\"id\":1,\"params\":[1]}"}"#
            .parse()
            .unwrap();
        let bodies: Vec<String> =
            smaller(&message).iter().filter_map(|one| one.get("body")?.as_str().map(str::to_owned)).collect();
        assert!(bodies.contains(&"@gzip:{\"id\":1}".to_owned()), "{bodies:?}");
    }
}
