//! What holds of every boundary, and of the engine with a boundary that is not made for it.

mod admitted;
mod configuration;

use std::sync::Arc;

use serde_json::Value;

use super::*;
use peerproof_engine::boundary::judge;
use peerproof_engine::clause::Side;
use peerproof_engine::finding::{CANARY_FAILED, Finding};
use peerproof_engine::payload::Payload;
use peerproof_engine::plan::Step;
use peerproof_engine::rng::Rng;
use peerproof_engine::transcript::{Bytes, Event, Kind, Transcript};

/// Every string in `value` that is no name of a member, and no placeholder, replaced.
fn replace_strings(value: &mut Value, with: &str) {
    match value {
        Value::String(text) if !text.contains('{') && !text.starts_with("SID") => with.clone_into(text),
        Value::Array(values) => values.iter_mut().for_each(|value| replace_strings(value, with)),
        Value::Object(members) => members.values_mut().for_each(|value| replace_strings(value, with)),
        _ => {}
    }
}

#[test]
fn what_is_wrong_with_the_answer_to_a_canary_is_told_once() {
    let boundary = find("toolhost").unwrap();
    let facts = boundary.usual_facts(Side::Provider);
    let is_canary = |step: &Step| step.expect["reason"] == CANARY_FAILED;
    let serve = boundary.checks().iter().filter(|check| check.command == "serve");
    let mut plans = serve.filter_map(|check| (check.planner)(&facts, &mut Rng::new(1)).ok());
    let plan = plans.find(|plan| plan.steps.iter().any(is_canary)).unwrap();
    let canary = plan.steps.iter().position(is_canary).unwrap();
    let reply = |text: &str| Kind::Received { bytes: Bytes(text.into()) };
    let judged = |text: &str| {
        let sent = Kind::Sent { step: canary, payload: Payload::text("{}\n") };
        let events = [sent, reply(text)].map(|kind| Event { at_us: 0, session: 0, kind });
        let transcript = Transcript {
            boundary: "toolhost".to_owned(),
            check: "by-hand".to_owned(),
            facts: Arc::new(facts.clone()),
            plan: Arc::new(plan.clone()),
            timeout_scale: 1.0,
            events: events.to_vec(),
        };
        let of_canary = |finding: &Finding| finding.step == Some(canary);
        let findings = judge(boundary, &transcript).findings;
        findings.into_iter().filter(of_canary).map(|finding| finding.reason).collect::<Vec<_>>()
    };
    assert_eq!(judged("{\"ok\":false,\"error\":\"x\"}\n"), [CANARY_FAILED]);
    let told = judged("{\"ok\":\"true\",\"output\":{}}\n");
    assert!(!told.is_empty() && !told.iter().any(|reason| reason == CANARY_FAILED), "{told:?}");
}

#[test]
fn plans_are_made_whatever_peers_call_their_things() {
    let mut planned = 0;
    for boundary in all() {
        for side in [Side::Provider, Side::Consumer] {
            // Wherever a text is cut, one of these has no end of a character there.
            for shift in 0..4 {
                let name = format!("{}{}", "a".repeat(shift), "\u{1F600}".repeat(12));
                let mut facts = boundary.usual_facts(side);
                facts.roles.values_mut().for_each(|role| replace_strings(role, &name));
                for check in boundary.checks() {
                    planned += usize::from((check.planner)(&facts, &mut Rng::new(1)).is_ok());
                }
            }
        }
    }
    assert!(planned > 5_000, "{planned}");
}

#[test]
fn the_reference_plays_every_command_of_a_boundary() {
    for boundary in all() {
        for (side, names) in boundary.commands() {
            let references = played(boundary).references();
            let of_side = references.iter().filter(|reference| reference.side == side);
            let mut known: Vec<&str> = Vec::new();
            for (name, _) in of_side.flat_map(|reference| &reference.commands) {
                if !known.contains(name) {
                    known.push(name);
                }
            }
            assert_eq!(known, names, "{} {}", boundary.name(), side.word());
        }
    }
}
