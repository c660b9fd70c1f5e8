//! What a peer wrote, cut into frames and read by its face.

use super::http::Exchange;
use crate::face::{Face, Frame, Framing, Reading};
use crate::finding::Finding;
use crate::lines;
use crate::transcript::{Event, Kind, Transcript};

/// One frame of output, in the order of the session.
pub struct Output<M> {
    /// Place of the event that completed it among those of its session.
    pub place: usize,
    /// When it was complete, microseconds.
    pub at_us: u64,
    /// Number of its bytes.
    pub bytes: usize,
    /// What it holds.
    pub held: Held<M>,
    /// What is wrong with the frame itself.
    pub broken: Option<Finding>,
}

/// What a frame holds that answers something.
pub enum Held<M> {
    /// A message.
    Message(M),
    /// Several.
    Together {
        /// All of it as one message.
        all: M,
        /// Each of them.
        messages: Vec<M>,
    },
    /// A message that answers nothing, by right.
    Beside(M),
    /// Nothing.
    Nothing,
}

impl<M> Held<M> {
    /// All messages in it.
    pub fn messages(&self) -> &[M] {
        match self {
            Self::Message(message) => std::slice::from_ref(message),
            Self::Together { messages, .. } => messages,
            Self::Beside(_) | Self::Nothing => &[],
        }
    }

    /// All of it as one message.
    pub fn whole(&self) -> Option<&M> {
        match self {
            Self::Message(message) | Self::Beside(message) | Self::Together { all: message, .. } => {
                Some(message)
            }
            Self::Nothing => None,
        }
    }

    /// All of it as text.
    pub fn text<F: Face<Message = M>>(&self, face: &F) -> String {
        self.whole().map(|message| face.text(message)).unwrap_or_default()
    }
}

/// The frames of a session, `most` at the most, and what follows the last of them.
pub fn of<F: Face>(
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
                read(line.strip_suffix(b"\r").unwrap_or(line), place, None)
            });
            (frames.collect(), out[end..].to_vec())
        }
        Framing::Whole => {
            let place = transcript
                .of(session)
                .enumerate()
                .filter(|(_, event)| matches!(event.kind, Kind::Received { .. } | Kind::Exited { .. }))
                .last()
                .map_or(0, |(place, _)| place);
            // Whoever is stopped in the midst of an answer has not finished it, and owes none.
            let is_signal = |event: &Event| matches!(event.kind, Kind::Signalled { .. });
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

/// What HTTP replies hold, one for each request; `dues` says of each whether an answer is due.
pub fn of_bodies<F: Face>(face: &F, dues: &[bool], exchanges: &[Exchange<'_>]) -> Vec<Output<F::Message>> {
    let each = exchanges.iter().zip(dues).map(|(exchange, is_due)| {
        let bytes = exchange.body.unwrap_or_default();
        let frame = Frame { bytes, exit: None, status: exchange.status(), is_due: *is_due };
        match exchange.reply {
            Some(_) => output(face, &frame, usize::MAX, exchange.at_us),
            None => Output {
                place: usize::MAX,
                at_us: exchange.at_us,
                bytes: 0,
                held: Held::Nothing,
                broken: None,
            },
        }
    });
    each.collect()
}

fn output<F: Face>(face: &F, frame: &Frame<'_>, place: usize, at_us: u64) -> Output<F::Message> {
    let (held, broken) = match face.read(frame) {
        Reading::Message(message) => (Held::Message(message), None),
        Reading::Together { all, messages } => (Held::Together { all, messages }, None),
        Reading::Beside(message) => (Held::Beside(message), None),
        Reading::Blank => (Held::Nothing, None),
        Reading::Broken(finding) => (Held::Nothing, Some(finding)),
    };
    Output { place, at_us, bytes: frame.bytes.len(), held, broken }
}
