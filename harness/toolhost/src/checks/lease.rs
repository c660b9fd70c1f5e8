//! Leases: single-use permission tokens, with `MACHINA_LEASE_ENFORCE=1`.

use peerproof_engine::data::check::Check;

mod limits;
mod refusals;
mod use_once;

/// Feature of this topic.
const FEATURE: &str = "lease";

pub(super) fn checks() -> Vec<Check> {
    [use_once::checks(), refusals::checks(), limits::checks()].into_iter().flatten().collect()
}

fn id(name: &str) -> String {
    format!("toolhost/serve/lease/{name}")
}
