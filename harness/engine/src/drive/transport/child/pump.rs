//! Loop that transfers bytes in both directions.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions};

use super::{ChildConnection, ProcessEnd};
use crate::data::budget::LOOK_FOR_INTERRUPT_EVERY;
use crate::data::transcript::{EventKind, Exit};
use crate::drive::process;
use crate::drive::transport::{Log, Pumped, Source, Until, Waiting, gave_up, wait_for};

/// Time to read standard output after the peer's end while another process holds it open, and to wait for the end of a
/// peer that closed a pipe.
pub(super) const DRAIN_GRACE: Duration = Duration::from_millis(200);
/// Maximum number of consecutive writes and reads before the other direction gets its turn.
const WRITES_IN_A_ROW: u32 = 512;
const READS_IN_A_ROW: u32 = 16;
/// Interval for sampling the peer's memory and looking for an interrupt.
const SAMPLE_EVERY: Duration = LOOK_FOR_INTERRUPT_EVERY;
/// Time to poll without a pause for the peer to read a chunk, and the interval of polling afterwards.
const PACE: Duration = Duration::from_micros(200);
const LOOK_FOR_TAKING_EVERY: Duration = Duration::from_millis(1);
/// Time for a peer that has read before to read one chunk, before the next is written anyway; and number of times after
/// which this payload no longer waits, because the peer may rightly have stopped reading.
const UNTAKEN_MAX: Duration = Duration::from_millis(100);
const PACE_MISSES_MAX: u32 = 4;
/// Interval for polling the end of the process on kernels without pidfds.
const ASK_FOR_EXIT_EVERY: Duration = Duration::from_millis(5);
/// Size of a pipe whose reader rests, bytes: what a busy system gives.
const SMALL_PIPE_BYTES: usize = 4 << 10;
/// Label of the memory sample that ended a session.
const OVER_BUDGET: &str = "over_budget";

/// Sources found ready by a wait.
#[derive(Default)]
struct ReadySources {
    stdout: bool,
    stderr: bool,
    process: bool,
    beside: bool,
}

impl ChildConnection {
    pub(super) fn pump_until(&mut self, waiting: Waiting<'_>, log: &mut dyn Log) -> Option<Pumped> {
        let Waiting { until, beside, .. } = waiting;
        let began = Instant::now();
        let life_left = self.budget.connection.saturating_sub(began.saturating_duration_since(self.started));
        let end = began + waiting.patience(life_left);
        let mut now = began;
        let mut called = false;
        loop {
            if self.over_budget {
                return Some(Pumped::OverBudget);
            }
            if self.budget.is_interrupted() {
                return Some(Pumped::Interrupted);
            }
            self.write(log);
            self.settle_exit(now, now >= end, log);
            if let Some(pumped) = self.settled(until, now) {
                return Some(pumped);
            }
            if now >= end {
                return Some(gave_up(until));
            }
            if called {
                return None;
            }
            let ready = self.wait(self.wake_at(end, now).saturating_duration_since(now), beside);
            called = ready.beside;
            now = Instant::now();
            self.read(&ready, now, log);
            if now.saturating_duration_since(self.sampled_at) >= SAMPLE_EVERY {
                self.guard_memory(now, log);
            }
        }
    }

    /// Writes without reading standard output, through small pipes, until nothing was taken for `idle`. What came meanwhile is
    /// read at the end.
    pub(super) fn write_deaf(&mut self, idle: Duration, log: &mut dyn Log) {
        for pipe in [&self.stdin, &self.stdout].into_iter().flatten() {
            // A pipe that holds more already keeps its size: it fills later.
            let _ = rustix::pipe::fcntl_setpipe_size(pipe, SMALL_PIPE_BYTES);
        }
        self.is_deaf = true;
        let mut left = None;
        while left != Some(self.outbox.unwritten_bytes()) {
            left = Some(self.outbox.unwritten_bytes());
            let waiting = Waiting::of(Until::Elapsed(idle), idle);
            if self.pump_until(waiting, log) != Some(Pumped::Reached) {
                break;
            }
        }
        self.is_deaf = false;
        self.read_stdout(Instant::now(), log);
    }

    /// Makes one round without blocking.
    pub(super) fn look_around(&mut self, log: &mut dyn Log) {
        let ready = self.wait(Duration::ZERO, &[]);
        let now = Instant::now();
        self.read(&ready, now, log);
        self.settle_exit(now, false, log);
        if now.saturating_duration_since(self.sampled_at) >= SAMPLE_EVERY {
            self.guard_memory(now, log);
        }
    }

    fn settled(&self, until: Until, now: Instant) -> Option<Pumped> {
        let passed = |since: Option<Instant>| since.is_some_and(|at| now >= at + DRAIN_GRACE);
        let gone = match until {
            Until::Frames(frames) if self.inbox.frames >= frames => return Some(Pumped::Reached),
            Until::Exited if self.exit_recorded => return Some(Pumped::Reached),
            Until::Written if self.stdin_broken_at.is_none() && self.is_written() => {
                return Some(Pumped::Reached);
            }
            // A peer that closes a pipe is usually about to end: its exit should be recorded by then.
            Until::Frames(_) => passed(self.stdout_closed_at),
            Until::Written => passed(self.stdin_broken_at),
            Until::Exited | Until::Elapsed(_) => false,
        };
        (gone || self.exit_recorded || self.ended.is_some() && self.killed).then_some(Pumped::Gone)
    }

    fn is_written(&self) -> bool {
        self.outbox.is_empty() && !(self.close_requested && self.stdin.is_some())
    }

    /// Next time at which something must be done even without an event.
    fn wake_at(&self, end: Instant, now: Instant) -> Instant {
        let mut wake = end.min(self.sampled_at + SAMPLE_EVERY);
        if self.pidfd.is_none() && self.ended.is_none() {
            wake = wake.min(now + ASK_FOR_EXIT_EVERY);
        }
        if self.untaken.is_some() {
            wake = wake.min(now + LOOK_FOR_TAKING_EVERY);
        }
        let since = [self.ended.map(|ended| ended.at), self.stdout_closed_at, self.stdin_broken_at];
        for grace_over in since.into_iter().flatten().map(|at| at + DRAIN_GRACE) {
            if grace_over > now {
                wake = wake.min(grace_over);
            }
        }
        wake
    }

    /// Writes as much as the pipe takes without blocking. A dribbled chunk waits until the one before it was read.
    pub(super) fn write(&mut self, log: &mut dyn Log) {
        let Some(stdin) = &self.stdin else {
            return;
        };
        let mut writes = 0;
        let broken = loop {
            if let Some(since) = self.untaken {
                let patience = match (self.has_read, self.pace_misses) {
                    // It is still starting: several unread chunks would be read as one.
                    (false, _) => Duration::MAX,
                    (true, PACE_MISSES_MAX..) => Duration::ZERO,
                    (true, _) => UNTAKEN_MAX,
                };
                if is_taken(stdin) {
                    (self.has_read, self.pace_misses) = (true, 0);
                } else if since.elapsed() < patience {
                    return;
                } else {
                    self.pace_misses += 1;
                }
                self.untaken = None;
            }
            let Some(chunk) = self.outbox.next() else {
                break false;
            };
            if writes == WRITES_IN_A_ROW {
                return;
            }
            writes += 1;
            let (length, paced) = (chunk.bytes.len(), chunk.paced);
            match rustix::io::write(stdin, chunk.bytes) {
                Ok(written) => {
                    self.outbox.advance(written);
                    if written < length {
                        return;
                    }
                    if paced && self.pace_misses < PACE_MISSES_MAX {
                        let now = Instant::now();
                        while !is_taken(stdin) && now.elapsed() < PACE {
                            std::thread::yield_now();
                        }
                        self.untaken = Some(now);
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => break true,
            }
        };
        if broken {
            self.stdin_broken_at = Some(Instant::now());
            self.break_stdin(log);
        } else if self.close_requested {
            self.stdin = None;
            self.note(EventKind::StdinClosed, log);
        }
    }

    /// Gives up on standard input; queued bytes count as not taken.
    fn break_stdin(&mut self, log: &mut dyn Log) {
        let unwritten_bytes = self.outbox.clear();
        if self.stdin.take().is_some() && unwritten_bytes > 0 {
            self.note(EventKind::StdinBroken { unwritten_bytes }, log);
        }
    }

    /// Standard output, standard error, the process and standard input, if they are to be waited on.
    pub(super) fn own_sources(&self) -> [Option<Source<'_>>; 4] {
        let writing = self.stdin.as_ref().filter(|_| !self.outbox.is_empty() && self.untaken.is_none());
        let living = self.pidfd.as_ref().filter(|_| self.ended.is_none());
        let sources = [
            (self.stdout.as_ref().filter(|_| !self.is_deaf), PollFlags::IN),
            (self.stderr.as_ref(), PollFlags::IN),
            (living, PollFlags::IN),
            (writing, PollFlags::OUT),
        ];
        sources.map(|(fd, flags)| Some((fd?.as_fd(), flags)))
    }

    /// Waits until a pipe, the process or one of `beside` is ready, or `timeout` has passed.
    fn wait(&self, timeout: Duration, beside: &[Source<'_>]) -> ReadySources {
        let own = self.own_sources();
        let sources: Vec<Source<'_>> = own.iter().flatten().chain(beside).copied().collect();
        let mut ready = wait_for(&sources, timeout).into_iter();
        let [stdout, stderr, process, _] = own.map(|source| source.is_some() && ready.next() == Some(true));
        ReadySources {
            stdout,
            stderr,
            process: process || self.pidfd.is_none(),
            beside: ready.any(|is_ready| is_ready),
        }
    }

    fn read(&mut self, ready: &ReadySources, now: Instant, log: &mut dyn Log) {
        if ready.stderr {
            self.read_stderr();
        }
        if ready.stdout {
            self.read_stdout(now, log);
        }
        if ready.process {
            self.look_for_exit(now);
        }
    }

    /// Reads the available standard output, up to a limit.
    pub(super) fn read_stdout(&mut self, now: Instant, log: &mut dyn Log) {
        for _ in 0..READS_IN_A_ROW {
            let Some(stdout) = &self.stdout else {
                return;
            };
            match rustix::io::read(stdout, &mut self.buffer) {
                Ok(0) => {
                    self.stdout = None;
                    self.stdout_closed_at = Some(now);
                    self.inbox.record(self.at_us(now), EventKind::StdoutClosed, log);
                }
                Ok(length) => {
                    let at_us = self.at_us(now);
                    if !self.inbox.take_stdout(&self.buffer[..length], at_us, log) {
                        self.over_budget = true;
                        self.stdout = None;
                        self.kill_group();
                        return;
                    }
                    if length < self.buffer.len() {
                        return;
                    }
                }
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }

    /// Reads the available standard error, up to a limit; keeps the first bytes and counts all.
    pub(super) fn read_stderr(&mut self) {
        for _ in 0..READS_IN_A_ROW {
            let Some(stderr) = &self.stderr else {
                return;
            };
            match rustix::io::read(stderr, &mut self.buffer) {
                Ok(0) => self.stderr = None,
                Ok(length) => {
                    self.inbox.take_stderr(&self.buffer[..length]);
                    if length < self.buffer.len() {
                        return;
                    }
                }
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }

    /// Notices the end of the process without reaping it.
    pub(super) fn look_for_exit(&mut self, now: Instant) {
        if self.ended.is_some() {
            return;
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let Ok(Some(status)) = rustix::process::waitid(WaitId::Pid(self.pid), options) else {
            return;
        };
        let code = status.exit_status().map(Exit::Code);
        if let Some(exit) = code.or_else(|| status.terminating_signal().map(Exit::Signal)) {
            self.ended = Some(ProcessEnd { exit, at: now });
        }
    }

    /// Records the end of the process after its standard output was read to the end, or another process has held that
    /// open too long, or time is up.
    fn settle_exit(&mut self, now: Instant, no_more_time: bool, log: &mut dyn Log) {
        let Some(ended) = self.ended.filter(|_| !self.exit_recorded && !self.killed && !self.is_deaf) else {
            return;
        };
        if self.stdout.is_none() || no_more_time || now >= ended.at + DRAIN_GRACE {
            self.break_stdin(log);
            self.exit_recorded = true;
            self.inbox.record(self.at_us(ended.at), EventKind::Exited { exit: ended.exit }, log);
        }
    }

    fn guard_memory(&mut self, now: Instant, log: &mut dyn Log) {
        self.sampled_at = now;
        if let Some(hwm_bytes) = self.tree_hwm_bytes().filter(|&bytes| bytes > self.budget.memory_bytes_max) {
            self.over_budget = true;
            self.kill_group();
            self.note(EventKind::Memory { label: OVER_BUDGET.to_owned(), hwm_bytes }, log);
            self.note(EventKind::Killed, log);
        }
    }

    /// Sum of VmHWM over the peer and its descendants, including orphans.
    pub(super) fn tree_hwm_bytes(&self) -> Option<u64> {
        self.family_pids().into_iter().filter_map(process::hwm_bytes).reduce(|sum, bytes| sum + bytes)
    }

    /// Sum of the processor time of these processes.
    pub(super) fn tree_cpu_time(&self) -> Option<Duration> {
        self.family_pids().into_iter().filter_map(process::cpu_time).reduce(|sum, time| sum + time)
    }
}

/// True if the peer has read everything written, has closed its input, or cannot be asked.
fn is_taken(stdin: &OwnedFd) -> bool {
    let is_closed = || {
        let mut set = [PollFd::new(stdin, PollFlags::empty())];
        let found = rustix::event::poll(&mut set, Some(&Timespec::default()));
        found.is_ok_and(|_| set[0].revents().contains(PollFlags::ERR))
    };
    rustix::io::ioctl_fionread(stdin).map_or(true, |left| left == 0) || is_closed()
}
