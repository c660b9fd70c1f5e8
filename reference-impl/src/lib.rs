//! Reference implementation of the agent-tool boundaries that `peerproof` checks.
//!
//! The crate is sans-I/O: every boundary is a [`machine::Machine`] that takes bytes, signals and the time and
//! returns bytes and commands. Only `src/io/` and the `refpeer` binary touch the operating system.

pub mod choices;
pub mod dispatcher;
pub mod envelope;
pub mod envelope_caller;
pub mod frame;
pub mod http;
pub mod io;
pub mod json;
pub mod json_rpc;
pub mod json_rpc_client;
pub mod limits;
pub mod machine;
pub mod mcp;
pub mod mutant;
pub mod policy_driver;
pub mod python_tool;
pub(crate) mod refusal;
pub(crate) mod resources;
pub mod run_log;
pub mod run_queue;
pub(crate) mod scenario;
pub mod toolhost;
