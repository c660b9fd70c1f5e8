//! Open choices about states: each outcome must be one of a fixed set, and complete.

use peerproof_engine::data::check::Check;
use peerproof_engine::data::finding::CANARY_FAILED;
use peerproof_engine::data::payload::Payload;

use super::super::super::expect::{Allowed, Expect, Outcome};
use super::super::super::talk::Talk;
use super::super::super::talk_state::{Artifact, full, got, note};
use super::{FEATURE, id};

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![
        set_and_removed(),
        odd_delta("a-string", "\"true\""),
        odd_delta("one", "1"),
        odd_delta("an-array", "[]"),
        removed_in_full(),
        writes_of_a_failed_tool(),
    ];
    for (name, content, size) in WRONG_SIZES {
        checks.push(wrong_size(name, content, size));
    }
    checks
}

/// Sizes that are numbers but not the number of bytes: name, content, `size_bytes`.
const WRONG_SIZES: &[(&str, &str, &str)] = &[
    ("one-too-many", "{}", "3"),
    ("one-too-few", "{}", "1"),
    ("zero", "{}", "0"),
    ("negative", "{}", "-2"),
    ("far-too-large", "{}", "4503599627370496"),
    ("of-characters", "é漢\u{1F600}", "3"),
    ("of-utf-16-units", "é漢\u{1F600}", "4"),
    ("of-escaped-text", "a\nb", "4"),
    ("of-a-fraction", "{}", "2.5"),
];

/// Sends a plain request with a state that the peer may refuse.
fn try_state(talk: &mut Talk<'_>, state: &str, expect: Expect) {
    let (request, _) = talk.good("");
    talk.send(request.state(state).line(), expect);
}

fn wrong_size(name: &str, content: &'static str, size: &'static str) -> Check {
    const CLAUSE: &str = "TH-STATE-09";
    Check::new(
        id(&format!("size-{name}")),
        "An Artifact whose size_bytes is wrong is refused as a whole, or stored with the right size.",
        [CLAUSE],
        "serve",
        move |facts, _| {
            let mut talk = Talk::serve(facts);
            let (old, sent) = (note("old"), Artifact::new(content));
            talk.apply(CLAUSE, &full(&[(0, &old)]));
            // Other numbers are invalid for another reason, so their outcome does not show the choice.
            let shown = |expect: Expect| match size.starts_with('-') || size.contains('.') {
                true => expect,
                false => expect.choice("size_bytes_wrong"),
            };
            let expect = shown(
                Expect::new(CLAUSE, Allowed::of(Outcome::Ok).shows("correct"))
                    .or(Allowed::of(Outcome::Refused).shows("refuse")),
            );
            try_state(&mut talk, &format!("{{\"slots\":{{\"1\":{}}}}}", sent.sized(size)), expect);
            for (slot, before, after) in [(0, Some(&old), None), (1, None, Some(&sent))] {
                let expect = Expect::new(CLAUSE, got(after).shows("correct")).or(got(before).shows("refuse"));
                talk.get(slot, shown(expect));
            }
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "get"])
}

fn set_and_removed() -> Check {
    const CLAUSE: &str = "TH-STATE-12";
    const KEY: &str = "slot_set_and_removed";
    Check::new(
        id("slot-both-set-and-removed"),
        "A slot that one delta both sets and removes ends up set or empty, or the request is refused.",
        [CLAUSE],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let (old, new) = (note("old"), note("new"));
            talk.apply(CLAUSE, &full(&[(1, &old), (2, &old)]));
            let state = format!(
                "{{\"delta\":true,\"slots\":{{\"1\":{0},\"2\":{0}}},\"removed_slots\":[1]}}",
                new.text()
            );
            let expect = Expect::new(CLAUSE, Allowed::of(Outcome::Ok).shows("set|removed"))
                .or(Allowed::of(Outcome::Refused).shows("refuse"))
                .choice(KEY);
            try_state(&mut talk, &state, expect);
            let expect = Expect::new(CLAUSE, got(Some(&new)).shows("set"))
                .or(got(None).shows("removed"))
                .or(got(Some(&old)).shows("refuse"))
                .choice(KEY);
            talk.get(1, expect);
            let expect = Expect::new(CLAUSE, got(Some(&new)).shows("set|removed"))
                .or(got(Some(&old)).shows("refuse"))
                .choice(KEY);
            talk.get(2, expect);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "get"])
}

fn odd_delta(name: &str, value: &'static str) -> Check {
    const CLAUSE: &str = "TH-STATE-13";
    const KEY: &str = "delta_not_boolean";
    Check::new(
        id(&format!("delta-that-is-{name}")),
        "A `delta` that is not a boolean is refused, read as true or read as false.",
        [CLAUSE],
        "serve",
        move |facts, _| {
            let mut talk = Talk::serve(facts);
            let (old, new) = (note("old"), note("new"));
            talk.apply(CLAUSE, &full(&[(0, &old)]));
            let state = format!("{{\"delta\":{value},\"slots\":{{\"1\":{}}}}}", new.text());
            let expect = Expect::new(CLAUSE, Allowed::of(Outcome::Ok).shows("delta|full"))
                .or(Allowed::of(Outcome::Refused).shows("refuse"))
                .choice(KEY);
            try_state(&mut talk, &state, expect);
            let expect = Expect::new(CLAUSE, got(Some(&old)).shows("delta|refuse"))
                .or(got(None).shows("full"))
                .choice(KEY);
            talk.get(0, expect);
            let expect = Expect::new(CLAUSE, got(Some(&new)).shows("delta|full"))
                .or(got(None).shows("refuse"))
                .choice(KEY);
            talk.get(1, expect);
            // A peer that kept the state and repeats it in every delta cannot answer until the state is gone.
            let (request, expect) = talk.good(CLAUSE);
            talk.send(request.state("{\"slots\":{}}").line(), expect.reason(CANARY_FAILED))
                .counts_as_canary();
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "get"])
}

fn removed_in_full() -> Check {
    const CLAUSE: &str = "TH-STATE-14";
    const KEY: &str = "removed_slots_in_full_state";
    Check::new(
        id("removed-slots-in-a-full-state"),
        "`removed_slots` beside a full state is ignored, applied or refused.",
        [CLAUSE],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let (old, new) = (note("old"), note("new"));
            talk.apply(CLAUSE, &full(&[(0, &old), (2, &old)]));
            let state = format!("{{\"slots\":{{\"1\":{0},\"2\":{0}}},\"removed_slots\":[2]}}", new.text());
            let expect = Expect::new(CLAUSE, Allowed::of(Outcome::Ok).shows("ignore|apply"))
                .or(Allowed::of(Outcome::Refused).shows("refuse"))
                .choice(KEY);
            try_state(&mut talk, &state, expect);
            let replaced =
                |slot: u8, after: Option<&Artifact>, before: Option<&Artifact>, talk: &mut Talk<'_>| {
                    let expect = Expect::new(CLAUSE, got(after).shows("ignore|apply"))
                        .or(got(before).shows("refuse"))
                        .choice(KEY);
                    talk.get(slot, expect);
                };
            replaced(0, None, Some(&old), &mut talk);
            replaced(1, Some(&new), None, &mut talk);
            let expect = Expect::new(CLAUSE, got(Some(&new)).shows("ignore"))
                .or(got(None).shows("apply"))
                .or(got(Some(&old)).shows("refuse"))
                .choice(KEY);
            talk.get(2, expect);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "get"])
}

/// Creates a check of a put whose result is too large for a reply.
fn writes_of_a_failed_tool() -> Check {
    const CLAUSE: &str = "TH-STATE-18";
    const KEY: &str = "tool_error_keeps_writes";
    Check::new(
        id("slot-written-by-a-tool-whose-result-is-too-large"),
        "The writes of a tool before its request ended in TOOL_ERROR are kept or dropped.",
        [CLAUSE],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let artifact = "{\\\"type\\\":\\\"t\\\",\\\"provenance\\\":\\\"p\\\",\\\"size_bytes\\\":1100000,\\\"content_json\\\":\\\"";
            let input = Payload::text(format!("\"{{\\\"slot\\\":1,\\\"artifact\\\":{artifact}"))
                .repeat("x", 1_100_000)
                .then(Payload::text("\\\"}}\""));
            let request = super::super::super::talk::Request::aid(&talk.role("put").aid).payload("input_json", input);
            // A peer that answers with more than 1 MiB shows no failure. Another check covers that limit.
            let expect = Expect::new(CLAUSE, Allowed::of(Outcome::ToolError)).or(Allowed::of(Outcome::Ok));
            talk.send(request.line(), expect);
            // A kept artifact is too large to be read back.
            let expect = Expect::new(CLAUSE, got(None).shows("false"))
                .or(Allowed::of(Outcome::ToolError).shows("true"))
                .or(Allowed::of(Outcome::Ok).shows("true"))
                .choice(KEY);
            talk.get(1, expect);
            // A peer that kept the state and repeats it in every delta cannot answer until the state is gone.
            let (request, expect) = talk.good(CLAUSE);
            talk.send(request.state("{\"slots\":{}}").line(), expect.reason(CANARY_FAILED)).counts_as_canary();
            // No canary by itself: such a peer would fail it for the same reason, under a clause that it keeps.
            Ok(talk.finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["put", "get"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use peerproof_engine::data::clause::Side;
    use peerproof_engine::data::rng::Rng;

    #[test]
    fn a_state_that_fills_every_reply_is_told_under_the_clause_of_the_check() {
        let facts = super::super::super::super::boundary().full_facts(Side::Provider);
        let plan = (writes_of_a_failed_tool().planner)(&facts, &mut Rng::new(1)).unwrap();
        let canaries: Vec<&str> = plan
            .steps
            .iter()
            .filter(|step| step.canary)
            .map(|step| step.expect["clause"].as_str().unwrap())
            .collect();
        assert_eq!(canaries, ["TH-STATE-18"]);
    }
}
