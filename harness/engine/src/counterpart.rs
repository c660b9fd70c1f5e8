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

/// More is not kept to be done: a peer that asks without end is ended by the budget for its output.
const DOINGS_MAX: usize = 10_000;

/// What a counterpart has still to do. Once it has gone away it does nothing more.
#[derive(Debug, Default)]
pub struct Agenda {
    /// When each is due; what is due at one time is done in the order in which it was added.
    doings: Vec<(u64, u64, Doing)>,
    added: u64,
    is_gone: bool,
}

impl Agenda {
    /// Adds what is to be done at `due_us`.
    pub fn add(&mut self, due_us: u64, doing: Doing) {
        if self.doings.len() < DOINGS_MAX && !self.is_gone {
            self.added += 1;
            self.doings.push((due_us, self.added, doing));
        }
    }

    /// The next thing that is due.
    pub fn next(&mut self, now_us: u64) -> Option<Doing> {
        let first = self.doings.iter().enumerate().min_by_key(|(_, (due_us, added, _))| (*due_us, *added));
        let at = first.filter(|(_, (due_us, ..))| *due_us <= now_us)?.0;
        let doing = self.doings.swap_remove(at).2;
        if matches!(doing, Doing::HangUp | Doing::Die) {
            self.is_gone = true;
            self.doings.clear();
        }
        Some(doing)
    }

    /// When the next thing is due.
    pub fn due_us(&self) -> Option<u64> {
        self.doings.iter().map(|(due_us, ..)| *due_us).min()
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_is_done_in_order_and_nothing_once_it_has_gone() {
        let write = |text: &str| Doing::Write { payload: Payload::text(text), chunking: Chunking::Whole };
        let mut agenda = Agenda::default();
        agenda.add(9, write("late"));
        agenda.add(5, write("first"));
        agenda.add(5, write("second"));
        assert_eq!((agenda.due_us(), agenda.next(4)), (Some(5), None));
        assert_eq!(
            [agenda.next(7), agenda.next(7), agenda.next(7)],
            [Some(write("first")), Some(write("second")), None]
        );
        agenda.add(8, Doing::HangUp);
        assert_eq!((agenda.next(9), agenda.next(9)), (Some(Doing::HangUp), None));
        agenda.add(9, write("more"));
        assert_eq!(agenda.due_us(), None);
    }
}
