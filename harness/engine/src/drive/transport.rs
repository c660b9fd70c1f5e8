//! Transports: move bytes between the harness and a peer, and only count frames.
//!
//! A child process, an in-process peer and an HTTP server are one type to the caller: a [`Connection`].

pub mod child;
pub mod http;
pub mod in_process;
pub(crate) mod inbox;
mod outbox;

use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};

use crate::data::carriage::Carriage;
use crate::data::plan::Chunking;
use crate::data::transcript::{Awaited, EventKind, Exit};

/// Recorder of a transport's events.
pub trait Log {
    /// Appends an event with a time on the connection's clock.
    fn record(&mut self, at_us: u64, kind: EventKind);
}

/// Condition that ends a wait in [`Connection::pump`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// This many complete frames (lines) came since the connection began.
    Frames(u64),
    /// Everything queued is written.
    Written,
    /// The process ended, and its standard output was read to the end.
    Exited,
    /// This much time passed.
    Elapsed(Duration),
}

/// Result of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pumped {
    /// The condition was met.
    Reached,
    /// The deadline passed. It is not recorded, because only the caller knows whether it waits again.
    Deadline(Awaited),
    /// Nothing is under way that could meet the condition.
    Nothing(Awaited),
    /// The process ended or closed its standard output.
    Gone,
    /// The peer exceeded a budget and was killed.
    OverBudget,
    /// The user asked to stop. The record is incomplete and must not be judged.
    Interrupted,
}

/// Result of a wait whose time is over.
fn gave_up(until: Until) -> Pumped {
    match until {
        Until::Elapsed(_) => Pumped::Reached,
        Until::Frames(_) => Pumped::Deadline(Awaited::Frames),
        Until::Written => Pumped::Deadline(Awaited::Writing),
        Until::Exited => Pumped::Deadline(Awaited::Exit),
    }
}

/// File descriptor with the readiness to wait for.
pub type Source<'a> = (BorrowedFd<'a>, PollFlags);

/// Waits until one of `sources` is ready or `timeout` has passed; returns the readiness of each.
pub(crate) fn wait_for(sources: &[Source<'_>], timeout: Duration) -> Vec<bool> {
    let mut set: Vec<PollFd<'_>> =
        sources.iter().map(|(fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)).collect();
    let timeout = Timespec::try_from(timeout).ok();
    // A signal counts as nothing ready; the caller checks the clock and waits again.
    let found = rustix::event::poll(&mut set, timeout.as_ref()).unwrap_or(0);
    set.iter().map(|source| found > 0 && !source.revents().is_empty()).collect()
}

/// Parameters of a wait.
#[derive(Clone, Copy)]
pub struct Waiting<'a> {
    /// Condition that ends the wait.
    pub until: Until,
    /// Maximum duration.
    pub deadline: Duration,
    /// Sources whose readiness ends the wait, too.
    pub beside: &'a [Source<'a>],
}

impl Waiting<'_> {
    /// Wait without other sources.
    pub fn of(until: Until, deadline: Duration) -> Self {
        Self { until, deadline, beside: &[] }
    }

    /// Maximum duration: an elapsing time has no deadline, and no wait outlasts the connection.
    fn patience(&self, life_left: Duration) -> Duration {
        let wanted = if let Until::Elapsed(time) = self.until { time } else { self.deadline };
        wanted.min(life_left)
    }
}

/// Number of looks that show that a silent peer sleeps.
const LOOKS_AT_SLEEP: u32 = 6;
/// Interval between two such looks.
const LOOK_AT_SLEEP_EVERY: Duration = Duration::from_millis(25);

/// True if all processes of a peer sleep at each look, and wait for no other process. More of the machine would not make
/// such a peer faster.
pub(crate) fn sleeps_on(connection: &dyn Connection) -> bool {
    (0..LOOKS_AT_SLEEP).all(|look| {
        if look > 0 {
            std::thread::sleep(LOOK_AT_SLEEP_EVERY);
        }
        connection.is_asleep()
    })
}

/// Running peer. Every method returns within its deadline. Reading continues while writing blocks.
pub trait Connection {
    /// Queues bytes for standard input.
    fn queue(&mut self, bytes: Vec<u8>, chunking: Chunking);

    /// Queues the bytes of a step, with HTTP settings `how` if they apply.
    fn queue_step(&mut self, _step: usize, bytes: Vec<u8>, chunking: Chunking, _how: Option<&Carriage>) {
        self.queue(bytes, chunking);
    }

    /// Writes without reading standard output, until the peer has taken nothing for `idle`. Where nothing comes through a
    /// pipe there is nothing to leave unread.
    fn write_unread(&mut self, _idle: Duration, _log: &mut dyn Log) {}

    /// Closes standard input after everything queued is written.
    fn close_stdin(&mut self);

    /// Closes standard input after everything queued is written and stops reading, as if the other end were gone.
    /// Transports that cannot do this only close standard input.
    fn hang_up(&mut self) {
        self.close_stdin();
    }

    /// Transfers bytes in both directions until `until` is met, the peer is gone, or `deadline` has passed.
    fn pump(&mut self, until: Until, deadline: Duration, log: &mut dyn Log) -> Pumped {
        self.pump_beside(Waiting::of(until, deadline), log).unwrap_or_else(|| gave_up(until))
    }

    /// Transfers bytes as [`Connection::pump`] does; returns `None` when one of the other sources is ready.
    fn pump_beside(&mut self, waiting: Waiting<'_>, log: &mut dyn Log) -> Option<Pumped>;

    /// Sources to wait on for a caller with several connections; empty if nothing comes by itself.
    fn sources(&self) -> Vec<Source<'_>> {
        Vec::new()
    }

    /// Makes all progress that is possible without blocking.
    fn attend(&mut self, _log: &mut dyn Log) {}

    /// Sends a signal by name: `TERM`, `INT`, `KILL`.
    fn signal(&mut self, name: &str, log: &mut dyn Log);

    /// Sum of VmHWM over the peer's process tree, bytes; `None` if unknown.
    fn memory_hwm_bytes(&mut self) -> Option<u64>;

    /// Processor time used by the peer's process tree; `None` if unknown.
    fn cpu_time(&self) -> Option<Duration> {
        None
    }

    /// True if all processes of the peer sleep and none may wait for a process beside them; false if unknown.
    fn is_asleep(&self) -> bool {
        false
    }

    /// Process id of the peer, if it has one.
    fn pid(&self) -> Option<i32>;

    /// Exit of the peer, if it has ended.
    fn exit(&self) -> Option<Exit>;

    /// True if the peer and all processes that it started have ended; false if unknown.
    fn is_over(&self) -> bool {
        false
    }

    /// Microseconds since the connection began, on its own clock.
    fn now_us(&self) -> u64;

    /// Ends the session: kills living processes, reaps descendants, and records leaks, leftover files and standard
    /// error.
    fn finish(&mut self, log: &mut dyn Log);

    /// Connection that another conversation can use; `None` if the transport does not support that.
    fn into_kept(self: Box<Self>) -> Option<Box<dyn Connection + Send>> {
        None
    }
}
