//! Conversations with replayers.

use peerproof_engine::plan::Plan;

/// Smaller variants of a plan.
pub fn variants(_plan: &Plan) -> Vec<Plan> {
    Vec::new()
}
