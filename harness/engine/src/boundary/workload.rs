//! What a benchmark sends: supplied by a boundary, driven by the engine.

use std::fmt;
use std::sync::Arc;

use crate::plan::Session;

/// Most requests of an open loop in one write.
const OPEN_BURST: u64 = 64;

/// Decides whether a reply is right: number of the request's variant, reply without its line feed. An error is one
/// phrase that says what is wrong.
pub type Judge = Arc<dyn Fn(usize, &[u8]) -> Result<(), String> + Send + Sync>;

/// One kind of request to one command of a peer.
#[derive(Clone)]
pub struct Workload {
    /// Command and size, such as `serve/64B`; the first part of the ids of its rows.
    pub name: String,
    /// One phrase for people.
    pub meaning: String,
    /// How the process is started.
    pub session: Session,
    /// Variants of the request as they are written, line feed included where the transport needs one. All have the same
    /// length; they are sent in turn, so that a lost reply shows.
    pub requests: Vec<Vec<u8>>,
    /// Files in the folder that `{{folder}}` stands for in the folder, the environment and the placeholders of the session,
    /// by their paths.
    pub files: Vec<(&'static str, Arc<[u8]>)>,
    /// A process answers one request, at the end of its input; else it answers line by line.
    pub one_shot: bool,
    /// The reply is about as long as the request; else it is short.
    pub echoes: bool,
    /// In which ways it is sent.
    pub shapes: Vec<Shape>,
    /// Whether a reply is right.
    pub judge: Judge,
}

impl Workload {
    /// Length of one request, bytes.
    pub fn request_bytes(&self) -> usize {
        self.requests.first().map_or(0, Vec::len)
    }

    /// Most requests that are written at once.
    pub fn burst(&self) -> u64 {
        let of = |shape: &Shape| match shape {
            Shape::StartUp => 1,
            Shape::Window(requests) => u64::from(*requests),
            Shape::Open(_) | Shape::Soak => OPEN_BURST,
        };
        self.shapes.iter().map(of).max().unwrap_or(1)
    }

    /// Requests in turn, so many that any burst is one slice of it.
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

/// How requests follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// From the start of a process to its first reply.
    StartUp,
    /// Closed: the next request is sent when a reply came, with this many under way. One is ping-pong.
    Window(u32),
    /// Open: requests are sent at even times, at this share of the highest rate measured, per cent, and latency
    /// counts from the time at which a request was to be sent.
    Open(u32),
    /// Closed with 64 under way and for longer, so that growth of memory shows.
    Soak,
}

impl Shape {
    /// Its part of a row's id.
    pub fn name(self) -> String {
        match self {
            Self::StartUp => "start-up".to_owned(),
            Self::Window(1) => "ping-pong".to_owned(),
            Self::Window(requests) => format!("window-{requests}"),
            Self::Open(percent) => format!("open-{percent}"),
            Self::Soak => "soak".to_owned(),
        }
    }

    /// Its share of the time, where that of most is 1.
    pub(crate) fn weight(self) -> u32 {
        if self == Self::Soak { 4 } else { 1 }
    }
}
