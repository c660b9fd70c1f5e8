//! Kept processes: opened once, they serve several conversations.
//!
//! A conversation that begins with an opening ([`Plan::opening`]) may leave its process to the next one with the same
//! opening. That one's transcript contains the opening as if it were the first: its events, counters and clock start
//! from the moment at which the session was open.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use tempfile::TempDir;

use super::{LiveSession, PlanRun, replies};
use crate::data::plan::{Plan, Step};
use crate::data::transcript::{Event, EventKind};
use crate::drive::transport::Connection;

/// Maximum number of conversations per process.
const USES_MAX: u32 = 40;
/// Divisor of a connection's life after which its process serves no further conversation.
const SHARE_OF_LIFE: u32 = 3;
/// Maximum number of idle processes.
const KEPT_MAX: usize = 4;

/// Idle process between two conversations.
pub struct IdleProcess {
    connection: Box<dyn Connection + Send>,
    live: LiveSession,
    begun: Opening,
    /// Folder of the process, which lives as long as it.
    pub(super) folder: Option<TempDir>,
}

/// Opening of a process: its steps, their events and the time at which the session was open.
pub(super) struct Opening {
    steps: Vec<Step>,
    /// Events until the session was open.
    events: Vec<Event>,
    /// Time at which the session was open, on the transcript's clock.
    at_us: u64,
    since: Instant,
    /// Number of the current conversation.
    turn: u32,
}

impl IdleProcess {
    /// Number of the next conversation of the process; the first one has 0.
    pub fn turn(&self) -> u32 {
        self.begun.turn + 1
    }

    /// Steps that opened the process.
    pub fn opening(&self) -> &[Step] {
        &self.begun.steps
    }
}

impl PlanRun<'_> {
    /// Records that these steps have just opened the session.
    pub(super) fn begun(&self, opening: &[Step]) -> Opening {
        let at_us = self.now_us(0).saturating_add_signed(self.live[0].offset_us);
        Opening { steps: opening.to_vec(), events: self.events.clone(), at_us, since: self.begun, turn: 0 }
    }

    /// Continues in a process after its opening. Output since then does not belong to this conversation.
    pub(super) fn resume(&mut self, kept: IdleProcess) -> Opening {
        let IdleProcess { connection, mut live, begun, .. } = kept;
        self.events.clone_from(&begun.events);
        live.offset_us = begun.at_us.cast_signed() - connection.now_us().cast_signed();
        let place = replies::FrameStart::of_event(self.events.len(), live.frames);
        (live.sorted, live.sorted_at, live.answered_at) = (live.frames, place, place);
        self.connections[0] = Some(connection);
        self.live[0] = live;
        let frames = self.frame_count(0);
        let live = &mut self.live[0];
        (live.frames_awaited, live.frames_answered, live.lines_sent) = (frames, frames, frames);
        Opening { turn: begun.turn + 1, ..begun }
    }

    /// Takes the process out of a conversation that left nothing open.
    pub(super) fn keep(&mut self, begun: Opening) -> Option<IdleProcess> {
        self.sort_frames(0);
        let live = &self.live[0];
        let is_old = begun.since.elapsed() > self.lab.budget.connection / SHARE_OF_LIFE;
        let is_open = live.over || live.short_of_frames || live.lines_pending > 0;
        let is_missed =
            |event: &Event| matches!(event.kind, EventKind::DeadlinePassed { .. } | EventKind::Exited { .. });
        let received = self.events.iter().rev().find_map(|event| match &event.kind {
            EventKind::Received { bytes } => bytes.0.last(),
            _ => None,
        });
        let is_whole = received == Some(&b'\n');
        if is_old || is_open || !is_whole || begun.turn + 1 >= USES_MAX || self.events.iter().any(is_missed) {
            return None;
        }
        self.saw_start_up(0);
        let connection = self.connections[0].take_if(|connection| connection.exit().is_none())?;
        let live = std::mem::take(&mut self.live[0]);
        Some(IdleProcess { connection: connection.into_kept()?, live, begun, folder: None })
    }
}

/// Idle processes. Dropping it ends them.
#[derive(Default)]
pub struct Pool(Mutex<Vec<IdleProcess>>);

impl Pool {
    /// Takes a process whose opening equals that of `plan`.
    pub fn take(&self, plan: &Plan) -> Option<IdleProcess> {
        let opening = plan.opening()?;
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|kept| kept.opening() == opening)?;
        Some(kept.swap_remove(at))
    }

    /// Returns a process. If too many are idle, the oldest ends.
    pub fn put(&self, process: IdleProcess) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let surplus = if kept.len() < KEPT_MAX { None } else { Some(kept.remove(0)) };
        kept.push(process);
        drop(kept);
        // Ends outside the lock.
        drop(surplus);
    }
}
