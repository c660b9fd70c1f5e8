//! Third stage: bytes. Shortens runs, and removes pieces of text that is not a JSON message.

use super::Shrinker;
use super::structure::{Tokens, accepts_payload, content_steps, parse, payload_of};
use crate::data::payload::{Payload, Segment};

/// Maximum length of text that is shortened character by character.
const CHARS_ONE_BY_ONE_MAX: usize = 256;

/// Shrinks the bytes of every remaining message.
pub(super) fn shrink(shrinker: &mut Shrinker<'_>) {
    for index in content_steps(shrinker) {
        runs(shrinker, index);
        if !is_message(shrinker, index) {
            characters(shrinker, index);
        }
    }
}

/// Finds the minimum number of repetitions in each run. Repeats until none gets shorter, because runs can depend on
/// each other, as the brackets of nested arrays do.
fn runs(shrinker: &mut Shrinker<'_>, index: usize) {
    while shrinker.goes_on() && shorter_run(shrinker, index) {}
}

fn shorter_run(shrinker: &mut Shrinker<'_>, index: usize) -> bool {
    let mut any = false;
    let mut at = 0;
    while let Some(segment) = segment(shrinker, index, at) {
        at += 1;
        let Segment::Repeat { times, .. } = segment else { continue };
        if with_times(shrinker, index, at - 1, 0) {
            at -= 1;
            any = true;
            continue;
        }
        // The finding shows with `most` and does not with `least`.
        let (mut least, mut most) = (0, times);
        while most - least > 1 && shrinker.goes_on() {
            let middle = least + (most - least) / 2;
            if with_times(shrinker, index, at - 1, middle) {
                most = middle;
                any = true;
            } else {
                least = middle;
            }
        }
    }
    any
}

fn segment(shrinker: &Shrinker<'_>, index: usize, at: usize) -> Option<Segment> {
    payload_of(shrinker, index)?.0.get(at).cloned()
}

fn with_times(shrinker: &mut Shrinker<'_>, index: usize, at: usize, fewer: u64) -> bool {
    let Some(mut payload) = payload_of(shrinker, index).cloned() else { return false };
    match payload.0.get_mut(at) {
        Some(Segment::Repeat { times, .. }) if fewer > 0 => *times = fewer,
        Some(_) => {
            payload.0.remove(at);
        }
        None => return false,
    }
    accepts_payload(shrinker, index, payload, None)
}

/// True if the payload is one line of JSON, which the stage before has handled.
fn is_message(shrinker: &Shrinker<'_>, index: usize) -> bool {
    payload_of(shrinker, index)
        .and_then(Tokens::of)
        .is_some_and(|tokens| parse(tokens.text.trim_end_matches(['\n', '\r'])).is_some())
}

/// Removes pieces of text, large ones first. The final line feed stays, because it ends the message.
fn characters(shrinker: &mut Shrinker<'_>, index: usize) {
    let Some(payload) = payload_of(shrinker, index) else { return };
    let length = units(payload).len();
    let smallest = if length <= CHARS_ONE_BY_ONE_MAX { 1 } else { length / CHARS_ONE_BY_ONE_MAX };
    let mut size = length.div_ceil(2);
    while size >= smallest && size > 0 && shrinker.goes_on() {
        let mut end = payload_of(shrinker, index).map_or(0, |payload| units(payload).len());
        while end > 0 && shrinker.goes_on() {
            let Some(payload) = payload_of(shrinker, index) else { return };
            let mut left = units(payload);
            end = end.min(left.len());
            let begin = end.saturating_sub(size);
            left.drain(begin..end);
            let shorter = join(&left, payload);
            accepts_payload(shrinker, index, shorter, None);
            end = begin;
        }
        size /= 2;
    }
}

/// Smallest pieces of a payload: characters, bytes of hex, whole runs and variables.
fn units(payload: &Payload) -> Vec<Segment> {
    let mut units = Vec::new();
    for segment in &payload.0 {
        match segment {
            Segment::Text(text) => units.extend(text.chars().map(|c| Segment::Text(c.to_string()))),
            Segment::Hex(hex) if hex.is_ascii() => {
                units.extend((0..hex.len() / 2).map(|n| Segment::Hex(hex[2 * n..2 * n + 2].to_owned())));
            }
            Segment::Repeat { times: 0, .. } => {}
            other => units.push(other.clone()),
        }
    }
    if units.last() == Some(&line_feed()) {
        units.pop();
    }
    units
}

fn line_feed() -> Segment {
    Segment::Text("\n".to_owned())
}

fn join(units: &[Segment], before: &Payload) -> Payload {
    let mut joined: Vec<Segment> = Vec::new();
    let ends = match before.0.last() {
        Some(Segment::Text(text)) => text.ends_with('\n'),
        _ => false,
    };
    for unit in units.iter().cloned().chain(ends.then(line_feed)) {
        match (joined.last_mut(), unit) {
            (Some(Segment::Text(text)), Segment::Text(more))
            | (Some(Segment::Hex(text)), Segment::Hex(more)) => text.push_str(&more),
            (_, unit) => joined.push(unit),
        }
    }
    Payload(joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_put_together_are_the_payload() {
        let payload = Payload(vec![
            Segment::Text("aä".to_owned()),
            Segment::Hex("fffe".to_owned()),
            Segment::Repeat { unit: "x".to_owned(), times: 900 },
            Segment::Text("}\n".to_owned()),
        ]);
        let units = units(&payload);
        assert_eq!(units.len(), 6);
        assert_eq!(join(&units, &payload), payload);
        assert_eq!(join(&[], &payload), Payload::text("\n"));
    }
}
