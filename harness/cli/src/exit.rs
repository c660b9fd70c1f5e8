//! Exit statuses, and how a command ends early.

use std::fmt;

use peerproof_engine::blame::{HarnessFault, Incomplete, Misconfigured, Unprepared};

/// Status of the process; never a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// No MUST is broken (with `--strict`: no SHOULD either).
    Good,
    /// A clause is broken.
    Broken,
    /// Usage or configuration.
    Usage,
    /// An expectation does not hold any more.
    StaleExpectation,
    /// Nothing was decided.
    Undecided,
    /// Results are missing.
    Incomplete,
    /// Nothing failed but checks that fail in some runs only.
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
    /// The one with this number; others are faults of the harness.
    pub fn from_code(code: i32) -> Self {
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

    /// The number.
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

/// Why a command could not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// Status to exit with.
    pub exit: Exit,
    /// One sentence that says what is wrong and what to do.
    pub message: String,
}

impl Stop {
    /// A mistake in the arguments or the configuration.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, message: message.into() }
    }

    /// A fault of the harness or its machine.
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

/// How a command ends.
pub type Done = Result<Exit, Stop>;
