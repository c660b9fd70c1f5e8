//! The consumer of the envelope boundary: a caller that has the envelopes of a scenario processed and writes down how each
//! call ended (contract §5 "Caller").
//!
//! [`Caller`] is pure: it says which calls are due, takes how each ended, and gives the line for its results. What it reads,
//! sends and tells goes through [`Parts`], which mutants replace.

mod caller;
pub mod mutants;
mod scenario;

pub use caller::{Caller, Due, End, Job, Outcome, Parts, Told};
pub use scenario::{CallSpec, Scenario, Target};

use crate::choices::{choices, two};
use crate::envelope;

two! {
    /// See [`Choices::missing_core_in_reply`].
    MissingCore { Default, Invalid },
    /// See [`Choices::order_of_calls`].
    Order { Together, OneByOne },
}

choices! {
    /// A reply lacks one of the eight required members, ids excepted.
    missing_core_in_reply: MissingCore = MissingCore::Invalid, {
        "default" => MissingCore::Default, "invalid" => MissingCore::Invalid
    };
    /// Calls that do not wait for others.
    order_of_calls: Order = Order::Together, { "together" => Order::Together, "one_by_one" => Order::OneByOne };
}

/// Bytes of a reply that are taken (contract §5: over 16 MB it is invalid).
pub const REPLY_BYTES_MAX: usize = 16 << 20;

/// Everything a caller is told at its start.
#[derive(Debug, Clone)]
pub struct Config {
    /// What it is to do.
    pub scenario: Scenario,
    /// Behaviours where the contract allows several.
    pub choices: Choices,
    /// How envelopes are read.
    pub engine: envelope::Config,
    /// Bytes of a reply that are taken.
    pub reply_bytes_max: usize,
}
