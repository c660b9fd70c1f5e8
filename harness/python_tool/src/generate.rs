//! Requests as drawn: right ones with payloads that are easily changed on the way, and some that are wrong in one place.

use peerproof_engine::facts::Facts;
use peerproof_engine::json::Json;
use peerproof_engine::payload::Payload;
use peerproof_engine::plan::Plan;
use peerproof_engine::rng::Rng;

use super::talk::{Sending, Talk};

/// Strings that are easily lost or changed on the way.
const STRINGS: &[&str] =
    &["", "x", "é€😀", "e\u{301}", "\u{0}", "a\nb\r\n", "\u{2028}", "\\u0041", "<&>'\"", "null", "\u{feff}"];

/// Names that are easily lost on the way.
const NAMES: &[&str] = &["k", "", "__class__", "self", "a.b", "ok", "result", "K", "é", "given", "named"];

/// Numbers to the edges of what is kept exactly.
const NUMBERS: &[&str] =
    &["0", "-0.0", "1.5", "9007199254740991", "-9007199254740991", "1e-7", "0.1", "123456789.25", "1E2"];

/// A member, and values that are wrong for it.
const WRONG: &[(&str, &[&str])] = &[
    ("protocol_version", &["0", "2", "\"1\"", "true", "null", "", "[1]"]),
    ("tool", &["\"\"", "null", "1", "", "[]"]),
    ("entry", &["\"\"", "\"a\"", "\"a:\"", "\"a:b:c\"", "\".a:b\"", "\"a b:c\"", "null", "7", ""]),
    ("payload", &["null", "[]", "\"{}\"", "1", ""]),
];

/// Members that change nothing.
const FREE: &[(&str, &[&str])] = &[
    ("trace_id", &["\"\"", "\"00000000-0000-0000-0000-000000000000\""]),
    ("sandbox", &["false"]),
    (
        "capability_context",
        &["null", "{}", "{\"guarantees\":{}}", "{\"guarantees\":{\"no_x\":false},\"sources\":{}}"],
    ),
    ("x_other", &["{\"ok\":true}", "[]", "null"]),
];

/// A conversation: a canary and a few requests.
pub fn conversation(facts: &Facts, rng: &mut Rng) -> Plan {
    let mut talk = Talk::new(facts);
    for _ in 0..rng.range(1..=3) {
        let mut with: Vec<(&str, &str)> = Vec::new();
        for (name, values) in FREE {
            if rng.chance(1, 4) {
                with.push((name, rng.pick::<&str>(values)));
            }
        }
        if rng.chance(1, 4) {
            let (name, values) = rng.pick(WRONG);
            with.push((name, rng.pick::<&str>(values)));
        }
        let role = *rng.pick(&["echo", "echo", "echo", "any", "greet", "value", "fail", "blob", "noise"]);
        let payload = match role {
            "echo" => Payload::text(object(rng, 3).to_text()),
            _ => talk.payload(role, None).0,
        };
        talk.send(talk.request(role, payload, &with), None, Sending::default());
    }
    talk.plan()
}

/// An object of free data.
fn object(rng: &mut Rng, levels: u32) -> Json {
    let mut object = Json::Object(Vec::new());
    for _ in 0..rng.below(5) {
        object.set(rng.pick::<&str>(NAMES), free(rng, levels));
    }
    object
}

/// Free data.
fn free(rng: &mut Rng, levels: u32) -> Json {
    match rng.below(if levels == 0 { 5 } else { 7 }) {
        0 => Json::Null,
        1 => Json::from(rng.chance(1, 2)),
        2 => rng.pick::<&str>(NUMBERS).parse().unwrap_or_default(),
        3 | 4 => Json::from(*rng.pick(STRINGS)),
        5 => Json::array((0..rng.below(4)).map(|_| free(rng, levels - 1)).collect::<Vec<_>>()),
        _ => object(rng, levels.saturating_sub(1)),
    }
}
