//! Random requests: valid ones with payloads that are easily damaged, and some with one wrong member.

use peerproof_engine::data::carriage::HTTP;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::free_data;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::Plan;
use peerproof_engine::data::rng::Rng;

use super::face::COMMAND;
use super::talk::{Sending, Talk};

/// Member names that are easily lost.
const NAMES: &[&str] = &["k", "", "__class__", "self", "a.b", "ok", "result", "K", "é", "given", "named"];

/// Members with wrong values.
const WRONG: &[(&str, &[&str])] = &[
    ("protocol_version", &["0", "2", "\"1\"", "true", "null", "", "[1]"]),
    ("tool", &["\"\"", "null", "1", "", "[]"]),
    ("entry", &["\"\"", "\"a\"", "\"a:\"", "\"a:b:c\"", "\".a:b\"", "\"a b:c\"", "null", "7", ""]),
    ("payload", &["null", "[]", "\"{}\"", "1", ""]),
];

/// Members without effect.
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
    let is_service = !facts.commands.contains(COMMAND) && facts.commands.contains(HTTP);
    let mut talk = Talk::new(facts, if is_service { HTTP } else { COMMAND });
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
        let roles = ["echo", "echo", "echo", "any", "greet", "value", "fail", "blob", "noise"];
        let role = *rng.pick(&roles.map(|role| if facts.roles.contains_key(role) { role } else { "echo" }));
        let payload = match role {
            "echo" => Payload::text(free_data::object(NAMES, rng, 3).to_text()),
            _ => talk.payload(role, None).0,
        };
        talk.send(talk.request(role, payload, &with), None, Sending::default());
    }
    talk.plan()
}
