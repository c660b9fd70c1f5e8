//! Counterparts: what the harness plays for a peer that asks.
//!
//! A counterpart does no I/O: the lab hands it the frames that the peer wrote, with the time, and does what it says. So
//! the same script serves a process on the real clock and a machine on a virtual one.

use crate::payload::Payload;
use crate::plan::Chunking;

/// What a counterpart does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Doing {
    /// Writes to the peer's standard input.
    Write {
        /// The bytes; every variable has been replaced.
        payload: Payload,
        /// How to cut them.
        chunking: Chunking,
    },
    /// Closes the peer's standard input.
    HangUp,
    /// Closes it and reads no more.
    Die,
}

/// The other end of a peer's connection.
pub trait Counterpart {
    /// Takes one complete frame that the peer wrote, without its line feed.
    fn take(&mut self, frame: &[u8], now_us: u64);

    /// The next thing to do that is due; asked again until there is none.
    fn next(&mut self, now_us: u64) -> Option<Doing>;

    /// When the next thing is due, if any is.
    fn due_us(&self) -> Option<u64>;
}
