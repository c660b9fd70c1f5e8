//! The provider of the mcp boundary: an MCP server with tools, resources and prompts (contract §9, parts b and c).
//!
//! [`machine`] returns the pure peer for lines. Its parts are replaceable: the catalog, the methods and the tools
//! ([`Components`]), the choices and limits ([`Config`]).
//!
//! A message is checked in this order: size → UTF-8 → JSON → batch → shape → method → lifecycle → params. Nothing is
//! executed before all checks have passed.

mod catalog;
mod choices;
mod features;
mod jobs;
mod lifecycle;
mod lists;
mod message;
mod method;
pub mod mutants;
mod resources;
mod revision;
mod schema;
mod server;
mod tasks;
mod tools;

pub use catalog::Catalog;
pub use choices::{
    BadCursor, Batch, BlankLine, Cancelled, Choices, EarlyRequest, FractionalId, InvalidArguments,
    InvalidUtf8, PendingAtEof, RequiredTask, SecondInitialize, StrayResponse, UnknownResource,
    UnknownVersion,
};
pub use message::{Failure, Message, Outcome};
pub use method::{Answer, Call, Method, Methods, Phase, Step, World};
pub use revision::Revision;
pub use server::Server;
pub use tasks::Task;

use crate::json_rpc::Session;
use crate::limits::Limits;
use crate::machine::Machine;

/// Start-up settings of a server.
#[derive(Debug, Clone)]
pub struct Config {
    /// Chosen behaviour for each open clause.
    pub choices: Choices,
    /// Limits in force.
    pub limits: Limits,
    /// Newest revision that it accepts.
    pub newest: Revision,
    /// Names of capabilities that it lacks.
    pub without: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            choices: Choices::default(),
            limits: Limits::default(),
            newest: Revision::V25c,
            without: Vec::new(),
        }
    }
}

/// Optional capabilities of a server.
pub const CAPABILITIES: [&str; 6] = ["completions", "logging", "prompts", "resources", "tasks", "tools"];

/// Replaceable parts of a server.
pub struct Components {
    /// Descriptions of tools, resources and prompts.
    pub catalog: Catalog,
    /// Methods of the protocol.
    pub methods: Methods,
    /// Tools for `tools/call`.
    pub tools: Methods,
}

impl Components {
    /// Creates the correct parts.
    pub fn new(config: &Config) -> Self {
        let mut parts =
            Self { catalog: Catalog::default(), methods: features::methods(), tools: tools::tools() };
        for name in &config.without {
            parts.catalog.forget(name);
            parts.methods.forget(name);
        }
        parts
    }
}

/// The correct server for lines.
pub fn machine(config: Config) -> Box<dyn Machine + Send> {
    let components = Components::new(&config);
    machine_with(config, components)
}

/// Server for lines, made of `components`.
pub fn machine_with(config: Config, components: Components) -> Box<dyn Machine + Send> {
    Box::new(Session::of(Server::new(config, components)))
}
