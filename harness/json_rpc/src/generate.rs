//! Generates conversations: valid, nearly valid and hostile messages, single and in batches, with repeated ids. The
//! model derives the allowed replies.
//!
//! Equal facts and equal random numbers give equal plans.

use super::model;
use super::role::role;
use super::talk::{Talk, UNKNOWN_METHOD, call, good, quoted};
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::payload::{Payload, Vars};
use peerproof_engine::data::plan::{Act, Chunking, Plan};
use peerproof_engine::data::rng::Rng;

/// Ids as JSON texts; empty text: no id.
const IDS: &[&str] = &[
    "1",
    "0",
    "-7",
    "9007199254740991",
    "\"a\"",
    "\"\"",
    "\"é\\n\\u0000\"",
    "\"1\"",
    "1.5",
    "null",
    "true",
    "[1]",
    "{\"a\":1}",
    "9007199254740993",
    "1e2",
    "",
    "",
];

/// Params as JSON texts.
const PARAMS: &[&str] = &[
    "{}",
    "[]",
    "[1,\"a\",null,true,[],{}]",
    "{\"a\":{\"b\":[1.5,-0.25,1e3]},\"é\":\"\\u0001😀/\"}",
    "null",
    "5",
    "\"text\"",
    "{\"minuend\":42,\"subtrahend\":23}",
    "{\"subtrahend\":1,\"minuend\":-5}",
    "[42,23]",
    "{\"minuend\":1}",
    "[9007199254740993]",
    "[1e400]",
    "{\"a\":1,\"a\":2}",
    "[\"\\ud800\"]",
    "[9007199254740991,-9007199254740991]",
    "[\"\\u2028\\u007f\\\"\\\\\"]",
];

/// Lines that are not a request, or not JSON.
const ODD: &[&str] = &[
    "",
    " ",
    "\t\r",
    "{",
    "[",
    "]",
    "{}",
    "[]",
    "[[]]",
    "[1]",
    "[1,2,3]",
    "[{}]",
    "null",
    "true",
    "1",
    "\"text\"",
    "{\"jsonrpc\":\"2.0\"}",
    "{\"jsonrpc\":\"2.0\",\"id\":1}",
    "{\"jsonrpc\":\"2.0\",\"method\":1,\"params\":\"bar\"}",
    "{\"jsonrpc\":\"2.0\",\"method\":\"foobar, \"params\": \"bar\", \"baz]",
    "{\"jsonrpc\":\"2.0\",\"method\":\"x\",}",
    "{\"jsonrpc\":\"1.0\",\"method\":\"x\",\"id\":\"v\"}",
    "{\"jsonrpc\":2.0,\"method\":\"x\",\"id\":\"v\"}",
    "{\"method\":\"x\",\"id\":\"v\"}",
    "{\"jsonrpc\":\"2.0\",\"result\":1,\"id\":\"r\"}",
    "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":1,\"message\":\"m\"},\"id\":\"r\"}",
    "{'jsonrpc':'2.0'}",
    "NaN",
    "\u{feff}{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"id\":\"bom\"}",
    "{\"jsonrpc\":\"2.0\",\"method\":\"rpc.discover\",\"id\":\"d\"}",
    "{} {}",
    "{\"a\":01}",
    "no JSON",
];

/// Most messages in one conversation.
const MESSAGES_MAX: u64 = 60;

/// A conversation for a server with these facts.
pub(crate) fn conversation(facts: &Facts, rng: &mut Rng) -> Plan {
    let mut talk = Talk::plain(facts);
    let count = rng.range(1..=MESSAGES_MAX);
    let burst_max = *rng.pick(&[1, 4, 16]);
    let hostility = *rng.pick(&[5, 25, 60]);
    let mut burst: Vec<u8> = Vec::new();
    let mut lines = 0;
    talk.canary();
    for n in 0..count {
        burst.extend(line(facts, hostility, n, rng));
        burst.push(b'\n');
        lines += 1;
        if lines >= rng.range(1..=burst_max) {
            flush(&mut talk, &mut burst, rng);
            lines = 0;
            if rng.chance(1, 6) {
                talk.canary();
            }
        }
    }
    flush(&mut talk, &mut burst, rng);
    talk.canary();
    talk.finish()
}

fn flush(talk: &mut Talk<'_>, burst: &mut Vec<u8>, rng: &mut Rng) {
    if burst.is_empty() {
        return;
    }
    let payload = match std::str::from_utf8(burst) {
        Ok(text) => Payload::text(text),
        Err(_) => Payload::from_bytes(burst),
    };
    let chunking = match rng.below(24) {
        0 if burst.len() <= 256 => Chunking::Dribble,
        1 => Chunking::Every(u32::try_from(rng.range(16..=300)).unwrap_or(64)),
        _ => Chunking::Whole,
    };
    talk.send_as(payload, chunking);
    burst.clear();
}

/// One line without its line feed.
fn line(facts: &Facts, hostility: u64, n: u64, rng: &mut Rng) -> Vec<u8> {
    if rng.chance(hostility, 200) {
        return rng.pick(ODD).as_bytes().to_vec();
    }
    let mut bytes = if rng.chance(1, 6) {
        let elements: Vec<String> = (0..rng.range(1..=8))
            .map(|at| {
                if rng.chance(hostility, 300) {
                    (*rng.pick(ODD)).to_owned()
                } else {
                    message(facts, n * 16 + at, rng)
                }
            })
            .collect();
        format!("[{}]", elements.join(",")).into_bytes()
    } else {
        message(facts, n * 16, rng).into_bytes()
    };
    if rng.chance(hostility, 400) {
        mutate(&mut bytes, rng);
    }
    bytes
}

fn message(facts: &Facts, n: u64, rng: &mut Rng) -> String {
    let id = if rng.chance(1, 4) { (*rng.pick(IDS)).to_owned() } else { quoted(&format!("id-{n}")) };
    if rng.chance(1, 5) && !id.is_empty() {
        return good(facts, n, &id);
    }
    let roles = ["echo", "fail", "named", "counter", "none", "none"];
    let method = role(facts, roles[rng.index(roles.len())])
        .map_or_else(|| UNKNOWN_METHOD.to_owned(), |role| role.method);
    let params = (!rng.chance(1, 5)).then(|| *rng.pick(PARAMS));
    let mut text = call(&method, params, Some(id.as_str()).filter(|id| !id.is_empty()));
    if rng.chance(1, 12) {
        text.insert_str(1, "\"more\":[null,{}],");
    }
    text
}

/// Changes one or two bytes. Adds no line feed, so that a line stays one line.
fn mutate(bytes: &mut Vec<u8>, rng: &mut Rng) {
    for _ in 0..=rng.below(2) {
        if bytes.is_empty() {
            return;
        }
        let at = rng.index(bytes.len());
        match rng.below(5) {
            0 => drop(bytes.remove(at)),
            1 => bytes.insert(at, *rng.pick(b"{}[]\",:\\0aeE.- \x00\x01\x7f\x80\xc3\xff")),
            2 => bytes[at] ^= 1 << rng.below(7),
            3 => bytes.truncate(at),
            _ => {
                let end = (at + 1 + rng.index(8)).min(bytes.len());
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
        }
    }
    bytes.iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b' ');
}

/// Smaller variants of step `at`, most promising first: fewer lines.
pub(crate) fn variants(plan: &Plan, at: usize) -> Vec<Plan> {
    let Some(step) = plan.steps.get(at) else { return Vec::new() };
    let Act::Send { payload, .. } = &step.act else { return Vec::new() };
    let Ok(bytes) = payload.expand(&Vars::new()) else { return Vec::new() };
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let mut variants = Vec::new();
    let mut size = lines.len() / 2;
    while size > 0 && !step.canary {
        for from in (0..lines.len()).step_by(size) {
            let end = (from + size).min(lines.len());
            let kept: Vec<u8> = [&lines[..from], &lines[end..]].concat().concat();
            if kept.is_empty() {
                continue;
            }
            let mut smaller = plan.clone();
            if let Act::Send { payload, await_frames, .. } = &mut smaller.steps[at].act {
                // Upper bound of the frames to await. The facts of the peer are unknown here; a deadline ends the
                // wait.
                *await_frames = (*await_frames).min(frames_at_most(&kept));
                *payload = match std::str::from_utf8(&kept) {
                    Ok(text) => Payload::text(text),
                    Err(_) => Payload::from_bytes(&kept),
                };
            }
            variants.push(smaller);
        }
        size /= 2;
    }
    variants
}

/// Number of frames that a server without roles owes for these lines.
fn frames_at_most(bytes: &[u8]) -> u32 {
    let mut facts = Facts::new(peerproof_engine::data::clause::Side::Provider);
    facts.features.insert("batch".to_owned(), serde_json::Value::Bool(true));
    model::frames_due(&facts, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::full_facts;
    use peerproof_engine::data::clause::Side;

    #[test]
    fn one_stream_of_numbers_gives_one_plan() {
        let facts = full_facts::facts(Side::Provider);
        let plan = |seed| conversation(&facts, &mut Rng::new(seed));
        assert_eq!(plan(1), plan(1));
        assert_ne!(plan(1), plan(2));
    }
}
