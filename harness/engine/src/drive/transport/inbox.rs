//! Output of a peer: counted, limited, and recorded in few events.

use std::time::Duration;

use super::Log;
use crate::data::budget::Budget;
use crate::data::transcript::{Bytes, EventKind};

/// Maximum time since the first byte of an event at which later output joins it.
const MERGE_US: u64 = 1_000;

/// Output of one connection, and the latest time in its record.
#[derive(Debug)]
pub(super) struct Inbox {
    /// Number of complete lines on standard output.
    pub(super) frames: u64,
    stdout_bytes: usize,
    stdout_bytes_max: usize,
    stdout_lines_max: u64,
    /// Bytes taken but not recorded.
    held: Vec<u8>,
    held_at_us: u64,
    recorded_at_us: u64,
    stderr_kept: Vec<u8>,
    stderr_bytes: u64,
    stderr_bytes_kept: usize,
}

impl Inbox {
    pub(super) fn new(budget: &Budget) -> Self {
        Self {
            frames: 0,
            stdout_bytes: 0,
            stdout_bytes_max: budget.stdout_bytes_max,
            stdout_lines_max: budget.stdout_lines_max,
            held: Vec::new(),
            held_at_us: 0,
            recorded_at_us: 0,
            stderr_kept: Vec::new(),
            stderr_bytes: 0,
            stderr_bytes_kept: budget.stderr_bytes_kept,
        }
    }

    /// Takes bytes of standard output; returns false if they exceed the budget, which it records.
    pub(super) fn take_stdout(&mut self, bytes: &[u8], at_us: u64, log: &mut dyn Log) -> bool {
        let room = self.stdout_bytes_max - self.stdout_bytes;
        let mut kept = &bytes[..bytes.len().min(room)];
        let mut lines = memchr::memchr_iter(b'\n', kept).count() as u64;
        let lines_left = self.stdout_lines_max - self.frames;
        let mut lines_max = None;
        if lines > lines_left {
            let last = usize::try_from(lines_left).unwrap_or(usize::MAX);
            kept = &kept[..memchr::memchr_iter(b'\n', kept).nth(last).unwrap_or(kept.len())];
            lines = lines_left;
            lines_max = Some(self.stdout_lines_max);
        }
        if !self.held.is_empty() && at_us > self.held_at_us + MERGE_US {
            self.record_held(log);
        }
        if self.held.is_empty() {
            self.held_at_us = at_us;
        }
        self.frames += lines;
        self.held.extend_from_slice(kept);
        self.stdout_bytes += kept.len();
        if kept.len() < bytes.len() {
            let bytes_max = self.stdout_bytes_max as u64;
            self.record(at_us, EventKind::StdoutOverflow { bytes_max, lines_max }, log);
            return false;
        }
        true
    }

    /// Takes bytes of standard error: keeps the first ones and counts all.
    pub(super) fn take_stderr(&mut self, bytes: &[u8]) {
        let room = self.stderr_bytes_kept.saturating_sub(self.stderr_kept.len());
        self.stderr_kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.stderr_bytes += bytes.len() as u64;
    }

    /// Bytes of standard error kept so far.
    pub(super) fn stderr_so_far(&self) -> &[u8] {
        &self.stderr_kept
    }

    /// Records an event after all output taken before, and never earlier than the last event.
    pub(super) fn record(&mut self, at_us: u64, kind: EventKind, log: &mut dyn Log) {
        self.record_held(log);
        self.recorded_at_us = self.recorded_at_us.max(at_us);
        log.record(self.recorded_at_us, kind);
    }

    /// Records the held standard output.
    pub(super) fn record_held(&mut self, log: &mut dyn Log) {
        if !self.held.is_empty() {
            let bytes = Bytes(std::mem::take(&mut self.held));
            self.recorded_at_us = self.recorded_at_us.max(self.held_at_us);
            log.record(self.recorded_at_us, EventKind::Received { bytes });
        }
    }

    /// Records standard error, if there was any.
    pub(super) fn record_stderr(&mut self, at_us: u64, log: &mut dyn Log) {
        if self.stderr_bytes > 0 {
            let bytes = Bytes(std::mem::take(&mut self.stderr_kept));
            self.record(at_us, EventKind::Stderr { bytes, total_bytes: self.stderr_bytes }, log);
        }
    }
}

/// Converts a duration to whole microseconds.
pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
