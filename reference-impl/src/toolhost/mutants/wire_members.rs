//! Mutants that misread members, inputs and the whole of standard input in run mode.

use super::Mutant;
use super::wire::{Pass, failure, line, replaced, value};
use super::wire_edit::*;
use crate::json::Value;
use crate::mutant::text::has;

/// Size in bytes from which on `cuts-large-results` loses bytes.
const LARGE_BYTES: usize = 600_000;

fn only_known(object: Option<&Value>, known: &[&str]) -> bool {
    let members = object.and_then(Value::as_object).unwrap_or_default();
    members.iter().all(|(name, _)| known.contains(&&*name.to_lossy()))
}

/// Mutants of this seam in members and inputs.
pub(crate) const MEMBER_MUTANTS: &[Mutant] = &[
    outgoing(
        "quotes-whole-aids",
        &["TH-LIMIT-07"],
        "The error about an unknown aid quotes all of it, however long it is.",
        |memory, reply| {
            let asked = memory.asked.front().map_or(0, Vec::len);
            let long = has(reply, "tool not found") && asked >= 1 << 20;
            line(if long {
                failure(&format!("tool not found: {}", "x".repeat(asked)))
            } else {
                reply.to_vec()
            })
        },
    ),
    incoming("takes-any-value", &["TH-REQ-01"], "true, null, a number or [] is `{}`.", |memory, text| {
        let other = matches!(text.trim_ascii(), b"true" | b"null" | b"1" | b"[]");
        let empty: &[u8] = if memory.run_mode { b"{}" } else { b"{\"aid\":\"AID.PEERPROOF.ANY.v1\"}" };
        if other { Pass::Replace(empty.to_vec()) } else { Pass::Forward }
    }),
    incoming(
        "refuses-unknown-state-members",
        &["TH-REQ-10"],
        "A member of a state or an Artifact that it does not know is refused.",
        |_, text| {
            const STATE: &[&str] = &["slots", "delta", "removed_slots"];
            const ARTIFACT: &[&str] = &["type", "provenance", "content_json", "size_bytes"];
            let bad_state = value(text).is_some_and(|request| !only_known(request.get("ds_state"), STATE));
            refusing(bad_state || any_artifact(text, |artifact| !only_known(Some(artifact), ARTIFACT)))
        },
    ),
    incoming(
        "run-refuses-keys-that-are-numbers",
        &["TH-REQ-13"],
        "In run mode a key that is a number makes the request malformed.",
        |memory, text| {
            let is_number = |request: Value| matches!(request.get("idempotency_key"), Some(Value::Number(_)));
            refusing(memory.run_mode && value(text).is_some_and(is_number))
        },
    ),
    incoming("loses-nulls", &["TH-REQ-15"], "A null inside an array of the input is lost.", |_, text| {
        swaps(text, &[(",null,", ",")])
    }),
    incoming("composes-characters", &["TH-REQ-15"], "e and U+0301 become é.", |_, text| {
        swaps(text, &[("e\\\\u0301", "é"), ("e\u{301}", "é")])
    }),
    incoming("strips-marks", &["TH-REQ-15"], "U+FEFF inside strings is dropped.", |_, text| {
        swaps(text, &[("\\\\ufeff", ""), ("\u{feff}", "")])
    }),
    incoming("escapes-html", &["TH-REQ-15"], "`<` comes back as `&lt;`.", |_, text| {
        swaps(text, &[("<", "&lt;")])
    }),
    incoming(
        "tokens-without-the-feature",
        &["TH-REQ-16"],
        "A peer without leases refuses a request with a token.",
        |_, text| refusing(value(text).is_some_and(|request| request.get("_lease_token").is_some())),
    )
    .without("lease"),
    outgoing("silent-in-run-mode", &["TH-RUN-04"], "A run writes nothing.", |memory, reply| {
        if memory.run_mode { Vec::new() } else { line(reply.to_vec()) }
    }),
    incoming("run-wants-brace-last", &["TH-RUN-01"], "Stdin has to end with a brace.", |memory, text| {
        let more = text.trim_ascii_end().len() < text.len();
        refusing(memory.run_mode && more && !text.trim_ascii().is_empty())
    }),
    incoming("run-wants-brace-first", &["TH-RUN-01"], "Stdin has to begin with a brace.", |memory, text| {
        let more = text.trim_ascii_start().len() < text.len();
        refusing(memory.run_mode && more && !text.trim_ascii().is_empty())
    }),
    incoming("run-takes-first-line", &["TH-RUN-01"], "Stdin ends with its first line.", |memory, text| {
        match memchr::memchr(b'\n', text).filter(|end| memory.run_mode && *end > 0) {
            Some(end) => Pass::Replace(text[..end].to_vec()),
            None => Pass::Forward,
        }
    }),
    incoming("run-skips-to-brace", &["TH-RUN-01"], "Text before a brace is skipped.", |memory, text| {
        match memchr::memchr(b'{', text).filter(|_| memory.run_mode) {
            Some(from) => replaced(text, text[from..].to_vec()),
            None => Pass::Forward,
        }
    }),
    outgoing("cuts-large-results", &["TH-LIMIT-07"], "Large results lose bytes.", |_, reply| {
        let mut reply = reply.to_vec();
        if reply.len() > LARGE_BYTES && is_ok(&reply) {
            // In a text of one repeated unit, 36 bytes hold whole characters and whole escapes.
            let from = memchr::memmem::find(&reply, b"\\\":\\\"").map_or(1_000, |at| at + 5);
            let from = memchr::memmem::find(&reply, b"[{},").map_or(from, |at| at + 4);
            let unit = if has(&reply, "[{},") {
                b",{\\\"id\\\":7,\\\"on\\\":true,\\\"at\\\":[1,null]}".len()
            } else {
                96
            };
            reply.drain(from..from + unit);
        }
        line(reply)
    }),
];
