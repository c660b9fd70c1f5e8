//! Tools that fail, print, crash or are slow.

use super::super::cases;
use crate::check::Check;

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    cases::checks("tools")
}
