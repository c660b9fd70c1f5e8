//! The driver under test: one start is one decision.
//!
//! [`talk`] makes conversations: a payload in a file, a driver for it. [`expect`] says what may be printed, [`oracle`]
//! compares; [`model`] says it of any payload. [`leaf`] puts values into payloads of roles, [`probe`] measures patches.

mod asked;
pub mod expect;
pub mod leaf;
pub mod model;
pub mod oracle;
pub mod probe;
pub mod talk;
pub mod trial;

/// Time for one decision where the configuration says nothing else, milliseconds (readings §2 Driver).
pub const TIMEOUT_MS: u64 = 2_500;
