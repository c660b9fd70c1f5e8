//! Members and types of requests, in both modes.

use super::super::cases;
use super::super::expect::{Allowed, Expect};
use super::super::talk::{LATER_MS, Request, Talk, quoted};
use peerproof_engine::data::check::{Check, Untestable};
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::near_miss::{NearMiss, near_misses};
use peerproof_engine::data::plan::Act;

pub(super) fn checks() -> Vec<Check> {
    let mut checks = cases::checks("request");
    checks.push(near_misses_of_an_aid("serve"));
    checks.push(near_misses_of_an_aid("run"));
    checks.push(refused_and_looked_at_later());
    checks.push(unclaimed_key());
    checks.push(unclaimed_token());
    checks
}

/// Near misses of `aid`, which only a careless comparison accepts. A digit more or less is excluded, because it may be
/// another version of the tool, and so is NUL in a command line.
fn nearly(aid: &str, facts: &Facts, serve: bool) -> Vec<String> {
    let ends_in_digit = aid.ends_with(|last: char| last.is_ascii_digit());
    let is_other = |miss: &NearMiss| {
        let version = ends_in_digit && matches!(miss.kind, "shorter-by-one" | "longer-by-one");
        let known = facts.roles.values().any(|role| role["aid"] == miss.text.as_str());
        !version && !known && (serve || !miss.text.contains('\0'))
    };
    near_misses(aid).into_iter().filter(is_other).map(|miss| miss.text).collect()
}

fn near_misses_of_an_aid(mode: &'static str) -> Check {
    const CLAUSE: &str = "TH-REQ-03";
    Check::new(
        format!("toolhost/{mode}/request/near-misses-of-an-aid"),
        "An aid in another case, cut, longer, padded, percent-encoded or written with look-alikes is unknown.",
        [CLAUSE],
        mode,
        move |facts, _| {
            let serve = mode == "serve";
            let mut talk = if serve { Talk::serve(facts) } else { Talk::runs(facts) };
            let aid = talk.role("any").aid;
            let any = talk.any(serve);
            for miss in nearly(&aid, facts, serve) {
                if serve {
                    let request = any.clone().with("aid", quoted(&miss));
                    talk.send(request.line(), Expect::refused(CLAUSE));
                } else {
                    talk.run(&miss, any.body(), &[], Expect::refused(CLAUSE));
                }
            }
            if serve {
                talk.control(&any).canary().finish();
            } else {
                talk.run_control(&aid, &any, &[]).run_canary();
            }
            Ok(talk.plan())
        },
    )
    .roles(&["any"])
}

fn refused_and_looked_at_later() -> Check {
    const CLAUSE: &str = "TH-REQ-17";
    Check::new(
        "toolhost/serve/request/refused-runs-nothing-later",
        "Refused requests run no tool later either (1.2 s): the counter shows no gap.",
        [CLAUSE],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let aid = talk.role("counter").aid;
            talk.send(talk.ask("counter", "{}").line(), Expect::count(CLAUSE, 1)).counts_as_canary();
            for spoilt in [
                Request::aid(&aid).member("input_json", "{}"),
                Request::aid(&aid).input("{}").member("other", "text"),
                Request::empty().member("aid", format!("[{}]", quoted(&aid))).input("{}"),
            ] {
                talk.send(spoilt.line(), Expect::refused(CLAUSE));
            }
            talk.act(Act::Wait { ms: LATER_MS });
            let second = Expect::count(CLAUSE, 2).reason("ran_refused_request");
            talk.send(talk.ask("counter", "{}").line(), second).counts_as_canary();
            Ok(talk.finish().plan())
        },
    )
    .roles(&["counter"])
    .waits()
}

fn unclaimed_key() -> Check {
    Check::new(
        "toolhost/serve/request/key-without-the-feature",
        "An `idempotency_key` sent to a peer without idempotency is ignored: the tool runs each time.",
        ["TH-REQ-16"],
        "serve",
        |facts, _| {
            if facts.claims("idempotency") {
                return Err(Untestable::new("claimed", "this check is about peers without idempotency"));
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
                return Err(Untestable::new("claimed", "this check is about peers without leases"));
            }
            let mut talk = Talk::serve(facts);
            let (request, expect) = talk.good("TH-REQ-16");
            talk.send(request.member("_lease_token", "\"tok_unclaimed\"").line(), expect).counts_as_canary();
            Ok(talk.finish().plan())
        },
    )
    .roles(&["any"])
}
