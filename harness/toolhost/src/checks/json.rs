//! Strict JSON in both modes: grammar, encoding, nesting, numbers, presentations.

use super::super::cases;
use peerproof_engine::data::check::Check;

pub(super) fn checks() -> Vec<Check> {
    cases::checks("json")
}
