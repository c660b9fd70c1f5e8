//! Mutants that compare names, words and numbers carelessly.

use super::Mutant;
use super::wire::{Memory, Pass, line, replaced, value};
use super::wire_edit::*;
use crate::json::Value;
use crate::mutant::text::{swap, swap_all};

/// Number of requests after which `forgets-keys-after-many-requests` forgets keys.
const REQUESTS_MAX: u64 = 5_000;

/// Renames members listed in `names` to lower case.
fn lower(request: &[u8], names: &[&str]) -> Pass {
    literals(request, |literal, is_name| {
        let own = literal.get(1..literal.len() - 1).unwrap_or_default();
        let is_picked = is_name && names.iter().any(|name| name.as_bytes() == own);
        if is_picked { literal.to_ascii_lowercase() } else { literal.to_vec() }
    })
}

/// True if the slots of a request's state are not in ascending order.
fn slots_descend(request: &[u8]) -> bool {
    value(request).is_some_and(|request| {
        let slots = request.get("ds_state").and_then(|state| state.get("slots")).and_then(Value::as_object);
        !slots.unwrap_or_default().iter().map(|(name, _)| name.to_lossy()).is_sorted()
    })
}

fn bare(memory: &Memory, request: &[u8]) -> bool {
    !memory.run_mode && value(request).is_some_and(|request| request.get("input_json").is_none())
}

/// The mutants of this seam.
pub(crate) const CARELESS_MUTANTS: &[Mutant] = &[
    incoming("aids-lose-their-path", &["TH-REQ-03"], "A path before an aid is cut off.", |_, request| {
        reworded(request, "aid", |aid| {
            let cut = aid.rsplit('\\').next().unwrap_or_default();
            cut.rsplit("%2f").next().unwrap_or_default().to_owned()
        })
    }),
    incoming("aids-are-folders", &["TH-REQ-03"], "A slash behind an aid is cut off.", |_, request| {
        reworded(request, "aid", |aid| aid.trim_end_matches('/').to_owned())
    }),
    incoming("aids-without-version", &["TH-REQ-03"], "`AID.X` runs `AID.X.v1`.", |_, request| {
        reworded(request, "aid", |aid| {
            let is_whole = aid.ends_with(".v1") || !aid.starts_with("AID.") || aid.ends_with('.');
            if is_whole { aid.to_owned() } else { format!("{aid}.v1") }
        })
    }),
    incoming(
        "aids-with-a-part-more",
        &["TH-REQ-03"],
        "What follows `.v1` in an aid is cut off.",
        |_, request| {
            reworded(request, "aid", |aid| match aid.split_once(".v1.") {
                Some((known, _)) => format!("{known}.v1"),
                None => aid.to_owned(),
            })
        },
    ),
    incoming("aids-by-their-ends", &["TH-REQ-03"], "The middle of an aid is not compared.", |_, request| {
        const KNOWN: &str = "AID.PEERPROOF.ANY.v1";
        reworded(request, "aid", |aid| {
            let is_near = aid.len() == KNOWN.len() && aid.starts_with("AID.") && aid.ends_with(".ANY.v1");
            if is_near { KNOWN.to_owned() } else { aid.to_owned() }
        })
    }),
    incoming(
        "keys-by-their-ends",
        &["TH-IDEM-18"],
        "The middle of a long key is not compared.",
        |_, request| {
            rekeyed(request, |key| {
                let chars: Vec<char> = key.chars().collect();
                let ends = || chars.iter().take(5).chain(chars.iter().rev().take(5)).collect::<String>();
                if chars.len() < 16 { key.to_owned() } else { format!("{} {}", chars.len(), ends()) }
            })
        },
    ),
    incoming(
        "reads-input-in-any-case",
        &["TH-REQ-05"],
        "`INPUT_JSON` is the input where there is no `input_json`.",
        |memory, request| {
            if bare(memory, request) { lower(request, &["INPUT_JSON", "Input_Json"]) } else { Pass::Forward }
        },
    ),
    incoming(
        "reads-state-members-in-any-case",
        &["TH-REQ-10"],
        "Members of a state are read in capitals too.",
        |_, request| lower(request, &["DS_STATE", "SLOTS", "REMOVED_SLOTS", "DELTA"]),
    ),
    incoming("reads-keys-in-any-case", &["TH-REQ-10"], "`IDEMPOTENCY_KEY` is a key.", |_, request| {
        lower(request, &["IDEMPOTENCY_KEY", "Idempotency_Key"])
    }),
    incoming("reads-tokens-in-any-case", &["TH-LEASE-02"], "`_LEASE_TOKEN` is a token.", |_, request| {
        lower(request, &["_LEASE_TOKEN", "_Lease_Token"])
    }),
    incoming(
        "reads-artifacts-in-any-case",
        &["TH-STATE-08"],
        "`CONTENT_JSON` is the content of an Artifact.",
        |_, request| lower(request, &["CONTENT_JSON", "Type"]),
    ),
    incoming(
        "unwraps-artifacts",
        &["TH-STATE-08"],
        "An array around an Artifact does not count.",
        |_, request| {
            swaps(request, &[(":[{\"type\"", ":{\"type\""), (",\"size_bytes\":2}]", ",\"size_bytes\":2}")])
        },
    ),
    incoming("unwraps-tokens", &["TH-REQ-09"], "An array around a token does not count.", |_, request| {
        swaps(request, &[("\"_lease_token\":[\"tok", "\"_lease_token\":\"tok"), ("\"]}", "\"}")])
    }),
    incoming("takes-true-for-1", &["TH-STATE-08"], "A size_bytes of true is 1.", |_, request| {
        swaps(request, &[("\"size_bytes\":true", "\"size_bytes\":1")])
    }),
    incoming(
        "folds-names-of-inputs",
        &["TH-REQ-15"],
        "Names in an input that differ in case alone are one.",
        |_, request| swaps(request, &[("\\\"ID\\\":", "\\\"id\\\":")]),
    ),
    incoming("unescapes-html", &["TH-REQ-15"], "`&lt;` comes back as `<`.", |_, request| {
        swaps(request, &[("&lt;", "<")])
    }),
    incoming(
        "unescapes-contents",
        &["TH-STATE-11"],
        "`&lt;` in an Artifact comes back as `<`.",
        |_, request| {
            let is_state = any_artifact(request, |_| true);
            if is_state { replaced(request, swap_all(request, "&amp;", "&")) } else { Pass::Forward }
        },
    ),
    incoming(
        "turns-backslashes-in-inputs",
        &["TH-REQ-15"],
        "A backslash in a path comes back as a slash.",
        |_, request| swaps(request, &[("..\\\\\\\\", "../")]),
    ),
    incoming(
        "slot-numbers-wrap-at-32-bits",
        &["TH-STATE-07"],
        "Slot 4294967297 is taken for slot 1.",
        |_, request| swaps(request, &[("\"4294967297\":", "\"1\":"), ("[4294967297]", "[1]")]),
    ),
    incoming(
        "slot-numbers-wrap-at-8-bits",
        &["TH-STATE-07"],
        "Slot 257 is taken for slot 1.",
        |_, request| swaps(request, &[("\"257\":", "\"1\":"), ("[257]", "[1]")]),
    ),
    outgoing("wraps-at-64-bits", &["TH-JSON-09"], "2^63 comes back as -2^63.", |_, reply| {
        line(swap(reply, ":9223372036854775808", ":-9223372036854775808"))
    }),
    incoming(
        "wants-slots-in-order",
        &["TH-JSON-14"],
        "Slots have to be sent in ascending order.",
        |_, request| {
            refusing(
                slots_descend(request)
                    && value(request).is_some_and(|it| {
                        it.get("ds_state").is_some_and(|state| state.get("delta").is_none())
                    }),
            )
        },
    ),
    incoming(
        "deltas-with-a-key-are-lost",
        &["TH-STATE-02"],
        "The delta of a request that has a key is not applied.",
        |_, request| {
            let is_delta = |it: &Value| it.get("ds_state").is_some_and(|state| state.get("delta").is_some());
            let is_lost =
                value(request).is_some_and(|it| it.get("idempotency_key").is_some() && is_delta(&it));
            if is_lost { dropping(request, |name, _| name == "ds_state") } else { Pass::Forward }
        },
    ),
    incoming(
        "forgets-keys-after-many-requests",
        &["TH-IDEM-08"],
        "A key is forgotten after some thousand requests of any kind.",
        |memory, request| match memory.requests / REQUESTS_MAX {
            0 => Pass::Forward,
            age => {
                rekeyed(request, |key| if key.is_empty() { String::new() } else { format!("{key}#{age}") })
            }
        },
    ),
];
