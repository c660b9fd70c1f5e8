//! The driver as peer: each start is one decision.
//!
//! [`talk`] builds conversations: a payload in a file, and a driver for it. [`expect`] defines expectations,
//! [`oracle`] compares, [`model`] derives expectations from any payload. [`leaf`] puts values into payloads of
//! roles, and [`probe`] measures patches.

mod asked;
pub mod expect;
pub mod leaf;
pub mod model;
pub mod oracle;
mod payload;
pub mod probe;
pub mod talk;
pub mod trial;

/// Default time for one decision, ms (readings §2 Driver).
pub const TIMEOUT_MS: u64 = 2_500;
