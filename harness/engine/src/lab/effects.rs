//! Waits for effects beside a session.

use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use super::Run;
use crate::fixture::Fixtures;
use crate::plan::Effect;
use crate::transcript::{Awaited, Kind};
use crate::transport::{Pumped, Until};

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
    ) -> Result<bool, String> {
        // Time that is not real brings nothing.
        let within = if self.lab.peer.is_process() { within } else { Duration::ZERO };
        let began = Instant::now();
        let mut eye = fixtures.eye(what)?;
        let signal = eye.signal();
        while !eye.sees()? {
            let left = within.saturating_sub(began.elapsed());
            if left.is_zero() || self.lab.budget.is_interrupted() {
                let waited_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                self.record(session, Kind::DeadlinePassed { awaited: Awaited::Effect, waited_ms });
                return Ok(false);
            }
            let pumped = self.pump_beside(session, Until::Elapsed(left), left, Some(signal.as_fd()));
            if !matches!(pumped, None | Some(Pumped::Reached)) {
                // The peer is gone, and what it has brought about may still come.
                self.idle(within.saturating_sub(began.elapsed()), Some(signal.as_fd()));
            }
        }
        Ok(true)
    }
}
