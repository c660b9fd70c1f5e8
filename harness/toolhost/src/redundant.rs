//! Checks that detect no mutant and are kept anyway. `selftest` prints the reason, and fails if one is missing.

/// Id and reason.
pub(crate) const CHECKS: &[(&str, &str)] = &[
    (
        "toolhost/serve/lease/token-of-a-tool-that-failed",
        "only a peer whose failing tool needs a lease can show it; that of the reference needs none",
    ),
    (
        "toolhost/serve/http_get/suffix-of-the-name",
        "a name below localhost has to resolve, which it does not on every machine",
    ),
];
