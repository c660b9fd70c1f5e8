//! Waiting times of the lab.

use std::time::{Duration, Instant};

use super::{LARGE_BYTES, PlanRun};
use crate::data::budget;
use crate::data::pace::{FIRST_ANSWER, Measured};
use crate::data::plan::{Act, Step};
use crate::data::transcript::{Awaited, EventKind};
use crate::drive::transport::{Pumped, Until};

/// Deadline of a reply as a multiple of the slowest canary, if that exceeds the budget: peers that start a process per
/// call can be slow on a busy machine.
const LATENCIES_PER_REPLY: u32 = 6;

/// Number of consecutive late replies after which a peer counts as silent.
const SILENCES: u32 = 2;
/// Divisor of the wait before the next canary of a silent peer.
const SILENT_SHARE: u32 = 6;

/// Extra time of a busy peer for large input, as a multiple of its deadline.
const BUSY_FACTOR: f64 = 1.5;
/// Maximum interval between two looks at a busy peer.
const BUSY_SLICE: Duration = Duration::from_secs(2);
/// Minimum interval between two looks, because processor time is measured in steps of 10 ms.
const BUSY_SLICE_MIN: Duration = Duration::from_millis(50);
/// Share of a processor from which a peer counts as busy; low, because the machine may be loaded.
const BUSY_SHARE: f64 = 0.1;

/// Number of slow replies, of a quarter of a second each, in the life of a connection. A conversation with more replies
/// may last proportionally longer.
const REPLIES_PER_LIFE: u32 = 480;

/// Start-up time granted to any process if none was measured.
const START_LEAST: Duration = Duration::from_millis(300);

impl PlanRun<'_> {
    /// Waits for `time`.
    pub(super) fn let_pass(&mut self, session: usize, time: Duration) {
        let began = Instant::now();
        let pumped = self.pump(session, Until::Elapsed(time), time + Duration::from_secs(1));
        if pumped == Pumped::Gone && self.lab.peer.is_process() && self.plan.needs_folder() {
            // Processes that the peer started may be inspected after its end.
            self.idle(time.saturating_sub(began.elapsed()), None);
        }
        self.record(session, EventKind::Waited { ms: u64::try_from(time.as_millis()).unwrap_or(u64::MAX) });
    }

    /// Total of the intended waits in the plan.
    pub(super) fn waits(&self) -> Duration {
        let times = self.plan.steps.iter().map(|step| match step.act {
            Act::Wait { ms } => Duration::from_millis(ms),
            Act::ProbeActor { after_ms: ms, .. }
            | Act::Look { after_ms: ms, .. }
            | Act::Await { within_ms: ms, .. }
            | Act::SignalWhen { within_ms: ms, .. } => self.stretched(ms),
            _ => Duration::ZERO,
        });
        times.sum()
    }

    /// Measurements of a session's command.
    fn measured(&self, session: usize) -> Measured {
        self.lab.peer.pace.of(&self.plan.sessions[session].command)
    }

    /// True if no start of the session's command was measured yet.
    pub(super) fn is_unknown(&self, session: usize) -> bool {
        self.measured(session).start_up.is_none()
    }

    /// True if the peer was silent in an earlier session for as long as any start may take: another session would cost
    /// as much.
    pub(super) fn is_given_up(&self, session: usize) -> bool {
        let start_up = self.lab.budget.start_up;
        let is_whole = |kind: &EventKind| match kind {
            EventKind::DeadlinePassed { awaited: Awaited::Exit | Awaited::Frames, waited_ms, .. } => {
                Duration::from_millis(*waited_ms) >= start_up
            }
            _ => false,
        };
        self.lab.peer.is_process()
            && self.is_unknown(session)
            && self.live.iter().all(|live| live.first_us.is_none())
            && self.events.iter().any(|event| is_whole(&event.kind))
    }

    /// Remaining time for the start of a silent peer.
    pub(super) fn until_ready(&self, session: usize) -> Duration {
        let live = &self.live[session];
        if live.first_us.is_some() {
            return Duration::ZERO;
        }
        let measured = self.measured(session);
        let slowest = measured.start_up.filter(|_| self.lab.budget.hurries);
        let most = slowest.unwrap_or_else(|| self.start_up_max(measured));
        most.saturating_sub(Duration::from_micros(self.now_us(session)))
    }

    /// Total time that the starts of the plan's sessions may take.
    pub(super) fn start_ups(&self) -> Duration {
        let sessions = 0..self.plan.sessions.len();
        sessions.map(|session| self.start_up_max(self.measured(session))).sum()
    }

    /// Maximum time of a process until its first answer.
    fn start_up_max(&self, measured: Measured) -> Duration {
        let most = self.lab.budget.start_up;
        if !self.lab.peer.boundary.description().converses || measured.start_up.is_none() {
            return measured.start_up_max(most);
        }
        let [least, longest] = FIRST_ANSWER;
        measured.start_up_max(longest).max(least)
    }

    /// Maximum life of a session: the budget, extended for many due replies, intended waits and slow peers.
    pub(super) fn life(&self, session: usize) -> Duration {
        let awaited =
            self.plan.steps.iter().filter(|step| step.session == session).map(|step| match step.act {
                Act::Send { await_frames, .. } => await_frames,
                _ => 0,
            });
        let awaited = awaited.sum::<u32>();
        let share = f64::from(awaited) / f64::from(REPLIES_PER_LIFE);
        let Measured { start_up, latency, .. } = self.measured(session);
        self.lab.budget.connection.mul_f64(share.max(1.0))
            // Until a latency is measured, a reply may take as long as a start.
            + latency.or(start_up).unwrap_or_default() * awaited
            + self.waits()
            + self.start_ups()
    }

    /// Wait before a canary is sent instead: longer after large input and for a peer that is starting.
    pub(super) fn patience(&self, session: usize) -> Duration {
        let written = self.live[session].bytes_pending as f64 / 1e6;
        self.least_patience(session) + self.lab.budget.reply_per_mib.mul_f64(written)
    }

    /// Wait before a canary, regardless of the size of the input.
    pub(super) fn least_patience(&self, session: usize) -> Duration {
        let usual_latency = self.measured(session).usual_latency;
        let budget = &self.lab.budget;
        let patience =
            (usual_latency.unwrap_or_default() * budget.latencies_per_patience).max(budget.patience);
        // A reply overtaken by its canary still counts. A peer that ignores step after step is not just late.
        let is_silent = self.live[session].silences >= SILENCES;
        let patience = if is_silent { patience / SILENT_SHARE } else { patience };
        let starts = if budget.hurries { Duration::ZERO } else { self.start_left(session) };
        patience.mul_f64(self.lab.timeout_scale).min(budget.reply) + starts
    }

    /// Rest of the slowest measured start, for a silent peer.
    pub(super) fn start_left(&self, session: usize) -> Duration {
        let start_up = self.measured(session).start_up.filter(|_| self.live[session].first_us.is_none());
        start_up.unwrap_or_default().saturating_sub(Duration::from_micros(self.now_us(session)))
    }

    /// Rest of the slowest measured start or of the minimum granted to any process, whichever is longer.
    pub(super) fn least_start_left(&self, session: usize) -> Duration {
        match self.live[session].first_us {
            Some(_) => Duration::ZERO,
            None => {
                let least = START_LEAST.saturating_sub(Duration::from_micros(self.now_us(session)));
                self.start_left(session).max(least)
            }
        }
    }

    /// Deadline of a reply from a ready peer: the budget, extended for a peer with slow canaries.
    pub(super) fn deadline(&self, session: usize, step: &Step) -> Duration {
        let latency = self.measured(session).latency.unwrap_or_default();
        let slow_peer = (latency * LATENCIES_PER_REPLY).min(self.lab.budget.reply * 4);
        let bytes = self.live[session].bytes_pending;
        let most = if bytes < LARGE_BYTES { Duration::MAX } else { self.lab.budget.allow_large };
        self.lab.budget.reply_to(bytes).max(slow_peer) + self.stretched(step.allow_ms).min(most)
    }

    /// Waits for replies or the end. After large input, waits longer as long as the peer is visibly busy: no contract
    /// sets a reading speed. An idle peer is given up in time.
    pub(super) fn pump_replies(&mut self, session: usize, until: Until, deadline: Duration) -> Pumped {
        let pumped = self.pump_while_replies_come(session, until, deadline);
        if self.live[session].bytes_pending < LARGE_BYTES {
            return pumped;
        }
        self.pump_while_busy(session, until, pumped, deadline.mul_f64(BUSY_FACTOR), BUSY_SLICE)
    }

    /// Waits for replies as long as patience lasts. After large input, an idle peer gets its canary as soon as after
    /// small input.
    pub(super) fn pump_patiently(&mut self, session: usize, until: Until, deadline: Duration) -> Pumped {
        let most = self.patience(session).min(deadline);
        let is_large = self.live[session].bytes_pending >= LARGE_BYTES;
        if !is_large || self.cpu_time(session).is_none() {
            return self.pump_replies(session, until, most);
        }
        let least = self.least_patience(session).min(deadline);
        let pumped = self.pump_while_replies_come(session, until, least);
        let more = most.mul_f64(1.0 + BUSY_FACTOR).saturating_sub(least);
        self.pump_while_busy(session, until, pumped, more, least)
    }

    /// Waits on, for up to `more` in total, while the peer is visibly busy.
    fn pump_while_busy(
        &mut self,
        session: usize,
        until: Until,
        mut pumped: Pumped,
        mut more: Duration,
        slice: Duration,
    ) -> Pumped {
        while let Pumped::Deadline(_) = pumped
            && !more.is_zero()
        {
            let slice = more.min(slice.clamp(BUSY_SLICE_MIN, BUSY_SLICE));
            more -= slice;
            let before = self.cpu_time(session);
            pumped = self.pump(session, until, slice);
            let worked = self.cpu_time(session).zip(before).map(|(now, before)| now.saturating_sub(before));
            if worked.is_none_or(|worked| worked < slice.mul_f64(BUSY_SHARE)) {
                break;
            }
        }
        pumped
    }

    /// Processor time used by the peer of a session.
    fn cpu_time(&self, session: usize) -> Option<Duration> {
        self.connections[session].as_ref().and_then(|connection| connection.cpu_time())
    }

    /// Time that the plan grants the peer, scaled by `--timeout-scale`.
    pub(super) fn stretched(&self, ms: u64) -> Duration {
        budget::stretched(Duration::from_millis(ms), self.lab.timeout_scale)
    }
}
