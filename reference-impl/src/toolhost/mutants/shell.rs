//! Mutants of the process around the machine. They live here and in `io/faults.rs`, which only mutants use.

use super::{Mutant, Seam};

/// What the process around a correct machine does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShellFault {
    /// SIGTERM is ignored.
    IgnoresTerm,
    /// A child process is left behind.
    LeavesChild,
    /// A file is left in the temporary directory.
    LeavesFile,
}

const fn shell(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    what: ShellFault,
) -> Mutant {
    Mutant::new(id, clauses, fault, Seam::Shell(what))
}

/// The mutants of this seam.
pub const MUTANTS: &[Mutant] = &[
    shell("ignores-sigterm", &["TH-PROC-04"], "SIGTERM does not end the process.", ShellFault::IgnoresTerm),
    shell("leaves-a-child", &["TH-PROC-05"], "A child process outlives the peer.", ShellFault::LeavesChild),
    shell("leaves-a-file", &["TH-PROC-06"], "A temporary file outlives the peer.", ShellFault::LeavesFile),
];
