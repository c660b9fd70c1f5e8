//! Reference peers for the engine: machines in this process, and programs that this binary plays.
//!
//! One file per boundary; shared parts are here. The engine uses them through
//! [`Played`](peerproof_engine::drive::reference_peers::Played).

pub(crate) mod arguments;
pub mod envelope;
pub mod input;
mod inside;
pub mod json_rpc;
pub mod mcp;
pub mod policy_driver;
mod presented;
pub mod python_tool;
pub mod run_log;
pub mod run_queue;
#[cfg(test)]
mod stored;
pub mod toolhost;

pub use inside::inside;
pub use peerproof_reference::io::http_server::reply_late as reply_late_over_http;
