//! The python_tool boundary: a local runner, a service and a runtime of Python tools ("Python tool protocol").
//!
//! [`Runner`] is the runner as a machine: it reads one request, lets `shim.py` run the tool in a separate process
//! ([`crate::io::python_tool`] starts it under the guarantees in force), and writes one reply. The tool's own output
//! never reaches standard output, because the result has a separate channel. [`service::Service`] passes each HTTP
//! call to such a runner, and [`runtime::Runtime`] makes the calls of a scenario.

pub(crate) mod choices;
pub mod mutants;
pub(crate) mod request;
mod runner;
pub mod runtime;
pub mod service;

pub use choices::Choices;
pub use request::Order;
pub use runner::{Runner, STATUS_TERMINATED};

use crate::limits::Limits;
use crate::machine::Machine;

/// Creates a runner that has read nothing.
pub fn machine(config: Config) -> Box<dyn Machine + Send> {
    Box::new(Runner::new(config))
}

/// Guarantees that the runner enforces.
pub(crate) const GUARANTEES: [&str; 6] = [
    "no_filesystem_write",
    "no_filesystem_read",
    "no_network",
    "no_subprocess",
    "no_env_read",
    "no_env_write",
];

/// Python program that runs a tool.
pub const SHIM: &str = include_str!("python_tool/shim.py");

/// Configuration of a runner or a service.
#[derive(Debug, Clone)]
pub struct Config {
    /// Chosen behaviour for each open clause.
    pub choices: Choices,
    /// Limits in force.
    pub limits: Limits,
    /// Guarantees that it enforces.
    pub guarantees: Vec<&'static str>,
    /// Guarantees that the guard enforces; the shim enforces all.
    pub guarded: Vec<&'static str>,
    /// Program and first arguments of the guard. The guarantees in force and the shim follow.
    pub guard: Vec<String>,
    /// Python program that runs a tool.
    pub shim: String,
    /// True if the service answers handshakes.
    pub has_handshake: bool,
    /// Signals to the process group of a late runner: the first one at the timeout, the second a little later.
    pub at_timeout: [service::Sent; 2],
}

impl Default for Config {
    fn default() -> Self {
        Self {
            choices: Choices::default(),
            limits: Limits::default(),
            guarantees: GUARANTEES.to_vec(),
            guarded: GUARANTEES.to_vec(),
            guard: Vec::new(),
            shim: SHIM.to_owned(),
            has_handshake: true,
            at_timeout: [service::Sent::Terminate, service::Sent::Kill],
        }
    }
}
