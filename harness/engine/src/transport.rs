//! Transports: they move bytes between the harness and a peer and never look into them beyond counting frames.
//!
//! A real child process, an in-process peer and a server that is spoken to over HTTP are one type to the caller: a
//! [`Connection`].

pub mod child;
pub mod http;
pub mod in_process;
pub(crate) mod inbox;
mod outbox;

use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};

use crate::carriage::Carriage;
use crate::plan::Chunking;
use crate::transcript::{Awaited, Exit, Kind};

/// Where a transport records what happens; implemented by the recorder of a transcript.
pub trait Log {
    /// Appends an event of this connection at the connection's own clock.
    fn record(&mut self, at_us: u64, kind: Kind);
}

/// What [`Connection::pump`] waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// At least this many complete frames (lines) in all since the connection began.
    Frames(u64),
    /// Everything queued is written.
    Written,
    /// The process ended and its standard output was read to the end.
    Exited,
    /// This much time passed.
    Elapsed(Duration),
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pumped {
    /// What was waited for came.
    Reached,
    /// The deadline passed first. It is not recorded: only the caller knows whether it was the last one.
    Deadline(Awaited),
    /// Nothing is under way that could bring it, however long one waits.
    Nothing(Awaited),
    /// The process ended (or closed its standard output) first.
    Gone,
    /// A budget was exceeded and the peer killed.
    OverBudget,
    /// The user asked to stop: what is on record ends in the middle and must not be judged.
    Interrupted,
}

/// How a wait ended whose time is over.
fn gave_up(until: Until) -> Pumped {
    match until {
        Until::Elapsed(_) => Pumped::Reached,
        Until::Frames(_) => Pumped::Deadline(Awaited::Frames),
        Until::Written => Pumped::Deadline(Awaited::Writing),
        Until::Exited => Pumped::Deadline(Awaited::Exit),
    }
}

/// A descriptor, and what is to be possible with it.
pub type Source<'a> = (BorrowedFd<'a>, PollFlags);

/// Waits until there is something to do about one of `sources`, or `timeout` has passed; tells for each whether there is.
pub(crate) fn wait_for(sources: &[Source<'_>], timeout: Duration) -> Vec<bool> {
    let mut set: Vec<PollFd<'_>> =
        sources.iter().map(|(fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)).collect();
    let timeout = Timespec::try_from(timeout).ok();
    // An interrupted wait found nothing; the caller looks at the clock and comes again.
    let found = rustix::event::poll(&mut set, timeout.as_ref()).unwrap_or(0);
    set.iter().map(|source| found > 0 && !source.revents().is_empty()).collect()
}

/// What a connection is asked to wait for, and for how long.
#[derive(Clone, Copy)]
pub struct Waiting<'a> {
    /// What for.
    pub until: Until,
    /// For how long at the most.
    pub deadline: Duration,
    /// What ends the wait as well, as soon as there is something to do about it.
    pub beside: &'a [Source<'a>],
}

impl Waiting<'_> {
    /// A wait with nothing beside it.
    pub fn of(until: Until, deadline: Duration) -> Self {
        Self { until, deadline, beside: &[] }
    }

    /// How long it may take: time that is to pass has no deadline, and no wait outlasts the connection.
    fn patience(&self, life_left: Duration) -> Duration {
        let wanted = if let Until::Elapsed(time) = self.until { time } else { self.deadline };
        wanted.min(life_left)
    }
}

/// One running peer. Every method returns within its deadline; reading goes on while writing waits.
pub trait Connection {
    /// Queues bytes for standard input.
    fn queue(&mut self, bytes: Vec<u8>, chunking: Chunking);

    /// Queues the bytes of a step, to be carried as `how` says where there is more than one way.
    fn queue_step(&mut self, _step: usize, bytes: Vec<u8>, chunking: Chunking, _how: Option<&Carriage>) {
        self.queue(bytes, chunking);
    }

    /// Closes standard input once everything queued is written.
    fn close_stdin(&mut self);

    /// Closes standard input once everything queued is written, and reads nothing more: the other end is gone. Where the
    /// transport has no such end, only the first.
    fn hang_up(&mut self) {
        self.close_stdin();
    }

    /// Moves bytes both ways until `until` holds, the peer is gone, or `deadline` has passed.
    fn pump(&mut self, until: Until, deadline: Duration, log: &mut dyn Log) -> Pumped {
        self.pump_beside(Waiting::of(until, deadline), log).unwrap_or_else(|| gave_up(until))
    }

    /// As [`Connection::pump`]; `None` as soon as there is something to do about what is beside it.
    fn pump_beside(&mut self, waiting: Waiting<'_>, log: &mut dyn Log) -> Option<Pumped>;

    /// What has to be waited for by whoever waits for this connection and others; nothing where nothing comes by itself.
    fn sources(&self) -> Vec<Source<'_>> {
        Vec::new()
    }

    /// Does what can be done without waiting.
    fn attend(&mut self, _log: &mut dyn Log) {}

    /// Sends a signal by name: `TERM`, `INT`, `KILL`.
    fn signal(&mut self, name: &str, log: &mut dyn Log);

    /// VmHWM summed over the peer's process tree, bytes; `None` where the transport cannot tell.
    fn memory_hwm_bytes(&mut self) -> Option<u64>;

    /// Processor time that the peer's process tree has used; `None` where the transport cannot tell.
    fn cpu_time(&self) -> Option<Duration> {
        None
    }

    /// Process id of the peer, where there is one.
    fn pid(&self) -> Option<i32>;

    /// How the peer ended, if it did.
    fn exit(&self) -> Option<Exit>;

    /// Whether the peer has ended and nothing that it started lives; false where the transport cannot tell.
    fn is_over(&self) -> bool {
        false
    }

    /// Microseconds since the connection began, on its clock.
    fn now_us(&self) -> u64;

    /// Ends the session: kills what still lives, reaps descendants and records leaks, files left and the end of
    /// standard error.
    fn finish(&mut self, log: &mut dyn Log);

    /// The connection between two conversations; `None` where it serves one alone.
    fn into_kept(self: Box<Self>) -> Option<Box<dyn Connection + Send>> {
        None
    }
}
