//! The consumer: a runtime that runs tools through programs, services and containers. The harness plays these.
//!
//! A conversation is one process with one scenario. The transcript holds the programs and requests that it started,
//! and the results file in which it reports its calls.

mod allowed_outcome;
pub(crate) mod cases;
pub(crate) mod face;
mod generate;
mod outcomes;
mod rules;

pub use super::config::RUNTIME as COMMAND;
pub(crate) use super::config::{CONTAINER, UNSAFE_OVERRIDE};
pub use generate::conversation;

use peerproof_engine::contract::asking::AskingMembers;

/// Members of a scenario and of its calls.
pub(crate) const MEMBERS: AskingMembers = AskingMembers {
    scenario: &["project"],
    call: &[
        "runner",
        "tool",
        "entry",
        "payload",
        "timeout_seconds",
        "trace_id",
        "sandbox",
        "guarantees",
        "unsafe_override",
        "resolved_source",
        "pack",
        "command",
        "url",
        "container_runtime",
        "image",
    ],
};

/// Default timeout of a call, ms.
pub(crate) const USUAL_MS: u64 = 10_000;

/// Size of a reply that must be accepted, bytes.
pub(crate) const USUAL_BYTES_MAX: usize = 1 << 20;

/// Path of a service's handshakes.
pub(crate) const HANDSHAKE_PATH: &str = "/capabilities/handshake";

/// A shell script for null peers that makes no call and reports the canary's result for each.
pub(crate) const RESULT_FOR_ALL: &str = r#"test -n "$2" || exit 0; grep -o '"ref":"[^"]*"' "$1" | sed 's/.*/{&,"outcome":"result","result":{"message":"Hello Ada","ok":true},"trace":{"runner":"local","resolved_source":"binding","timeout_ms":8000,"duration_ms":1,"protocol_version":1,"python_env":"x","python_path":"x","deps_source":"x"}}/' >"$2""#;

/// A shell script for null peers that makes no call and reports each as unavailable.
pub(crate) const FAILURE_FOR_ALL: &str = r#"test -n "$2" || exit 0; grep -o '"ref":"[^"]*"' "$1" | sed 's/.*/{&,"outcome":"unavailable","error":{"type":"x","message":"x"},"trace":{"runner":"local","resolved_source":"binding","timeout_ms":8000,"duration_ms":1,"protocol_version":1,"python_env":"x","python_path":"x","deps_source":"x"}}/' >"$2""#;
