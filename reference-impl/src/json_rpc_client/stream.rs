//! Streams: partial output before a result.

use crate::json::Value;

/// State of the stream of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stream {
    /// Its id.
    pub id: Value,
    /// Number of chunks received in order.
    pub chunks: u64,
    in_order: bool,
    /// True after `stream_end`.
    pub ended: bool,
}

impl Stream {
    /// Creates a stream that has just started.
    pub(super) fn new(id: Value) -> Self {
        Self { id, chunks: 0, in_order: true, ended: false }
    }

    /// Handles `stream_data`. Data after the end is ignored.
    pub(super) fn data(&mut self, params: &Value) {
        if self.ended {
            return;
        }
        let sequence = params.get("sequence").and_then(Value::as_i64);
        if sequence == i64::try_from(self.chunks + 1).ok() {
            self.chunks += 1;
        } else {
            self.in_order = false;
        }
    }

    /// Handles `stream_end`.
    pub(super) fn end(&mut self, params: &Value) {
        let total = params.get("total_chunks").and_then(Value::as_i64);
        self.in_order &= total == i64::try_from(self.chunks).ok() && !self.ended;
        self.ended = true;
    }

    /// Handles another `stream_start`.
    pub(crate) fn start_again(&mut self) {
        self.in_order = false;
    }

    /// True if all chunks came in order and the end came.
    pub(super) fn is_whole(&self) -> bool {
        self.in_order && self.ended
    }
}
