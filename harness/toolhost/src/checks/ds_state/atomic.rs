//! Atomicity: a request is applied completely or not at all.

use peerproof_engine::data::check::Check;
use peerproof_engine::data::payload::Payload;

use super::super::super::expect::{Allowed, Expect, Outcome};
use super::super::super::talk::{Request, Talk, quoted};
use super::super::super::talk_state::{delta, full, note};
use super::{FEATURE, id};

const CLAUSE: &str = "TH-STATE-16";

pub(super) fn checks() -> Vec<Check> {
    let mut checks: Vec<Check> =
        REFUSED.iter().map(|(name, members)| refused(name, members).feature(FEATURE)).collect();
    let line = "{\"aid\":%,\"ds_state\":@,\"input_json\":\"{}\",\"idempotency_key\":5}";
    checks.push(refused("number-as-key", line).feature(FEATURE).also_feature("idempotency"));
    checks.push(key_of_a_refused_request());
    checks.push(tool_error_keeps_state());
    checks.push(tool_error_keeps_full_state());
    checks
}

/// Refused requests with a good state, `@`: name and members as JSON texts. `%` stands for an aid.
const REFUSED: &[(&str, &str)] = &[
    ("unknown-aid", "{\"aid\":\"AID.PEERPROOF.NO_SUCH_TOOL.v1\",\"input_json\":\"{}\",\"ds_state\":@}"),
    (
        "unknown-aid-after-the-state",
        "{\"ds_state\":@,\"input_json\":\"{}\",\"aid\":\"AID.PEERPROOF.NO_SUCH_TOOL.v1\"}",
    ),
    ("no-aid", "{\"input_json\":\"{}\",\"ds_state\":@}"),
    ("empty-aid", "{\"ds_state\":@,\"aid\":\"\",\"input_json\":\"{}\"}"),
    ("number-as-aid", "{\"ds_state\":@,\"input_json\":\"{}\",\"aid\":5}"),
    ("object-as-input", "{\"aid\":%,\"ds_state\":@,\"input_json\":{}}"),
    ("malformed-end-of-line", "{\"aid\":%,\"input_json\":\"{}\",\"ds_state\":@,}"),
    ("text-after-the-request", "{\"aid\":%,\"input_json\":\"{}\",\"ds_state\":@} x"),
];

fn refused(name: &str, line: &'static str) -> Check {
    Check::new(
        id(&format!("refused-request-with-{name}")),
        "The state of a request that is refused for another reason is not applied.",
        [CLAUSE],
        "serve",
        move |facts, _| {
            let mut talk = Talk::serve(facts);
            let (old, new) = (note("old"), note("new"));
            let aid = quoted(&talk.role("get").aid);
            let filled =
                |state: &str| Payload::text(format!("{}\n", line.replace('@', state).replace('%', &aid)));
            talk.apply(CLAUSE, &full(&[(0, &old), (1, &old)]));
            talk.send(filled(&full(&[(2, &new)])), Expect::refused(CLAUSE));
            talk.state_is(CLAUSE, &[(0, &old), (1, &old)]);
            talk.send(filled(&delta(&[(1, &new), (3, &new)], &[0])), Expect::refused(CLAUSE));
            talk.state_is(CLAUSE, &[(0, &old), (1, &old)]);
            Ok(talk.canary().finish().plan())
        },
    )
    .roles(&["any", "get"])
}

fn key_of_a_refused_request() -> Check {
    Check::new(
        id("refused-state-with-a-key"),
        "A request refused for its state leaves neither state nor key behind.",
        [CLAUSE],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let old = note("old");
            talk.apply(CLAUSE, &full(&[(0, &old)]));
            let request = Request::aid(&talk.role("counter").aid).input("{}").key("k");
            let bad = request.clone().state("{\"slots\":{\"0\":{}}}");
            talk.send(bad.line(), Expect::refused(CLAUSE));
            talk.send(request.line(), Expect::new(CLAUSE, Allowed::count(1).hit(false)));
            talk.send(bad.line(), Expect::refused(CLAUSE).or(Allowed::count(1).hit(true)));
            talk.state_is(CLAUSE, &[(0, &old)]);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .also_feature("idempotency")
    .roles(&["any", "counter", "get"])
}

fn fail(talk: &Talk<'_>, state: &str) -> Request {
    talk.ask("fail", "{\"message\":\"on purpose\"}").state(state)
}

fn tool_error_keeps_state() -> Check {
    Check::new(
        id("delta-of-a-request-whose-tool-fails"),
        "After TOOL_ERROR the delta in the request stays applied.",
        ["TH-STATE-17"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let (old, new) = (note("old"), note("new"));
            talk.apply("TH-STATE-17", &full(&[(0, &old), (1, &old)]));
            let request = fail(&talk, &delta(&[(1, &new), (2, &new)], &[0]));
            talk.send(request.line(), Expect::new("TH-STATE-17", Allowed::of(Outcome::ToolError)));
            talk.state_is("TH-STATE-17", &[(1, &new), (2, &new)]);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "fail", "get"])
}

fn tool_error_keeps_full_state() -> Check {
    Check::new(
        id("full-state-of-a-request-whose-tool-fails"),
        "After TOOL_ERROR the full state in the request stays applied.",
        ["TH-STATE-17"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let (old, new) = (note("old"), note("new"));
            talk.apply("TH-STATE-17", &full(&[(0, &old)]));
            let request = fail(&talk, &full(&[(6, &new)]));
            talk.send(request.line(), Expect::new("TH-STATE-17", Allowed::of(Outcome::ToolError)));
            talk.state_is("TH-STATE-17", &[(6, &new)]);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "fail", "get"])
}
