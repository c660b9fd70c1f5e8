//! Members and types of requests, in both modes.

use super::super::cases;
use crate::check::Check;

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    cases::checks("request")
}
