//! A server that says 200 to all and writes nothing is found out, and a right one is not.

use peerproof_engine::clause::Side;
use peerproof_engine::payload::Vars;
use peerproof_engine::transcript::{Bytes, Event, Found, FoundKind, Kind};

use super::*;

/// Clauses that are broken where each request is answered by what `reply` says of its number, and what it stores is there.
fn broken(check: &str, reply: impl Fn(usize) -> (u16, bool)) -> Vec<String> {
    let mut facts = Facts::new(Side::Provider);
    facts.commands.insert(HTTP.to_owned());
    let check = checks().into_iter().find(|it| it.id.ends_with(check)).unwrap();
    let plan = (check.planner)(&facts, &mut Rng::new(1)).unwrap();
    let mut events = Vec::new();
    let mut add = |kind| events.push(Event { at_us: events.len() as u64, session: 0, kind });
    let mut found = Vec::new();
    let mut count = 0;
    for (step, spec) in plan.steps.iter().enumerate() {
        match &spec.act {
            Act::Send { payload, .. } => {
                count += 1;
                let (status, stores) = reply(count);
                let bytes = payload.expand(&Vars::new()).unwrap();
                let name = format!("j{count}.json");
                add(Kind::Sent { step, payload: payload.clone() });
                if stores {
                    let path = Bytes(format!("inbox/{name}").into_bytes());
                    let (total_bytes, bytes) = (bytes.len() as u64, Some(Bytes(bytes)));
                    found.push(Found {
                        path,
                        kind: FoundKind::File,
                        inode: 1,
                        mode: 0o644,
                        total_bytes,
                        bytes,
                    });
                }
                let body = format!("{{\"queued\":{name:?}}}");
                add(Kind::HttpReply {
                    step,
                    of_step: 0,
                    connection: 0,
                    reused: false,
                    status,
                    content_type: None,
                    body_bytes: body.len() as u64,
                    body: None,
                    keeps_open: true,
                    took_us: 1,
                });
                add(Kind::Received { bytes: Bytes(format!("{body}\n").into_bytes()) });
            }
            Act::Look { label, .. } => {
                let path = Bytes(b"queue".to_vec());
                add(Kind::Looked { label: label.clone(), path, found: found.clone(), cut: false });
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
    let mut clauses: Vec<String> = judge(&transcript).findings.into_iter().map(|it| it.clause.0).collect();
    clauses.dedup();
    clauses
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
    // The first, third and fifth are canaries; the others are malformed.
    let right = |count: usize| if count % 2 == 1 { (202, true) } else { (400, false) };
    assert_eq!(broken("malformed/empty", right), [""; 0]);
    let stores = |count: usize| if count % 2 == 1 { (202, true) } else { (400, true) };
    assert_eq!(broken("malformed/empty", stores), ["QUE-HTTP-07"]);
    let says = |count: usize| if count % 2 == 1 { (202, true) } else { (409, false) };
    assert_eq!(broken("malformed/empty", says), ["QUE-HTTP-08"]);
}
