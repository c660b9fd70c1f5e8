//! Reasons why a clean conversation proves nothing: steps that were not carried out or never planned.

use std::collections::BTreeSet;

use super::RunContext;
use super::silence::is_silence;
use crate::contract::boundary::Boundary;
use crate::contract::judge;
use crate::data::check::{Check, Untestable};
use crate::data::facts::Facts;
use crate::data::finding::{Finding, Nature};
use crate::data::plan::{Act, Chunking, Plan, Step};
use crate::data::rng::Rng;
use crate::data::transcript::{EventKind, Exit, Transcript};
use crate::drive::lab::CapturedValue;

/// Names the steps of the plan that were not carried out, with the reason, because untried clauses are not proved. If
/// the peer made a choice, ending may be part of it, and the rest of that session, too.
pub(super) fn left_out(
    boundary: &dyn Boundary,
    transcript: &Transcript,
    has_chosen: bool,
) -> Option<Untestable> {
    let sent: BTreeSet<usize> = transcript
        .events
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::Sent { step, .. } => Some(step),
            _ => None,
        })
        .collect();
    let sessions: BTreeSet<usize> = transcript.events.iter().map(|event| event.session).collect();
    let steps = || transcript.plan.steps.iter().enumerate().filter(|(_, step)| tries(step));
    let may_be_left_out = |session: usize| has_chosen && ended_by_itself(transcript, session).is_some();
    let is_left_out = |(index, step): &(usize, &Step)| match step.act {
        Act::Send { .. } => !sent.contains(index) && !may_be_left_out(step.session),
        _ => !sessions.contains(&step.session),
    };
    let (first, step) = steps().find(is_left_out)?;
    if is_complete(boundary, transcript, first) {
        return None;
    }
    let count = steps().filter(is_left_out).count();
    let of = steps().count();
    let why = why(transcript, first, step.session, &sent);
    let detail = format!("{count} of {of} steps were not carried out, beginning with step {first}: {why}");
    Some(Untestable::new("step_left_out", detail))
}

/// Reason why a conversation with these findings shows nothing beyond them: the peer broke down or missed a deadline.
pub(super) fn broken_off(transcript: &Transcript, findings: &[Finding]) -> Option<Untestable> {
    let is_missing = |finding: &&Finding| is_silence(finding) || finding.nature == Nature::Crash;
    let is_cut = |kind: &EventKind| {
        matches!(
            kind,
            EventKind::DeadlinePassed { .. } | EventKind::StdoutOverflow { .. } | EventKind::Killed
        )
    };
    let first = findings
        .iter()
        .find(is_missing)
        .or_else(|| findings.first().filter(|_| transcript.events.iter().any(|event| is_cut(&event.kind))))?;
    let detail =
        format!("{} {}: the conversation ended there, so the rest is unknown", first.clause, first.reason);
    Some(Untestable::new("broken_off", detail))
}

/// True if the reply before a step completed the conversation.
fn is_complete(boundary: &dyn Boundary, transcript: &Transcript, step: usize) -> bool {
    let before = transcript.plan.steps[..step].iter().enumerate().rev();
    let mut taken = before.filter_map(|(at, step)| {
        let capture = step.capture.as_ref().filter(|capture| capture.until.is_some())?;
        let output = match step.act {
            Act::Finish => transcript.stdout(step.session),
            _ if boundary.description().converses => {
                let out = transcript.stdout(step.session);
                // Captured values of earlier replies stand in the written payload.
                let sent = transcript.events.iter().find_map(|event| match &event.kind {
                    EventKind::Sent { step, payload } if *step == at => Some(payload.clone()),
                    _ => None,
                })?;
                let act = Act::Send { payload: sent, chunking: Chunking::Whole, await_frames: 1 };
                let step = &Step { act, ..step.clone() };
                let mut frames = out.split(|byte| *byte == b'\n');
                frames.find(|frame| boundary.answers_canary(step, frame))?.to_vec()
            }
            _ => {
                let said = judge::said(transcript, step.session);
                said.iter().find(|(line, _)| line.step == at)?.1.body?.to_vec()
            }
        };
        Some((CapturedValue::of(&output, capture), capture))
    });
    let Some((last, capture)) = taken.next() else { return false };
    last.completes(taken.next().map(|(before, _)| before).as_ref(), capture)
}

/// Exit of a session's peer while its input was open.
fn ended_by_itself(transcript: &Transcript, session: usize) -> Option<Exit> {
    let before_end = transcript.of(session).take_while(|event| event.kind != EventKind::StdinClosed);
    let ended = before_end.filter_map(|event| match event.kind {
        EventKind::Exited { exit } => Some(exit),
        _ => None,
    });
    ended.last()
}

fn why(transcript: &Transcript, first: usize, session: usize, sent: &BTreeSet<usize>) -> String {
    if let Some(exit) = ended_by_itself(transcript, session) {
        return format!("the peer ended before them ({exit})");
    }
    if transcript.of(session).any(|event| matches!(event.kind, EventKind::DeadlinePassed { .. })) {
        return "the peer missed a deadline before them".to_owned();
    }
    let before = sent.range(..first).next_back().and_then(|step| transcript.plan.steps.get(*step));
    match before.and_then(|step| step.capture.as_ref()) {
        Some(capture) => format!("they need `{}` from the reply before, which lacks it", capture.pointer),
        None => "the conversation exceeded its time limit".to_owned(),
    }
}

/// True if a step can show a fault: it writes or expects something.
fn tries(step: &Step) -> bool {
    matches!(step.act, Act::Send { .. }) || !step.expect.is_null()
}

impl RunContext<'_> {
    /// Reason for a plan with only canaries, although a peer with all roles would be tried: the roles of this peer
    /// leave nothing to try.
    pub(super) fn nothing_tried(&self, check: &Check, plan: &Plan) -> Option<Untestable> {
        let any = |plan: &Plan| plan.steps.iter().any(|step| tries(step) && !step.canary);
        if any(plan) || check.first_canary {
            return None;
        }
        let own = &self.peer.facts;
        let roles = self.peer.boundary.full_facts(own.side).roles;
        let facts = Facts { roles, ..own.clone() };
        let mut rng = Rng::new(self.options.rng_seed).fork(&check.id);
        let full = (check.planner)(&facts, &mut rng).ok()?;
        any(&full).then(|| {
            Untestable::new("nothing_to_try", "the roles of this peer allow no message of this check")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::clause::Side;
    use crate::data::transcript::Event;
    use crate::toy;

    #[test]
    fn an_end_of_the_input_that_the_harness_made_is_no_reason() {
        let exited = EventKind::Exited { exit: Exit::Code(0) };
        let told = |kinds: [EventKind; 2], has_chosen| {
            let transcript = Transcript {
                boundary: "toy".to_owned(),
                check: "toy".to_owned(),
                facts: Facts::new(Side::Provider).into(),
                plan: toy::plan().into(),
                timeout_scale: 1.0,
                events: kinds.map(|kind| Event { at_us: 0, session: 0, kind }).to_vec(),
            };
            left_out(&crate::toy::Toy, &transcript, has_chosen)
        };
        let (at_end, by_itself) =
            ([EventKind::StdinClosed, exited.clone()], [exited.clone(), EventKind::StdinClosed]);
        assert!(told(at_end.clone(), false).unwrap().detail.ends_with("exceeded its time limit"));
        assert!(
            told(at_end, true).unwrap().detail.ends_with("exceeded its time limit"),
            "no choice excuses that"
        );
        assert!(
            told(by_itself.clone(), false).unwrap().detail.ends_with("ended before them (exit status 0)")
        );
        assert_eq!(told(by_itself, true), None, "an end may be the choice");
    }
}
