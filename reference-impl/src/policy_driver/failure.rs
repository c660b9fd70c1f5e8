//! How a driver can fail its selector (contract §2 "Failures").

use super::Sid;
use super::block::BlockError;
use crate::machine::Millis;

/// Why nothing of a driver is taken; each counts as one failure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// It is allowed and is no program that could be started.
    #[error("{0}")]
    NotStartable(String),
    /// Its start failed.
    #[error("the policy could not be started: {0}")]
    Launch(String),
    /// It did not end in time.
    #[error("the policy did not end within {time_ms} ms")]
    Timeout {
        /// The time that it had.
        time_ms: Millis,
    },
    /// It ended with another status than 0.
    #[error("the policy ended with status {0}")]
    Status(i32),
    /// A signal ended it.
    #[error("the policy was ended by signal {0}")]
    Signal(i32),
    /// It ended, and its standard output stayed open.
    #[error("the policy ended and left its output open")]
    PipeHeld,
    /// It wrote too much.
    #[error("the policy wrote more than {bytes_max} bytes")]
    TooLong {
        /// Bytes that it may write.
        bytes_max: usize,
    },
    /// It wrote nothing, or no block.
    #[error("the policy wrote no block: {0}")]
    NoBlock(BlockError),
    /// It picked what the menu does not have.
    #[error("the policy picked {0}, which is not in the menu")]
    UnknownSid(Sid),
    /// It sent a patch where there are none.
    #[error("the policy sent a patch, and there are none here")]
    Patch,
}
