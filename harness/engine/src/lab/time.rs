//! How long the lab waits.

use std::time::{Duration, Instant};

use super::{LARGE_BYTES, Run};
use crate::budget;
use crate::pace::Measured;
use crate::plan::{Act, Step};
use crate::transcript::Kind;
use crate::transport::{Pumped, Until};

/// A reply is awaited for this many times as long as the slowest answer to a canary took, where that is more than the
/// budget: peers that are started for each call can be slow on a busy machine.
const LATENCIES_PER_REPLY: u32 = 6;

/// How many replies of a slow peer fit into the life of a connection, a quarter of a second each: a conversation that
/// asks for more may last longer in proportion.
const REPLIES_PER_LIFE: u32 = 480;

impl Run<'_> {
    /// Lets time pass.
    pub(super) fn let_pass(&mut self, session: usize, time: Duration) {
        let began = Instant::now();
        let pumped = self.pump(session, Until::Elapsed(time), time + Duration::from_secs(1));
        if pumped == Pumped::Gone && self.lab.peer.is_process() && self.plan.needs_folder() {
            // What the peer started is looked at after it has ended itself.
            self.idle(time.saturating_sub(began.elapsed()), None);
        }
        self.record(session, Kind::Waited { ms: u64::try_from(time.as_millis()).unwrap_or(u64::MAX) });
    }

    /// The time that is let pass on purpose.
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

    /// What was measured of the command of a session.
    fn measured(&self, session: usize) -> Measured {
        self.lab.peer.pace.of(&self.plan.sessions[session].command)
    }

    /// What is left of the time for the start of a session whose peer has said nothing yet.
    pub(super) fn until_ready(&self, session: usize) -> Duration {
        let live = &self.live[session];
        if live.first_us.is_some() {
            return Duration::ZERO;
        }
        let most = self.measured(session).start_up_max(self.lab.budget.start_up);
        most.saturating_sub(Duration::from_micros(self.now_us(session)))
    }

    /// The time that the starts of the plan's sessions may take together.
    pub(super) fn start_ups(&self) -> Duration {
        let sessions = 0..self.plan.sessions.len();
        sessions.map(|session| self.measured(session).start_up_max(self.lab.budget.start_up)).sum()
    }

    /// How long a session may live: the budget, and more where very many replies are due, time is let pass, or the peer
    /// is slow.
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
            // As long as nothing else was measured, a reply may take what a start takes.
            + latency.or(start_up).unwrap_or_default() * awaited
            + self.waits()
            + self.start_ups()
    }

    /// The time after which a canary is asked instead: more where much was written, and for a peer that is starting.
    pub(super) fn patience(&self, session: usize) -> Duration {
        let Measured { start_up, usual_latency, .. } = self.measured(session);
        let budget = &self.lab.budget;
        let patience =
            (usual_latency.unwrap_or_default() * budget.latencies_per_patience).max(budget.patience);
        let written = self.live[session].bytes_pending as f64 / 1e6;
        let is_starting = self.live[session].first_us.is_none();
        let starts = start_up.filter(|_| is_starting).unwrap_or_default();
        patience.mul_f64(self.lab.timeout_scale).min(budget.reply)
            + budget.reply_per_mib.mul_f64(written)
            + starts.saturating_sub(Duration::from_micros(self.now_us(session)))
    }

    /// How long a reply may take once the peer is ready: the budget, and more for a peer that was slow with its canaries.
    pub(super) fn deadline(&self, session: usize, step: &Step) -> Duration {
        let latency = self.measured(session).latency.unwrap_or_default();
        let slow_peer = (latency * LATENCIES_PER_REPLY).min(self.lab.budget.reply * 4);
        let bytes = self.live[session].bytes_pending;
        let most = if bytes < LARGE_BYTES { Duration::MAX } else { self.lab.budget.allow_large };
        self.lab.budget.reply_to(bytes).max(slow_peer) + self.stretched(step.allow_ms).min(most)
    }

    /// A time that the plan gives the peer.
    pub(super) fn stretched(&self, ms: u64) -> Duration {
        budget::stretched(Duration::from_millis(ms), self.lab.timeout_scale)
    }
}
