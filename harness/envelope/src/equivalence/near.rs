//! Numbers that are equal as doubles.

use peerproof_engine::data::json::Number;

/// True if two numbers have the same nearest double and `old` need not be kept exactly.
pub(super) fn is_near(old: &Number, new: &Number) -> bool {
    if old.is_safe() {
        return false;
    }
    match (old.as_f64(), new.as_f64()) {
        (Some(old), Some(new)) => old == new,
        // The nearest double of a number beyond all doubles is the largest one.
        (None, new) => new.is_none_or(|new| new.abs() == f64::MAX),
        (Some(_), None) => false,
    }
}
