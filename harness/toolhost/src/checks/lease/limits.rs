//! Leases in combination with idempotency keys, and open choices about enforcement.

use peerproof_engine::data::check::Check;

use super::super::super::expect::{Allowed, Expect, Outcome};
use super::super::super::talk::{Request, Talk};
use super::super::super::talk_state::{Lease, leased};
use super::{FEATURE, id};

pub(super) fn checks() -> Vec<Check> {
    vec![
        hit_without_token(),
        hit_with_spent_token(),
        hit_with_fresh_token(),
        key_first_refused(),
        other_value("true", "TH-LEASE-17", "lease_enforce_true"),
        other_value("0", "TH-LEASE-19", "lease_enforce_0"),
        run_mode(),
    ]
}

fn hit_without_token() -> Check {
    const CLAUSE: &str = "TH-LEASE-12";
    Check::new(
        id("key-repeated-without-token"),
        "A leased request that is repeated with its key but without a token is answered lease_required.",
        [CLAUSE],
        "serve",
        |facts, _| {
            let mut talk = leased(facts)?;
            talk.issue(CLAUSE, Lease::of(facts, "tier1"), "token")?;
            let keyed = talk.ask_with("tier1", "token").key("k");
            talk.send(keyed.line(), Expect::new(CLAUSE, Allowed::count(1).hit(false)));
            let required = Expect::new(CLAUSE, Allowed::of(Outcome::LeaseRequired));
            talk.send(talk.ask("tier1", "{}").key("k").line(), required);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .also_feature("idempotency")
    .roles(&["any", "tier1"])
}

fn hit_with_spent_token() -> Check {
    const CLAUSE: &str = "TH-LEASE-12";
    Check::new(
        id("key-repeated-with-spent-token"),
        "A leased request that is repeated with its key and its spent token is answered lease_rejected.",
        [CLAUSE],
        "serve",
        |facts, _| {
            let mut talk = leased(facts)?;
            talk.issue(CLAUSE, Lease::of(facts, "tier1"), "token")?;
            let keyed = talk.ask_with("tier1", "token").key("k");
            talk.send(keyed.line(), Expect::new(CLAUSE, Allowed::count(1).hit(false)));
            talk.send(keyed.line(), Expect::new(CLAUSE, Allowed::of(Outcome::LeaseRejected)));
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .also_feature("idempotency")
    .roles(&["any", "tier1"])
}

fn hit_with_fresh_token() -> Check {
    const CLAUSE: &str = "TH-LEASE-13";
    Check::new(
        id("key-repeated-with-fresh-token"),
        "A valid token in a request that hits is spent or stays valid.",
        [CLAUSE],
        "serve",
        |facts, _| {
            let mut talk = leased(facts)?;
            talk.issue(CLAUSE, Lease::of(facts, "tier1"), "first")?;
            talk.issue(CLAUSE, Lease::of(facts, "tier1"), "second")?;
            let first = talk.ask_with("tier1", "first").key("k");
            talk.send(first.line(), Expect::new(CLAUSE, Allowed::count(1).hit(false)));
            let repeat = talk.ask_with("tier1", "second").key("k");
            talk.send(repeat.line(), Expect::new(CLAUSE, Allowed::count(1).hit(true)));
            let expect = Expect::new(CLAUSE, Allowed::count(2).hit(false).shows("false"))
                .or(Allowed::of(Outcome::LeaseRejected).shows("true"))
                .choice("hit_spends_token");
            talk.send(talk.ask_with("tier1", "second").line(), expect);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .also_feature("idempotency")
    .roles(&["any", "tier1"])
}

fn key_first_refused() -> Check {
    const CLAUSE: &str = "TH-IDEM-13";
    Check::new(
        "toolhost/serve/idempotency/key-first-sent-without-its-lease",
        "A key that was first sent without a token runs the tool when it is sent with one.",
        [CLAUSE],
        "serve",
        |facts, _| {
            let mut talk = leased(facts)?;
            let required = Expect::new(CLAUSE, Allowed::of(Outcome::LeaseRequired).hit(false));
            talk.send(talk.ask("tier1", "{}").key("k").line(), required);
            let foreign = talk.ask("tier1", "{}").key("k").member("_lease_token", "\"no such token\"");
            talk.send(foreign.line(), Expect::new(CLAUSE, Allowed::of(Outcome::LeaseRejected).hit(false)));
            talk.issue(CLAUSE, Lease::of(facts, "tier1"), "token")?;
            let good = talk.ask_with("tier1", "token").key("k");
            talk.send(good.line(), Expect::new(CLAUSE, Allowed::count(1).hit(false)));
            Ok(talk.canary().finish().plan())
        },
    )
    .feature("idempotency")
    .also_feature(FEATURE)
    .roles(&["any", "tier1"])
}

fn other_value(value: &'static str, clause: &'static str, choice: &'static str) -> Check {
    Check::new(
        id(&format!("enforcement-set-to-{value}")),
        "With MACHINA_LEASE_ENFORCE set to another value than 1, leases are enforced or not.",
        [clause],
        "serve",
        move |facts, _| {
            let mut talk = Talk::serve_env(facts, &[("MACHINA_LEASE_ENFORCE", value)]);
            let expect = Expect::new(clause, Allowed::count(1).shows("off"))
                .or(Allowed::of(Outcome::LeaseRequired).shows("enforce"))
                .choice(choice);
            talk.send(talk.ask("tier1", "{}").line(), expect);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "tier1"])
}

fn run_mode() -> Check {
    const CLAUSE: &str = "TH-LEASE-20";
    Check::new(
        "toolhost/run/lease/tier-1-under-enforcement",
        "A run of a tool of tier 1 under MACHINA_LEASE_ENFORCE=1 is refused for its lease or not.",
        [CLAUSE],
        "run",
        |facts, _| {
            let mut talk = Talk::runs(facts);
            let aid = talk.role("tier1").aid;
            let expect = Expect::new(CLAUSE, Allowed::count(1).shows("off"))
                .or(Allowed::of(Outcome::LeaseRequired).shows("enforce"))
                .choice("lease_enforce_in_run_mode");
            talk.run(&aid, Request::empty().input("{}").body(), &[("MACHINA_LEASE_ENFORCE", "1")], expect);
            Ok(talk.run_canary().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "tier1"])
}
