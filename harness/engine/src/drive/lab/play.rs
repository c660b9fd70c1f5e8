//! Lets the boundary's counterpart talk to a peer that asks.

use std::time::Duration;

use serde_json::Value;

use super::PlanRun;
use crate::contract::counterpart::CounterpartAction;
use crate::data::blame::HarnessFault;
use crate::data::payload::Vars;
use crate::data::transcript::{Awaited, EventKind};
use crate::drive::transport::inbox::micros;
use crate::drive::transport::{Pumped, Until};

/// Maximum number of frames passed to the counterpart: no script needs more. Further bytes are recorded within the
/// budget.
const FRAMES_MAX: u64 = 8_192;

impl PlanRun<'_> {
    /// Runs the counterpart until the peer ends or its time is over, then ends the session.
    pub(super) fn play(
        &mut self,
        step: usize,
        session: usize,
        script: &Value,
        life_ms: u64,
    ) -> Result<(), HarnessFault> {
        let boundary = self.lab.peer.boundary;
        let mut counterpart = boundary
            .counterpart(self.plan, script)
            .ok_or_else(|| format!("{} cannot play the script of step {step}", boundary.name()))?;
        // Extra time for a busy machine.
        let life = self.stretched(life_ms) + self.lab.budget.reply;
        let mut since_us = self.now_us(session);
        // The time for an unknown start is long enough for a busy machine, too.
        let is_unknown = self.is_unknown(session);
        let silent = if is_unknown { self.stretched(life_ms).max(self.lab.budget.reply) } else { life };
        let mut end_us = since_us.saturating_add(micros(silent + self.until_ready(session)));
        let mut is_ready = false;
        let mut taken = 0;
        loop {
            if !is_ready && let Some(first_us) = self.live[session].first_us {
                // The times of a scenario count from the first request.
                is_ready = true;
                since_us = first_us;
                end_us = first_us.saturating_add(micros(life));
            }
            while taken < self.frame_count(session).min(FRAMES_MAX) && !self.lab.budget.is_interrupted() {
                if let Some(frame) = self.frame(session, taken) {
                    counterpart.take(&frame, self.now_us(session));
                }
                taken += 1;
            }
            while let Some(doing) = counterpart.next(self.now_us(session)) {
                self.carry_out(step, session, doing)?;
            }
            let now_us = self.now_us(session);
            if now_us >= end_us {
                self.deadline_passed(session, Awaited::Exit, since_us);
                break;
            }
            let until_us = counterpart.due_us().unwrap_or(end_us).clamp(now_us, end_us);
            let frames = if taken < FRAMES_MAX { taken + 1 } else { u64::MAX };
            match self.pump(session, Until::Frames(frames), Duration::from_micros(until_us - now_us)) {
                Pumped::Reached | Pumped::Deadline(_) | Pumped::Nothing(_) => {}
                Pumped::Gone if self.frame_count(session).min(FRAMES_MAX) > taken => {}
                Pumped::Gone => {
                    // The peer may have closed its output and live on.
                    let exit = self.lab.budget.exit;
                    let since_us = self.now_us(session);
                    if let Pumped::Deadline(_) = self.pump(session, Until::Exited, exit) {
                        self.deadline_passed(session, Awaited::Exit, since_us);
                    }
                    break;
                }
                Pumped::OverBudget | Pumped::Interrupted => break,
            }
        }
        self.end(session);
        Ok(())
    }

    fn carry_out(
        &mut self,
        step: usize,
        session: usize,
        doing: CounterpartAction,
    ) -> Result<(), HarnessFault> {
        match doing {
            CounterpartAction::Write { payload, chunking } => {
                let bytes = payload.expand(&Vars::new())?;
                self.record(session, EventKind::Sent { step, payload });
                if let Some(connection) = self.connections[session].as_mut() {
                    connection.queue(bytes, chunking);
                }
            }
            CounterpartAction::Die => {
                if let Some(connection) = self.connections[session].as_mut() {
                    connection.hang_up();
                }
            }
            CounterpartAction::HangUp => {
                if let Some(connection) = self.connections[session].as_mut() {
                    connection.close_stdin();
                }
            }
        }
        Ok(())
    }
}
