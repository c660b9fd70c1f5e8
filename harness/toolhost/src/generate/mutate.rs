//! Mutations of valid requests into near misses and worse.

use super::requests::{Maker, has_variable};
use super::{GeneratedLine, values};
use peerproof_engine::data::json::{self, DecodeLimits, Json, Number};
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::rng::Rng;

/// Texts that look like JSON but are invalid, or JSON of a wrong type.
const MALFORMED: &[&str] = &[
    "{'aid':'x'}",
    "{\"aid\":\"x\",}",
    "{aid:\"x\"}",
    "{\"aid\":NaN}",
    "{\"aid\":\"x\",\"n\":-Infinity}",
    "{\"aid\":\"x\",\"n\":01}",
    "{\"aid\":\"x\",\"n\":0x1F}",
    "{\"aid\":\"x\",\"n\":1.}",
    "{\"aid\":\"x\",\"n\":+1}",
    "{\"aid\":\"x\"}}",
    "{\"aid\":\"x\"} {}",
    "{\"aid\":\"x\"}\u{0}",
    "{\"aid\":\"\t\"}",
    "{\"aid\":\"\\x\"}",
    "{\"aid\":\"\\u12\"}",
    "{\"aid\":\"x\"} // x",
    "/* x */{\"aid\":\"x\"}",
    "{\"aid\" \"x\"}",
    "{\"aid\":True}",
    "{\"aid\":\"x\"",
    "{",
    "\"",
    "[]",
    "[{\"aid\":\"x\"}]",
    "null",
    "true",
    "\"{}\"",
    "12",
    "{}",
    "{\"aid\":\"\"}",
    "{\"aid\":null}",
    "{\"aid\":5}",
    "{\"aid\":[\"x\"]}",
    "{\"input_json\":\"{}\"}",
    "this is no JSON",
    " ",
    "\t\r",
    "",
    "\u{feff}",
    "\u{a0}",
    "\u{c}",
];

/// Values of the wrong type for most members.
const WRONG: &[&str] =
    &["5", "true", "[]", "{}", "null", "\"\"", "-1", "1.5", "[{}]", "\"x\"", "1e400", "18446744073709551616"];

/// Texts for `input_json` that are not objects, or unusual ones.
const INPUTS: &[&str] = &[
    "",
    "[]",
    "5",
    "null",
    "{",
    "{}{}",
    "{\"a\":NaN}",
    "{\"a\":1,}",
    "\"{}\"",
    " {} ",
    "{\"a\":1,\"a\":2}",
    "{\"n\":9007199254740993}",
    "{\"n\":1e400}",
    "{\"n\":0.1}",
    "{\"s\":\"\\ud800\"}",
    "{\"s\":\"\\u0000\"}",
    "{}\u{0}",
    "\u{feff}{}",
];

/// Mutates `made`. Lines with a variable stay unchanged.
pub(super) fn mutated(made: GeneratedLine, maker: &mut Maker, rng: &mut Rng) -> GeneratedLine {
    if has_variable(&made.payload) {
        return made;
    }
    if rng.chance(1, 400) && maker.affords(40, rng) {
        return oversized(&made);
    }
    let Some(bytes) = made.small() else { return made };
    match rng.below(10) {
        0 => GeneratedLine::bytes(rng.pick(MALFORMED).as_bytes()),
        1 => deep(&made, maker, rng),
        2..=5 => match structure(&bytes, maker, rng) {
            Some(text) => GeneratedLine::bytes(text.as_bytes()),
            None => GeneratedLine::bytes(&broken(bytes, rng)),
        },
        _ => GeneratedLine::bytes(&broken(bytes, rng)),
    }
}

/// Line over the size limit, as a recipe.
fn oversized(made: &GeneratedLine) -> GeneratedLine {
    let text = Payload::text("{\"pad\":\"").repeat("x", 10 << 20).then(Payload::text("\","));
    let rest = made.small().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
    let rest = rest.trim_start_matches('{').to_owned();
    GeneratedLine { payload: text.then(Payload::text(rest)), ..GeneratedLine::default() }
}

/// Line with nesting around the limit and far above it, in an unknown member or in the input.
fn deep(made: &GeneratedLine, maker: &Maker, rng: &mut Rng) -> GeneratedLine {
    let mut levels = *rng.pick(&[62_u64, 63, 64, 65, 127, 128, 1_000, 5_000, 20_000]);
    if levels > 1_000 && !maker.affords(16, rng) {
        levels = 200;
    }
    let closed = rng.chance(3, 4);
    let rest = made.small().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
    let Some(rest) = rest.strip_prefix('{').filter(|rest| rest.starts_with('"')) else { return made.clone() };
    let (open, close) = *rng.pick(&[("[", "]"), ("{\"a\":", "}")]);
    let mut payload = Payload::text("{\"x\":").repeat(open, levels).then(Payload::text("1"));
    if closed {
        payload = payload.repeat(close, levels);
    }
    GeneratedLine { payload: payload.then(Payload::text(format!(",{rest}"))), ..GeneratedLine::default() }
}

/// Changes one thing in the structure of a request.
fn structure(bytes: &[u8], maker: &Maker, rng: &mut Rng) -> Option<String> {
    let mut request = json::decode(bytes, &DecodeLimits::default()).ok()?.value;
    let names: Vec<String> = request.as_object()?.iter().map(|(name, _)| name.clone()).collect();
    if names.is_empty() {
        return None;
    }
    let name = rng.pick(&names).clone();
    match rng.below(12) {
        0 => drop(request.remove(&name)),
        1 | 2 => request.set(&name, rng.pick(WRONG).parse::<Json>().ok()?),
        3 => {
            // Adds a duplicate of a name.
            let value = if rng.chance(1, 2) { request.get(&name)?.clone() } else { values::value(rng, 1) };
            if let Json::Object(members) = &mut request {
                let at = rng.index(members.len() + 1);
                members.insert(at, (name, value));
            }
        }
        4 => {
            let value = values::value(rng, 2);
            request.set(
                rng.pick::<&str>(&["inputs", "AID", "Input_json", "x", "ok", "aid\u{0}", "status"]),
                value,
            );
        }
        5 => request.set("aid", maker.other_aid(rng)),
        6 => {
            let aid = request.get("aid")?.as_str()?.to_owned();
            let aid = match rng.below(5) {
                0 => format!("{aid}\u{0}"),
                1 => format!(" {aid}"),
                2 => format!("{aid}x"),
                3 => aid.chars().skip(1).collect(),
                _ => format!("{aid}\u{0}.v1"),
            };
            request.set("aid", aid);
        }
        7 | 8 => request.set("input_json", *rng.pick(INPUTS)),
        9 => {
            let mut state = values::state(rng);
            near_miss(&mut state, rng);
            request.set("ds_state", state);
        }
        10 => {
            let number =
                *rng.pick(&["9007199254740993", "-0", "1e5", "1E400", "0.1", "12345678901234567890123"]);
            request.set("x", Number::from_text(number)?);
        }
        _ => {
            // Adds a lone surrogate, which no `Json` value can hold.
            let text = request.to_text();
            return Some(text.replacen('{', "{\"x\":\"\\ud83d\",", 1));
        }
    }
    Some(request.to_text())
}

/// Spoils one part of a `ds_state`.
fn near_miss(state: &mut Json, rng: &mut Rng) {
    let slot = *rng.pick(&["8", "-1", "07", "1.0", "", "a", "0 ", "0", "3"]);
    let mut slots = state.get("slots").cloned().unwrap_or_else(|| Json::Object(Vec::new()));
    let mut artifact = values::artifact(rng);
    match rng.below(9) {
        0 | 1 => slots.set(slot, artifact),
        2 => {
            let member = *rng.pick(&["type", "provenance", "content_json", "size_bytes"]);
            drop(artifact.remove(member));
            slots.set("2", artifact);
        }
        3 => {
            let member = *rng.pick(&["type", "provenance", "content_json", "size_bytes"]);
            if let Ok(value) = rng.pick(WRONG).parse::<Json>() {
                artifact.set(member, value);
            }
            slots.set("2", artifact);
        }
        4 => {
            artifact.set("size_bytes", rng.below(5));
            slots.set("5", artifact);
        }
        5 => {
            let removed =
                *rng.pick(&["[8]", "[-1]", "[1.5]", "[\"1\"]", "1", "[0,0]", "[7]", "{}", "null", "[1.0]"]);
            if let Ok(value) = removed.parse::<Json>() {
                state.set("removed_slots", value);
            }
        }
        6 => {
            if let Ok(value) = rng.pick(WRONG).parse::<Json>() {
                state.set("delta", value);
            }
        }
        7 => {
            if let Ok(value) = rng.pick(WRONG).parse::<Json>() {
                state.set("slots", value);
            }
            return;
        }
        _ => {
            artifact.set("extra", 1);
            slots.set("1", artifact);
            state.set("more", "x");
        }
    }
    state.set("slots", slots);
}

/// Changes a few bytes.
fn broken(mut bytes: Vec<u8>, rng: &mut Rng) -> Vec<u8> {
    const PIECES: &[&[u8]] = &[
        b"\"",
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"0",
        b"-",
        b"e",
        b".",
        b"\0",
        b"\r",
        b"\t",
        b" ",
        b"\xff",
        b"\xc3",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xc0\xaf",
        b"\xef\xbb\xbf",
        b"\xc2\xa0",
        b"null",
        b"\\u0000",
        b"\\ud800",
        b"\x7f",
        b"\x1f",
        b"\xe2\x80\xa8",
        b"\n",
        b"\\",
    ];
    for _ in 0..=rng.below(3) {
        let at = rng.index(bytes.len() + 1);
        match rng.below(7) {
            0 if at < bytes.len() => drop(bytes.remove(at)),
            1 if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
            2 => bytes.truncate(at),
            3 if at < bytes.len() => {
                let end = (at + 1 + rng.index(8)).min(bytes.len());
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
            4 => bytes.splice(0..0, rng.pick(PIECES).iter().copied()).for_each(drop),
            5 => bytes.extend_from_slice(rng.pick::<&[u8]>(PIECES)),
            _ => bytes.splice(at..at, rng.pick(PIECES).iter().copied()).for_each(drop),
        }
    }
    bytes
}
