//! Tests that hold for every boundary, and for the engine with a foreign boundary.

mod admitted;
mod configuration;

use std::sync::Arc;

use serde_json::Value;

use super::*;
use peerproof_engine::contract::boundary::judge;
use peerproof_engine::data::carriage::HTTP;
use peerproof_engine::data::check::Check;
use peerproof_engine::data::clause::Side;
use peerproof_engine::data::filter::Filter;
use peerproof_engine::data::finding::{CANARY_FAILED, Finding};
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Act, Session, Step};
use peerproof_engine::data::rng::Rng;
use peerproof_engine::data::rung::{Rung, Rungs};
use peerproof_engine::data::transcript::{Bytes, Event, EventKind, Exit, Transcript};
use peerproof_engine::drive::parallel;

/// Replaces every string in `value` that is neither a member name nor a placeholder.
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
    let facts = boundary.full_facts(Side::Provider);
    let is_canary = |step: &Step| step.expect["reason"] == CANARY_FAILED;
    let serve = boundary.checks().iter().filter(|check| check.command == "serve" && !check.first_canary);
    let mut plans = serve.filter_map(|check| (check.planner)(&facts, &mut Rng::new(1)).ok());
    let plan = plans.find(|plan| plan.steps.iter().any(is_canary)).unwrap();
    let canary = plan.steps.iter().position(is_canary).unwrap();
    let reply = |text: &str| EventKind::Received { bytes: Bytes(text.into()) };
    let judged = |text: &str| {
        let sent = EventKind::Sent { step: canary, payload: Payload::text("{}\n") };
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
    let sides =
        all().into_iter().flat_map(|boundary| [Side::Provider, Side::Consumer].map(|side| (boundary, side)));
    let sides: Vec<_> = sides.collect();
    let planned = parallel::each(2, sides, |(boundary, side)| {
        let mut planned = 0;
        // Wherever a text is cut, one of these has no character boundary there.
        for shift in 0..4 {
            let name = format!("{}{}", "a".repeat(shift), "\u{1F600}".repeat(12));
            let mut facts = boundary.full_facts(side);
            facts.roles.values_mut().for_each(|role| replace_strings(role, &name));
            for check in boundary.checks() {
                planned += usize::from((check.planner)(&facts, &mut Rng::new(1)).is_ok());
            }
        }
        planned
    });
    let planned: usize = planned.into_iter().sum();
    assert!(planned > 5_000, "{planned}");
}

#[test]
fn the_reference_plays_every_command_of_a_boundary() {
    for boundary in all() {
        for (side, names) in boundary.description().commands {
            let references = played(boundary).references();
            let of_side = references.iter().filter(|reference| reference.side == *side);
            let mut known: Vec<&str> = Vec::new();
            for (name, _) in of_side.flat_map(|reference| &reference.commands) {
                if !known.contains(name) {
                    known.push(name);
                }
            }
            assert_eq!(known, *names, "{} {}", boundary.name(), side.word());
        }
    }
}

/// Clause and reason of the findings if a peer dies at the first step of a check about `should`.
fn died(name: &str, command: &str, should: &str) -> Vec<(String, String)> {
    let boundary = find(name).unwrap();
    let is_about = |step: &&Step| step.expect["clause"] == should && matches!(step.act, Act::Send { .. });
    let of_command = boundary.description().commands.iter().find(|(_, names)| names.contains(&command));
    let facts = boundary.full_facts(of_command.unwrap().0);
    let checks = boundary.checks().iter().filter(|check| check.command == command);
    let mut plans = checks.filter_map(|check| (check.planner)(&facts, &mut Rng::new(1)).ok());
    let (step, mut plan) =
        plans.find_map(|plan| Some((plan.steps.iter().find(is_about)?.clone(), plan))).unwrap();
    let Act::Send { payload, .. } = step.act.clone() else { panic!("nothing is sent") };
    plan.sessions = vec![Session { command: command.to_owned(), ..Session::default() }];
    plan.steps = vec![Step { session: 0, ..step }];
    plan.expect = Value::Null;
    let ended = match command {
        HTTP => EventKind::HttpFailed {
            step: 0,
            of_step: 0,
            connection: 0,
            reason: "the connection ended".to_owned(),
            wholly_sent: true,
            will_retry: false,
        },
        _ => EventKind::StdinClosed,
    };
    let kinds = [EventKind::Sent { step: 0, payload }, ended, EventKind::Exited { exit: Exit::Signal(11) }];
    let transcript = Transcript {
        boundary: name.to_owned(),
        check: "by-hand".to_owned(),
        facts: Arc::new(facts),
        plan: Arc::new(plan),
        timeout_scale: 1.0,
        events: kinds.map(|kind| Event { at_us: 0, session: 0, kind }).into(),
    };
    let findings = judge(boundary, &transcript).findings;
    findings.into_iter().map(|finding| (finding.clause.0, finding.reason)).collect()
}

#[test]
fn a_peer_that_dies_of_what_a_should_asks_for_breaks_the_must_that_it_lives_on() {
    for (name, command, should, must) in [
        ("toolhost", "serve", "TH-FRAME-06", "TH-FRAME-01"),
        ("json_rpc", "command", "RPC-FRAME-08", "RPC-ERR-01"),
        ("policy_driver", "selector", "PD-SEL-12", "PD-SEL-01"),
        ("envelope", HTTP, "ENV-HTTP-10", "ENV-HTTP-05"),
        ("envelope", "command", "ENV-TIME-05", "ENV-FRAME-06"),
        ("python_tool", HTTP, "PT-SRV-24", "PT-SRV-25"),
        ("run_queue", HTTP, "QUE-HTTP-17", "QUE-HTTP-31"),
        // The contract lets a selector end after a line that is too long.
        ("policy_driver", "selector", "PD-SEL-08", "PD-SEL-08"),
    ] {
        assert_eq!(died(name, command, should), [(must.to_owned(), "crashed".to_owned())], "{should}");
    }
}

#[test]
fn every_row_of_the_rungs_fits_a_check() {
    for boundary in all() {
        let checks: Vec<&Check> = boundary.checks().iter().collect();
        let patterns: Vec<String> = boundary
            .description()
            .rungs
            .iter()
            .map(|(pattern, _)| format!("{}/{pattern}", boundary.name()))
            .collect();
        assert!(!patterns.is_empty(), "{}", boundary.name());
        Filter::new(&patterns).unwrap().refuse_useless(&checks).unwrap();
        let rungs = Rungs::new(boundary.name(), boundary.description().rungs);
        for check in boundary.checks().iter().filter(|check| check.first_canary) {
            assert_eq!(rungs.of_check(&check.id), Rung::Ordinary, "{}", check.id);
        }
    }
}
