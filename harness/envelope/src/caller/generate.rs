//! Generates scenarios with programs and servers.

use super::COMMAND;
use super::cases::{Reply, called};
use crate::{shape, talk};
use peerproof_engine::contract::asking::SceneBuilder;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::Plan;
use peerproof_engine::data::rng::Rng;

/// Most calls of one scenario.
const CALLS_MAX: u64 = 6;

/// A scenario of calls with valid replies, or replies with one wrong member.
pub fn conversation(rng: &mut Rng) -> Plan {
    let mut scene = SceneBuilder::default();
    for n in 0..rng.range(1..=CALLS_MAX) {
        let members = shape::envelope().members();
        let (name, shape) = &members[rng.index(members.len())];
        let values = if rng.chance(1, 2) { shape.samples() } else { shape.wrong() };
        let mut text = talk::PLAIN.to_owned();
        if !values.is_empty() {
            text = talk::with(&text, [(name.as_str(), values[rng.index(values.len())].as_str())]);
        }
        if rng.chance(1, 6) {
            let end = rng.index(text.len());
            text.truncate((0..=end).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0));
        }
        let is_http = rng.chance(1, 2);
        let failure = if is_http { 400 } else { 1 };
        let status = if rng.chance(1, 6) { failure } else { 0 };
        let reply = Reply { text: Payload::text(text), status, ..Reply::default() };
        called(&mut scene, &format!("g{n}"), talk::PLAIN, is_http, reply);
    }
    super::cases::canary(&mut scene);
    Plan { by_model: true, ..scene.plan(COMMAND, "ENV-CALL-03") }
}
