//! Checks that kill no mutant, with the reason why they are kept.

/// Check ids and reasons.
pub(crate) const CHECKS: &[(&str, &str)] = &[
    (
        "json_rpc/http/canary/plain-request",
        "whether the server answers over HTTP at all: nothing else is begun where it does not",
    ),
    ("json_rpc/http/model/generated-conversation-second", GENERATED),
    ("json_rpc/http/timeouts/thirty-seconds-by-default", REAL_TIME),
    ("json_rpc/http/auth/nonce-repeated-after-two-minutes", REAL_TIME),
    ("json_rpc/http/auth/nonce-repeated-after-20000-others", REAL_TIME),
    ("json_rpc/http/auth/nonce-forgotten-after-ten-minutes", REAL_TIME),
    ("json_rpc/stdio/auth/params-after-signatures", WITHIN_METHODS),
    ("json_rpc/http/auth/params-after-signatures", WITHIN_METHODS),
];

const WITHIN_METHODS: &str =
    "the reference looks at params within its methods, and no seam puts that before its signatures";

const REAL_TIME: &str =
    "a server over HTTP has no virtual clock: on lines the same check notices its mutants there";

const GENERATED: &str =
    "what the model says of generated messages holds over HTTP as well; which faults show is chance";
