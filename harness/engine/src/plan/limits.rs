//! Resource limits of a peer, as data.

use serde::{Deserialize, Serialize};

/// What the operating system caps for a peer. Each is both the soft and the hard limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Address space, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address_space_bytes: Option<u64>,
    /// Processor time, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<u64>,
    /// Open files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
    /// Largest file it may write, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_bytes: Option<u64>,
    /// Processes and threads, on top of those that its user has already: the system counts all of a user together. It
    /// caps nothing for root, and `sh` cannot set it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub further_processes: Option<u64>,
}

impl Limits {
    /// Whether nothing is capped.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
