//! The configuration vocabulary of the envelope boundary.

use peerproof_engine::boundary::ConfigKey;
use peerproof_engine::carriage::HTTP;
use peerproof_engine::clause::Side;

const REFUSE: &[&str] = &["same", "refuse"];
const KEEP: &[&str] = &["keep", "refuse"];
const ACCEPT: &[&str] = &["accept", "refuse"];

/// Every key that a configuration for an engine or a caller may hold.
pub const KEYS: &[ConfigKey] = &[
    ConfigKey::command(
        "command",
        &[],
        "argv of an engine that reads one envelope and writes one, `process` included",
    ),
    ConfigKey::command(
        HTTP,
        &["{port}?", "{addr}?"],
        "argv of an engine that takes envelopes by POST to /api/v1/process, on the port of 127.0.0.1 that it is given; or \
         { command, url, ready }, where a url without a command is that of an engine which runs already; it is awaited \
         until it takes a connection, and until `ready` holds: { stdout = text }, { stderr = text } or { get = path }",
    ),
    ConfigKey::command(
        "caller",
        &["{scenario}", "{results}"],
        "argv of a caller that has the envelopes of a scenario processed and appends how each call ended; `command` means the \
         same where these placeholders are in it",
    ),
    ConfigKey::feature(
        "deterministic",
        "the same envelope gets the same reply, generated ids and times aside",
    ),
    ConfigKey::choice("process", &["identity", "advance"], "what an engine does with an envelope"),
    ConfigKey::choice(
        "missing_required",
        &["default", "refuse"],
        "what becomes of an envelope without a required member",
    ),
    ConfigKey::choice(
        "null_member",
        &["absent", "refuse"],
        "what `null` is for a member whose type lacks it",
    ),
    ConfigKey::choice("trailing_text", &["refuse", "ignore"], "what becomes of text behind the envelope"),
    ConfigKey::choice("terminated_input", REFUSE, "what becomes of an envelope that is terminated already"),
    ConfigKey::choice(
        "pending_input",
        &["same", "terminate", "refuse"],
        "what becomes of an envelope that waits for a response",
    ),
    ConfigKey::choice(
        "over_bound",
        &["terminate", "refuse", "same"],
        "what becomes of an envelope whose counter is over its maximum",
    ),
    ConfigKey::choice("inconsistent_input", KEEP, "what becomes of members that contradict each other"),
    ConfigKey::choice(
        "agent_shapes",
        KEEP,
        "what becomes of a named agent's section that is not like its example",
    ),
    ConfigKey::choice("leap_second", ACCEPT, "what becomes of a time with the second 60"),
    ConfigKey::choice("space_for_t", ACCEPT, "what becomes of a time with a space for the T"),
    ConfigKey::choice("over_size", &["refuse", "process"], "what becomes of an envelope of more than 10 MB"),
    ConfigKey::choice("bom", &["ignore", "refuse"], "what becomes of a byte order mark"),
    ConfigKey::choice(
        "missing_core_in_reply",
        &["default", "invalid"],
        "what a reply without a required member comes to, ids excepted",
    )
    .of(Side::Consumer),
    ConfigKey::choice(
        "order_of_calls",
        &["together", "one_by_one"],
        "how calls are made that need not wait for others",
    )
    .of(Side::Consumer),
    ConfigKey::DUPLICATE_KEYS,
    ConfigKey::LONE_SURROGATES,
    ConfigKey::BIG_INTEGERS,
    ConfigKey::limit_from("nesting_max", &["64.."], "levels of nesting that are certainly read"),
];
