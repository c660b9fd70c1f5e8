//! The seam between the pure peers and the shell that runs them.
//!
//! A peer is a [`Machine`]: events go in together with the current time, actions come out. Nothing in a machine
//! reads a clock, a file, an environment variable or a socket, so that tests cross a 60 s lifetime in microseconds
//! and mutants change one event or one action without touching the correct code.

use crate::policy_driver::ResourceLimits;

/// Puts something around a machine that changes how its output is presented, and nothing else.
pub type Wrap<'a> = dyn Fn(Box<dyn Machine>) -> Box<dyn Machine> + 'a;

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
    /// Start a policy driver in its own process group, with nothing on its standard input, and with its standard output and
    /// error piped.
    Drive(Box<DriveOrder>),
    /// Start the program of a job with the file at this place of the queue, in its own process group, with nothing on its
    /// standard input and its output dropped (worker of run_queue).
    Job(Vec<u8>),
    /// Send a POST request and take the reply as after [`Action::Fetch`].
    Post(Box<PostOrder>),
    /// Kill the child's process group and what is left of its descendants.
    Kill,
    /// Append to the results file that the peer was given (client of json_rpc).
    Append(Vec<u8>),
    /// End with this exit status after everything was written; the last action.
    Exit(i32),
    /// End at once by SIGABRT, as a tool that aborts its process does.
    Abort,
}

/// How to start a policy driver ([`Action::Drive`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriveOrder {
    /// Path of the program.
    pub program: String,
    /// Its arguments, its own name first; the path of a file that holds `payload` is added at the end.
    pub argv: Vec<String>,
    /// What the file holds that only its owner can read, and that is gone when the driver is killed.
    pub payload: Vec<u8>,
    /// What the operating system caps.
    pub resources: ResourceLimits,
}

/// What to send to an HTTP server ([`Action::Post`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostOrder {
    /// Host name or address as it is contacted, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Path and query.
    pub path: String,
    /// Value of the `Host` header.
    pub host_header: String,
    /// Value of the `Authorization` header.
    pub authorization: Option<String>,
    /// A JSON text.
    pub body: Vec<u8>,
    /// Bytes of the reply's body that are accepted; a longer one is an error.
    pub body_bytes_max: usize,
    /// Time for the whole exchange, name lookup included, in ms.
    pub timeout_ms: u64,
}

/// A pure peer.
pub trait Machine {
    /// Takes one event at the time `now` and appends what has to be done to `actions`.
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>);

    /// Called once before the first event: what a peer does that speaks first.
    fn begin(&mut self, _now: Millis, _actions: &mut Vec<Action>) {}

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

    fn begin(&mut self, now: Millis, actions: &mut Vec<Action>) {
        (**self).begin(now, actions);
    }

    fn wants_stdin(&self) -> bool {
        (**self).wants_stdin()
    }
}
