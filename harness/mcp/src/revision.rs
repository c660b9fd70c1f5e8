//! Revisions of the protocol that open with `initialize`.

use peerproof_engine::data::clause::Clause;

/// A dated revision of the protocol, the oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Revision {
    /// 2024-11-05
    R2024Nov,
    /// 2025-03-26
    R2025Mar,
    /// 2025-06-18
    R2025Jun,
    /// 2025-11-25
    R2025Nov,
}

/// Revision that checks ask for by default.
pub(crate) const NEWEST: Revision = Revision::R2025Nov;

impl Revision {
    /// All revisions, the oldest first.
    pub const ALL: [Self; 4] = [Self::R2024Nov, Self::R2025Mar, Self::R2025Jun, Self::R2025Nov];

    /// Date under which it is negotiated.
    pub fn date(self) -> &'static str {
        match self {
            Self::R2024Nov => "2024-11-05",
            Self::R2025Mar => "2025-03-26",
            Self::R2025Jun => "2025-06-18",
            Self::R2025Nov => "2025-11-25",
        }
    }

    /// Revision with this date.
    pub fn of(date: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.date() == date)
    }

    /// True if the revision has a clause.
    pub fn has(self, clause: &Clause) -> bool {
        let (since, until) = (clause.since.as_deref(), clause.until.as_deref());
        since.is_none_or(|since| since <= self.date()) && until.is_none_or(|until| self.date() <= until)
    }
}
