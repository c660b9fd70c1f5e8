//! The table of boundaries: the one place where a new one is added.

use crate::boundary::{self, Boundary, json_rpc, policy_driver, toolhost};

/// All boundaries, in the order in which `check` without arguments goes through them.
pub fn all() -> Vec<&'static dyn Boundary> {
    vec![toolhost::boundary(), json_rpc::boundary(), policy_driver::boundary()]
}

/// The boundary called `name`; `_` and `-` are the same.
pub fn find(name: &str) -> Option<&'static dyn Boundary> {
    boundary::find(&all(), name)
}

#[cfg(test)]
mod tests;
