//! Failures of a driver, as its selector sees them (contract §2 "Failures").

use super::Sid;
use super::block::BlockError;
use crate::machine::Millis;

/// Failure of a driver. Each counts once for the breaker.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// It is allowed, but is not an executable program.
    #[error("{0}")]
    NotStartable(String),
    /// Its start failed.
    #[error("the policy could not be started: {0}")]
    Launch(String),
    /// It did not exit in time.
    #[error("the policy did not end within {time_ms} ms")]
    Timeout {
        /// Its time limit.
        time_ms: Millis,
    },
    /// It exited with a status other than 0.
    #[error("the policy ended with status {0}")]
    Status(i32),
    /// A signal ended it.
    #[error("the policy was ended by signal {0}")]
    Signal(i32),
    /// It exited, and its standard output stayed open.
    #[error("the policy ended and left its output open")]
    PipeHeld,
    /// Its output was too long.
    #[error("the policy wrote more than {bytes_max} bytes")]
    TooLong {
        /// Largest output in bytes.
        bytes_max: usize,
    },
    /// Its output is not a block.
    #[error("the policy wrote no block: {0}")]
    NoBlock(BlockError),
    /// It picked a SID that the menu does not have.
    #[error("the policy picked {0}, which is not in the menu")]
    UnknownSid(Sid),
    /// It sent a patch to a selector that accepts none.
    #[error("the policy sent a patch, and there are none here")]
    Patch,
}
