//! Checks of workers that end when the queue is empty.

use super::*;
use crate::worker::talk;

pub(super) const ONCES: &[Row] = &[
    (
        FIRST_CANARY,
        "A plain job is run and moved to done/.",
        &["QUE-WORK-25", "QUE-JOB-01", "QUE-WORK-09"],
        canary_once,
    ),
    (
        "drained",
        "The worker takes all jobs and ends with status 0.",
        &["QUE-WORK-25", "QUE-WORK-14", "QUE-WORK-31"],
        |talk| {
            for _ in 0..5 {
                let job = talk.draft().plays(sleep(20));
                talk.put(&job);
            }
            run_once(talk);
        },
    ),
    ("nothing", "With an empty inbox the worker ends with status 0.", &["QUE-WORK-25"], |talk| {
        talk.put_plain();
        run_once(talk);
        run_once(talk);
    }),
    (
        "behind-a-dead-one",
        "The worker takes the jobs of a dead worker and the waiting jobs before it ends.",
        &["QUE-WORK-25", "QUE-ONCE-04"],
        |talk| {
            let held = talk.draft().plays(sleep(LONG_MS));
            talk.put(&held);
            let session = talk.worker();
            let (signal, what) = ("KILL".to_owned(), talk::performs(&held, false));
            talk.step(session, Act::SignalWhen { signal, what, within_ms: START_MS });
            let waits = talk.draft();
            talk.put(&waits);
            let recover_ms = talk.limit(RECOVER_MS);
            run_once_within(talk, recover_ms);
        },
    ),
    ("comes-late", "`once` takes a job that arrives while another job runs.", &["QUE-WORK-25"], |talk| {
        let held = talk.draft().plays(sleep(HELD_MS));
        talk.put(&held);
        let session = talk.start();
        talk.wait_for(&held, false, START_MS);
        let late = talk.draft();
        talk.put(&late);
        finish(talk, session, 0);
    }),
    ("failed", "If a job failed, the exit status is zero or not.", &["QUE-WORK-26"], |talk| {
        for play in [vec![], vec![FAILS[0].clone()]] {
            let job = talk.draft().plays(play);
            talk.put(&job);
        }
        run_once(talk);
    }),
];

/// Time for a worker that ends by itself to start, ms.
const ONCE_START_MS: u64 = 10_000;

/// Duration of a job that runs while another one is put, ms.
const HELD_MS: u64 = 2_000;

fn canary_once(talk: &mut Talk) {
    talk.put_plain();
    talk.plan.steps[0].canary = true;
    run_once(talk);
}

/// Lets a worker run all jobs and end, and looks.
fn run_once(talk: &mut Talk) {
    run_once_within(talk, 0);
}

/// Lets a worker run all jobs and end within the usual time and `more_ms`, and looks.
fn run_once_within(talk: &mut Talk, more_ms: u64) {
    let session = talk.worker();
    finish(talk, session, more_ms);
}

/// Lets the worker of a session end, and looks.
fn finish(talk: &mut Talk, session: usize, more_ms: u64) {
    let allow_ms = ONCE_START_MS + talk.takes() + more_ms;
    talk.step(session, Act::Finish).allow_ms = allow_ms;
    talk.look_at_rest();
}
