//! The input of a face: a transcript whose answers the judge has assigned to stimuli.

use super::{ExpectedPart, Face, Framing, PlacedExpectation};
use crate::data::carriage::Carriage;
use crate::data::ending::Ending;
use crate::data::finding::Finding;
use crate::data::lines::RequestLine;
use crate::data::transcript::Transcript;

/// Output of one session, assigned to its stimuli.
pub struct SessionTrace<'a, F: Face> {
    /// Session of the plan.
    pub session: usize,
    /// Framing of the session.
    pub framing: Framing,
    /// Lines written to the peer.
    pub lines: &'a [RequestLine],
    /// Frames of the peer's output.
    pub output: &'a [Output<F::Message>],
    /// Stimuli, each with its answers.
    pub exchanges: Vec<(&'a PlacedExpectation<F>, Match<'a, F>)>,
    /// Exchanges of `lines` over HTTP.
    pub carriages: &'a [HttpExchange<'a>],
    /// Messages that answer nothing; over HTTP each with the number of its exchange.
    pub extra: Vec<(usize, &'a F::Message)>,
    /// Bytes after the last line feed.
    pub rest: &'a [u8],
    /// Ending of the process.
    pub ending: Ending,
}

/// HTTP request with its reply.
pub struct HttpTrace<'a, F: Face> {
    /// The transcript.
    pub transcript: &'a Transcript,
    /// The stimulus.
    pub asked: &'a PlacedExpectation<F>,
    /// Line written.
    pub line: &'a RequestLine,
    /// HTTP settings in the plan.
    pub how: Option<&'a Carriage>,
    /// HTTP exchange of the line.
    pub exchange: HttpExchange<'a>,
    /// Content of the reply's body.
    pub output: &'a Output<F::Message>,
    /// Set if the process has ended.
    pub is_over: bool,
}

/// A transcript with its stimuli and their answers.
pub struct Trace<'a, F: Face> {
    /// The transcript.
    pub transcript: &'a Transcript,
    /// Stimuli of all sessions.
    pub asked: &'a [PlacedExpectation<F>],
    /// State of the model after the last stimulus.
    pub state: &'a F::State,
    /// Sessions with peers of the face.
    pub sessions: Vec<SessionTrace<'a, F>>,
}

impl<'a, F: Face> SessionTrace<'a, F> {
    /// Answered requests with their answers, in the order of sending. Leaves out groups that must not be
    /// answered.
    pub fn answers(
        &self,
    ) -> impl Iterator<Item = (&'a PlacedExpectation<F>, &'a ExpectedPart<F>, Answer<'a, F>)> {
        let has_some = |(asked, _): &&(&'a PlacedExpectation<F>, Match<'a, F>)| {
            !asked.due.together || !asked.due.must_be_silent()
        };
        self.exchanges.iter().filter(has_some).flat_map(|(asked, came)| {
            let asked: &'a PlacedExpectation<F> = asked;
            let answers = asked.due.parts.iter().zip(&came.answers);
            answers.filter_map(move |(part, answer)| Some((asked, part, (*answer)?)))
        })
    }
}

/// Answer to a stimulus or a part of it.
pub struct Answer<'a, F: Face> {
    /// The message.
    pub message: &'a F::Message,
    /// Number of its frame in the session.
    pub frame: usize,
}

impl<F: Face> Clone for Answer<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F: Face> Copy for Answer<'_, F> {}

/// Answers to one stimulus.
pub struct Match<'a, F: Face> {
    /// Answer to each part.
    pub answers: Vec<Option<Answer<'a, F>>>,
    /// Answer to all parts together.
    pub whole: Option<Answer<'a, F>>,
    /// Number of the frame that holds the answers together.
    pub frame: Option<usize>,
    /// Messages of that frame that answer nothing.
    pub extra: Vec<&'a F::Message>,
    /// Number of the undecodable frame in the place of the answer.
    pub garbled: Option<usize>,
    /// Messages outside such a frame that answer parts of the group or refuse all of it.
    pub apart: Vec<&'a F::Message>,
}

impl<F: Face> Match<'_, F> {
    pub(crate) fn nothing(parts: usize) -> Self {
        Self {
            answers: vec![None; parts],
            whole: None,
            frame: None,
            extra: Vec::new(),
            garbled: None,
            apart: Vec::new(),
        }
    }

    /// True if a message answers the stimulus or a part of it.
    pub fn is_answered(&self) -> bool {
        self.whole.is_some() || self.answers.iter().any(Option::is_some)
    }
}

/// One frame of output, in the order of the session.
pub struct Output<M> {
    /// Index of the event that completed it, within its session.
    pub place: usize,
    /// Time of completion, microseconds.
    pub at_us: u64,
    /// Length in bytes.
    pub bytes: usize,
    /// Content of the frame.
    pub held: FrameContent<M>,
    /// Fault of the frame itself.
    pub broken: Option<Finding>,
}

/// Content of a frame.
pub enum FrameContent<M> {
    /// One message.
    Message(M),
    /// Several messages.
    Together {
        /// All of the frame as one message.
        all: M,
        /// The single messages.
        messages: Vec<M>,
    },
    /// Allowed message that answers nothing.
    Beside(M),
    /// Answer that cannot be decoded.
    Garbled,
    /// No message.
    Nothing,
}

impl<M> FrameContent<M> {
    /// All messages in the frame, except those beside.
    pub fn messages(&self) -> &[M] {
        match self {
            Self::Message(message) => std::slice::from_ref(message),
            Self::Together { messages, .. } => messages,
            Self::Beside(_) | Self::Garbled | Self::Nothing => &[],
        }
    }

    /// All of the frame as one message.
    pub fn whole(&self) -> Option<&M> {
        match self {
            Self::Message(message) | Self::Beside(message) | Self::Together { all: message, .. } => {
                Some(message)
            }
            Self::Garbled | Self::Nothing => None,
        }
    }

    /// Text of the whole frame.
    pub fn text<F: Face<Message = M>>(&self, face: &F) -> String {
        self.whole().map(|message| face.text(message)).unwrap_or_default()
    }
}

/// HTTP exchange of one request.
#[derive(Debug, Clone, Copy, Default)]
pub struct HttpExchange<'a> {
    /// Reply, if one came.
    pub reply: Option<HttpReplyHead>,
    /// Reason for a missing reply.
    pub failure: Option<&'a str>,
    /// Set if the whole request was sent.
    pub wholly_sent: bool,
    /// Set if its connection closed without a reply and the request was sent again.
    pub was_dropped: bool,
    /// Value of `Content-Type` of the reply.
    pub content_type: Option<&'a str>,
    /// Header and trailer lines of the reply.
    pub head: &'a [u8],
    /// Body of the reply.
    pub body: Option<&'a [u8]>,
    /// Place among the replies of the session, from 1.
    pub place: usize,
    /// Time of the last byte, microseconds.
    pub at_us: u64,
}

/// Head of a reply.
#[derive(Debug, Clone, Copy)]
pub struct HttpReplyHead {
    /// Status code.
    pub status: u16,
    /// Length of the body.
    pub body_bytes: u64,
    /// Set if another request may follow on the connection.
    pub keeps_open: bool,
}

impl HttpExchange<'_> {
    /// Status of the reply.
    pub fn status(&self) -> Option<u16> {
        self.reply.map(|reply| reply.status)
    }
}
