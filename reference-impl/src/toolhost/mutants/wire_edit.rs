//! Helpers for mutants at the seam of lines: constructors, and edits of requests and replies.

use super::wire::{Memory, Pass, Rewrite, failure, forward, replaced, unchanged, value, without};
use super::{Mutant, Rewiring};
use crate::json::{Value, write_value};
use crate::mutant::Seam;
use crate::mutant::text::{has, swap_all};

pub(super) type OnRequest = fn(&mut Memory, &[u8]) -> Pass;
pub(super) type OnReply = fn(&mut Memory, &[u8]) -> Vec<u8>;

pub(super) const fn incoming(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    request: OnRequest,
) -> Mutant {
    Mutant::new(id, clauses, fault, Seam::Wire(Rewiring::Lines(Rewrite { request, reply: unchanged })))
}

pub(super) const fn outgoing(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    reply: OnReply,
) -> Mutant {
    Mutant::new(id, clauses, fault, Seam::Wire(Rewiring::Lines(Rewrite { request: forward, reply })))
}

pub(super) const fn both(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    request: OnRequest,
    reply: OnReply,
) -> Mutant {
    Mutant::new(id, clauses, fault, Seam::Wire(Rewiring::Lines(Rewrite { request, reply })))
}

pub(super) fn is_ok(reply: &[u8]) -> bool {
    reply.starts_with(b"{\"ok\":true")
}

pub(super) fn is_hit(reply: &[u8]) -> bool {
    has(reply, "\"idempotent_hit\":true")
}

/// Drops the members for which `drop` returns true.
pub(super) fn dropping(request: &[u8], drop: impl Fn(&str, &Value) -> bool) -> Pass {
    match value(request) {
        Some(parsed)
            if parsed
                .as_object()
                .unwrap_or_default()
                .iter()
                .any(|(name, value)| drop(&name.to_lossy(), value)) =>
        {
            Pass::Replace(without(&parsed, drop))
        }
        _ => Pass::Forward,
    }
}

/// Refuses the request if `bad`.
pub(super) fn refusing(bad: bool) -> Pass {
    if bad { Pass::Answer(failure("malformed request")) } else { Pass::Forward }
}

/// Applies several replacements in order.
pub(super) fn swaps(request: &[u8], pairs: &[(&str, &str)]) -> Pass {
    replaced(request, pairs.iter().fold(request.to_vec(), |text, (from, to)| swap_all(&text, from, to)))
}

/// Splits a text into string literals with their quotes (true) and the parts between them (false).
pub(super) fn cut(text: &[u8]) -> Vec<(bool, &[u8])> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(start) = memchr::memchr(b'"', rest) {
        let mut end = start + 1;
        while end < rest.len() && rest[end] != b'"' {
            end += if rest[end] == b'\\' { 2 } else { 1 };
        }
        let end = (end + 1).min(rest.len());
        parts.push((false, &rest[..start]));
        parts.push((true, &rest[start..end]));
        rest = &rest[end..];
    }
    parts.push((false, rest));
    parts
}

/// Edits the parts between string literals.
pub(super) fn between(request: &[u8], edit: impl Fn(&[u8]) -> Vec<u8>) -> Pass {
    let parts = cut(request);
    let edited = parts.iter().flat_map(|(literal, part)| if *literal { part.to_vec() } else { edit(part) });
    replaced(request, edited.collect())
}

/// Applies replacements between string literals only.
pub(super) fn swaps_between(request: &[u8], pairs: &[(&str, &str)]) -> Pass {
    between(request, |part| pairs.iter().fold(part.to_vec(), |text, (from, to)| swap_all(&text, from, to)))
}

/// True if `what` returns true for a byte between string literals.
pub(super) fn any_between(request: &[u8], what: impl Fn(u8) -> bool) -> bool {
    cut(request).iter().any(|(literal, part)| !literal && part.iter().any(|byte| what(*byte)))
}

/// Edits string literals. The flag is true for the name of a member.
pub(super) fn literals(request: &[u8], edit: impl Fn(&[u8], bool) -> Vec<u8>) -> Pass {
    let parts = cut(request);
    let edited = parts.iter().enumerate().flat_map(|(at, (literal, part))| {
        let next = parts.get(at + 1).map_or(&b""[..], |(_, next)| next.trim_ascii_start());
        if *literal { edit(part, next.starts_with(b":")) } else { part.to_vec() }
    });
    replaced(request, edited.collect())
}

/// Edits the idempotency key of a request.
pub(super) fn rekeyed(request: &[u8], edit: impl Fn(&str) -> String) -> Pass {
    reworded(request, "idempotency_key", edit)
}

/// Edits a string member of a request.
pub(super) fn reworded(request: &[u8], member: &str, edit: impl Fn(&str) -> String) -> Pass {
    let Some(parsed) = value(request) else { return Pass::Forward };
    let Some(text) = parsed.get(member).and_then(Value::as_str) else { return Pass::Forward };
    let known = member;
    let mut member = format!("\"{known}\":").into_bytes();
    crate::json::write_str(&mut member, &edit(text));
    let rest = without(&parsed, |name, _| name == known);
    Pass::Replace(with_member(&rest, &String::from_utf8_lossy(&member)))
}

/// True if `what` returns true for an artifact in the request's state.
pub(super) fn any_artifact(request: &[u8], what: impl Fn(&Value) -> bool) -> bool {
    value(request).is_some_and(|parsed| {
        let slots = parsed.get("ds_state").and_then(|state| state.get("slots")).and_then(Value::as_object);
        slots.unwrap_or_default().iter().any(|(_, artifact)| what(artifact))
    })
}

/// Appends a member to an object.
pub(super) fn with_member(object: &[u8], member: &str) -> Vec<u8> {
    let rest = object.strip_prefix(b"{").unwrap_or(object);
    let comma = if rest == b"}" { "" } else { "," };
    [b"{", member.as_bytes(), comma.as_bytes(), rest].concat()
}

/// Key and aid of a keyed request.
pub(super) fn keyed(request: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let parsed = value(request)?;
    let text = |name: &str| parsed.get(name).and_then(Value::as_text).map(|text| text.as_bytes().to_vec());
    Some((text("idempotency_key").filter(|key| !key.is_empty())?, text("aid")?))
}

/// Harmless request with the `ds_state` of another, which may have trailing commas or trailing text.
pub(super) fn state_only(request: &[u8]) -> Option<Vec<u8>> {
    let mended = || swap_all(&request[..first_object(request).unwrap_or(request.len())], ",}", "}");
    let parsed = value(request).or_else(|| value(&mended()))?;
    let mut out = b"{\"aid\":\"AID.PEERPROOF.ANY.v1\",\"ds_state\":".to_vec();
    write_value(&mut out, parsed.get("ds_state")?);
    out.push(b'}');
    Some(out)
}

/// Replaces the `ds_state` of a reply.
pub(super) fn with_state(reply: &[u8], state: &str) -> Vec<u8> {
    const MEMBER: &str = ",\"ds_state\":";
    let Some(at) = memchr::memmem::rfind(reply, MEMBER.as_bytes()) else { return reply.to_vec() };
    let rest = &reply[at + MEMBER.len()..];
    match first_object(rest) {
        Some(end) => [&reply[..at], MEMBER.as_bytes(), state.as_bytes(), &rest[end..]].concat(),
        None => reply.to_vec(),
    }
}

/// Offset after the first complete object of `text`, if it begins with one.
pub(super) fn first_object(text: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut escaped = false;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// Increments every number after `name`.
pub(super) fn one_more(text: &[u8], name: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memmem::find(rest, name.as_bytes()) {
        let from = at + name.len();
        let digits = rest[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number: u64 = String::from_utf8_lossy(&rest[from..from + digits]).parse().unwrap_or_default();
        out.extend_from_slice(&rest[..from]);
        out.extend_from_slice((number + 1).to_string().as_bytes());
        rest = &rest[from + digits..];
    }
    out.extend_from_slice(rest);
    out
}
