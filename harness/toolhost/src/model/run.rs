//! Run mode: one request, one reply.

use super::super::align::Frame;
use super::super::expect::{Allowed, Expect, Match, Outcome};
use super::super::oracle::Expected;
use super::asked;
use super::pins::Pins;
use super::request::{self, Reading, Request};
use super::slots::{self, Slots};
use super::tools;
use super::world::Judged;
use peerproof_engine::data::finding::Finding;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::lines;
use peerproof_engine::data::transcript::Transcript;

/// Allowed replies to the only request of a run.
pub(super) fn expected(transcript: &Transcript, session: usize, frames: &[Frame], pins: &Pins) -> Expected {
    let mut expected = Expected { asked: Vec::new(), findings: Vec::new() };
    let Some(line) = lines::of_run(transcript, session) else { return expected };
    let spec = &transcript.plan.sessions[session];
    let aid = spec.placeholders.get("aid").map(String::as_str).unwrap_or_default();
    let enforced = pins.lease && spec.env.contains_key("MACHINA_LEASE_ENFORCE");
    let (expect, after) = match request::read(&line, pins, false) {
        Reading::Malformed(clause) => (Expect::refused(clause), None),
        Reading::Blank { .. } => (Expect::refused("TH-RUN-01"), None),
        Reading::TooLong => (Expect::refused("TH-LIMIT-02"), None),
        // The text of a variable in a run is unknown.
        Reading::Request(request) if line.filled.is_empty() => of_request(&request, aid, pins, enforced),
        _ => (Expect::new("TH-RUN-04", Allowed::of(Outcome::Any)), None),
    };
    let reply = frames.first().and_then(|frame| frame.value.as_ref().ok());
    if let (Some(after), Some(reply)) = (after, reply)
        && let Some(finding) = state_fault(&after, reply)
    {
        expected.findings.push(finding.at(line.step));
    }
    expected.asked.push(asked(transcript, &line, 0, Judged::of_run(expect.once("TH-RUN-04"))));
    expected
}

/// Allowed outcomes, and the slots after a success if they are certain.
fn of_request(request: &Request, aid: &str, pins: &Pins, enforced: bool) -> (Expect, Option<Slots>) {
    let anything = || Expect::new("TH-RUN-04", Allowed::of(Outcome::Any)).or(Allowed::of(Outcome::Dies));
    let Some(tool) = pins.tool(aid) else {
        let unknown = pins.is_unknown(aid);
        return (if unknown { Expect::refused("TH-REQ-03") } else { anything() }, None);
    };
    // Leases in run mode are an open choice.
    if enforced && tool.tier != Some(0) {
        return (anything(), None);
    }
    let mut may_refuse = request.may_refuse.or(request.input.may_refuse).is_some();
    let doubtful = request.duplicates || request.surrogates;
    let seen = match &request.state {
        None => slots::empty(),
        Some(state) => match slots::read(state, doubtful, pins) {
            Err(clause) => return (Expect::refused(clause), None),
            Ok(change) => {
                // A delta applies to the empty state, or is refused.
                may_refuse |= change.may_refuse.is_some()
                    || state.get("delta").is_some_and(|d| d.as_bool() != Some(false));
                change.apply(&slots::empty())
            }
        },
    };
    let mut run = tools::run(tool, &request.input, &seen, pins);
    run.fails |= request.bytes > tools::CERTAIN_BYTES_MAX;
    let mut expect = Expect::ok(run.clause);
    expect.allowed.clear();
    if run.ok {
        let mut success = Allowed::of(Outcome::Ok);
        success.output.clone_from(&run.output);
        success.output_members.clone_from(&run.parts);
        if run.counts && !run.refuses && !enforced {
            success = success.output_member("/count", Match::Equals("1".to_owned()));
        }
        expect = expect.or(success);
    }
    if run.dies {
        expect = expect.or(Allowed::of(Outcome::Dies));
    }
    if may_refuse || run.refuses {
        expect = expect.or(Allowed::of(Outcome::Refused));
    } else if run.fails {
        expect = expect.or(Allowed::of(Outcome::ToolError));
    }
    let mut after = seen;
    if let Some((slot, written)) = run.writes {
        after[slot] = written;
    }
    let certain = run.ok && !run.blurs && pins.ds_state && slots::known(&after);
    (expect, certain.then_some(after))
}

/// Fault in the full state of a success (TH-STATE-20).
fn state_fault(after: &Slots, reply: &Json) -> Option<Finding> {
    if reply.get("ok").and_then(Json::as_bool) != Some(true) {
        return None;
    }
    let state = reply.get("ds_state")?;
    // A delta in place of a full state has its own clause.
    if state.get("delta").is_some()
        || slots::apply_reply(state, &slots::empty()).is_none_or(|got| got == *after)
    {
        return None;
    }
    let got = peerproof_engine::data::payload::shorten(&state.to_text(), 240).into_owned();
    let expected = "the complete state after the request and its tool";
    Some(Finding::new("TH-STATE-20", "wrong_state", expected, got))
}
