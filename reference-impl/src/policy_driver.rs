//! The policy_driver boundary: an external process chooses what an agent does next (document `policy` §1–§3a, §5, §8 and
//! circuit breaker; contract §2).
//!
//! Provider: a driver reads one payload and writes one block.
//! - [`payload`] reads the payload, [`Driver`] chooses by [`Rules`], [`Bridge`] asks a model over HTTP instead.
//!
//! Consumer: a selector starts the driver, survives its faults, and reports its choice.
//! - [`block`] is the strict grammar of a driver's output.
//! - [`command_line`] splits the driver's command; [`guard`] decides if it may be started; [`environment`] selects
//!   the variables that it sees; [`settings`] holds the variables that configure all of it.
//! - [`Breaker`] counts failures; [`merge`](fn@merge) applies a patch; [`Request`] and [`Selection`] are an input and
//!   an output line; [`Selector`] runs everything in order in time.
//!
//! # Readings
//!
//! - The selector's fallback picks the first entry of the menu, and answers NOOP if the menu is empty.
//! - An empty variable counts as unset. A time or a threshold of 0 is invalid; a cooldown of 0 means none.
//! - A command is checked against the allowlist before the breaker is asked.

pub mod block;
mod breaker;
mod bridge;
mod choices;
pub(crate) mod command_line;
mod driver;
pub(crate) mod environment;
mod failure;
pub mod guard;
mod lenient;
mod menu;
mod merge;
pub mod mutants;
mod parts;
pub(crate) mod payload;
mod request;
mod selection;
mod selector;
#[cfg(test)]
mod selector_tests;
pub mod settings;

pub use breaker::{Breaker, CountingBreaker};
pub use bridge::{Bridge, BridgeConfig};
pub use choices::{
    AbsentFields, Choices, DuplicateSids, InvalidVariables, NearlyJson, OtherModes, PipeHeldByChild, Refusal,
    SelectorChoices,
};
pub use driver::{Config, Decision, Driver, Rules, TagRules};
pub use failure::Failure;
pub use menu::{Menu, Sid, elements};
pub use merge::merge;
pub use parts::{Admission, Blocks, Fallback, FirstOfMenu, Merge, Parts, Requests, Split, StrictRequests};
pub use request::{Mode, Request};
pub use selection::{Selection, SelectionKind};
pub use selector::{Selector, SelectorConfig};
