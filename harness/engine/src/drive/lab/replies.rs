//! Waiting for replies and for the end of a process.

use std::time::Duration;

use super::{PlanRun, is_plain};
use crate::data::plan::{Act, Chunking, Step};
use crate::data::transcript::{Awaited, Bytes, EventKind};
use crate::drive::transport::{Pumped, Until};

/// Maximum number of frames searched for answers: longer than any stream that the harness asks for.
const FRAMES_MAX: u64 = 1 << 16;

/// Wait for a reply that its canary overtook, if the peer answers in any order.
const OVERTAKEN: Duration = Duration::from_secs(1);

/// Number of latest frames searched for the answer to a canary, if other frames may follow it.
const FRAMES_BEHIND: u64 = 8;

/// Beginning of a frame: an event, and an offset in its received bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FrameStart {
    event: usize,
    byte: usize,
    /// Number of the frame, from 0.
    number: u64,
}

impl FrameStart {
    /// Place of frame `number`, which begins with an event.
    pub(super) fn of_event(event: usize, number: u64) -> Self {
        Self { event, byte: 0, number }
    }
}

impl PlanRun<'_> {
    /// Waits for the frames due for a step. If a canary follows, a missing reply costs only a short wait: the canary's
    /// answer shows if the reply was lost or the peer is dead.
    pub(super) fn await_reply(&mut self, index: usize, step: &Step) {
        let session = step.session;
        let deadline = self.deadline(session, step);
        let canary_follows =
            self.plan.steps.get(index + 1).is_some_and(|next| next.canary && next.session == session);
        let target = Until::Frames(self.live[session].frames_awaited);
        let since_us = self.now_us(session);
        let live = &self.live[session];
        let shows_latency = live.first_us.is_some() && live.lines_pending <= 1 && is_plain(step);
        // Without its value the conversation cannot continue.
        let is_needed = step.capture.is_some();
        let asks_canary =
            canary_follows && step.allow_ms == 0 && !self.live[session].short_of_frames && !is_needed;
        if !asks_canary {
            self.await_start(session);
        }
        let pumped = if self.live[session].short_of_frames {
            self.await_canary_behind_loss(step, deadline)
        } else if asks_canary {
            let pumped = self.pump_patiently(session, target, deadline);
            if let Pumped::Deadline(_) | Pumped::Nothing(_) = pumped {
                self.live[session].short_of_frames = true;
                return;
            }
            self.live[session].silences = 0;
            pumped
        } else {
            self.pump_replies(session, target, deadline)
        };
        let converses = self.lab.peer.boundary.description().converses;
        let own = match pumped {
            // Earlier unawaited replies may come before the canary's own.
            Pumped::Reached if step.canary => {
                let within = if converses { deadline } else { self.patience(session) };
                self.await_canary(step, self.live[session].lines_sent, within)
            }
            other => other,
        };
        // Without messages of the peer's own, the number of frames counts as well.
        match if converses { own } else { pumped } {
            Pumped::Reached => {
                let live = &mut self.live[session];
                if own == Pumped::Reached {
                    live.bytes_pending = 0;
                    live.lines_pending = 0;
                }
                live.short_of_frames = false;
                if shows_latency && self.lab.peer.is_process() {
                    let took = Duration::from_micros(self.now_us(session).saturating_sub(since_us));
                    self.lab.peer.pace.saw_latency(&self.plan.sessions[session].command, took);
                }
            }
            Pumped::Deadline(awaited) => {
                self.deadline_passed(session, awaited, since_us);
                self.live[session].over = true;
            }
            Pumped::Nothing(awaited) => self.nothing_comes(session, awaited),
            Pumped::Gone | Pumped::OverBudget | Pumped::Interrupted => self.live[session].over = true,
        }
    }

    /// Waits until this step and those sent just before it are certainly answered, ignoring other frames.
    pub(super) fn await_answers(&mut self, index: usize, step: &Step) {
        let (session, plan) = (step.session, self.plan);
        let count = usize::try_from(step.await_answers).unwrap_or(usize::MAX);
        let sends = plan.steps[..=index].iter().rev();
        let mut open: Vec<&Step> = sends
            .filter(|step| step.session == session && matches!(step.act, Act::Send { .. }))
            .take(count)
            .collect();
        let (deadline, since_us) = (self.deadline(session, step), self.now_us(session));
        self.await_start(session);
        let first = self.live[session].frames_answered;
        let (mut next, last) = (first, first.saturating_add(FRAMES_MAX));
        let mut place = self.live[session].answered_at;
        loop {
            while next < self.frame_count(session).min(last) && !self.lab.budget.is_interrupted() {
                let frame = self.next_frame(session, &mut place).unwrap_or_default();
                open.retain(|step| !self.lab.peer.boundary.answers_canary(step, &frame));
                next += 1;
            }
            if open.is_empty() {
                let live = &mut self.live[session];
                (live.frames_awaited, live.frames_answered, live.answered_at) = (next, next, place);
                (live.bytes_pending, live.lines_pending) = (0, 0);
                return;
            }
            if next == last || self.lab.budget.is_interrupted() {
                // The peer sends more than was asked for.
                self.live[session].over = true;
                return;
            }
            match self.pump_replies(session, Until::Frames(next + 1), deadline) {
                Pumped::Reached => {}
                Pumped::Deadline(awaited) => {
                    self.deadline_passed(session, awaited, since_us);
                    self.live[session].over = true;
                    return;
                }
                Pumped::Nothing(awaited) => return self.nothing_comes(session, awaited),
                Pumped::Gone | Pumped::OverBudget | Pumped::Interrupted => {
                    self.live[session].over = true;
                    return;
                }
            }
        }
    }

    /// Records a missed deadline that needed no waiting.
    fn nothing_comes(&mut self, session: usize, awaited: Awaited) {
        self.record(session, EventKind::DeadlinePassed { awaited, waited_ms: 0, slept: false });
        self.live[session].over = true;
    }

    /// Waits for a canary after a missing reply, and once more for the reply if its time was short.
    fn await_canary_behind_loss(&mut self, step: &Step, deadline: Duration) -> Pumped {
        let session = step.session;
        let due = self.live[session].frames_awaited;
        let pumped = self.await_canary(step, due, deadline);
        let mut is_lost = pumped == Pumped::Reached && self.frame_count(session) < due;
        let converses = self.lab.peer.boundary.description().converses;
        if is_lost && (self.lab.budget.hurries || converses) {
            let patience = self.least_patience(session);
            let is_full = converses && !self.lab.budget.hurries;
            let least = if is_full { OVERTAKEN.mul_f64(self.lab.timeout_scale) } else { Duration::ZERO };
            self.pump(session, Until::Frames(due), patience.max(least));
            self.live[session].frames_awaited = self.frame_count(session);
            is_lost = self.frame_count(session) < due;
        }
        let live = &mut self.live[session];
        live.silences = if is_lost { live.silences + 1 } else { 0 };
        pumped
    }

    /// Waits frame by frame until one certainly answers the canary or all due frames have come.
    fn await_canary(&mut self, step: &Step, frames_due: u64, deadline: Duration) -> Pumped {
        let session = step.session;
        loop {
            let seen = self.frame_count(session);
            let boundary = self.lab.peer.boundary;
            // If peers send messages of their own, other frames may follow the answer, and counting frames tells
            // nothing.
            let converses = boundary.description().converses;
            let looked_at = if converses { FRAMES_BEHIND } else { 1 };
            let mut last = (0..looked_at).filter_map(|back| self.frame(session, seen.checked_sub(back + 1)?));
            let answered = last.any(|last| boundary.answers_canary(step, &last));
            if answered || !converses && seen >= frames_due {
                self.live[session].frames_awaited = seen;
                return Pumped::Reached;
            }
            let pumped = self.pump_replies(session, Until::Frames(seen + 1), deadline);
            if pumped != Pumped::Reached {
                return pumped;
            }
        }
    }

    /// Gives a silent peer the rest of its time to start.
    fn await_start(&mut self, session: usize) {
        let left = self.until_ready(session);
        if !left.is_zero() {
            self.pump(session, Until::Frames(1), left);
        }
    }

    /// Waits as [`PlanRun::pump`] does, with a new deadline after each due reply: a peer may take its time for each.
    pub(super) fn pump_while_replies_come(
        &mut self,
        session: usize,
        until: Until,
        deadline: Duration,
    ) -> Pumped {
        let live = &self.live[session];
        let (target, due) = match until {
            Until::Frames(frames) => (frames, frames),
            _ => (u64::MAX, live.frames_awaited.max(live.lines_sent)),
        };
        let mut seen = self.frame_count(session);
        loop {
            let next = if seen < due { Until::Frames(seen + 1) } else { until };
            let pumped = self.pump(session, next, deadline);
            seen = self.frame_count(session);
            if pumped != Pumped::Reached || next == until || seen >= target {
                return pumped;
            }
        }
    }

    /// Waits for the end of the process. Its deadline counts from the last reply, so due replies are awaited first. If
    /// there are several, their deadlines add up, as the harness cannot know the last one. `start` is the time that a
    /// silent peer may need to begin.
    pub(super) fn await_end(&mut self, session: usize, allow: Duration, start: Duration) {
        let live = &self.live[session];
        let (bytes, lines, awaited) = (live.bytes_pending, live.lines_pending, live.frames_awaited);
        let frames = self.frame_count(session);
        let mut deadline = self.lab.budget.exit + allow;
        let mut since_us = self.now_us(session);
        // A peer that has already missed a deadline does not get that time again.
        let missed = self.events.iter().any(|event| event.session == session && is_missed(&event.kind));
        let is_mute = missed && self.live[session].first_us.is_none() && self.is_unknown(session);
        if is_mute && self.until_ready(session).is_zero() {
            // The peer was silent for the whole time of a start: its end tells nothing.
            return;
        }
        if !missed && (bytes > 0 || awaited > frames) {
            let reply = self.lab.budget.reply_to(bytes);
            if lines <= 1 && awaited <= frames + 1 {
                let deadline = reply + allow + start;
                if self.pump_replies(session, Until::Frames(frames + 1), deadline) == Pumped::Reached {
                    since_us = self.now_us(session);
                }
            } else {
                deadline += reply;
            }
        }
        let deadline = deadline + start.min(self.until_ready(session));
        if let Pumped::Deadline(_) = self.pump_replies(session, Until::Exited, deadline) {
            self.deadline_passed(session, Awaited::Exit, since_us);
        }
    }

    /// Number of complete frames so far, without asides.
    pub(super) fn frame_count(&self, session: usize) -> u64 {
        let live = &self.live[session];
        live.frames - live.asides.len() as u64
    }

    /// Classifies new frames as asides or not, and writes the replies that asides ask for, but never into a line that
    /// the plan has only begun.
    pub(super) fn sort_frames(&mut self, session: usize) {
        let peer = self.lab.peer;
        while self.live[session].sorted < self.live[session].frames {
            let mut place = self.live[session].sorted_at;
            let Some(frame) = self.next_of_all(session, &mut place) else { break };
            let live = &mut self.live[session];
            let number = live.sorted;
            live.sorted += 1;
            live.sorted_at = place;
            let Some(aside) = peer.boundary.unmatched_frame(&peer.facts, self.plan, &frame) else { continue };
            live.asides.push(number);
            live.replies_held.extend(aside.reply);
        }
        if self.live[session].replies_held.is_empty() || self.is_within_line(session) {
            return;
        }
        for reply in std::mem::take(&mut self.live[session].replies_held) {
            self.record(session, EventKind::Answered { bytes: Bytes(reply.clone()) });
            if let Some(connection) = self.connections[session].as_mut() {
                connection.queue(reply, Chunking::Whole);
            }
        }
    }

    /// True if the last write to a session did not end its line.
    fn is_within_line(&self, session: usize) -> bool {
        let sent = self.events.iter().rev().find_map(|event| match &event.kind {
            EventKind::Sent { payload, .. } if event.session == session => Some(payload),
            _ => None,
        });
        sent.and_then(|sent| sent.expand(&self.vars).ok()).is_some_and(|bytes| !bytes.ends_with(b"\n"))
    }

    /// Next complete frame from `place` on that is not an aside; moves `place` past it.
    fn next_frame(&self, session: usize, place: &mut FrameStart) -> Option<Vec<u8>> {
        loop {
            let number = place.number;
            let frame = self.next_of_all(session, place)?;
            if self.live[session].asides.binary_search(&number).is_err() {
                return Some(frame);
            }
        }
    }

    /// Complete frame at `place`; moves `place` past it.
    fn next_of_all(&self, session: usize, place: &mut FrameStart) -> Option<Vec<u8>> {
        let mut frame = Vec::new();
        for (at, event) in self.events.iter().enumerate().skip(place.event) {
            let EventKind::Received { bytes } = &event.kind else { continue };
            if event.session != session {
                continue;
            }
            let begin = if at == place.event { place.byte } else { 0 };
            let rest = bytes.0.get(begin..).unwrap_or_default();
            let Some(feed) = memchr::memchr(b'\n', rest) else {
                frame.extend_from_slice(rest);
                continue;
            };
            frame.extend_from_slice(&rest[..feed]);
            *place = FrameStart { event: at, byte: begin + feed + 1, number: place.number + 1 };
            return Some(frame);
        }
        None
    }

    /// Complete frame with this number, from 0. Searches from the end.
    pub(super) fn frame(&self, session: usize, index: u64) -> Option<Vec<u8>> {
        // The number does not count asides.
        let passed = |index, aside: &u64| if *aside <= index { index + 1 } else { index };
        let index = self.live[session].asides.iter().fold(index, passed);
        let mut ended = self.live[session].frames;
        let mut pieces: Vec<&[u8]> = Vec::new();
        for event in self.events.iter().rev().filter(|event| event.session == session) {
            let EventKind::Received { bytes } = &event.kind else { continue };
            let bytes = bytes.0.as_slice();
            let end = if pieces.is_empty() {
                if index >= ended {
                    return None;
                }
                ended -= memchr::memchr_iter(b'\n', bytes).count() as u64;
                let Some(before) = index.checked_sub(ended) else { continue };
                memchr::memchr_iter(b'\n', bytes).nth(usize::try_from(before).ok()?)?
            } else {
                bytes.len()
            };
            let begin = memchr::memrchr(b'\n', &bytes[..end]).map(|feed| feed + 1);
            pieces.push(&bytes[begin.unwrap_or(0)..end]);
            if begin.is_some() {
                break;
            }
        }
        pieces.reverse();
        (!pieces.is_empty()).then(|| pieces.concat())
    }
}

/// True for a missed deadline of the peer.
fn is_missed(kind: &EventKind) -> bool {
    matches!(kind, EventKind::DeadlinePassed { awaited, .. } if *awaited != Awaited::Effect)
}
