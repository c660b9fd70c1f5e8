//! The consumer: a runtime that has tools run by programs, services and containers, which the harness plays.
//!
//! A conversation is one process with one scenario. What it started and sent is in the transcript, and what it says of its calls
//! is in its results, which the transcript holds as well.

pub mod cases;
pub mod face;
mod fate;
mod generate;
mod rules;

pub use generate::conversation;

use peerproof_engine::asking::Members;

/// Name under which the command of a runtime is known; a configuration may call it `command`.
pub const COMMAND: &str = "runtime";

/// Feature: it runs containers.
pub const CONTAINER: &str = "container";

/// Feature: calls may go on without assurance.
pub const UNSAFE_OVERRIDE: &str = "unsafe_override";

/// What a runtime is told.
pub const MEMBERS: Members = Members {
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

/// Time of a call that says nothing about it, ms.
pub const USUAL_MS: u64 = 10_000;

/// Bytes of a reply that are taken in any case.
pub const USUAL_BYTES_MAX: usize = 1 << 20;

/// Where a service takes handshakes.
pub const HANDSHAKE_PATH: &str = "/capabilities/handshake";

/// A shell script for null peers: it makes no call, and says of each that it had the canary's result.
pub const RESULT_FOR_ALL: &str = r#"test -n "$2" || exit 0; grep -o '"ref":"[^"]*"' "$1" | sed 's/.*/{&,"outcome":"result","result":{"message":"Hello Ada","ok":true},"trace":{"runner":"local","resolved_source":"binding","timeout_ms":8000,"duration_ms":1,"protocol_version":1,"python_env":"x","python_path":"x","deps_source":"x"}}/' >"$2""#;

/// The same, which says of each call that nothing was there.
pub const FAILURE_FOR_ALL: &str = r#"test -n "$2" || exit 0; grep -o '"ref":"[^"]*"' "$1" | sed 's/.*/{&,"outcome":"unavailable","error":{"type":"x","message":"x"},"trace":{"runner":"local","resolved_source":"binding","timeout_ms":8000,"duration_ms":1,"protocol_version":1,"python_env":"x","python_path":"x","deps_source":"x"}}/' >"$2""#;
