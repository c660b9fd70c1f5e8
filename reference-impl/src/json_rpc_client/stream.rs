//! Streams: what the server says on the way to a result.

use crate::json::Value;

/// What came of the stream of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    /// Its id.
    pub id: Value,
    /// Chunks that came in order.
    pub chunks: u64,
    in_order: bool,
    /// `stream_end` has come.
    pub ended: bool,
}

impl Stream {
    /// A stream that has just started.
    pub fn new(id: Value) -> Self {
        Self { id, chunks: 0, in_order: true, ended: false }
    }

    /// Takes `stream_data`. What follows the end changes nothing.
    pub fn data(&mut self, params: &Value) {
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

    /// Takes `stream_end`.
    pub fn end(&mut self, params: &Value) {
        let total = params.get("total_chunks").and_then(Value::as_i64);
        self.in_order &= total == i64::try_from(self.chunks).ok() && !self.ended;
        self.ended = true;
    }

    /// Takes another `stream_start`.
    pub fn start_again(&mut self) {
        self.in_order = false;
    }

    /// Whether it started, went on and ended as it should.
    pub fn is_whole(&self) -> bool {
        self.in_order && self.ended
    }
}
