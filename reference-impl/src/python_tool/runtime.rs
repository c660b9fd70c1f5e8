//! The consumer of the python_tool boundary: a runtime that makes the calls of a scenario and writes down how each ended
//! (contract §6 "Runtime").
//!
//! [`Runtime`] is pure: it says what is due, takes how each piece of work ended, and gives the lines for its results. What it
//! sends, reads and tells goes through [`Parts`], which mutants replace.

mod judge;
mod machine;
pub mod mutants;
mod scenario;

pub use judge::{End, Outcome};
pub use machine::{Due, Job, Parts, Runtime, Told};
pub use scenario::{Call, Ready, Scenario, Target};

use crate::choices::{choices, two};
use crate::limits::Limits;

two! {
    /// See [`Choices::order_of_calls`].
    Order { Together, OneByOne },
    /// See [`Choices::local_guarantees_unsandboxed`].
    Unsandboxed { Send, Blocked },
    /// See [`Choices::container_guarantees`].
    Contained { Run, Blocked },
}

choices! {
    /// Calls that do not wait for others.
    order_of_calls: Order = Order::Together, { "together" => Order::Together, "one_by_one" => Order::OneByOne };
    /// A local call with guarantees and without `sandbox`.
    local_guarantees_unsandboxed: Unsandboxed = Unsandboxed::Send, {
        "send" => Unsandboxed::Send, "blocked" => Unsandboxed::Blocked
    };
    /// Whole seconds are counted.
    round_timeout_up: bool = false, { "true" => true, "false" => false };
    /// A call of a container with guarantees.
    container_guarantees: Contained = Contained::Run, { "run" => Contained::Run, "blocked" => Contained::Blocked };
}

/// Bytes of a reply that are taken (contract §6: over 10 MB it is invalid).
pub const REPLY_BYTES_MAX: usize = 10 << 20;

/// Where a service takes handshakes.
pub const HANDSHAKE_PATH: &str = "/capabilities/handshake";

/// Everything a runtime is told at its start.
#[derive(Debug, Clone)]
pub struct Config {
    /// What it is to do.
    pub scenario: Scenario,
    /// Behaviours where the contract allows several.
    pub choices: Choices,
    /// The caps in force.
    pub limits: Limits,
    /// Bytes of a reply that are taken.
    pub reply_bytes_max: usize,
    /// Calls with `unsafe_override` go on without assurance.
    pub has_override: bool,
    /// Containers are run.
    pub has_containers: bool,
    /// The proxy that the environment names, which is not for loopback.
    pub proxy: Option<String>,
}
