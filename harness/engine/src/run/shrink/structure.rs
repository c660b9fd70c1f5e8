//! Second stage: the structure of a message. Removes members and elements, and shortens strings and numbers, also
//! inside JSON within a string.

use std::ops::Range;

use super::{Change, Shrinker, spelling};
use crate::data::json::{self, DecodeLimits, Json};
use crate::data::payload::{Payload, Segment};
use crate::data::pieces::without_pieces;
use crate::data::plan::Act;

/// Limits above which messages are shrunk as bytes.
const TEXT_BYTES_MAX: usize = 64 << 10;
const DEPTH_MAX: usize = 64;

/// Maximum number of variants tried for one message.
const VARIANTS_MAX: usize = 400;

/// Shrinks the structure of every remaining message.
pub(super) fn shrink(shrinker: &mut Shrinker<'_>) {
    for index in content_steps(shrinker) {
        while shrinker.goes_on() && (by_boundary(shrinker, index) || by_json(shrinker, index)) {}
    }
}

/// Steps to shrink, the failing one first. Canaries stay unless they may be what fails.
pub(super) fn content_steps(shrinker: &Shrinker<'_>) -> Vec<usize> {
    let best = &shrinker.best;
    let fails = |index: &usize| best.origin.get(*index).copied() == shrinker.step;
    let mut steps: Vec<usize> = (0..best.plan.steps.len())
        .filter(|index| {
            let step = &best.plan.steps[*index];
            let has_content = match step.act {
                Act::Send { .. } => true,
                // The message may be in a file. Then the expectation at the end of the reading process stands for it.
                Act::Finish => !step.expect.is_null(),
                _ => false,
            };
            has_content
                && (!step.setup || fails(index))
                && (!step.canary || fails(index) || shrinker.step.is_none())
        })
        .collect();
    steps.sort_by_key(|index| !fails(index));
    steps
}

/// Payload of a step that sends.
pub(super) fn payload_of<'s>(shrinker: &'s Shrinker<'_>, index: usize) -> Option<&'s Payload> {
    match &shrinker.best.plan.steps.get(index)?.act {
        Act::Send { payload, .. } => Some(payload),
        _ => None,
    }
}

/// Tries another payload for a step. Its old expectation is dropped, unless it only names a clause.
pub(super) fn accepts_payload(
    shrinker: &mut Shrinker<'_>,
    index: usize,
    payload: Payload,
    frames: Option<u32>,
) -> bool {
    let mut candidate = shrinker.best.clone();
    let Some(step) = candidate.plan.steps.get_mut(index) else { return false };
    if let Act::Send { payload: old, await_frames, .. } = &mut step.act {
        if *old == payload {
            return false;
        }
        *old = payload;
        *await_frames = frames.map_or(*await_frames, |frames| frames.min(*await_frames));
    }
    if shrinker.own.is_none() {
        step.expect = serde_json::Value::Null;
    }
    shrinker.await_what_is_due(&mut candidate.plan, index);
    shrinker.accepts(candidate, Change::Content)
}

/// Tries the plans that the boundary proposes.
fn by_boundary(shrinker: &mut Shrinker<'_>, index: usize) -> bool {
    for plan in shrinker.proposals(index) {
        if !shrinker.goes_on() {
            return false;
        }
        if plan == shrinker.best.plan || plan.steps.len() != shrinker.best.plan.steps.len() {
            continue;
        }
        let origin = shrinker.best.origin.clone();
        let mut plan = plan;
        shrinker.await_what_is_due(&mut plan, index);
        if shrinker.accepts(super::Candidate { plan, origin }, Change::Content) {
            return true;
        }
    }
    false
}

/// Makes one accepted simplification of a payload's lines; returns false if none is left.
fn by_json(shrinker: &mut Shrinker<'_>, index: usize) -> bool {
    let Some(text) = payload_of(shrinker, index).and_then(Tokens::of) else { return false };
    let lines: Vec<&str> = text.text.split_inclusive('\n').collect();
    if lines.len() > 1 {
        for gone in (0..lines.len()).rev() {
            let rest: String =
                lines.iter().enumerate().filter(|(at, _)| *at != gone).map(|(_, line)| *line).collect();
            let frames = u32::try_from(lines.len() - 1).ok();
            if let Some(payload) = text.back(&rest)
                && accepts_payload(shrinker, index, payload, frames)
            {
                return true;
            }
        }
    }
    for (at, line) in lines.iter().enumerate() {
        let body = line.trim_end_matches(['\n', '\r']);
        let Some(value) = parse(body) else { continue };
        let anew = variants(&value).into_iter().map(|variant| variant.to_text());
        // An unusual spelling may be what matters.
        let is_peculiar = value.to_text() != body;
        let spelled = if is_peculiar { spelling::pieces(body) } else { Vec::new() };
        let without = |piece: &Range<usize>| [&body[..piece.start], &body[piece.end..]].concat();
        for variant in anew.chain(spelled.iter().map(without)) {
            if !shrinker.goes_on() {
                return false;
            }
            let mut changed = lines[..at].concat();
            changed.push_str(&variant);
            changed.push_str(&line[body.len()..]);
            changed.push_str(&lines[at + 1..].concat());
            if let Some(payload) = text.back(&changed)
                && accepts_payload(shrinker, index, payload, None)
            {
                return true;
            }
        }
    }
    false
}

/// Parses a line if this stage can handle it.
pub(super) fn parse(line: &str) -> Option<Json> {
    if line.len() > TEXT_BYTES_MAX || depth(line) > DEPTH_MAX {
        return None;
    }
    json::decode(line.as_bytes(), &DecodeLimits::default()).ok().map(|decoded| decoded.value)
}

fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Payload as text in which private-use characters stand for variables, long runs and bytes.
pub(super) struct Tokens {
    /// The text.
    pub(super) text: String,
    segments: Vec<Segment>,
}

/// First of the private-use characters that stand for segments.
const TOKENS_FROM: u32 = 0xF_0000;
const TOKENS_MAX: usize = 0xFFF0;

/// Minimum length of a run with a character of its own; shorter ones are text.
const RUN_BYTES_MIN: usize = 512;

impl Tokens {
    /// Text of a payload; `None` if it has too many segments or contains these characters itself.
    pub(super) fn of(payload: &Payload) -> Option<Self> {
        let mut text = String::new();
        let mut segments = Vec::new();
        for segment in &payload.0 {
            match segment {
                Segment::Text(part) => {
                    if part.chars().any(is_token) {
                        return None;
                    }
                    text.push_str(part);
                }
                Segment::Repeat { unit, times } if unit.len() as u64 * times < RUN_BYTES_MIN as u64 => {
                    for _ in 0..*times {
                        text.push_str(unit);
                    }
                }
                other => {
                    text.push(char::from_u32(TOKENS_FROM + u32::try_from(segments.len()).ok()?)?);
                    segments.push(other.clone());
                }
            }
            if text.len() > TEXT_BYTES_MAX || segments.len() > TOKENS_MAX {
                return None;
            }
        }
        Some(Self { text, segments })
    }

    /// Converts a changed text back to a payload.
    pub(super) fn back(&self, text: &str) -> Option<Payload> {
        let mut segments = Vec::new();
        let mut literal = String::new();
        for c in text.chars() {
            if is_token(c) {
                if !literal.is_empty() {
                    segments.push(Segment::Text(std::mem::take(&mut literal)));
                }
                segments.push(self.segments.get((u32::from(c) - TOKENS_FROM) as usize)?.clone());
            } else {
                literal.push(c);
            }
        }
        if !literal.is_empty() {
            segments.push(Segment::Text(literal));
        }
        Some(Payload(segments))
    }
}

pub(super) fn is_token(c: char) -> bool {
    (TOKENS_FROM..TOKENS_FROM + TOKENS_MAX as u32 + 1).contains(&u32::from(c))
}

/// Simpler values, boldest first, from the outermost container inwards.
pub fn variants(root: &Json) -> Vec<Json> {
    let mut out = Vec::new();
    let mut queue = std::collections::VecDeque::from([Vec::<usize>::new()]);
    while let Some(path) = queue.pop_front() {
        let Some(node) = at(root, &path) else { continue };
        for simpler in simpler(node) {
            if out.len() >= VARIANTS_MAX {
                return out;
            }
            let mut copy = root.clone();
            if let Some(place) = at_mut(&mut copy, &path) {
                *place = simpler;
                out.push(copy);
            }
        }
        let children = match node {
            Json::Array(items) => items.len(),
            Json::Object(members) => members.len(),
            _ => 0,
        };
        queue.extend((0..children).map(|child| [path.as_slice(), &[child]].concat()));
    }
    out
}

fn at<'j>(mut value: &'j Json, path: &[usize]) -> Option<&'j Json> {
    for index in path {
        value = match value {
            Json::Array(items) => items.get(*index)?,
            Json::Object(members) => &members.get(*index)?.1,
            _ => return None,
        };
    }
    Some(value)
}

fn at_mut<'j>(mut value: &'j mut Json, path: &[usize]) -> Option<&'j mut Json> {
    for index in path {
        value = match value {
            Json::Array(items) => items.get_mut(*index)?,
            Json::Object(members) => &mut members.get_mut(*index)?.1,
            _ => return None,
        };
    }
    Some(value)
}

/// Simpler values for one node, with unchanged children.
fn simpler(node: &Json) -> Vec<Json> {
    match node {
        Json::Null | Json::Bool(_) => Vec::new(),
        Json::Array(items) => without_pieces(items).into_iter().map(Json::Array).collect(),
        Json::Object(members) => without_pieces(members).into_iter().map(Json::Object).collect(),
        Json::Number(number) => {
            let text = number.text();
            let mut shorter = vec!["0".to_owned(), "1".to_owned(), text[..text.len() / 2].to_owned()];
            shorter.retain(|candidate| candidate.len() < text.len());
            shorter.iter().filter_map(|text| json::Number::from_text(text)).map(Json::Number).collect()
        }
        Json::String(text) => {
            // JSON in a string: try its structure before its characters.
            if let Some(inner) = parse(text).filter(|inner| matches!(inner, Json::Array(_) | Json::Object(_)))
            {
                return variants(&inner).iter().map(|inner| Json::String(inner.to_text())).collect();
            }
            let characters: Vec<char> = text.chars().collect();
            without_pieces(&characters)
                .into_iter()
                .map(|characters| Json::String(characters.into_iter().collect()))
                .collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_reach_into_wrapped_json() {
        let value: Json = r#"{"aid":"A","input_json":"{\"x\":[1,2],\"y\":\"z\"}"}"#.parse().unwrap();
        let texts: Vec<String> = variants(&value).iter().map(Json::to_text).collect();
        for expected in [
            r#"{}"#,
            r#"{"aid":"A"}"#,
            r#"{"aid":"A","input_json":"{\"x\":[1,2]}"}"#,
            r#"{"aid":"A","input_json":"{\"x\":[2],\"y\":\"z\"}"}"#,
            r#"{"aid":"","input_json":"{\"x\":[1,2],\"y\":\"z\"}"}"#,
        ] {
            assert!(texts.iter().any(|text| text == expected), "{expected} is not in {texts:#?}");
        }
    }

    #[test]
    fn variables_and_runs_survive_the_way_there_and_back() {
        let payload =
            Payload::text("{\"t\":\"").var("token").then(Payload::text("\",\"p\":\"")).repeat("x", 5000);
        let payload = payload.then(Payload::text("\"}\n"));
        let tokens = Tokens::of(&payload).unwrap();
        assert!(parse(tokens.text.trim_end()).is_some(), "{}", tokens.text);
        assert_eq!(tokens.back(&tokens.text), Some(payload));
    }

    #[test]
    fn deep_nesting_is_left_to_the_next_stage() {
        assert!(parse(&"[".repeat(100_000)).is_none());
        assert!(parse("[[1]]").is_some());
    }
}
