//! The driver as peer: each start is one decision.
//!
//! [`talk`] builds conversations: a payload in a file, and a driver for it. [`expect`] defines expectations,
//! [`oracle`] compares, [`model`] derives expectations from any payload. [`leaf`] puts values into payloads of
//! roles, and [`probe`] measures patches.

mod asked;
pub(crate) mod expect;
pub(crate) mod leaf;
pub(crate) mod model;
pub(crate) mod oracle;
mod payload;
pub(crate) mod probe;
pub(crate) mod talk;
pub(crate) mod trial;

/// Default time for one decision, ms (readings §2 Driver).
pub(crate) const TIMEOUT_MS: u64 = 2_500;
