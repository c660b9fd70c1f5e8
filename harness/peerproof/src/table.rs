//! The table of boundaries: the one place where a new one is added.

use peerproof_engine::boundary::{self, Boundary};
use peerproof_engine::played::Played;
use peerproof_played::{envelope, json_rpc, policy_driver, python_tool, run_log, run_queue, toolhost};

/// The reference peers of every boundary: one row each, in the order in which `check` without arguments goes through
/// them.
fn rows() -> [&'static dyn Played; 7] {
    [
        toolhost::played(),
        json_rpc::played(),
        policy_driver::played(),
        envelope::played(),
        python_tool::played(),
        run_log::played(),
        run_queue::played(),
    ]
}

/// All boundaries, in the order of the table.
pub fn all() -> Vec<&'static dyn Boundary> {
    rows().into_iter().map(Played::boundary).collect()
}

/// The boundary called `name`; `_` and `-` are the same.
pub fn find(name: &str) -> Option<&'static dyn Boundary> {
    boundary::find(&all(), name)
}

/// The reference peers of a boundary of the table.
pub fn played(boundary: &dyn Boundary) -> &'static dyn Played {
    let row = rows().into_iter().find(|row| row.boundary().name() == boundary.name());
    row.unwrap_or_else(|| unreachable!("{} has no row in the table", boundary.name()))
}

#[cfg(test)]
mod tests;
