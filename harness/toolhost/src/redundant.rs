//! Checks that notice no mutant and are kept all the same: `selftest` prints why, and fails where a reason is missing.

/// Id and reason.
pub const CHECKS: &[(&str, &str)] = &[
    (
        "toolhost/serve/lease/token-of-a-tool-that-failed",
        "only a peer whose failing tool needs a lease can show it; that of the reference needs none",
    ),
    (
        "toolhost/serve/http_get/suffix-of-the-name",
        "a name below localhost has to resolve, which it does not on every machine",
    ),
];
