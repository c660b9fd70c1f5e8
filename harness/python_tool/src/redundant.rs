//! Checks that notice no mutant, each with the reason why it is kept.

/// Check id and reason.
pub const CHECKS: &[(&str, &str)] =
    &[("python_tool/service/connections/loopback", "its mutant would listen where other machines reach it")];
