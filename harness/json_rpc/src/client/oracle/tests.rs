//! Near misses: conversations that are right but for one thing, and their right twins.

use std::sync::Arc;

use super::super::expect::Allowed;
use super::super::scenario::Call;
use super::super::scene::Scene;
use super::super::script::{Deed, error, result};
use super::super::{RESULTS, server::Server};
use super::judge;
use peerproof_engine::clause::Side;
use peerproof_engine::counterpart::Counterpart as _;
use peerproof_engine::facts::Facts;
use peerproof_engine::payload::Payload;
use peerproof_engine::plan::{Act, Plan};
use peerproof_engine::rng::Rng;
use peerproof_engine::transcript::{Bytes, Event, Exit, Kind, Transcript};

/// A conversation by hand: `→` lines of ours, `←` lines of the client's, `=` lines of its results, each after so many ms.
fn transcript(plan: Plan, lines: &[(u64, &str)], exit: Exit) -> Transcript {
    let mut results = String::new();
    let mut events = Vec::new();
    for (at_ms, line) in lines {
        let (sign, text) = line.split_once(' ').unwrap();
        let payload = format!("{text}\n");
        let kind = match sign {
            "→" => Kind::Sent { step: 0, payload: Payload::text(payload) },
            "←" => Kind::Received { bytes: Bytes(payload.into_bytes()) },
            _ => {
                results.push_str(&payload);
                continue;
            }
        };
        events.push(Event { at_us: at_ms * 1_000, session: 0, kind });
    }
    let at_us = events.last().map_or(0, |event| event.at_us);
    events.push(Event { at_us, session: 0, kind: Kind::Exited { exit } });
    let bytes = Bytes(results.into_bytes());
    events.push(Event { at_us, session: 0, kind: Kind::FileHeld { file: RESULTS.to_owned(), bytes } });
    Transcript {
        boundary: "json_rpc".to_owned(),
        check: "test".to_owned(),
        facts: Arc::new(Facts::new(Side::Consumer)),
        plan: Arc::new(plan),
        timeout_scale: 1.0,
        events,
    }
}

fn reasons(plan: Plan, lines: &[(u64, &str)]) -> Vec<String> {
    let judgement = judge(&transcript(plan, lines, Exit::Code(0)));
    judgement.findings.into_iter().map(|finding| finding.reason).collect()
}

fn one_call() -> Plan {
    let mut scene = Scene::about("RPC-CLIENT-09");
    scene.without_canary().call(Call::new("a"), [Allowed::result("1").attempts(1)]);
    scene.on("a", [Deed::line(&result("1"))]);
    scene.plan()
}

const ASKED: &str = "← {\"id\":7,\"method\":\"call.a\",\"params\":{\"of\":\"a\"},\"jsonrpc\":\"2.0\"}";
const ANSWER: &str = "→ {\"jsonrpc\":\"2.0\",\"result\":1,\"id\":7}";
const NOTED: &str =
    "= {\"ref\":\"a\",\"outcome\":\"result\",\"result\":1.0,\"attempts\":1,\"elapsed_ms\":2.5}";

#[test]
fn one_thing_wrong_is_one_finding() {
    assert_eq!(reasons(one_call(), &[(1, ASKED), (2, ANSWER), (3, NOTED)]), [""; 0]);
    let cases: &[(&str, &str, &str, &str)] = &[
        ("wrong_version", &ASKED.replace("2.0", "2"), ANSWER, NOTED),
        ("other_params", &ASKED.replace("\"a\"}", "\"b\"}"), ANSWER, NOTED),
        ("no_id", &ASKED.replace("\"id\":7,", ""), ANSWER, NOTED),
        ("id_type", &ASKED.replace("\"id\":7", "\"id\":[7]"), ANSWER, NOTED),
        (
            "other_batch",
            &ASKED.replace("{\"id\"", "[{\"id\"").replace("\"2.0\"}", "\"2.0\"}]"),
            ANSWER,
            NOTED,
        ),
        (
            "other_output",
            &ASKED.replace("← ", "← call "),
            ANSWER,
            &NOTED.replace("\"attempts\":1", "\"attempts\":0"),
        ),
        ("wrong_value", ASKED, ANSWER, &NOTED.replace("1.0", "2")),
        ("wrong_outcome", ASKED, ANSWER, &NOTED.replace("\"outcome\":\"result\"", "\"outcome\":\"timeout\"")),
        ("bad_result_line", ASKED, ANSWER, &NOTED.replace("\"outcome\":\"result\"", "\"outcome\":\"done\"")),
        ("pending_too_long", ASKED, ANSWER, &NOTED.replace("2.5", "10000")),
        ("unknown_ref", ASKED, ANSWER, &NOTED.replace("\"ref\":\"a\"", "\"ref\":\"b\"")),
    ];
    for (reason, asked, answer, noted) in cases {
        let found = reasons(one_call(), &[(1, asked), (2, answer), (3, noted)]);
        assert!(found.contains(&(*reason).to_owned()), "{reason}: {found:?}");
    }
}

#[test]
fn a_retry_is_judged_by_its_answer_and_its_delay() {
    let plan = || {
        let object = r#"{"code":-32002,"message":"x","data":{"retry_after_ms":300}}"#;
        let mut scene = Scene::about("RPC-CLIENT-12");
        scene.without_canary().call(Call::new("a").retry(2, 100), [Allowed::result("1").attempts(2)]);
        scene.on_attempt("a", 1, [Deed::line(&error(object))]).on("a", [Deed::line(&result("1"))]);
        scene.plan()
    };
    let told = |refusal: &str, delay_ms: u64| {
        let noted = "= {\"ref\":\"a\",\"outcome\":\"result\",\"result\":1,\"attempts\":2,\"elapsed_ms\":900}";
        reasons(plan(), &[(0, ASKED), (10, refusal), (10 + delay_ms, ASKED), (1_000, ANSWER), (1_000, noted)])
    };
    let refusal = |code: i64, data: &str| {
        format!(
            "→ {{\"jsonrpc\":\"2.0\",\"error\":{{\"code\":{code},\"message\":\"x\",\"data\":{data}}},\"id\":7}}"
        )
    };
    assert_eq!(told(&refusal(-32002, "{\"retry_after_ms\":300}"), 300), [""; 0]);
    assert_eq!(told(&refusal(-32002, "{\"retry_after_ms\":300}"), 290), ["too_early"]);
    assert_eq!(told(&refusal(-32001, "null"), 50), [""; 0]);
    assert_eq!(told(&refusal(-32001, "null"), 47), ["other_delay"]);
    assert_eq!(told(&refusal(-32000, "{\"type\":\"TIMEOUT\"}"), 100), [""; 0]);
    assert_eq!(told(&refusal(-32000, "{\"type\":\"EXECUTION_ERROR\"}"), 100), ["retried"]);
    assert_eq!(told("→ {\"jsonrpc\":\"2.0\",\"result\":1,\"id\":8}", 100), ["id_in_flight", "retried"]);
}

#[test]
fn the_server_does_what_its_script_says() {
    let mut scene = Scene::about("RPC-CLIENT-09");
    scene.usual(Call::new("a")).usual(Call::new("b").batch("x"));
    scene.call(Call::new("c").batch("x"), [Allowed::of("sent")]);
    scene.on("c", [Deed::line("second $id,$id:b").in_ms(5), Deed::line("first"), Deed::line("$id:none")]);
    let plan = scene.plan();
    let Act::Play { script, .. } = &plan.steps[0].act else { panic!("no script") };
    let script = serde_json::from_value(script.clone()).unwrap();
    let mut server = Server::new(script, super::Scenario::of(&plan).unwrap());
    let said = |server: &mut Server, now_us: u64| {
        let mut text = String::new();
        while let Some(doing) = server.next(now_us) {
            text.push_str(&format!("{doing:?}"));
        }
        text
    };
    assert_eq!(said(&mut server, 0), "");
    server.take(b"[{\"method\":\"call.b\",\"id\":\"i\"},{\"method\":\"call.c\",\"id\":2},7]", 1_000);
    let first = said(&mut server, 1_000);
    assert!(first.contains("first") && first.contains("[{") && !first.contains("second"), "{first}");
    assert_eq!(server.due_us(), Some(6_000));
    assert!(said(&mut server, 6_000).contains("second"));
    server.take(b"no JSON", 7_000);
    server.take(b"{\"method\":\"call.a\",\"id\":null}", 7_000);
    assert!(said(&mut server, 7_000).contains("null"));
    assert_eq!(server.due_us(), None);
}

#[test]
fn what_is_read_late_went_out_in_time() {
    let plan = || {
        let mut scene = Scene::about("RPC-CLIENT-07");
        scene.without_canary().call(Call::new("a").timeout_ms(400), [Allowed::timeout(400)]);
        scene.call(Call::new("b").after("a"), [Allowed::result("1")]);
        scene.plan()
    };
    let later = ASKED.replace("\"id\":7", "\"id\":8").replace("call.a", "call.b").replace(":\"a\"", ":\"b\"");
    let early = |ms: u64| {
        let reasons = reasons(plan(), &[(10, ASKED), (10 + ms, &later)]);
        reasons.contains(&"too_early".to_owned())
    };
    assert!(!early(300));
    assert!(early(100));
}

#[test]
fn a_call_that_ended_before_it_was_written_has_no_attempts() {
    let plan = || {
        let mut scene = Scene::about("RPC-CLIENT-11");
        scene.without_canary().call(Call::new("a").timeout_ms(400), [Allowed::timeout(400).attempts(1)]);
        scene.plan()
    };
    let noted = |attempts: u64| {
        format!("= {{\"ref\":\"a\",\"outcome\":\"timeout\",\"attempts\":{attempts},\"elapsed_ms\":410}}")
    };
    assert_eq!(reasons(plan(), &[(500, &noted(0))]), [""; 0]);
    assert_eq!(reasons(plan(), &[(500, &noted(1))]), ["other_attempts"]);
    assert_eq!(reasons(plan(), &[(10, ASKED), (500, &noted(1))]), [""; 0]);
    assert_eq!(reasons(plan(), &[(10, ASKED), (500, &noted(0))]), ["other_attempts"]);
}

#[test]
fn a_stray_chunk_between_a_correct_end_and_the_response_breaks_nothing() {
    let check = super::super::super::checks::all()
        .into_iter()
        .find(|check| check.id == "json_rpc/client/stream/chunk-after-the-end")
        .unwrap();
    let found = |told: &str| {
        let plan = (check.planner)(&Facts::new(Side::Consumer), &mut Rng::new(1)).unwrap();
        let of = |name: &str, id: u64| {
            let text =
                ASKED.replace("call.a", &format!("call.{name}")).replace("\"a\"", &format!("\"{name}\""));
            text.replace("\"id\":7", &format!("\"id\":{id}"))
        };
        let result = |name: &str, value: &str, more: &str| {
            format!(
                "= {{\"ref\":\"{name}\",\"outcome\":\"result\",\"result\":{value},\"attempts\":1,\"elapsed_ms\":2{more}}}"
            )
        };
        let canary = "{\"answer\":\"canary\"}";
        let answer = ANSWER.replace(":1,", &format!(":{canary},")).replace(":7", ":8");
        reasons(
            plan,
            &[
                (1, &of("s", 7)),
                (2, ANSWER),
                (3, &of("canary", 8)),
                (4, &answer),
                (5, &result("s", "1", told)),
                (5, &result("canary", canary, "")),
            ],
        )
    };
    for told in [
        ",\"chunks\":1,\"stream_ok\":true",
        ",\"chunks\":2,\"stream_ok\":true",
        ",\"chunks\":2,\"stream_ok\":false",
        ",\"chunks\":[\"part 1\"],\"stream_ok\":true",
    ] {
        assert_eq!(found(told), [""; 0], "{told}");
    }
    assert_eq!(found(",\"chunks\":3,\"stream_ok\":true").len(), 1);
    assert_eq!(found("").len(), 1);
}

#[test]
fn a_client_that_sleeps_over_its_times_is_late_whatever_it_says() {
    let plan = || {
        let mut scene = Scene::about("RPC-CLIENT-11");
        scene.without_canary().call(Call::new("a").timeout_ms(400), [Allowed::timeout(400)]);
        scene.call(Call::new("b").after("a"), [Allowed::result("1")]);
        scene.plan()
    };
    let next = ASKED.replace("\"id\":7", "\"id\":8").replace("call.a", "call.b").replace(":\"a\"", ":\"b\"");
    let is_late = |start_ms: u64, ms: u64| {
        let reasons = reasons(plan(), &[(start_ms, ASKED), (start_ms + ms, &next)]);
        reasons.contains(&"pending_too_long".to_owned())
    };
    assert!(!is_late(10, 1_800) && !is_late(20_000, 1_800));
    assert!(is_late(10, 2_000) && is_late(20_000, 2_000));
}

#[test]
fn a_client_that_is_slow_at_everything_keeps_its_delays() {
    let object = r#"{"code":-32000,"message":"x","data":{"type":"TIMEOUT"}}"#;
    let plan = || {
        let mut scene = Scene::about("RPC-CLIENT-14");
        scene.measures_delays().without_canary();
        scene.call(Call::new("a").retry(2, 1_000), [Allowed::result("1").attempts(2)]);
        scene.on_attempt("a", 1, [Deed::line(&error(object))]).on("a", [Deed::line(&result("1"))]);
        scene.usual(Call::new("b").after("a"));
        scene.plan()
    };
    let found = |delay_ms: u64, reaction_ms: u64| {
        let refusal = format!("→ {{\"jsonrpc\":\"2.0\",\"error\":{object},\"id\":7}}");
        let next = ASKED.replace("\"a\"", "\"b\"").replace("call.a", "call.b").replace("7", "8");
        let answer = ANSWER.replace("1,\"id\":7", "{\"answer\":\"b\"},\"id\":8");
        let noted = |name: &str, value: &str, attempts: u32| {
            format!(
                "= {{\"ref\":\"{name}\",\"outcome\":\"result\",\"result\":{value},\"attempts\":{attempts},\"elapsed_ms\":1}}"
            )
        };
        let lines = [
            (0, ASKED.to_owned()),
            (0, refusal),
            (delay_ms, ASKED.to_owned()),
            (delay_ms, ANSWER.to_owned()),
            (delay_ms + reaction_ms, next),
            (delay_ms + reaction_ms, answer),
            (delay_ms + reaction_ms, noted("a", "1", 2)),
            (delay_ms + reaction_ms, noted("b", "{\"answer\":\"b\"}", 1)),
        ];
        reasons(plan(), &lines.each_ref().map(|(at_ms, line)| (*at_ms, line.as_str())))
    };
    assert_eq!(found(2_400, 1_000), [""; 0]);
    assert_eq!(found(2_400, 10), ["other_delay"]);
}
