//! The worker: it takes jobs from the inbox, runs a program for each, and moves them to `done/` or `failed/`.
//!
//! The harness plays the program, which follows the script of its job ([`Player`](crate::job::Player)). [`timeline`]
//! collects the observations, and [`model`] judges them.

use std::collections::BTreeMap;

use peerproof_engine::contract::boundary::ConstantPeer;
use peerproof_engine::contract::face::Aim;
use peerproof_engine::contract::memory;
use peerproof_engine::data::blame::Misconfigured;
use peerproof_engine::data::check::{Check, Untestable};
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::finding::{ChoiceSeen, Judgement};
use peerproof_engine::data::plan::Plan;
use peerproof_engine::data::rng::Rng;
use peerproof_engine::data::transcript::{Transcript, strict};

use crate::config::{ATTEMPTS, POLL_MS, RECOVER_MS, RETRY_MS};

pub(crate) mod cases;
pub(crate) mod crash;
pub(crate) mod model;
pub(crate) mod talk;
pub(crate) mod timeline;

/// Name of the queue's fixture.
pub(crate) const QUEUE: &str = "queue";
/// Program of every job, under a name that selectors accept.
pub(crate) const RUNNER: &str = "policies/runner.sh";
/// Label of a look before any worker starts.
pub(crate) const BEFORE: &str = "before";
/// Label of a look while programs run. Only each second one counts.
pub(crate) const IN_RUN: &str = "in_run";
/// Label of a look after all jobs have ended.
pub(crate) const REST: &str = "rest";
/// Label of a look at folders that the worker created.
pub(crate) const MADE: &str = "made";
/// Label of a look at an idle queue, before a job is put.
pub(crate) const BEACON: &str = "idle_queue";
/// Label of a look while the inbox is missing.
pub(crate) const NO_INBOX: &str = "no_inbox";
/// Label of a look at the target of a link.
pub(crate) const TARGET: &str = "target";
/// Label of a look at an entry that is not a regular file.
pub(crate) const TREATED: &str = "treated";
/// Label of samples of an idle worker's processor time.
pub(crate) const IDLE: &str = "idle";
/// Label of a look that only serves as a time mark for the next put.
pub(crate) const LIFE: &str = "life";
/// Label of a later look at rest, when earlier failed jobs are gone.
pub(crate) const LATER: &str = "later";
/// Choice about a second worker.
const SECOND: &str = "second_worker";

/// Clauses about workers without a runner.
const DRIVEN: [&str; 2] = ["QUE-WORK-22", "QUE-WORK-24"];

/// Clauses about workers with a runner.
const RUN: [&str; 2] = ["QUE-WORK-20", "QUE-WORK-21"];

/// Clauses that need a worker which sees its program fail.
const FAILING: [&str; 4] = ["QUE-WORK-10", "QUE-WORK-11", "QUE-WORK-23", "QUE-WORK-26"];

/// Reason why further crash checks kill no mutant.
const KILLS: &str = "--slow alone runs it, and the same with other kills notices its mutants";

/// Checks that kill no mutant, with reasons.
pub(crate) const REDUNDANT: &[(&str, &str)] = &[
    ("run_queue/worker/dead/killed-7", KILLS),
    ("run_queue/worker/dead/killed-8", KILLS),
    ("run_queue/worker/dead/killed-9", KILLS),
    ("run_queue/worker/dead/killed-10", KILLS),
    ("run_queue/worker/dead/killed-11", KILLS),
    ("run_queue/worker/dead/killed-12", KILLS),
    ("run_queue/worker/dead/killed-13", KILLS),
    ("run_queue/worker/dead/killed-14", KILLS),
    (
        "run_queue/worker/idle/inbox-missing",
        "a folder that cannot be listed is an empty one to the reference, which has no seam for ending there",
    ),
];

/// A broken worker that moves all jobs to `done/` and runs nothing.
pub(crate) const MOVES_ALL: ConstantPeer = ConstantPeer::wrong(
    "moves files and runs nothing",
    "q='{queue}'; mkdir -p $q/inbox $q/done; while sleep 0.1; do mv $q/inbox/*.json $q/done/ 2>/dev/null; done",
);

/// A broken worker that fails all jobs.
pub(crate) const FAILS_ALL: ConstantPeer = ConstantPeer::wrong(
    "fails everything",
    "q='{queue}'; while sleep 0.1; do mv $q/inbox/*.json $q/failed/ 2>/dev/null; done",
);

/// All checks of workers.
pub(crate) fn checks() -> Vec<Check> {
    [cases::checks(), crash::checks()].concat()
}

/// A random conversation: a worker that is killed repeatedly.
pub(crate) fn conversation(facts: &Facts, rng: &mut Rng) -> Plan {
    let kills = rng.range(2..=8) as usize;
    Plan { by_model: true, ..crash::plan(facts, rng, kills) }
}

/// Refuses a plan with unread members.
///
/// # Errors
/// Names the unread member.
pub(crate) fn admit(transcript: &Transcript) -> Result<(), Misconfigured> {
    strict::expectations::<Aim>(&transcript.plan)
}

/// A configured limit, or the default of the contract.
pub(crate) fn limit(facts: &Facts, name: &str) -> u64 {
    let default = match name {
        ATTEMPTS => 1,
        RETRY_MS => 0,
        POLL_MS => 2_000,
        RECOVER_MS => 5_000,
        _ => 0,
    };
    facts.limits.get(name).copied().unwrap_or(default)
}

/// Judges a transcript.
pub(crate) fn judge(transcript: &Transcript) -> Judgement {
    let course = timeline::Timeline::of(transcript);
    let mut model = model::Model::new(&course, transcript);
    model.judge();
    let steps = &transcript.plan.steps;
    let step = steps.iter().position(|step| !step.expect.is_null());
    // A worker that did the canary's job is tested further, whatever else is wrong.
    let canary = steps.iter().any(|step| step.canary) && model.succeeded > 0;
    let about = step.and_then(|step| Aim::of(&steps[step])).map(|aim| aim.clause);
    let mut judgement = Judgement {
        canaries_answered: usize::from(canary),
        canaries_misanswered: 0,
        choice: choice(&model.shown, about.as_ref().map(|clause| clause.0.as_str())),
        findings: model.findings.into_iter().map(|finding| finding.at(step.unwrap_or(0))).collect(),
        untestable: model.untestable,
        counted: crash::counted(&course, &transcript.plan),
    };
    memory::judge(transcript, "QUE-JOB-19", &mut judgement);
    if course.cut {
        judgement.untestable =
            Some(Untestable::new("look_cut", "the queue contains more files than peerproof looks at"));
    }
    if judgement.untestable.is_none() {
        judgement.untestable = undecided(&course, transcript, model.completed);
    }
    judgement
}

/// Reason why a conversation without findings proves nothing.
fn undecided(
    course: &timeline::Timeline<'_>,
    transcript: &Transcript,
    completed: usize,
) -> Option<Untestable> {
    let about = |clauses: &[&str]| {
        let mut aims = transcript.plan.steps.iter().filter_map(Aim::of);
        aims.any(|aim| clauses.contains(&aim.clause.0.as_str()))
    };
    if !course.has_runner && about(&FAILING) {
        return Some(Untestable::new(
            "no_runner",
            "a worker without {runner} cannot see that a program fails",
        ));
    }
    if course.lives.is_empty() {
        return Some(Untestable::new(Untestable::NOT_STARTED, "no worker was started"));
    }
    if !course.has_runner && about(&RUN) {
        return Some(Untestable::new("no_runner", "the command of the worker has no {runner}"));
    }
    if course.has_runner && about(&DRIVEN) {
        return Some(Untestable::new(
            "has_runner",
            "the command of the worker has {runner}, so it starts no driver (`MACHINA_POLICY_CMD`)",
        ));
    }
    let meant = crash::kills_meant(&transcript.plan);
    let hit = course.kills().len();
    if meant > 0 && course.missed.len() * 4 > meant {
        return Some(Untestable::new(
            "kill_missed",
            format!("{} of {hit} kills missed their points", course.missed.len()),
        ));
    }
    (completed == 0 && course.looks.iter().any(|look| look.label == REST))
        .then(|| Untestable::new("nothing_completed", "no job finished"))
}

/// The choice that a conversation tests, or the only one that it shows.
fn choice(shown: &BTreeMap<&'static str, &'static str>, about: Option<&str>) -> Option<ChoiceSeen> {
    const CHOICES: [(&str, &str); 9] = [
        ("QUE-JOB-02", "dot_name"),
        ("QUE-JOB-03", "upper_case_suffix"),
        ("QUE-JOB-09", "not_utf8_name"),
        ("QUE-JOB-10", "symlink"),
        ("QUE-JOB-22", "special_file"),
        ("QUE-JOB-23", "unreadable"),
        ("QUE-JOB-24", "goal_id_with_bar"),
        ("QUE-WORK-26", "once_failed_exit"),
        ("QUE-TERM-02", "sigterm"),
    ];
    let key = match about {
        Some("QUE-LIVE-04") => SECOND,
        about => CHOICES.iter().find(|(clause, _)| about == Some(*clause))?.1,
    };
    let value = (*shown.get(key)?).to_owned();
    Some(ChoiceSeen { key: key.to_owned(), value, pinned: false })
}
