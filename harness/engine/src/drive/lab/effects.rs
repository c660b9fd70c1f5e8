//! Waiting for effects outside a session.

use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use super::PlanRun;
use crate::data::blame::HarnessFault;
use crate::data::budget::LOOK_FOR_INTERRUPT_EVERY;
use crate::data::plan::AwaitedEffect;
use crate::data::transcript::{Awaited, EventKind};
use crate::drive::fixture::Fixtures;
use crate::drive::transport::{Pumped, Until};

/// Maximum wait for an effect after every process that could cause it has ended, milliseconds.
const AFTERMATH_MS: u64 = 1_000;

impl PlanRun<'_> {
    /// Waits until `what` has happened. Returns false after `within`, which is recorded.
    ///
    /// # Errors
    /// Reports a fault of the plan or the machine: the effect cannot be observed.
    pub(super) fn await_effect(
        &mut self,
        session: usize,
        what: &AwaitedEffect,
        within: Duration,
        fixtures: &Fixtures,
    ) -> Result<bool, HarnessFault> {
        // On a virtual clock, waiting brings nothing.
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
                self.record(
                    session,
                    EventKind::DeadlinePassed { awaited: Awaited::Effect, waited_ms, slept: false },
                );
                return Ok(false);
            }
            let pumped = self.pump_beside(session, Until::Elapsed(left), left, Some(signal.as_fd()));
            if !matches!(pumped, None | Some(Pumped::Reached)) {
                // The peer has gone; its effects may still arrive.
                self.idle(left.min(LOOK_FOR_INTERRUPT_EVERY), Some(signal.as_fd()));
            }
        }
        Ok(true)
    }

    /// True if every started process has ended, actors included.
    fn is_over(&self, fixtures: &Fixtures) -> Result<bool, HarnessFault> {
        let is_started = self.live.iter().any(|live| live.opened);
        let is_over = self.connections.iter().flatten().all(|connection| connection.is_over());
        Ok(is_started && is_over && !fixtures.is_played()?)
    }
}
