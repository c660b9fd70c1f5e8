//! Processes that serve several conversations: opened once, they are handed from one to the next.
//!
//! A conversation that begins with an opening ([`Plan::opening`]) may leave its process behind. The next one with the same
//! opening goes on from there. Its transcript has the opening, as if it were the first one: the record, the counts and the
//! clock of the session are those of the moment at which it was open.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{Live, Run, replies};
use crate::carriage::Carriage;
use crate::plan::{Chunking, Plan, Step};
use crate::transcript::{Event, Exit, Kind};
use crate::transport::{Connection, Log, Pumped, Source, Until, Waiting};

/// Conversations that one process serves.
const USES_MAX: u32 = 40;
/// Part of the life of a connection after which its process serves no further conversation.
const SHARE_OF_LIFE: u32 = 3;
/// Processes that wait for a conversation at the same time.
const KEPT_MAX: usize = 4;

/// A process between two conversations.
pub struct Kept {
    connection: Box<dyn Connection + Send>,
    begun: Begun,
}

impl Kept {
    /// Number of the next conversation of the process; the first one had 0.
    pub fn turn(&self) -> u32 {
        self.begun.turn + 1
    }

    /// The steps that opened it.
    pub fn opening(&self) -> &[Step] {
        &self.begun.opening
    }

    /// The session as it was when it had been opened, with its record, and what is needed to keep it again.
    pub(super) fn resume(self) -> (Live, Begun) {
        let Self { connection, mut begun } = self;
        let behind_us = connection.now_us().saturating_sub(begun.at_us);
        let skipped = begun.frames.saturating_sub(begun.live.frames);
        begun.skipped = skipped;
        begun.turn += 1;
        let connection = Resumed { inner: connection, skipped, behind_us };
        (begun.live.again(Box::new(connection)), begun)
    }

    /// Keeps the folder of the process as long as the process.
    pub(super) fn with_folder(mut self, folder: Option<TempDir>) -> Self {
        self.begun.folder = folder;
        self
    }
}

/// The state of a session.
struct Opened {
    offset_us: u64,
    first_us: Option<u64>,
    frames: u64,
    asides: Vec<u64>,
    sorted: u64,
    sorted_at: replies::Place,
    frames_awaited: u64,
    frames_answered: u64,
    lines_sent: u64,
    temp_dir: Option<PathBuf>,
}

impl Opened {
    fn of(live: &Live) -> Self {
        Self {
            offset_us: live.offset_us,
            first_us: live.first_us,
            frames: live.frames,
            asides: live.asides.clone(),
            sorted: live.sorted,
            sorted_at: live.sorted_at,
            frames_awaited: live.frames_awaited,
            frames_answered: live.frames_answered,
            lines_sent: live.lines_sent,
            temp_dir: live.temp_dir.clone(),
        }
    }

    fn again(&self, connection: Box<dyn Connection>) -> Live {
        Live {
            connection: Some(connection),
            opened: true,
            offset_us: self.offset_us,
            first_us: self.first_us,
            frames: self.frames,
            asides: self.asides.clone(),
            sorted: self.sorted,
            sorted_at: self.sorted_at,
            frames_awaited: self.frames_awaited,
            frames_answered: self.frames_answered,
            lines_sent: self.lines_sent,
            temp_dir: self.temp_dir.clone(),
            ..Live::default()
        }
    }
}

/// The opening of a process, and what it has served since.
pub(super) struct Begun {
    opening: Vec<Step>,
    /// Events up to the moment at which the session was open.
    pub(super) events: Vec<Event>,
    /// The session at that moment, without its connection.
    live: Opened,
    /// The same moment on the clock of the connection.
    at_us: u64,
    since: Instant,
    turn: u32,
    /// Frames of the connection in all.
    frames: u64,
    /// Frames of the connection that the conversation under way does not see.
    skipped: u64,
    pub(super) folder: Option<TempDir>,
}

impl Run<'_> {
    /// Notes that the session of a plan has just been opened by these steps.
    pub(super) fn begun(&self, opening: &[Step]) -> Begun {
        Begun {
            opening: opening.to_vec(),
            events: self.events.clone(),
            live: Opened::of(&self.live[0]),
            at_us: self.now_us(0),
            since: self.begun,
            turn: 0,
            frames: 0,
            skipped: 0,
            folder: None,
        }
    }

    /// Takes the process out of a conversation that left nothing open.
    pub(super) fn keep(&mut self, mut begun: Begun) -> Option<Kept> {
        let live = &self.live[0];
        let is_old = begun.since.elapsed() > self.lab.budget.connection / SHARE_OF_LIFE;
        let is_open = live.over || live.short_of_frames || live.lines_pending > 0;
        let since = &self.events[begun.events.len().min(self.events.len())..];
        let is_missed =
            |event: &Event| matches!(event.kind, Kind::DeadlinePassed { .. } | Kind::Exited { .. });
        let received = self.events.iter().rev().find_map(|event| match &event.kind {
            Kind::Received { bytes } => bytes.0.last(),
            _ => None,
        });
        let is_whole = received == Some(&b'\n');
        if is_old || is_open || !is_whole || begun.turn + 1 >= USES_MAX || since.iter().any(is_missed) {
            return None;
        }
        begun.frames = begun.skipped + live.frames;
        self.saw_start_up(0);
        let connection = self.live[0].connection.take()?;
        if connection.exit().is_some() {
            return None;
        }
        Some(Kept { connection: connection.into_kept()?, begun })
    }
}

/// Processes between conversations. Dropped, it ends them.
#[derive(Default)]
pub struct Pool(Mutex<Vec<Kept>>);

impl Pool {
    /// True if no process waits.
    pub fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Takes a process that was opened as `plan` opens its own.
    pub fn take(&self, plan: &Plan) -> Option<Kept> {
        let opening = plan.opening()?;
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|kept| kept.opening() == opening)?;
        Some(kept.swap_remove(at))
    }

    /// Puts a process back. The one that has waited longest goes where too many wait.
    pub fn put(&self, process: Kept) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let surplus = if kept.len() < KEPT_MAX { None } else { Some(kept.remove(0)) };
        kept.push(process);
        drop(kept);
        // It ends without the lock.
        drop(surplus);
    }
}

/// A connection whose earlier conversations are not seen: frames and time count on from its opening.
struct Resumed {
    inner: Box<dyn Connection + Send>,
    /// Frames of the connection that were left out.
    skipped: u64,
    /// Time that was left out, microseconds.
    behind_us: u64,
}

/// Records events at an earlier time.
struct Shifted<'a> {
    log: &'a mut dyn Log,
    by_us: u64,
}

impl Log for Shifted<'_> {
    fn record(&mut self, at_us: u64, kind: Kind) {
        self.log.record(at_us.saturating_sub(self.by_us), kind);
    }
}

impl Resumed {
    fn with<T>(
        &mut self,
        log: &mut dyn Log,
        act: impl FnOnce(&mut (dyn Connection + Send), &mut dyn Log) -> T,
    ) -> T {
        act(self.inner.as_mut(), &mut Shifted { log, by_us: self.behind_us })
    }
}

impl Connection for Resumed {
    fn queue(&mut self, bytes: Vec<u8>, chunking: Chunking) {
        self.inner.queue(bytes, chunking);
    }

    fn queue_step(&mut self, step: usize, bytes: Vec<u8>, chunking: Chunking, how: Option<&Carriage>) {
        self.inner.queue_step(step, bytes, chunking, how);
    }

    fn close_stdin(&mut self) {
        self.inner.close_stdin();
    }

    fn hang_up(&mut self) {
        self.inner.hang_up();
    }

    fn pump_beside(&mut self, waiting: Waiting<'_>, log: &mut dyn Log) -> Option<Pumped> {
        let until = match waiting.until {
            Until::Frames(frames) => Until::Frames(frames.saturating_add(self.skipped)),
            other => other,
        };
        self.with(log, |inner, log| inner.pump_beside(Waiting { until, ..waiting }, log))
    }

    fn sources(&self) -> Vec<Source<'_>> {
        self.inner.sources()
    }

    fn attend(&mut self, log: &mut dyn Log) {
        self.with(log, |inner, log| inner.attend(log));
    }

    fn signal(&mut self, name: &str, log: &mut dyn Log) {
        self.with(log, |inner, log| inner.signal(name, log));
    }

    fn memory_hwm_bytes(&mut self) -> Option<u64> {
        self.inner.memory_hwm_bytes()
    }

    fn cpu_time(&self) -> Option<Duration> {
        self.inner.cpu_time()
    }

    fn pid(&self) -> Option<i32> {
        self.inner.pid()
    }

    fn exit(&self) -> Option<Exit> {
        self.inner.exit()
    }

    fn is_over(&self) -> bool {
        self.inner.is_over()
    }

    fn now_us(&self) -> u64 {
        self.inner.now_us().saturating_sub(self.behind_us)
    }

    fn finish(&mut self, log: &mut dyn Log) {
        self.with(log, |inner, log| inner.finish(log));
    }

    fn into_kept(self: Box<Self>) -> Option<Box<dyn Connection + Send>> {
        Some(self.inner)
    }
}
