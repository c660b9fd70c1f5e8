//! Resource limits of a peer, as data.

use serde::{Deserialize, Serialize};

/// Limits that the operating system sets for a peer, each both soft and hard.
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
    /// Maximum size of a written file, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_bytes: Option<u64>,
    /// Processes and threads beyond those that its user already has, because the system counts all of a user together.
    /// Has no effect for root, and `sh` cannot set it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub further_processes: Option<u64>,
}

impl Limits {
    /// True if no limit is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
