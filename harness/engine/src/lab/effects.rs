//! Waits for effects beside a session.

use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use super::Run;
use crate::blame::HarnessFault;
use crate::budget::LOOK_FOR_INTERRUPT_EVERY;
use crate::fixture::Fixtures;
use crate::plan::Effect;
use crate::transcript::{Awaited, Kind};
use crate::transport::{Pumped, Until};

/// How long something is awaited at most once nothing lives that could bring it about, milliseconds.
const AFTERMATH_MS: u64 = 1_000;

impl Run<'_> {
    /// Waits until `what` is seen; false where that takes longer than `within`, which is recorded.
    ///
    /// # Errors
    /// One sentence about the plan or the machine: nothing can be seen there.
    pub(super) fn await_effect(
        &mut self,
        session: usize,
        what: &Effect,
        within: Duration,
        fixtures: &Fixtures,
    ) -> Result<bool, HarnessFault> {
        // Time that is not real brings nothing.
        let within =
            if self.lab.peer.is_process() { within / self.lab.budget.effect_share } else { Duration::ZERO };
        let began = Instant::now();
        let mut eye = fixtures.eye(what)?;
        let signal = eye.signal();
        let mut over_since: Option<Instant> = None;
        while !eye.sees()? {
            let mut left = within.saturating_sub(began.elapsed());
            over_since = self.is_over(fixtures)?.then(|| over_since.unwrap_or_else(Instant::now));
            if let Some(since) = over_since {
                left = left.min(Duration::from_millis(AFTERMATH_MS).saturating_sub(since.elapsed()));
            }
            if left.is_zero() || self.lab.budget.is_interrupted() {
                let waited_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                self.record(session, Kind::DeadlinePassed { awaited: Awaited::Effect, waited_ms });
                return Ok(false);
            }
            let pumped = self.pump_beside(session, Until::Elapsed(left), left, Some(signal.as_fd()));
            if !matches!(pumped, None | Some(Pumped::Reached)) {
                // The peer is gone, and what it has brought about may still come.
                self.idle(left.min(LOOK_FOR_INTERRUPT_EVERY), Some(signal.as_fd()));
            }
        }
        Ok(true)
    }

    /// Whether all that was started has ended, and nothing of it lives.
    fn is_over(&self, fixtures: &Fixtures) -> Result<bool, HarnessFault> {
        let is_started = self.live.iter().any(|live| live.opened);
        let is_over = self.connections.iter().flatten().all(|connection| connection.is_over());
        Ok(is_started && is_over && !fixtures.is_played()?)
    }
}
