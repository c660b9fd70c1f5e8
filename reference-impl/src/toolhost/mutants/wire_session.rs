//! Mutants that rewrite requests and replies of a session: keys, leases, state, fetching.

use super::Mutant;
use super::wire::{Pass, failure, line, replaced, success, value};
use super::wire_edit::*;
use crate::json::Value;
use crate::mutant::text::{has, swap};

/// Mutants of this seam in sessions: keys, leases, state, fetching.
pub(crate) const SESSION_MUTANTS: &[Mutant] = &[
    outgoing("hit-without-flag", &["TH-IDEM-01"], "A hit does not say that it is one.", |_, reply| {
        line(swap(reply, ",\"idempotent_hit\":true", ""))
    }),
    outgoing("flag-without-hit", &["TH-IDEM-03"], "First executions say that they are hits.", |_, reply| {
        line(swap(reply, "\"idempotent_hit\":false", "\"idempotent_hit\":true"))
    }),
    both(
        "key-without-aid",
        &["TH-IDEM-10"],
        "A known key answers the first tool's result to any aid.",
        |memory, request| {
            let Some((key, _)) = keyed(request) else { return Pass::Forward };
            match memory.kept.get(&key) {
                Some(reply) => {
                    Pass::Answer(swap(reply, "\"idempotent_hit\":false", "\"idempotent_hit\":true"))
                }
                None => Pass::Forward,
            }
        },
        |memory, reply| {
            if let Some((key, _)) = memory.asked.front().and_then(|request| keyed(request))
                && is_ok(reply)
            {
                memory.kept.entry(key).or_insert_with(|| reply.to_vec());
            }
            line(reply.to_vec())
        },
    ),
    both(
        "key-and-input-without-aid",
        &["TH-IDEM-10"],
        "A known key with its first input answers the first tool's result to any aid.",
        |memory, request| {
            let Some(key) = keyed_input(request) else { return Pass::Forward };
            match memory.kept.get(&key) {
                Some(reply) => {
                    Pass::Answer(swap(reply, "\"idempotent_hit\":false", "\"idempotent_hit\":true"))
                }
                None => Pass::Forward,
            }
        },
        |memory, reply| {
            if let Some(key) = memory.asked.front().and_then(|request| keyed_input(request))
                && is_ok(reply)
            {
                memory.kept.entry(key).or_insert_with(|| reply.to_vec());
            }
            line(reply.to_vec())
        },
    ),
    incoming(
        "empty-string-is-a-key",
        &["TH-IDEM-12"],
        "The empty string is a key like any other.",
        |_, request| {
            replaced(request, swap(request, "\"idempotency_key\":\"\"", "\"idempotency_key\":\"<empty>\""))
        },
    ),
    both(
        "caches-host-errors",
        &["TH-IDEM-13", "TH-STATE-16"],
        "A refusal is kept under its key.",
        |memory, request| match keyed(request).and_then(|(key, _)| memory.kept.get(&key)) {
            Some(reply) => Pass::Answer(reply.clone()),
            None => Pass::Forward,
        },
        |memory, reply| {
            if let Some((key, _)) = memory.asked.front().and_then(|request| keyed(request))
                && !is_ok(reply)
            {
                memory.kept.insert(key, reply.to_vec());
            }
            line(reply.to_vec())
        },
    ),
    outgoing(
        "hit-with-other-state",
        &["TH-IDEM-15"],
        "A hit's delta sets a slot that nobody wrote.",
        |_, reply| {
            const SLOT: &str = "\"slots\":{\"6\":{\"type\":\"t\",\"provenance\":\"p\",\"content_json\":\"9\",\"size_bytes\":1}}";
            line(if is_hit(reply) { swap(reply, "\"slots\":{}", SLOT) } else { reply.to_vec() })
        },
    ),
    outgoing("hit-with-full-state", &["TH-IDEM-16"], "A hit's `ds_state` is `{}`.", |_, reply| {
        line(if is_hit(reply) { swap(reply, "{\"delta\":true,\"slots\":{}}", "{}") } else { reply.to_vec() })
    }),
    incoming(
        "keys-ignore-case",
        &["TH-IDEM-18"],
        "Keys are compared without regard to case.",
        |_, request| rekeyed(request, str::to_lowercase),
    ),
    incoming(
        "keys-are-percent-decoded",
        &["TH-IDEM-18"],
        "A percent-encoded letter of a key is decoded.",
        |_, request| rekeyed(request, |key| key.replace("%50", "P")),
    ),
    incoming(
        "aids-ignore-case",
        &["TH-REQ-03"],
        "Action ids are compared without regard to case.",
        |_, request| {
            reworded(request, "aid", |aid| {
                aid.to_uppercase().replace(".V1", ".v1").replace("_LEASE.ISSUE", "_lease.issue")
            })
        },
    ),
    incoming(
        "tokens-ignore-case",
        &["TH-LEASE-04"],
        "Tokens are compared without regard to case.",
        |_, request| reworded(request, "_lease_token", str::to_lowercase),
    ),
    outgoing(
        "lease-required-without-tier",
        &["TH-LEASE-02"],
        "`lease_required` has a tier that is no integer.",
        |_, reply| {
            let mut out = reply.to_vec();
            for tier in ["1", "2", "3"] {
                out = swap(&out, &format!("\"tier\":{tier},"), &format!("\"tier\":\"{tier}\","));
            }
            line(out)
        },
    ),
    outgoing(
        "hides-expiry",
        &["TH-LEASE-05"],
        "An expired token is refused without saying so.",
        |_, reply| line(swap(reply, "\"expired\"", "\"no longer valid\"")),
    ),
    outgoing(
        "keeps-state-of-refused-lease",
        &["TH-LEASE-09"],
        "A refused lease leaves its `ds_state` applied.",
        |memory, reply| {
            if has(reply, "\"lease_re") {
                memory.run_after = memory.asked.front().and_then(|request| state_only(request));
            }
            line(reply.to_vec())
        },
    ),
    outgoing(
        "keeps-state-of-expired-lease",
        &["TH-LEASE-09"],
        "A request with an expired token leaves its `ds_state` applied.",
        |memory, reply| {
            if has(reply, "\"expired\"") {
                memory.run_after = memory.asked.front().and_then(|request| state_only(request));
            }
            line(reply.to_vec())
        },
    ),
    both(
        "hit-bypasses-lease",
        &["TH-LEASE-12"],
        "A known key is answered from the cache without a token.",
        |memory, request| match keyed(request)
            .filter(|_| has(request, "TIER"))
            .and_then(|(key, _)| memory.kept.get(&key))
        {
            Some(reply) => Pass::Answer(swap(reply, "\"idempotent_hit\":false", "\"idempotent_hit\":true")),
            None => Pass::Forward,
        },
        |memory, reply| {
            if let Some((key, _)) = memory.asked.front().and_then(|request| keyed(request))
                && is_ok(reply)
            {
                memory.kept.insert(key, reply.to_vec());
            }
            line(reply.to_vec())
        },
    ),
    outgoing("echoes-token", &["TH-LEASE-15"], "A reply repeats the token it was sent.", |memory, reply| {
        let token = memory
            .asked
            .front()
            .and_then(|request| value(request))
            .and_then(|request| request.get("_lease_token").and_then(Value::as_str).map(str::to_owned));
        match token {
            Some(token) => {
                let mut member = b"{\"lease\":".to_vec();
                crate::json::write_str(&mut member, &token);
                member.push(b',');
                line(swap(reply, "{", &String::from_utf8_lossy(&member)))
            }
            None => line(reply.to_vec()),
        }
    }),
    incoming(
        "forgets-state",
        &["TH-STATE-01"],
        "Every request starts from an empty state.",
        |memory, request| {
            let bare = value(request)
                .is_some_and(|value| value.get("aid").is_some() && value.get("ds_state").is_none());
            if bare && !memory.run_mode && memory.requests > 1 {
                return Pass::RunFirst(b"{\"aid\":\"AID.PEERPROOF.ANY.v1\",\"ds_state\":{}}".to_vec());
            }
            Pass::Forward
        },
    ),
    incoming(
        "forgets-state-after-700-requests",
        &["TH-STATE-01"],
        "The 700th request of a session empties the state.",
        |memory, _| {
            if memory.requests == 700 && !memory.run_mode {
                return Pass::RunFirst(b"{\"aid\":\"AID.PEERPROOF.ANY.v1\",\"ds_state\":{}}".to_vec());
            }
            Pass::Forward
        },
    ),
    incoming("wraps-slot-numbers", &["TH-STATE-07"], "Slot 8 is taken for slot 7.", |_, request| {
        replaced(
            request,
            swap(&swap(request, "\"8\":{", "\"7\":{"), "\"removed_slots\":[8]", "\"removed_slots\":[7]"),
        )
    }),
    incoming(
        "trims-slot-keys",
        &["TH-STATE-07"],
        "White space around the number of a slot does not count.",
        |_, request| replaced(request, swap(&swap(request, "\" 7\":{", "\"7\":{"), "\"7 \":{", "\"7\":{")),
    ),
    outgoing(
        "takes-malformed-artifacts",
        &["TH-STATE-08"],
        "A malformed Artifact is dropped and the request run.",
        |memory, reply| {
            line(if has(reply, "artifact needs") || has(reply, "artifact must") {
                success(memory, "{}")
            } else {
                reply.to_vec()
            })
        },
    ),
    outgoing(
        "counts-characters",
        &["TH-STATE-10"],
        "`size_bytes` is off by one where it is not small.",
        |_, reply| line(one_more(&one_more(reply, "\"size_bytes\":"), "\\\"size_bytes\\\":")),
    ),
    incoming(
        "wants-json-content",
        &["TH-STATE-11"],
        "`content_json` that is no JSON is refused.",
        |_, request| {
            let Some(parsed) = value(request) else { return Pass::Forward };
            let slots =
                parsed.get("ds_state").and_then(|state| state.get("slots")).and_then(Value::as_object);
            let bad = slots.unwrap_or_default().iter().any(|(_, artifact)| {
                artifact
                    .get("content_json")
                    .and_then(Value::as_text)
                    .is_some_and(|text| value(text.as_bytes()).is_none())
            });
            if bad { Pass::Answer(failure("content_json is not JSON")) } else { Pass::Forward }
        },
    ),
    outgoing(
        "empty-deltas",
        &["TH-STATE-15"],
        "A reply's delta leaves out what the tool wrote.",
        |memory, reply| {
            line(if memory.run_mode {
                reply.to_vec()
            } else {
                with_state(reply, "{\"delta\":true,\"slots\":{}}")
            })
        },
    ),
    outgoing(
        "keeps-state-of-refused",
        &["TH-STATE-16"],
        "A refused request leaves its `ds_state` applied.",
        |memory, reply| {
            if !memory.run_mode && !is_ok(reply) && !has(reply, "TOOL_ERROR") {
                memory.run_after = memory.asked.front().and_then(|request| state_only(request));
            }
            line(reply.to_vec())
        },
    ),
    outgoing(
        "run-replies-forget-slots",
        &["TH-STATE-20"],
        "Run replies leave out the slots.",
        |memory, reply| {
            line(if memory.run_mode { with_state(reply, "{\"slots\":{}}") } else { reply.to_vec() })
        },
    ),
    outgoing(
        "http-status-as-string",
        &["TH-HTTP-14"],
        "The status of a fetched URL is a string.",
        |_, reply| {
            let mut out = reply.to_vec();
            for status in ["200", "404", "500", "302"] {
                out = swap(
                    &out,
                    &format!("{{\\\"status\\\":{status}"),
                    &format!("{{\\\"status\\\":\\\"{status}\\\""),
                );
            }
            line(out)
        },
    ),
];

/// Idempotency key and input of a request, concatenated.
fn keyed_input(request: &[u8]) -> Option<Vec<u8>> {
    let (key, _) = keyed(request)?;
    let parsed = value(request)?;
    let input = parsed.get("input_json").and_then(Value::as_text).map(|text| text.as_bytes().to_vec());
    Some([key, vec![0xFF], input.unwrap_or_default()].concat())
}
