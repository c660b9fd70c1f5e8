//! Assignment of the harness and the peer to processors in a benchmark.

use crate::data::blame::HarnessFault;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Processors of the harness and the peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// Last part of a row's id.
    pub name: &'static str,
    /// Processor of the harness; `None` if not pinned.
    pub harness: Option<usize>,
    /// Processor of the peer; `None` if not pinned.
    pub peer: Option<usize>,
}

/// Both processes on one processor.
pub(crate) const ONE_CORE: &str = "one-core";
/// Each process on a processor of its own.
pub(crate) const TWO_CORES: &str = "two-cores";
/// No process is pinned: the operating system refuses it.
pub(crate) const UNPINNED: &str = "unpinned";

/// Placements that this machine can measure, and notes on the missing ones.
pub fn placements() -> (Vec<Placement>, Vec<String>) {
    let Ok(allowed) = sched_getaffinity(None) else {
        return unpinned("the system does not report its processors");
    };
    if let Err(error) = sched_setaffinity(None, &allowed) {
        return unpinned(&format!("processes cannot be pinned here ({error})"));
    }
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
    of(&cpus)
}

fn unpinned(why: &str) -> (Vec<Placement>, Vec<String>) {
    let note =
        format!("{why}: the system chooses the processors of both processes, which changes the figures");
    (vec![Placement { name: UNPINNED, harness: None, peer: None }], vec![note])
}

fn of(cpus: &[usize]) -> (Vec<Placement>, Vec<String>) {
    // The last processors: the first one serves most interrupts.
    match cpus {
        [] => unpinned("no processor is available"),
        [only] => {
            let note = format!("only processor {only} may be used here: the rows for two cores are missing");
            (vec![Placement { name: ONE_CORE, harness: Some(*only), peer: Some(*only) }], vec![note])
        }
        [.., one, other] => {
            let both = Placement { name: ONE_CORE, harness: Some(*other), peer: Some(*other) };
            (vec![both, Placement { name: TWO_CORES, harness: Some(*one), peer: Some(*other) }], Vec::new())
        }
    }
}

/// Keeps the calling thread on one processor until dropped.
#[derive(Debug)]
pub struct Pinned {
    before: Option<CpuSet>,
}

impl Pinned {
    /// Moves the calling thread to `cpu`.
    ///
    /// # Errors
    /// Fails if the operating system refuses.
    pub fn to(cpu: Option<usize>) -> Result<Self, HarnessFault> {
        let Some(cpu) = cpu else { return Ok(Self { before: None }) };
        let refuse = |error| format!("cannot move to processor {cpu}: {error}");
        let before = sched_getaffinity(None).map_err(refuse)?;
        let mut set = CpuSet::new();
        set.set(cpu);
        sched_setaffinity(None, &set).map_err(refuse)?;
        Ok(Self { before: Some(before) })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // On failure there is nothing left to do.
            let _ = sched_setaffinity(None, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_processor_is_one_row_and_a_note() {
        let (placements, notes) = of(&[3]);
        assert_eq!(placements, [Placement { name: ONE_CORE, harness: Some(3), peer: Some(3) }]);
        assert!(notes[0].contains("two cores are missing"), "{notes:?}");
    }

    #[test]
    fn two_processors_are_one_for_each_in_the_second_row() {
        let (placements, notes) = of(&[0, 1, 2]);
        let cpus: Vec<_> = placements.iter().map(|placement| (placement.harness, placement.peer)).collect();
        assert_eq!(cpus, [(Some(2), Some(2)), (Some(1), Some(2))]);
        assert!(notes.is_empty());
    }

    #[test]
    fn a_pinned_thread_is_let_go() {
        let before = sched_getaffinity(None).unwrap();
        let first = (0..CpuSet::MAX_CPU).find(|cpu| before.is_set(*cpu));
        let pinned = Pinned::to(first).unwrap();
        assert_eq!(sched_getaffinity(None).unwrap().count(), 1);
        drop(pinned);
        assert_eq!(sched_getaffinity(None).unwrap(), before);
    }
}
