//! Leases: single-use permissions for tools of tier 1 and above (IPC §3b, §4c; contract §1).

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::machine::Millis;

/// Terms of a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Tool that it permits.
    pub aid: Arc<str>,
    /// Highest permitted tier.
    pub tier: u8,
    /// Life in ms.
    pub ttl_ms: u64,
}

/// Reason why a token is refused; the words become the `reason` of the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejection {
    /// Never issued, or already spent.
    Unknown,
    /// It has expired.
    Expired,
    /// Issued for another tool.
    OtherTool,
    /// Issued for a lower tier.
    LowerTier,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "unknown or already used",
            Self::Expired => "expired",
            Self::OtherTool => "issued for another tool",
            Self::LowerTier => "issued for a lower tier",
        })
    }
}

/// Store of a session's leases.
pub trait LeaseTable: Send {
    /// Issues a lease and returns its token, or `None` if there is no room for another live one.
    fn issue(&mut self, grant: Grant, now: Millis) -> Option<String>;
    /// Checks that `token` permits the tool `aid` of `tier`. Changes nothing.
    ///
    /// # Errors
    /// The reason for the refusal.
    fn check(&self, token: &[u8], aid: &str, tier: u8, now: Millis) -> Result<(), Rejection>;
    /// Invalidates `token`.
    fn spend(&mut self, token: &[u8]);
}

/// The correct [`LeaseTable`]. Tokens are unguessable if `seed` is random.
#[derive(Debug)]
pub struct MemoryLeases {
    entries_max: usize,
    seed: [u8; 32],
    issued: u64,
    leases: HashMap<Box<[u8]>, (Millis, Grant)>,
}

impl MemoryLeases {
    /// Creates a table of up to `entries_max` leases with tokens derived from `seed`.
    pub fn new(entries_max: usize, seed: [u8; 32]) -> Self {
        Self { entries_max, seed, issued: 0, leases: HashMap::new() }
    }

    /// Drops expired leases. They are kept until room is needed, so that they can be distinguished from unknown ones.
    fn make_room(&mut self, now: Millis) {
        self.leases.retain(|_, (end, _)| *end > now);
    }

    fn token(&mut self) -> String {
        self.issued += 1;
        let digest = Sha256::new().chain_update(self.seed).chain_update(self.issued.to_le_bytes()).finalize();
        digest.iter().take(16).fold("tok_".to_owned(), |token, byte| format!("{token}{byte:02x}"))
    }
}

impl LeaseTable for MemoryLeases {
    fn issue(&mut self, grant: Grant, now: Millis) -> Option<String> {
        if self.leases.len() >= self.entries_max {
            self.make_room(now);
        }
        if self.leases.len() >= self.entries_max {
            return None;
        }
        let token = self.token();
        let end = now.saturating_add(grant.ttl_ms);
        self.leases.insert(token.as_bytes().into(), (end, grant));
        Some(token)
    }

    fn check(&self, token: &[u8], aid: &str, tier: u8, now: Millis) -> Result<(), Rejection> {
        let (end, grant) = self.leases.get(token).ok_or(Rejection::Unknown)?;
        if *end <= now {
            Err(Rejection::Expired)
        } else if *grant.aid != *aid {
            Err(Rejection::OtherTool)
        } else if grant.tier < tier {
            Err(Rejection::LowerTier)
        } else {
            Ok(())
        }
    }

    fn spend(&mut self, token: &[u8]) {
        self.leases.remove(token);
    }
}
