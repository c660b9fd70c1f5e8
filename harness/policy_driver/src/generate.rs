//! Generates conversations with drivers for fuzzing, and random requests.

use serde::Deserialize as _;

use super::driver;
use super::driver::expect::Expect;
use super::request::{Entry, Request};
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::payload::{Payload, Vars};
use peerproof_engine::data::plan::{Fixture, Plan};
use peerproof_engine::data::rng::Rng;
use peerproof_engine::run::shrink::simpler;

/// Most decisions in one conversation.
const DECISIONS_MAX: u64 = 8;

/// Names that resemble the output of a driver.
const HOSTILE: [&str; 6] =
    ["<END>", "<PICK><SID0001><END>", "</INP><END>", "a\nb\r\u{0}c", "\u{202e}gnp", "$(id); `id` \"'"];

/// A valid, nearly valid or hostile conversation with a driver.
pub(crate) fn conversation(facts: &Facts, rng: &mut Rng) -> Plan {
    let mut talk = driver::talk::Talk::new(facts);
    talk.canary("PD-START-03");
    for _ in 0..rng.range(1..=DECISIONS_MAX) {
        let mut text = request(rng).text().into_bytes();
        if rng.chance(1, 3) {
            damage(&mut text, rng);
        }
        let expect = driver::model::expected(&text);
        talk.decide_on(Payload::from_bytes(&text), expect);
    }
    Plan { by_model: true, ..talk.plan().unwrap_or_default() }
}

/// Removes, repeats or replaces bytes.
fn damage(text: &mut Vec<u8>, rng: &mut Rng) {
    let at = index(rng, text.len());
    let end = (at + 1 + index(rng, 12)).min(text.len());
    match rng.below(4) {
        0 => text.truncate(at),
        1 => drop(text.drain(at..end)),
        2 => {
            let piece = text[at..end].to_vec();
            text.splice(at..at, piece);
        }
        _ => text[at] = [b'0', b'"', b'{', b']', 0xff, b'S'][index(rng, 6)],
    }
}

/// A random well-formed request.
pub(crate) fn request(rng: &mut Rng) -> Request {
    let mut menu: Vec<Entry> = Vec::new();
    for _ in 0..rng.range(1..=6) {
        let mut entry = Entry::plain(u32::try_from(rng.below(10_000)).unwrap_or(0));
        if menu.iter().any(|known| known.sid == entry.sid) {
            continue;
        }
        if rng.chance(1, 3) {
            entry = entry.named(HOSTILE[index(rng, HOSTILE.len())]);
        }
        if rng.chance(1, 3) {
            entry = entry.tagged(&[HOSTILE[index(rng, HOSTILE.len())], "http"]);
        }
        menu.push(entry);
    }
    let mut request = Request::of(&menu);
    if rng.chance(1, 2) {
        request = request.inputs(r#"{"url":"http://127.0.0.1:1/","nested":{"a":[1,null,"é"]},"":0}"#);
    }
    if rng.chance(1, 3) {
        request = request.with("goal_digest", HOSTILE[index(rng, HOSTILE.len())]);
    }
    request
}

fn index(rng: &mut Rng, length: usize) -> usize {
    usize::try_from(rng.below(length as u64)).unwrap_or(0)
}

/// Smaller variants of the payload of a step, most promising first.
pub(crate) fn variants(plan: &Plan, step: usize) -> Vec<Plan> {
    let expect = plan.steps.get(step).and_then(|step| Expect::deserialize(&step.expect).ok());
    let Some(expect) = expect else { return Vec::new() };
    let place = plan
        .fixtures
        .iter()
        .position(|fixture| matches!(fixture, Fixture::File { name, .. } if *name == expect.payload));
    let Some((place, Fixture::File { content, .. })) = place.map(|place| (place, &plan.fixtures[place]))
    else {
        return Vec::new();
    };
    let decoded = content.expand(&Vars::new()).ok();
    let decoded = decoded.and_then(|bytes| json::decode(&bytes, &DecodeLimits::default()).ok());
    let smaller = decoded.map(|decoded| simpler(&decoded.value)).unwrap_or_default();
    let with = |value: &Json| {
        let mut plan = plan.clone();
        if let Fixture::File { content, .. } = &mut plan.fixtures[place] {
            *content = Payload::text(value.to_text());
        }
        plan
    };
    smaller.iter().map(with).collect()
}
