//! What is kept of the output of a peer that wrote too much.

use crate::transcript::{Event, Kind};

/// Of each session whose peer exceeded the budget, keeps everything up to the last stimulus and `bytes_kept` of what came
/// behind it. More shows nothing more, and a run may hold the transcripts of hundreds of such checks.
pub(super) fn cut(events: &mut Vec<Event>, bytes_kept: usize) {
    let overflows = events.iter().filter(|event| matches!(event.kind, Kind::StdoutOverflow { .. }));
    let sessions: Vec<usize> = overflows.map(|event| event.session).collect();
    for session in sessions {
        let is_stimulus = |event: &Event| event.session == session && matches!(event.kind, Kind::Sent { .. });
        let behind = events.iter().rposition(is_stimulus).map_or(0, |last| last + 1);
        let mut room = bytes_kept;
        for event in events[behind..].iter_mut().filter(|event| event.session == session) {
            if let Kind::Received { bytes } = &mut event.kind {
                bytes.0.truncate(room);
                bytes.0.shrink_to_fit();
                room -= bytes.0.len();
            }
        }
        events.retain(|event| !matches!(&event.kind, Kind::Received { bytes } if bytes.0.is_empty()));
    }
    events.shrink_to_fit();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Payload;
    use crate::transcript::Bytes;

    fn event(session: usize, kind: Kind) -> Event {
        Event { at_us: 0, session, kind }
    }

    fn received(session: usize, length: usize) -> Event {
        event(session, Kind::Received { bytes: Bytes(vec![b'x'; length]) })
    }

    #[test]
    fn what_came_before_the_last_stimulus_and_in_other_sessions_stays() {
        let sent = || event(0, Kind::Sent { step: 0, payload: Payload::text("a") });
        let overflow = || event(0, Kind::StdoutOverflow { bytes_max: 9, lines_max: None });
        let before = [sent(), received(0, 90), sent(), received(1, 80)];
        let mut events =
            [&before[..], &[received(0, 8), received(0, 7), received(0, 6), overflow()]].concat();
        cut(&mut events, 10);
        assert_eq!(events, [&before[..], &[received(0, 8), received(0, 2), overflow()]].concat());
        let mut whole = before.to_vec();
        cut(&mut whole, 0);
        assert_eq!(whole, before);
    }
}
