//! Checks that kill no mutant, with the reason why they are kept.

/// Check ids and reasons.
pub(crate) const CHECKS: &[(&str, &str)] = &[
    ("python_tool/service/refused/wrapped", "its mutant is one of the runner, which takes the same requests"),
    ("python_tool/service/connections/loopback", "its mutant would listen where other machines reach it"),
    (
        "python_tool/runtime/handshake/silent",
        "the mutant that trusts silence has no time left in which it would execute anything",
    ),
    ("python_tool/runtime/override/not-claimed", "the mutants claim the override, which allows the call"),
];
