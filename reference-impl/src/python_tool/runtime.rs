//! The consumer of the python_tool boundary: a runtime that makes the calls of a scenario and records the outcome of
//! each (contract §6 "Runtime").
//!
//! [`Runtime`] is pure: it names the work that is due, takes the end of each job, and returns the lines for its
//! results. [`Parts`] creates requests, judges replies and writes lines; mutants replace it.

mod judge;
mod machine;
pub mod mutants;
mod scenario;

pub use judge::{End, Outcome};
pub use machine::{FinishedCall, Job, Parts, Runtime, RuntimeStep};
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
    /// Order of calls that do not wait for others.
    order_of_calls: Order = Order::Together, { "together" => Order::Together, "one_by_one" => Order::OneByOne };
    /// Treatment of a local call with guarantees and without `sandbox`.
    local_guarantees_unsandboxed: Unsandboxed = Unsandboxed::Send, {
        "send" => Unsandboxed::Send, "blocked" => Unsandboxed::Blocked
    };
    /// True to round time limits up to whole seconds.
    round_timeout_up: bool = false, { "true" => true, "false" => false };
    /// Treatment of a container call with guarantees.
    container_guarantees: Contained = Contained::Run, { "run" => Contained::Run, "blocked" => Contained::Blocked };
}

/// Largest accepted reply in bytes (contract §6: over 10 MB it is invalid).
pub const REPLY_BYTES_MAX: usize = 10 << 20;

/// Path of a service's handshakes.
pub(crate) const HANDSHAKE_PATH: &str = "/capabilities/handshake";

/// Configuration of a runtime.
#[derive(Debug, Clone)]
pub struct Config {
    /// Calls to make.
    pub scenario: Scenario,
    /// Chosen behaviour for each open clause.
    pub choices: Choices,
    /// Limits in force.
    pub limits: Limits,
    /// Largest accepted reply in bytes.
    pub reply_bytes_max: usize,
    /// True to continue calls with `unsafe_override` without assurance.
    pub has_override: bool,
    /// True to run containers.
    pub has_containers: bool,
    /// Proxy that the environment names. It must not be used for loopback addresses.
    pub proxy: Option<String>,
}
