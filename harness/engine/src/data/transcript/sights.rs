//! Observations of actors: the input and surroundings that a peer gives them.

use serde::{Deserialize, Serialize};

use super::Bytes;

/// Result of an actor's look, one variant per [`Sight`](crate::data::plan::Sight) (two for `Payload`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "sight")]
pub enum SightResult {
    /// File named by the last argument.
    Payload {
        /// The argument.
        path: String,
        /// First bytes, at most 16 MiB.
        bytes: Bytes,
        /// Number of all bytes.
        total_bytes: u64,
        /// Permission bits.
        mode: u32,
        /// Permission bits of its folder.
        folder_mode: u32,
        /// Set if it belongs to the actor's user.
        is_own: bool,
    },
    /// The last argument is missing, or does not name a readable file.
    NoPayload {
        /// The argument; empty if missing.
        path: String,
        /// Reason, one phrase.
        error: String,
    },
    /// Initial environment.
    Environment {
        /// `NAME=VALUE` entries, each followed by a NUL. `PWD`, `OLDPWD`, `SHLVL` and `_` may be additions of sh.
        bytes: Bytes,
    },
    /// Resource limits.
    Limits {
        /// Text of `/proc/self/limits`.
        text: String,
    },
    /// Standard input.
    Stdin {
        /// State after these bytes.
        state: StdinState,
        /// Bytes received, at most 1 MiB.
        bytes: Bytes,
    },
    /// Process status.
    Status {
        /// Text of `/proc/self/status`. The actor itself ignores SIGPIPE.
        text: String,
    },
}

/// State of an actor's standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StdinState {
    /// At its end. A closed input looks the same, because the actor's runtime replaces it by an empty file.
    Ended,
    /// Open, but nothing more came in time.
    Open,
    /// Unreadable.
    Unreadable,
}

#[cfg(test)]
mod tests {
    use super::super::{Event, EventKind};
    use super::*;

    #[test]
    fn what_was_seen_survives_storage() {
        let payload = SightResult::Payload {
            path: "/x".to_owned(),
            bytes: Bytes(b"\xff{}".to_vec()),
            total_bytes: 3,
            mode: 0o600,
            folder_mode: 0o755,
            is_own: true,
        };
        let stdin = SightResult::Stdin { state: StdinState::Open, bytes: Bytes(vec![0; 100]) };
        for seen in [payload, stdin] {
            let kind = EventKind::ActorSaw { actor: "a".to_owned(), pid: 7, seen };
            let event = Event { at_us: 1, session: 0, kind };
            let text = serde_json::to_string(&event).unwrap();
            assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event, "{text}");
        }
    }
}
