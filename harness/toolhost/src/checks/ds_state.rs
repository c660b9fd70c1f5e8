//! DSState: full states, deltas, malformed states, atomicity.

use peerproof_engine::data::check::Check;

mod artifacts;
mod atomic;
mod deltas;
mod malformed;
mod open;
mod run_mode;
mod session;

/// Feature of this topic.
const FEATURE: &str = "ds_state";

pub(super) fn checks() -> Vec<Check> {
    [
        session::checks(),
        deltas::checks(),
        malformed::checks(),
        artifacts::checks(),
        open::checks(),
        atomic::checks(),
        run_mode::checks(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn id(name: &str) -> String {
    format!("toolhost/serve/state/{name}")
}

fn run_id(name: &str) -> String {
    format!("toolhost/run/state/{name}")
}
