//! Rate limits: how many requests of a session passed, and whether whoever waited as told passes.

use super::model::rate::{LIMITED, limit, retry_after_ms};
use super::model::{Unit, auth::UNAUTHORIZED, code};
use super::server::Server;
use peerproof_engine::face::Asked;
use peerproof_engine::finding::{Finding, Repair};
use peerproof_engine::json::{self, DecodeLimits, Json};
use peerproof_engine::judge::{Heard, Trace};
use peerproof_engine::transcript::{Kind, Transcript};

/// Longest line in which a refusal is looked for.
const LINE_BYTES_MAX: usize = 1 << 20;
/// What clocks of two processes may differ in, microseconds.
const SLACK_US: u64 = 20_000;

/// Judges a session.
pub fn judge(trace: &Trace<'_, Server>, heard: &Heard<'_, Server>) -> Vec<Finding> {
    let (transcript, session) = (trace.transcript, heard.session);
    let limit = limit(&transcript.facts).filter(|_| transcript.facts.claims("rate_limit"));
    let Some(limit) = limit else { return Vec::new() };
    let answers: Vec<(&Unit, &Json)> =
        heard.answers().map(|(_, unit, answer)| (unit, &answer.message.value)).collect();
    let asked: Vec<&Asked<Server>> = heard.exchanges.iter().map(|(asked, _)| *asked).collect();
    let mut found = Vec::new();
    let passed = answers.iter().filter(|(_, answer)| passed(answer)).count() as u64;
    let (mut begun, mut ended) = (None, 0);
    for event in transcript.of(session) {
        match &event.kind {
            Kind::Sent { .. } => begun = begun.or(Some(event.at_us)),
            Kind::Received { .. } => ended = event.at_us,
            _ => {}
        }
    }
    let elapsed_us = ended.saturating_sub(begun.unwrap_or(0));
    // In less time than a window there are at most two windows of any kind.
    if passed > 2 * limit.requests && elapsed_us < limit.window_s.saturating_mul(1_000_000) {
        let expected = format!("at most {} requests in {} s", limit.requests, limit.window_s);
        let got = format!("{passed} requests passed in {} ms", elapsed_us / 1_000);
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

/// A counting method that ran more often than calls of it were let through.
fn refused_and_run(asked: &[&Asked<Server>], answers: &[(&Unit, &Json)]) -> Option<Finding> {
    let code = |answer: &Json| answer.pointer("/error/code").and_then(Json::as_i64);
    let refused =
        answers.iter().filter(|(unit, answer)| unit.extra.counts.1 > 0 && code(answer) == Some(LIMITED));
    let called = asked.iter().flat_map(|asked| &asked.due.parts).map(|unit| unit.extra.counts.1).sum::<u64>();
    let runs_max = called.saturating_sub(refused.count() as u64);
    let count = |answer: &Json| answer.pointer("/result/count").and_then(Json::as_u64);
    let of_counter = answers.iter().filter(|(unit, _)| unit.extra.counts.1 > 0);
    let (_, answer) = of_counter.max_by_key(|(_, answer)| count(answer))?;
    (count(answer) > Some(runs_max)).then(|| {
        let expected = format!("at most {runs_max} runs: calls that are refused for their rate do not run");
        Finding::new("RPC-RATE-04", "refused_call_ran", expected, answer.to_text()).repaired_by(Repair::Undo)
    })
}

/// Whether a response is that of a request which was let through.
pub fn passed(response: &Json) -> bool {
    let code = response.pointer("/error/code").and_then(Json::as_i64);
    !code.is_some_and(|code| [LIMITED, UNAUTHORIZED, code::REQUEST, code::PARSE].contains(&code))
}

fn bytes_of(transcript: &Transcript, step: usize) -> usize {
    match transcript.plan.steps.get(step).map(|step| &step.act) {
        Some(peerproof_engine::plan::Act::Send { payload, .. }) => {
            payload.len(&peerproof_engine::payload::Vars::new())
        }
        _ => 0,
    }
}

/// Requests that are refused although all who were refused before have waited for as long as they were told, and a
/// tenth longer.
fn after_waits(transcript: &Transcript, session: usize) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut line: Vec<u8> = Vec::new();
    // From when on a request has to pass, and the step that was sent after that while nothing else was under way.
    let (mut free_us, mut waited): (u64, Option<usize>) = (0, None);
    // Lines that were sent and have no answer yet.
    let mut under_way = 0_usize;
    for event in transcript.of(session) {
        match &event.kind {
            Kind::Sent { step, payload } => {
                let one = payload.lines() == 1;
                let alone = one && under_way == 0;
                waited = (alone && free_us > 0 && event.at_us >= free_us + SLACK_US).then_some(*step);
                under_way += payload.lines();
            }
            Kind::Received { bytes } => {
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
                        let expected = "a request passes after the wait that was told and a tenth more";
                        let got = format!("error {LIMITED}, retry after {told_ms} ms");
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

/// The longest wait that a line of refusals tells, milliseconds.
fn told_ms(line: &[u8]) -> Option<u64> {
    memchr::memmem::find(line, b"retry_after_ms")?;
    let value = json::decode(line, &DecodeLimits::default()).ok()?.value;
    match &value {
        Json::Array(items) => items.iter().filter_map(retry_after_ms).max(),
        value => retry_after_ms(value),
    }
}
