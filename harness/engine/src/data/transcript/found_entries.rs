//! Observations of files outside a conversation.

use serde::{Deserialize, Serialize};

use super::Bytes;

/// Entry found at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundEntry {
    /// Path relative to that of the look; empty for that itself.
    pub path: Bytes,
    /// Kind of file. Links are not followed.
    pub kind: FoundKind,
    /// Inode number.
    pub inode: u64,
    /// Permission bits.
    pub mode: u32,
    /// Length of a file or of a link's target, bytes.
    pub total_bytes: u64,
    /// Bytes of a file, cut if it is very long, or the target of a link. `None` for other kinds, for unreadable files,
    /// and beyond the limit of one look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Bytes>,
}

/// Kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FoundKind {
    /// Regular file.
    File,
    /// Folder.
    Folder,
    /// A symbolic link.
    Link,
    /// Pipe, socket or device.
    Other,
}

/// Change of a path in a watched folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FolderChange {
    /// Created or linked there.
    Appeared,
    /// Written to or truncated.
    Written,
    /// Removed.
    Vanished,
    /// Moved there.
    MovedIn,
    /// Moved away.
    MovedOut,
}
