//! Room for what conversations hold in memory: those that hold much are had a few at a time, whoever the peer is.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use super::lock;
use crate::payload::Vars;
use crate::plan::{Act, Plan, Step};
use crate::transcript::{Kind, Transcript};

/// Most bytes that the conversations of a run hold at the same time, sent and received together. What judges them takes
/// several times as much. A conversation that holds more is had by itself.
const BYTES_MAX: usize = 48 << 20;
/// What each session of a conversation holds with a peer that was seen to flood: two are had at the same time.
const FLOOD_BYTES: usize = BYTES_MAX / 2;
/// Conversations that hold less are not counted.
const COUNTED_BYTES_MIN: usize = 1 << 20;

/// The room of one run.
#[derive(Default)]
pub(super) struct Room {
    held: Mutex<usize>,
    left: Condvar,
    is_flooded: AtomicBool,
}

impl Room {
    /// Waits until there is room for a conversation. It has not begun, so none of its deadlines runs.
    pub(super) fn enter(&self, plan: &Plan) -> Stay<'_> {
        let bytes = self.bytes_of(plan);
        let mut held = lock(&self.held);
        while bytes > 0 && *held > 0 && *held + bytes > BYTES_MAX {
            held = self.left.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
        *held += bytes;
        Stay { room: self, bytes }
    }

    /// Takes note of a peer that wrote more than the conversation can rightly bring.
    pub(super) fn saw(&self, transcript: &Transcript) {
        if transcript.events.iter().any(|event| matches!(event.kind, Kind::StdoutOverflow { .. })) {
            self.is_flooded.store(true, Ordering::Relaxed);
        }
    }

    /// What a conversation holds, as far as it counts: what is sent, and as much that comes back.
    fn bytes_of(&self, plan: &Plan) -> usize {
        let sent = |step: &Step| match &step.act {
            Act::Send { payload, .. } => payload.len(&Vars::new()),
            _ => 0,
        };
        let bytes = plan.steps.iter().map(sent).sum::<usize>().saturating_mul(2);
        let flood = if self.is_flooded.load(Ordering::Relaxed) { FLOOD_BYTES } else { 0 };
        let least = plan.sessions.len().max(1).saturating_mul(flood);
        Some(bytes.max(least)).filter(|bytes| *bytes >= COUNTED_BYTES_MIN).unwrap_or_default()
    }
}

/// A conversation that there is room for, until it is dropped.
pub(super) struct Stay<'a> {
    room: &'a Room,
    bytes: usize,
}

impl Drop for Stay<'_> {
    fn drop(&mut self) {
        *lock(&self.room.held) -= self.bytes;
        self.room.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{TryRecvError, channel};

    use super::*;
    use crate::payload::Payload;
    use crate::plan::Chunking;

    fn sends(bytes: usize) -> Plan {
        let payload = Payload::default().repeat("x", bytes as u64);
        let send = Act::Send { payload, chunking: Chunking::Whole, await_frames: 0 };
        Plan { steps: vec![Step::new(send)], ..Plan::default() }
    }

    #[test]
    fn a_conversation_that_holds_too_much_waits_for_others_and_a_small_one_never() {
        let room = Room::default();
        let large = room.enter(&sends(BYTES_MAX));
        drop(room.enter(&sends(COUNTED_BYTES_MIN / 4)));
        let (tell, told) = channel();
        std::thread::scope(|scope| {
            let room = &room;
            scope.spawn(move || {
                let _second = room.enter(&sends(COUNTED_BYTES_MIN));
                tell.send(())
            });
            assert_eq!(told.try_recv(), Err(TryRecvError::Empty));
            drop(large);
            assert_eq!(told.recv(), Ok(()));
        });
        assert_eq!(*lock(&room.held), 0);
    }

    #[test]
    fn conversations_with_a_peer_that_floods_are_large() {
        let room = Room::default();
        assert_eq!(room.bytes_of(&sends(10)), 0);
        room.is_flooded.store(true, Ordering::Relaxed);
        assert_eq!(room.bytes_of(&sends(10)), FLOOD_BYTES);
    }
}
