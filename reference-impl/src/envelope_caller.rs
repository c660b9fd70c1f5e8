//! The consumer of the envelope boundary: a caller that sends the envelopes of a scenario to engines and records the
//! outcome of each call (contract §5 "Caller").
//!
//! [`Caller`] is pure: it names the calls that are due, takes the end of each, and returns the line for its results.
//! [`Parts`] reads, sends and reports; mutants replace it.

mod caller;
pub mod mutants;
mod scenario;

pub use caller::{Caller, CallerStep, End, FinishedCall, Job, Outcome, Parts};
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
    /// Treatment of a reply without one of the eight required members; missing ids are always invalid.
    missing_core_in_reply: MissingCore = MissingCore::Invalid, {
        "default" => MissingCore::Default, "invalid" => MissingCore::Invalid
    };
    /// Order of calls that do not wait for others.
    order_of_calls: Order = Order::Together, { "together" => Order::Together, "one_by_one" => Order::OneByOne };
}

/// Largest accepted reply in bytes (contract §5: over 16 MB it is invalid).
pub const REPLY_BYTES_MAX: usize = 16 << 20;

/// Configuration of a caller.
#[derive(Debug, Clone)]
pub struct Config {
    /// Calls to make.
    pub scenario: Scenario,
    /// Chosen behaviour for each open clause.
    pub choices: Choices,
    /// Configuration for reading envelopes.
    pub engine: envelope::Config,
    /// Largest accepted reply in bytes.
    pub reply_bytes_max: usize,
}
