//! Stimuli of a peer, in transcript order.

use std::collections::BTreeMap;

use crate::contract::face::{Face, Framing, SessionPosition, Stimulus, StimulusKind};
use crate::data::lines::{self, RequestLine};
use crate::data::plan::{Act, Plan, Step};
use crate::data::transcript::{EventKind, Transcript};

/// Stimulus with its position.
pub(super) struct PlacedStimulus<'a> {
    /// Stimulus for the face.
    pub stimulus: Stimulus<'a>,
    /// Position in the session.
    pub spot: SessionPosition,
    /// Number of its line in the session.
    pub line: Option<usize>,
}

/// Lines of each session, or its single message.
pub(super) fn lines<F: Face>(face: &F, transcript: &Transcript) -> Vec<Vec<RequestLine>> {
    let sessions = transcript.plan.sessions.iter().enumerate();
    sessions
        .map(|(session, spec)| match face.framing(&spec.command) {
            Some(Framing::Lines | Framing::Bodies | Framing::Asks) => lines::of_session(transcript, session),
            Some(Framing::Whole) => lines::of_run(transcript, session).into_iter().collect(),
            Some(Framing::Calls | Framing::Silent) | None => Vec::new(),
        })
        .collect()
}

/// All stimuli. A line stands where its step was written, before its consequences.
pub(super) fn of<'a>(transcript: &'a Transcript, lines: &'a [Vec<RequestLine>]) -> Vec<PlacedStimulus<'a>> {
    let plan: &Plan = &transcript.plan;
    let begun: Vec<BTreeMap<usize, (usize, usize)>> =
        (0..lines.len()).map(|session| lines::begun(transcript, session)).collect();
    let mut fences: Vec<FenceCounter> = lines.iter().map(|_| FenceCounter::default()).collect();
    let mut next = vec![0; lines.len()];
    let mut places = vec![0; lines.len()];
    let mut acts = FileSteps::of_plan(plan);
    let mut is_begun = vec![false; lines.len()];
    let mut all = Vec::new();
    for event in &transcript.events {
        let session = event.session;
        if is_begun.get_mut(session).is_some_and(|is_begun| !std::mem::replace(is_begun, true)) {
            let step = plan.steps.iter().position(|step| step.session == session);
            let at_us = event.at_us;
            all.push(PlacedStimulus {
                stimulus: Stimulus {
                    session,
                    at_us,
                    step,
                    fenced: false,
                    how: None,
                    what: StimulusKind::Begun,
                },
                spot: SessionPosition::default(),
                line: None,
            });
        }
        let written = match &event.kind {
            EventKind::Sent { step, .. } => Some(*step),
            // An unended line and the single message of a process are complete at the end of input.
            EventKind::StdinClosed | EventKind::StdinBroken { .. } | EventKind::Exited { .. } => {
                Some(usize::MAX)
            }
            _ => None,
        };
        let mut took = |next: &mut usize| {
            let line = lines.get(session)?.get(*next)?;
            let is_its = match (written?, &event.kind) {
                (usize::MAX, EventKind::Exited { .. }) => transcript.plan.recorded,
                (usize::MAX, EventKind::StdinBroken { .. }) => !line.ended,
                (usize::MAX, _) => true,
                (step, _) => line.ended && line.step == step && line.at_us <= event.at_us,
            };
            is_its.then(|| *next += 1).map(|()| line)
        };
        while let Some(line) = next.get_mut(session).and_then(&mut took) {
            let (round, fenced) = fences[session].pass(plan, line.step);
            all.push(PlacedStimulus {
                stimulus: Stimulus {
                    session,
                    at_us: line.at_us,
                    step: Some(line.step),
                    fenced,
                    how: plan.steps.get(line.step).and_then(|step| step.http.as_ref()),
                    what: StimulusKind::Said(line),
                },
                spot: SessionPosition { sent: lines::sent(&begun[session], line), round },
                line: Some(next[session] - 1),
            });
        }
        let place = places.get(session).copied().unwrap_or(0);
        if let Some(place) = places.get_mut(session) {
            *place += 1;
        }
        all.push(PlacedStimulus {
            stimulus: Stimulus {
                session,
                at_us: event.at_us,
                step: acts.of(&event.kind),
                fenced: false,
                how: None,
                what: StimulusKind::Happened(&event.kind),
            },
            spot: SessionPosition { sent: place, round: 0 },
            line: None,
        });
    }
    all
}

/// Steps that put and move files: one event each, in order.
struct FileSteps {
    puts: std::vec::IntoIter<usize>,
    moves: std::vec::IntoIter<usize>,
}

impl FileSteps {
    fn of_plan(plan: &Plan) -> Self {
        let those = |is: fn(&Act) -> bool| {
            let steps = plan.steps.iter().enumerate().filter(|(_, step)| is(&step.act));
            steps.map(|(at, _)| at).collect::<Vec<_>>().into_iter()
        };
        let puts = those(|act| matches!(act, Act::Put { .. }));
        Self { puts, moves: those(|act| matches!(act, Act::Move { .. })) }
    }

    /// Step that caused an event.
    fn of(&mut self, kind: &EventKind) -> Option<usize> {
        match kind {
            EventKind::FilePut { .. } => self.puts.next(),
            EventKind::FileMoved { .. } => self.moves.next(),
            EventKind::Sent { step, .. }
            | EventKind::HttpReply { step, .. }
            | EventKind::HttpFailed { step, .. } => Some(*step),
            _ => None,
        }
    }
}

/// Counter of the times that the harness awaited answers in a session.
#[derive(Default)]
struct FenceCounter {
    step: usize,
    round: usize,
}

impl FenceCounter {
    /// Round of a line of `step`; true if the line opens the round. A step that awaits answers is a fence: everything
    /// sent before it had its chance.
    fn pass(&mut self, plan: &Plan, step: usize) -> (usize, bool) {
        if step == self.step {
            return (self.round, false);
        }
        // The steps of a stored transcript may go backwards.
        let passed = plan.steps.get(self.step..step.min(plan.steps.len())).unwrap_or_default();
        let waited = passed.iter().any(Step::awaits_answers);
        self.step = step;
        self.round += usize::from(waited);
        (self.round, waited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy;

    #[test]
    fn a_transcript_that_goes_back_passes_no_fence() {
        let plan = toy::plan();
        let mut fence = FenceCounter::default();
        assert_eq!(
            [1, 0, 9, 1].map(|step| fence.pass(&plan, step)),
            [(1, true), (1, false), (2, true), (2, false)]
        );
    }
}
