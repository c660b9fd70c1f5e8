//! Mutants with a fault outside the decision: arguments, time, processes, files, memory.

use super::super::tree;
use super::Mutant;
use crate::mutant::text::has;
use crate::mutant::{ShellFault, carrier, shell};

/// Fault of a driver outside its decision.
#[derive(Debug, Clone, Copy)]
pub enum DriverFault {
    /// It reads another path than it was given.
    Path(fn(&str) -> String),
    /// It reads its standard input to the end first.
    ReadsStdin,
    /// It reads its payload from standard input.
    PayloadFromStdin,
    /// It sleeps for this time in ms if the function returns true for the payload.
    Sleeps(u64, fn(&[u8]) -> bool),
    /// It picks an entry even if it cannot read the payload.
    PicksUnread,
    /// It leaves a child in a new session behind.
    LeavesSession,
    /// It leaves a socket in the temporary directory behind.
    LeavesSocket,
    /// It leaves a file in the working directory behind, if that is the temporary directory.
    LeavesRecord,
    /// A file is left beside the payload.
    LeavesBeside,
    /// It prints the names of the menu through a shell.
    EchoesByShell,
    /// It reserves this many bytes of memory.
    Reserves(usize),
    /// It opens this many files at once.
    Opens(usize),
    /// It writes this many bytes to a temporary file, which it removes.
    Writes(usize),
}

fn is_deep(payload: &[u8]) -> bool {
    payload.len() > 2_000
        && payload.split(|byte| !matches!(byte, b'[' | b'{' | b'"' | b'a' | b':')).any(|run| run.len() > 500)
}

fn entries(payload: &[u8]) -> usize {
    tree::parse(payload)
        .as_ref()
        .and_then(|payload| payload.get("menu")?.as_array().map(<[_]>::len))
        .unwrap_or(0)
}

/// Mutants of this file in the order of the clauses.
pub(super) const MUTANTS: &[Mutant] = &[
    carrier(
        "driver-path-ends-at-blank",
        &["PD-START-01"],
        "The path of the payload ends at its first blank.",
        DriverFault::Path(|path| path.split(' ').next().unwrap_or_default().to_owned()),
    ),
    carrier(
        "driver-wants-json-suffix",
        &["PD-START-01"],
        "A payload whose name does not end in `.json` is not read.",
        DriverFault::Path(
            |path| if path.ends_with(".json") { path.to_owned() } else { format!("{path}.json") },
        ),
    ),
    carrier(
        "driver-path-in-ascii",
        &["PD-START-01"],
        "Letters beyond ASCII in the path become question marks.",
        DriverFault::Path(|path| {
            path.chars().map(|letter| if letter.is_ascii() { letter } else { '?' }).collect()
        }),
    ),
    carrier(
        "driver-payload-from-stdin",
        &["PD-START-01", "PD-START-02"],
        "The payload is read from standard input.",
        DriverFault::PayloadFromStdin,
    ),
    carrier(
        "driver-reads-stdin",
        &["PD-START-02"],
        "Standard input is read to its end before anything is decided.",
        DriverFault::ReadsStdin,
    ),
    carrier(
        "driver-slow",
        &["PD-START-04"],
        "A decision takes twelve seconds.",
        DriverFault::Sleeps(12_000, |payload| entries(payload) > 0),
    ),
    shell(
        "driver-leaves-child",
        &["PD-START-05"],
        "A child process outlives the driver.",
        ShellFault::LeavesChild,
    ),
    carrier(
        "driver-leaves-session",
        &["PD-START-05"],
        "A child in a session of its own outlives the driver.",
        DriverFault::LeavesSession,
    ),
    shell(
        "driver-leaves-file",
        &["PD-START-05"],
        "A temporary file outlives the driver.",
        ShellFault::LeavesFile,
    ),
    carrier(
        "driver-leaves-socket",
        &["PD-START-05"],
        "A socket outlives the driver.",
        DriverFault::LeavesSocket,
    ),
    carrier(
        "driver-leaves-record",
        &["PD-START-05"],
        "A file is left in the working directory, where that is a temporary one.",
        DriverFault::LeavesRecord,
    ),
    carrier(
        "driver-leaves-a-copy",
        &["PD-START-05"],
        "A copy of the payload is left beside it.",
        DriverFault::LeavesBeside,
    ),
    shell(
        "driver-ignores-sigterm",
        &["PD-START-06"],
        "SIGTERM does not end the driver.",
        ShellFault::IgnoresTerm,
    ),
    carrier(
        "driver-hangs-at-depth",
        &["PD-PAY-08", "PD-BAD-07"],
        "A deeply nested payload makes the driver hang.",
        DriverFault::Sleeps(600_000, is_deep),
    ),
    carrier(
        "driver-picks-unread",
        &["PD-BAD-01"],
        "A payload that cannot be read leads to a PICK.",
        DriverFault::PicksUnread,
    ),
    carrier(
        "driver-hangs-at-nothing",
        &["PD-BAD-02", "PD-BAD-07"],
        "An empty payload makes the driver hang.",
        DriverFault::Sleeps(600_000, |payload| payload.trim_ascii().is_empty()),
    ),
    carrier(
        "driver-hangs-at-garbage",
        &["PD-BAD-03", "PD-BAD-07"],
        "A payload that is no JSON makes the driver hang.",
        DriverFault::Sleeps(600_000, |payload| {
            !payload.trim_ascii().is_empty() && tree::parse(payload).is_none() && !is_deep(payload)
        }),
    ),
    carrier(
        "driver-hangs-at-empty-menu",
        &["PD-BAD-06", "PD-BAD-07"],
        "An empty menu makes the driver hang.",
        DriverFault::Sleeps(600_000, |payload| {
            tree::parse(payload).is_some_and(|_| entries(payload) == 0 && has(payload, "menu"))
        }),
    ),
    carrier(
        "driver-slow-at-many-entries",
        &["PD-LOAD-01"],
        "A menu of more than 5,000 entries takes fifteen seconds.",
        DriverFault::Sleeps(15_000, |payload| entries(payload) > 5_000),
    ),
    carrier(
        "driver-slow-at-long-payloads",
        &["PD-LOAD-02"],
        "A payload of more than 5 MB takes fifteen seconds.",
        DriverFault::Sleeps(15_000, |payload| payload.len() > 5_000_000),
    ),
    carrier(
        "driver-echoes-by-shell",
        &["PD-LOAD-05"],
        "Names of the menu are shown by a shell, which runs what is in them.",
        DriverFault::EchoesByShell,
    ),
    carrier(
        "driver-takes-a-gigabyte",
        &["PD-LOAD-06"],
        "A gigabyte of memory is reserved.",
        DriverFault::Reserves(1 << 30),
    ),
    carrier(
        "driver-opens-a-hundred-files",
        &["PD-LOAD-06"],
        "A hundred files are open at a time.",
        DriverFault::Opens(100),
    ),
    carrier(
        "driver-writes-twenty-megabytes",
        &["PD-LOAD-06"],
        "A temporary file of 20 MB is written.",
        DriverFault::Writes(20 << 20),
    ),
];
