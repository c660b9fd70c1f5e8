//! Judges transcripts by the model of a face.
//!
//! The judge collects the stimuli of a peer (`stimuli.rs`), asks the face for the allowed outcomes, cuts the peer's
//! output into frames (`frames.rs`), assigns messages to requests (`deal.rs`, `matching.rs`), looks for effects
//! (`effects.rs`) and turns differences into findings (`answers.rs`, `entities.rs`). Pure: a transcript always gives
//! the same judgement.

mod answers;
mod deal;
pub mod effects;
mod entities;
pub mod equal_requests;
mod frames;
mod http;
mod matching;
pub mod order;
mod stimuli;
#[cfg(test)]
mod tests;
mod undeclared;

use std::collections::BTreeSet;

use crate::contract::face::{
    Aim, Face, Framing, HttpExchange, Match, Output, PlacedExpectation, SessionTrace, Trace,
};
use crate::data::ending::{Ending, left_behind};
use crate::data::finding::{Finding, Judgement};
use crate::data::lines::RequestLine;
use crate::data::plan::Act;
use crate::data::transcript::Transcript;

pub use http::{TimedReply, not_kept, said, timed};
pub use undeclared::{are_refused, excuse};

/// Number of frames read beyond twice the number of requests, so that endless output does not cost more.
const FRAMES_SPARE: usize = 1_000;

/// Judges a transcript with the model of a face.
pub fn judge<F: Face>(face: &F, transcript: &Transcript) -> Judgement {
    listen(face, transcript, |trace| {
        let (mut judgement, mut of_malformed) = (Judgement::default(), Vec::new());
        for heard in &trace.sessions {
            let (mut found, malformed) = answers::judge(face, transcript, heard);
            of_malformed.extend(malformed);
            let session_clauses = face.session_clauses_of(transcript, heard.session);
            let (no_process, no_file) = (session_clauses.no_process_left, session_clauses.no_file_left);
            found.findings.extend(left_behind(transcript, heard.session, no_process, no_file));
            gather(transcript, heard.session, found, &mut judgement);
        }
        entities::judge(face, trace, &mut judgement);
        effects::judge(transcript, trace.asked, &mut judgement);
        for rule in face.rules() {
            for heard in &trace.sessions {
                let findings = rule(trace, heard);
                gather(
                    transcript,
                    heard.session,
                    Judgement { findings, ..Judgement::default() },
                    &mut judgement,
                );
            }
        }
        let told: BTreeSet<Option<usize>> = judgement.findings.iter().map(|finding| finding.step).collect();
        judgement.findings.extend(of_malformed.into_iter().filter(|finding| !told.contains(&finding.step)));
        face.revise(trace, &mut judgement);
        judgement
    })
}

/// Assigns answers to stimuli and passes the trace to `with`.
pub fn listen<F: Face, R>(face: &F, transcript: &Transcript, with: impl FnOnce(&Trace<'_, F>) -> R) -> R {
    let lines = stimuli::lines(face, transcript);
    let (mut asked, state) = asked(face, transcript, &lines);
    let sessions = (0..)
        .zip(&transcript.plan.sessions)
        .filter_map(|(session, spec)| Some((session, face.framing(&spec.command)?)));
    let written: Vec<SessionOutput<'_, F::Message>> = sessions
        .map(|(session, framing)| {
            SessionOutput::of(face, transcript, session, framing, &lines[session], &mut asked)
        })
        .collect();
    let heard = |written| SessionOutput::heard(written, face, transcript, &lines, &asked);
    let sessions = written.iter().map(heard).collect();
    with(&Trace { transcript, asked: &asked, state: &state, sessions })
}

/// Adds the judgement of one session. A finding without a step gets the step that ends the session.
fn gather(transcript: &Transcript, session: usize, found: Judgement, judgement: &mut Judgement) {
    let finish = transcript.plan.steps.iter().position(|step| {
        step.session == session && matches!(step.act, Act::Finish | Act::Signal(_) | Act::Play { .. })
    });
    judgement.findings.extend(
        found.findings.into_iter().map(|finding| Finding { step: finding.step.or(finish), ..finding }),
    );
    judgement.canaries_answered += found.canaries_answered;
    judgement.canaries_misanswered += found.canaries_misanswered;
    judgement.choice = found.choice.or(judgement.choice.take());
    judgement.untestable = found.untestable.or(judgement.untestable.take());
}

/// Output of one session, before it is matched.
struct SessionOutput<'a, M> {
    session: usize,
    framing: Framing,
    output: Vec<Output<M>>,
    /// Bytes after the last frame.
    rest: Vec<u8>,
    carriages: Vec<HttpExchange<'a>>,
}

impl<'a, M> SessionOutput<'a, M> {
    fn of<F: Face<Message = M>>(
        face: &F,
        transcript: &'a Transcript,
        session: usize,
        framing: Framing,
        lines: &[RequestLine],
        asked: &mut [PlacedExpectation<F>],
    ) -> Self {
        if framing != Framing::Bodies {
            let own = asked.iter().filter(|asked| asked.session == session);
            let requests: usize = own.map(|asked| asked.due.parts.len().max(1)).sum();
            let most = requests * 2 + FRAMES_SPARE + face.frames_spare(transcript);
            let (output, rest) = frames::of(face, transcript, session, framing, most);
            return Self { session, framing, output, rest, carriages: Vec::new() };
        }
        let carriages = http::exchanges(transcript, session, lines);
        let mut dues = vec![false; lines.len()];
        for asked in asked.iter_mut().filter(|asked| asked.session == session) {
            let Some(line) = asked.line else { continue };
            let how = transcript.plan.steps.get(asked.step).and_then(|step| step.http.as_ref());
            face.carried(asked, &lines[line], how, &carriages[line]);
            dues[line] = !asked.due.may_be_silent();
        }
        let output = frames::of_bodies(face, &dues, &carriages);
        Self { session, framing, output, rest: Vec::new(), carriages }
    }

    /// Matches output and stimuli of the session.
    fn heard<'b, F: Face<Message = M>>(
        &'b self,
        face: &F,
        transcript: &Transcript,
        lines: &'b [Vec<RequestLine>],
        asked: &'b [PlacedExpectation<F>],
    ) -> SessionTrace<'b, F> {
        let session = self.session;
        let own: Vec<&'b PlacedExpectation<F>> =
            asked.iter().filter(|asked| asked.session == session && !asked.is_of_entities()).collect();
        let (mut came, mut extra) = (Vec::new(), Vec::new());
        if self.framing != Framing::Bodies {
            let (all, left) = deal::deal(face, &own, &self.output, 0);
            came = all;
            extra.extend(left.into_iter().map(|message| (0, message)));
        } else {
            for (at, asked) in own.iter().enumerate() {
                let frames = asked.line.map_or(0..0, |line| line..line + 1);
                let first = frames.start;
                let (mut of_one, left) =
                    deal::deal(face, std::slice::from_ref(asked), &self.output[frames], first);
                let is_open = |came: &&mut Match<'_, F>| {
                    asked.due.together && came.frame.is_none() && came.whole.is_none()
                };
                match of_one.first_mut().filter(is_open) {
                    // These messages can only belong to this group.
                    Some(came) => came.apart.extend(left),
                    None => extra.extend(left.into_iter().map(|message| (at, message))),
                }
                came.append(&mut of_one);
            }
        }
        SessionTrace {
            session,
            framing: self.framing,
            lines: &lines[session],
            output: &self.output,
            exchanges: own.into_iter().zip(came).collect(),
            carriages: &self.carriages,
            extra,
            rest: &self.rest,
            ending: Ending::of(transcript, session),
        }
    }
}

/// Answers due for the stimuli of a transcript, in order, and the final state of the model.
fn asked<F: Face>(
    face: &F,
    transcript: &Transcript,
    lines: &[Vec<RequestLine>],
) -> (Vec<PlacedExpectation<F>>, F::State) {
    let mut state = face.begin(transcript);
    let mut all = Vec::new();
    let steps = &transcript.plan.steps;
    for placed in stimuli::of(transcript, lines) {
        let Some(due) = face.expect(&mut state, &placed.stimulus) else { continue };
        let session = placed.stimulus.session;
        let planned = placed.stimulus.step.and_then(|step| steps.get(step));
        // A stimulus without a step counts for the first step of its session.
        let first = || steps.iter().position(|step| step.session == session).unwrap_or(0);
        all.push(PlacedExpectation {
            session,
            step: placed.stimulus.step.unwrap_or_else(first),
            line: placed.line,
            canary: planned.is_some_and(|step| step.canary),
            aim: planned.and_then(Aim::of),
            at_us: placed.stimulus.at_us,
            spot: placed.spot,
            due,
        });
    }
    face.complete(&mut state, &transcript.plan, &mut all);
    (all, state)
}
