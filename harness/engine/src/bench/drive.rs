//! The load: one thread that writes requests, reads replies, and takes the time.

use std::collections::VecDeque;
use std::ops::Range;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::live::{Live, Trouble};
use super::schedule::Schedule;
use super::slice::Slice;
use super::usage::Usage;
use super::verify::Verifier;
use crate::boundary::workload::Workload;

/// Smallest buffer for replies: what a pipe holds.
const BUFFER_BYTES: usize = 64 << 10;
/// Longest reply.
const REPLY_BYTES_MAX: usize = 64 << 20;
/// Judging longer replies takes time that counts: it is taken out.
const JUDGED_APART_BYTES: usize = 16 << 10;
/// An open loop wakes up by itself no more often than that, so that the peer gets its turn on the same processor. What
/// is sent late by it is charged as any delay.
const PACE: Duration = Duration::from_micros(20);
/// How long an open loop goes on after its time to catch up, at least.
const CATCH_UP: Duration = Duration::from_millis(500);

/// One conversation in progress: what is sent, and where its answers are.
pub struct Driver<'a> {
    live: &'a mut Live,
    verifier: &'a mut Verifier,
    /// Requests in turn ([`Workload::tape`]).
    tape: &'a [u8],
    request_bytes: usize,
    variants: u64,
    /// Most requests in one write.
    burst: u64,
    /// Part of the tape that is being written.
    writing: Range<usize>,
    sent: u64,
    answered: u64,
    buffer: Vec<u8>,
    filled: usize,
    judging: Duration,
    peak_bytes: u64,
}

impl<'a> Driver<'a> {
    /// A conversation that begins with the first variant; `tape` is that of the workload.
    pub fn new(live: &'a mut Live, verifier: &'a mut Verifier, workload: &Workload, tape: &'a [u8]) -> Self {
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

    /// What the peer's processes have used so far.
    pub fn usage(&self) -> Usage {
        self.live.usage()
    }

    /// Most memory of a one-shot process that was looked at, seen when it had its request and when its reply began.
    pub fn peak_bytes(&self) -> u64 {
        self.peak_bytes
    }

    /// Keeps `window` requests under way for `time`, then waits for the replies that are due. At least one request is
    /// sent.
    ///
    /// # Errors
    /// The peer breaks off or answers wrongly.
    pub fn closed(&mut self, window: u64, time: Duration) -> Result<Slice, Trouble> {
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
            // With nothing left to write the read may wait: the watchdog looks after it.
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

    /// Sends `rate` requests a second at even times for `time`. A peer that falls behind gets some more time; what is
    /// not answered then is counted, with the latency that it has reached.
    ///
    /// # Errors
    /// The peer breaks off or answers wrongly.
    pub fn open_loop(&mut self, rate: f64, time: Duration) -> Result<Slice, Trouble> {
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

    /// The one request of a one-shot process: from the start of the process to the end of its output. With `look` its
    /// memory is looked at on the way, which takes time.
    ///
    /// # Errors
    /// The peer breaks off or answers wrongly.
    pub fn one_shot(&mut self, look: bool) -> Result<Duration, Trouble> {
        self.queue(1);
        loop {
            match self.write() {
                // It may answer without reading the rest.
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
                // It is about to end, and its memory with it.
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

    /// One request to a process that was just started: from its start to its reply.
    ///
    /// # Errors
    /// The peer breaks off or answers wrongly.
    pub fn first_reply(&mut self) -> Result<Duration, Trouble> {
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

    /// Opens the session, where the boundary has an opening.
    fn open(&mut self) -> Result<(), Trouble> {
        for (line, is_awaited) in self.live.opening() {
            let Some(stdin) = &self.live.stdin else { break };
            // A pipe that is empty takes such a line whole.
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

    /// Writes what the pipe takes without waiting.
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

    /// Waits until there is something to read, or room to write where something is to be written, or `patience` has
    /// passed; whether there is something to read, and to write.
    fn wait(&self, patience: Option<Duration>) -> (bool, bool) {
        let timeout = patience.and_then(|patience| Timespec::try_from(patience).ok());
        let ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        let out = PollFd::from_borrowed_fd(self.live.stdout.as_fd(), PollFlags::IN);
        match self.live.stdin.as_ref().filter(|_: &&OwnedFd| !self.writing.is_empty()) {
            Some(stdin) => {
                let mut set = [out, PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::OUT)];
                // Interrupted or not: the caller looks again.
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

    /// Reads once, waiting for it, and hands over the time of each reply that is complete.
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
                return Err(Trouble::Wrong(format!("a reply that nobody asked for: {text}")));
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

    /// Reads once, waiting for it; 0 at the end.
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
