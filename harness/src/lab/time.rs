//! How long the lab waits.

use std::time::{Duration, Instant};

use super::Run;
use crate::budget;
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
        if pumped == Pumped::Gone && self.lab.peer.is_process() && !self.plan.fixtures.is_empty() {
            // What the peer started is looked at after it has ended itself.
            std::thread::sleep(time.saturating_sub(began.elapsed()));
        }
        self.record(session, Kind::Waited { ms: u64::try_from(time.as_millis()).unwrap_or(u64::MAX) });
    }

    /// The time that is let pass on purpose.
    pub(super) fn waits(&self) -> Duration {
        let times = self.plan.steps.iter().map(|step| match step.act {
            Act::Wait { ms } => Duration::from_millis(ms),
            Act::ProbeActor { after_ms, .. } => self.stretched(after_ms),
            _ => Duration::ZERO,
        });
        times.sum()
    }

    /// How long a session may live: the budget, and more where very many replies are due or time is let pass.
    pub(super) fn life(&self, session: usize) -> Duration {
        let awaited =
            self.plan.steps.iter().filter(|step| step.session == session).map(|step| match step.act {
                Act::Send { await_frames, .. } => await_frames,
                _ => 0,
            });
        let share = f64::from(awaited.sum::<u32>()) / f64::from(REPLIES_PER_LIFE);
        self.lab.budget.connection.mul_f64(share.max(1.0)) + self.waits()
    }

    /// The time after which a canary is asked instead: that of the lab, and more where much was written.
    pub(super) fn patience(&self, session: usize) -> Duration {
        let written = self.live[session].bytes_pending as f64 / 1e6;
        self.lab.patience() + self.lab.budget.reply_per_mib.mul_f64(written)
    }

    /// How long a reply may take: the budget, and more for a peer that was slow with its canaries.
    pub(super) fn deadline(&self, session: usize, step: &Step) -> Duration {
        let latency = self.lab.peer.latency();
        let slow_peer = (latency * LATENCIES_PER_REPLY).min(self.lab.budget.reply * 4);
        self.lab.budget.reply_to(self.live[session].bytes_pending).max(slow_peer)
            + self.stretched(step.allow_ms)
    }

    /// A time that the plan gives the peer.
    pub(super) fn stretched(&self, ms: u64) -> Duration {
        budget::stretched(Duration::from_millis(ms), self.lab.timeout_scale)
    }
}
