//! Table of boundaries: the only place to add a new one.

use peerproof_engine::contract::boundary::{self, Boundary};
use peerproof_envelope as envelope;
use peerproof_json_rpc as json_rpc;
use peerproof_mcp as mcp;
use peerproof_policy_driver as policy_driver;
use peerproof_python_tool as python_tool;
use peerproof_run_log as run_log;
use peerproof_run_queue as run_queue;
use peerproof_toolhost as toolhost;

#[cfg(feature = "reference")]
mod references;

#[cfg(feature = "reference")]
pub use references::played;

/// All boundaries, in the order of `check` without arguments.
pub fn all() -> Vec<&'static dyn Boundary> {
    vec![
        toolhost::boundary(),
        json_rpc::boundary(),
        policy_driver::boundary(),
        envelope::boundary(),
        python_tool::boundary(),
        run_log::boundary(),
        run_queue::boundary(),
        mcp::boundary(),
    ]
}

/// Boundary called `name`; `_` and `-` are equal.
pub fn find(name: &str) -> Option<&'static dyn Boundary> {
    boundary::find(&all(), name)
}

#[cfg(test)]
#[cfg(feature = "reference")]
mod tests;
