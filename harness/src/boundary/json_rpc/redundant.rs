//! Checks that notice no mutant, each with the reason why it is kept.

/// Check id and reason.
pub const CHECKS: &[(&str, &str)] = &[
    (
        "json_rpc/http/canary/plain-request",
        "whether the server answers over HTTP at all: nothing else is begun where it does not",
    ),
    ("json_rpc/http/model/generated-conversation-second", GENERATED),
    ("json_rpc/http/timeouts/thirty-seconds-by-default", REAL_TIME),
    ("json_rpc/http/auth/nonce-repeated-after-two-minutes", REAL_TIME),
    ("json_rpc/http/auth/nonce-forgotten-after-ten-minutes", REAL_TIME),
];

const REAL_TIME: &str =
    "a server over HTTP has no virtual clock: on lines the same check notices its mutants there";

const GENERATED: &str =
    "what the model says of generated messages holds over HTTP as well; which faults show is chance";
