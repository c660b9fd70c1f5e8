//! Strict JSON in both modes: grammar, encoding, nesting, numbers, presentations.

use crate::check::Check;

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    Vec::new()
}
