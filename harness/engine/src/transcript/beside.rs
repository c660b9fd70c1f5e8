//! What is seen of files beside a conversation.

use serde::{Deserialize, Serialize};

use super::Bytes;

/// What lay at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Where, relative to what was looked at; empty for that itself.
    pub path: Bytes,
    /// What it is. Links are not followed.
    pub kind: FoundKind,
    /// Number that the file system knows it by.
    pub inode: u64,
    /// Its permission bits.
    pub mode: u32,
    /// Length of a file, or of the target of a link.
    pub total_bytes: u64,
    /// The first bytes of a file, 16 MiB at most, or the target of a link. `None` for others, for what cannot be read, and
    /// once 64 MiB were found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Bytes>,
}

/// What something in a folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FoundKind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A pipe, a socket, a device.
    Other,
}

/// How something in a watched folder changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FolderChange {
    /// It was made there, or linked.
    Appeared,
    /// It was written to, or cut.
    Written,
    /// It was removed.
    Vanished,
    /// It was moved to there.
    MovedIn,
    /// It was moved away from there.
    MovedOut,
}
