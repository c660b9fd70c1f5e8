//! Logs as drawn.

use peerproof_engine::plan::Plan;
use peerproof_engine::rng::Rng;

/// A conversation.
pub fn conversation(_rng: &mut Rng) -> Plan {
    Plan::default()
}
