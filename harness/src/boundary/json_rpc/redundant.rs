//! Checks that notice no mutant, each with the reason why it is kept.

/// Check id and reason.
pub const CHECKS: &[(&str, &str)] = &[];
