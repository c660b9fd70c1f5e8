//! Checks of replayers.

use peerproof_engine::check::Check;

/// All checks of replayers.
pub fn checks() -> Vec<Check> {
    Vec::new()
}
