//! Late answers and exits, by the times in the transcript. A call must be answered within its timeout plus one
//! second, over stdio and over HTTP. A process must exit after the end of its input.
//!
//! A peer may be slow in general: [`Allowance`] adds the duration of earlier plain calls to the limit.

use super::model::{Server, Work};
use peerproof_engine::contract::face::{Framing, SessionTrace, Trace};
use peerproof_engine::data::finding::{Finding, Repair};
use peerproof_engine::data::pace::{Allowance, SLACK_US};
use peerproof_engine::data::transcript::{EventKind, Transcript};

/// Time after the timeout within which a call must be answered, microseconds.
const AFTER_US: u64 = 1_000_000;

/// Time within which a process must exit after its last reply, microseconds. Includes the time to find out that
/// pending work needs more than a second.
const END_US: u64 = 3_000_000;

/// Finding about a process that exits long after its input and its last reply, without a signal from the harness.
/// The harness waits longer than the contract allows. A process that has written nothing may still be starting.
fn end(transcript: &Transcript, session: usize) -> Option<Finding> {
    let (mut last_us, mut closed, mut is_ready) = (0, false, false);
    for event in transcript.of(session) {
        match event.kind {
            EventKind::StdinClosed => (last_us, closed) = (event.at_us, true),
            EventKind::Received { .. } => (last_us, is_ready) = (event.at_us, true),
            EventKind::Signalled { .. } => return None,
            EventKind::Exited { .. } if closed && is_ready && !transcript.plan.recorded => {
                let took_us = event.at_us.saturating_sub(last_us);
                let may_take_us = (END_US as f64 * transcript.timeout_scale.max(1.0)) as u64 + SLACK_US;
                return (took_us > may_take_us).then(|| {
                    let expected = "exit within 2 s of the last reply, or of the end of input";
                    let got = format!("exit after {} ms", took_us / 1_000);
                    Finding::new("RPC-PROC-02", "late_exit", expected, got).repaired_by(Repair::Sooner)
                });
            }
            _ => {}
        }
    }
    None
}

/// Late answers and a late exit of one session.
pub(crate) fn judge(trace: &Trace<'_, Server>, heard: &SessionTrace<'_, Server>) -> Vec<Finding> {
    let lines = heard.exchanges.iter().map(|(asked, came)| {
        // The array that answers a batch does not show when each element was done.
        let answer = came.answers.first().copied().flatten().filter(|_| !asked.due.together);
        let at_us = answer.map(|answer| heard.output[answer.frame].at_us);
        let works = asked.due.parts.iter().filter_map(|unit| unit.extra.work);
        Timed {
            step: asked.step,
            at_us: asked.at_us,
            work: works.max_by_key(|work| work.busy_ms),
            answered_us: at_us,
        }
    });
    let mut found = late(lines, trace.transcript.timeout_scale);
    if heard.framing == Framing::Lines && !heard.ending.late {
        found.extend(end(trace.transcript, heard.session));
    }
    found
}

/// A line and the time of its answer, microseconds.
struct Timed {
    step: usize,
    at_us: u64,
    work: Option<Work>,
    answered_us: Option<u64>,
}

/// Findings about lines with late answers.
fn late(lines: impl Iterator<Item = Timed>, timeout_scale: f64) -> Vec<Finding> {
    let mut found = Vec::new();
    let (mut allowance, mut busy_until_us) = (Allowance::default(), 0);
    for line in lines {
        let is_alone = line.at_us >= busy_until_us;
        if let Some(work) = line.work {
            busy_until_us = busy_until_us.max(line.at_us.saturating_add(work.busy_ms.saturating_mul(1_000)));
        }
        let Some(took_us) = line.answered_us.map(|us| us.saturating_sub(line.at_us)) else { continue };
        let Some(work) = line.work else {
            if is_alone {
                allowance.saw(took_us);
            }
            continue;
        };
        let may_take_us = work.timeout_ms.saturating_mul(1_000)
            + (AFTER_US as f64 * timeout_scale.max(1.0)) as u64
            + allowance.us();
        if is_alone && allowance.is_certain() && took_us > may_take_us {
            let expected = format!(
                "an answer within {} ms and 1 s more (plain calls took up to {} ms)",
                work.timeout_ms,
                allowance.plain_us() / 1_000
            );
            let got = format!("an answer after {} ms", took_us / 1_000);
            let finding = Finding::new("RPC-TIME-01", "late", expected, got);
            found.push(finding.repaired_by(Repair::Sooner).at(line.step));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::talk::Talk;
    use peerproof_engine::data::carriage::HTTP;
    use peerproof_engine::data::clause::Side;
    use peerproof_engine::data::facts::Facts;
    use peerproof_engine::data::plan::{Act, Plan, Session};
    use peerproof_engine::data::transcript::{Bytes, Event, Exit};

    /// True if a call of `busy_ms` is late. `took` holds the durations of two plain calls and of this call, ms.
    fn is_late(busy_ms: u64, timeout_ms: u64, took: [u64; 3]) -> bool {
        let works = [None, None, Some(Work { busy_ms, timeout_ms })];
        let lines = (0..).zip(works).zip(took).map(|((at, work), took_ms)| {
            let at_us = at * 60_000_000;
            Timed { step: 0, at_us, work, answered_us: Some(at_us + took_ms * 1_000) }
        });
        !late(lines, 1.0).is_empty()
    }

    #[test]
    fn a_timeout_is_told_within_a_second() {
        assert!(!is_late(5_000, 300, [0, 0, 1_300]));
        assert!(is_late(5_000, 300, [0, 0, 1_700]));
        assert!(is_late(5_000, 300, [5_000, 0, 1_700]));
    }

    /// Findings for two plain calls that are answered at once, and a call of 5 s with a timeout of 300 ms that is
    /// answered after `took_ms`.
    fn found(command: &'static str, took_ms: u64) -> Vec<(String, String)> {
        let facts = std::sync::Arc::new(crate::full_facts::facts(Side::Provider));
        let call = |method: &str, params: &str, id: u64| {
            format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params},"id":{id}}}"#)
        };
        let none = |id| call("peerproof.no_such_method", "{}", id);
        let sleep = r#"{"ms":5000,"options":{"timeout_ms":300}}"#;
        let lines = [none(1), none(2), call("peerproof.sleep", sleep, 3)];
        let mut talk = Talk::plain(&facts).over(command);
        for line in &lines {
            talk.send(line);
        }
        let plan = talk.finish();
        let mut events = Vec::new();
        let mut push = |at_us, kind| events.push(Event { session: 0, at_us, kind });
        for (step, (code, took_us)) in
            [(-32601, 0), (-32601, 0), (-32000, took_ms * 1_000)].iter().enumerate()
        {
            let Act::Send { payload, .. } = plan.steps[step].act.clone() else { panic!("{plan:?}") };
            let (at_us, id) = (step as u64 * 60_000_000, step + 1);
            let error = format!(r#"{{"code":{code},"message":"m","data":{{"type":"TIMEOUT"}}}}"#);
            let body = format!(r#"{{"jsonrpc":"2.0","error":{error},"id":{id}}}"#);
            push(at_us, EventKind::Sent { step, payload });
            if command == HTTP {
                let reply = EventKind::HttpReply {
                    step,
                    of_step: 0,
                    connection: 0,
                    reused: step > 0,
                    status: 200,
                    content_type: None,
                    head: Bytes::default(),
                    body_bytes: body.len() as u64,
                    body: None,
                    keeps_open: true,
                    took_us: *took_us,
                };
                push(at_us + took_us, reply);
            }
            push(at_us + took_us, EventKind::Received { bytes: Bytes(format!("{body}\n").into_bytes()) });
        }
        let transcript = Transcript {
            boundary: "json_rpc".to_owned(),
            check: "test".to_owned(),
            facts,
            plan: plan.into(),
            timeout_scale: 1.0,
            events,
        };
        let found = crate::server::judge(&transcript).findings;
        found.into_iter().map(|finding| (finding.clause.0.to_string(), finding.reason)).collect()
    }

    #[test]
    fn a_call_is_late_over_http_as_it_is_on_lines() {
        for command in ["command", HTTP] {
            assert_eq!(found(command, 1_400), [], "{command}");
            let late = ("RPC-TIME-01".to_owned(), "late".to_owned());
            assert_eq!(found(command, 1_700), [late], "{command}");
        }
    }

    #[test]
    fn a_process_ends_soon_after_its_last_reply() {
        let late = |exit_us: u64, says_something: bool| {
            let event = |at_us, kind| Event { session: 0, at_us, kind };
            let bytes = Bytes(b"{}\n".to_vec());
            let mut events = vec![
                event(0, EventKind::StdinClosed),
                event(30_000_000, EventKind::Received { bytes }),
                event(exit_us, EventKind::Exited { exit: Exit::Code(0) }),
            ];
            events.retain(|event| says_something || !matches!(event.kind, EventKind::Received { .. }));
            let plan = Plan { sessions: vec![Session::default()], ..Plan::default() };
            let transcript = Transcript {
                boundary: "json_rpc".to_owned(),
                check: "test".to_owned(),
                facts: Facts::new(Side::Provider).into(),
                plan: plan.into(),
                timeout_scale: 1.0,
                events,
            };
            end(&transcript, 0).is_some()
        };
        assert!(!late(32_000_000, true) && late(40_000_000, true));
        assert!(!late(5_000_000, false), "it may have taken that long to start");
    }

    #[test]
    fn a_peer_that_is_slow_at_everything_is_not_late() {
        assert!(!is_late(5_000, 300, [1_000, 1_000, 2_400]));
        assert!(!is_late(5_000, 300, [6_000, 1_000, 2_400]));
    }
}
