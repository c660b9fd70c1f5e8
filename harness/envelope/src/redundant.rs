//! Checks that kill no mutant, with the reason why they are kept.

/// Check ids and reasons.
pub(crate) const CHECKS: &[(&str, &str)] = &[
    (
        "envelope/http/canary/plain-request",
        "whether the engine answers over HTTP at all: nothing else is begun where it does not",
    ),
    ("envelope/http/connections/loopback", "its mutant would listen where other machines reach it"),
    (
        "envelope/http/process/nothing-left",
        "its mutants are held against the same check on standard streams; over HTTP they fail it, too",
    ),
    ("envelope/http/open/over-size-ascii", OVER_SIZE),
    ("envelope/http/open/over-size-multi-byte", OVER_SIZE),
    ("envelope/http/open/twice-the-size", OVER_SIZE),
];

const OVER_SIZE: &str = "the reference refuses such a body before any engine sees it: on standard streams the same check \
                         notices its mutant";
