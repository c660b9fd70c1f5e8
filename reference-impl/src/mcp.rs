//! The provider of the mcp boundary: an MCP server with tools, resources and prompts (contract §9, parts b and c).
//!
//! [`machine`] gives the pure peer that speaks lines. Its server is put together from parts that each can be replaced:
//! the catalog, the methods and the tools ([`Components`]), the choices and limits ([`Config`]).
//!
//! A message is checked in this order: size → UTF-8 → JSON → batch → shape → method → lifecycle → params; only then is
//! anything executed.

mod catalog;
mod choices;
mod features;
mod jobs;
mod lifecycle;
mod lists;
mod message;
mod method;
pub mod mutants;
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
    /// Behaviours where the contract allows several.
    pub choices: Choices,
    /// Caps.
    pub limits: Limits,
    /// Newest revision that it accepts.
    pub newest: Revision,
    /// Capabilities that it has not, by name.
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

/// Capabilities that a server can be without.
pub const CAPABILITIES: [&str; 6] = ["completions", "logging", "prompts", "resources", "tasks", "tools"];

/// The replaceable parts of a server.
pub struct Components {
    /// Descriptions of what it offers.
    pub catalog: Catalog,
    /// Methods of the protocol.
    pub methods: Methods,
    /// Tools, which `tools/call` calls.
    pub tools: Methods,
}

impl Components {
    /// The correct parts.
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

/// The correct server on lines.
pub fn machine(config: Config) -> Box<dyn Machine + Send> {
    let components = Components::new(&config);
    machine_with(config, components)
}

/// A server on lines made of `components`.
pub fn machine_with(config: Config, components: Components) -> Box<dyn Machine + Send> {
    Box::new(Session::of(Server::new(config, components)))
}
