//! Strict JSON in both modes: grammar, encoding, nesting, numbers, presentations.

use super::super::cases;
use peerproof_engine::check::Check;

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    cases::checks("json")
}
