//! Runs plans: opens sessions, writes, waits, observes, and returns a transcript.
//!
//! The lab knows bytes, frames and time. It asks the boundary for the meaning of a frame only in order to stop waiting
//! early.

mod acts;
mod capture;
mod effects;
mod flood;
mod idle_processes;
mod play;
mod pump;
mod replies;
#[cfg(test)]
pub(crate) mod tests;
mod time;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::data::blame::{HarnessFault, Unprepared};
use crate::data::budget::Budget;
use crate::data::payload::Vars;
use crate::data::plan::{Act, Fixture, Plan, Step};
use crate::data::transcript::{Awaited, Event, EventKind, Secrets, Transcript};
use crate::drive::fixture::{ActorExe, Fixtures, now_us};
use crate::drive::peer::Peer;
use crate::drive::transport::inbox::micros;
use crate::drive::transport::{Connection, Log, sleeps_on};

pub(crate) use capture::CapturedValue;
pub use idle_processes::{IdleProcess, Pool};

/// Size of input that may keep a slow peer busy for long, bytes.
const LARGE_BYTES: usize = 256 << 10;

/// Divisor of a connection's life that limits a generated conversation. Such a conversation may have any length, and
/// stops if the peer is slow or loses reply after reply.
const GENERATED_SHARE: u32 = 24;

/// Reason why a conversation did not finish. An unfinished conversation shows nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unfinished {
    /// The user asked to stop.
    Interrupted,
    /// A fixture or folder could not be made, or a variable of the plan has no value.
    Fault(HarnessFault),
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted => f.write_str("interrupted"),
            Self::Fault(fault) => fault.fmt(f),
        }
    }
}

impl std::error::Error for Unfinished {}

impl From<HarnessFault> for Unfinished {
    fn from(fault: HarnessFault) -> Self {
        Self::Fault(fault)
    }
}

/// Environment for running plans against one peer.
pub struct Lab<'a> {
    /// The peer.
    pub peer: &'a Peer,
    /// Limits of one session.
    pub budget: Budget,
    /// Binary that plays actors.
    pub actor_exe: &'a ActorExe,
    /// Folder for temporary folders of sessions and fixtures.
    pub scratch: &'a Path,
    /// Factor of `--timeout-scale`.
    pub timeout_scale: f64,
}

/// Recorder of one session's events on the transcript's clock.
struct SessionRecorder<'a> {
    events: &'a mut Vec<Event>,
    session: usize,
    offset_us: i64,
    frames: &'a mut u64,
    first_us: &'a mut Option<u64>,
}

impl Log for SessionRecorder<'_> {
    fn record(&mut self, at_us: u64, kind: EventKind) {
        if let EventKind::Received { .. } | EventKind::HttpReply { .. } = &kind {
            self.first_us.get_or_insert(at_us);
        }
        if let EventKind::Received { bytes } = &kind {
            *self.frames += memchr::memchr_iter(b'\n', &bytes.0).count() as u64;
        }
        self.events.push(Event {
            at_us: at_us.saturating_add_signed(self.offset_us),
            session: self.session,
            kind,
        });
    }
}

/// State of one running session.
#[derive(Default)]
struct LiveSession {
    /// Set once a start was tried.
    opened: bool,
    /// Set if nothing is awaited any more: a deadline passed twice, or the peer has gone.
    over: bool,
    /// Offset from the connection's clock to the transcript's.
    offset_us: i64,
    /// Time at which the connection ended, on its own clock.
    ended_us: u64,
    /// Time of the first output, which shows that the peer is ready.
    first_us: Option<u64>,
    /// Complete frames received so far.
    frames: u64,
    /// Numbers of the frames that answer nothing, in order.
    asides: Vec<u64>,
    /// Number of frames already classified as aside or not.
    sorted: u64,
    /// Place of the first frame not classified yet.
    sorted_at: replies::FrameStart,
    /// Replies to asides that are not written yet.
    replies_held: Vec<Vec<u8>>,
    /// Number of frames awaited so far.
    frames_awaited: u64,
    /// Number of frames up to which all awaited answers have come, and the place of the next frame.
    frames_answered: u64,
    answered_at: replies::FrameStart,
    /// Number of lines written, which bounds the number of due frames.
    lines_sent: u64,
    /// Bytes queued since no answer was due.
    bytes_pending: usize,
    /// Number of line feeds among the pending bytes.
    lines_pending: usize,
    /// Set if a wait was cut short: the next canary must show if a reply was lost.
    short_of_frames: bool,
    /// Number of consecutive steps that lacked their reply when their canary was answered.
    silences: u32,
    temp_dir: Option<PathBuf>,
}

impl LiveSession {
    /// Recorder of the events of this session.
    fn recorder<'a>(&'a mut self, session: usize, events: &'a mut Vec<Event>) -> SessionRecorder<'a> {
        SessionRecorder {
            events,
            session,
            offset_us: self.offset_us,
            frames: &mut self.frames,
            first_us: &mut self.first_us,
        }
    }
}

impl Lab<'_> {
    /// Multiplies all time limits, as `--timeout-scale` does.
    pub(crate) fn stretch(&mut self, times: f64) {
        self.timeout_scale *= times;
        self.budget = std::mem::take(&mut self.budget).scaled(times);
    }

    /// Runs `plan` and returns its transcript, with secrets replaced.
    ///
    /// # Errors
    /// See [`Unfinished`].
    pub fn execute(&self, check: &str, plan: &Plan) -> Result<Transcript, Unfinished> {
        self.execute_shared(check, &Arc::new(plan.clone()))
    }

    /// Runs a plan as [`Lab::execute`] does, without copying it for the transcript.
    ///
    /// # Errors
    /// As [`Lab::execute`].
    pub fn execute_shared(&self, check: &str, plan: &Arc<Plan>) -> Result<Transcript, Unfinished> {
        self.execute_in(check, plan, None).map(|(transcript, _)| transcript)
    }

    /// Runs a plan as [`Lab::execute_shared`] does, in an already opened process. Returns the process if another
    /// conversation may follow in it. The plan begins with the steps that opened the process.
    ///
    /// # Errors
    /// As [`Lab::execute`].
    pub(crate) fn execute_in(
        &self,
        check: &str,
        plan: &Arc<Plan>,
        kept: Option<IdleProcess>,
    ) -> Result<(Transcript, Option<IdleProcess>), Unfinished> {
        // A failure after the user asked to stop is a consequence of that.
        let stopped = |error| if self.budget.is_interrupted() { Unfinished::Interrupted } else { error };
        self.hold(check, plan, kept).map_err(stopped)
    }

    fn hold(
        &self,
        check: &str,
        plan: &Arc<Plan>,
        kept: Option<IdleProcess>,
    ) -> Result<(Transcript, Option<IdleProcess>), Unfinished> {
        let needs_fixtures = plan.needs_folder();
        let opening = if self.peer.is_process() { plan.opening().unwrap_or_default() } else { &[] };
        let mut kept = kept.filter(|kept| kept.opening() == opening);
        let folder = kept.as_mut().and_then(|kept| kept.folder.take());
        let folder = if folder.is_some() {
            folder
        } else if self.peer.is_process() || needs_fixtures {
            Some(tempfile::Builder::new().prefix("s").tempdir_in(self.scratch).map_err(|error| {
                let folder = self.scratch.display();
                HarnessFault::from(format!("cannot make a temporary folder in {folder}: {error}"))
            })?)
        } else {
            None
        };
        let mut fixtures = match (&folder, needs_fixtures) {
            (Some(folder), true) => Some(Fixtures::start(&plan.fixtures, folder.path(), self.actor_exe)?),
            _ => None,
        };
        let mut run = PlanRun {
            lab: self,
            plan,
            begun: Instant::now(),
            begun_us: now_us(),
            is_watched: self.peer.is_process()
                && plan
                    .fixtures
                    .iter()
                    .any(|fixture| matches!(fixture, Fixture::Folder { watched: true, .. })),
            is_beside: self.peer.is_process() && plan.steps.iter().any(|step| step.act.is_beside()),
            run: self.run_word(),
            // Most steps write once and receive once.
            events: Vec::with_capacity(plan.steps.len() * 2),
            vars: fixtures.as_ref().map(Fixtures::vars).unwrap_or_default(),
            secrets: self.peer.secrets(),
            live: Vec::new(),
            connections: Vec::new(),
            captured: None,
            complete: false,
            folder: folder.as_ref().map(tempfile::TempDir::path),
        };
        run.live.resize_with(plan.sessions.len(), LiveSession::default);
        run.connections.resize_with(plan.sessions.len(), || None);
        let mut begun = kept.map(|kept| run.resume(kept));
        let done = if begun.is_some() { opening.len() } else { 0 };
        let mut outcome = Ok(());
        for (index, step) in plan.steps.iter().enumerate().skip(done) {
            if !opening.is_empty() && index == opening.len() && begun.is_none() {
                begun = Some(run.begun(opening));
            }
            if self.budget.is_interrupted() {
                break;
            }
            outcome = run.step(index, step, fixtures.as_mut());
            if outcome.is_err() {
                break;
            }
            run.observe(step.session, fixtures.as_mut())?;
            if run.complete {
                break;
            }
        }
        let is_whole = outcome.is_ok() && !self.budget.is_interrupted();
        let kept = begun.filter(|_| is_whole).and_then(|begun| run.keep(begun));
        for session in 0..plan.sessions.len() {
            run.end(session);
            run.observe(session, fixtures.as_mut())?;
        }
        if let Some(mut fixtures) = fixtures
            && let Some(session) = plan.sessions.len().checked_sub(1)
        {
            run.note(session, fixtures.finish());
        }
        outcome?;
        if self.budget.is_interrupted() {
            return Err(Unfinished::Interrupted);
        }
        let PlanRun { events, secrets, .. } = run;
        let mut transcript = Transcript {
            boundary: self.peer.boundary.name().to_owned(),
            check: check.to_owned(),
            facts: Arc::new(self.peer.facts.clone()),
            plan: Arc::clone(plan),
            timeout_scale: self.timeout_scale,
            events,
        };
        transcript.redact(secrets);
        let kept = kept.map(|mut kept| {
            kept.folder = folder;
            kept
        });
        Ok((transcript, kept))
    }

    /// Word that is unique among all conversations with processes, across runs of the harness.
    fn run_word(&self) -> String {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        if !self.peer.is_process() {
            return "run".to_owned();
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        format!("{:x}-{:x}", since.as_micros(), RUNS.fetch_add(1, Ordering::Relaxed))
    }
}

struct PlanRun<'a> {
    lab: &'a Lab<'a>,
    plan: &'a Plan,
    begun: Instant,
    /// The moment of `begun` on the clock that processes share.
    begun_us: u64,
    /// Set if a folder is watched: events outside the sessions have times of their own.
    is_watched: bool,
    /// Set if a step acts outside a real process, whose clock does not count that time.
    is_beside: bool,
    /// Word that is unique to this conversation.
    run: String,
    events: Vec<Event>,
    vars: Vars,
    secrets: Secrets,
    live: Vec<LiveSession>,
    /// Connection of each session.
    connections: Vec<Option<Box<dyn Connection>>>,
    /// Value captured last.
    captured: Option<CapturedValue>,
    /// Set if the next steps need a value that no reply had, or that is no longer needed.
    complete: bool,
    folder: Option<&'a Path>,
}

impl PlanRun<'_> {
    /// True if a generated conversation has used up its time. Plans that set their own time are exempt.
    fn is_drawn_out(&self) -> bool {
        let is_planned = || self.plan.steps.iter().any(|step| step.allow_ms > 0);
        self.plan.by_model
            && !is_planned()
            && self.begun.elapsed()
                > self.lab.budget.connection / GENERATED_SHARE + self.waits() + self.start_ups()
    }

    /// Opens a session at its first step; returns false if it could not be started.
    fn open(&mut self, session: usize) -> Result<bool, HarnessFault> {
        if self.live[session].opened {
            return Ok(self.connections[session].is_some());
        }
        self.live[session].opened = true;
        let temp_dir = match self.folder {
            Some(folder) => {
                let path = folder.join(format!("tmp{session}"));
                std::fs::create_dir_all(&path)
                    .map_err(|error| format!("cannot make the folder {}: {error}", path.display()))?;
                path
            }
            None => PathBuf::new(),
        };
        let mut spec = self.plan.sessions[session].clone();
        // Lets a plan put a folder in front of `PATH` without knowing its value.
        let search_path = Vars::from([("PATH".to_owned(), self.lab.peer.search_path())]);
        for value in spec.placeholders.values_mut().chain(spec.env.values_mut()).chain(&mut spec.folder) {
            *value = substitute(&substitute(value, &self.vars), &search_path);
        }
        if let Some(folder) = self.folder.filter(|_| self.lab.peer.needs_folder(&spec)) {
            let path = folder.join(format!("work{session}"));
            std::fs::create_dir_all(&path)
                .map_err(|error| format!("cannot make the folder {}: {error}", path.display()))?;
            spec.folder = Some(path.to_string_lossy().into_owned());
        }
        let bytes_max = self.lab.budget.stdout_bytes_max;
        let budget = Budget {
            connection: self.life(session),
            stdout_bytes_max: flood::room(self.plan, session, &self.vars, bytes_max),
            ..self.lab.budget.clone()
        };
        let last_us = self.events.last().map_or(0, |event| event.at_us);
        let live = &mut self.live[session];
        live.offset_us =
            if self.lab.peer.is_process() { micros(self.begun.elapsed()) } else { last_us }.cast_signed();
        let mut recorder = live.recorder(session, &mut self.events);
        match self.lab.peer.open(&spec, &temp_dir, &self.lab.actor_exe.program, &budget, &mut recorder) {
            Ok(connection) => {
                if self.lab.peer.is_process() {
                    // The connection's clock began later. Outside events are on the conversation's clock.
                    let since = micros(self.begun.elapsed()).saturating_sub(connection.now_us());
                    self.live[session].offset_us = since.cast_signed();
                }
                self.connections[session] = Some(connection);
                self.live[session].temp_dir = Some(temp_dir);
                Ok(true)
            }
            Err(Unprepared::Peer(error)) => {
                recorder.record(0, EventKind::StartFailed { error: error.into() });
                Ok(false)
            }
            Err(Unprepared::Machine(fault)) => Err(fault),
        }
    }

    fn now_us(&self, session: usize) -> u64 {
        let ended_us = self.live[session].ended_us;
        self.connections[session].as_ref().map_or(ended_us, |connection| connection.now_us())
    }

    fn record(&mut self, session: usize, kind: EventKind) {
        let mut at_us = self.now_us(session).saturating_add_signed(self.live[session].offset_us);
        if self.connections[session].is_none() {
            // The connection's clock stands still.
            let last_us = self.events.last().map_or(0, |event| event.at_us);
            let now_us =
                if self.is_beside || self.is_watched { micros(self.begun.elapsed()) } else { last_us };
            at_us = at_us.max(last_us).max(now_us);
        }
        self.events.push(Event { at_us, session, kind });
    }

    /// Records that something was awaited in vain since `since_us` on the session's clock.
    fn deadline_passed(&mut self, session: usize, awaited: Awaited, since_us: u64) {
        let waited_ms = self.now_us(session).saturating_sub(since_us) / 1_000;
        let gives_up = self.live[session].first_us.is_none() && self.begins_plainly(session);
        let slept =
            self.connections[session].as_ref().is_some_and(|connection| sleeps_on(connection.as_ref()));
        self.record(session, EventKind::DeadlinePassed { awaited, waited_ms, slept });
        if gives_up {
            self.lab.peer.pace.gave_up(&self.plan.sessions[session].command);
        }
    }

    /// True if the peer's first output in this session comes as soon as it is ready.
    fn shows_start(&self, session: usize) -> bool {
        self.plan.sessions[session].shows_start.unwrap_or_else(|| self.begins_plainly(session))
    }

    /// True if the first step of a session only asks for a quick answer.
    fn begins_plainly(&self, session: usize) -> bool {
        let first = self.plan.steps.iter().find(|step| step.session == session);
        first.is_some_and(|step| is_plain(step) || matches!(step.act, Act::Play { .. }))
    }

    fn with_log(&mut self, session: usize, act: impl FnOnce(&mut dyn Connection, &mut dyn Log)) {
        if let Some(connection) = self.connections[session].as_mut() {
            act(connection.as_mut(), &mut self.live[session].recorder(session, &mut self.events));
        }
    }

    fn end(&mut self, session: usize) {
        self.with_log(session, |connection, log| connection.finish(log));
        flood::cut(&mut self.events, self.lab.budget.flood_bytes_kept);
        let ended_us = self.now_us(session);
        self.saw_start_up(session);
        self.connections[session] = None;
        let live = &mut self.live[session];
        live.ended_us = ended_us;
        live.over = true;
    }

    /// Records the start-up time of a session for the pace.
    fn saw_start_up(&self, session: usize) {
        if let Some(first_us) = self.live[session].first_us.or_else(|| self.asked_in_us(session))
            && self.connections[session].is_some()
            && self.shows_start(session)
        {
            let took = Duration::from_micros(first_us);
            self.lab.peer.pace.saw_start_up(&self.plan.sessions[session].command, took);
        }
    }

    /// Time in which a silent peer did everything it had to ask, if the plan takes no time of its own. The start took
    /// no longer.
    fn asked_in_us(&self, session: usize) -> Option<u64> {
        let is_quick = self.plan.sessions[session].shows_start == Some(true);
        let has_ended =
            |event: &Event| event.session == session && matches!(event.kind, EventKind::Exited { .. });
        (is_quick && self.events.iter().any(has_ended)).then(|| self.now_us(session))
    }

    fn observe(&mut self, session: usize, fixtures: Option<&mut Fixtures>) -> Result<(), HarnessFault> {
        if let Some(fixtures) = fixtures {
            let happened = fixtures.happened()?;
            self.note(session, happened);
        }
        Ok(())
    }

    /// Records events outside the session. If folders are watched, events keep their times on the clock that processes
    /// share and are sorted by them.
    fn note(&mut self, session: usize, happened: Vec<(u64, EventKind)>) {
        if !self.is_watched {
            happened.into_iter().for_each(|(_, kind)| self.record(session, kind));
            return;
        }
        for (at_us, kind) in happened {
            self.events.push(Event { at_us: at_us.saturating_sub(self.begun_us), session, kind });
        }
        self.events.sort_by_key(|event| event.at_us);
    }
}

/// True if the step only asks for a quick answer. For a one-shot peer the answer is its exit.
fn is_plain(step: &Step) -> bool {
    step.canary && (step.allow_ms == 0 || step.act == Act::Finish)
}

/// Replaces `{{name}}` by the variable of that name; unknown names stay.
fn substitute(text: &str, vars: &Vars) -> String {
    let mut out = text.to_owned();
    for (name, value) in vars {
        out = out.replace(&format!("{{{{{name}}}}}"), value);
    }
    out
}
