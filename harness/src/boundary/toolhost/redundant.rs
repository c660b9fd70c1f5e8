//! Checks that notice no mutant and are kept all the same: `selftest` prints why, and fails where a reason is missing.

/// Id and reason.
pub const CHECKS: &[(&str, &str)] = &[];
