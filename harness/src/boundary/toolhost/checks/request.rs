//! Members and types of requests, in both modes.

use crate::check::Check;

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    Vec::new()
}
