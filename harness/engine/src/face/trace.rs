//! The input of a face: a transcript whose answers the judge has assigned to stimuli.

use super::{Asked, Face, Framing, Part};
use crate::carriage::Carriage;
use crate::ending::Ending;
use crate::finding::Finding;
use crate::lines::Line;
use crate::transcript::Transcript;

/// Output of one session, assigned to its stimuli.
pub struct Heard<'a, F: Face> {
    /// Session of the plan.
    pub session: usize,
    /// Framing of its input and output.
    pub framing: Framing,
    /// Lines that were written to the peer.
    pub lines: &'a [Line],
    /// Frames that the peer wrote.
    pub output: &'a [Output<F::Message>],
    /// Stimuli, each with its answers.
    pub exchanges: Vec<(&'a Asked<F>, Came<'a, F>)>,
    /// Exchanges of `lines` over HTTP.
    pub carriages: &'a [Exchange<'a>],
    /// Messages that answer nothing; over HTTP each with the number of the exchange that it came in.
    pub extra: Vec<(usize, &'a F::Message)>,
    /// Bytes behind the last line feed.
    pub rest: &'a [u8],
    /// End of the process.
    pub ending: Ending,
}

/// A request over HTTP with its reply.
pub struct Carried<'a, F: Face> {
    /// The transcript.
    pub transcript: &'a Transcript,
    /// The stimulus.
    pub asked: &'a Asked<F>,
    /// The line that was written.
    pub line: &'a Line,
    /// Carriage that the plan gives it.
    pub how: Option<&'a Carriage>,
    /// Its exchange over HTTP.
    pub exchange: Exchange<'a>,
    /// Content of the body.
    pub output: &'a Output<F::Message>,
    /// The process has ended.
    pub is_over: bool,
}

/// A transcript with its stimuli and their answers.
pub struct Trace<'a, F: Face> {
    /// The transcript.
    pub transcript: &'a Transcript,
    /// Stimuli of all sessions.
    pub asked: &'a [Asked<F>],
    /// State of the model behind the last stimulus.
    pub state: &'a F::State,
    /// Its sessions with peers of the face.
    pub sessions: Vec<Heard<'a, F>>,
}

impl<'a, F: Face> Heard<'a, F> {
    /// The requests that were answered, with their answers, in the order of sending. A group that must have none is told of
    /// as one.
    pub fn answers(&self) -> impl Iterator<Item = (&'a Asked<F>, &'a Part<F>, Answer<'a, F>)> {
        let has_some =
            |(asked, _): &&(&'a Asked<F>, Came<'a, F>)| !asked.due.together || !asked.due.must_be_silent();
        self.exchanges.iter().filter(has_some).flat_map(|(asked, came)| {
            let asked: &'a Asked<F> = asked;
            let answers = asked.due.parts.iter().zip(&came.answers);
            answers.filter_map(move |(part, answer)| Some((asked, part, (*answer)?)))
        })
    }
}

/// A message that answers something.
pub struct Answer<'a, F: Face> {
    /// The message.
    pub message: &'a F::Message,
    /// Number of its frame among those of the session.
    pub frame: usize,
}

impl<F: Face> Clone for Answer<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F: Face> Copy for Answer<'_, F> {}

/// Answers to one stimulus.
pub struct Came<'a, F: Face> {
    /// For each part the message that answers it.
    pub answers: Vec<Option<Answer<'a, F>>>,
    /// A message that answers all of it.
    pub whole: Option<Answer<'a, F>>,
    /// The frame in which its answers came together, by its number.
    pub frame: Option<usize>,
    /// Messages of that frame that answer nothing.
    pub extra: Vec<&'a F::Message>,
    /// The frame in its turn is no message.
    pub is_garbled: bool,
    /// Messages outside such a frame that answer parts of it, or refuse all of it.
    pub apart: Vec<&'a F::Message>,
}

impl<F: Face> Came<'_, F> {
    pub(crate) fn nothing(parts: usize) -> Self {
        Self {
            answers: vec![None; parts],
            whole: None,
            frame: None,
            extra: Vec::new(),
            is_garbled: false,
            apart: Vec::new(),
        }
    }

    /// True where a message answers it or a part of it.
    pub fn is_answered(&self) -> bool {
        self.whole.is_some() || self.answers.iter().any(Option::is_some)
    }
}

/// One frame of output, in the order of the session.
pub struct Output<M> {
    /// Place of the event that completed it among those of its session.
    pub place: usize,
    /// When it was complete, microseconds.
    pub at_us: u64,
    /// Number of its bytes.
    pub bytes: usize,
    /// Its content.
    pub held: Held<M>,
    /// Fault of the frame itself.
    pub broken: Option<Finding>,
}

/// Content of a frame.
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

/// Exchange of one request over HTTP.
#[derive(Debug, Clone, Copy, Default)]
pub struct Exchange<'a> {
    /// The reply, where one came.
    pub reply: Option<Reply>,
    /// Why there was no reply.
    pub failure: Option<&'a str>,
    /// All of the request was sent.
    pub wholly_sent: bool,
    /// Its connection ended without a word about it, and it was sent again.
    pub was_dropped: bool,
    /// Value of `Content-Type` of the reply.
    pub content_type: Option<&'a str>,
    /// The lines of the heads and trailers of the reply.
    pub head: &'a [u8],
    /// The body of the reply.
    pub body: Option<&'a [u8]>,
    /// Its place among the replies of the session, from 1.
    pub place: usize,
    /// When the last of it came, microseconds.
    pub at_us: u64,
}

/// The head of a reply.
#[derive(Debug, Clone, Copy)]
pub struct Reply {
    /// Status code.
    pub status: u16,
    /// Length of the body.
    pub body_bytes: u64,
    /// Another request may follow on the connection.
    pub keeps_open: bool,
}

impl Exchange<'_> {
    /// The status of the reply.
    pub fn status(&self) -> Option<u16> {
        self.reply.map(|reply| reply.status)
    }
}
