//! DSState: full states, deltas, atomicity.

use crate::check::Check;

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    Vec::new()
}
