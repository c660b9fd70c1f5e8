//! Checks of request lines: framing, malformed lines, sizes and the end of input.

mod ends;
mod limits;
mod malformed;
mod open;
mod stream;

use super::super::super::request::{FALLBACK_ONLY, Request};
use super::super::super::selector::expect::{Allowed, Expect};
use super::super::super::selector::talk::{Talk, says};
use super::check;
use peerproof_engine::data::check::Check;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::Chunking;

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    [stream::checks(), malformed::checks(), limits::checks(), ends::checks(), open::checks()]
        .into_iter()
        .flatten()
        .collect()
}

/// A block that a driver may print for the plain request.
const BLOCK: &str = "<PICK><SID0042><END>";

/// Sends bytes as one line for which a driver picks, and expects its block.
fn send_taken(talk: &mut Talk, clause: &str, line: Payload, chunking: Chunking) {
    talk.driver(says(BLOCK));
    talk.send(line, chunking, 1, Expect::taken(clause, BLOCK));
}

/// Sends bytes as one line, and expects INVALID without a start.
fn send_invalid(talk: &mut Talk, clause: &str, line: Payload) {
    talk.send(line, Chunking::Whole, 1, Expect::invalid(clause).starts(clause, 0));
}

/// Expects any Selection of the fallback.
fn internal(clause: &str) -> Expect {
    Expect::new(clause, Allowed::Anything)
}

/// A plain request for the fallback.
fn internal_request() -> Request {
    Request::plain().mode(FALLBACK_ONLY)
}

/// Value of a JSON text; null if it is invalid.
fn json(text: &str) -> Json {
    text.parse().unwrap_or_default()
}
