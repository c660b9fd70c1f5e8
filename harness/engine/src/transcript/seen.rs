//! What actors see of what a peer gives them.

use serde::{Deserialize, Serialize};

use super::Bytes;

/// What an actor saw, one variant for each [`Sight`](crate::plan::Sight) (two for `Payload`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "sight")]
pub enum Seen {
    /// The file that its last argument names.
    Payload {
        /// The argument.
        path: String,
        /// Its first bytes, 16 MiB at most.
        bytes: Bytes,
        /// Number of all bytes.
        total_bytes: u64,
        /// Its permission bits.
        mode: u32,
        /// Permission bits of the folder that it is in.
        folder_mode: u32,
        /// It belongs to the user that the actor runs as.
        is_own: bool,
    },
    /// There is no last argument, or no file that could be read.
    NoPayload {
        /// The argument; empty where there is none.
        path: String,
        /// Why it could not be read, in one phrase.
        error: String,
    },
    /// Its environment, as it was when it was started.
    Environment {
        /// `NAME=VALUE`, a NUL after each. `PWD`, `OLDPWD`, `SHLVL` and `_` may be additions of sh.
        bytes: Bytes,
    },
    /// Its resource limits.
    Limits {
        /// The text of `/proc/self/limits`.
        text: String,
    },
    /// Its standard input.
    Stdin {
        /// What there was after the bytes.
        state: StdinState,
        /// What came, 1 MiB at most.
        bytes: Bytes,
    },
    /// Its state.
    Status {
        /// The text of `/proc/self/status`. SIGPIPE is ignored by the actor itself.
        text: String,
    },
}

/// What an actor found on standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StdinState {
    /// It ended. (One that was closed reads as ended: the actor's runtime puts an empty file in its place.)
    Ended,
    /// It is open, and no more came in time.
    Open,
    /// It cannot be read.
    Unreadable,
}

#[cfg(test)]
mod tests {
    use super::super::{Event, Kind};
    use super::*;

    #[test]
    fn what_was_seen_survives_storage() {
        let payload = Seen::Payload {
            path: "/x".to_owned(),
            bytes: Bytes(b"\xff{}".to_vec()),
            total_bytes: 3,
            mode: 0o600,
            folder_mode: 0o755,
            is_own: true,
        };
        let stdin = Seen::Stdin { state: StdinState::Open, bytes: Bytes(vec![0; 100]) };
        for seen in [payload, stdin] {
            let kind = Kind::ActorSaw { actor: "a".to_owned(), pid: 7, seen };
            let event = Event { at_us: 1, session: 0, kind };
            let text = serde_json::to_string(&event).unwrap();
            assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event, "{text}");
        }
    }
}
