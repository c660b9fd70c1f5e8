//! The seam between the pure peers and their shell.
//!
//! A peer is a [`Machine`]: events go in together with the current time, actions come out. A machine reads no clock,
//! file, environment variable or socket. So tests cross a 60 s lifetime in microseconds, and mutants change one event
//! or one action without touching the correct code.

use crate::resources::ResourceLimits;

/// Function that wraps a machine to change the presentation of its output, and nothing else.
pub type Wrap<'a> = dyn Fn(Box<dyn Machine>) -> Box<dyn Machine> + 'a;

/// Milliseconds since the peer started, from a monotonic clock.
pub type Millis = u64;

/// Event that the shell passes to a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// Bytes from standard input, in order and never empty. Their chunking has no meaning.
    Stdin(&'a [u8]),
    /// Standard input reached its end; sent once.
    StdinEof,
    /// The peer got SIGTERM.
    Terminate,
    /// The time of the last [`Action::WakeAt`] has come.
    Wake,
    /// The result of [`Action::Fetch`] or [`Action::Post`].
    Fetched(Result<Fetched, FetchError>),
    /// Bytes that the child process wrote to its standard output.
    ChildStdout(&'a [u8]),
    /// The child closed its standard output.
    ChildStdoutEof,
    /// The child exited.
    ChildExit(ChildExit),
    /// The child could not be started.
    ChildSpawnFailed(SpawnFailure),
}

/// HTTP reply to [`Action::Fetch`] or [`Action::Post`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// HTTP status code.
    pub status: u16,
    /// Value of the `Location` header, if any.
    pub location: Option<String>,
    /// Body, at most `body_bytes_max` bytes of the action.
    pub body: Vec<u8>,
}

/// Reason why an exchange with an HTTP server failed, as the operating system or the reader of replies says it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FetchError(pub String);

/// Exit of a child process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildExit {
    /// Exit status.
    Code(i32),
    /// Signal number.
    Signal(i32),
}

/// Reason why a child process could not be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpawnFailure {
    /// The program does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The program exists but cannot be run: a directory, or a file without the execute bit.
    #[error("{0}")]
    NotRunnable(String),
    /// Anything else, with the operating system's error.
    #[error("{0}")]
    Other(String),
}

/// Action that a machine asks of the shell. Actions are carried out in order.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// Write to standard output and flush.
    Stdout(Vec<u8>),
    /// Write to standard error.
    Stderr(Vec<u8>),
    /// Call back with [`Event::Wake`] at this time.
    WakeAt(Millis),
    /// Fetch a URL: connect to `host:port` and request `path`. The shell follows no redirects.
    Fetch {
        /// Host name or address to connect to, without brackets.
        host: String,
        /// TCP port.
        port: u16,
        /// Path and query.
        path: String,
        /// Value of the `Host` header.
        host_header: String,
        /// Largest accepted body in bytes; a longer one is an error.
        body_bytes_max: usize,
        /// Time limit for the whole exchange, name lookup included, in ms.
        timeout_ms: u64,
    },
    /// Start a child process in its own process group with piped standard streams.
    Spawn {
        /// Program and arguments.
        argv: Vec<String>,
        /// Bytes for its standard input, which is then closed.
        stdin: Vec<u8>,
    },
    /// Start a policy driver in its own process group, with empty standard input and with standard output and error
    /// piped.
    Drive(Box<DriveOrder>),
    /// Start the program of a job in its own process group, with empty standard input and discarded output. The bytes
    /// are the path of the job's file in the queue (worker of run_queue).
    Job(Vec<u8>),
    /// Send a POST request. The reply comes as [`Event::Fetched`].
    Post(Box<PostOrder>),
    /// Kill the child's process group and its remaining descendants.
    Kill,
    /// Append to the results file of a consumer.
    Append(Vec<u8>),
    /// Exit with this status after all output is written. It is the last action.
    Exit(i32),
    /// End at once with SIGABRT, like a tool that aborts its process.
    Abort,
}

/// Start of a policy driver ([`Action::Drive`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriveOrder {
    /// Path of the program.
    pub program: String,
    /// Its arguments, beginning with `argv[0]`. The path of a file with `payload` is appended.
    pub argv: Vec<String>,
    /// Content of that file. Only its owner can read it, and it is removed after the driver is killed.
    pub payload: Vec<u8>,
    /// Resource limits of the driver.
    pub resources: ResourceLimits,
}

/// POST request to an HTTP server ([`Action::Post`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostOrder {
    /// Host name or address to connect to, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Path and query.
    pub path: String,
    /// Value of the `Host` header.
    pub host_header: String,
    /// Value of the `Authorization` header.
    pub authorization: Option<String>,
    /// Body, a JSON text.
    pub body: Vec<u8>,
    /// Largest accepted body of the reply in bytes; a longer one is an error.
    pub body_bytes_max: usize,
    /// Time limit for the whole exchange, name lookup included, in ms.
    pub timeout_ms: u64,
}

/// A pure peer.
pub trait Machine {
    /// Handles one event at the time `now` and appends the resulting actions to `actions`.
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>);

    /// Called once before the first event, for peers that speak first.
    fn begin(&mut self, _now: Millis, _actions: &mut Vec<Action>) {}

    /// False while the machine waits for a timer or a reply. The shell then leaves standard input unread, the
    /// back-pressure that the contract allows. Events other than [`Event::Stdin`] are still delivered.
    fn wants_stdin(&self) -> bool {
        true
    }
}

impl<M: Machine + ?Sized> Machine for Box<M> {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        (**self).handle(event, now, actions);
    }

    fn begin(&mut self, now: Millis, actions: &mut Vec<Action>) {
        (**self).begin(now, actions);
    }

    fn wants_stdin(&self) -> bool {
        (**self).wants_stdin()
    }
}
