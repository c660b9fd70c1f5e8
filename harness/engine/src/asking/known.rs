//! What the face of a peer that asks knows: what the peer was told, what was played for it, and what came of that.

use std::sync::Arc;

use super::{Call, Course, GRACE_MS, LATE_MS, Noted, Script, calls, courses, played, results};
use crate::face::{Aim, Expected, Manners};
use crate::facts::Facts;
use crate::plan::Fixture;
use crate::transcript::{Exit, Transcript};

/// What a peer was told, and what the harness saw of it.
pub struct Known {
    /// What is known of the peer.
    pub facts: Arc<Facts>,
    /// What was played.
    pub fixtures: Vec<Fixture>,
    /// Its calls.
    pub calls: Vec<Call>,
    /// What came of each.
    pub courses: Vec<Course>,
    /// How late a busy machine may be, ms.
    pub late_ms: u64,
    aim: Option<Aim>,
}

impl Known {
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

    /// What is played for a call.
    pub fn fixture(&self, at: usize) -> Option<&Fixture> {
        let name = played(&self.calls[at].name);
        self.fixtures.iter().find(|fixture| fixture.name() == name)
    }

    /// The manners of the peer's process: `usual`, but where the peer ended a program before it had come to its end, a process that
    /// is left over is one that the program had started, which breaks the clause `group_gone`.
    pub fn manners(&self, usual: Manners, group_gone: &'static str) -> Manners {
        let was_ended = |course: &Course| !course.starts.is_empty() && course.ended.is_none();
        let is_left = self.courses.iter().any(was_ended);
        Manners { no_process_left: if is_left { group_gone } else { usual.no_process_left }, ..usual }
    }

    /// What the program of a call took, ms, and how it ended: as the harness saw it, for on a busy machine it takes longer than its
    /// script says, else as the script has it. `None` where the time of the call, `time_ms`, is over first.
    pub fn end(&self, course: &Course, script: &Script, time_ms: u64) -> Option<(u64, Option<Exit>)> {
        let ended = course.begun_us().zip(course.ended);
        let took_ms = ended.map(|(begun_us, (ended_us, _))| ended_us.saturating_sub(begun_us) / 1_000);
        let took_ms = took_ms.unwrap_or(script.sleeps_ms);
        let is_late = took_ms > time_ms + GRACE_MS + self.late_ms || ended.is_none() && took_ms > time_ms;
        (!is_late).then(|| (took_ms, ended.map(|(_, (_, exit))| exit).or(script.exit)))
    }

    /// Adds to the first call of a conversation about `clause` whether calls that need not wait are made together.
    pub fn ordered<W, X>(&self, clause: &'static str, at: usize, mut part: Expected<W, X>) -> Expected<W, X> {
        let is_about_order = self.aim.as_ref().is_some_and(|aim| aim.clause.0 == clause);
        if is_about_order && part.choice.is_none() && at == 0 {
            let shows = if self.overlap() { "together" } else { "one_by_one" };
            part.allowed = part.allowed.into_iter().map(|allowed| allowed.shows(shows)).collect();
            (part.clause, part.choice) = (clause, Some("order_of_calls"));
        }
        part
    }

    /// Whether one program began before another had ended.
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

/// All that a session noted, and the first thing that is wrong with the form of it, as [`results`] has it.
pub fn noted(
    transcript: &Transcript,
    session: usize,
    wrong: fn(&Noted) -> Option<&'static str>,
) -> (Vec<Noted>, Option<String>) {
    let (mut noted, mut fault) = (Vec::new(), None);
    for event in transcript.of(session) {
        let (some, other) = results(&event.kind, wrong);
        noted.extend(some);
        fault = fault.or(other);
    }
    (noted, fault)
}
