//! Waiting on one session while the others are served.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use super::PlanRun;
use crate::data::budget::LOOK_FOR_INTERRUPT_EVERY;
use crate::drive::transport::{Connection, Pumped, Source, Until, Waiting, wait_for};

impl PlanRun<'_> {
    /// Waits on a session and meanwhile takes the output of the others.
    pub(super) fn pump(&mut self, session: usize, until: Until, deadline: Duration) -> Pumped {
        if self.lab.peer.boundary.description().converses {
            return self.pump_and_converse(session, until, deadline);
        }
        self.pump_beside(session, until, deadline, None).unwrap_or(Pumped::Gone)
    }

    /// Waits on a session whose peer sends messages of its own: these are not counted as replies, and are answered.
    fn pump_and_converse(&mut self, session: usize, until: Until, deadline: Duration) -> Pumped {
        let since_us = self.now_us(session);
        loop {
            self.sort_frames(session);
            let passed = Duration::from_micros(self.now_us(session).saturating_sub(since_us));
            let next = Until::Frames(self.live[session].frames + 1);
            let (next, left) = match until {
                Until::Frames(frames) if self.frame_count(session) >= frames => return Pumped::Reached,
                Until::Frames(_) => (next, deadline.saturating_sub(passed)),
                Until::Elapsed(time) if passed >= time => return Pumped::Reached,
                Until::Elapsed(time) => (next, time.saturating_sub(passed)),
                Until::Written | Until::Exited => (until, deadline.saturating_sub(passed)),
            };
            let pumped = self.pump_beside(session, next, left, None).unwrap_or(Pumped::Gone);
            match (pumped, until) {
                (Pumped::Reached, Until::Frames(_) | Until::Elapsed(_)) => {}
                (Pumped::Deadline(_), Until::Elapsed(_)) => return Pumped::Reached,
                _ => {
                    self.sort_frames(session);
                    return pumped;
                }
            }
        }
    }

    /// Waits as [`PlanRun::pump`] does; returns `None` as soon as `eye` is readable.
    pub(super) fn pump_beside(
        &mut self,
        session: usize,
        until: Until,
        deadline: Duration,
        eye: Option<BorrowedFd<'_>>,
    ) -> Option<Pumped> {
        let began = Instant::now();
        let Some(mut connection) = self.connections[session].take() else { return Some(Pumped::Gone) };
        // Virtual time passes in one piece.
        let mut passed = Duration::ZERO;
        let pumped = loop {
            let until = match until {
                Until::Elapsed(time) => Until::Elapsed(time.saturating_sub(passed)),
                other => other,
            };
            let (sources, is_eye) = sources(&self.connections, eye);
            let mut recorder = self.live[session].recorder(session, &mut self.events);
            let waiting = Waiting { until, deadline: deadline.saturating_sub(passed), beside: &sources };
            let pumped = connection.pump_beside(waiting, &mut recorder);
            let is_seen = pumped.is_none() && is_eye && wait_for(&sources[..1], Duration::ZERO)[0];
            drop(sources);
            if pumped.is_some() || is_seen {
                break pumped;
            }
            self.attend();
            passed = began.elapsed();
        };
        self.connections[session] = Some(connection);
        pumped
    }

    /// Waits for `time`, or until `eye` is readable, without a session.
    pub(super) fn idle(&mut self, time: Duration, eye: Option<BorrowedFd<'_>>) {
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || self.lab.budget.is_interrupted() {
                return;
            }
            let (sources, is_eye) = sources(&self.connections, eye);
            let ready = wait_for(&sources, left.min(LOOK_FOR_INTERRUPT_EVERY));
            if is_eye && ready[0] {
                return;
            }
            self.attend();
        }
    }

    fn attend(&mut self) {
        for session in 0..self.live.len() {
            self.with_log(session, |connection, log| connection.attend(log));
        }
    }
}

/// Poll sources: `eye` first, then the sessions that are not awaited. Returns true if `eye` is among them.
fn sources<'s>(
    connections: &'s [Option<Box<dyn Connection>>],
    eye: Option<BorrowedFd<'s>>,
) -> (Vec<Source<'s>>, bool) {
    let eye = eye.map(|eye| (eye, PollFlags::IN));
    let others = connections.iter().flatten();
    (eye.into_iter().chain(others.flat_map(|connection| connection.sources())).collect(), eye.is_some())
}
