//! Tests of the adapter's judge with a correct server and with one that answers 200 and stores nothing.

use peerproof_engine::data::clause::Side;
use peerproof_engine::data::finding::Judgement;
use peerproof_engine::data::payload::Vars;
use peerproof_engine::data::transcript::{Bytes, Event, EventKind, FoundEntry, FoundKind};

use super::*;

/// Clauses broken by an adapter. `reply` gives for each request its status, and true if the job is stored.
fn broken(check: &str, reply: impl Fn(usize) -> (u16, bool)) -> Vec<String> {
    let judged = judged(check, &[], reply);
    let mut clauses: Vec<String> = judged.findings.into_iter().map(|it| it.clause.0).collect();
    clauses.dedup();
    clauses
}

/// Judgement of an adapter that makes these choices.
fn judged(check: &str, choices: &[(&str, &str)], reply: impl Fn(usize) -> (u16, bool)) -> Judgement {
    let mut facts = Facts::new(Side::Provider);
    facts.choices = choices.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    facts.commands.insert(HTTP.to_owned());
    let check = checks().into_iter().find(|it| it.id.ends_with(check)).unwrap();
    let plan = (check.planner)(&facts, &mut Rng::new(1)).unwrap();
    let mut events = Vec::new();
    let mut found = Vec::new();
    let mut count = 0;
    for (step, spec) in plan.steps.iter().enumerate() {
        let mut add = |kind| events.push(Event { at_us: events.len() as u64, session: spec.session, kind });
        match &spec.act {
            Act::Send { payload, .. } => {
                count += 1;
                let (status, stores) = reply(count);
                let bytes = payload.expand(&Vars::new()).unwrap();
                let name = format!("j{count}.json");
                add(EventKind::Sent { step, payload: payload.clone() });
                if stores {
                    let path = Bytes(format!("inbox/{name}").into_bytes());
                    let (total_bytes, bytes) = (bytes.len() as u64, Some(Bytes(bytes)));
                    found.push(FoundEntry {
                        path,
                        kind: FoundKind::File,
                        inode: 1,
                        mode: 0o644,
                        total_bytes,
                        bytes,
                    });
                }
                let is_cut = spec.http.as_ref().is_some_and(|how| how.killing);
                let body = if is_cut { "{".to_owned() } else { format!("{{\"queued\":{name:?}}}") };
                add(EventKind::HttpReply {
                    step,
                    of_step: 0,
                    connection: 0,
                    reused: false,
                    status,
                    content_type: None,
                    head: Bytes::default(),
                    body_bytes: body.len() as u64,
                    body: None,
                    keeps_open: true,
                    took_us: 1,
                });
                add(EventKind::Received { bytes: Bytes(format!("{body}\n").into_bytes()) });
            }
            Act::Look { label, .. } => {
                let path = Bytes(b"queue".to_vec());
                add(EventKind::Looked { label: label.clone(), path, found: found.clone(), cut: false });
            }
            _ => {}
        }
    }
    let transcript = Transcript {
        boundary: "run_queue".to_owned(),
        check: check.id,
        facts: facts.into(),
        plan: plan.into(),
        timeout_scale: 1.0,
        events,
    };
    judge(&transcript)
}

/// Allowed replies to a verbatim request.
fn stand(text: &str) -> request::AllowedReplies {
    request::Request::of(&Carriage::post().framing(BodyFraming::Verbatim), text.as_bytes()).stand(None)
}

#[test]
fn a_length_over_the_limit_is_no_malformed_job() {
    for (length, careful) in [("9".repeat(30), false), ("10485761".to_owned(), true)] {
        let stand =
            stand(&format!("POST {PATH} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{{}}"));
        assert_eq!(stand.clause, "QUE-HTTP-11");
        assert!(stand.may_close && stand.refuses(400) && !stand.refuses(500));
        assert_eq!(stand.careful.is_some(), careful);
    }
    let long = stand(&format!("{} {PATH} HTTP/1.1\r\nHost: a\r\n\r\n", "P".repeat(100)));
    assert_eq!((long.clause, long.may_close), ("QUE-HTTP-20", true));
}

#[test]
fn what_is_open_about_a_request_may_come_to_anything() {
    let job = "{\"goal_id\":\"g\"}";
    let length = format!("Content-Length: {}", job.len());
    let open = [
        format!("POST {PATH} HTTP/1.1\r\n{length}\r\n\r\n{job}"),
        format!("POST {PATH} HTTP/1.1\nHost: a\n{length}\n\n{job}"),
        format!("POST {PATH} HTTP/1.1\r\nHost: a\r\nContent-Length : {}\r\n\r\n{job}", job.len()),
        format!(
            "POST {PATH} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\n{job}\n0\n\n",
            job.len()
        ),
    ];
    for text in open {
        let stand = stand(&text);
        assert!(stand.allows(202) && stand.allows(400) && stand.may_close, "{text}: {stand:?}");
    }
    let right = stand(&format!(
        "POST {PATH} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n{length}\r\n\r\n{job}"
    ));
    assert!(right.is_put() && !right.allows(400));
}

#[test]
fn what_is_large_or_waits_may_be_refused_unread_for_want_of_a_token() {
    let token = Token::new(&Facts::new(Side::Provider), "T");
    let headers = vec!["Expect: 100-continue".to_owned()];
    let waits = Carriage { headers, ..Carriage::post() };
    for (bytes, how, may_close, codes) in [
        (10, Carriage::post(), false, [true, false]),
        (100_000, Carriage::post(), true, [true, false]),
        (10, waits, false, [true, true]),
    ] {
        let job = format!("{{\"goal_id\":\"{}\"}}", "g".repeat(bytes));
        let stand = request::Request::of(&how, job.as_bytes()).stand(Some(&token));
        assert_eq!((stand.may_close, [401, 417].map(|code| stand.allows(code))), (may_close, codes));
        assert!(!stand.allows(202));
    }
}

#[test]
fn the_second_of_one_request_id_may_be_a_conflict() {
    let right = |count: usize| if count == 3 { (409, false) } else { (202, true) };
    let judged = judged("put/same-request-id", &[], right);
    assert_eq!(judged.findings, []);
    assert_eq!(judged.choice.unwrap().value, "one");
    let first = |count: usize| if count == 2 { (409, false) } else { (202, true) };
    assert_eq!(broken("put/same-request-id", first), ["QUE-ENQ-12"]);
}

#[test]
fn a_job_is_there_from_the_first_line_of_its_reply_on() {
    // A canary precedes each job. Only a part of each reply arrives, which names no file.
    assert_eq!(broken("put/killed-behind-the-reply", |_| (202, true)), [""; 0]);
    for lost in [3, 5, 7] {
        let stores = |count: usize| (202, count != lost);
        assert_eq!(broken("put/killed-behind-the-reply", stores), ["QUE-HTTP-03"], "{lost}");
    }
}

#[test]
fn who_takes_no_chunks_has_no_choice_beside_a_length() {
    // A canary and a verbatim job come first.
    let refuses =
        |count: usize| if count < 3 || count.is_multiple_of(2) { (202, true) } else { (501, false) };
    let choices = [("chunked", "refuse"), ("length_and_chunked", "accept")];
    assert!(judged("length/beside-chunks", &choices, refuses).choice.is_none());
    assert_eq!(judged("length/beside-chunks", &choices[1..], refuses).choice.unwrap().value, "refuse");
}

#[test]
fn who_says_200_to_all_and_writes_nothing_is_found_out() {
    for check in ["put/kinds-of-jobs", "malformed/empty", "path/other"] {
        let broken = broken(check, |_| (200, false));
        assert!(broken.contains(&"QUE-HTTP-03".to_owned()), "{check}: {broken:?}");
    }
    assert!(broken("malformed/empty", |_| (200, false)).contains(&"QUE-HTTP-09".to_owned()));
}

#[test]
fn who_enqueues_what_is_malformed_breaks_its_clause_and_a_right_one_none() {
    // The first, third and fifth request are canaries; the others are malformed.
    let right = |count: usize| if count % 2 == 1 { (202, true) } else { (400, false) };
    assert_eq!(broken("malformed/empty", right), [""; 0]);
    let stores = |count: usize| if count % 2 == 1 { (202, true) } else { (400, true) };
    assert_eq!(broken("malformed/empty", stores), ["QUE-HTTP-07"]);
    let says = |count: usize| if count % 2 == 1 { (202, true) } else { (409, false) };
    assert_eq!(broken("malformed/empty", says), ["QUE-HTTP-08"]);
}

#[test]
fn an_adapter_that_was_told_of_a_token_elsewhere_is_not_blamed() {
    for check in
        ["put/kinds-of-jobs", "malformed/goal-id", "path/other", "stalled/four", "token/none-configured"]
    {
        let judged = judged(check, &[], |_| (401, false));
        assert!(judged.findings.is_empty() && judged.choice.is_none(), "{check} {:?}", judged.findings);
        assert!(judged.untestable.is_some_and(|why| why.detail.contains("token = {")), "{check}");
    }
    assert!(
        !broken("token/none-configured", |count| if count == 1 { (202, true) } else { (401, false) })
            .is_empty()
    );
}

#[test]
fn fractions_are_compared_as_doubles() {
    let stored =
        |sent: &str, stored: &str| inbox::is_stored(&sent.parse().unwrap(), &stored.parse().unwrap());
    assert!(stored("{\"a\":[0.1,1e-7]}", "{\"a\":[0.10000000000000001,0.0000001],\"_at\":1}"));
    assert!(!stored("{\"a\":0.1234567890123456}", "{\"a\":0.123456789012346}"));
    assert!(!stored("{\"a\":9007199254740991}", "{\"a\":9007199254740992}"));
}
