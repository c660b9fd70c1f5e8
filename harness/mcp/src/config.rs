//! The configuration vocabulary of the mcp boundary.

use serde_json::{Value, json};

use super::role::{CALL, CALLS};
use peerproof_engine::contract::boundary::{ConfigKey, Member};
use peerproof_engine::data::facts::Facts;
use peerproof_json_rpc::settings::{CLIENT_CAPABILITIES, CLOSING, OPENING, SERVER_REQUESTS};

/// Every key that a configuration for an MCP server may hold.
pub(crate) const KEYS: &[ConfigKey] = &[
    ConfigKey::command("command", &[], "argv of a server that speaks over stdio"),
    ConfigKey::feature(
        "tools",
        "The server declares `tools`; by default its own answer to `initialize` decides",
    ),
    ConfigKey::feature(
        "resources",
        "The server declares `resources`; by default its own answer to `initialize` decides",
    ),
    ConfigKey::feature(
        "prompts",
        "The server declares `prompts`; by default its own answer to `initialize` decides",
    ),
    ConfigKey::feature(
        "logging",
        "The server declares `logging`; by default its own answer to `initialize` decides",
    ),
    ConfigKey::feature(
        "completions",
        "The server declares `completions`; by default its own answer to `initialize` decides",
    ),
    ConfigKey::feature(
        "tasks",
        "The server declares `tasks`; by default its own answer to `initialize` decides",
    ),
    ConfigKey::feature_with_values(
        CALL,
        CALLS,
        "Tools that may be called: those with `readOnlyHint: true` and those that roles name; only those that roles \
         name; any tool; or none",
    ),
    ConfigKey::setting(
        OPENING,
        "Steps that open a session, instead of `initialize` and its notification: a list of { send = message, await = \
         \"result\", \"answer\" or \"none\" } and { wait_ms = number }. Placeholders in messages: {id}, {pid}, \
         {cwd}, {root_uri}, {version}",
    ),
    ConfigKey::setting(CLOSING, "Steps before the end of a session, as in `opening`"),
    ConfigKey::setting(
        SERVER_REQUESTS,
        "Answers to requests of the server: a table of method = { result = … }, { error = { code, message } } or \
         \"ignore\". By default `ping` gets a result and others get error -32601",
    ),
    ConfigKey::setting(
        CLIENT_CAPABILITIES,
        "Capabilities that checks declare where they are about no others",
    ),
    ConfigKey::role(
        "any",
        &[Member::string("name"), Member::any("arguments").optional()],
        "Tool that may be called with these arguments",
    ),
    ConfigKey::role(
        "echo",
        &[Member::string("name"), Member::string("arg")],
        "Tool that returns the text of this argument",
    ),
    ConfigKey::role(
        "sleep",
        &[Member::string("name"), Member::any("arguments"), Member::integer("ms")],
        "Tool that takes this many milliseconds; it returns the `{text}` in its arguments",
    ),
    ConfigKey::role("noargs", &[Member::string("name")], "Tool without required arguments"),
    ConfigKey::role("log", &[Member::string("name"), Member::any("arguments").optional()], "Tool that logs"),
    ConfigKey::role(
        "ask",
        &[Member::string("name"), Member::any("arguments").optional()],
        "Tool that sends a request to the client",
    ),
    ConfigKey::role(
        "blob",
        &[Member::string("name"), Member::any("arguments")],
        "Tool that returns as many bytes as `{bytes}` in its arguments says",
    ),
    ConfigKey::role(
        "counter",
        &[Member::string("name"), Member::any("arguments").optional()],
        "Tool that counts its calls",
    ),
    ConfigKey::choice(
        "revision",
        &["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"],
        "Revision to ask for; by default the newest one",
    ),
    ConfigKey::choice(
        "fractional_id",
        &["echo", "refuse", "silent"],
        "Handling of a request whose id has a fraction",
    ),
    ConfigKey::choice("response_to_server", &["refuse", "silent"], "Handling of a response to no request"),
    ConfigKey::choice("utf8_invalid", &["refuse", "replace"], "Handling of a line that is not UTF-8"),
    ConfigKey::choice(
        "mcp_batch",
        &["error", "answer", "silent"],
        "Handling of a batch where the revision has none",
    ),
    ConfigKey::choice(
        "mcp_early_request",
        &["serve", "error", "silent"],
        "Handling of a request before `initialize`; silence breaks MCP-INI-07",
    ),
    ConfigKey::choice("mcp_second_initialize", &["result", "error"], "Handling of a second `initialize`"),
    ConfigKey::choice(
        "mcp_bad_cursor",
        &["error", "ignore"],
        "Handling of an unknown cursor; `ignore` breaks MCP-LST-06 where the list has pages",
    ),
    ConfigKey::choice(
        "mcp_invalid_args",
        &["is_error", "error"],
        "Handling of arguments that break the schema of a tool, before 2025-11-25",
    ),
    ConfigKey::choice("mcp_cancelled", &["silent", "result"], "Handling of a call that is cancelled"),
    ConfigKey::choice(
        "mcp_unknown_version",
        &["other", "error"],
        "Handling of `initialize` with an unknown revision",
    ),
    ConfigKey::choice(
        "mcp_task_required",
        &["-32601", "-32600"],
        "Error code for a tool that requires a task and is called without one",
    ),
    ConfigKey::choice(
        "mcp_eof_pending",
        &["answer", "drop"],
        "Handling of calls that are under way at the end of input",
    ),
    ConfigKey::choice("mcp_resource_unknown", &["-32002", "-32602"], "Error code for an unknown resource"),
    ConfigKey::STARTUP_MS,
];

/// Capabilities that the client declares: these, and the configured ones.
pub(crate) fn capabilities(facts: &Facts, own: &Value) -> Value {
    let mut all = facts.features.get(CLIENT_CAPABILITIES).cloned().unwrap_or_else(|| json!({}));
    own.as_object().into_iter().flatten().for_each(|(name, value)| all[name] = value.clone());
    all
}
