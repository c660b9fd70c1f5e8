use super::*;
use crate::model::Input;
use crate::talk;
use peerproof_engine::clause::Side;
use peerproof_engine::facts::Facts;

/// Clause and JSON Pointer of each difference between an envelope and a reply, both changed as given.
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
        ("plain", ("llm_call_count", "3"), ("llm_call_count", "2"), "ENV-ADV-05 /llm_call_count"),
        ("plain", ("iteration", "2"), ("iteration", "0"), "ENV-ADV-06 /iteration"),
        ("plain", ("llm_call_count", "10"), ("llm_call_count", "11"), "ENV-BOUND-01 /llm_call_count"),
        ("plain", ("errors", "[]"), ("errors", "null"), "ENV-OUT-02 /errors"),
        ("plain", ("errors", "[]"), ("iteration", "-1"), "ENV-OUT-01 /iteration"),
        ("plain", ("metadata", "{}"), ("max_stages", "6"), "ENV-DEF-01 /max_stages"),
        ("plain", ("max_stages", "7"), ("max_stages", "6"), "ENV-ADV-01 /max_stages"),
    ] {
        assert_eq!(said(base, &[sent], &[reply], Mode::Advance), [told]);
    }
}
