//! From an outcome to the bytes of a reply (IPC §4).

use super::state::{Slots, UNCHANGED, write_delta, write_full};
use crate::json::{Text, write_str, write_text};
use crate::machine::Action;

/// Outcome of a tool (IPC §4 `status`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// `OK`
    Ok,
    /// `INVALID_PICK`; no tool of this crate returns it.
    InvalidPick,
    /// `TOOL_ERROR`
    ToolError,
    /// `BREAKER_TRIP`; no tool of this crate returns it.
    BreakerTrip,
}

impl Status {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::InvalidPick => "INVALID_PICK",
            Self::ToolError => "TOOL_ERROR",
            Self::BreakerTrip => "BREAKER_TRIP",
        }
    }
}

/// Actions under construction. Consecutive replies become one write.
pub(super) struct ActionBuilder<'a> {
    actions: &'a mut Vec<Action>,
    replies: Vec<u8>,
}

impl<'a> ActionBuilder<'a> {
    pub(super) fn new(actions: &'a mut Vec<Action>) -> Self {
        Self { actions, replies: Vec::new() }
    }

    /// Buffer of replies that are not yet an action.
    pub(super) fn replies(&mut self) -> &mut Vec<u8> {
        &mut self.replies
    }

    pub(super) fn push(&mut self, action: Action) {
        self.flush();
        self.actions.push(action);
    }

    fn flush(&mut self) {
        if !self.replies.is_empty() {
            self.actions.push(Action::Stdout(std::mem::take(&mut self.replies)));
        }
    }
}

impl Drop for ActionBuilder<'_> {
    fn drop(&mut self) {
        self.flush();
    }
}

/// `output_json` in a form for a reply.
#[derive(Debug, Clone, Copy)]
pub(super) enum OutputRef<'a> {
    /// The inside of a JSON string.
    Escaped(&'a str),
    /// A JSON text.
    Json(&'a str),
}

impl OutputRef<'_> {
    fn bytes_min(self) -> usize {
        let (Self::Escaped(text) | Self::Json(text)) = self;
        text.len()
    }
}

/// The `ds_state` of a reply.
#[derive(Debug, Clone, Copy)]
pub(super) enum StateRef<'a> {
    /// `{"delta":true,"slots":{}}`
    Unchanged,
    /// The tool's changes.
    Delta {
        /// The slots before the tool ran.
        before: &'a Slots,
        /// The slots after it.
        after: &'a Slots,
    },
    /// The full state.
    Full(&'a Slots),
}

/// A reply of a tool.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reply<'a> {
    pub status: Status,
    /// Omitted unless the status is `OK`.
    pub output: OutputRef<'a>,
    /// Omitted if the status is `OK`.
    pub error: &'a Text,
    /// `idempotent_hit`. `Some(false)` on the first reply to a key ensures that a hit, one byte shorter, fits too.
    pub hit: Option<bool>,
    /// Omitted if `None`.
    pub state: Option<StateRef<'a>>,
}

impl Reply<'_> {
    /// Appends the reply and its newline. If it exceeds `reply_bytes_max`, appends nothing and returns false.
    pub(super) fn write(&self, out: &mut Vec<u8>, reply_bytes_max: usize) -> bool {
        let start = out.len();
        if self.status == Status::Ok {
            if self.output.bytes_min() > reply_bytes_max {
                return false;
            }
            out.reserve(self.output.bytes_min() + 128);
            out.extend_from_slice(b"{\"ok\":true,\"status\":\"OK\",\"output_json\":");
            match self.output {
                OutputRef::Escaped(inside) => {
                    out.push(b'"');
                    out.extend_from_slice(inside.as_bytes());
                    out.push(b'"');
                }
                OutputRef::Json(text) => write_str(out, text),
            }
            out.extend_from_slice(b",\"error\":\"\"");
        } else {
            out.extend_from_slice(b"{\"ok\":false,\"status\":\"");
            out.extend_from_slice(self.status.word().as_bytes());
            out.extend_from_slice(b"\",\"error\":");
            if self.error.as_bytes().is_empty() {
                write_str(out, "the tool failed without a message");
            } else {
                write_text(out, self.error);
            }
        }
        if let Some(state) = self.state {
            out.extend_from_slice(b",\"ds_state\":");
            match state {
                StateRef::Unchanged => out.extend_from_slice(UNCHANGED),
                StateRef::Delta { before, after } => write_delta(out, before, after),
                StateRef::Full(slots) => write_full(out, slots),
            }
        }
        match self.hit {
            None => {}
            Some(true) => out.extend_from_slice(b",\"idempotent_hit\":true"),
            Some(false) => out.extend_from_slice(b",\"idempotent_hit\":false"),
        }
        out.extend_from_slice(b"}\n");
        if out.len() - start > reply_bytes_max {
            out.truncate(start);
            return false;
        }
        true
    }
}

/// Appends a host error, the reply if no tool ran.
pub(super) fn write_host_error(out: &mut Vec<u8>, error: &str) {
    out.extend_from_slice(b"{\"ok\":false,\"error\":");
    write_str(out, error);
    out.extend_from_slice(b"}\n");
}

/// Appends `lease_required` (IPC §4c).
pub(super) fn write_lease_required(out: &mut Vec<u8>, tier: u8, aid: &str) {
    out.extend_from_slice(
        format!("{{\"ok\":false,\"error\":\"lease_required\",\"tier\":{tier},\"aid\":").as_bytes(),
    );
    write_str(out, aid);
    out.extend_from_slice(b"}\n");
}

/// Appends `lease_rejected` (IPC §4c).
pub(super) fn write_lease_rejected(out: &mut Vec<u8>, reason: &str) {
    out.extend_from_slice(b"{\"ok\":false,\"error\":\"lease_rejected\",\"reason\":");
    write_str(out, reason);
    out.extend_from_slice(b"}\n");
}

/// Appends the reply of `_lease.issue`, the only one with a token.
pub(super) fn write_lease_issued(out: &mut Vec<u8>, token: &str, ttl_ms: u64) {
    out.extend_from_slice(b"{\"ok\":true,\"token_id\":");
    write_str(out, token);
    out.extend_from_slice(format!(",\"ttl_ms\":{ttl_ms}}}\n").as_bytes());
}
