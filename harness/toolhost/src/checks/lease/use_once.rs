//! Single use: a token permits its tool once.

use peerproof_engine::data::check::{Check, Untestable};
use peerproof_engine::data::plan::Act;

use super::super::super::expect::{Allowed, Expect, Match, Outcome};
use super::super::super::relation::Relation;
use super::super::super::talk::Talk;
use super::super::super::talk_state::{Lease, issue_names, leased, tier_of};
use super::{FEATURE, id};

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![no_tier(), issued()];
    for role in ["tier1", "tier2", "tier3"] {
        checks.push(required(role));
        checks.push(opens(role));
    }
    checks.extend([
        not_enforced(),
        spent(),
        spent_in_one_write(),
        spent_by_failure(),
        two_tokens(),
        expired(),
        not_yet_expired(),
        never_echoed(),
        with_state(),
        every_member(),
        around_its_time(),
        spent_long_ago(),
    ]);
    checks
}

fn no_tier() -> Check {
    const CLAUSE: &str = "TH-LEASE-01";
    Check::new(
        id("tier-0-without-token"),
        "A tool of tier 0 runs without a token although leases are enforced.",
        [CLAUSE],
        "serve",
        |facts, _| {
            let mut talk = leased(facts)?;
            let (request, expect) = talk.good(CLAUSE);
            talk.send(request.line(), expect);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any"])
}

/// Creates the check that leases are issued. Without leases no other check of this topic reaches a verdict.
fn issued() -> Check {
    const CLAUSE: &str = "TH-LEASE-03";
    Check::new(
        id("issued-as-configured"),
        "The request that the configuration names for leases is answered with a token.",
        [CLAUSE],
        "serve",
        |facts, _| {
            let mut talk = leased(facts)?;
            talk.issue(CLAUSE, Lease::of(facts, "tier1"), "token")?;
            let step = talk.at();
            let pointer = facts.features.get(FEATURE).and_then(|lease| lease.get("token")?.as_str());
            let pointer = pointer.unwrap_or_default().to_owned();
            talk.relate(Relation::Issued { clause: CLAUSE.into(), step, pointer });
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "tier1"])
}

fn required(role: &'static str) -> Check {
    const CLAUSE: &str = "TH-LEASE-02";
    Check::new(
        id(&format!("{role}-without-token")),
        "A tool of tier 1 or more called without a token is answered lease_required with its tier and its aid.",
        [CLAUSE],
        "serve",
        move |facts, _| {
            let mut talk = leased(facts)?;
            let allowed = Allowed::of(Outcome::LeaseRequired)
                .member("/tier", Match::Equals(tier_of(facts, role).to_string()))
                .member("/aid", Match::Equals(super::super::super::talk::quoted(&talk.role(role).aid)));
            talk.send(talk.ask(role, "{}").line(), Expect::new(CLAUSE, allowed));
            talk.issue(CLAUSE, Lease::of(facts, role), "token")?;
            let right = talk.ask_with(role, "token");
            Ok(talk.control(&right).canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", role])
}

fn opens(role: &'static str) -> Check {
    const CLAUSE: &str = "TH-LEASE-03";
    Check::new(
        id(&format!("{role}-with-its-token")),
        "A valid token opens the tool that it was issued for.",
        [CLAUSE],
        "serve",
        move |facts, _| {
            let mut talk = leased(facts)?;
            talk.issue(CLAUSE, Lease::of(facts, role), "token")?;
            talk.send(talk.ask_with(role, "token").line(), Expect::count(CLAUSE, 1));
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", role])
}

fn not_enforced() -> Check {
    const CLAUSE: &str = "TH-LEASE-16";
    Check::new(
        id("enforcement-not-asked-for"),
        "Without MACHINA_LEASE_ENFORCE a tool of tier 1 or more runs without a token.",
        [CLAUSE],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            talk.send(talk.ask("tier1", "{}").line(), Expect::count(CLAUSE, 1));
            talk.send(talk.ask("tier1", "{}").line(), Expect::count(CLAUSE, 2));
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "tier1"])
}

fn spent() -> Check {
    Check::new(
        id("token-used-twice"),
        "A token that was used is rejected when it comes again, and its tool does not run again.",
        ["TH-LEASE-06", "TH-LEASE-09"],
        "serve",
        |facts, _| {
            let mut talk = leased(facts)?;
            talk.issue("TH-LEASE-06", Lease::of(facts, "tier1"), "first")?;
            talk.send(talk.ask_with("tier1", "first").line(), Expect::count("TH-LEASE-06", 1));
            for _ in 0..2 {
                let again = Expect::new("TH-LEASE-06", Allowed::of(Outcome::LeaseRejected));
                talk.send(talk.ask_with("tier1", "first").line(), again);
            }
            talk.issue("TH-LEASE-09", Lease::of(facts, "tier1"), "second")?;
            talk.send(talk.ask_with("tier1", "second").line(), Expect::count("TH-LEASE-09", 2));
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "tier1"])
}

fn spent_in_one_write() -> Check {
    const CLAUSE: &str = "TH-LEASE-06";
    Check::new(
        id("token-used-twice-in-one-write"),
        "Of two requests with one token that arrive together only the first runs.",
        [CLAUSE],
        "serve",
        |facts, _| {
            let mut talk = leased(facts)?;
            talk.issue(CLAUSE, Lease::of(facts, "tier1"), "token")?;
            let both = talk.ask_with("tier1", "token").line().then(talk.ask_with("tier1", "token").line());
            let second = Expect::new(CLAUSE, Allowed::of(Outcome::LeaseRejected));
            talk.send_all(
                both,
                peerproof_engine::data::plan::Chunking::Whole,
                vec![Expect::count(CLAUSE, 1), second],
            );
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "tier1"])
}

fn spent_by_failure() -> Check {
    const CLAUSE: &str = "TH-LEASE-11";
    Check::new(
        id("token-of-a-tool-that-failed"),
        "A token whose tool ran and failed is spent.",
        [CLAUSE],
        "serve",
        |facts, _| {
            if tier_of(facts, "fail") == 0 {
                return Err(Untestable::new(
                    "no_failing_tier_tool",
                    "the tool of role `fail` needs no lease",
                ));
            }
            let mut talk = leased(facts)?;
            talk.issue(CLAUSE, Lease::of(facts, "fail"), "token")?;
            let request = talk.ask("fail", "{\"message\":\"on purpose\"}").token_var("token");
            talk.send(request.line(), Expect::new(CLAUSE, Allowed::of(Outcome::ToolError)));
            talk.send(request.line(), Expect::new(CLAUSE, Allowed::of(Outcome::LeaseRejected)));
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "fail"])
}

fn two_tokens() -> Check {
    const CLAUSE: &str = "TH-LEASE-03";
    Check::new(
        id("two-tokens-for-one-tool"),
        "Two tokens issued for one tool open it once each, in any order.",
        [CLAUSE],
        "serve",
        |facts, _| {
            let mut talk = leased(facts)?;
            talk.issue(CLAUSE, Lease::of(facts, "tier1"), "first")?;
            talk.issue(CLAUSE, Lease::of(facts, "tier1"), "second")?;
            talk.send(talk.ask_with("tier1", "second").line(), Expect::count(CLAUSE, 1));
            talk.send(talk.ask_with("tier1", "first").line(), Expect::count(CLAUSE, 2));
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "tier1"])
}

fn expired() -> Check {
    Check::new(
        id("token-after-its-time"),
        "A token is rejected as expired after its lifetime.",
        ["TH-LEASE-04", "TH-LEASE-05"],
        "serve",
        |facts, _| {
            if !issue_names(facts, "{ttl_ms}") {
                return Err(Untestable::new("no_ttl", "the configured request for a lease has no {ttl_ms}"));
            }
            let mut talk = leased(facts)?;
            talk.canary_for("TH-LEASE-04");
            talk.issue("TH-LEASE-04", Lease { ttl_ms: 1_000, ..Lease::of(facts, "tier1") }, "token")?;
            talk.act(Act::Wait { ms: 1_600 });
            let rejected = Expect::new("TH-LEASE-04", Allowed::of(Outcome::LeaseRejected));
            talk.send(talk.ask_with("tier1", "token").line(), rejected);
            let step = talk.at();
            // A fresh token must be accepted. Otherwise the refusal of the other token is not due to its age.
            talk.issue("TH-LEASE-04", Lease::of(facts, "tier1"), "living")?;
            let living = talk.ask_with("tier1", "living");
            talk.control(&living);
            talk.relate(Relation::Member {
                clause: "TH-LEASE-05".into(),
                step,
                pointer: "/reason".to_owned(),
                what: Match::Contains("expired".to_owned()),
            });
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "tier1"])
    .waits()
}

fn not_yet_expired() -> Check {
    const CLAUSE: &str = "TH-LEASE-03";
    Check::new(
        id("token-within-its-time"),
        "A token with a lifetime of 60 s opens its tool 1.6 s later.",
        [CLAUSE],
        "serve",
        |facts, _| {
            if !issue_names(facts, "{ttl_ms}") {
                return Err(Untestable::new("no_ttl", "the configured request for a lease has no {ttl_ms}"));
            }
            let mut talk = leased(facts)?;
            talk.issue(CLAUSE, Lease { ttl_ms: 60_000, ..Lease::of(facts, "tier1") }, "token")?;
            talk.act(Act::Wait { ms: 1_600 });
            talk.send(talk.ask_with("tier1", "token").line(), Expect::count(CLAUSE, 1));
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "tier1"])
    .waits()
}

/// Creates the ambient check of all conversations with a token. Its own conversation has every sort of reply.
fn never_echoed() -> Check {
    const CLAUSE: &str = "TH-LEASE-15";
    Check::new(
        id("token-in-later-replies"),
        "A token appears in no reply but the one that issues it.",
        [CLAUSE],
        "serve",
        |facts, _| {
            let mut talk = leased(facts)?;
            let any = || Expect::new(CLAUSE, Allowed::of(Outcome::Any));
            talk.issue(CLAUSE, Lease::of(facts, "tier1"), "token")?;
            let malformed = talk.ask_with("tier1", "token").member("idempotency_key", "5");
            talk.send(malformed.line(), any());
            talk.send(talk.ask_with("tier2", "token").line(), any());
            let unknown = super::super::super::talk::Request::aid("AID.PEERPROOF.NO_SUCH_TOOL.v1");
            talk.send(unknown.token_var("token").line(), any());
            talk.send(talk.ask_with("tier1", "token").line(), any());
            talk.send(talk.ask_with("tier1", "token").line(), any());
            let (request, _) = talk.good(CLAUSE);
            talk.send(request.token_var("token").line(), any());
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "tier1", "tier2"])
    .ambient()
}

fn with_state() -> Check {
    const CLAUSE: &str = "TH-LEASE-03";
    Check::new(
        id("token-with-state-and-key"),
        "A leased request works like any other: its state is applied and its tool runs.",
        [CLAUSE],
        "serve",
        |facts, _| {
            use super::super::super::talk_state::{full, note};
            let mut talk = leased(facts)?;
            let sent = note("sent");
            talk.issue(CLAUSE, Lease::of(facts, "tier1"), "token")?;
            let request = talk.ask_with("tier1", "token").state(&full(&[(2, &sent)])).key("leased");
            talk.send(request.line(), Expect::count(CLAUSE, 1));
            talk.get_is(CLAUSE, 2, Some(&sent));
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .also_feature("ds_state")
    .roles(&["any", "tier1", "get"])
}

fn every_member() -> Check {
    const CLAUSE: &str = "TH-STATE-02";
    Check::new(
        id("every-member-at-once"),
        "Requests with every member, including a delta with removals, are applied completely and run once.",
        [CLAUSE, "TH-IDEM-01"],
        "serve",
        |facts, _| {
            use super::super::super::talk_state::{delta, full, note};
            let mut talk = leased(facts)?;
            let (old, new) = (note("old"), note("new"));
            talk.issue(CLAUSE, Lease::of(facts, "tier1"), "token")?;
            talk.apply(CLAUSE, &full(&[(0, &old), (1, &old)]));
            let leased = talk.ask_with("tier1", "token").key("leased").state(&delta(&[(2, &new)], &[0]));
            talk.send(leased.line(), Expect::new(CLAUSE, Allowed::count(1).hit(false)));
            talk.state_is(CLAUSE, &[(1, &old), (2, &new)]);
            let echo = talk.ask("echo", "{\"n\":7}").key("echo");
            let output = |hit| Allowed::output("{\"n\":7}").hit(hit);
            let changing = echo.clone().state(&delta(&[(3, &new)], &[1]));
            talk.send(changing.line(), Expect::new(CLAUSE, output(false)));
            talk.state_is(CLAUSE, &[(2, &new), (3, &new)]);
            talk.send(echo.line(), Expect::new("TH-IDEM-01", output(true)));
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .also_feature("ds_state")
    .also_feature("idempotency")
    .roles(&["any", "echo", "tier1", "get"])
}

/// Creates a check just before and just after the requested life.
fn around_its_time() -> Check {
    /// Life of both tokens in ms.
    const TTL_MS: u64 = 3_000;
    Check::new(
        id("token-just-before-and-after-its-time"),
        "With a lifetime of 3 s, one token opens its tool after 2.4 s, and another is rejected after 3.6 s.",
        ["TH-LEASE-03", "TH-LEASE-04"],
        "serve",
        |facts, _| {
            if !issue_names(facts, "{ttl_ms}") {
                return Err(Untestable::new("no_ttl", "the configured request for a lease has no {ttl_ms}"));
            }
            let mut talk = leased(facts)?;
            talk.canary_for("TH-LEASE-03");
            let lease = Lease { ttl_ms: TTL_MS, ..Lease::of(facts, "tier1") };
            talk.issue("TH-LEASE-03", lease, "early")?;
            let first = talk.at();
            talk.issue("TH-LEASE-04", lease, "late")?;
            talk.act(Act::Wait { ms: TTL_MS - 600 });
            let living = Expect::count("TH-LEASE-03", 1).or(Allowed::of(Outcome::LeaseRejected));
            talk.send(talk.ask_with("tier1", "early").line(), living);
            let again = talk.at();
            talk.relate(Relation::LivesFor { clause: "TH-LEASE-03".into(), first, again, ms: TTL_MS - 100 });
            talk.act(Act::Wait { ms: 1_200 });
            let rejected = Expect::new("TH-LEASE-04", Allowed::of(Outcome::LeaseRejected));
            talk.send(talk.ask_with("tier1", "late").line(), rejected);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "tier1"])
    .waits()
}

/// Creates a check with more tokens than a list of 1,024 spent tokens holds.
fn spent_long_ago() -> Check {
    const CLAUSE: &str = "TH-LEASE-06";
    Check::new(
        id("token-used-again-behind-1100-others"),
        "A token that was used is rejected when it comes again after 1,100 others were issued and used.",
        [CLAUSE],
        "serve",
        |facts, _| {
            let mut talk = leased(facts)?;
            let lease = Lease { ttl_ms: 300_000, ..Lease::of(facts, "tier1") };
            talk.issue(CLAUSE, lease, "first")?;
            talk.send(talk.ask_with("tier1", "first").line(), Expect::count(CLAUSE, 1));
            for count in 2..=1_101 {
                talk.issue(CLAUSE, lease, "other")?;
                talk.send(talk.ask_with("tier1", "other").line(), Expect::count(CLAUSE, count));
            }
            let again = Expect::new(CLAUSE, Allowed::of(Outcome::LeaseRejected));
            talk.send(talk.ask_with("tier1", "first").line(), again);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "tier1"])
    .slow()
}
