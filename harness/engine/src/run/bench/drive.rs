//! Load generator: one thread that writes requests, reads replies and measures the time.

use std::collections::VecDeque;
use std::ops::Range;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::live::{LivePeer, Trouble};
use super::schedule::Schedule;
use super::slice::Slice;
use super::usage::Usage;
use super::verify::Verifier;
use crate::contract::boundary::workload::Workload;

/// Smallest buffer for replies: the capacity of a pipe.
const BUFFER_BYTES: usize = 64 << 10;
/// Longest reply.
const REPLY_BYTES_MAX: usize = 64 << 20;
/// Reply length from which the time for judging is subtracted.
const JUDGED_APART_BYTES: usize = 16 << 10;
/// Minimum pause of an open loop, so that the peer gets its turn on the same processor. Delay that it causes counts as
/// latency like any other.
const PACE: Duration = Duration::from_micros(20);
/// Minimum time that an open loop gets to catch up after its end.
const CATCH_UP: Duration = Duration::from_millis(500);

/// Conversation in progress: requests sent and replies read.
pub(crate) struct Driver<'a> {
    live: &'a mut LivePeer,
    verifier: &'a mut Verifier,
    /// Requests one after the other ([`Workload::tape`]).
    tape: &'a [u8],
    request_bytes: usize,
    variants: u64,
    /// Maximum number of requests in one write.
    burst: u64,
    /// Range of the tape that is being written.
    writing: Range<usize>,
    sent: u64,
    answered: u64,
    buffer: Vec<u8>,
    filled: usize,
    judging: Duration,
    peak_bytes: u64,
}

impl<'a> Driver<'a> {
    /// Begins a conversation with the first variant of the request; `tape` is that of the workload.
    pub(crate) fn new(
        live: &'a mut LivePeer,
        verifier: &'a mut Verifier,
        workload: &Workload,
        tape: &'a [u8],
    ) -> Self {
        let variants = workload.requests.len().max(1);
        let request_bytes = workload.request_bytes();
        let buffer =
            vec![0; if workload.echoes { (request_bytes * 2).max(BUFFER_BYTES) } else { BUFFER_BYTES }];
        Self {
            live,
            verifier,
            tape,
            request_bytes,
            variants: variants as u64,
            burst: workload.burst().max(1),
            writing: 0..0,
            sent: 0,
            answered: 0,
            buffer,
            filled: 0,
            judging: Duration::ZERO,
            peak_bytes: 0,
        }
    }

    /// Processor time and memory that the peer's processes have used so far.
    pub(crate) fn usage(&self) -> Usage {
        self.live.usage()
    }

    /// Peak memory of an observed one-shot process, taken after its request was sent and when its reply began.
    pub(crate) fn peak_bytes(&self) -> u64 {
        self.peak_bytes
    }

    /// Keeps `window` requests under way for `time`, then waits for the outstanding replies. Sends at least one
    /// request.
    ///
    /// # Errors
    /// Fails if the peer ends, closes a pipe or answers wrongly.
    pub(crate) fn closed(&mut self, window: u64, time: Duration) -> Result<Slice, Trouble> {
        let mut slice = Slice::empty();
        self.judging = Duration::ZERO;
        let (first, began) = (self.answered, Instant::now());
        let end = began + time;
        let mut now = began;
        let mut sent_at: VecDeque<Instant> = VecDeque::with_capacity(window as usize);
        loop {
            if self.writing.is_empty() && (now < end || self.sent == first) {
                let burst = window - (self.sent - self.answered);
                self.queue(burst);
                sent_at.extend((0..burst).map(|_| now));
            }
            self.write()?;
            if self.sent == self.answered {
                break;
            }
            // With nothing left to write, the read may block: the watchdog ends a peer that hangs.
            if !self.writing.is_empty() && !self.wait(None).0 {
                now = Instant::now();
                continue;
            }
            let judging = self.judging;
            self.read(&mut |at| {
                let began = sent_at.pop_front().unwrap_or(at);
                slice.latencies.saturating_record(nanos(at.saturating_duration_since(began)));
                now = at;
            })?;
            if self.judging > judging {
                now = Instant::now();
            }
        }
        slice.requests = self.answered - first;
        slice.request_bytes = slice.requests * self.request_bytes as u64;
        slice.busy = began.elapsed().saturating_sub(self.judging);
        Ok(slice)
    }

    /// Sends `rate` requests per second at even times for `time`. A peer that falls behind gets extra time; requests
    /// unanswered after it are counted in `behind`, with the latency reached so far.
    ///
    /// # Errors
    /// Fails if the peer ends, closes a pipe or answers wrongly.
    pub(crate) fn open_loop(&mut self, rate: f64, time: Duration) -> Result<Slice, Trouble> {
        let schedule = Schedule::new(rate, nanos(time));
        let mut slice = Slice::empty();
        let first = self.answered;
        let began = Instant::now();
        let give_up = nanos(time + time.max(CATCH_UP));
        let mut now_ns = 0;
        loop {
            if self.writing.is_empty() && now_ns < give_up {
                let due = schedule.due(now_ns, self.sent - first).min(self.burst);
                self.queue(due);
            }
            self.write()?;
            let under_way = self.sent > self.answered;
            let next = if now_ns < give_up { schedule.wait_ns(now_ns, self.sent - first) } else { None };
            if !under_way && next.is_none() {
                break;
            }
            let next = if self.writing.is_empty() {
                next.map(|ns| Duration::from_nanos(ns).max(PACE))
            } else {
                None
            };
            let readable = self.wait(next).0;
            now_ns = nanos(began.elapsed());
            if readable && under_way {
                let mut index = self.answered - first;
                self.read(&mut |at| {
                    now_ns = nanos(at.saturating_duration_since(began));
                    slice.latencies.saturating_record(schedule.latency_ns(index, now_ns));
                    index += 1;
                })?;
            }
        }
        slice.requests = self.answered - first;
        slice.behind = schedule.total() - slice.requests;
        for index in slice.requests..schedule.total() {
            slice.latencies.saturating_record(schedule.latency_ns(index, now_ns));
        }
        slice.request_bytes = slice.requests * self.request_bytes as u64;
        slice.busy = began.elapsed().max(time);
        Ok(slice)
    }

    /// Sends one request to a one-shot process; returns the time from the start of the process to the end of its
    /// output. With `look`, also reads the memory of the process, which takes time.
    ///
    /// # Errors
    /// Fails if the peer closes a pipe too early or answers wrongly.
    pub(crate) fn one_shot(&mut self, look: bool) -> Result<Duration, Trouble> {
        self.queue(1);
        loop {
            match self.write() {
                // The peer may answer without reading the rest.
                Err(_) => self.writing = 0..0,
                Ok(()) if self.writing.is_empty() => {}
                Ok(()) => {
                    if !self.wait(None).0 {
                        continue;
                    }
                }
            }
            if self.writing.is_empty() && self.live.stdin.is_some() {
                if look {
                    self.peak_bytes = self.live.usage().peak_bytes;
                }
                self.live.stdin = None;
            }
            let held = self.filled;
            if self.read_some()? == 0 {
                break;
            }
            if held == 0 && look {
                // The process and its memory may be gone soon.
                self.peak_bytes = self.peak_bytes.max(self.live.usage().peak_bytes);
            }
        }
        let took = self.live.started.elapsed();
        let reply = &self.buffer[..self.filled];
        if reply.is_empty() {
            return Err(self.live.last_words());
        }
        let reply = reply.strip_suffix(b"\n").unwrap_or(reply);
        self.verifier.verify(0, reply).map_err(Trouble::Wrong)?;
        self.answered += 1;
        Ok(took)
    }

    /// Sends one request to a new process and measures from its start to its reply.
    ///
    /// # Errors
    /// Fails if the peer ends, closes a pipe or answers wrongly.
    pub(crate) fn first_reply(&mut self) -> Result<Duration, Trouble> {
        self.open()?;
        self.queue(1);
        let mut came = None;
        while came.is_none() {
            self.write()?;
            if self.writing.is_empty() || self.wait(None).0 {
                self.read(&mut |at| came = Some(at))?;
            }
        }
        Ok(came.unwrap_or_else(Instant::now).saturating_duration_since(self.live.started))
    }

    /// Opens the session if the boundary requires it.
    fn open(&mut self) -> Result<(), Trouble> {
        for (line, is_awaited) in self.live.opening() {
            let Some(stdin) = &self.live.stdin else { break };
            // An empty pipe takes a line of this length whole.
            if rustix::io::write(stdin, &line) != Ok(line.len()) {
                return Err(self.live.last_words());
            }
            let mut waits = is_awaited;
            while waits {
                let Some(end) = memchr::memchr(b'\n', &self.buffer[..self.filled]) else {
                    if self.read_some()? == 0 {
                        return Err(self.live.last_words());
                    }
                    continue;
                };
                waits = self.live.is_aside(&self.buffer[..end]);
                self.buffer.copy_within(end + 1..self.filled, 0);
                self.filled -= end + 1;
            }
        }
        Ok(())
    }

    fn queue(&mut self, requests: u64) {
        let start = (self.sent % self.variants) as usize * self.request_bytes;
        self.writing = start..start + requests as usize * self.request_bytes;
        self.sent += requests;
    }

    /// Writes as much as the pipe takes without blocking.
    fn write(&mut self) -> Result<(), Trouble> {
        while !self.writing.is_empty() {
            let Some(stdin) = &self.live.stdin else { break };
            match rustix::io::write(stdin, &self.tape[self.writing.clone()]) {
                Ok(written) => self.writing.start += written,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => return Err(self.live.last_words()),
            }
        }
        Ok(())
    }

    /// Waits for output of the peer, for room in its input if something is to be written, or for `patience`. Returns
    /// readiness to read and to write.
    fn wait(&self, patience: Option<Duration>) -> (bool, bool) {
        let timeout = patience.and_then(|patience| Timespec::try_from(patience).ok());
        let ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        let out = PollFd::from_borrowed_fd(self.live.stdout.as_fd(), PollFlags::IN);
        match self.live.stdin.as_ref().filter(|_: &&OwnedFd| !self.writing.is_empty()) {
            Some(stdin) => {
                let mut set = [out, PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::OUT)];
                // After a signal the caller polls again.
                let _ = rustix::event::poll(&mut set, timeout.as_ref());
                (ready(&set[0]), ready(&set[1]))
            }
            None => {
                let mut set = [out];
                let _ = rustix::event::poll(&mut set, timeout.as_ref());
                (ready(&set[0]), false)
            }
        }
    }

    /// Reads once, blocking, and reports the time of each complete reply.
    fn read(&mut self, reply: &mut dyn FnMut(Instant)) -> Result<(), Trouble> {
        let fresh = self.filled;
        if self.read_some()? == 0 {
            return Err(self.live.last_words());
        }
        let at = Instant::now();
        let mut begin = 0;
        let mut search = fresh;
        while let Some(end) =
            memchr::memchr(b'\n', &self.buffer[search..self.filled]).map(|found| search + found)
        {
            let frame = &self.buffer[begin..end];
            if self.answered == self.sent && !self.live.is_aside(frame) {
                let mut frame = frame.to_vec();
                self.live.secrets.cover(&mut frame);
                let text = String::from_utf8_lossy(&frame[..frame.len().min(80)]).into_owned();
                return Err(Trouble::Wrong(format!("a reply without a request: {text}")));
            }
            let apart = (frame.len() > JUDGED_APART_BYTES).then(Instant::now);
            let verified = match self.answered == self.sent {
                true => Err(String::new()),
                false => self.verifier.verify(self.answered, frame),
            };
            match verified {
                Err(wrong) if !self.live.is_aside(frame) => return Err(Trouble::Wrong(wrong)),
                Err(_) => {}
                Ok(()) => {
                    if let Some(apart) = apart {
                        self.judging += apart.elapsed();
                    }
                    self.answered += 1;
                    reply(at);
                }
            }
            begin = end + 1;
            search = begin;
        }
        if begin > 0 {
            self.buffer.copy_within(begin..self.filled, 0);
            self.filled -= begin;
        }
        Ok(())
    }

    /// Reads once, blocking; returns 0 at the end of output.
    fn read_some(&mut self) -> Result<usize, Trouble> {
        if self.filled == self.buffer.len() {
            if self.filled >= REPLY_BYTES_MAX {
                let text = format!("a reply of more than {REPLY_BYTES_MAX} bytes");
                return Err(Trouble::Wrong(text));
            }
            self.buffer.resize(self.filled * 2, 0);
        }
        loop {
            match rustix::io::read(&self.live.stdout, &mut self.buffer[self.filled..]) {
                Ok(read) => {
                    self.filled += read;
                    return Ok(read);
                }
                Err(Errno::INTR) => {}
                Err(_) => return Ok(0),
            }
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
