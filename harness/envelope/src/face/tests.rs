//! Tests of the judge of replies over HTTP and over both transports.

use super::*;
use crate::talk::{PLAIN, Talk, with};
use peerproof_engine::data::clause::Side;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Chunking, Plan};
use peerproof_engine::data::transcript::{Bytes, Event, EventKind};

/// Reply of a server: status, content type and body. Status 0: no reply. Status 1: the connection closes.
type ServerReply = (u16, &'static str, String);

/// Judgement of a conversation. `answer` gives the reply to each envelope; its first argument is true for HTTP.
fn judged(plan: Plan, facts: Facts, answer: impl Fn(bool, &str) -> ServerReply) -> Judgement {
    let mut events = Vec::new();
    for (index, step) in plan.steps.iter().enumerate() {
        let session = step.session;
        let mut add = |kind| events.push(Event { at_us: index as u64, session, kind });
        let Act::Send { payload, .. } = &step.act else { continue };
        let text = String::from_utf8(payload.expand(&Vars::new()).unwrap()).unwrap();
        let over_http = plan.sessions[session].command == HTTP;
        let (status, content_type, body) = answer(over_http, &text);
        add(EventKind::Sent { step: index, payload: payload.clone() });
        if over_http && status < 2 {
            let (reason, will_retry) = ("the connection ended".to_owned(), false);
            let failed = EventKind::HttpFailed {
                step: index,
                of_step: 0,
                connection: 0,
                reason,
                wholly_sent: true,
                will_retry,
            };
            (status == 1).then(|| add(failed));
        } else if over_http {
            add(EventKind::HttpReply {
                step: index,
                of_step: 0,
                connection: 0,
                reused: true,
                status,
                content_type: Some(content_type.to_owned()),
                head: Bytes::default(),
                body_bytes: body.len() as u64,
                body: Some(Bytes(body.into_bytes())),
                keeps_open: true,
                took_us: 1,
            });
        } else {
            add(EventKind::StdinClosed);
            add(EventKind::Received { bytes: Bytes(body.into_bytes()) });
            add(EventKind::Exited { exit: Exit::Code(i32::from(status != 200)) });
        }
    }
    judge(&Transcript {
        boundary: "envelope".to_owned(),
        check: "test".to_owned(),
        facts: facts.into(),
        plan: plan.into(),
        timeout_scale: 1.0,
        events,
    })
}

fn facts(process: &str) -> Facts {
    let mut facts = Facts::new(Side::Provider);
    facts.choices.insert("process".to_owned(), process.to_owned());
    facts
}

/// Clauses and reasons of the findings if the second half of a conversation over HTTP gets this reply.
fn found(sent: &str, said: ServerReply) -> Vec<(String, String)> {
    let mut talk = Talk::new(HTTP);
    talk.send("ENV-TYPE-05", Payload::text(sent), Chunking::Whole);
    let own = sent.to_owned();
    let answer = move |_: bool, text: &str| match text == own {
        true => said.clone(),
        false => (200, "application/json", text.to_owned()),
    };
    let findings = judged(talk.plan(), facts("identity"), answer).findings;
    findings.into_iter().map(|finding| (finding.clause.0, finding.reason)).collect()
}

#[test]
fn the_head_of_a_reply_says_what_it_is() {
    let right = with(PLAIN, [("user_id", "\"x\"")]);
    let wrong = with(PLAIN, [("terminated", "1")]);
    let json = "application/json";
    let other = right.replace("env_01", "env_ff");
    let stage = "{\"error\":\"no\",\"current_stage\":\"start\"}".to_owned();
    for (sent, said, clause) in [
        (&right, (200, "Application/JSON; charset=utf-8", right.clone()), ""),
        (&right, (201, json, right.clone()), "ENV-HTTP-01"),
        (&right, (200, json, "[]".to_owned()), "ENV-HTTP-01"),
        (&right, (200, json, String::new()), "ENV-HTTP-01"),
        (&right, (200, "text/plain", right.clone()), "ENV-HTTP-02"),
        (&right, (400, json, String::new()), "ENV-TYPE-05"),
        (&right, (200, json, other), "ENV-KEEP-01"),
        (&wrong, (422, "text/html", "<p>no".to_owned()), ""),
        (&wrong, (400, json, String::new()), ""),
        (&wrong, (500, json, String::new()), "ENV-HTTP-03"),
        (&wrong, (302, json, String::new()), "ENV-HTTP-03"),
        (&wrong, (200, json, "{\"error\":\"no\"}".to_owned()), "ENV-HTTP-03"),
        (&wrong, (400, json, stage), "ENV-HTTP-04"),
        (&wrong, (200, json, wrong.clone()), "ENV-TYPE-05"),
    ] {
        let found = found(sent, said.clone());
        let clauses: Vec<&str> = found.iter().map(|(clause, _)| clause.as_str()).collect();
        let expected: Vec<&str> = Some(clause).filter(|clause| !clause.is_empty()).into_iter().collect();
        assert_eq!(clauses, expected, "{sent} {said:?}");
    }
}

#[test]
fn a_reply_that_belongs_to_another_request_is_mixed_up() {
    let found = found(
        &with(PLAIN, [("envelope_id", "\"env_00000000000000ff\"")]),
        (200, "application/json", PLAIN.to_owned()),
    );
    assert_eq!(found, [("ENV-HTTP-23".to_owned(), "mixed_up".to_owned())]);
}

#[test]
fn two_channels_are_compared_where_the_same_input_has_the_same_output() {
    let both = || {
        let mut talk = Talk::new(COMMAND);
        talk.over(HTTP);
        talk.plan()
    };
    let marks = |over_http: bool, text: &str| {
        let more = if over_http { "{\"via\":1}" } else { "{}" };
        (200, "application/json", with(text, [("metadata", more), ("agent_hop_count", "1")]))
    };
    let mut claims = facts("advance");
    claims.features.insert("deterministic".to_owned(), true.into());
    let judgement = judged(both(), claims, marks);
    let clauses: Vec<&str> = judgement.findings.iter().map(|finding| finding.clause.0.as_str()).collect();
    assert_eq!((clauses, judgement.untestable), (vec!["ENV-HTTP-25"], None));
    let judgement = judged(both(), facts("advance"), marks);
    assert!(judgement.findings.is_empty(), "{:?}", judgement.findings);
    assert!(judgement.untestable.is_some_and(|why| why.code == "not_deterministic"));
}

/// A missing reply may only be late if later replies came on other connections. It is lost if its connection was
/// closed.
#[test]
fn a_reply_that_others_overtake_is_late_and_behind_a_closed_connection_it_is_lost() {
    for (status, got, is_of_time) in [
        (0, "no reply, although later messages were answered", true),
        (1, "the connection ended, although later messages were answered", false),
    ] {
        let mut talk = Talk::new(HTTP);
        let sent = with(PLAIN, [("user_id", "\"x\"")]);
        talk.send("ENV-TYPE-05", Payload::text(&sent), Chunking::Whole);
        let answer = |_: bool, text: &str| match text == sent {
            true => (status, "", String::new()),
            false => (200, "application/json", text.to_owned()),
        };
        let findings = judged(talk.plan(), facts("identity"), answer).findings;
        let found: Vec<_> = findings.iter().map(|it| (it.got.as_str(), it.is_of_time())).collect();
        assert_eq!(found, [(got, is_of_time)]);
    }
}

/// Statuses for bytes that are not JSON differ from those for JSON that is not an envelope.
#[test]
fn what_is_no_json_is_no_invalid_envelope() {
    let found = |raw: &str, status: u16| {
        let mut talk = Talk::new(HTTP);
        talk.send("ENV-HTTP-06", Payload::text(raw), Chunking::Whole);
        let own = raw.to_owned();
        let answer = move |_: bool, text: &str| match text == own {
            true => (status, "text/plain", "no".to_owned()),
            false => (200, "application/json", text.to_owned()),
        };
        let findings = judged(talk.plan(), facts("identity"), answer).findings;
        findings.into_iter().map(|finding| finding.clause.0).collect::<Vec<_>>()
    };
    let negative = with(PLAIN, [("iteration", "-1")]);
    for (raw, status, clauses) in [
        ("{\"a\":", 400, vec![]),
        ("{\"a\":", 422, vec!["ENV-HTTP-06"]),
        ("[]", 422, vec![]),
        (&negative, 422, vec![]),
        (&negative, 409, vec!["ENV-HTTP-06"]),
    ] {
        assert_eq!(found(raw, status), clauses, "{raw} {status}");
    }
}

/// Exchanged replies are out of order if the requests were pipelined, and mixed if they were concurrent.
#[test]
fn replies_that_change_places_break_the_clause_of_their_requests() {
    let found = |pipelined: bool| {
        let mut talk = Talk::new(HTTP);
        let ids = ["env_00000000000000a1", "env_00000000000000a2"];
        let texts = ids.map(|id| with(PLAIN, [("envelope_id", format!("\"{id}\"").as_str())]));
        for (at, text) in texts.iter().enumerate() {
            let own = if pipelined { 1 } else { at as u32 + 1 };
            let how = Carriage { pipelined: pipelined && at > 0, ..Carriage::post().on(own) };
            talk.carry("ENV-HTTP-21", Payload::text(text), Chunking::Whole, how, at as u32 * 2);
        }
        let answer = move |_: bool, text: &str| {
            let other = texts.iter().position(|own| own == text).map(|at| texts[1 - at].clone());
            (200, "application/json", other.unwrap_or_else(|| text.to_owned()))
        };
        let findings = judged(talk.plan(), facts("identity"), answer).findings;
        findings.into_iter().map(|finding| finding.clause.0).collect::<Vec<_>>()
    };
    assert_eq!(found(true), ["ENV-HTTP-21"; 2]);
    assert_eq!(found(false), ["ENV-HTTP-23"; 2]);
}
