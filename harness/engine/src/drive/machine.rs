//! Peers inside this process: their events and actions.
//!
//! A peer is a [`Machine`]: it takes bytes, the end of the input and the time, and returns bytes, an exit or the start
//! of a process. It reads no clock, so that a conversation on a virtual clock takes no time and always has the same
//! result.

/// Milliseconds since the peer started.
pub type Millis = u64;

/// Event for a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MachineEvent<'a> {
    /// Bytes on its standard input, in order; never empty. Their division has no meaning.
    Stdin(&'a [u8]),
    /// End of its standard input; sent once.
    StdinEof,
    /// Request to end (SIGTERM).
    Terminate,
    /// Time of an [`Action::WakeAt`].
    Wake,
    /// Result of an [`Action::Fetch`].
    Fetched(Result<Fetched, String>),
    /// Reason why the process of an [`Action::Spawn`] could not be started.
    SpawnFailed(String),
}

/// HTTP reply to an [`Action::Fetch`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// HTTP status code.
    pub status: u16,
    /// Value of the `Location` header.
    pub location: Option<String>,
    /// Body, at most `body_bytes_max` bytes.
    pub body: Vec<u8>,
}

/// Action of a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Writes to standard output.
    Stdout(Vec<u8>),
    /// Writes to standard error.
    Stderr(Vec<u8>),
    /// Requests [`MachineEvent::Wake`] at this time.
    WakeAt(Millis),
    /// Fetches a URL without following redirects.
    Fetch {
        /// Host name or address without brackets.
        host: String,
        /// TCP port.
        port: u16,
        /// Path and query.
        path: String,
        /// Value of the `Host` header.
        host_header: String,
        /// Maximum length of the body; a longer one is an error.
        body_bytes_max: usize,
        /// Time for the whole exchange including name lookup, ms.
        timeout_ms: u64,
    },
    /// Starts a process.
    Spawn {
        /// Program and arguments.
        argv: Vec<String>,
    },
    /// Exits with this status after everything is written; the last action.
    Exit(i32),
    /// Ends at once by SIGABRT.
    Abort,
}

/// Peer inside this process.
pub trait Machine {
    /// Takes one event at the time `now` and appends its actions to `actions`.
    fn handle(&mut self, event: MachineEvent<'_>, now: Millis, actions: &mut Vec<Action>);

    /// Called once before the first event, for a peer that speaks first.
    fn begin(&mut self, _now: Millis, _actions: &mut Vec<Action>) {}

    /// True if it reads its standard input now. Other events come in any case.
    fn wants_stdin(&self) -> bool {
        true
    }
}

/// Peer that is a function from input bytes, divided anywhere, to output bytes. It ends with its input.
pub struct Replies<F>(pub F);

impl<F: FnMut(&[u8]) -> Vec<u8>> Machine for Replies<F> {
    fn handle(&mut self, event: MachineEvent<'_>, _now: Millis, actions: &mut Vec<Action>) {
        match event {
            MachineEvent::Stdin(bytes) => {
                let written = (self.0)(bytes);
                if !written.is_empty() {
                    actions.push(Action::Stdout(written));
                }
            }
            MachineEvent::StdinEof | MachineEvent::Terminate => actions.push(Action::Exit(0)),
            MachineEvent::Wake | MachineEvent::Fetched(_) | MachineEvent::SpawnFailed(_) => {}
        }
    }
}
