//! Rules about rate limits: number of requests that passed, and requests after the demanded wait.

use std::collections::BTreeMap;

use super::model::rate::{LIMITED, Limit, limit, retry_after_ms};
use super::model::{RequestPart, Server, auth::UNAUTHORIZED, code};
use peerproof_engine::contract::face::{PlacedExpectation, SessionTrace, Trace};
use peerproof_engine::data::finding::{Finding, Repair};
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::transcript::{EventKind, Transcript};

/// Longest line that is searched for a refusal, bytes.
const LINE_BYTES_MAX: usize = 1 << 20;
/// Tolerance for clocks of two processes, microseconds.
const SLACK_US: u64 = 20_000;

/// Judges the rate limit of a session.
pub(crate) fn judge(trace: &Trace<'_, Server>, heard: &SessionTrace<'_, Server>) -> Vec<Finding> {
    let (transcript, session) = (trace.transcript, heard.session);
    let limit = limit(&transcript.facts).filter(|_| transcript.facts.claims("rate_limit"));
    let Some(limit) = limit else { return Vec::new() };
    let answers: Vec<(&RequestPart, &Json)> =
        heard.answers().map(|(_, unit, answer)| (unit, &answer.message.value)).collect();
    let asked: Vec<&PlacedExpectation<Server>> = heard.exchanges.iter().map(|(asked, _)| *asked).collect();
    let mut found = Vec::new();
    let passed = answers.iter().filter(|(_, answer)| passed(answer)).count() as u64;
    let (mut begun, mut ended) = (None, 0);
    for event in transcript.of(session) {
        match &event.kind {
            EventKind::Sent { .. } => begun = begun.or(Some(event.at_us)),
            EventKind::Received { .. } => ended = event.at_us,
            _ => {}
        }
    }
    let elapsed_us = ended.saturating_sub(begun.unwrap_or(0));
    // A time shorter than a window touches at most two windows of any kind.
    let got = if passed > 2 * limit.requests && elapsed_us < limit.window_us() {
        Some(format!("{passed} requests passed in {} ms", elapsed_us / 1_000))
    } else {
        twice_too_many(trace, heard, limit)
            .map(|passed| format!("{passed} requests passed at once, and also too many in another process"))
    };
    if let Some(got) = got {
        let expected = format!("at most {} requests in {} s", limit.requests, limit.window_s);
        let most = asked.iter().max_by_key(|asked| bytes_of(transcript, asked.step));
        let aim = most.and_then(|asked| asked.aim.as_ref()).map(|aim| aim.clause.0.as_str());
        let clause = aim.filter(|clause| clause.starts_with("RPC-RATE-")).unwrap_or("RPC-RATE-01");
        let finding = Finding::new(clause, "not_limited", expected, got)
            .repaired_by(Repair::set("/error/code", LIMITED.to_string()));
        found.push(match most {
            Some(asked) => finding.at(asked.step),
            None => finding,
        });
    }
    found.extend(after_waits(transcript, session));
    found.extend(refused_and_run(&asked, &answers));
    found
}

/// Requests of one step, if more passed than the limit allows.
struct Burst {
    passed: u64,
    begun_us: u64,
    /// Time of the last answer to a request that passed.
    ended_us: u64,
}

/// First burst of a session, if it was over before a steadily filling bucket would let another request pass.
fn burst(heard: &SessionTrace<'_, Server>, limit: Limit) -> Option<Burst> {
    let mut bursts: BTreeMap<usize, Burst> = BTreeMap::new();
    for (asked, _, answer) in heard.answers().filter(|(_, _, answer)| passed(&answer.message.value)) {
        let ended_us = heard.output.get(answer.frame)?.at_us;
        let fresh = Burst { passed: 0, begun_us: asked.at_us, ended_us };
        let burst = bursts.entry(asked.step).or_insert(fresh);
        burst.passed += 1;
        burst.begun_us = burst.begun_us.min(asked.at_us);
        burst.ended_us = burst.ended_us.max(ended_us);
    }
    let is_certain = |burst: &Burst| {
        let elapsed_us = burst.ended_us.saturating_sub(burst.begun_us);
        burst.passed > limit.requests && elapsed_us.saturating_mul(limit.requests) < limit.window_us()
    };
    bursts.into_values().find(is_certain)
}

/// Number of requests that passed at once, if too many did in an earlier process as well. One burst may span the
/// end of a window. Two successive bursts less than a window apart cannot both do so.
fn twice_too_many(trace: &Trace<'_, Server>, heard: &SessionTrace<'_, Server>, limit: Limit) -> Option<u64> {
    let last = burst(heard, limit)?;
    let is_close = |first: &Burst| {
        first.ended_us <= last.begun_us && last.ended_us + SLACK_US < first.begun_us + limit.window_us()
    };
    let mut earlier = trace.sessions.iter().filter(|other| other.session < heard.session);
    earlier.any(|other| burst(other, limit).is_some_and(|first| is_close(&first))).then_some(last.passed)
}

/// Finding about a counting method that ran more often than its calls passed.
fn refused_and_run(
    asked: &[&PlacedExpectation<Server>],
    answers: &[(&RequestPart, &Json)],
) -> Option<Finding> {
    let code = |answer: &Json| answer.pointer("/error/code").and_then(Json::as_i64);
    let refused =
        answers.iter().filter(|(unit, answer)| unit.extra.counts.1 > 0 && code(answer) == Some(LIMITED));
    let called = asked.iter().flat_map(|asked| &asked.due.parts).map(|unit| unit.extra.counts.1).sum::<u64>();
    let runs_max = called.saturating_sub(refused.count() as u64);
    let count = |answer: &Json| answer.pointer("/result/count").and_then(Json::as_u64);
    let of_counter = answers.iter().filter(|(unit, _)| unit.extra.counts.1 > 0);
    let (_, answer) = of_counter.max_by_key(|(_, answer)| count(answer))?;
    (count(answer) > Some(runs_max)).then(|| {
        let expected = format!("at most {runs_max} runs, because calls beyond the rate limit do not run");
        Finding::new("RPC-RATE-04", "refused_call_ran", expected, answer.to_text()).repaired_by(Repair::Undo)
    })
}

/// True for a response to a request that passed the rate limit.
pub(crate) fn passed(response: &Json) -> bool {
    let code = response.pointer("/error/code").and_then(Json::as_i64);
    !code.is_some_and(|code| [LIMITED, UNAUTHORIZED, code::REQUEST, code::PARSE].contains(&code))
}

fn bytes_of(transcript: &Transcript, step: usize) -> usize {
    match transcript.plan.steps.get(step).map(|step| &step.act) {
        Some(peerproof_engine::data::plan::Act::Send { payload, .. }) => {
            payload.len(&peerproof_engine::data::payload::Vars::new())
        }
        _ => 0,
    }
}

/// Findings about requests that are refused although no earlier refusal asked for a longer wait. The wait is a
/// tenth longer than demanded.
fn after_waits(transcript: &Transcript, session: usize) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut line: Vec<u8> = Vec::new();
    // Time from which a request must pass, and the step that was sent after it while no other request was pending.
    let (mut free_us, mut waited): (u64, Option<usize>) = (0, None);
    // Number of lines without an answer.
    let mut under_way = 0_usize;
    for event in transcript.of(session) {
        match &event.kind {
            EventKind::Sent { step, payload } => {
                let one = payload.lines() == 1;
                let alone = one && under_way == 0;
                waited = (alone && free_us > 0 && event.at_us >= free_us + SLACK_US).then_some(*step);
                under_way += payload.lines();
            }
            EventKind::Received { bytes } => {
                for byte in &bytes.0 {
                    if *byte != b'\n' {
                        if line.len() < LINE_BYTES_MAX {
                            line.push(*byte);
                        }
                        continue;
                    }
                    under_way = under_way.saturating_sub(1);
                    let told_ms = told_ms(&line);
                    line.clear();
                    let Some(told_ms) = told_ms else { continue };
                    if let Some(step) = waited.take() {
                        let expected = "a request passes after `retry_after_ms` and a tenth more";
                        let got = format!("error {LIMITED} with `retry_after_ms` {told_ms}");
                        found.push(Finding::new("RPC-RATE-02", "refused_after_wait", expected, got).at(step));
                    }
                    free_us = free_us.max(event.at_us + told_ms.saturating_mul(1_100));
                }
            }
            _ => {}
        }
    }
    found
}

/// Longest demanded wait in a line of refusals, ms.
fn told_ms(line: &[u8]) -> Option<u64> {
    memchr::memmem::find(line, b"retry_after_ms")?;
    let value = json::decode(line, &DecodeLimits::default()).ok()?.value;
    match &value {
        Json::Array(items) => items.iter().filter_map(retry_after_ms).max(),
        value => retry_after_ms(value),
    }
}
