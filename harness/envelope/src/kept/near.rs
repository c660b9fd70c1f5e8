//! Numbers that are the same to the nearest double.

use peerproof_engine::json::Number;

/// Whether a number is another one to the nearest double, where only that is asked for.
pub(super) fn is_near(old: &Number, new: &Number) -> bool {
    if old.is_safe() {
        return false;
    }
    match (old.as_f64(), new.as_f64()) {
        (Some(old), Some(new)) => old == new,
        // Beyond a double: the nearest is the largest.
        (None, new) => new.is_none_or(|new| new.abs() == f64::MAX),
        (Some(_), None) => false,
    }
}
