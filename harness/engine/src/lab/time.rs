//! How long the lab waits.

use std::time::{Duration, Instant};

use super::{LARGE_BYTES, Run};
use crate::budget;
use crate::pace::{FIRST_ANSWER, Measured};
use crate::plan::{Act, Step};
use crate::transcript::{Awaited, Kind};
use crate::transport::{Pumped, Until};

/// A reply is awaited for this many times as long as the slowest answer to a canary took, where that is more than the
/// budget: peers that are started for each call can be slow on a busy machine.
const LATENCIES_PER_REPLY: u32 = 6;

/// A peer whose reply had not come behind so many steps in a row is taken to be silent to them.
const SILENCES: u32 = 2;
/// The next one is waited for by this part of the time before its canary is sent.
const SILENT_SHARE: u32 = 6;

/// How much longer a busy peer may take over large input, as a part of the time it has anyway.
const BUSY_FACTOR: f64 = 1.5;
/// How often it is looked at whether the peer still works, at least.
const BUSY_SLICE: Duration = Duration::from_secs(2);
/// The same, at most: processor time is measured in steps of 10 ms.
const BUSY_SLICE_MIN: Duration = Duration::from_millis(50);
/// Part of a processor that counts as working; the machine may be loaded.
const BUSY_SHARE: f64 = 0.1;

/// How many replies of a slow peer fit into the life of a connection, a quarter of a second each: a conversation that
/// asks for more may last longer in proportion.
const REPLIES_PER_LIFE: u32 = 480;

/// What any process gets to start where its start is let pass, though none was measured.
const START_LEAST: Duration = Duration::from_millis(300);

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

    /// True if no start of the command of a session was measured yet.
    pub(super) fn is_unknown(&self, session: usize) -> bool {
        self.measured(session).start_up.is_none()
    }

    /// True if the peer said nothing at all in an earlier session that lasted as long as any start may: another one would
    /// cost as much.
    pub(super) fn is_given_up(&self, session: usize) -> bool {
        let start_up = self.lab.budget.start_up;
        let is_whole = |kind: &Kind| match kind {
            Kind::DeadlinePassed { awaited: Awaited::Exit | Awaited::Frames, waited_ms } => {
                Duration::from_millis(*waited_ms) >= start_up
            }
            _ => false,
        };
        self.lab.peer.is_process()
            && self.is_unknown(session)
            && self.live.iter().all(|live| live.first_us.is_none())
            && self.events.iter().any(|event| is_whole(&event.kind))
    }

    /// What is left of the time for the start of a session whose peer has said nothing yet.
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

    /// The time that the starts of the plan's sessions may take together.
    pub(super) fn start_ups(&self) -> Duration {
        let sessions = 0..self.plan.sessions.len();
        sessions.map(|session| self.start_up_max(self.measured(session))).sum()
    }

    /// Longest time that a process may take to its first answer.
    fn start_up_max(&self, measured: Measured) -> Duration {
        let most = self.lab.budget.start_up;
        if !self.lab.peer.boundary.converses() || measured.start_up.is_none() {
            return measured.start_up_max(most);
        }
        let [least, longest] = FIRST_ANSWER;
        measured.start_up_max(longest).max(least)
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
        let written = self.live[session].bytes_pending as f64 / 1e6;
        self.least_patience(session) + self.lab.budget.reply_per_mib.mul_f64(written)
    }

    /// The same, however much was written.
    pub(super) fn least_patience(&self, session: usize) -> Duration {
        let usual_latency = self.measured(session).usual_latency;
        let budget = &self.lab.budget;
        let patience =
            (usual_latency.unwrap_or_default() * budget.latencies_per_patience).max(budget.patience);
        // What a canary overtakes still counts, and a peer that is silent to one thing after the other is not late.
        let is_silent = self.live[session].silences >= SILENCES;
        let patience = if is_silent { patience / SILENT_SHARE } else { patience };
        let starts = if budget.hurries { Duration::ZERO } else { self.start_left(session) };
        patience.mul_f64(self.lab.timeout_scale).min(budget.reply) + starts
    }

    /// What is left of the slowest measured start, for a peer that has said nothing yet.
    pub(super) fn start_left(&self, session: usize) -> Duration {
        let start_up = self.measured(session).start_up.filter(|_| self.live[session].first_us.is_none());
        start_up.unwrap_or_default().saturating_sub(Duration::from_micros(self.now_us(session)))
    }

    /// The same, and where that is less, what is left of the time that any process gets to start.
    pub(super) fn least_start_left(&self, session: usize) -> Duration {
        match self.live[session].first_us {
            Some(_) => Duration::ZERO,
            None => {
                let least = START_LEAST.saturating_sub(Duration::from_micros(self.now_us(session)));
                self.start_left(session).max(least)
            }
        }
    }

    /// How long a reply may take once the peer is ready: the budget, and more for a peer that was slow with its canaries.
    pub(super) fn deadline(&self, session: usize, step: &Step) -> Duration {
        let latency = self.measured(session).latency.unwrap_or_default();
        let slow_peer = (latency * LATENCIES_PER_REPLY).min(self.lab.budget.reply * 4);
        let bytes = self.live[session].bytes_pending;
        let most = if bytes < LARGE_BYTES { Duration::MAX } else { self.lab.budget.allow_large };
        self.lab.budget.reply_to(bytes).max(slow_peer) + self.stretched(step.allow_ms).min(most)
    }

    /// Waits for replies or the end, and where much was written, longer for a peer that is visibly at work: no contract
    /// says how fast a peer reads, and an idle one is given up in time.
    pub(super) fn pump_replies(&mut self, session: usize, until: Until, deadline: Duration) -> Pumped {
        let pumped = self.pump_while_replies_come(session, until, deadline);
        if self.live[session].bytes_pending < LARGE_BYTES {
            return pumped;
        }
        self.pump_while_busy(session, until, pumped, deadline.mul_f64(BUSY_FACTOR), BUSY_SLICE)
    }

    /// Waits for replies as long as patience lasts. Where much was written, a peer that is not at work is asked a canary
    /// as soon as behind little.
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

    /// Waits on, for as long as `more` in all, where the time of a wait is over and the peer is visibly at work.
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

    /// Processor time of the peer of a session so far.
    fn cpu_time(&self, session: usize) -> Option<Duration> {
        self.connections[session].as_ref().and_then(|connection| connection.cpu_time())
    }

    /// A time that the plan gives the peer.
    pub(super) fn stretched(&self, ms: u64) -> Duration {
        budget::stretched(Duration::from_millis(ms), self.lab.timeout_scale)
    }
}
