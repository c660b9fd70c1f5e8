//! Memory limit for conversations: only a few large ones are held at a time, for all peers together.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use super::lock;
use crate::data::payload::{Payload, Segment, Vars};
use crate::data::plan::{Act, ActorStep, Fixture, Plan, Step};
use crate::data::transcript::{Event, EventKind, Transcript};

/// Maximum bytes, sent and received, that the conversations of parallel runs hold at once. Judging them takes several
/// times as much. A larger conversation runs alone.
const BYTES_MAX: usize = 32 << 20;
/// Assumed size of each session of a flooding peer, so that two run at once.
const FLOOD_BYTES: usize = BYTES_MAX / 2;
/// Size below which conversations are not counted.
const COUNTED_BYTES_MIN: usize = 1 << 20;
/// Additional size of each array and object, which take more memory when decoded.
const NESTED_BYTES: usize = 64;

/// Bytes that the conversations of one or several runs hold.
#[derive(Debug, Default)]
pub(super) struct Load {
    bytes: Mutex<usize>,
    left: Condvar,
}

/// Room of one run.
#[derive(Default)]
pub(super) struct MemoryLimit {
    is_flooded: AtomicBool,
    /// Set once a small file filled by the peer was seen.
    fills_little: AtomicBool,
    /// Set once a large file filled by the peer was seen.
    fills_much: AtomicBool,
}

impl MemoryLimit {
    /// Waits until there is room for a conversation beside those counted in `held`. Its deadlines do not run yet.
    pub(super) fn enter<'a>(&self, plan: &Plan, held: &'a Load) -> MemoryPermit<'a> {
        let mut now = lock(&held.bytes);
        let mut bytes = self.bytes_of(plan);
        while bytes > 0 && *now > 0 && *now + bytes > BYTES_MAX {
            now = held.left.wait(now).unwrap_or_else(PoisonError::into_inner);
            // Observations in the meantime may have lowered its size.
            bytes = self.bytes_of(plan);
        }
        *now += bytes;
        MemoryPermit { held, bytes }
    }

    /// Records whether standard output overflowed, and whether the files that the peer filled are small or large.
    pub(super) fn saw(&self, transcript: &Transcript) {
        for event in &transcript.events {
            match &event.kind {
                EventKind::StdoutOverflow { .. } => self.is_flooded.store(true, Ordering::Relaxed),
                EventKind::FileHeld { bytes, .. } if bytes.0.len() < COUNTED_BYTES_MIN => {
                    self.fills_little.store(true, Ordering::Relaxed);
                }
                EventKind::FileHeld { .. } => self.fills_much.store(true, Ordering::Relaxed),
                _ => {}
            }
        }
        // A missing file counts as small.
        let is_held = |event: &Event| matches!(event.kind, EventKind::FileHeld { .. });
        if fills(&transcript.plan) && !transcript.events.iter().any(is_held) {
            self.fills_little.store(true, Ordering::Relaxed);
        }
    }

    /// Estimated size of a conversation: everything sent or played, and as much received. The size of a file that the
    /// peer fills is unknown at first: until one was seen, and if it was large, the conversation runs alone.
    fn bytes_of(&self, plan: &Plan) -> usize {
        let sent = plan.steps.iter().map(|step: &Step| match &step.act {
            Act::Send { payload, .. } => weight(payload),
            _ => 0,
        });
        let played = plan.fixtures.iter().flat_map(|fixture| match fixture {
            Fixture::Listener { body, .. } => vec![weight(body)],
            Fixture::Actor { script, .. } => script.iter().map(written).collect(),
            _ => Vec::new(),
        });
        let bytes = sent.chain(played).fold(0, usize::saturating_add).saturating_mul(2);
        let flood = if self.is_flooded.load(Ordering::Relaxed) { FLOOD_BYTES } else { 0 };
        let least = plan.sessions.len().max(1).saturating_mul(flood);
        let is_small = self.fills_little.load(Ordering::Relaxed) && !self.fills_much.load(Ordering::Relaxed);
        let filled = if fills(plan) && !is_small { BYTES_MAX } else { 0 };
        let bytes = bytes.max(least).max(filled);
        Some(bytes).filter(|bytes| *bytes >= COUNTED_BYTES_MIN).unwrap_or_default()
    }
}

fn written(step: &ActorStep) -> usize {
    if let ActorStep::Stdout(payload) = step { weight(payload) } else { 0 }
}

/// True if the peer fills a file.
fn fills(plan: &Plan) -> bool {
    plan.fixtures.iter().any(|fixture| matches!(fixture, Fixture::File { kept: true, .. }))
}

/// Size of a payload including an allowance for nesting.
fn weight(payload: &Payload) -> usize {
    let brackets = |text: &str| memchr::memchr2_iter(b'[', b'{', text.as_bytes()).count();
    let nested = payload.0.iter().map(|segment| match segment {
        Segment::Text(text) => brackets(text),
        Segment::Repeat { unit, times } => {
            brackets(unit).saturating_mul(usize::try_from(*times).unwrap_or(usize::MAX))
        }
        Segment::Hex(_) | Segment::Var(_) => 0,
    });
    let nested = nested.fold(0, usize::saturating_add).saturating_mul(NESTED_BYTES);
    payload.len(&Vars::new()).saturating_add(nested)
}

/// Permission for a conversation, until dropped.
pub(super) struct MemoryPermit<'a> {
    held: &'a Load,
    bytes: usize,
}

impl Drop for MemoryPermit<'_> {
    fn drop(&mut self) {
        *lock(&self.held.bytes) -= self.bytes;
        self.held.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{TryRecvError, channel};

    use std::sync::Arc;

    use super::*;
    use crate::data::clause::Side;
    use crate::data::facts::Facts;
    use crate::data::plan::Chunking;
    use crate::data::transcript::Bytes;

    fn sends(bytes: usize) -> Plan {
        let payload = Payload::default().repeat("x", bytes as u64);
        let send = Act::Send { payload, chunking: Chunking::Whole, await_frames: 0 };
        Plan { steps: vec![Step::new(send)], ..Plan::default() }
    }

    #[test]
    fn a_conversation_that_holds_too_much_waits_for_others_and_a_small_one_never() {
        // Two runs with two peers.
        let (rooms, held) = ([MemoryLimit::default(), MemoryLimit::default()], Load::default());
        let large = rooms[0].enter(&sends(BYTES_MAX), &held);
        drop(rooms[0].enter(&sends(COUNTED_BYTES_MIN / 4), &held));
        let (tell, told) = channel();
        std::thread::scope(|scope| {
            let (room, held) = (&rooms[1], &held);
            scope.spawn(move || {
                let _second = room.enter(&sends(COUNTED_BYTES_MIN), held);
                tell.send(())
            });
            assert_eq!(told.try_recv(), Err(TryRecvError::Empty));
            drop(large);
            assert_eq!(told.recv(), Ok(()));
        });
        assert_eq!(*lock(&held.bytes), 0);
    }

    #[test]
    fn conversations_with_a_peer_that_floods_are_large() {
        let room = MemoryLimit::default();
        assert_eq!(room.bytes_of(&sends(10)), 0);
        room.is_flooded.store(true, Ordering::Relaxed);
        assert_eq!(room.bytes_of(&sends(10)), FLOOD_BYTES);
    }

    #[test]
    fn what_is_nested_weighs_more_than_its_text() {
        let deep =
            Payload::text("{\"a\":").repeat("[", 100_000).repeat("]", 100_000).then(Payload::text("}"));
        assert_eq!(weight(&deep), 200_006 + 100_001 * NESTED_BYTES);
        let large = Fixture::Actor {
            name: "a".to_owned(),
            script: vec![ActorStep::Stdout(Payload::default().repeat("x", COUNTED_BYTES_MIN as u64))],
            later: Vec::new(),
        };
        let plan = Plan { fixtures: vec![large], ..Plan::default() };
        assert_eq!(MemoryLimit::default().bytes_of(&plan), 2 * COUNTED_BYTES_MIN);
    }

    #[test]
    fn what_a_peer_fills_files_with_is_large_until_it_was_seen_to_be_little() {
        let file =
            Fixture::File { name: "results".to_owned(), content: Payload::default(), mode: None, kept: true };
        let plan = Plan { fixtures: vec![file], ..Plan::default() };
        let room = MemoryLimit::default();
        let transcript = |events| Transcript {
            boundary: "any".to_owned(),
            check: "by-hand".to_owned(),
            facts: Arc::new(Facts::new(Side::Consumer)),
            plan: Arc::new(plan.clone()),
            timeout_scale: 1.0,
            events,
        };
        let saw = |bytes: usize| {
            let kind = EventKind::FileHeld { file: "results".to_owned(), bytes: Bytes(vec![b'x'; bytes]) };
            room.saw(&transcript(vec![Event { at_us: 0, session: 0, kind }]));
            room.bytes_of(&plan)
        };
        assert_eq!(room.bytes_of(&plan), BYTES_MAX);
        let nothing = MemoryLimit::default();
        nothing.saw(&transcript(Vec::new()));
        assert_eq!(nothing.bytes_of(&plan), 0, "it was not written");
        assert_eq!(saw(100), 0);
        assert_eq!(saw(COUNTED_BYTES_MIN), BYTES_MAX);
        assert_eq!(saw(100), BYTES_MAX);
    }
}
