//! Model of a driver: derives the allowed outcomes from the bytes of a payload alone.

use super::super::block::is_sid;
use super::expect::{Allowed, Expect};
use peerproof_engine::data::json::{self, DecodeLimits, Json};

/// Size up to which every driver decides every payload, bytes (readings §2: one long string may be longer).
const BYTES_CERTAIN: usize = 1 << 20;

/// Nesting that every driver accepts, levels.
const DEPTH_CERTAIN: usize = 64;

/// Largest integer that every driver accepts.
const INTEGER_MAX: u64 = (1 << 53) - 1;

/// Clause of payloads that every driver decides.
pub(super) const DECIDED: &str = "PD-LOAD-07";

/// Allowed outcomes for a payload with these bytes.
pub(crate) fn expected(payload: &[u8]) -> Expect {
    if payload.trim_ascii().is_empty() {
        return Expect::no_pick("PD-BAD-02");
    }
    let Ok(decoded) = json::decode(payload, &DecodeLimits::default()) else {
        // A driver may correct nearly valid JSON; how cannot be seen from outside.
        return either("PD-BAD-05");
    };
    let (value, facts) = (decoded.value, decoded.facts);
    let Json::Object(_) = &value else { return Expect::no_pick("PD-BAD-04") };
    let is_open = facts.duplicate_keys
        || facts.lone_surrogates
        || facts.depth > DEPTH_CERTAIN
        || payload.len() > BYTES_CERTAIN
        || has_peculiar_number(&value);
    match menu(&value) {
        Menu::Wrong if !is_open => Expect::no_pick("PD-BAD-04"),
        Menu::Empty if !is_open => Expect::no_pick("PD-BAD-06"),
        Menu::Good if !is_open && has_all_members(&value) => Expect::block(DECIDED),
        Menu::Good | Menu::Open | Menu::Wrong | Menu::Empty => either(DECIDED),
    }
}

fn either(clause: &str) -> Expect {
    Expect::block(clause).or(Allowed::Failure)
}

enum Menu {
    /// A menu that every driver can pick from.
    Good,
    /// An empty menu.
    Empty,
    /// A menu of the wrong type.
    Wrong,
    /// A menu that drivers may accept or not.
    Open,
}

fn menu(payload: &Json) -> Menu {
    let entries = match payload.get("menu") {
        Some(Json::Array(entries)) => entries,
        Some(_) => return Menu::Wrong,
        None => return Menu::Open,
    };
    if entries.is_empty() {
        return Menu::Empty;
    }
    let mut sids: Vec<&str> = Vec::with_capacity(entries.len());
    let mut complete = true;
    for entry in entries {
        let Json::Object(_) = entry else { return Menu::Wrong };
        match entry.get("sid") {
            Some(Json::String(sid)) if is_sid(sid) => sids.push(sid),
            Some(_) => return Menu::Wrong,
            None => complete = false,
        }
        let is_text = |name: &str| entry.get(name).is_some_and(|value| value.as_str().is_some());
        let tags = entry.get("tags").and_then(Json::as_array);
        complete &= is_text("aid")
            && is_text("name")
            && tags.is_some_and(|tags| tags.iter().all(|tag| tag.as_str().is_some()));
    }
    let count = sids.len();
    sids.sort_unstable();
    sids.dedup();
    if complete && sids.len() == count { Menu::Good } else { Menu::Open }
}

fn has_all_members(payload: &Json) -> bool {
    let is_text = |name: &str| payload.get(name).is_some_and(|value| value.as_str().is_some());
    is_text("goal_digest")
        && is_text("state_digest")
        && is_text("control_mode")
        && payload.get("inputs").is_some_and(|inputs| inputs.as_object().is_some())
}

/// True if a number may change or be refused: beyond ±(2^53−1), or beyond all doubles.
fn has_peculiar_number(value: &Json) -> bool {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Json::Number(_) => {
                let is_small = value.as_i64().is_some_and(|number| number.unsigned_abs() <= INTEGER_MAX);
                let is_double = value.as_f64().is_some_and(|number| number.abs() < 9e15);
                if !is_small && !is_double {
                    return true;
                }
            }
            Json::Array(items) => open.extend(items),
            Json::Object(members) => open.extend(members.iter().map(|(_, value)| value)),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::super::super::request::{Entry, Request};
    use super::*;

    #[test]
    fn tells_payloads_apart() {
        let of = |text: &str| expected(text.as_bytes());
        let plain = Request::plain();
        assert_eq!(of(&plain.text()).allowed, [Allowed::Block]);
        let entry = |sid: &str| Json::object([("sid", Json::from(sid))]);
        for (wrong, clause) in [
            (" \n".to_owned(), "PD-BAD-02"),
            ("[]".to_owned(), "PD-BAD-04"),
            (plain.clone().with("menu", Json::Null).text(), "PD-BAD-04"),
            (plain.clone().with("menu", Json::array([entry("SID12345")])).text(), "PD-BAD-04"),
            (Request::of(&[]).text(), "PD-BAD-06"),
        ] {
            let expect = of(&wrong);
            assert_eq!(
                (expect.clause.0.as_str(), &expect.allowed),
                (clause, &Expect::no_pick("").allowed),
                "{wrong}"
            );
        }
        for open in [
            plain.text() + ",",
            plain.clone().without("inputs").text(),
            plain.clone().inputs("{\"n\":1e400}").text(),
            Request::of(&[Entry::plain(1), Entry::plain(1)]).text(),
        ] {
            assert_eq!(of(&open).allowed, either("").allowed, "{open}");
        }
    }
}
