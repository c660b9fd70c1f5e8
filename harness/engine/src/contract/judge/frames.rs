//! Frames of a peer's output, decoded by its face.

use crate::contract::face::{Face, Frame, FrameContent, Framing, HttpExchange, Output, Reading};
use crate::data::finding::Finding;
use crate::data::lines;
use crate::data::transcript::{Event, EventKind, Transcript};

/// Up to `most` frames of a session, and the bytes after the last one.
pub(super) fn of<F: Face>(
    face: &F,
    transcript: &Transcript,
    session: usize,
    framing: Framing,
    most: usize,
) -> (Vec<Output<F::Message>>, Vec<u8>) {
    let out = transcript.stdout(session);
    let times: Vec<u64> = transcript.of(session).map(|event| event.at_us).collect();
    let read = |bytes: &[u8], place: usize, exit| {
        let at_us = times.get(place).or(times.last()).copied().unwrap_or(0);
        output(face, &Frame { bytes, exit, status: None, is_due: true }, place, at_us)
    };
    match framing {
        Framing::Lines | Framing::Asks => {
            let end = out.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            let frames = out[..end].split_inclusive(|byte| *byte == b'\n').take(most);
            let frames = frames.zip(lines::line_feeds(transcript, session)).map(|(line, place)| {
                let line = &line[..line.len() - 1];
                let frame = read(line.strip_suffix(b"\r").unwrap_or(line), place, None);
                Output { broken: frame.broken.map(Finding::of_output), ..frame }
            });
            (frames.collect(), out[end..].to_vec())
        }
        Framing::Whole => {
            let place = transcript
                .of(session)
                .enumerate()
                .filter(|(_, event)| {
                    matches!(event.kind, EventKind::Received { .. } | EventKind::Exited { .. })
                })
                .last()
                .map_or(0, |(place, _)| place);
            // A peer stopped in the middle of an answer owes no answer.
            let is_signal = |event: &Event| matches!(event.kind, EventKind::Signalled { .. });
            let exit = transcript.exit(session).filter(|_| !transcript.of(session).any(is_signal));
            let is_stopped = exit.is_none();
            let is_over = !is_stopped || !out.is_empty();
            let mut frame = is_over.then(|| read(&out, place, exit));
            if let Some(frame) = frame.as_mut().filter(|_| is_stopped) {
                frame.broken = None;
            }
            (frame.into_iter().collect(), Vec::new())
        }
        Framing::Bodies | Framing::Calls | Framing::Silent => (Vec::new(), Vec::new()),
    }
}

/// Contents of HTTP replies, one per request. `dues` tells for each request if an answer is due.
pub(crate) fn of_bodies<F: Face>(
    face: &F,
    dues: &[bool],
    exchanges: &[HttpExchange<'_>],
) -> Vec<Output<F::Message>> {
    let each = exchanges.iter().zip(dues).map(|(exchange, is_due)| {
        let bytes = exchange.body.unwrap_or_default();
        let frame = Frame { bytes, exit: None, status: exchange.status(), is_due: *is_due };
        match exchange.reply {
            Some(_) => output(face, &frame, usize::MAX, exchange.at_us),
            None => Output {
                place: usize::MAX,
                at_us: exchange.at_us,
                bytes: 0,
                held: FrameContent::Nothing,
                broken: None,
            },
        }
    });
    each.collect()
}

fn output<F: Face>(face: &F, frame: &Frame<'_>, place: usize, at_us: u64) -> Output<F::Message> {
    let (held, broken) = match face.read(frame) {
        Reading::Message(message) => (FrameContent::Message(message), None),
        Reading::Together { all, messages } => (FrameContent::Together { all, messages }, None),
        Reading::Beside(message) => (FrameContent::Beside(message), None),
        Reading::Blank => (FrameContent::Nothing, None),
        Reading::Garbled(finding) => (FrameContent::Garbled, Some(finding)),
        Reading::Broken(finding) => (FrameContent::Nothing, Some(finding)),
    };
    Output { place, at_us, bytes: frame.bytes.len(), held, broken }
}
