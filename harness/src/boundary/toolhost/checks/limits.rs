//! Sizes: 10 MB in, 1 MB out, resynchronisation, memory.

use crate::check::Check;

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    Vec::new()
}
