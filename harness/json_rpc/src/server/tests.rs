//! Tests of the assignment of responses to requests.

use super::*;
use peerproof_engine::data::clause::Side;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Chunking, Session};
use peerproof_engine::data::transcript::{Bytes, Event, EventKind};

const A: &str = r#"{"jsonrpc":"2.0","method":"peerproof.no_such_method","id":"a"}"#;
const B: &str = r#"{"jsonrpc":"2.0","method":"peerproof.no_such_method","id":"b"}"#;
const NOTE: &str = r#"{"jsonrpc":"2.0","method":"peerproof.no_such_method"}"#;
const INVALID: &str = r#"{"jsonrpc":"2.0","method":1}"#;

fn error(code: i64, id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","error":{{"code":{code},"message":"m"}},"id":{id}}}"#)
}

/// A conversation. The number of a response is that of the requests before it. With `awaited`, each request is
/// awaited before the next.
fn transcript(facts: Facts, requests: &[&str], responses: &[(&str, usize)], awaited: bool) -> Transcript {
    let event = |kind| Event { at_us: 0, session: 0, kind };
    let mut events = Vec::new();
    let mut steps = Vec::new();
    let come = |after: usize| {
        let own = responses.iter().filter(move |(_, behind)| *behind == after);
        own.map(|(text, _)| event(EventKind::Received { bytes: Bytes(format!("{text}\n").into_bytes()) }))
    };
    events.extend(come(0));
    for (step, text) in requests.iter().enumerate() {
        let payload = Payload::text(format!("{text}\n"));
        events.push(event(EventKind::Sent { step, payload: payload.clone() }));
        let await_frames = u32::from(awaited);
        steps.push(Step::new(Act::Send { payload, chunking: Chunking::Whole, await_frames }));
        events.extend(come(step + 1));
    }
    let sessions = vec![Session { command: "command".to_owned(), ..Session::default() }];
    Transcript {
        boundary: "json_rpc".to_owned(),
        check: "test".to_owned(),
        facts: facts.into(),
        plan: Plan { sessions, steps, ..Plan::default() }.into(),
        timeout_scale: 1.0,
        events,
    }
}

/// For each request the index of its response, and the indexes of responses to no request.
fn matched(
    requests: &[&str],
    responses: &[(&str, usize)],
    awaited: bool,
) -> (Vec<Option<usize>>, Vec<usize>) {
    let transcript = transcript(Facts::new(Side::Provider), requests, responses, awaited);
    judge::listen(&Server, &transcript, |trace| {
        let heard = &trace.sessions[0];
        let number = |message: &Message| {
            let same = |output: &Output<Message>| {
                output.held.whole().is_some_and(|other| std::ptr::eq(other, message))
            };
            heard.output.iter().position(same).unwrap()
        };
        let answers = heard.exchanges.iter().map(|(_, came)| came.answers[0].map(|it| number(it.message)));
        (answers.collect(), heard.extra.iter().map(|(_, message)| number(message)).collect())
    })
}

fn at_once(requests: &[&str], responses: &[&str]) -> (Vec<Option<usize>>, Vec<usize>) {
    let responses: Vec<(&str, usize)> = responses.iter().map(|text| (*text, requests.len())).collect();
    matched(requests, &responses, false)
}

fn in_turn(requests: &[&str], responses: &[(&str, usize)]) -> (Vec<Option<usize>>, Vec<usize>) {
    matched(requests, responses, true)
}

#[test]
fn the_order_of_responses_does_not_matter() {
    let (a, b, null) = (error(-32601, "\"a\""), error(-32601, "\"b\""), error(-32600, "null"));
    assert_eq!(at_once(&[A, B, INVALID], &[&null, &b, &a]), (vec![Some(2), Some(1), Some(0)], vec![]));
}

#[test]
fn a_changed_id_goes_to_the_request_that_is_left() {
    let (a, other) = (error(-32601, "\"a\""), error(-32601, "1"));
    assert_eq!(at_once(&[B, A], &[&other, &a]), (vec![Some(0), Some(1)], vec![]));
}

#[test]
fn wrong_answers_under_one_id_are_one_for_each_request() {
    let (first, second) = (error(-32000, "\"a\""), error(-32001, "\"a\""));
    assert_eq!(at_once(&[A, B, A], &[&first, &second]), (vec![Some(0), None, Some(1)], vec![]));
}

#[test]
fn a_second_answer_is_one_too_many() {
    let a = error(-32601, "\"a\"");
    assert_eq!(at_once(&[A, NOTE], &[&a, &a]), (vec![Some(0), None], vec![1]));
}

#[test]
fn an_answer_to_a_notification_is_its_own() {
    let (a, null) = (error(-32601, "\"a\""), error(-32601, "null"));
    assert_eq!(at_once(&[NOTE, A], &[&null, &a]), (vec![Some(0), Some(1)], vec![]));
}

#[test]
fn nothing_answers_what_was_sent_after_it() {
    let (a, null) = (error(-32601, "\"a\""), error(-32600, "null"));
    assert_eq!(in_turn(&[INVALID, INVALID], &[(&null, 1)]), (vec![Some(0), None], vec![]));
    assert_eq!(in_turn(&[INVALID, INVALID], &[(&null, 2)]), (vec![None, Some(0)], vec![]));
    assert_eq!(in_turn(&[A], &[(&a, 0), (&a, 1)]), (vec![Some(1)], vec![0]));
    assert_eq!(in_turn(&[INVALID, INVALID], &[(&null, 2), (&null, 2)]).1, vec![0; 0]);
}

#[test]
fn a_wrong_answer_belongs_to_what_was_sent_last_before_it() {
    let (parse, null) = (error(-32700, "null"), error(-32601, "null"));
    assert_eq!(in_turn(&[INVALID, NOTE], &[(&null, 2)]), (vec![None, Some(0)], vec![]));
    assert_eq!(in_turn(&[INVALID, A], &[(&parse, 1)]), (vec![Some(0), None], vec![]));
}

#[test]
fn an_array_for_a_single_request_is_a_wrong_answer_to_it() {
    let array = format!("[{}]", error(-32601, "\"a\""));
    assert_eq!(at_once(&[A], &[&array]), (vec![Some(0)], vec![]));
}

#[test]
fn params_that_are_null_may_be_refused_as_missing_whatever_is_pinned() {
    const NULL: &str = r#"{"jsonrpc":"2.0","method":"peerproof.counter","params":null,"id":1}"#;
    let of = |pinned: &str, response: &str| {
        let mut facts = crate::full_facts::facts(Side::Provider);
        facts.choices.insert("params_null".to_owned(), pinned.to_owned());
        let found = judge(&transcript(facts, &[NULL], &[(response, 1)], true)).findings.into_iter();
        found.filter(|finding| finding.step == Some(0)).map(|finding| finding.reason).collect::<Vec<_>>()
    };
    for (pinned, code, wrong) in [
        ("refuse", -32602, ""),
        ("refuse", -32600, ""),
        ("absent", -32602, ""),
        ("absent", -32600, "wrong_code"),
    ] {
        assert_eq!(of(pinned, &error(code, "1")).concat(), wrong, "{pinned} {code}");
    }
    assert_ne!(of("refuse", r#"{"jsonrpc":"2.0","result":{"count":1},"id":1}"#), [""; 0]);
}

/// Faults of three counting calls that are awaited in turn. The second gets this answer, or none.
fn counted(second: Option<&str>, third: u64) -> Vec<String> {
    let calls = [1, 2, 3]
        .map(|id| format!(r#"{{"jsonrpc":"2.0","method":"peerproof.counter","params":{{}},"id":{id}}}"#));
    let count =
        |id: u64, count: u64| format!(r#"{{"jsonrpc":"2.0","result":{{"count":{count}}},"id":{id}}}"#);
    let (first, third) = (count(1, 1), count(3, third));
    let mut responses = vec![(first.as_str(), 1)];
    responses.extend(second.map(|second| (second, 2)));
    responses.push((&third, 3));
    let facts = crate::full_facts::facts(Side::Provider);
    let transcript = transcript(facts, &calls.each_ref().map(String::as_str), &responses, true);
    let found = judge::judge(&Server, &transcript).findings.into_iter();
    found.filter(|finding| finding.clause.0 == "RPC-NOTE-02").map(|finding| finding.got).collect()
}

#[test]
fn a_call_refused_without_right_or_lost_may_have_run_and_may_not() {
    let refused = error(-32603, "2");
    for second in [Some(refused.as_str()), None] {
        // The second call itself is wrong.
        let own = counted(second, 2);
        assert_eq!(own.len(), 1, "{own:?}");
        assert_eq!(own, counted(second, 3));
        assert_eq!(counted(second, 4).len(), 2, "{own:?}");
        assert_eq!(counted(second, 1).len(), 2, "{own:?}");
    }
    let right = r#"{"jsonrpc":"2.0","result":{"count":2},"id":2}"#;
    assert_eq!(counted(Some(right), 3), [""; 0]);
    assert_eq!(counted(Some(right), 2).len(), 1);
}

/// Clauses and reasons of findings about the response to a request.
fn of_response(request: &str, response: &str) -> Vec<String> {
    let transcript = transcript(Facts::new(Side::Provider), &[request], &[(response, 1)], true);
    let found = judge(&transcript).findings.into_iter();
    found.map(|finding| format!("{} {}", finding.clause, finding.reason)).collect()
}

#[test]
fn what_is_malformed_in_an_error_is_not_told_as_a_wrong_code() {
    let found = |response: &str| of_response(A, response);
    assert_eq!(found(&error(-32601, "\"a\"").replace("-32601", "\"-32601\"")), ["RPC-MSG-04 error_code"]);
    assert_eq!(found(r#"{"jsonrpc":"2.0","error":"no","id":"a"}"#), ["RPC-MSG-04 error_shape"]);
    assert_eq!(found(&error(-32602, "\"a\"")).len(), 1, "a wrong code that is well-formed");
}

#[test]
fn an_id_of_a_wrong_type_that_comes_back_is_one_fault_whatever_the_answer_is() {
    let request = A.replace("\"a\"", "[1]");
    let result = r#"{"jsonrpc":"2.0","result":1,"id":[1]}"#;
    for response in [&error(-32601, "[1]"), &error(-32600, "[1]"), result] {
        assert_eq!(of_response(&request, response), ["RPC-ID-05 id_echoed"], "{response}");
    }
    assert_eq!(of_response(&request, &error(-32600, "null")), [""; 0]);
    assert_eq!(of_response(&request, &error(-32601, "null")), ["RPC-ID-05 accepted"]);
    assert!(of_response(A, &error(-32601, "[1]")).contains(&"RPC-MSG-03 id_type".to_owned()));
}

#[test]
fn an_answer_to_a_notification_is_one_fault_also_in_a_batch() {
    let answer = error(-32601, "null");
    assert_eq!(of_response(NOTE, &answer), ["RPC-NOTE-01 answered"]);
    let batch = format!("[{NOTE}]");
    assert_eq!(of_response(&batch, &format!("[{answer}]")), ["RPC-NOTE-01 answered"]);
    assert_eq!(of_response(&batch, "[]"), ["RPC-BATCH-04 answered"]);
}

#[test]
fn headers_before_messages_explain_everything_else() {
    let body = error(-32601, "\"a\"");
    let framed = format!("Content-Length: {}\r\n\r\n{body}Content-Length: 9\r\n\r", body.len());
    assert_eq!(of_response(A, &framed), ["RPC-FRAME-05 other_output"]);
}

#[test]
fn an_answer_that_is_no_object_is_one_fault() {
    assert_eq!(of_response(A, r#""{\"jsonrpc\":\"2.0\"}""#), ["RPC-MSG-05 not_an_object"]);
}

#[test]
fn an_answer_without_an_id_lacks_it_also_where_the_request_is_of_json_rpc_1() {
    let facts = Facts { requirements: "spec".to_owned(), ..Facts::new(Side::Provider) };
    let answer = r#"{"error":{"code":-32600,"message":"m"}}"#;
    let found = judge(&transcript(facts, &["{}"], &[(answer, 1)], true)).findings;
    assert_eq!(found.iter().map(|finding| finding.reason.as_str()).collect::<Vec<_>>(), ["id_missing"]);
}

#[test]
fn a_garbled_answer_stands_for_the_answer_to_its_request() {
    let garbled = r#"{"id": "a", "result": NaN}"#;
    let b = error(-32601, "\"b\"");
    let judged = |aim: Option<&str>, line: &str| {
        let mut transcript = transcript(Facts::new(Side::Provider), &[A, B], &[(line, 1), (&b, 2)], true);
        let mut plan = (*transcript.plan).clone();
        if let Some(clause) = aim {
            plan.steps[0].expect = Aim::about(clause);
        }
        transcript.plan = plan.into();
        let findings = judge::judge(&Server, &transcript).findings;
        let said = |finding: &Finding| (finding.clause.0.clone(), finding.reason.clone(), finding.step);
        findings.iter().map(said).collect::<Vec<_>>()
    };
    let found =
        |clause: &str, reason: &str, step: Option<usize>| (clause.to_owned(), reason.to_owned(), step);
    let of_output = found("RPC-MSG-05", "reply_not_json", Some(0));
    assert_eq!(judged(None, garbled), vec![of_output.clone()]);
    assert_eq!(
        judged(Some("RPC-ID-01"), garbled),
        vec![of_output, found("RPC-ID-01", "reply_not_json", Some(0))]
    );
    let with_log_line = judged(None, "called a");
    assert!(with_log_line.contains(&found("RPC-FRAME-05", "other_output", None)), "{with_log_line:?}");
    assert!(with_log_line.iter().any(|(_, reason, step)| reason == "no_reply" && *step == Some(0)));
}
