//! Mutants that misread slots, keys and tokens in one way each.

use super::Mutant;
use super::wire::{Pass, line, value, without};
use super::wire_edit::*;
use crate::json::Value;

/// Length at which `cuts-long-keys` cuts, in characters.
const KEY_CHARS_MAX: usize = 64;

fn content_is(artifact: &Value, what: fn(&Value) -> bool) -> bool {
    let content = artifact.get("content_json").and_then(Value::as_text);
    content.and_then(|content| value(content.as_bytes())).is_some_and(|content| what(&content))
}

/// Mutants of this seam in slots, keys and tokens.
pub(crate) const STATE_MUTANTS: &[Mutant] = &[
    incoming("wants-slots", &["TH-STATE-06"], "A state without `slots` is refused.", |_, text| {
        let state = value(text).and_then(|request| request.get("ds_state").cloned());
        refusing(state.is_some_and(|state| state.as_object().is_some() && state.get("slots").is_none()))
    }),
    incoming("wants-slots-to-set", &["TH-STATE-04"], "A delta that only removes is refused.", |_, text| {
        let state = value(text).and_then(|request| request.get("ds_state").cloned());
        refusing(state.is_some_and(|state| {
            let sets = state.get("slots").and_then(Value::as_object).is_some_and(|s| !s.is_empty());
            state.get("removed_slots").is_some() && !sets
        }))
    }),
    outgoing(
        "replies-remove-slots",
        &["TH-STATE-15"],
        "The reply to a request with a state removes all slots.",
        |memory, reply| {
            const ALL: &str = "{\"delta\":true,\"slots\":{},\"removed_slots\":[0,1,2,3,4,5,6,7]}";
            let asked = memory.asked.front().and_then(|request| value(request));
            let brought = asked.is_some_and(|request| request.get("ds_state").is_some());
            line(if brought && !memory.run_mode { with_state(reply, ALL) } else { reply.to_vec() })
        },
    ),
    incoming(
        "slots-like-integers",
        &["TH-STATE-07"],
        "Slots are read by a loose parser of integers.",
        |_, text| {
            swaps(
                text,
                &[
                    ("\"07\":{", "\"7\":{"),
                    ("\"01\":{", "\"1\":{"),
                    ("\"+1\":{", "\"1\":{"),
                    ("\" 1\":{", "\"1\":{"),
                    ("\"1 \":{", "\"1\":{"),
                    ("\"removed_slots\":[\"1\"]", "\"removed_slots\":[1]"),
                ],
            )
        },
    ),
    incoming(
        "slots-like-floats",
        &["TH-STATE-07"],
        "Slots are read as floating point numbers and cut.",
        |_, text| {
            swaps(
                text,
                &[
                    ("\"1.0\":{", "\"1\":{"),
                    ("\"1e0\":{", "\"1\":{"),
                    ("\"removed_slots\":[1.5]", "\"removed_slots\":[1]"),
                ],
            )
        },
    ),
    incoming("slots-in-hexadecimal", &["TH-STATE-07"], "0x1 names slot 1.", |_, text| {
        swaps(text, &[("\"0x1\":{", "\"1\":{")])
    }),
    incoming("slots-of-text-are-0", &["TH-STATE-07"], "Text that is no number names slot 0.", |_, text| {
        swaps(
            text,
            &[
                (",\"\":{", ",\"3\":{"),
                (",\"a\":{", ",\"3\":{"),
                ("\"removed_slots\":[true]", "\"removed_slots\":[1]"),
            ],
        )
    }),
    incoming("slots-cut-at-nul", &["TH-STATE-07"], "A slot's number ends at U+0000.", |_, text| {
        swaps(text, &[("\"1\\u0000\":{", "\"1\":{")])
    }),
    incoming("slots-in-any-script", &["TH-STATE-07"], "Digits of any script are digits.", |_, text| {
        swaps(text, &[("\"\u{661}\":{", "\"1\":{")])
    }),
    incoming("slots-wrap-around", &["TH-STATE-07"], "Slots are taken modulo a power of two.", |_, text| {
        swaps(
            text,
            &[
                ("\"-1\":{", "\"7\":{"),
                ("\"18446744073709551617\":{", "\"1\":{"),
                ("\"removed_slots\":[-1]", "\"removed_slots\":[7]"),
                ("\"removed_slots\":[18446744073709551617]", "\"removed_slots\":[1]"),
            ],
        )
    }),
    incoming("skips-bad-removals", &["TH-STATE-07"], "A removed slot that is none is skipped.", |_, text| {
        swaps(text, &[("\"removed_slots\":[1,8]", "\"removed_slots\":[1]")])
    }),
    incoming(
        "removals-of-any-type",
        &["TH-STATE-07"],
        "`removed_slots` may be a number, a text or an object.",
        |_, text| {
            swaps(
                text,
                &[
                    ("\"removed_slots\":1}", "\"removed_slots\":[1]}"),
                    ("\"removed_slots\":\"1\"", "\"removed_slots\":[1]"),
                    ("\"removed_slots\":{\"1\":true}", "\"removed_slots\":[1]"),
                ],
            )
        },
    ),
    incoming("removals-in-digits-only", &["TH-JSON-14"], "A removed slot spelled 1.0 is none.", |_, text| {
        swaps(text, &[("\"removed_slots\":[1.0,2e0]", "\"removed_slots\":[2e0]")])
    }),
    incoming("slots-of-any-type", &["TH-STATE-08"], "`slots` that are no object are empty.", |_, text| {
        swaps(
            text,
            &[
                ("\"slots\":[]", "\"slots\":{}"),
                ("\"slots\":\"x\"", "\"slots\":{}"),
                ("\"slots\":5", "\"slots\":{}"),
            ],
        )
    }),
    incoming(
        "wants-structured-content",
        &["TH-STATE-11"],
        "A number or null as content is refused.",
        |_, text| {
            refusing(any_artifact(text, |artifact| {
                content_is(artifact, |content| matches!(content, Value::Number(_) | Value::Null))
            }))
        },
    ),
    incoming("wants-type", &["TH-STATE-11"], "An Artifact with an empty type is refused.", |_, text| {
        refusing(any_artifact(text, |artifact| artifact.get("type").and_then(Value::as_str) == Some("")))
    }),
    incoming("compares-raw-keys", &["TH-IDEM-18"], "Escapes in a key are part of it.", |_, text| {
        literals(text, |literal, is_name| {
            let raw = !is_name && !literal.starts_with(b"\"{") && literal.contains(&b'\\');
            if raw { crate::mutant::text::swap_all(literal, "\\", "\\\\") } else { literal.to_vec() }
        })
    }),
    incoming("trims-keys", &["TH-IDEM-18"], "White space around a key is no part of it.", |_, text| {
        rekeyed(text, |key| key.trim().to_owned())
    }),
    incoming("cuts-keys-at-nul", &["TH-IDEM-18"], "A key ends at U+0000.", |_, text| {
        rekeyed(text, |key| key.split('\0').next().unwrap_or_default().to_owned())
    }),
    incoming("composes-keys", &["TH-IDEM-18"], "Keys are compared in a normal form.", |_, text| {
        rekeyed(text, |key| key.replace("e\u{301}", "é"))
    }),
    incoming(
        "keys-in-basic-plane",
        &["TH-IDEM-18"],
        "Characters beyond U+FFFF are alike in keys.",
        |_, text| rekeyed(text, |key| key.chars().map(|c| if c > '\u{ffff}' { '?' } else { c }).collect()),
    ),
    incoming("keys-like-numbers", &["TH-IDEM-18"], "Keys of digits are compared as numbers.", |_, text| {
        rekeyed(text, |key| key.parse().map_or_else(|_| key.to_owned(), |number: u64| number.to_string()))
    }),
    incoming("cuts-long-keys", &["TH-IDEM-18"], "Only the first 64 characters of a key count.", |_, text| {
        rekeyed(text, |key| key.chars().take(KEY_CHARS_MAX).collect())
    }),
    incoming(
        "refused-state-spends-token",
        &["TH-LEASE-10"],
        "A token is spent before the state that came with it is read.",
        |_, text| {
            let Some(request) = value(text) else { return Pass::Forward };
            let slots =
                request.get("ds_state").and_then(|state| state.get("slots")).and_then(Value::as_object);
            if request.get("_lease_token").is_none()
                || !slots.unwrap_or_default().iter().any(|(name, _)| name.as_bytes() == b"9")
            {
                return Pass::Forward;
            }
            Pass::RunFirst(without(&request, |name, _| name == "ds_state"))
        },
    ),
    incoming(
        "refusal-of-request-spends-token",
        &["TH-LEASE-10"],
        "A token is spent before the rest of the request is read.",
        |memory, text| {
            let parsed = value(text);
            let member = |name: &str| {
                parsed
                    .as_ref()
                    .and_then(|request| request.get(name))
                    .and_then(Value::as_str)
                    .map(str::to_owned)
            };
            if let Some(aid) = member("tool_aid") {
                memory.kept.insert(b"aid".to_vec(), aid.into_bytes());
                return Pass::Forward;
            }
            let aid = memory.kept.get(&b"aid"[..]).map(|aid| String::from_utf8_lossy(aid).into_owned());
            let all = String::from_utf8_lossy(text).into_owned();
            let token = all.split("\"_lease_token\":\"").nth(1).and_then(|rest| rest.split('"').next());
            let good = member("aid").is_some_and(|aid| aid.contains("TIER"))
                && member("input_json").is_some()
                && parsed.as_ref().is_some_and(|request| {
                    request.get("idempotency_key").is_none_or(|key| key.as_text().is_some())
                });
            match (aid, token) {
                (Some(aid), Some(token)) if !good => {
                    Pass::RunFirst(format!("{{\"aid\":\"{aid}\",\"_lease_token\":\"{token}\"}}").into_bytes())
                }
                _ => Pass::Forward,
            }
        },
    ),
];
