//! The rungs of this boundary's checks.

use peerproof_engine::data::rung::Rung;
use peerproof_engine::data::rung::Rung::{Hostile, Malformed, Ordinary};

/// Globs on check ids without the name of the boundary. The first match counts; other checks are ordinary.
pub(crate) const RUNGS: &[(&str, Rung)] = &[
    ("*/json/{presentation,safe-integers,carriage-return-between-tokens}", Ordinary),
    ("*/{nesting,sizes}/*", Hostile),
    ("client/hostile/batch-reply-in-any-order", Ordinary),
    ("client/{hostile,hang-up,size}/*", Hostile),
    ("*/gzip/{inflated-size,memory-while-refusing-100-mb,corrupt,nested}", Hostile),
    ("http/bodies/*", Hostile),
    ("*/{json,requests}/*", Malformed),
    ("*/ids/{wrong-types,beyond-*}", Malformed),
    ("*/params/{missing,positional-for-named,null,scalar}", Malformed),
    ("*/batches/{empty,no-requests,invalid-beside-valid,nested,malformed}", Malformed),
    ("*/batches/{notification-beside-invalid,rules-of-single-messages,shuffled-mixtures}", Malformed),
    ("*/examples/{invalid-*,empty-array,batch-of-all-sorts}", Malformed),
    ("*/{params-that-do-not-fit,members-of-other-types,data-of-other-types}", Malformed),
    ("*/notifications/refused-calls-do-not-run", Malformed),
    (
        "*/auth/{order-of-checks,malformed,missing,wrong,signature-near-misses,nonce-near-misses,unsignable}",
        Malformed,
    ),
    ("*/gzip/{undeclared,no-base64,shapes}", Malformed),
    ("*/line-ends/{blank-lines,last-line-cut,separators-of-other-texts}", Malformed),
    ("*/model/*", Malformed),
    ("client/{invalid,mixture}/*", Malformed),
    (
        "client/stream/{chunk-*,gap,first-chunk-is-two,chunks-out-of-order,wrong-total,without-end,start-*}",
        Malformed,
    ),
];

#[cfg(test)]
mod tests {
    use peerproof_engine::data::carriage::HTTP;
    use peerproof_engine::data::clause::Side;
    use peerproof_engine::data::json::{self, DecodeLimits, Json};
    use peerproof_engine::data::payload::Vars;
    use peerproof_engine::data::plan::{Act, Plan};
    use peerproof_engine::data::rng::Rng;
    use peerproof_engine::data::rung::Rungs;

    use super::*;

    /// Byte of texts that are packed or signed only when they are sent.
    const TEMPLATE: u8 = b'@';
    /// Ordinary checks that look at every reply of a conversation, some to malformed messages.
    const OF_EVERY_REPLY: &str = "/ambient/";

    fn is_request(value: &Json) -> bool {
        value.get("jsonrpc").and_then(Json::as_str) == Some("2.0")
            && value.get("method").is_some_and(|it| it.as_str().is_some())
    }

    fn is_message(line: &[u8]) -> bool {
        let value = json::decode(line, &DecodeLimits::default()).map(|decoded| decoded.value);
        value.is_ok_and(|value| match value.as_array() {
            Some(all) => !all.is_empty() && all.iter().all(is_request),
            None => is_request(&value),
        })
    }

    fn lines(plan: &Plan) -> Vec<Vec<u8>> {
        let sent = plan.steps.iter().filter_map(|step| match &step.act {
            Act::Send { payload, .. } => payload.expand(&Vars::new()).ok(),
            _ => None,
        });
        let bytes: Vec<u8> = sent.flatten().collect();
        bytes
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty() && !line.contains(&TEMPLATE))
            .map(<[u8]>::to_vec)
            .collect()
    }

    #[test]
    fn ordinary_checks_send_what_a_correct_client_sends() {
        let (boundary, rungs) = (crate::boundary(), Rungs::new("json_rpc", RUNGS));
        let facts = boundary.full_facts(Side::Provider);
        let mut wrong = Vec::new();
        for check in boundary.checks() {
            let is_ordinary = rungs.of_check(&check.id) == Rung::Ordinary && check.command != "client";
            if !is_ordinary || check.command == HTTP || check.id.contains(OF_EVERY_REPLY) {
                continue;
            }
            let Ok(plan) = (check.planner)(&facts, &mut Rng::new(1)) else { continue };
            wrong.extend(lines(&plan).into_iter().find(|line| !is_message(line)).map(|line| {
                format!(
                    "{}: {}",
                    check.id,
                    String::from_utf8_lossy(&line).chars().take(80).collect::<String>()
                )
            }));
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
