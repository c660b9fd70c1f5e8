//! Builder of conversations with workers.

use std::collections::BTreeMap;

use peerproof_engine::contract::face::Aim;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::payload::{Payload, Vars};
use peerproof_engine::data::plan::{
    Act, ActorStep, AwaitedEffect, Fixture, PathKind, Placing, Plan, Session, Sight, Step,
};

use super::{BEFORE, IN_RUN, QUEUE, REST, RUNNER, limit};
use crate::FOLDERS;
use crate::config::{ATTEMPTS, POLL_MS, RETRY_MS};
use crate::job::{self, Draft, JobVerdict, PROGRAM, lasts_ms};

/// Time for a worker to start, ms.
pub(crate) const START_MS: u64 = 30_000;

/// Time to wait for the first sign of a worker, and then for its first program, ms. A worker without signs shows in
/// later steps, which have time limits of their own.
pub(crate) const SIGN_MS: u64 = 10_000;

/// Time to wait for jobs beyond their own duration and the worker's pauses, ms.
pub(crate) const SETTLE_MS: u64 = 4_000;

/// A path to the folder of the fixtures that contains a blank.
pub(crate) const BLANK: &str = "a b";

/// Time for a job to be moved after its program has ended, ms.
const REST_MS: u64 = 200;

/// Time for a reason file to appear, ms.
pub(crate) const REASON_MS: u64 = 1_000;

/// A conversation under construction.
pub(crate) struct Talk {
    /// The plan.
    pub plan: Plan,
    facts: Facts,
    command: String,
    aim: serde_json::Value,
    /// Number of drafts made.
    drafts: usize,
    /// Globs of jobs whose end is awaited.
    awaited: Vec<String>,
    /// Number of program ends that are awaited.
    ends: u64,
    /// True if other folders than the inbox have files from the start.
    is_strewn: bool,
    /// True if awaited jobs need not run.
    may_leave: bool,
    /// Folder of the program, as workers are told.
    runner_in: &'static str,
    /// Duration of the jobs so far, ms.
    takes_ms: u64,
    /// True if a job fails, so that reason files are awaited.
    fails: bool,
}

impl Talk {
    /// A conversation about `clause` with workers of this command.
    pub(crate) fn new(facts: &Facts, command: &str, clause: &str) -> Self {
        let folders = FOLDERS.map(str::to_owned).to_vec();
        let fixtures = vec![
            Fixture::Folder { name: QUEUE.to_owned(), folders, watched: true },
            Fixture::Actor {
                name: RUNNER.to_owned(),
                script: vec![ActorStep::Perform(PROGRAM.to_owned())],
                later: Vec::new(),
            },
        ];
        Self {
            plan: Plan { fixtures, ..Plan::default() },
            facts: facts.clone(),
            command: command.to_owned(),
            aim: Aim::about(clause),
            drafts: 0,
            awaited: Vec::new(),
            ends: 0,
            is_strewn: false,
            may_leave: false,
            runner_in: "{{folder}}",
            takes_ms: 0,
            fails: false,
        }
    }

    /// A new job.
    pub(crate) fn draft(&mut self) -> Draft {
        self.drafts += 1;
        Draft::new(self.drafts)
    }

    /// Gives workers a path of the program that contains a blank.
    pub(crate) fn run_behind_a_blank(&mut self) -> &mut Self {
        let what = PathKind::Link { to: ".".to_owned() };
        self.plan.fixtures.push(Fixture::Path { name: BLANK.to_owned(), what });
        self.runner_in = "{{folder}}/a b";
        self
    }

    /// Adds a worker without starting it.
    pub(crate) fn worker(&mut self) -> usize {
        let path = |name: &str| format!("{{{{{name}.path}}}}");
        let placeholders = [("queue", path(QUEUE)), ("runner", format!("{}/{RUNNER}", self.runner_in))];
        let env = [
            ("MACHINA_POLICY_CMD", format!("sh {}", path(RUNNER))),
            ("MACHINA_POLICY_ALLOWED_SCRIPT_ROOT", "{{folder}}/policies".to_owned()),
            ("MACHINA_POLICY_TIMEOUT_MS", "60000".to_owned()),
            ("MACHINA_POLICY_FAIL_THRESHOLD", "1000".to_owned()),
        ];
        let owned = |(name, value): (&str, String)| (name.to_owned(), value);
        self.plan.sessions.push(Session {
            command: self.command.clone(),
            placeholders: placeholders.into_iter().map(owned).collect(),
            env: env.into_iter().map(owned).collect::<BTreeMap<_, _>>(),
            shows_start: Some(false),
            ..Session::default()
        });
        self.plan.sessions.len() - 1
    }

    /// A limit of the peer.
    pub(crate) fn limit(&self, name: &str) -> u64 {
        limit(&self.facts, name)
    }

    /// Time that all jobs so far may take, ms.
    pub(crate) fn takes(&mut self) -> u64 {
        self.awaited.clear();
        SETTLE_MS + std::mem::take(&mut self.takes_ms)
    }

    /// Adds a step.
    pub(crate) fn step(&mut self, session: usize, act: Act) -> &mut Step {
        self.plan.steps.push(Step { session, ..Step::new(act) });
        let last = self.plan.steps.len() - 1;
        &mut self.plan.steps[last]
    }

    fn session(&self) -> usize {
        self.plan.sessions.len().saturating_sub(1)
    }

    /// Puts a file below the folder of the fixtures.
    pub(crate) fn place(&mut self, path: Payload, content: Payload) {
        let (session, aim) = (self.session(), self.aim.clone());
        let is_waiting = |bytes: Vec<u8>| bytes.starts_with(b"queue/inbox/");
        self.is_strewn |= !path.expand(&Vars::new()).is_ok_and(is_waiting);
        self.step(session, Act::Put { path, content, by: Placing::Rename }).expect = aim;
    }

    /// Puts a job into the inbox; a later step waits for its end.
    pub(crate) fn put(&mut self, draft: &Draft) {
        let content = Payload::text(draft.text());
        self.put_as(draft, content);
    }

    /// Puts a plain job.
    pub(crate) fn put_plain(&mut self) {
        let job = self.draft();
        self.put(&job);
    }

    /// Puts a job with other content.
    pub(crate) fn put_as(&mut self, draft: &Draft, content: Payload) {
        self.put_unseen(draft, content);
        self.expect_end(draft);
    }

    /// Puts a job without waiting for its name, because the name does not show its end.
    pub(crate) fn put_unseen(&mut self, draft: &Draft, content: Payload) {
        let name = draft.name.expand(&Vars::new()).unwrap_or_default();
        let is_plain = name.len() <= 100 && !name.iter().any(u8::is_ascii_control);
        let has_to_run = is_plain
            && content.len(&Vars::new()) < 1 << 20
            && matches!(job::read(&content.expand(&Vars::new()).unwrap_or_default()), JobVerdict::Job(_));
        let path = Payload::text(format!("{QUEUE}/inbox/")).then(draft.name.clone());
        self.place(path.merged(), content);
        self.expect_run(draft, has_to_run);
    }

    /// Adds the end of a job to the next wait.
    pub(crate) fn expect_end(&mut self, draft: &Draft) {
        let glob = format!("{{done,failed}}/**/*{}*", draft.tag);
        if !self.awaited.contains(&glob) {
            self.awaited.push(glob);
        }
    }

    /// Adds the time of a job, and the ends of its program if it must run.
    pub(crate) fn expect_run(&mut self, draft: &Draft, has_to_run: bool) {
        let attempts = limit(&self.facts, ATTEMPTS);
        let succeeds = job::succeeds(&draft.play);
        self.may_leave |= !has_to_run;
        if has_to_run {
            self.ends += if succeeds { 1 } else { attempts.max(1) };
        }
        let once = lasts_ms(&draft.play) + limit(&self.facts, RETRY_MS) + 300;
        self.takes_ms += attempts * once + limit(&self.facts, POLL_MS);
        self.fails |= !succeeds;
    }

    /// Makes the next look wait for reason files, because jobs may fail.
    pub(crate) fn may_fail(&mut self) {
        self.fails = true;
    }

    /// Looks at the queue.
    pub(crate) fn look(&mut self, label: &str, after_ms: u64) {
        let session = self.session();
        let act = Act::Look { label: label.to_owned(), path: Payload::text(QUEUE), after_ms };
        self.step(session, act);
    }

    /// Looks at the queue before any worker starts.
    pub(crate) fn look_before(&mut self) {
        self.look(BEFORE, 0);
    }

    /// Starts a worker.
    pub(crate) fn start(&mut self) -> usize {
        let session = self.worker();
        self.step(session, Act::Flush);
        session
    }

    /// Waits for something.
    pub(crate) fn wait(&mut self, what: AwaitedEffect, within_ms: u64) {
        let session = self.session();
        self.step(session, Act::Await { what, within_ms });
    }

    /// Waits until the program of a job has started, or ended.
    pub(crate) fn wait_for(&mut self, draft: &Draft, ended: bool, within_ms: u64) {
        self.wait(performs(draft, ended), within_ms);
    }

    /// Waits until any program has started, which shows that the worker is ready.
    pub(crate) fn wait_ready(&mut self) {
        let folder = QUEUE.to_owned();
        if !self.is_strewn {
            self.wait(
                AwaitedEffect::Path { folder, glob: "{processing,done,failed}/**/*".to_owned() },
                SIGN_MS,
            );
        }
        let within_ms = if self.is_strewn { START_MS } else { SIGN_MS };
        self.wait(AwaitedEffect::Starts { actor: RUNNER.to_owned(), start: 0 }, within_ms);
    }

    /// Looks twice while a program runs.
    pub(crate) fn look_in_run(&mut self) {
        self.look(IN_RUN, 0);
        self.look(IN_RUN, 0);
    }

    /// Waits for the ends of all jobs so far.
    pub(crate) fn wait_for_ends(&mut self) {
        self.wait_for_ends_within(0);
    }

    /// Waits for the ends of all jobs so far, with extra time in ms.
    pub(crate) fn wait_for_ends_within(&mut self, more_ms: u64) {
        let globs = std::mem::take(&mut self.awaited);
        let within_ms = SETTLE_MS + std::mem::take(&mut self.takes_ms) + more_ms;
        // A file in `done/` with the name of a job may be its result, so the ends of the programs are awaited
        // first.
        if let Some(end) = self.ends.checked_sub(1) {
            let (actor, end) = (RUNNER.to_owned(), usize::try_from(end).unwrap_or_default());
            self.wait(AwaitedEffect::Ends { actor, end }, within_ms);
        }
        let has_waited = self.ends > 0 && more_ms == 0 && !std::mem::take(&mut self.may_leave);
        // A worker may notice an end as late as a new job.
        let within_ms = if has_waited { SETTLE_MS + self.limit(POLL_MS) } else { within_ms };
        if !globs.is_empty() {
            self.wait(AwaitedEffect::Each { folder: QUEUE.to_owned(), globs }, within_ms);
        }
    }

    /// Looks at the queue when all is at rest.
    pub(crate) fn look_at_rest(&mut self) {
        let after_ms = if std::mem::take(&mut self.fails) { REASON_MS } else { REST_MS };
        self.look(REST, after_ms);
    }

    /// Starts a worker for the jobs so far, waits for all of them, and looks.
    pub(crate) fn run_all(&mut self) -> usize {
        self.look_before();
        let session = self.start();
        self.wait_ready();
        self.wait_for_ends();
        self.look_at_rest();
        session
    }

    /// Puts another plain job, waits for its end, and looks.
    pub(crate) fn run_one_more(&mut self) {
        self.put_plain();
        self.wait_for_ends();
        self.look_at_rest();
    }

    /// Kills a worker.
    pub(crate) fn kill(&mut self, session: usize) {
        self.step(session, Act::Signal("KILL".to_owned()));
    }

    /// Kills the last worker and returns the plan.
    pub(crate) fn done(mut self) -> Plan {
        let session = self.session();
        self.kill(session);
        self.plan
    }
}

/// Effect: the program of a job has started, or ended.
pub(crate) fn performs(draft: &Draft, ended: bool) -> AwaitedEffect {
    AwaitedEffect::Performs { actor: RUNNER.to_owned(), holds: format!("\"{}\"", draft.tag), ended }
}

/// Script of a program that takes this long, ms.
pub(crate) fn sleep(ms: u64) -> Vec<ActorStep> {
    vec![ActorStep::Sleep { ms }]
}

/// Script of a program that reports its standard input.
pub(crate) fn looks_at_stdin() -> Vec<ActorStep> {
    vec![ActorStep::Look(Sight::Stdin)]
}
