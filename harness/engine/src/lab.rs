//! The lab carries out plans: it opens sessions, writes, waits, observes, and gives back a transcript.
//!
//! It knows bytes, frames and time. What a frame means it asks the boundary, and only to stop waiting early.

mod capture;
mod flood;
mod play;
#[cfg(test)]
mod tests;
mod time;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::boundary::Moment;
use crate::budget::Budget;
use crate::fixture::{ActorExe, Fixtures};
use crate::payload::{Payload, Vars};
use crate::peer::Peer;
use crate::plan::{Act, Plan, Step};
use crate::transcript::{Awaited, Event, Kind, Secrets, Transcript};
use crate::transport::in_process::UNIX_MS_AT_START;
use crate::transport::{Connection, Log, Pumped, Until};

/// Input of this size can keep a slow peer busy for long, bytes.
const LARGE_BYTES: usize = 256 << 10;
/// How much longer a busy peer may take over large input, as a part of the time it has anyway.
const BUSY_FACTOR: f64 = 1.5;
/// How often it is looked at whether the peer still works.
const BUSY_SLICE: Duration = Duration::from_secs(2);
/// Part of a processor that counts as working; the machine may be loaded.
const BUSY_SHARE: f64 = 0.1;

/// Part of the life of a connection that a generated conversation may take: it is of any length, and goes no further
/// with a peer that is slow or loses one reply after the other.
const GENERATED_SHARE: u32 = 24;

/// Why a conversation was not had to its end: the user asked to stop.
pub const INTERRUPTED: &str = "interrupted";

/// What is needed to carry out plans against one peer.
pub struct Lab<'a> {
    /// The peer.
    pub peer: &'a Peer,
    /// What may be spent on one session.
    pub budget: Budget,
    /// The binary that plays actors.
    pub actor_exe: &'a ActorExe,
    /// Folder for temporary folders of sessions and fixtures.
    pub scratch: &'a Path,
    /// `--timeout-scale`.
    pub timeout_scale: f64,
}

/// Events of one session on the clock of the transcript.
struct Recorder<'a> {
    events: &'a mut Vec<Event>,
    session: usize,
    offset_us: u64,
    frames: &'a mut u64,
    first_us: &'a mut Option<u64>,
}

impl Log for Recorder<'_> {
    fn record(&mut self, at_us: u64, kind: Kind) {
        if let Kind::Received { .. } | Kind::HttpReply { .. } = &kind {
            self.first_us.get_or_insert(at_us);
        }
        if let Kind::Received { bytes } = &kind {
            *self.frames += memchr::memchr_iter(b'\n', &bytes.0).count() as u64;
        }
        self.events.push(Event { at_us: self.offset_us + at_us, session: self.session, kind });
    }
}

/// The running side of one session.
#[derive(Default)]
struct Live {
    connection: Option<Box<dyn Connection>>,
    /// A start was tried.
    opened: bool,
    /// No further waiting: a deadline passed twice, or the peer is gone.
    over: bool,
    offset_us: u64,
    /// The time of its connection when that ended.
    ended_us: u64,
    /// When the first thing came from the peer: since then it is known to be ready.
    first_us: Option<u64>,
    /// Complete frames received so far.
    frames: u64,
    /// Frames asked for so far.
    frames_awaited: u64,
    /// Frames before which every answer has come that was waited for by name.
    frames_answered: u64,
    /// Lines written so far: no more frames than these can be due.
    lines_sent: u64,
    /// Bytes queued since nothing was due.
    bytes_pending: usize,
    /// Line feeds among them.
    lines_pending: usize,
    /// A wait was cut short: the next canary has to tell whether a reply was lost.
    short_of_frames: bool,
    temp_dir: Option<PathBuf>,
}

impl Lab<'_> {
    /// Carries out `plan` and gives back what happened, with secrets replaced.
    ///
    /// # Errors
    /// One sentence about a fault of the harness or its machine: a fixture could not be set up, a folder not made, a
    /// variable of the plan has no value. Or [`INTERRUPTED`]: a conversation that was cut short shows nothing.
    pub fn execute(&self, check: &str, plan: &Plan) -> Result<Transcript, String> {
        self.execute_shared(check, &Arc::new(plan.clone()))
    }

    /// As [`Lab::execute`], without a copy of the plan for the transcript.
    ///
    /// # Errors
    /// Those of [`Lab::execute`].
    pub fn execute_shared(&self, check: &str, plan: &Arc<Plan>) -> Result<Transcript, String> {
        let needs_fixtures = plan.needs_folder();
        let folder = if self.peer.is_process() || needs_fixtures {
            Some(tempfile::Builder::new().prefix("s").tempdir_in(self.scratch).map_err(|error| {
                format!("cannot make a temporary folder in {}: {error}", self.scratch.display())
            })?)
        } else {
            None
        };
        let mut fixtures = match (&folder, needs_fixtures) {
            (Some(folder), true) => Some(Fixtures::start(&plan.fixtures, folder.path(), self.actor_exe)?),
            _ => None,
        };
        let mut run = Run {
            lab: self,
            plan,
            begun: Instant::now(),
            run: self.run_word(),
            // A step writes, and something is received.
            events: Vec::with_capacity(plan.steps.len() * 2),
            vars: fixtures.as_ref().map(Fixtures::vars).unwrap_or_default(),
            secrets: self.peer.secrets(),
            live: Vec::new(),
            folder: folder.as_ref().map(tempfile::TempDir::path),
        };
        run.live.resize_with(plan.sessions.len(), Live::default);
        let mut outcome = Ok(());
        for (index, step) in plan.steps.iter().enumerate() {
            if self.budget.is_interrupted() {
                outcome = Err(INTERRUPTED.to_owned());
                break;
            }
            outcome = run.step(index, step, fixtures.as_mut());
            if outcome.is_err() {
                break;
            }
            run.observe(step.session, fixtures.as_mut())?;
        }
        for session in 0..plan.sessions.len() {
            run.end(session);
            run.observe(session, fixtures.as_mut())?;
        }
        if let Some(fixtures) = fixtures {
            fixtures.stop();
        }
        outcome?;
        if self.budget.is_interrupted() {
            return Err(INTERRUPTED.to_owned());
        }
        let Run { events, secrets, .. } = run;
        let mut transcript = Transcript {
            boundary: self.peer.boundary.name().to_owned(),
            check: check.to_owned(),
            facts: Arc::new(self.peer.facts.clone()),
            plan: Arc::clone(plan),
            timeout_scale: self.timeout_scale,
            events,
        };
        transcript.redact(secrets);
        Ok(transcript)
    }

    /// A word that no other conversation with a process has, in this or another run of the harness.
    fn run_word(&self) -> String {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        if !self.peer.is_process() {
            return "run".to_owned();
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        format!("{:x}-{:x}", since.as_micros(), RUNS.fetch_add(1, Ordering::Relaxed))
    }
}

struct Run<'a> {
    lab: &'a Lab<'a>,
    plan: &'a Plan,
    begun: Instant,
    /// A word that no other conversation has.
    run: String,
    events: Vec<Event>,
    vars: Vars,
    secrets: Secrets,
    live: Vec<Live>,
    folder: Option<&'a Path>,
}

impl Run<'_> {
    fn step(&mut self, index: usize, step: &Step, fixtures: Option<&mut Fixtures>) -> Result<(), String> {
        let session = step.session;
        // What a peer started can be looked at when it has ended itself.
        if !self.open(session)? && !matches!(step.act, Act::ProbeActor { .. }) {
            return Ok(());
        }
        match &step.act {
            Act::Send { payload, chunking, await_frames } => {
                if self.live[session].over || self.is_drawn_out() {
                    return Ok(());
                }
                let mut bytes = payload.expand(&self.vars)?;
                let mut written = payload.clone();
                let is_one_body = step.http.as_ref().is_some_and(|how| !how.is_raw());
                let moment = Moment { is_one_body, ..self.moment(session, index) };
                if let Some(sealed) = self.lab.peer.boundary.seal(&self.lab.peer.facts, &bytes, &moment) {
                    self.record(session, Kind::Clock { unix_ms: moment.unix_ms });
                    written = Payload::from_bytes(&sealed);
                    bytes = sealed;
                }
                let (length, lines) = (bytes.len(), memchr::memchr_iter(b'\n', &bytes).count());
                let kind = Kind::Sent { step: index, payload: written };
                self.record(session, kind);
                let live = &mut self.live[session];
                live.bytes_pending += length;
                live.lines_pending += lines;
                live.lines_sent += lines as u64;
                live.frames_awaited += u64::from(*await_frames);
                if let Some(connection) = live.connection.as_mut() {
                    connection.queue_step(index, bytes, *chunking, step.http.as_ref());
                }
                if step.await_answers > 0 {
                    self.await_answers(index, step);
                } else if *await_frames > 0 {
                    self.await_reply(index, step);
                    if let Some(capture) = &step.capture
                        && self.capture(session, capture).is_none()
                    {
                        // Later steps need the value: this conversation can go no further.
                        self.live[session].over = true;
                    }
                }
            }
            Act::Finish => {
                if let Some(connection) = self.live[session].connection.as_mut() {
                    connection.close_stdin();
                }
                let start = self.until_ready(session);
                self.await_end(session, self.stretched(step.allow_ms), start);
                self.end(session);
            }
            Act::CloseStdin => {
                if let Some(connection) = self.live[session].connection.as_mut() {
                    connection.close_stdin();
                }
            }
            Act::Signal(name) => {
                self.with_log(session, |connection, log| connection.signal(name, log));
                self.live[session].bytes_pending = 0;
                self.live[session].frames_awaited = 0;
                // A signal ends a peer that is still starting as well.
                self.await_end(session, self.stretched(step.allow_ms), Duration::ZERO);
                self.end(session);
            }
            Act::Wait { ms } => {
                self.let_pass(session, Duration::from_millis(*ms));
            }
            Act::Flush => {
                let deadline = self.deadline(session, step) + self.until_ready(session);
                let since_us = self.now_us(session);
                if let Pumped::Deadline(_) = self.pump(session, Until::Written, deadline) {
                    self.deadline_passed(session, Awaited::Writing, since_us);
                    self.live[session].over = true;
                }
            }
            Act::SampleMemory { label } => {
                let bytes = self.live[session].connection.as_mut().and_then(|c| c.memory_hwm_bytes());
                if let Some(hwm_bytes) = bytes {
                    self.record(session, Kind::Memory { label: label.clone(), hwm_bytes });
                }
            }
            Act::Play { script, life_ms } => {
                self.play(index, session, script, *life_ms)?;
                if let Some(fixtures) = fixtures {
                    for kind in fixtures.kept_files()? {
                        self.record(session, kind);
                    }
                }
            }
            Act::Hide { fixture, hidden } => fixtures.map_or(Ok(()), |it| it.hide(fixture, *hidden))?,
            Act::ProbeActor { actor, label, after_ms } => {
                if *after_ms > 0 {
                    self.let_pass(session, self.stretched(*after_ms));
                }
                if let Some(fixtures) = fixtures {
                    for kind in fixtures.probe_actor(actor, label)? {
                        self.record(session, kind);
                    }
                }
            }
        }
        Ok(())
    }

    /// Now, as a server in this session has it.
    fn moment(&self, session: usize, step: usize) -> Moment {
        let now_ms = self.now_us(session) / 1_000;
        let unix_ms = match self.lab.peer.is_process() {
            true => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)),
            false => UNIX_MS_AT_START + now_ms,
        };
        Moment { unix_ms, run: self.run.clone(), step, is_one_body: false }
    }

    /// Whether a generated conversation has had its time. One that says itself how long it may take has been planned.
    fn is_drawn_out(&self) -> bool {
        let is_planned = || self.plan.steps.iter().any(|step| step.allow_ms > 0);
        self.plan.by_model
            && !is_planned()
            && self.begun.elapsed()
                > self.lab.budget.connection / GENERATED_SHARE + self.waits() + self.start_ups()
    }

    /// Opens a session at its first step; false where it could not be started.
    fn open(&mut self, session: usize) -> Result<bool, String> {
        let live = &mut self.live[session];
        if live.opened {
            return Ok(live.connection.is_some());
        }
        live.opened = true;
        let last_us = self.events.last().map_or(0, |event| event.at_us);
        live.offset_us = if self.lab.peer.is_process() {
            u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX)
        } else {
            last_us
        };
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
        // A plan that puts a folder before the others need not know them.
        let search_path = Vars::from([("PATH".to_owned(), self.lab.peer.search_path())]);
        for value in spec.placeholders.values_mut().chain(spec.env.values_mut()).chain(&mut spec.folder) {
            *value = substitute(&substitute(value, &self.vars), &search_path);
        }
        let bytes_max = self.lab.budget.stdout_bytes_max;
        let budget = Budget {
            connection: self.life(session),
            stdout_bytes_max: flood::room(self.plan, session, &self.vars, bytes_max),
            ..self.lab.budget.clone()
        };
        let live = &mut self.live[session];
        let mut recorder = Recorder {
            events: &mut self.events,
            session,
            offset_us: live.offset_us,
            frames: &mut live.frames,
            first_us: &mut live.first_us,
        };
        match self.lab.peer.open(&spec, &temp_dir, &self.lab.actor_exe.program, &budget, &mut recorder) {
            Ok(connection) => {
                self.live[session].connection = Some(connection);
                self.live[session].temp_dir = Some(temp_dir);
                Ok(true)
            }
            Err(error) => {
                recorder.record(0, Kind::StartFailed { error });
                Ok(false)
            }
        }
    }

    /// Waits for the frames that a step asks for. Where a canary follows, a missing reply costs only a short wait:
    /// the canary's answer tells whether the reply was lost or the peer is dead.
    fn await_reply(&mut self, index: usize, step: &Step) {
        let session = step.session;
        let deadline = self.deadline(session, step);
        let canary_follows =
            self.plan.steps.get(index + 1).is_some_and(|next| next.canary && next.session == session);
        let target = Until::Frames(self.live[session].frames_awaited);
        let since_us = self.now_us(session);
        let live = &self.live[session];
        let shows_latency = live.first_us.is_some() && live.lines_pending <= 1 && is_plain(step);
        let is_needed = step.capture.is_some();
        let asks_canary =
            canary_follows && !is_needed && step.allow_ms == 0 && !self.live[session].short_of_frames;
        if !asks_canary {
            self.await_start(session);
        }
        let pumped = if self.live[session].short_of_frames {
            self.await_canary(step, self.live[session].frames_awaited, deadline)
        } else if asks_canary {
            let pumped = self.pump_replies(session, target, self.patience(session).min(deadline));
            if let Pumped::Deadline(_) = pumped {
                self.live[session].short_of_frames = true;
                return;
            }
            pumped
        } else {
            self.pump_replies(session, target, deadline)
        };
        match pumped {
            Pumped::Reached => {
                // Replies that nobody waited for may still come before the canary's own.
                let lines_sent = self.live[session].lines_sent;
                let all_came = !step.canary
                    || self.await_canary(step, lines_sent, self.patience(session)) == Pumped::Reached;
                let live = &mut self.live[session];
                if all_came {
                    live.bytes_pending = 0;
                    live.lines_pending = 0;
                }
                live.short_of_frames = false;
                if shows_latency && self.lab.peer.is_process() {
                    let took = Duration::from_micros(self.now_us(session).saturating_sub(since_us));
                    self.lab.peer.pace.saw_latency(&self.plan.sessions[session].command, took);
                }
            }
            Pumped::Deadline(awaited) => {
                self.deadline_passed(session, awaited, since_us);
                self.live[session].over = true;
            }
            Pumped::Gone | Pumped::OverBudget | Pumped::Interrupted => self.live[session].over = true,
        }
    }

    /// Waits until the certain answers to a step and to those sent just before it have come, whatever else comes.
    fn await_answers(&mut self, index: usize, step: &Step) {
        let (session, plan) = (step.session, self.plan);
        let count = usize::try_from(step.await_answers).unwrap_or(usize::MAX);
        let sends = plan.steps[..=index].iter().rev();
        let mut open: Vec<&Step> = sends
            .filter(|step| step.session == session && matches!(step.act, Act::Send { .. }))
            .take(count)
            .collect();
        let (deadline, since_us) = (self.deadline(session, step), self.now_us(session));
        self.await_start(session);
        let mut next = self.live[session].frames_answered;
        loop {
            while next < self.frame_count(session) {
                let frame = self.frame(session, next).unwrap_or_default();
                open.retain(|step| !self.lab.peer.boundary.answers_canary(step, &frame));
                next += 1;
            }
            if open.is_empty() {
                let live = &mut self.live[session];
                (live.frames_awaited, live.frames_answered) = (next, next);
                (live.bytes_pending, live.lines_pending) = (0, 0);
                return;
            }
            match self.pump_replies(session, Until::Frames(next + 1), deadline) {
                Pumped::Reached => {}
                Pumped::Deadline(awaited) => {
                    self.deadline_passed(session, awaited, since_us);
                    self.live[session].over = true;
                    return;
                }
                Pumped::Gone | Pumped::OverBudget | Pumped::Interrupted => {
                    self.live[session].over = true;
                    return;
                }
            }
        }
    }

    /// Waits for frames one by one until one certainly answers the canary or as many came as can be due.
    fn await_canary(&mut self, step: &Step, frames_due: u64, deadline: Duration) -> Pumped {
        let session = step.session;
        loop {
            let seen = self.frame_count(session);
            let last = seen.checked_sub(1).and_then(|index| self.frame(session, index));
            let answered = last.is_some_and(|last| self.lab.peer.boundary.answers_canary(step, &last));
            if answered || seen >= frames_due {
                self.live[session].frames_awaited = seen;
                return Pumped::Reached;
            }
            let pumped = self.pump_replies(session, Until::Frames(seen + 1), deadline);
            if pumped != Pumped::Reached {
                return pumped;
            }
        }
    }

    /// Gives a peer that has said nothing yet what is left of the time to start.
    fn await_start(&mut self, session: usize) {
        let left = self.until_ready(session);
        if !left.is_zero() {
            self.pump(session, Until::Frames(1), left);
        }
    }

    /// Waits as [`Run::pump`] does, and as long again after each reply that is due: a deadline is for one reply, and a peer
    /// may take its time for each of many.
    fn pump_while_replies_come(&mut self, session: usize, until: Until, deadline: Duration) -> Pumped {
        let live = &self.live[session];
        let (target, due) = match until {
            Until::Frames(frames) => (frames, frames),
            _ => (u64::MAX, live.frames_awaited.max(live.lines_sent)),
        };
        let mut seen = self.frame_count(session);
        loop {
            let next = if seen < due { Until::Frames(seen + 1) } else { until };
            let pumped = self.pump(session, next, deadline);
            seen = self.frame_count(session);
            if pumped != Pumped::Reached || next == until || seen >= target {
                return pumped;
            }
        }
    }

    /// Waits for replies or the end, and where much was written, longer for a peer that is visibly at work: no contract
    /// says how fast a peer reads, and an idle one is given up in time.
    fn pump_replies(&mut self, session: usize, until: Until, deadline: Duration) -> Pumped {
        let mut pumped = self.pump_while_replies_come(session, until, deadline);
        if self.live[session].bytes_pending < LARGE_BYTES {
            return pumped;
        }
        let mut extra = deadline.mul_f64(BUSY_FACTOR);
        while let Pumped::Deadline(_) = pumped
            && !extra.is_zero()
        {
            let cpu = |run: &Self| run.live[session].connection.as_ref().and_then(|c| c.cpu_time());
            let slice = extra.min(BUSY_SLICE);
            extra -= slice;
            let before = cpu(self);
            pumped = self.pump(session, until, slice);
            let worked = cpu(self).zip(before).map(|(now, before)| now.saturating_sub(before));
            if worked.is_none_or(|worked| worked < slice.mul_f64(BUSY_SHARE)) {
                break;
            }
        }
        pumped
    }

    /// Waits for the end of the process. The time for it counts from the last reply, so replies that are due are
    /// waited for first; where several are, nobody knows which is the last, and their time is added. `start` is what a peer
    /// that has said nothing yet may need to begin.
    fn await_end(&mut self, session: usize, allow: Duration, start: Duration) {
        let live = &self.live[session];
        let (bytes, lines, awaited) = (live.bytes_pending, live.lines_pending, live.frames_awaited);
        let frames = self.frame_count(session);
        let mut deadline = self.lab.budget.exit + allow;
        let mut since_us = self.now_us(session);
        // A peer that has missed a deadline already is not given that time again.
        let missed = self
            .events
            .iter()
            .any(|event| event.session == session && matches!(event.kind, Kind::DeadlinePassed { .. }));
        if !missed && (bytes > 0 || awaited > frames) {
            let reply = self.lab.budget.reply_to(bytes);
            if lines <= 1 && awaited <= frames + 1 {
                let deadline = reply + allow + start;
                if self.pump_replies(session, Until::Frames(frames + 1), deadline) == Pumped::Reached {
                    since_us = self.now_us(session);
                }
            } else {
                deadline += reply;
            }
        }
        let deadline = deadline + start.min(self.until_ready(session));
        if let Pumped::Deadline(_) = self.pump_replies(session, Until::Exited, deadline) {
            self.deadline_passed(session, Awaited::Exit, since_us);
        }
    }

    fn frame_count(&self, session: usize) -> u64 {
        self.live[session].frames
    }

    /// The frame of this number, from 0 on, if it is complete. The last ones are found first.
    fn frame(&self, session: usize, index: u64) -> Option<Vec<u8>> {
        let mut ended = self.frame_count(session);
        let mut pieces: Vec<&[u8]> = Vec::new();
        for event in self.events.iter().rev().filter(|event| event.session == session) {
            let Kind::Received { bytes } = &event.kind else { continue };
            let bytes = bytes.0.as_slice();
            let end = if pieces.is_empty() {
                if index >= ended {
                    return None;
                }
                ended -= memchr::memchr_iter(b'\n', bytes).count() as u64;
                let Some(before) = index.checked_sub(ended) else { continue };
                memchr::memchr_iter(b'\n', bytes).nth(usize::try_from(before).ok()?)?
            } else {
                bytes.len()
            };
            let begin = memchr::memrchr(b'\n', &bytes[..end]).map(|feed| feed + 1);
            pieces.push(&bytes[begin.unwrap_or(0)..end]);
            if begin.is_some() {
                break;
            }
        }
        pieces.reverse();
        (!pieces.is_empty()).then(|| pieces.concat())
    }

    fn now_us(&self, session: usize) -> u64 {
        let live = &self.live[session];
        live.connection.as_ref().map_or(live.ended_us, |connection| connection.now_us())
    }

    fn record(&mut self, session: usize, kind: Kind) {
        let at_us = self.live[session].offset_us + self.now_us(session);
        self.events.push(Event { at_us, session, kind });
    }

    /// Records that something was awaited in vain since `since_us` on the clock of the session.
    fn deadline_passed(&mut self, session: usize, awaited: Awaited, since_us: u64) {
        let waited_ms = self.now_us(session).saturating_sub(since_us) / 1_000;
        self.record(session, Kind::DeadlinePassed { awaited, waited_ms });
        if self.live[session].first_us.is_none() && self.begins_plainly(session) {
            self.lab.peer.pace.gave_up(&self.plan.sessions[session].command);
        }
    }

    /// Whether the first thing that a peer says in this session comes as soon as it is ready.
    fn shows_start(&self, session: usize) -> bool {
        self.plan.sessions[session].shows_start.unwrap_or_else(|| self.begins_plainly(session))
    }

    /// Whether the first step of a session asks for nothing but a quick answer.
    fn begins_plainly(&self, session: usize) -> bool {
        let first = self.plan.steps.iter().find(|step| step.session == session);
        first.is_some_and(|step| is_plain(step) || matches!(step.act, Act::Play { .. }))
    }

    fn with_log(&mut self, session: usize, act: impl FnOnce(&mut dyn Connection, &mut dyn Log)) {
        let live = &mut self.live[session];
        if let Some(connection) = live.connection.as_mut() {
            let mut recorder = Recorder {
                events: &mut self.events,
                session,
                offset_us: live.offset_us,
                frames: &mut live.frames,
                first_us: &mut live.first_us,
            };
            act(connection.as_mut(), &mut recorder);
        }
    }

    fn pump(&mut self, session: usize, until: Until, deadline: Duration) -> Pumped {
        let mut pumped = Pumped::Gone;
        self.with_log(session, |connection, log| pumped = connection.pump(until, deadline, log));
        pumped
    }

    fn end(&mut self, session: usize) {
        self.with_log(session, |connection, log| connection.finish(log));
        flood::cut(&mut self.events, self.lab.budget.flood_bytes_kept);
        let ended_us = self.now_us(session);
        if let Some(first_us) = self.live[session].first_us
            && self.live[session].connection.is_some()
            && self.shows_start(session)
        {
            let took = Duration::from_micros(first_us);
            self.lab.peer.pace.saw_start_up(&self.plan.sessions[session].command, took);
        }
        let live = &mut self.live[session];
        live.ended_us = ended_us;
        live.connection = None;
        live.over = true;
    }

    fn observe(&mut self, session: usize, fixtures: Option<&mut Fixtures>) -> Result<(), String> {
        if let Some(fixtures) = fixtures {
            for kind in fixtures.observe()? {
                self.record(session, kind);
            }
        }
        Ok(())
    }
}

/// Whether the step asks for nothing but a quick answer. The end of a one-shot peer is the answer to its input.
fn is_plain(step: &Step) -> bool {
    step.canary && (step.allow_ms == 0 || step.act == Act::Finish)
}

/// Replaces `{{name}}` by the variable of that name; unknown ones stay as they are.
fn substitute(text: &str, vars: &Vars) -> String {
    let mut out = text.to_owned();
    for (name, value) in vars {
        out = out.replace(&format!("{{{{{name}}}}}"), value);
    }
    out
}
