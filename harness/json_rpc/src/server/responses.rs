//! Rules about every response, and about several responses together.

use std::collections::BTreeSet;

use super::super::{frames, model, rates, rules, traces};
use super::{ID_TYPES, Server};
use peerproof_engine::contract::face::{Framing, Match, PlacedExpectation, SessionTrace, Trace};
use peerproof_engine::data::finding::{Finding, Repair};
use peerproof_engine::data::payload::shorten;
use peerproof_engine::run::matrix::canonical::canonical;

/// Time by which a quick call must be answered before a slow one, microseconds.
const HELD_UP_US: u64 = 1_000_000;

/// Faults in the form or content of responses.
pub(super) fn judge(trace: &Trace<'_, Server>, heard: &SessionTrace<'_, Server>) -> Vec<Finding> {
    let facts = &trace.transcript.facts;
    let (has_key, is_limited) = (facts.claims("auth"), facts.claims("rate_limit"));
    let mut found = Vec::new();
    // First refusal of a signature. Only one refusal that differs from it is reported.
    let (mut unauthorized, mut has_differed): (Option<String>, bool) = (None, false);
    // A request whose id has a wrong type is to be refused. Its own finding covers an id that came back.
    let mut parts = heard.exchanges.iter().flat_map(|(asked, _)| &asked.due.parts);
    let has_wrong_ids = parts.any(|part| part.clause == ID_TYPES);
    for (asked, unit, answer) in heard.answers() {
        let response = &answer.message.value;
        let mut add = |finding: Finding| found.push(finding.at(asked.step));
        if !unit.extra.old {
            let is_covered = |finding: &Finding| has_wrong_ids && finding.reason == "id_type";
            frames::violations(response).into_iter().filter(|it| !is_covered(it)).for_each(&mut add);
            has_key.then(|| model::auth::violation(response)).flatten().into_iter().for_each(&mut add);
            is_limited.then(|| model::rate::violation(response)).flatten().into_iter().for_each(&mut add);
        }
        if let Some(error) = model::auth::refusal(response).filter(|_| has_key && !unit.extra.old) {
            let leak = unit.extra.sealed.as_ref().and_then(|sealed| model::auth::leak(sealed, response));
            leak.into_iter().for_each(&mut add);
            let text = canonical(error);
            match &unauthorized {
                None => unauthorized = Some(text),
                Some(first) if *first != text && !has_differed => {
                    has_differed = true;
                    let expected = format!("the same error as for another refused message: {first}");
                    let finding = Finding::new("RPC-AUTH-11", "errors_differ", expected, text);
                    add(finding.repaired_by(Repair::set("/error", first.as_str())));
                }
                Some(_) => {}
            }
        }
        let request = asked.line.and_then(|at| heard.lines.get(at)).map_or(&[][..], |line| &line.bytes);
        traces::judge(response, request).into_iter().for_each(&mut add);
        if let Some(allowed) = model::fit(unit, response) {
            rules::of_response(unit, allowed, response).into_iter().for_each(&mut add);
        }
    }
    found
}

/// Finding about a batch in which several elements with the same nonce were accepted.
pub(crate) fn twins(_: &Trace<'_, Server>, heard: &SessionTrace<'_, Server>) -> Vec<Finding> {
    let of_batch = |(asked, came): &(&PlacedExpectation<Server>, Match<'_, Server>)| {
        let mut accepted = BTreeSet::new();
        let second = asked.due.parts.iter().zip(&came.answers).find_map(|(unit, answer)| {
            let nonce = unit.extra.sealed.as_ref()?.twin.as_ref()?;
            let response = &(*answer)?.message.value;
            (rates::passed(response) && !accepted.insert(nonce)).then_some(response)
        })?;
        let got = shorten(&second.to_text(), 200).into_owned();
        let expected = "each nonce is accepted at most once, also within one batch";
        Some(asked.file(Finding::new("RPC-AUTH-03", "nonce_accepted_twice", expected, got)))
    };
    heard.exchanges.iter().filter_map(of_batch).collect()
}

/// Findings about calls answered after a slow call that was sent earlier, if the server claims `concurrent`.
pub(crate) fn held_up(trace: &Trace<'_, Server>, heard: &SessionTrace<'_, Server>) -> Vec<Finding> {
    if !trace.transcript.facts.claims("concurrent") {
        return Vec::new();
    }
    let over_http = heard.framing == Framing::Bodies;
    let asked = |at: usize| heard.exchanges[at].0;
    let place = |at: usize| {
        let answer = heard.exchanges[at].1.answers.first().copied().flatten()?;
        Some(if over_http { heard.carriages[asked(at).line?].place } else { answer.frame })
    };
    // Calls on one connection are processed one after another.
    let connection = |at: usize| {
        let step = trace.transcript.plan.steps.get(asked(at).step);
        step.and_then(|step| step.http.as_ref()).map_or(0, |how| how.connection)
    };
    let is_single = |at: &usize| !asked(*at).due.together && asked(*at).due.parts.len() == 1;
    let mut found = Vec::new();
    let count = heard.exchanges.len();
    for slow in (0..count).filter(is_single) {
        let Some(work) = asked(slow).due.parts[0].extra.work else { continue };
        let until_us = asked(slow).at_us + work.busy_ms.min(work.timeout_ms).saturating_mul(1_000);
        let Some(answered) = place(slow) else { continue };
        let held = (slow + 1..count).filter(is_single).find(|at| {
            let quick = asked(*at);
            quick.at_us.saturating_add(HELD_UP_US) <= until_us
                && (!over_http || connection(slow) != connection(*at))
                && quick.due.parts[0].extra.work.is_none()
                && place(*at).is_some_and(|place| place > answered)
        });
        if let Some(at) = held {
            let expected = "a reply before the reply to an earlier, slow call";
            let finding =
                Finding::new("RPC-CONC-01", "held_up", expected, "a reply after the reply to the slow call");
            found.push(finding.repaired_by(Repair::Sooner).at(asked(at).step));
        }
    }
    found
}
