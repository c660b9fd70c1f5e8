//! Exit statuses, and early ends of a command.

use std::fmt;

use peerproof_engine::data::blame::{HarnessFault, Incomplete, Misconfigured, Unprepared};

/// Exit status of the process; never a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// No MUST is broken (with `--strict`: no SHOULD either).
    Good,
    /// A clause is broken.
    Broken,
    /// Wrong usage or configuration.
    Usage,
    /// An expectation is stale.
    StaleExpectation,
    /// Nothing was decided.
    Undecided,
    /// Results are missing.
    Incomplete,
    /// The only failures are flaky.
    Flaky,
    /// A performance budget is exceeded.
    OverBudget,
    /// Fuzzing found something new.
    FoundNew,
    /// A fault of the harness or its machine.
    HarnessFault,
    /// Stopped by the user.
    Interrupted,
}

impl Exit {
    /// Status with this number; unknown numbers count as faults of the harness.
    pub(crate) fn from_code(code: i32) -> Self {
        [
            Self::Good,
            Self::Broken,
            Self::Usage,
            Self::StaleExpectation,
            Self::Undecided,
            Self::Incomplete,
            Self::Flaky,
            Self::OverBudget,
            Self::FoundNew,
            Self::Interrupted,
        ]
        .into_iter()
        .find(|exit| exit.code() == code)
        .unwrap_or(Self::HarnessFault)
    }

    /// Number of the status.
    pub fn code(self) -> i32 {
        match self {
            Self::Good => 0,
            Self::Broken => 1,
            Self::Usage => 2,
            Self::StaleExpectation => 3,
            Self::Undecided => 4,
            Self::Incomplete => 5,
            Self::Flaky => 6,
            Self::OverBudget => 7,
            Self::FoundNew => 8,
            Self::HarnessFault => 70,
            Self::Interrupted => 130,
        }
    }
}

/// Reason why a command stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// Exit status.
    pub exit: Exit,
    /// Problem and remedy, in one sentence.
    pub message: String,
}

impl Stop {
    /// Mistake in the arguments or the configuration.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, message: message.into() }
    }

    /// Fault of the harness or its machine.
    pub fn harness(message: impl Into<String>) -> Self {
        Self { exit: Exit::HarnessFault, message: message.into() }
    }
}

impl From<Unprepared> for Stop {
    fn from(error: Unprepared) -> Self {
        match error {
            Unprepared::Peer(message) => Self::usage(message),
            Unprepared::Machine(message) => Self::harness(message),
        }
    }
}

impl From<Misconfigured> for Stop {
    fn from(error: Misconfigured) -> Self {
        Self::usage(error)
    }
}

impl From<Incomplete> for Stop {
    fn from(error: Incomplete) -> Self {
        Self { exit: Exit::Incomplete, message: error.into() }
    }
}

impl From<HarnessFault> for Stop {
    fn from(error: HarnessFault) -> Self {
        Self::harness(error)
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Stop {}

/// Result of a command.
pub type CommandResult = Result<Exit, Stop>;
