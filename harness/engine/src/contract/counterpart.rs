//! Counterparts: programs that the harness plays for a peer that asks.
//!
//! A counterpart does no I/O. The lab passes it the peer's frames with the time and carries out its actions. So one
//! script serves a process on the real clock and a machine on a virtual one.

use crate::data::payload::Payload;
use crate::data::plan::Chunking;

/// Action of a counterpart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CounterpartAction {
    /// Writes to the peer's standard input.
    Write {
        /// Bytes, without variables.
        payload: Payload,
        /// Division into writes.
        chunking: Chunking,
    },
    /// Closes the peer's standard input.
    HangUp,
    /// Closes the peer's standard input and stops reading.
    Die,
}

/// Maximum number of pending actions. A peer that asks without end is stopped by the budget for its output.
const DOINGS_MAX: usize = 10_000;

/// Pending actions of a counterpart. After `HangUp` or `Die` it does nothing more.
#[derive(Debug, Default)]
pub struct Agenda {
    /// Due time, serial number and action. Actions due at one time are done in the order of adding.
    doings: Vec<(u64, u64, CounterpartAction)>,
    added: u64,
    is_gone: bool,
}

impl Agenda {
    /// Adds an action due at `due_us`.
    pub fn add(&mut self, due_us: u64, doing: CounterpartAction) {
        if self.doings.len() < DOINGS_MAX && !self.is_gone {
            self.added += 1;
            self.doings.push((due_us, self.added, doing));
        }
    }

    /// Removes and returns the first action due at `now_us`.
    pub fn next(&mut self, now_us: u64) -> Option<CounterpartAction> {
        let first = self.doings.iter().enumerate().min_by_key(|(_, (due_us, added, _))| (*due_us, *added));
        let at = first.filter(|(_, (due_us, ..))| *due_us <= now_us)?.0;
        let doing = self.doings.swap_remove(at).2;
        if matches!(doing, CounterpartAction::HangUp | CounterpartAction::Die) {
            self.is_gone = true;
            self.doings.clear();
        }
        Some(doing)
    }

    /// Due time of the next action.
    pub fn due_us(&self) -> Option<u64> {
        self.doings.iter().map(|(due_us, ..)| *due_us).min()
    }
}

/// Other end of a peer's connection.
pub trait Counterpart {
    /// Takes one complete frame of the peer, without its line feed.
    fn take(&mut self, frame: &[u8], now_us: u64);

    /// Next due action; called until it returns `None`.
    fn next(&mut self, now_us: u64) -> Option<CounterpartAction>;

    /// Due time of the next action, if there is one.
    fn due_us(&self) -> Option<u64>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_is_done_in_order_and_nothing_once_it_has_gone() {
        let write =
            |text: &str| CounterpartAction::Write { payload: Payload::text(text), chunking: Chunking::Whole };
        let mut agenda = Agenda::default();
        agenda.add(9, write("late"));
        agenda.add(5, write("first"));
        agenda.add(5, write("second"));
        assert_eq!((agenda.due_us(), agenda.next(4)), (Some(5), None));
        assert_eq!(
            [agenda.next(7), agenda.next(7), agenda.next(7)],
            [Some(write("first")), Some(write("second")), None]
        );
        agenda.add(8, CounterpartAction::HangUp);
        assert_eq!((agenda.next(9), agenda.next(9)), (Some(CounterpartAction::HangUp), None));
        agenda.add(9, write("more"));
        assert_eq!(agenda.due_us(), None);
    }
}
