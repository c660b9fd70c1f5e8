//! Peers in this process: what they are told, and what they ask for.
//!
//! A peer is a [`Machine`]: bytes, the end of the input and the time go in; bytes, an exit and a start of a process come
//! out. It reads no clock, so that a conversation on a virtual clock takes no time and comes out the same each time.

/// Milliseconds since the peer started.
pub type Millis = u64;

/// What a peer is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'a> {
    /// Bytes on its standard input, in order; never empty. Any chunking means the same.
    Stdin(&'a [u8]),
    /// The end of its standard input; told once.
    StdinEof,
    /// It is asked to end (SIGTERM).
    Terminate,
    /// The time of an [`Action::WakeAt`] has come.
    Wake,
    /// What became of an [`Action::Fetch`].
    Fetched(Result<Fetched, String>),
    /// The process of an [`Action::Spawn`] could not be started, and why.
    SpawnFailed(String),
}

/// A reply of an HTTP server to an [`Action::Fetch`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// HTTP status code.
    pub status: u16,
    /// Value of the `Location` header.
    pub location: Option<String>,
    /// Body, at most `body_bytes_max` bytes of the [`Action::Fetch`].
    pub body: Vec<u8>,
}

/// What a peer asks for, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Write to standard output.
    Stdout(Vec<u8>),
    /// Write to standard error.
    Stderr(Vec<u8>),
    /// Tell it [`Event::Wake`] at this time.
    WakeAt(Millis),
    /// Fetch an URL, and follow no redirect.
    Fetch {
        /// Host name or address without brackets.
        host: String,
        /// TCP port.
        port: u16,
        /// Path and query.
        path: String,
        /// Value of the `Host` header.
        host_header: String,
        /// Bytes of the body that are accepted; a longer one is an error.
        body_bytes_max: usize,
        /// Time for the whole exchange, name lookup included, in ms.
        timeout_ms: u64,
    },
    /// Start a process.
    Spawn {
        /// Program and arguments.
        argv: Vec<String>,
    },
    /// End with this exit status after everything was written; the last action.
    Exit(i32),
    /// End at once by SIGABRT.
    Abort,
}

/// A peer in this process.
pub trait Machine {
    /// Takes one event at the time `now` and appends what has to be done to `actions`.
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>);

    /// Called once before the first event: what a peer does that speaks first.
    fn begin(&mut self, _now: Millis, _actions: &mut Vec<Action>) {}

    /// Whether it reads its standard input now. One that does not is still told other events.
    fn wants_stdin(&self) -> bool {
        true
    }
}

/// A peer that is a function: it gets the bytes of its standard input as they come, cut anywhere, and gives what is to be
/// written for them. It ends with its input.
pub struct Replies<F>(pub F);

impl<F: FnMut(&[u8]) -> Vec<u8>> Machine for Replies<F> {
    fn handle(&mut self, event: Event<'_>, _now: Millis, actions: &mut Vec<Action>) {
        match event {
            Event::Stdin(bytes) => {
                let written = (self.0)(bytes);
                if !written.is_empty() {
                    actions.push(Action::Stdout(written));
                }
            }
            Event::StdinEof | Event::Terminate => actions.push(Action::Exit(0)),
            Event::Wake | Event::Fetched(_) | Event::SpawnFailed(_) => {}
        }
    }
}
