//! View of a transcript for the face of a peer that asks: its calls, the fixtures and what the harness observed.

use std::sync::Arc;

use super::{Call, CallResult, CallTimeline, GRACE_MS, LATE_MS, Script, calls, courses, played, results};
use crate::contract::face::{Aim, Expected, SessionClauses};
use crate::data::facts::Facts;
use crate::data::plan::Fixture;
use crate::data::transcript::{Exit, Transcript};

/// Calls that a peer was given, with what the harness observed of them.
pub struct ObservedCalls {
    /// Facts about the peer.
    pub facts: Arc<Facts>,
    /// Fixtures of the plan.
    pub fixtures: Vec<Fixture>,
    /// Calls of the scenario.
    pub calls: Vec<Call>,
    /// Course of each call, in the order of `calls`.
    pub courses: Vec<CallTimeline>,
    /// Extra delay allowed on a busy machine, ms.
    pub late_ms: u64,
    aim: Option<Aim>,
}

impl ObservedCalls {
    /// Reads a transcript.
    pub fn of(transcript: &Transcript) -> Self {
        let calls = calls(&transcript.plan).unwrap_or_default();
        Self {
            facts: Arc::clone(&transcript.facts),
            fixtures: transcript.plan.fixtures.clone(),
            courses: courses(transcript, &calls),
            calls,
            late_ms: transcript.stretched_ms(LATE_MS),
            aim: transcript.plan.steps.first().and_then(Aim::of),
        }
    }

    /// Fixture played for the call at this index.
    pub fn fixture(&self, at: usize) -> Option<&Fixture> {
        let name = played(&self.calls[at].name);
        self.fixtures.iter().find(|fixture| fixture.name() == name)
    }

    /// Manners of the peer's process. If the peer cut off a program, a process left over is charged to `group_gone`,
    /// since that program may have started it.
    pub fn session_clauses(&self, usual: SessionClauses, group_gone: &'static str) -> SessionClauses {
        let was_ended = |course: &CallTimeline| !course.starts.is_empty() && course.ended.is_none();
        let is_left = self.courses.iter().any(was_ended);
        SessionClauses { no_process_left: if is_left { group_gone } else { usual.no_process_left }, ..usual }
    }

    /// Run time (ms) and exit of the call's program: as observed, or as scripted if it was not observed. `None` if the
    /// timeout `time_ms` passes first.
    pub fn end(&self, course: &CallTimeline, script: &Script, time_ms: u64) -> Option<(u64, Option<Exit>)> {
        let ended = course.begun_us().zip(course.ended);
        let took_ms = ended.map(|(begun_us, (ended_us, _))| ended_us.saturating_sub(begun_us) / 1_000);
        let took_ms = took_ms.unwrap_or(script.sleeps_ms);
        let is_late = took_ms > time_ms + GRACE_MS + self.late_ms || ended.is_none() && took_ms > time_ms;
        (!is_late).then(|| (took_ms, ended.map(|(_, (_, exit))| exit).or(script.exit)))
    }

    /// Lets the first call of a conversation about `clause` show the choice `order_of_calls`: independent calls run
    /// together or one by one.
    pub fn ordered<W, X>(&self, clause: &'static str, at: usize, mut part: Expected<W, X>) -> Expected<W, X> {
        let is_about_order = self.aim.as_ref().is_some_and(|aim| aim.clause.0 == clause);
        if is_about_order && part.choice.is_none() && at == 0 {
            let shows = if self.overlap() { "together" } else { "one_by_one" };
            part.allowed = part.allowed.into_iter().map(|allowed| allowed.shows(shows)).collect();
            (part.clause, part.choice) = (clause, Some("order_of_calls"));
        }
        part
    }

    /// True if two programs ran at the same time.
    fn overlap(&self) -> bool {
        let spans: Vec<(u64, u64)> = self
            .courses
            .iter()
            .filter_map(|it| it.begun_us().zip(it.ended.map(|(at_us, _)| at_us)))
            .collect();
        spans.iter().enumerate().any(|(at, (begun, ended))| {
            spans[at + 1..]
                .iter()
                .any(|(other_begun, other_ended)| begun < other_ended && other_begun < ended)
        })
    }
}

/// Results of a session and the first fault of their form, see [`results`].
pub fn noted(
    transcript: &Transcript,
    session: usize,
    wrong: fn(&CallResult) -> Option<&'static str>,
) -> (Vec<CallResult>, Option<String>) {
    let (mut noted, mut fault) = (Vec::new(), None);
    for event in transcript.of(session) {
        let (some, other) = results(&event.kind, wrong);
        noted.extend(some);
        fault = fault.or(other);
    }
    (noted, fault)
}
