use super::*;
use crate::model::Input;
use crate::talk;
use peerproof_engine::data::clause::Side;
use peerproof_engine::data::facts::Facts;

/// Clause and JSON pointer of each difference between an envelope and a reply, both changed as given.
fn said(base: &str, sent: &[(&str, &str)], reply: &[(&str, &str)], mode: Mode) -> Vec<String> {
    let sent = talk::with(&talk::base(base).unwrap(), sent.iter().copied());
    let reply = talk::with(&sent, reply.iter().copied()).parse().unwrap();
    let input = Input::read(&Facts::new(Side::Provider), sent.as_bytes());
    let found = differences(&input.sent.unwrap(), &reply, mode);
    found.into_iter().map(|it| format!("{} {}", it.clause, it.at)).collect()
}

#[test]
fn what_may_change_is_no_difference() {
    for (sent, reply) in [
        (&[][..], &[][..]),
        (&[], &[("iteration", "0"), ("errors", "[]"), ("completed_at", "null"), ("more", "1")]),
        (
            &[("received_at", "\"2025-12-10T10:00:00.1234567Z\"")],
            &[("received_at", "\"2025-12-10T11:00:00.123457+01:00\"")],
        ),
        (
            &[("metadata", "{\"a\":1e2,\"b\":12345678901234567890}")],
            &[("metadata", "{\"b\":1.2345678901234567e19,\"a\":100}")],
        ),
    ] {
        for mode in [Mode::Identity, Mode::Advance] {
            assert_eq!(said("plain", sent, reply, mode), [""; 0], "{sent:?} {reply:?}");
        }
    }
    let advanced = [
        ("current_stage", "\"intent\""),
        ("agent_hop_count", "1"),
        ("metadata", "{\"a\":1,\"b\":2}"),
        (
            "errors",
            "[{\"x\":1},{\"agent\":\"a\",\"error_type\":\"e\",\"message\":\"m\",\"timestamp\":\"2025-12-10T10:00:00Z\",\"recoverable\":true,\"details\":{}}]",
        ),
    ];
    let sent = [("metadata", "{\"a\":1}"), ("errors", "[{\"x\":1}]")];
    assert_eq!(said("plain", &sent, &advanced, Mode::Advance), [""; 0]);
    assert_eq!(said("plain", &sent, &advanced, Mode::Identity), ["ENV-PROC-02 /current_stage"]);
    assert_eq!(said("done", &sent, &advanced, Mode::Advance), ["ENV-TERM-06 /current_stage"]);
}

/// An engine may keep the last or the first of equal members, and add to their object.
#[test]
fn of_two_members_with_one_name_one_is_kept_beside_what_is_added() {
    let twice = [("metadata", r#"{"a":1,"\u0061":2}"#)];
    for (kept, is_right) in [("1", true), ("2", true), ("3", false)] {
        let metadata = format!("{{\"a\":{kept},\"engine\":\"x\"}}");
        let found = said("plain", &twice, &[("metadata", metadata.as_str())], Mode::Advance);
        assert_eq!(found.is_empty(), is_right, "{kept}: {found:?}");
    }
}

#[test]
fn each_difference_names_its_clause_and_its_place() {
    for (base, sent, reply, told) in [
        (
            "done",
            ("metadata", "{\"a\":{\"b\":null}}"),
            ("metadata", "{\"a\":{}}"),
            "ENV-KEEP-02 /metadata/a/b",
        ),
        ("done", ("metadata", "{\"a\":\"é\"}"), ("metadata", "{\"a\":\"e\"}"), "ENV-KEEP-07 /metadata/a"),
        ("done", ("metadata", "{\"a\":0.5}"), ("metadata", "{\"a\":0.25}"), "ENV-KEEP-06 /metadata/a"),
        (
            "done",
            ("confirmation_response", "false"),
            ("confirmation_response", "null"),
            "ENV-KEEP-05 /confirmation_response",
        ),
        ("done", ("x", "1"), ("x", ""), "ENV-KEEP-03 /x"),
        ("plain", ("outputs", "{\"o\":{}}"), ("outputs", "{}"), "ENV-ADV-02 /outputs/o"),
        ("plain", ("errors", "[{}]"), ("errors", "[]"), "ENV-ADV-03 /errors/0"),
        (
            "plain",
            ("errors", "[{\"a\":1},{\"a\":2},{\"a\":3}]"),
            ("errors", "[{\"a\":2},{\"a\":3}]"),
            "ENV-ADV-03 /errors/0",
        ),
        (
            "plain",
            ("errors", "[{\"a\":1},{\"a\":2}]"),
            ("errors", "[{\"a\":2},{\"a\":1}]"),
            "ENV-ADV-03 /errors/0",
        ),
        ("plain", ("llm_call_count", "3"), ("llm_call_count", "2"), "ENV-ADV-05 /llm_call_count"),
        ("plain", ("iteration", "2"), ("iteration", "0"), "ENV-ADV-06 /iteration"),
        ("plain", ("llm_call_count", "10"), ("llm_call_count", "11"), "ENV-BOUND-01 /llm_call_count"),
        ("plain", ("errors", "[]"), ("errors", "null"), "ENV-OUT-02 /errors"),
        ("plain", ("errors", "[]"), ("iteration", "-1"), "ENV-OUT-01 /iteration"),
        ("plain", ("metadata", "{}"), ("max_stages", "6"), "ENV-DEF-01 /max_stages"),
        ("plain", ("max_stages", "7"), ("max_stages", "6"), "ENV-ADV-01 /max_stages"),
        ("plain", ("metadata", "{}"), ("received_at", "\"0001-01-01T00:00:00Z\""), "ENV-DEF-02 /received_at"),
        (
            "done",
            ("completed_stages", "[{\"summary\":{}}]"),
            ("completed_stages", "[{\"summary\":{\"a\":1}}]"),
            "ENV-KEEP-02 /completed_stages/0/summary/a",
        ),
        ("done", ("metadata", "{\"a\":1e400}"), ("metadata", "{\"a\":null}"), "ENV-JSON-12 /metadata/a"),
    ] {
        assert_eq!(said(base, &[sent], &[reply], Mode::Advance), [told]);
    }
}

#[test]
fn right_endings_are_no_difference() {
    let ended = |reason: &'static str| {
        [("terminated", "true"), ("termination_reason", "\"x\""), ("terminal_reason", reason)]
    };
    let waits = ("clarification_pending", "true");
    for (sent, more, reason) in [
        // The engine's clock precedes a time of receipt in the future.
        (
            vec![("received_at", "\"9999-12-31T23:59:59Z\"")],
            Some(("completed_at", "\"2026-01-01T00:00:00Z\"")),
            "\"completed_successfully\"",
        ),
        // The reason was in the sent envelope.
        (vec![waits, ("terminal_reason", "\"denied_by_policy\"")], None, "\"denied_by_policy\""),
        (vec![waits, ("llm_call_count", "11")], None, "\"clarification_required\""),
        (vec![waits, ("llm_call_count", "11")], None, "\"max_llm_calls_exceeded\""),
        (vec![waits, ("confirmation_pending", "true")], None, "\"confirmation_required\""),
        (vec![waits], Some(("current_stage", "\"end\"")), "\"clarification_required\""),
    ] {
        let reply: Vec<_> = ended(reason).into_iter().chain(more).collect();
        assert_eq!(said("plain", &sent, &reply, Mode::Advance), [""; 0], "{sent:?} {reply:?}");
    }
    for (sent, more, reason, told) in [
        (
            vec![("received_at", "\"2020-01-01T00:00:00Z\"")],
            Some(("completed_at", "\"2019-12-31T00:00:00Z\"")),
            "\"completed_successfully\"",
            "ENV-TERM-04 /completed_at",
        ),
        (vec![waits], None, "\"confirmation_required\"", "ENV-PEND-02 /terminal_reason"),
        (vec![("llm_call_count", "11")], None, "\"completed_successfully\"", "ENV-BOUND-03 /terminal_reason"),
        // It is terminated and advanced at once.
        (
            vec![("llm_call_count", "11"), ("outputs", "{\"plan\":{}}")],
            Some(("outputs", "{\"plan\":{\"a\":1}}")),
            "\"max_llm_calls_exceeded\"",
            "ENV-BOUND-04 /outputs",
        ),
        (
            vec![waits],
            Some(("agent_hop_count", "1")),
            "\"clarification_required\"",
            "ENV-PEND-02 /agent_hop_count",
        ),
    ] {
        let reply: Vec<_> =
            ended(reason).into_iter().chain([("current_stage", "\"end\"")]).chain(more).collect();
        assert_eq!(said("plain", &sent, &reply, Mode::Advance), [told], "{sent:?} {reply:?}");
    }
}

#[test]
fn a_second_question_is_no_flag_that_stays() {
    let sent = [
        ("stage_order", "[\"intent\",\"plan\"]"),
        ("current_stage", "\"intent\""),
        ("clarification_pending", "true"),
        ("clarification_question", "\"which?\""),
        ("clarification_response", "\"that\""),
    ];
    assert_eq!(said("plain", &sent, &[], Mode::Advance), ["ENV-PEND-04 /clarification_pending"]);
    let again = [("clarification_question", "\"and where?\""), ("clarification_response", "null")];
    assert_eq!(said("plain", &sent, &again, Mode::Advance), [""; 0]);
    assert_eq!(said("plain", &sent[2..], &[], Mode::Advance), [""; 0], "nothing is left to be run");
}

#[test]
fn a_response_that_is_false_is_no_missing_one() {
    let sent = [
        ("confirmation_pending", "true"),
        ("confirmation_message", "\"sure?\""),
        ("confirmation_response", "false"),
    ];
    let told = |reason: &'static str| {
        let reply = [
            ("current_stage", "\"end\""),
            ("terminated", "true"),
            ("terminal_reason", reason),
            ("termination_reason", "\"it ended\""),
        ];
        said("plain", &sent, &reply, Mode::Advance)
    };
    assert_eq!(told("\"confirmation_required\""), ["ENV-PEND-04 /terminal_reason"]);
    assert_eq!(told("\"denied_by_policy\""), [""; 0]);
}

#[test]
fn only_what_an_engine_adds_is_like_the_examples() {
    let of = |old: &str, new: &str| {
        said("plain", &[("outputs", old)], &[("outputs", new), ("current_stage", "\"x\"")], Mode::Advance)
    };
    let old = r#"{"critic":{"verdict":"perhaps","confidence":7}}"#;
    assert_eq!(of(old, r#"{"critic":{"verdict":"perhaps","confidence":7,"feedback":"x"}}"#), [""; 0]);
    assert_eq!(
        of(old, r#"{"critic":{"verdict":"never","confidence":7}}"#),
        ["ENV-SHAPE-01 /outputs/critic/verdict"]
    );
    let plan = r#"{"plan":{"plan_id":"p","estimated_complexity":"low","steps":[{"tool":"t","params":{}}]}}"#;
    assert_eq!(of("{}", plan), ["ENV-SHAPE-02 /outputs/plan/steps/0/expected_output"]);
    let results = r#"{"execution":{"status":"error","evidence":[],"results":[{"step_index":-1,"tool":"t","result":{},"duration_ms":1}]}}"#;
    assert_eq!(of("{}", results), ["ENV-SHAPE-02 /outputs/execution/results/0/step_index"]);
}

#[test]
fn what_is_taken_from_a_second_object_is_told_as_that() {
    let said = |behind: &str, reply: &[(&str, &str)]| {
        let text = format!("{}{behind}", talk::PLAIN);
        let sent = Input::read(&Facts::new(Side::Provider), text.as_bytes()).sent.unwrap();
        let reply = talk::with(talk::PLAIN, reply.iter().copied()).parse().unwrap();
        differences(&sent, &reply, Mode::Advance).into_iter().map(|it| it.clause).collect::<Vec<_>>()
    };
    assert_eq!(said("{\"user_id\":\"v\"}", &[("user_id", "\"v\"")]), ["ENV-FRAME-04"]);
    assert_eq!(said("{}", &[("user_id", "\"anonymous\"")]), ["ENV-FRAME-04"]);
    let both = [("user_id", "\"v\""), ("max_stages", "9"), ("raw_input", "\"other\"")];
    assert_eq!(said("{\"user_id\":\"v\",\"max_stages\":9}", &both), ["ENV-FRAME-04"]);
    assert_eq!(said("{\"user_id\":\"v\"}", &[("max_stages", "9")]), ["ENV-DEF-01"]);
    assert_eq!(said(" x", &[("user_id", "\"v\"")]), ["ENV-ADV-01"]);
}

#[test]
fn of_many_differences_some_are_told() {
    let many: Vec<String> = (0..1_000).map(|at| format!("\"m{at}\":1")).collect();
    let many = format!("{{{}}}", many.join(","));
    assert_eq!(said("done", &[("metadata", &many)], &[("metadata", "{}")], Mode::Advance).len(), TOLD_MAX);
    let wrong = format!("[{}1]", "1,".repeat(1_000));
    assert_eq!(said("done", &[], &[("errors", &wrong)], Mode::Advance).len(), TOLD_MAX);
}

#[test]
fn of_bounds_that_are_passed_at_once_either_is_the_reason() {
    let ended = |reason: &'static str, hops: &'static str| {
        let sent = [("llm_call_count", "10"), ("agent_hop_count", "21")];
        let words = ("termination_reason", "\"no more\"");
        let of_end = [("terminated", "true"), ("terminal_reason", reason), words];
        let counts = [("llm_call_count", "11"), ("agent_hop_count", hops)];
        said("plain", &sent, &[&of_end[..], &counts[..]].concat(), Mode::Advance)
    };
    assert_eq!(ended("\"max_llm_calls_exceeded\"", "22"), [""; 0]);
    assert_eq!(ended("\"max_agent_hops_exceeded\"", "22"), [""; 0]);
    // The reason names the other counter, which alone was passed.
    assert_eq!(ended("\"max_agent_hops_exceeded\"", "21"), ["ENV-BOUND-01 /llm_call_count"]);
}

#[test]
fn what_is_over_a_bound_is_given_back_by_engines_that_run_nothing() {
    let over = ("llm_call_count", "11");
    for mode in [Mode::Identity, Mode::Unknown] {
        assert_eq!(said("plain", &[over], &[], mode), [""; 0]);
    }
    assert_eq!(said("plain", &[over], &[], Mode::Advance), ["ENV-BOUND-05 /terminated"]);
    // Other reasons for running nothing.
    assert_eq!(said("done", &[over], &[], Mode::Advance), [""; 0]);
    for other in [("clarification_pending", "true"), ("terminal_reason", "\"denied_by_policy\"")] {
        assert_eq!(said("plain", &[over, other], &[], Mode::Advance), [""; 0]);
    }
}

#[test]
fn a_stage_that_was_run_shows() {
    let advanced = |base: &str, reply: &[(&str, &str)]| {
        let sent = talk::base(base).unwrap();
        let reply = talk::with(&sent, reply.iter().copied()).parse().unwrap();
        let input = Input::read(&Facts::new(Side::Provider), sent.as_bytes());
        is_advanced(&input.sent.unwrap(), &reply)
    };
    let stage = ("current_stage", "\"perception\"");
    assert!(advanced("plain", &[stage]));
    assert!(advanced("full", &[("llm_call_count", "3")]));
    // A counter that was not sent may have a wrong default.
    assert!(!advanced("plain", &[("llm_call_count", "1")]));
    // Other changes may be a fault of an engine that runs nothing.
    assert!(!advanced("plain", &[]));
    assert!(!advanced("plain", &[("metadata", "{\"a\":1}")]));
    assert!(!advanced("plain", &[stage, ("user_id", "\"v\"")]));
    assert!(!advanced("done", &[stage]));
}

#[test]
fn the_bound_of_stages_has_no_reason_of_its_own() {
    let ended = |most| {
        let words = ("termination_reason", "\"no more\"");
        let of_end = [("terminated", "true"), ("terminal_reason", "\"max_iterations_exceeded\""), words];
        said("plain", &[("max_stages", most)], &of_end, Mode::Advance)
    };
    assert_eq!(ended("1"), [""; 0]);
    assert_eq!(ended("2"), ["ENV-BOUND-03 /terminal_reason"]);
}
