//! Revisions of the protocol.

/// A revision that opens with `initialize`, ordered from oldest to newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Revision {
    /// 2024-11-05
    V24,
    /// 2025-03-26
    V25a,
    /// 2025-06-18
    V25b,
    /// 2025-11-25
    V25c,
}

impl Revision {
    /// All revisions, oldest first.
    pub const ALL: [Self; 4] = [Self::V24, Self::V25a, Self::V25b, Self::V25c];

    /// Date that names the revision.
    pub fn name(self) -> &'static str {
        match self {
            Self::V24 => "2024-11-05",
            Self::V25a => "2025-03-26",
            Self::V25b => "2025-06-18",
            Self::V25c => "2025-11-25",
        }
    }

    /// Revision of this date.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.name() == name)
    }
}
