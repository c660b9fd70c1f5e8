//! Workers that die: killed at points all over the life of a job, and started again.

use peerproof_engine::check::Check;
use peerproof_engine::facts::Facts;
use peerproof_engine::plan::{Act, ActorStep, Effect, Plan};
use peerproof_engine::rng::Rng;

use super::talk::{REASON_MS, START_MS, Talk, performs, sleep};
use super::{LIFE, QUEUE};
use crate::WORKER;
use crate::config::RECOVER_MS;
use crate::job::Draft;

/// How long a kill point is waited for, ms.
const POINT_MS: u64 = 10_000;

/// Where a kill falls, in words for the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// When the worker has just been started.
    StartUp,
    /// As soon as nothing is left in the inbox.
    Taken,
    /// As soon as its program has been started.
    Started,
    /// As soon as its program has ended.
    Ended,
    /// As soon as it is in `done/` or `failed/`.
    Completed,
    /// Some time later than that of the start of the worker.
    Somewhere,
}

const POINTS: [Point; 6] =
    [Point::StartUp, Point::Taken, Point::Started, Point::Ended, Point::Completed, Point::Somewhere];

/// Checks: conversations of many kills each.
pub fn checks() -> Vec<Check> {
    let check = |number: usize, kills: usize, is_slow: bool| {
        let id = format!("run_queue/worker/dead/killed-{number}");
        let title = format!(
            "Killed {kills} times and started again, workers lose no job and run none again that was done."
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

/// How many kills a plan of these means to make.
pub fn kills_meant(plan: &Plan) -> usize {
    let is_kill = |act: &Act| matches!(act, Act::SignalWhen { signal, .. } if signal == "KILL");
    plan.steps.iter().filter(|step| is_kill(&step.act)).count()
}

/// A conversation with so many workers that are killed, and one that works on.
pub fn plan(facts: &Facts, rng: &mut Rng, kills: usize) -> Plan {
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
                let most = if point == Point::StartUp { 15 } else { 200 };
                talk.step(session, Act::Wait { ms: rng.range(0..=most) });
                None
            }
            Point::Taken => Some(Effect::Empty { folder: QUEUE.to_owned(), path: "inbox".to_owned() }),
            Point::Started => Some(performs(&job, false)),
            Point::Ended => Some(performs(&job, true)),
            Point::Completed => {
                // What holds its name there before may be its result.
                talk.step(session, Act::Flush);
                talk.wait_for(&job, true, POINT_MS);
                let glob = format!("{{done,failed}}/**/*{}*", job.tag);
                Some(Effect::Path { folder: QUEUE.to_owned(), glob })
            }
        };
        if let Some(what) = what {
            talk.step(session, Act::SignalWhen { signal: "KILL".to_owned(), what, within_ms: POINT_MS });
        }
        // Also where that was not seen.
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
