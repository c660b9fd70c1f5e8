//! Parallel runs: turns for checks that need a processor, room for the data of conversations, and a final phase in
//! which checks run alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::lock;
use super::memory_limit::Load;

/// Maximum number of checks that wait for times of the contract at once, over all runs.
pub(super) const WAITERS_MAX: usize = 32;

/// Resources shared by parallel runs.
#[derive(Debug)]
pub struct Company {
    /// Turns for checks that keep a processor busy.
    busy: Turns,
    /// Turns for checks that mostly wait.
    waiting: Turns,
    held: Load,
    /// Numbers of the runs that still have checks running in parallel.
    underway: Mutex<BTreeSet<usize>>,
    done: Condvar,
}

impl Company {
    /// Company of `runs` runs, in which at most `jobs` checks keep a processor busy.
    pub fn new(runs: usize, jobs: usize) -> Arc<Self> {
        Arc::new(Self {
            busy: Turns::new(jobs.max(1)),
            waiting: Turns::new(WAITERS_MAX),
            held: Load::default(),
            underway: Mutex::new((0..runs).collect()),
            done: Condvar::new(),
        })
    }

    /// Seat of one run. The lowest number that wants a turn gets it.
    pub fn seat(self: &Arc<Self>, place: usize) -> Seat {
        Seat { company: Arc::clone(self), place }
    }
}

/// Kind of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnKind {
    /// A first canary. It goes before the checks of all runs, so that the waiting checks of each run start early.
    Opening,
    /// A check that keeps a processor busy.
    Busy,
    /// A check that mostly waits.
    Waiting,
}

/// Seat of a run in a [`Company`].
#[derive(Debug, Clone)]
pub struct Seat {
    company: Arc<Company>,
    place: usize,
}

impl Seat {
    /// Waits for a turn.
    pub(super) fn turn(&self, kind: TurnKind) -> Turn<'_> {
        match kind {
            TurnKind::Opening => self.company.busy.take(0),
            TurnKind::Busy => self.company.busy.take(self.place),
            TurnKind::Waiting => self.company.waiting.take(self.place),
        }
    }

    /// Reports that no check of this run runs in parallel any more. Every run must call it, however it ends.
    pub fn is_done(&self) {
        lock(&self.company.underway).remove(&self.place);
        self.company.done.notify_all();
    }

    /// Waits until every run has called [`Seat::is_done`].
    pub(super) fn await_others(&self) {
        let mut underway = lock(&self.company.underway);
        while !underway.is_empty() {
            underway = self.company.done.wait(underway).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Bytes that the conversations of all runs hold.
    pub(super) fn held(&self) -> &Load {
        &self.company.held
    }
}

/// Limited number of turns, granted by seat.
#[derive(Debug)]
struct Turns {
    line: Mutex<TurnQueue>,
    moved: Condvar,
}

#[derive(Debug)]
struct TurnQueue {
    free: usize,
    /// Number of waiting checks by seat.
    waiting: BTreeMap<usize, usize>,
}

impl Turns {
    fn new(free: usize) -> Self {
        Self { line: Mutex::new(TurnQueue { free, waiting: BTreeMap::new() }), moved: Condvar::new() }
    }

    fn take(&self, place: usize) -> Turn<'_> {
        let mut line = lock(&self.line);
        *line.waiting.entry(place).or_default() += 1;
        while line.free == 0 || line.waiting.keys().next().is_some_and(|first| *first < place) {
            line = self.moved.wait(line).unwrap_or_else(PoisonError::into_inner);
        }
        line.free -= 1;
        if let Some(count) = line.waiting.get_mut(&place) {
            *count -= 1;
            if *count == 0 {
                line.waiting.remove(&place);
            }
        }
        drop(line);
        // The next seat may get a turn, too.
        self.moved.notify_all();
        Turn { turns: self }
    }
}

/// Turn, until dropped.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    turns: &'a Turns,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        lock(&self.turns.line).free += 1;
        self.turns.moved.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn first_canaries_and_then_the_lowest_place_come_first() {
        let company = Company::new(0, 1);
        let (tell, told) = channel();
        let first = company.seat(9);
        let turn = first.turn(TurnKind::Busy);
        std::thread::scope(|scope| {
            for (place, kind) in [(2, TurnKind::Busy), (3, TurnKind::Opening), (1, TurnKind::Busy)] {
                let (seat, tell) = (company.seat(place), tell.clone());
                scope.spawn(move || {
                    let _turn = seat.turn(kind);
                    tell.send(place)
                });
            }
            // Checks that wait for times of the contract need no processor.
            drop(first.turn(TurnKind::Waiting));
            while lock(&company.busy.line).waiting.len() < 3 {
                std::thread::yield_now();
            }
            drop(turn);
        });
        assert_eq!(told.try_iter().collect::<Vec<_>>(), [3, 1, 2]);
    }

    #[test]
    fn what_runs_alone_waits_for_all_runs() {
        let company = Company::new(2, 1);
        let (tell, told) = channel();
        std::thread::scope(|scope| {
            let first = company.seat(0);
            scope.spawn(move || {
                first.is_done();
                first.await_others();
                tell.send("alone")
            });
            while lock(&company.underway).len() > 1 {
                std::thread::yield_now();
            }
            assert!(told.try_recv().is_err());
            company.seat(1).is_done();
        });
        assert_eq!(told.recv(), Ok("alone"));
    }
}
