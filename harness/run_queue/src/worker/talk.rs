//! What conversations with workers are built of.

use std::collections::BTreeMap;

use peerproof_engine::face::Aim;
use peerproof_engine::facts::Facts;
use peerproof_engine::payload::{Payload, Vars};
use peerproof_engine::plan::{
    Act, ActorStep, Effect, Fixture, PathKind, Placing, Plan, Session, Sight, Step,
};

use super::{BEFORE, IN_RUN, QUEUE, REST, RUNNER, limit};
use crate::FOLDERS;
use crate::config::{ATTEMPTS, POLL_MS, RETRY_MS};
use crate::job::{self, Draft, PROGRAM, What, lasts_ms};

/// How long a worker may take to start, ms.
pub const START_MS: u64 = 30_000;

/// How long is waited until a worker has touched anything, and then until a program has been started, ms: what does nothing
/// by then shows in what follows, for which there is time as well.
pub const SIGN_MS: u64 = 10_000;

/// How long is waited for jobs beside what they and the worker's pauses take, ms.
pub const SETTLE_MS: u64 = 4_000;

/// A way to the folder of the fixtures, with a blank in it.
pub const BLANK: &str = "a b";

/// Time for a job to be moved when its program has ended, ms.
const REST_MS: u64 = 200;

/// Time for a reason, ms.
pub const REASON_MS: u64 = 1_000;

/// A conversation that is being made.
pub struct Talk {
    /// The plan.
    pub plan: Plan,
    facts: Facts,
    command: String,
    aim: serde_json::Value,
    /// Drafts made.
    drafts: usize,
    /// Jobs whose end is to be awaited.
    awaited: Vec<String>,
    /// Ends of programs that have to come until then.
    ends: u64,
    /// Something lies in other folders than the inbox from the start.
    is_strewn: bool,
    /// Jobs are awaited that need not be run.
    may_leave: bool,
    /// The folder of the program, as workers are told it.
    runner_in: &'static str,
    /// What they may take, ms.
    takes_ms: u64,
    /// A job fails: reasons are to be awaited.
    fails: bool,
}

impl Talk {
    /// One about `clause` with workers of this command.
    pub fn new(facts: &Facts, command: &str, clause: &str) -> Self {
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
    pub fn draft(&mut self) -> Draft {
        self.drafts += 1;
        Draft::new(self.drafts)
    }

    /// Workers are told of the program by a path with a blank in it.
    pub fn run_behind_a_blank(&mut self) -> &mut Self {
        let what = PathKind::Link { to: ".".to_owned() };
        self.plan.fixtures.push(Fixture::Path { name: BLANK.to_owned(), what });
        self.runner_in = "{{folder}}/a b";
        self
    }

    /// Another worker, which is not started yet.
    pub fn worker(&mut self) -> usize {
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
    pub fn limit(&self, name: &str) -> u64 {
        limit(&self.facts, name)
    }

    /// What all that was put may take, ms.
    pub fn takes(&mut self) -> u64 {
        self.awaited.clear();
        SETTLE_MS + std::mem::take(&mut self.takes_ms)
    }

    /// Adds a step.
    pub fn step(&mut self, session: usize, act: Act) -> &mut Step {
        self.plan.steps.push(Step { session, ..Step::new(act) });
        let last = self.plan.steps.len() - 1;
        &mut self.plan.steps[last]
    }

    fn session(&self) -> usize {
        self.plan.sessions.len().saturating_sub(1)
    }

    /// Puts bytes somewhere below the folder of the fixtures.
    pub fn place(&mut self, path: Payload, content: Payload) {
        let (session, aim) = (self.session(), self.aim.clone());
        let is_waiting = |bytes: Vec<u8>| bytes.starts_with(b"queue/inbox/");
        self.is_strewn |= !path.expand(&Vars::new()).is_ok_and(is_waiting);
        self.step(session, Act::Put { path, content, by: Placing::Rename }).expect = aim;
    }

    /// Puts a job into the inbox and waits for its end later.
    pub fn put(&mut self, draft: &Draft) {
        let content = Payload::text(draft.text());
        self.put_as(draft, content);
    }

    /// Puts a plain job.
    pub fn put_plain(&mut self) {
        let job = self.draft();
        self.put(&job);
    }

    /// Puts a job with other content.
    pub fn put_as(&mut self, draft: &Draft, content: Payload) {
        self.put_unseen(draft, content);
        self.expect_end(draft);
    }

    /// The same where the name does not tell of the end.
    pub fn put_unseen(&mut self, draft: &Draft, content: Payload) {
        let name = draft.name.expand(&Vars::new()).unwrap_or_default();
        let is_plain = name.len() <= 100 && !name.iter().any(u8::is_ascii_control);
        let has_to_run = is_plain
            && content.len(&Vars::new()) < 1 << 20
            && matches!(job::read(&content.expand(&Vars::new()).unwrap_or_default()), What::Job(_));
        let path = Payload::text(format!("{QUEUE}/inbox/")).then(draft.name.clone());
        self.place(path.merged(), content);
        self.expect_run(draft, has_to_run);
    }

    /// Waits for the end of a job later.
    pub fn expect_end(&mut self, draft: &Draft) {
        let glob = format!("{{done,failed}}/**/*{}*", draft.tag);
        if !self.awaited.contains(&glob) {
            self.awaited.push(glob);
        }
    }

    /// Time for a job; the ends of its program are awaited where it has to run.
    pub fn expect_run(&mut self, draft: &Draft, has_to_run: bool) {
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

    /// Jobs may fail: their reasons are awaited.
    pub fn may_fail(&mut self) {
        self.fails = true;
    }

    /// Looks at the queue.
    pub fn look(&mut self, label: &str, after_ms: u64) {
        let session = self.session();
        let act = Act::Look { label: label.to_owned(), path: Payload::text(QUEUE), after_ms };
        self.step(session, act);
    }

    /// Looks before anything is started.
    pub fn look_before(&mut self) {
        self.look(BEFORE, 0);
    }

    /// Starts a worker.
    pub fn start(&mut self) -> usize {
        let session = self.worker();
        self.step(session, Act::Flush);
        session
    }

    /// Waits for something.
    pub fn wait(&mut self, what: Effect, within_ms: u64) {
        let session = self.session();
        self.step(session, Act::Await { what, within_ms });
    }

    /// Waits until the program of a job has been started, or has ended.
    pub fn wait_for(&mut self, draft: &Draft, ended: bool, within_ms: u64) {
        self.wait(performs(draft, ended), within_ms);
    }

    /// Waits until a program was started at all: the worker is ready.
    pub fn wait_ready(&mut self) {
        let folder = QUEUE.to_owned();
        if !self.is_strewn {
            self.wait(Effect::Path { folder, glob: "{processing,done,failed}/**/*".to_owned() }, SIGN_MS);
        }
        let within_ms = if self.is_strewn { START_MS } else { SIGN_MS };
        self.wait(Effect::Starts { actor: RUNNER.to_owned(), start: 0 }, within_ms);
    }

    /// Looks twice while a program runs.
    pub fn look_in_run(&mut self) {
        self.look(IN_RUN, 0);
        self.look(IN_RUN, 0);
    }

    /// Waits for the ends of all jobs so far.
    pub fn wait_for_ends(&mut self) {
        self.wait_for_ends_within(0);
    }

    /// The same, so much longer, ms.
    pub fn wait_for_ends_within(&mut self, more_ms: u64) {
        let globs = std::mem::take(&mut self.awaited);
        let within_ms = SETTLE_MS + std::mem::take(&mut self.takes_ms) + more_ms;
        // What holds the name of a job in `done/` may be its result.
        if let Some(end) = self.ends.checked_sub(1) {
            let (actor, end) = (RUNNER.to_owned(), usize::try_from(end).unwrap_or_default());
            self.wait(Effect::Ends { actor, end }, within_ms);
        }
        let has_waited = self.ends > 0 && more_ms == 0 && !std::mem::take(&mut self.may_leave);
        // An end may be noticed as late as a job.
        let within_ms = if has_waited { SETTLE_MS + self.limit(POLL_MS) } else { within_ms };
        if !globs.is_empty() {
            self.wait(Effect::Each { folder: QUEUE.to_owned(), globs }, within_ms);
        }
    }

    /// Looks when all is at rest.
    pub fn look_at_rest(&mut self) {
        let after_ms = if std::mem::take(&mut self.fails) { REASON_MS } else { REST_MS };
        self.look(REST, after_ms);
    }

    /// Starts a worker on what was put, waits for all of it, and looks.
    pub fn run_all(&mut self) -> usize {
        self.look_before();
        let session = self.start();
        self.wait_ready();
        self.wait_for_ends();
        self.look_at_rest();
        session
    }

    /// Puts another plain job, waits for its end, and looks.
    pub fn run_one_more(&mut self) {
        self.put_plain();
        self.wait_for_ends();
        self.look_at_rest();
    }

    /// Ends a worker, in whatever state.
    pub fn kill(&mut self, session: usize) {
        self.step(session, Act::Signal("KILL".to_owned()));
    }

    /// The plan, whose last worker is ended.
    pub fn done(mut self) -> Plan {
        let session = self.session();
        self.kill(session);
        self.plan
    }
}

/// The program of a job has been started, or has ended.
pub fn performs(draft: &Draft, ended: bool) -> Effect {
    Effect::Performs { actor: RUNNER.to_owned(), holds: format!("\"{}\"", draft.tag), ended }
}

/// A program that takes so long, ms.
pub fn sleep(ms: u64) -> Vec<ActorStep> {
    vec![ActorStep::Sleep { ms }]
}

/// A program that looks at its standard input.
pub fn looks_at_stdin() -> Vec<ActorStep> {
    vec![ActorStep::Look(Sight::Stdin)]
}
