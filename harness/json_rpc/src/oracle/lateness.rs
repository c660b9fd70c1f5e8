//! What came late, by the times in the transcript: answers to calls after their timeout and the second that the contract
//! adds, and the end of a process after the end of its input.
//!
//! A peer may be slow at everything: what plain calls took that were sent before is added to what a call may take.

use super::super::model::{Asked, Unit};
use peerproof_engine::finding::Finding;
use peerproof_engine::transcript::{Kind, Transcript};

/// Time after its timeout in which a call has to be answered, microseconds.
const AFTER_US: u64 = 1_000_000;
/// What clocks and schedulers of two processes may add, microseconds.
const SLACK_US: u64 = 250_000;

/// Time in which a process ends after its last reply, and that in which it may find out whether work needs less than a
/// second, microseconds.
const END_US: u64 = 3_000_000;

/// A process that ended long after its input and its last reply, though nobody hurried it. Where work was under way the
/// harness waits for longer than the contract lets a process stay. One that has said nothing may still have started.
pub fn end(transcript: &Transcript, session: usize) -> Option<Finding> {
    let (mut last_us, mut closed, mut is_ready) = (0, false, false);
    for event in transcript.of(session) {
        match event.kind {
            Kind::StdinClosed => (last_us, closed) = (event.at_us, true),
            Kind::Received { .. } => (last_us, is_ready) = (event.at_us, true),
            Kind::Signalled { .. } => return None,
            Kind::Exited { .. } if closed && is_ready && !transcript.plan.recorded => {
                let took_us = event.at_us.saturating_sub(last_us);
                let may_take_us = (END_US as f64 * transcript.timeout_scale.max(1.0)) as u64 + SLACK_US;
                return (took_us > may_take_us).then(|| {
                    let expected = "exit within 2 s of the last reply, or of the end of input";
                    let got = format!("exit after {} ms", took_us / 1_000);
                    Finding::new("RPC-PROC-02", "late_exit", expected, got).timed()
                });
            }
            _ => {}
        }
    }
    None
}

/// The lines that were answered too late; `answered_us` is the time at which the answer to a message that stands alone
/// came.
pub fn judge(
    asked: &[Asked],
    answered_us: &dyn Fn(usize) -> Option<u64>,
    timeout_scale: f64,
) -> Vec<(usize, Finding)> {
    let mut found = Vec::new();
    // The first call may find a peer that is still at its start.
    let (mut plain, mut plain_us, mut busy_until_us) = (0, 0, 0);
    for (at, line) in asked.iter().enumerate() {
        let work = line.units.iter().filter_map(|unit: &Unit| unit.work).max_by_key(|work| work.busy_ms);
        let is_alone = line.at_us >= busy_until_us;
        if let Some(work) = work {
            busy_until_us = busy_until_us.max(line.at_us.saturating_add(work.busy_ms.saturating_mul(1_000)));
        }
        let Some(took_us) = answered_us(at).map(|us| us.saturating_sub(line.at_us)) else { continue };
        let Some(work) = work else {
            plain += 1;
            if is_alone && plain > 1 {
                plain_us = plain_us.max(took_us);
            }
            continue;
        };
        let may_take_us = work.timeout_ms.saturating_mul(1_000)
            + (AFTER_US as f64 * timeout_scale.max(1.0)) as u64
            + SLACK_US
            + 2 * plain_us;
        if is_alone && plain > 1 && took_us > may_take_us {
            let expected = format!(
                "an answer within {} ms and 1 s more (plain calls took up to {} ms)",
                work.timeout_ms,
                plain_us / 1_000
            );
            let got = format!("an answer after {} ms", took_us / 1_000);
            found.push((at, Finding::new("RPC-TIME-01", "late", expected, got).timed()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::super::model::{Allowed, IdRule, Work};
    use super::*;
    use peerproof_engine::clause::Side;
    use peerproof_engine::facts::Facts;
    use peerproof_engine::plan::{Plan, Session};
    use peerproof_engine::transcript::{Bytes, Event, Exit};

    /// Whether a call of so many ms is late; `took` has what each of two plain calls before it took, and what it took.
    fn is_late(busy_ms: u64, timeout_ms: u64, took: [u64; 3]) -> bool {
        let line = |at: u64, work| {
            let mut unit = Unit::new(None, "C", vec![Allowed::reply(IdRule::Any)]);
            unit.work = work;
            Asked { at_us: at * 60_000_000, units: vec![unit], ..Asked::default() }
        };
        let asked = [line(0, None), line(1, None), line(2, Some(Work { busy_ms, timeout_ms }))];
        let answered = |at: usize| Some(asked[at].at_us + took[at] * 1_000);
        !judge(&asked, &answered, 1.0).is_empty()
    }

    #[test]
    fn a_timeout_is_told_within_a_second() {
        assert!(!is_late(5_000, 300, [0, 0, 1_300]));
        assert!(is_late(5_000, 300, [0, 0, 1_700]));
        assert!(is_late(5_000, 300, [5_000, 0, 1_700]));
    }

    #[test]
    fn a_process_ends_soon_after_its_last_reply() {
        let late = |exit_us: u64, says_something: bool| {
            let event = |at_us, kind| Event { session: 0, at_us, kind };
            let bytes = Bytes(b"{}\n".to_vec());
            let mut events = vec![
                event(0, Kind::StdinClosed),
                event(30_000_000, Kind::Received { bytes }),
                event(exit_us, Kind::Exited { exit: Exit::Code(0) }),
            ];
            events.retain(|event| says_something || !matches!(event.kind, Kind::Received { .. }));
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
