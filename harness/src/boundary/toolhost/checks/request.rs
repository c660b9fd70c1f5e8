//! Members and types of requests, in both modes.

use super::super::cases;
use super::super::expect::{Allowed, Expect};
use super::super::talk::Talk;
use crate::check::Check;

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    let mut checks = cases::checks("request");
    checks.push(unclaimed_key());
    checks.push(unclaimed_token());
    checks
}

fn unclaimed_key() -> Check {
    Check::new(
        "toolhost/serve/request/key-without-the-feature",
        "An `idempotency_key` sent to a peer without idempotency is ignored: the tool runs each time.",
        ["TH-REQ-16"],
        "serve",
        |facts, _| {
            if facts.claims("idempotency") {
                return Err("claimed: it asks what a peer without idempotency does".to_owned());
            }
            let mut talk = Talk::serve(facts);
            for count in 1..=2 {
                let request = talk.ask("counter", "{}").key("unclaimed");
                let ran = Allowed::count(count).hit(false);
                talk.send(request.line(), Expect::new("TH-REQ-16", ran)).counts_as_canary();
            }
            Ok(talk.finish().plan())
        },
    )
    .roles(&["counter"])
}

fn unclaimed_token() -> Check {
    Check::new(
        "toolhost/serve/request/token-without-the-feature",
        "A `_lease_token` sent to a peer without leases is ignored.",
        ["TH-REQ-16"],
        "serve",
        |facts, _| {
            if facts.claims("lease") {
                return Err("claimed: it asks what a peer without leases does".to_owned());
            }
            let mut talk = Talk::serve(facts);
            let (request, expect) = talk.good("TH-REQ-16");
            talk.send(request.member("_lease_token", "\"tok_unclaimed\"").line(), expect).counts_as_canary();
            Ok(talk.finish().plan())
        },
    )
    .roles(&["any"])
}
