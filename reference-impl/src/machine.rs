//! The seam between the pure peers and the shell that runs them.
//!
//! A peer is a [`Machine`]: events go in together with the current time, actions come out. Nothing in a machine
//! reads a clock, a file, an environment variable or a socket, so that tests cross a 60 s lifetime in microseconds
//! and mutants change one event or one action without touching the correct code.

/// Milliseconds since the peer started, from a monotonic clock.
pub type Millis = u64;

/// What the shell tells a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// Bytes that arrived on standard input, in order; never empty. Any chunking means the same.
    Stdin(&'a [u8]),
    /// Standard input reached its end; sent once.
    StdinEof,
    /// The peer was asked to end (SIGTERM).
    Terminate,
    /// The time asked for by [`Action::WakeAt`] has come.
    Wake,
    /// The answer to [`Action::Fetch`].
    Fetched(Result<Fetched, String>),
    /// Bytes a child process wrote to its standard output (dispatcher).
    ChildStdout(&'a [u8]),
    /// The child closed its standard output.
    ChildStdoutEof,
    /// The child ended.
    ChildExit(ChildExit),
    /// The child could not be started.
    ChildSpawnFailed(SpawnFailure),
}

/// A reply of an HTTP server to [`Action::Fetch`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// HTTP status code.
    pub status: u16,
    /// Value of the `Location` header, if any.
    pub location: Option<String>,
    /// Body, at most `body_bytes_max` bytes of the [`Action::Fetch`].
    pub body: Vec<u8>,
}

/// How a child process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildExit {
    /// Exit status.
    Code(i32),
    /// Signal number.
    Signal(i32),
}

/// Why a child process could not be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpawnFailure {
    /// The program does not exist.
    NotFound(String),
    /// The program is there and may not be run: a directory, a file without the run bit.
    NotRunnable(String),
    /// Anything else, with the operating system's words.
    Other(String),
}

/// What a machine asks the shell to do, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// Write to standard output and flush.
    Stdout(Vec<u8>),
    /// Write to standard error.
    Stderr(Vec<u8>),
    /// Call back with [`Event::Wake`] at this time.
    WakeAt(Millis),
    /// Fetch an URL: connect to `host:port` and request `path`. No redirect is followed by the shell.
    Fetch {
        /// Host name or address as it is contacted, without brackets.
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
    /// Start a child process in its own process group with piped standard streams.
    Spawn {
        /// Program and arguments.
        argv: Vec<String>,
        /// Bytes for its standard input, which is closed afterwards.
        stdin: Vec<u8>,
    },
    /// Kill the child's process group and what is left of its descendants.
    Kill,
    /// End with this exit status after everything was written; the last action.
    Exit(i32),
    /// End at once by SIGABRT, as a tool that aborts its process does.
    Abort,
}

/// A pure peer.
pub trait Machine {
    /// Takes one event at the time `now` and appends what has to be done to `actions`.
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>);

    /// False while the machine waits for time or for a reply: the shell then leaves standard input unread, which is
    /// the back-pressure that the contract allows. Events other than [`Event::Stdin`] are still delivered.
    fn wants_stdin(&self) -> bool {
        true
    }
}

impl<M: Machine + ?Sized> Machine for Box<M> {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        (**self).handle(event, now, actions);
    }

    fn wants_stdin(&self) -> bool {
        (**self).wants_stdin()
    }
}
