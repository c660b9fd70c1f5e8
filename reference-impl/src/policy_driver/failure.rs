//! How a driver can fail its selector (contract §2 "Failures").

use std::fmt;

use super::Sid;
use super::block::BlockError;
use crate::machine::Millis;

/// Why nothing of a driver is taken; each counts as one failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// It is allowed and is no program that could be started.
    NotStartable(String),
    /// Its start failed.
    Launch(String),
    /// It did not end in time.
    Timeout {
        /// The time that it had.
        time_ms: Millis,
    },
    /// It ended with another status than 0.
    Status(i32),
    /// A signal ended it.
    Signal(i32),
    /// It ended, and its standard output stayed open.
    PipeHeld,
    /// It wrote too much.
    TooLong {
        /// Bytes that it may write.
        bytes_max: usize,
    },
    /// It wrote nothing, or no block.
    NoBlock(BlockError),
    /// It picked what the menu does not have.
    UnknownSid(Sid),
    /// It sent a patch where there are none.
    Patch,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStartable(why) => f.write_str(why),
            Self::Launch(why) => write!(f, "the policy could not be started: {why}"),
            Self::Timeout { time_ms } => write!(f, "the policy did not end within {time_ms} ms"),
            Self::Status(status) => write!(f, "the policy ended with status {status}"),
            Self::Signal(signal) => write!(f, "the policy was ended by signal {signal}"),
            Self::PipeHeld => f.write_str("the policy ended and left its output open"),
            Self::TooLong { bytes_max } => write!(f, "the policy wrote more than {bytes_max} bytes"),
            Self::NoBlock(error) => write!(f, "the policy wrote no block: {error}"),
            Self::UnknownSid(sid) => write!(f, "the policy picked {sid}, which is not in the menu"),
            Self::Patch => f.write_str("the policy sent a patch, and there are none here"),
        }
    }
}

impl std::error::Error for Failure {}
