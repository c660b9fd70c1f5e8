//! Requests of a benchmark: supplied by a boundary, sent by the engine.

use std::fmt;
use std::sync::Arc;

use crate::data::blame::Misconfigured;
use crate::data::facts::Facts;
use crate::data::plan::{Plan, Session};

/// Maximum number of requests of an open loop in one write.
const OPEN_BURST: u64 = 64;

/// Judge of a reply. Takes the number of the request's variant and the reply without its line feed; returns one phrase
/// that says what is wrong.
pub type ReplyVerifier = Arc<dyn Fn(usize, &[u8]) -> Result<(), String> + Send + Sync>;

/// One kind of request to one command of a peer.
#[derive(Clone)]
pub struct Workload {
    /// Command and size, such as `serve/64B`: the first part of a row's id.
    pub name: String,
    /// Description for people, one phrase.
    pub meaning: String,
    /// Session in which the requests are sent.
    pub session: Session,
    /// Variants of the request as written, with a line feed if the transport needs one. All have equal length; they are
    /// sent in turn, so that a lost reply shows.
    pub requests: Vec<Vec<u8>>,
    /// Files to write below the folder `{{folder}}`, by relative path. The session's folder, environment and
    /// placeholders may name `{{folder}}`.
    pub files: Vec<(&'static str, Arc<[u8]>)>,
    /// Set if a process answers one request, at the end of its input; otherwise it answers line by line.
    pub one_shot: bool,
    /// Set if the reply is about as long as the request; otherwise it is short.
    pub echoes: bool,
    /// Shapes in which the requests are sent.
    pub shapes: Vec<Shape>,
    /// Judge of the replies.
    pub judge: ReplyVerifier,
}

impl Workload {
    /// Length of one request, bytes.
    pub fn request_bytes(&self) -> usize {
        self.requests.first().map_or(0, Vec::len)
    }

    /// Maximum number of requests in one write.
    pub fn burst(&self) -> u64 {
        let of = |shape: &Shape| match shape {
            Shape::StartUp => 1,
            Shape::Window(requests) => u64::from(*requests),
            Shape::Open(_) | Shape::Soak => OPEN_BURST,
        };
        self.shapes.iter().map(of).max().unwrap_or(1)
    }

    /// Requests one after the other, long enough that any burst is one slice of it.
    pub fn tape(&self) -> Vec<u8> {
        let copies = usize::try_from(self.burst()).unwrap_or(1) + self.requests.len().saturating_sub(1);
        let mut tape = Vec::with_capacity(copies * self.request_bytes());
        for request in self.requests.iter().cycle().take(copies) {
            tape.extend_from_slice(request);
        }
        tape
    }
}

impl fmt::Debug for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workload")
            .field("name", &self.name)
            .field("shapes", &self.shapes)
            .finish_non_exhaustive()
    }
}

/// Timing of the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Measures from the start of a process to its first reply.
    StartUp,
    /// Closed loop: sends the next request when a reply arrives, with this many under way. One is ping-pong.
    Window(u32),
    /// Open loop: sends requests at even times, at this percentage of the highest rate measured. Latency counts from
    /// the intended time of a request.
    Open(u32),
    /// Closed loop with 64 requests under way for a longer time, so that memory growth shows.
    Soak,
}

impl Shape {
    /// Part of a row's id.
    pub fn name(self) -> String {
        match self {
            Self::StartUp => "start-up".to_owned(),
            Self::Window(1) => "ping-pong".to_owned(),
            Self::Window(requests) => format!("window-{requests}"),
            Self::Open(percent) => format!("open-{percent}"),
            Self::Soak => "soak".to_owned(),
        }
    }

    /// Share of the time relative to other shapes.
    pub(crate) fn weight(self) -> u32 {
        if self == Self::Soak { 4 } else { 1 }
    }
}

/// Benchmark of the peers of a boundary. A boundary without one implements it without methods.
pub trait Benchmark {
    /// Benchmark workloads for a peer with these facts, smallest first.
    ///
    /// # Errors
    /// Describes in one sentence what a benchmark needs and the peer lacks.
    fn workloads(&self, _facts: &Facts) -> Result<Vec<Workload>, Misconfigured> {
        Err("this boundary has no benchmark".into())
    }

    /// Lines that open a session for a benchmark, each with `true` if its answer must be awaited.
    fn bench_opening(&self, _facts: &Facts) -> Vec<(Vec<u8>, bool)> {
        Vec::new()
    }

    /// Conversation of this many small exchanges with one process, each with its expectation. It measures the overhead
    /// of the harness. `None` if the peer has no such conversation.
    fn small_exchanges(&self, _facts: &Facts, _exchanges: usize) -> Option<Plan> {
        None
    }
}
