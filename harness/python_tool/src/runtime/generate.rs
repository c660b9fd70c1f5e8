//! Generates scenarios with runners and services.

use std::collections::BTreeMap;

use super::COMMAND;
use super::cases::{called, canary, edited, reply, scene};
use peerproof_engine::data::plan::Plan;
use peerproof_engine::data::rng::Rng;

/// Most calls of one scenario.
const CALLS_MAX: u64 = 6;

/// Values of a reply's member, as JSON texts; empty text: absent.
const VALUES: [&str; 10] = ["", "true", "false", "null", "1", "2", "\"1\"", "[]", "{\"ok\":false}", "{}"];

/// A scenario of calls with valid replies, or replies with one wrong member.
pub fn conversation(rng: &mut Rng) -> Plan {
    let mut scene = scene();
    for n in 0..rng.range(1..=CALLS_MAX) {
        let is_service = rng.chance(1, 2);
        let mut members = BTreeMap::new();
        if rng.chance(2, 3) {
            let names = ["ok", "protocol_version", "result", "error"];
            let name = names[rng.index(names.len())];
            members.insert(name.to_owned(), VALUES[rng.index(VALUES.len())].to_owned());
        }
        let mut text = edited(reply(is_service, rng.chance(1, 3)), &members).to_text();
        if rng.chance(1, 6) {
            text.truncate(rng.index(text.len()));
        }
        let status = match (rng.chance(1, 6), is_service) {
            (false, _) => 0,
            (true, false) => 1,
            (true, true) => 500,
        };
        called(&mut scene, &format!("g{n}"), is_service, status, text);
    }
    let names = scene.names();
    canary(&mut scene, names);
    Plan { by_model: true, ..scene.plan(COMMAND, "PT-RT-04") }
}
