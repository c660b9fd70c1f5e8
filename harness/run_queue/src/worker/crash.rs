//! Workers that are killed at all points in the life of a job, and started again.

use std::collections::BTreeMap;

use peerproof_engine::data::check::Check;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::plan::{Act, ActorStep, AwaitedEffect, Plan};
use peerproof_engine::data::rng::Rng;

use super::talk::{REASON_MS, START_MS, Talk, performs, sleep};
use super::timeline::{Start, Timeline};
use super::{LIFE, QUEUE};
use crate::WORKER;
use crate::config::RECOVER_MS;
use crate::job::Draft;

/// Time to wait for the point of a kill, ms.
const POINT_MS: u64 = 10_000;

/// Duration of a worker's start, ms.
const START_UP_MS: u64 = 15;

/// Point in the life of a worker or job at which the worker is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Point {
    /// Just after the start of the worker.
    StartUp,
    /// When the inbox is empty.
    Taken,
    /// When the program of the job has started.
    Started,
    /// When the program of the job has ended.
    Ended,
    /// When the job is in `done/` or `failed/`.
    Completed,
    /// At a random time after the start of the worker.
    Somewhere,
}

const POINTS: [Point; 6] =
    [Point::StartUp, Point::Taken, Point::Started, Point::Ended, Point::Completed, Point::Somewhere];

impl Point {
    /// Planned point of the kill of a session's worker.
    fn of(plan: &Plan, session: usize) -> Option<Self> {
        let mut own = plan.steps.iter().filter(|step| step.session == session);
        own.find_map(|step| match &step.act {
            Act::SignalWhen { what: AwaitedEffect::Empty { .. }, .. } => Some(Self::Taken),
            Act::SignalWhen { what: AwaitedEffect::Performs { ended: false, .. }, .. } => Some(Self::Started),
            Act::SignalWhen { what: AwaitedEffect::Performs { ended: true, .. }, .. } => Some(Self::Ended),
            Act::SignalWhen { .. } => Some(Self::Completed),
            Act::Wait { ms: ..=START_UP_MS } => Some(Self::StartUp),
            Act::Wait { .. } => Some(Self::Somewhere),
            _ => None,
        })
    }

    fn phrase(self) -> &'static str {
        match self {
            Self::StartUp => "at the start of the worker",
            Self::Taken => "when the inbox became empty",
            Self::Started => "when a program was started",
            Self::Ended => "when a program had ended",
            Self::Completed => "when a job was in done or failed",
            Self::Somewhere => "some time after the start of the worker",
        }
    }
}

/// Counts of killed workers by point of the kill, by the state of the job that was put before them, and by a later
/// run of that job.
pub(crate) fn counted(course: &Timeline<'_>, plan: &Plan) -> BTreeMap<String, u64> {
    let mut counted = BTreeMap::new();
    if kills_meant(plan) < 2 {
        return counted;
    }
    let mut since = 0;
    for life in &course.lives {
        let begun = std::mem::replace(&mut since, life.begun);
        let put = course.puts.iter().find(|put| (begun..life.begun).contains(&put.at));
        let (Some(point), Some((killed, _)), Some(put)) = (Point::of(plan, life.session), &life.signal, put)
        else {
            continue;
        };
        let lives = course.lives.iter().map(|it| it.begun).filter(|begun| *begun > life.begun);
        let next = lives.min().unwrap_or(u64::MAX);
        let (before, behind): (Vec<_>, Vec<_>) = course.starts_of(put).partition(|start| start.at < next);
        let has_ended = |start: &&Start| start.end.is_some_and(|(end, _)| end < *killed);
        let what = match (before.last(), behind.is_empty()) {
            _ if course.missed.contains(&life.session) => "the kill was not seen",
            (None, true) => "its job was not started before the kill, and never run",
            (None, false) => "its job was not started before the kill, and run afterwards",
            (Some(start), true) if has_ended(start) => "its job was finished, and not run again",
            (Some(start), false) if has_ended(start) => "its job was finished, and run again",
            (Some(_), true) => "its job was running, and not run again",
            (Some(_), false) => "its job was running, and run again",
        };
        *counted.entry(format!("killed {}: {what}", point.phrase())).or_default() += 1;
    }
    counted
}

/// Checks with several kills each.
pub(crate) fn checks() -> Vec<Check> {
    let check = |number: usize, kills: usize, is_slow: bool| {
        let id = format!("run_queue/worker/dead/killed-{number}");
        let title = format!(
            "Workers that are killed {kills} times and started again lose no job, and run no finished job \
             again."
        );
        let clauses = ["QUE-ONCE-04", "QUE-ONCE-01", "QUE-ONCE-02", "QUE-ONCE-03"];
        let check = Check::new(id, title, clauses, WORKER, move |facts, rng| Ok(plan(facts, rng, kills)));
        let check = check.vouched().on_process();
        if is_slow { check.slow() } else { check.waits() }
    };
    let usual = (1..=6).map(|number| check(number, 12, false));
    let slow = (7..=14).map(|number| check(number, 20, true));
    usual.chain(slow).collect()
}

/// Number of kills that a plan intends.
pub(crate) fn kills_meant(plan: &Plan) -> usize {
    let is_kill = |act: &Act| matches!(act, Act::SignalWhen { signal, .. } if signal == "KILL");
    plan.steps.iter().filter(|step| is_kill(&step.act)).count()
}

/// A conversation with this number of killed workers, and a last one that keeps running.
pub(crate) fn plan(facts: &Facts, rng: &mut Rng, kills: usize) -> Plan {
    let mut talk = Talk::new(facts, WORKER, "QUE-ONCE-04");
    let mut jobs: Vec<Draft> = Vec::new();
    for number in 0..kills {
        let point = POINTS.get(number).copied().unwrap_or_else(|| *rng.pick(&POINTS));
        let mut job = talk.draft();
        let ms = if point == Point::Started && rng.chance(1, 2) { 200 } else { rng.range(0..=40) };
        job.play = sleep(ms);
        if rng.chance(1, 6) {
            job.play.push(ActorStep::Exit(1));
        }
        talk.put(&job);
        if rng.chance(1, 3) {
            let other = talk.draft().plays(sleep(rng.range(0..=40)));
            talk.put(&other);
            jobs.push(other);
        }
        let session = talk.worker();
        talk.look(LIFE, 0);
        let what = match point {
            Point::StartUp | Point::Somewhere => {
                talk.step(session, Act::Flush);
                let most = if point == Point::StartUp { START_UP_MS } else { 200 };
                talk.step(session, Act::Wait { ms: rng.range(0..=most) });
                None
            }
            Point::Taken => Some(AwaitedEffect::Empty { folder: QUEUE.to_owned(), path: "inbox".to_owned() }),
            Point::Started => Some(performs(&job, false)),
            Point::Ended => Some(performs(&job, true)),
            Point::Completed => {
                // A file there with the name of the job may be its result.
                talk.step(session, Act::Flush);
                talk.wait_for(&job, true, POINT_MS);
                let glob = format!("{{done,failed}}/**/*{}*", job.tag);
                Some(AwaitedEffect::Path { folder: QUEUE.to_owned(), glob })
            }
        };
        if let Some(what) = what {
            talk.step(session, Act::SignalWhen { signal: "KILL".to_owned(), what, within_ms: POINT_MS });
        }
        // The worker is killed even if the point was not seen.
        talk.kill(session);
        jobs.push(job);
    }
    let beacon = talk.draft().named("zz-@.json");
    talk.put(&beacon);
    talk.look(LIFE, 0);
    talk.start();
    talk.wait_for(&beacon, false, START_MS);
    let recover_ms = talk.limit(RECOVER_MS);
    talk.wait_for_ends_within(recover_ms);
    talk.look(super::REST, REASON_MS);
    talk.done()
}

#[cfg(test)]
mod tests {
    use peerproof_engine::data::clause::Side;
    use peerproof_engine::data::payload::Vars;
    use peerproof_engine::data::transcript::{Bytes, Event, EventKind, Exit, Transcript};

    use super::super::RUNNER;
    use super::*;

    /// Three workers are killed at the first three points. A program runs if a step waits for it, and finally for
    /// every job.
    #[test]
    fn kills_are_counted_by_their_points_and_by_what_they_met() {
        let facts = Facts::new(Side::Provider);
        let plan = plan(&facts, &mut Rng::new(1), 3);
        let (mut events, mut jobs) = (Vec::new(), Vec::new());
        for step in &plan.steps {
            let run = |job: &Vec<u8>| {
                let pid = 1;
                let started = EventKind::ActorStarted { actor: RUNNER.to_owned(), argv: Vec::new(), pid };
                let bytes = Bytes(job.clone());
                [started, EventKind::ActorReceived { actor: RUNNER.to_owned(), bytes, pid: Some(pid) }]
            };
            let kinds: Vec<EventKind> = match &step.act {
                Act::Put { path, content, .. } => {
                    jobs.push(content.expand(&Vars::new()).unwrap());
                    let path = Bytes(path.expand(&Vars::new()).unwrap());
                    vec![EventKind::FilePut { path, bytes: content.clone(), error: None }]
                }
                Act::Look { label, .. } if label == LIFE => vec![EventKind::Started { argv: Vec::new() }],
                Act::SignalWhen { what: AwaitedEffect::Performs { ended: false, holds, .. }, .. } => {
                    let is_it = |job: &&Vec<u8>| String::from_utf8_lossy(job).contains(holds);
                    jobs.iter().find(is_it).into_iter().flat_map(run).collect()
                }
                Act::Await { what: AwaitedEffect::Performs { .. }, .. } => {
                    jobs.iter().flat_map(run).collect()
                }
                Act::Signal(signal) => {
                    let ended = EventKind::Exited { exit: Exit::Signal(9) };
                    vec![EventKind::Signalled { signal: signal.clone() }, ended]
                }
                _ => Vec::new(),
            };
            events.extend(kinds.into_iter().map(|kind| (step.session, kind)));
        }
        let events = events.into_iter().enumerate();
        let transcript = Transcript {
            boundary: "run_queue".to_owned(),
            check: String::new(),
            facts: facts.into(),
            plan: plan.into(),
            timeout_scale: 1.0,
            events: events.map(|(at, (session, kind))| Event { at_us: at as u64, session, kind }).collect(),
        };
        let counted = counted(&Timeline::of(&transcript), &transcript.plan);
        let expected = [
            "killed at the start of the worker: its job was not started before the kill, and run afterwards",
            "killed when a program was started: its job was running, and run again",
            "killed when the inbox became empty: its job was not started before the kill, and run afterwards",
        ];
        assert_eq!(counted.into_iter().collect::<Vec<_>>(), expected.map(|what| (what.to_owned(), 1)));
    }
}
