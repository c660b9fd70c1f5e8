//! The python_tool boundary: a local runner, a service and a runtime of Python tools ("Python tool protocol").
//!
//! [`Runner`] is the runner as a machine: it reads one request, has `shim.py` run the tool in a process of its own
//! ([`crate::io::python_tool`] starts it within the guarantees that are in force), and writes one reply. What the tool prints
//! never reaches standard output, because the outcome has a channel of its own. [`service::Service`] has each call over HTTP run by
//! such a runner, and [`runtime::Runtime`] makes the calls of a scenario.

pub mod choices;
pub mod mutants;
pub mod request;
mod runner;
pub mod runtime;
pub mod service;

pub use choices::Choices;
pub use request::Order;
pub use runner::{Runner, STATUS_TERMINATED};

use crate::limits::Limits;
use crate::machine::Machine;

/// A runner that has read nothing.
pub fn machine(config: Config) -> Box<dyn Machine + Send> {
    Box::new(Runner::new(config))
}

/// The guarantees that the runner enforces.
pub const GUARANTEES: [&str; 6] = [
    "no_filesystem_write",
    "no_filesystem_read",
    "no_network",
    "no_subprocess",
    "no_env_read",
    "no_env_write",
];

/// The program that runs a tool, in Python.
pub const SHIM: &str = include_str!("python_tool/shim.py");

/// How a runner behaves.
#[derive(Debug, Clone)]
pub struct Config {
    /// What the contract leaves open.
    pub choices: Choices,
    /// The caps in force.
    pub limits: Limits,
    /// Guarantees that it enforces.
    pub guarantees: Vec<&'static str>,
    /// Those of them that the guard sees to; the shim sees to all.
    pub guarded: Vec<&'static str>,
    /// What starts a tool: program and first arguments; the guarantees in force and the shim follow.
    pub guard: Vec<String>,
    /// The program that runs a tool.
    pub shim: String,
    /// A service takes handshakes.
    pub has_handshake: bool,
    /// What a service sends to the process group of a runner whose time is over: to let it end, and a little later.
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
