//! The configuration vocabulary of the envelope boundary.

use peerproof_engine::contract::boundary::{ConfigKey, Placeholder};
use peerproof_engine::data::carriage::HTTP;
use peerproof_engine::data::clause::Side;

const REFUSE: &[&str] = &["same", "refuse"];
const KEEP: &[&str] = &["keep", "refuse"];
const ACCEPT: &[&str] = &["accept", "refuse"];

/// Every key that a configuration for an engine or a caller may hold.
pub(crate) const KEYS: &[ConfigKey] = &[
    ConfigKey::command(
        "command",
        &[],
        "Command line of an engine that reads one envelope from stdin and writes one to stdout, \
         including its subcommand such as `process`",
    ),
    ConfigKey::command(
        HTTP,
        &[Placeholder::optional("{port}"), Placeholder::optional("{addr}")],
        "Command line of an engine that takes envelopes by POST to /api/v1/process on a port of 127.0.0.1; \
         or { command, url, ready }. A url without a command is the address of an engine that already runs. \
         The engine is ready when it accepts a connection and the condition `ready` holds: \
         { stdout = text }, { stderr = text } or { get = path }",
    ),
    ConfigKey::command(
        "caller",
        &[Placeholder::required("{scenario}"), Placeholder::required("{results}")],
        "Command line of a caller that sends the envelopes of a scenario and appends the result of each \
         call to a file; `command` with these placeholders means the same",
    ),
    ConfigKey::feature(
        "deterministic",
        "The engine gives the same reply to the same envelope, except for generated ids and times",
    ),
    ConfigKey::choice(
        "process",
        &["identity", "advance"],
        "Processing of an envelope: returned as it is, or advanced through its stages",
    ),
    ConfigKey::choice(
        "missing_required",
        &["default", "refuse"],
        "Handling of an envelope without a required member",
    ),
    ConfigKey::choice(
        "null_member",
        &["absent", "refuse"],
        "Handling of `null` for a member whose type does not allow it",
    ),
    ConfigKey::choice("trailing_text", &["refuse", "ignore"], "Handling of text after the envelope"),
    ConfigKey::choice("terminated_input", REFUSE, "Handling of an envelope that is already terminated"),
    ConfigKey::choice(
        "pending_input",
        &["same", "terminate", "refuse"],
        "Handling of an envelope that waits for a response",
    ),
    ConfigKey::choice(
        "over_bound",
        &["terminate", "refuse", "same"],
        "Handling of an envelope whose counter is over its maximum",
    ),
    ConfigKey::choice("inconsistent_input", KEEP, "Handling of members that contradict each other"),
    ConfigKey::choice(
        "agent_shapes",
        KEEP,
        "Handling of a section of a known agent whose types differ from the documented example",
    ),
    ConfigKey::choice("leap_second", ACCEPT, "Handling of a time with the second 60"),
    ConfigKey::choice("space_for_t", ACCEPT, "Handling of a time with a space instead of the T"),
    ConfigKey::choice("over_size", &["refuse", "process"], "Handling of an envelope of more than 10 MB"),
    ConfigKey::choice("bom", &["ignore", "refuse"], "Handling of a byte order mark"),
    ConfigKey::choice(
        "missing_core_in_reply",
        &["default", "invalid"],
        "Handling of a reply without a required member other than an id",
    )
    .of(Side::Consumer),
    ConfigKey::choice(
        "order_of_calls",
        &["together", "one_by_one"],
        "Order of independent calls: all at once, or one by one",
    )
    .of(Side::Consumer),
    ConfigKey::DUPLICATE_KEYS,
    ConfigKey::LONE_SURROGATES,
    ConfigKey::BIG_INTEGERS,
    ConfigKey::limit_from("nesting_max", 64, "Levels of nesting that the peer accepts"),
];
