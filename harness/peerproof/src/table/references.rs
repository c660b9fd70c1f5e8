//! Reference peers of every boundary.

use peerproof_engine::contract::boundary::Boundary;
use peerproof_engine::drive::reference_peers::Played;
use peerproof_played::{envelope, json_rpc, mcp, policy_driver, python_tool, run_log, run_queue, toolhost};

/// One row per boundary.
fn rows() -> [&'static dyn Played; 8] {
    [
        toolhost::played(),
        json_rpc::played(),
        policy_driver::played(),
        envelope::played(),
        python_tool::played(),
        run_log::played(),
        run_queue::played(),
        mcp::played(),
    ]
}

/// Reference peers of a boundary in the table.
pub fn played(boundary: &dyn Boundary) -> &'static dyn Played {
    let row = rows().into_iter().find(|row| row.boundary().name() == boundary.name());
    row.unwrap_or_else(|| unreachable!("{} has no row in the table", boundary.name()))
}
