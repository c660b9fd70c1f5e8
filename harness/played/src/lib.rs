//! The reference, played: its machines as peers in this process, its programs as peers that this binary becomes.
//!
//! A file a boundary; what they share is here. The engine knows them as [`Played`](peerproof_engine::played::Played).

pub mod arguments;
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
