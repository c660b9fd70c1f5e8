//! State of one body that is being answered: one reply, or the array of a batch.

use super::method::Outcome;
use super::reply::{self, Failure, NULL};

/// Id of a body. It comes back with the reply.
pub(super) type Ticket = u64;

/// Body with unfinished calls.
#[derive(Debug)]
pub(super) struct Exchange {
    pub ticket: Ticket,
    /// Number of unfinished calls with an id.
    pub waiting: usize,
    /// Replies of a batch so far.
    pub batch: Option<BatchReply>,
}

/// Reply to a batch under construction.
///
/// It stays within the size of a message if every call has room for a short error. The remaining room goes to the
/// calls that finish first. It exceeds the size only if the ids alone fill a message.
#[derive(Debug)]
pub(super) struct BatchReply {
    text: Vec<u8>,
    bytes_max: usize,
    /// Bytes reserved for the unfinished calls.
    reserved: usize,
}

/// Size in bytes of a short error (code and message, no data) with a comma, without its id.
const SHORT_BYTES: usize = 90;

fn reserve(id: &str) -> usize {
    SHORT_BYTES + id.len()
}

impl BatchReply {
    pub(super) fn new(bytes_max: usize) -> Self {
        // One byte is for the closing bracket. The opening bracket takes the place of the first comma.
        Self { text: Vec::new(), bytes_max, reserved: 1 }
    }

    /// Reserves room for the answer with this id.
    pub(super) fn expect(&mut self, id: &str) {
        self.reserved += reserve(id);
    }

    /// Largest answer with this id, in bytes.
    pub(super) fn room(&self, id: &str) -> usize {
        let others = self.reserved.saturating_sub(reserve(id));
        self.bytes_max.saturating_sub(self.text.len() + others)
    }

    /// Adds the answer to a call, whose room was reserved.
    pub(super) fn answer(&mut self, id: &str, outcome: Outcome) {
        let room = self.room(id);
        self.reserved = self.reserved.saturating_sub(reserve(id));
        let kind = reply::give_way(&outcome);
        let mut reply = reply::response(id, outcome, self.bytes_max);
        if reply.len() + 1 > room {
            let failure = Failure::new(kind, "");
            reply = reply::error(id, &failure, false);
            if reply.len() > self.bytes_max {
                reply = reply::error(NULL, &failure, false);
            }
        }
        self.text.push(if self.text.is_empty() { b'[' } else { b',' });
        self.text.extend_from_slice(&reply);
    }

    /// Bytes in memory.
    pub(super) fn held_bytes(&self) -> usize {
        self.text.len()
    }

    /// The whole reply; `None` if it is empty.
    pub(super) fn finish(mut self) -> Option<Vec<u8>> {
        if self.text.is_empty() {
            return None;
        }
        self.text.push(b']');
        Some(self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json_rpc::reply::FailureKind;

    #[test]
    fn every_id_is_answered_within_the_limit() {
        let mut batch = BatchReply::new(2_000);
        let ids: Vec<String> = (0..15).map(|n| n.to_string()).collect();
        ids.iter().for_each(|id| batch.expect(id));
        for (n, id) in ids.iter().enumerate() {
            let outcome = match n % 3 {
                0 => Ok(format!("\"{}\"", "x".repeat(300)).into()),
                1 => Ok("1".into()),
                _ => Err(Failure::new(FailureKind::MethodNotFound, "d".repeat(200))),
            };
            batch.answer(id, outcome);
        }
        let text = String::from_utf8(batch.finish().unwrap()).unwrap();
        assert!(text.len() <= 2_000, "{}", text.len());
        for id in &ids {
            assert_eq!(text.matches(&format!("\"id\":{id}}}")).count(), 1, "{id}");
        }
        let (results, given_way) = (text.matches("xxx\",\"id\"").count(), text.matches("-32603").count());
        assert!(results > 0 && given_way > 0 && results + given_way == 5, "{text}");
    }
    fn answered(bytes_max: usize, ids: [&str; 2], first: usize) -> (String, usize) {
        let mut batch = BatchReply::new(bytes_max);
        ids.iter().for_each(|id| batch.expect(id));
        batch.answer(ids[0], Ok("1".repeat(first).into()));
        let held = batch.held_bytes();
        batch.answer(ids[1], Err(Failure::new(FailureKind::MethodNotFound, "")));
        (String::from_utf8(batch.finish().unwrap()).unwrap(), held)
    }

    #[test]
    fn what_leaves_room_for_the_others_to_the_byte_is_whole() {
        let id = format!("\"{}\"", "i".repeat(100));
        let bare = format!("{{\"jsonrpc\":\"2.0\",\"result\":,\"id\":{id}}}").len();
        let room = 1_000 - "[".len() - reserve(&id) - "]".len() - bare;
        let (text, held) = answered(1_000, [&id, &id], room);
        assert_eq!(text.matches("\"result\"").count(), 1);
        assert_eq!(held, "[".len() + bare + room);
        let (text, _) = answered(1_000, [&id, &id], room + 1);
        assert!(text.contains("-32603") && !text.contains("\"result\""), "{text}");
    }

    #[test]
    fn an_id_that_fills_a_message_is_given_up() {
        let error = reply::error(NULL, &Failure::new(FailureKind::ResultTooLarge, ""), false).len();
        let id = "1".repeat(200);
        let whole = error - NULL.len() + id.len();
        // The second error is two letters longer.
        for (bytes_max, ids) in [(whole + 2, 2), (whole + 1, 1), (whole, 1), (whole - 1, 0)] {
            assert_eq!(answered(bytes_max, [&id, &id], 1_000).0.matches(&id).count(), ids, "{bytes_max}");
        }
    }
}
