//! Limits on the output of a session, and on the part of a flood that is kept.

use crate::data::payload::Vars;
use crate::data::plan::{Act, Plan};
use crate::data::transcript::{Event, EventKind};

/// Allowance for unasked output, bytes. It is small, as many sessions run in parallel, and floods are noticed soon.
const UNASKED_BYTES: usize = 1 << 20;
/// Allowance for one answer, bytes: more than any check asks for, so that too long answers are seen.
const ANSWER_BYTES: usize = 12 << 20;
/// Size of an answer that repeats its request with each code unit escaped twice, as a multiple of the request.
const REPEATED: usize = 12;

/// Longest message that a contract lets a peer accept, bytes; and size of an answer that repeats it with every
/// character escaped, as a multiple. No contract forbids that.
const TAKEN_BYTES_MAX: usize = 10 << 20;
const ESCAPED: usize = 6;

/// Number of frames kept of a flood: per message, and in addition.
const FRAMES_PER_MESSAGE: usize = 4;
const UNASKED_FRAMES: usize = 4_096;

/// Maximum bytes of output that the plan allows in a session: an answer to each message, repetition of everything sent,
/// and an extra. At most `bytes_max`, or the size of its longest message with every character escaped. For a peer that
/// asks it is `bytes_max`.
pub(super) fn room(plan: &Plan, session: usize, vars: &Vars, bytes_max: usize) -> usize {
    let (mut room, mut longest) = (UNASKED_BYTES, 0);
    for step in plan.steps.iter().filter(|step| step.session == session) {
        match &step.act {
            Act::Send { payload, .. } => {
                let answers = payload.lines().max(1).saturating_mul(ANSWER_BYTES);
                let length = payload.len(vars);
                let repeated = length.saturating_mul(REPEATED);
                longest = length.min(TAKEN_BYTES_MAX).max(longest);
                room = room.saturating_add(answers).saturating_add(repeated);
            }
            Act::Play { .. } => return bytes_max,
            _ => {}
        }
    }
    room.min(bytes_max.max(longest * ESCAPED + UNASKED_BYTES))
}

/// Shortens the sessions whose peer exceeded the budget: keeps the frames up to the last stimulus that its messages can
/// explain, and `bytes_kept` of the output after it and of an unended frame. More shows nothing more: a run may hold
/// hundreds of such transcripts, and judging a frame costs many times its size.
pub(super) fn cut(events: &mut Vec<Event>, bytes_kept: usize) {
    let overflows = events.iter().filter(|event| matches!(event.kind, EventKind::StdoutOverflow { .. }));
    let sessions: Vec<usize> = overflows.map(|event| event.session).collect();
    for session in sessions {
        cut_frames(events, session);
        cut_open_frame(events, session, bytes_kept);
        let is_stimulus =
            |event: &Event| event.session == session && matches!(event.kind, EventKind::Sent { .. });
        let behind = events.iter().rposition(is_stimulus).map_or(0, |last| last + 1);
        let mut room = bytes_kept;
        for event in events[behind..].iter_mut().filter(|event| event.session == session) {
            if let EventKind::Received { bytes } = &mut event.kind {
                bytes.0.truncate(room);
                bytes.0.shrink_to_fit();
                room -= bytes.0.len();
            }
        }
        events.retain(|event| !matches!(&event.kind, EventKind::Received { bytes } if bytes.0.is_empty()));
    }
    events.shrink_to_fit();
}

/// Drops output of a session after the last allowed frame.
fn cut_frames(events: &mut [Event], session: usize) {
    let (mut room, mut is_full) = (UNASKED_FRAMES, false);
    for event in events.iter_mut().filter(|event| event.session == session) {
        match &mut event.kind {
            EventKind::Sent { payload, .. } => {
                room = room.saturating_add(payload.lines().max(1).saturating_mul(FRAMES_PER_MESSAGE));
            }
            EventKind::Received { bytes } if is_full => bytes.0 = Vec::new(),
            EventKind::Received { bytes } => {
                let ends = memchr::memchr_iter(b'\n', &bytes.0).map(|feed| feed + 1);
                let (frames, end) = ends.take(room).zip(1..).fold((0, 0), |_, (end, frames)| (frames, end));
                is_full = frames == room;
                if is_full {
                    bytes.0.truncate(end);
                    bytes.0.shrink_to_fit();
                }
                room -= frames;
            }
            _ => {}
        }
    }
}

/// Keeps `bytes_kept` of an unended frame.
fn cut_open_frame(events: &mut [Event], session: usize, bytes_kept: usize) {
    let mut room = bytes_kept;
    let received = events.iter_mut().filter(|event| event.session == session).filter_map(|event| {
        if let EventKind::Received { bytes } = &mut event.kind { Some(&mut bytes.0) } else { None }
    });
    let received: Vec<&mut Vec<u8>> = received.collect();
    let last_end = |bytes: &[u8]| memchr::memrchr(b'\n', bytes).map(|feed| feed + 1);
    let first = received.iter().rposition(|bytes| last_end(bytes).is_some()).unwrap_or(0);
    for bytes in received.into_iter().skip(first) {
        let ended = last_end(bytes).unwrap_or(0);
        bytes.truncate(ended + room);
        bytes.shrink_to_fit();
        room -= bytes.len() - ended;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::payload::Payload;
    use crate::data::plan::{Chunking, Step};
    use crate::data::transcript::Bytes;

    fn event(session: usize, kind: EventKind) -> Event {
        Event { at_us: 0, session, kind }
    }

    fn received(session: usize, length: usize) -> Event {
        event(session, EventKind::Received { bytes: Bytes(vec![b'x'; length]) })
    }

    fn line(length: usize) -> Event {
        event(0, EventKind::Received { bytes: Bytes(["x".repeat(length), "\n".to_owned()].concat().into()) })
    }

    #[test]
    fn each_message_makes_room_for_an_answer() {
        let send =
            |payload: Payload| Step::new(Act::Send { payload, chunking: Chunking::Whole, await_frames: 0 });
        let within = |steps: Vec<Step>, bytes_max| {
            room(&Plan { steps, ..Plan::default() }, 0, &Vars::new(), bytes_max)
        };
        let room = |steps: Vec<Step>| within(steps, 64 << 20);
        assert_eq!(room(Vec::new()), 1 << 20);
        assert_eq!(room(vec![send(Payload::text("{}"))]), (13 << 20) + 24);
        assert_eq!(room(vec![send(Payload::text("1\n2\n3\n"))]), (37 << 20) + 72);
        assert_eq!(room(vec![send(Payload::default().repeat("x", 10 << 20))]), 64 << 20);
        let escaped = within(vec![send(Payload::default().repeat("x", 10_000_000))], 32 << 20);
        assert_eq!(escaped, 60_000_000 + (1 << 20));
        assert_eq!(within(vec![send(Payload::text("{}"))], 4 << 20), 4 << 20);
        assert_eq!(room(vec![Step { session: 1, ..send(Payload::text("{}")) }]), 1 << 20);
        let play = Act::Play { script: serde_json::Value::Null, life_ms: 1 };
        assert_eq!(room(vec![Step::new(play)]), 64 << 20);
    }

    #[test]
    fn frames_that_no_message_can_have_brought_are_dropped_wherever_they_came() {
        let sent = || event(0, EventKind::Sent { step: 0, payload: Payload::text("a\nb\n") });
        let frames = |count: usize, then: &str| {
            event(
                0,
                EventKind::Received { bytes: Bytes(["x\n".repeat(count), then.to_owned()].concat().into()) },
            )
        };
        let overflow = || event(0, EventKind::StdoutOverflow { bytes_max: 9, lines_max: Some(9) });
        let room = UNASKED_FRAMES + 2 * FRAMES_PER_MESSAGE;
        let mut events = vec![sent(), frames(room + 1, "y"), sent(), frames(5, ""), overflow()];
        cut(&mut events, 10);
        assert_eq!(events, [sent(), frames(room, ""), sent(), overflow()]);
        let mut events = vec![sent(), frames(7, "y"), sent(), frames(7, ""), overflow()];
        cut(&mut events, 4);
        assert_eq!(events, [sent(), frames(7, "y"), sent(), frames(2, ""), overflow()]);
    }

    #[test]
    fn a_frame_that_never_ends_is_cut_wherever_it_began() {
        let sent = || event(0, EventKind::Sent { step: 0, payload: Payload::text("a\n") });
        let text = |text: &str| event(0, EventKind::Received { bytes: Bytes(text.into()) });
        let overflow = || event(0, EventKind::StdoutOverflow { bytes_max: 9, lines_max: None });
        let mut events = vec![text("long\nx"), sent(), text("xxx"), sent(), text("xxx"), overflow()];
        cut(&mut events, 2);
        assert_eq!(events, [text("long\nx"), sent(), text("x"), sent(), overflow()]);
    }

    #[test]
    fn what_came_before_the_last_stimulus_and_in_other_sessions_stays() {
        let sent = || event(0, EventKind::Sent { step: 0, payload: Payload::text("a") });
        let overflow = || event(0, EventKind::StdoutOverflow { bytes_max: 9, lines_max: None });
        let before = [sent(), line(90), sent(), received(1, 80)];
        let mut events =
            [&before[..], &[received(0, 8), received(0, 7), received(0, 6), overflow()]].concat();
        cut(&mut events, 10);
        assert_eq!(events, [&before[..], &[received(0, 8), received(0, 2), overflow()]].concat());
        let mut whole = before.to_vec();
        cut(&mut whole, 0);
        assert_eq!(whole, before);
    }
}
