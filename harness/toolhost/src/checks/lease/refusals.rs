//! Missing, foreign and malformed tokens, which must not permit anything.

use peerproof_engine::data::check::{Check, Untestable};
use peerproof_engine::data::near_miss;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::Act;

use super::super::super::expect::{Allowed, Expect, Outcome};
use super::super::super::talk::{Request, Talk};
use super::super::super::talk_state::{Lease, delta, full, issue_names, leased, note};
use super::{FEATURE, id};

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![wrong_tool(), higher_tier(), empty_token()];
    for (name, token) in FOREIGN {
        checks.push(foreign(name, token));
    }
    for (name, before, after) in ALTERED {
        checks.push(altered(name, before, after));
    }
    checks.extend([near_misses_of_a_token(), token_in_an_array(), token_under_another_name()]);
    checks.push(refused_leaves_state());
    checks.push(rejected_leaves_state());
    for (name, spoil) in MALFORMED {
        checks.push(malformed(name, *spoil));
    }
    checks
}

fn rejected(clause: &str) -> Expect {
    Expect::new(clause, Allowed::of(Outcome::LeaseRejected))
}

/// Tokens that were never issued, as JSON texts.
const FOREIGN: &[(&str, &str)] = &[
    ("of-its-own-making", "\"tok_00000000000000000000000000000000\""),
    ("of-one-character", "\"x\""),
    ("of-white-space", "\" \""),
    ("with-nul", "\"\\u0000\""),
    ("that-objects-have", "\"constructor\""),
    ("that-objects-are-made-of", "\"__proto__\""),
    ("in-many-scripts", "\"жетон-\u{1F600}\""),
];

fn foreign(name: &str, token: &'static str) -> Check {
    Check::new(
        id(&format!("token-{name}")),
        "A token that was never issued is rejected and runs nothing.",
        ["TH-LEASE-04", "TH-LEASE-09"],
        "serve",
        move |facts, _| {
            let mut talk = leased(facts)?;
            talk.issue("TH-LEASE-04", Lease::of(facts, "tier1"), "token")?;
            talk.send(talk.ask("tier1", "{}").member("_lease_token", token).line(), rejected("TH-LEASE-04"));
            talk.send(talk.ask_with("tier1", "token").line(), Expect::count("TH-LEASE-09", 1));
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "tier1"])
}

/// Text before and after a valid token, as the inside of a JSON string.
const ALTERED: &[(&str, &str, &str)] = &[
    ("with-a-character-more", "", "0"),
    ("with-a-character-before", "0", ""),
    ("with-a-trailing-space", "", " "),
    ("with-a-trailing-nul", "", "\\u0000"),
    ("twice-over", "", "@"),
];

fn altered(name: &str, before: &'static str, after: &'static str) -> Check {
    Check::new(
        id(&format!("valid-token-{name}")),
        "An altered copy of a valid token is rejected, and the valid one still works.",
        ["TH-LEASE-04", "TH-LEASE-10"],
        "serve",
        move |facts, _| {
            let mut talk = leased(facts)?;
            talk.issue("TH-LEASE-04", Lease::of(facts, "tier1"), "token")?;
            let mut token = Payload::text(format!("\"{before}")).var("token");
            token = if after == "@" { token.var("token") } else { token.then(Payload::text(after)) };
            let request = talk.ask("tier1", "{}").payload("_lease_token", token.then(Payload::text("\"")));
            talk.send(request.line(), rejected("TH-LEASE-04"));
            talk.send(talk.ask_with("tier1", "token").line(), Expect::count("TH-LEASE-10", 1));
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "tier1"])
}

fn near_misses_of_a_token() -> Check {
    const CLAUSE: &str = "TH-LEASE-04";
    Check::new(
        id("near-misses-of-a-valid-token"),
        "A valid token that is cut, in another case or alphabet, padded or encoded is rejected.",
        [CLAUSE],
        "serve",
        |facts, _| {
            let mut talk = leased(facts)?;
            talk.issue(CLAUSE, Lease::of(facts, "tier1"), "token")?;
            for kind in near_miss::kinds() {
                let miss = talk.ask_with("tier1", &format!("token{}{kind}", near_miss::MARK));
                talk.send(miss.line(), rejected(CLAUSE));
            }
            let right = talk.ask_with("tier1", "token");
            Ok(talk.control(&right).canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "tier1"])
}

fn token_in_an_array() -> Check {
    const CLAUSE: &str = "TH-REQ-09";
    Check::new(
        id("valid-token-in-an-array"),
        "A valid token inside an array is a `_lease_token` of the wrong type: refused, and the token stays valid.",
        [CLAUSE, "TH-LEASE-10"],
        "serve",
        |facts, _| {
            let mut talk = leased(facts)?;
            talk.issue(CLAUSE, Lease::of(facts, "tier1"), "token")?;
            let token = Payload::text("[\"").var("token").then(Payload::text("\"]"));
            let request = talk.ask("tier1", "{}").payload("_lease_token", token);
            talk.send(request.line(), Expect::refused(CLAUSE));
            talk.send(talk.ask_with("tier1", "token").line(), Expect::count("TH-LEASE-10", 1));
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "tier1"])
}

fn token_under_another_name() -> Check {
    const CLAUSE: &str = "TH-LEASE-02";
    Check::new(
        id("valid-token-under-another-name"),
        "A valid token in a member `_LEASE_TOKEN` or `lease_token` does not count: lease_required.",
        [CLAUSE],
        "serve",
        |facts, _| {
            let mut talk = leased(facts)?;
            talk.issue(CLAUSE, Lease::of(facts, "tier1"), "token")?;
            for name in ["_LEASE_TOKEN", "_Lease_Token", "lease_token"] {
                let token = Payload::text("\"").var("token").then(Payload::text("\""));
                let required = Expect::new(CLAUSE, Allowed::of(Outcome::LeaseRequired));
                talk.send(talk.ask("tier1", "{}").payload(name, token).line(), required);
            }
            let right = talk.ask_with("tier1", "token");
            Ok(talk.control(&right).canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "tier1"])
}

fn wrong_tool() -> Check {
    Check::new(
        id("token-of-another-tool"),
        "A token issued for another tool is rejected each time, runs nothing, and stays valid for its own tool.",
        ["TH-LEASE-07", "TH-LEASE-10"],
        "serve",
        |facts, _| {
            let mut talk = leased(facts)?;
            // The tier is sufficient: only the tool is wrong.
            talk.issue("TH-LEASE-07", Lease::of(facts, "tier2"), "token")?;
            for _ in 0..2 {
                talk.send(talk.ask_with("tier1", "token").line(), rejected("TH-LEASE-07"));
            }
            let own = Expect::new("TH-LEASE-10", Allowed::of(Outcome::Ok));
            talk.send(talk.ask_with("tier2", "token").line(), own);
            talk.issue("TH-LEASE-07", Lease::of(facts, "tier1"), "own")?;
            let ok = Expect::new("TH-LEASE-07", Allowed::of(Outcome::Ok));
            talk.send(talk.ask_with("tier1", "own").line(), ok);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "tier1", "tier2"])
}

fn higher_tier() -> Check {
    const CLAUSE: &str = "TH-LEASE-08";
    Check::new(
        id("token-of-a-lower-tier"),
        "A token for a lower tier does not open a tool of a higher tier.",
        [CLAUSE],
        "serve",
        |facts, _| {
            let mut talk = leased(facts)?;
            let own = Lease::of(facts, "tier2");
            if own.tier < 2 {
                return Err(Untestable::new(
                    "tier",
                    "no tier is lower than the tier of the tool of role `tier2`",
                ));
            }
            talk.issue(CLAUSE, Lease { tier: own.tier - 1, ..own }, "lower")?;
            talk.send(talk.ask_with("tier2", "lower").line(), rejected(CLAUSE));
            talk.issue(CLAUSE, own, "own")?;
            talk.send(talk.ask_with("tier2", "own").line(), Expect::count(CLAUSE, 1));
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "tier2"])
}

fn empty_token() -> Check {
    const CLAUSE: &str = "TH-LEASE-14";
    Check::new(
        id("empty-token"),
        "An empty token is answered lease_required or lease_rejected and runs nothing.",
        [CLAUSE, "TH-LEASE-09"],
        "serve",
        |facts, _| {
            let mut talk = leased(facts)?;
            let expect = Expect::new(CLAUSE, Allowed::of(Outcome::LeaseRequired).shows("lease_required"))
                .or(Allowed::of(Outcome::LeaseRejected).shows("lease_rejected"))
                .choice("empty_lease_token");
            talk.send(talk.ask("tier1", "{}").member("_lease_token", "\"\"").line(), expect);
            talk.issue("TH-LEASE-09", Lease::of(facts, "tier1"), "token")?;
            talk.send(talk.ask_with("tier1", "token").line(), Expect::count("TH-LEASE-09", 1));
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "tier1"])
}

fn refused_leaves_state() -> Check {
    const CLAUSE: &str = "TH-LEASE-09";
    Check::new(
        id("missing-token-with-state"),
        "A request without the token it needs runs nothing and its state is not applied.",
        [CLAUSE],
        "serve",
        |facts, _| {
            let mut talk = leased(facts)?;
            let (old, new) = (note("old"), note("new"));
            talk.apply(CLAUSE, &full(&[(0, &old), (1, &old)]));
            let required = || Expect::new(CLAUSE, Allowed::of(Outcome::LeaseRequired));
            talk.send(talk.ask("tier1", "{}").state(&full(&[(2, &new)])).line(), required());
            talk.state_is(CLAUSE, &[(0, &old), (1, &old)]);
            talk.send(talk.ask("tier1", "{}").state(&delta(&[(1, &new)], &[0])).line(), required());
            talk.state_is(CLAUSE, &[(0, &old), (1, &old)]);
            talk.issue(CLAUSE, Lease::of(facts, "tier1"), "token")?;
            talk.send(talk.ask_with("tier1", "token").line(), Expect::count(CLAUSE, 1));
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .also_feature("ds_state")
    .roles(&["any", "tier1", "get"])
}

fn rejected_leaves_state() -> Check {
    const CLAUSE: &str = "TH-LEASE-09";
    Check::new(
        id("rejected-token-with-state"),
        "A request with a spent, unknown or expired token runs nothing and its state is not applied.",
        [CLAUSE, "TH-LEASE-04", "TH-LEASE-06"],
        "serve",
        |facts, _| {
            let mut talk = leased(facts)?;
            let (old, new) = (note("old"), note("new"));
            talk.apply(CLAUSE, &full(&[(0, &old), (1, &old)]));
            talk.issue(CLAUSE, Lease::of(facts, "tier1"), "token")?;
            talk.send(talk.ask_with("tier1", "token").line(), Expect::count(CLAUSE, 1));
            let unknown = talk.ask("tier1", "{}").member("_lease_token", "\"no such token\"");
            let mut bad = vec![("TH-LEASE-06", talk.ask_with("tier1", "token")), ("TH-LEASE-04", unknown)];
            if issue_names(facts, "{ttl_ms}") {
                talk.issue(CLAUSE, Lease { ttl_ms: 1_000, ..Lease::of(facts, "tier1") }, "expired")?;
                talk.act(Act::Wait { ms: 1_600 });
                bad.push(("TH-LEASE-04", talk.ask_with("tier1", "expired")));
            }
            for (clause, request) in bad {
                for state in [delta(&[(1, &new)], &[0]), full(&[(2, &new)])] {
                    talk.send(request.clone().state(&state).line(), rejected(clause));
                    talk.state_is(CLAUSE, &[(0, &old), (1, &old)]);
                }
            }
            talk.issue(CLAUSE, Lease::of(facts, "tier1"), "next")?;
            talk.send(talk.ask_with("tier1", "next").line(), Expect::count(CLAUSE, 2));
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .also_feature("ds_state")
    .roles(&["any", "tier1", "get"])
    .waits()
}

/// Function that makes a good leased request malformed.
type Spoil = fn(&Talk<'_>) -> Request;

/// Malformed requests with the valid token `token`.
const MALFORMED: &[(&str, Spoil)] = &[
    ("number-as-input", |talk| {
        Request::aid(&talk.role("tier1").aid).member("input_json", "5").token_var("token")
    }),
    ("number-as-key", |talk| talk.ask_with("tier1", "token").member("idempotency_key", "5")),
    ("bad-slot-in-its-state", |talk| talk.ask_with("tier1", "token").state("{\"slots\":{\"9\":{}}}")),
    ("no-aid", |_| Request::empty().input("{}").token_var("token")),
    ("unknown-aid", |_| Request::aid("AID.PEERPROOF.NO_SUCH_TOOL.v1").input("{}").token_var("token")),
    ("a-bare-word-as-member", |talk| talk.ask_with("tier1", "token").member("other", "text")),
];

fn malformed(name: &str, spoil: Spoil) -> Check {
    const CLAUSE: &str = "TH-LEASE-10";
    let check = Check::new(
        id(&format!("token-in-a-request-with-{name}")),
        "A token sent with a request that is refused for another reason stays valid.",
        [CLAUSE],
        "serve",
        move |facts, _| {
            let mut talk = leased(facts)?;
            talk.issue(CLAUSE, Lease::of(facts, "tier1"), "token")?;
            talk.send(spoil(&talk).line(), Expect::refused(CLAUSE));
            talk.send(talk.ask_with("tier1", "token").line(), Expect::count(CLAUSE, 1));
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "tier1"]);
    match name {
        "number-as-key" => check.also_feature("idempotency"),
        "bad-slot-in-its-state" => check.also_feature("ds_state"),
        _ => check,
    }
}
