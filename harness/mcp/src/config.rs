//! The configuration vocabulary of the mcp boundary.

use super::role::{CALL, CALLS};
use peerproof_engine::boundary::ConfigKey;

/// Every key that a configuration for an MCP server may hold.
pub const KEYS: &[ConfigKey] = &[
    ConfigKey::command("command", &[], "argv of a server that speaks over its standard streams"),
    ConfigKey::feature("tools", "the server declares tools; by default as it says itself"),
    ConfigKey::feature("resources", "the server declares resources; by default as it says itself"),
    ConfigKey::feature("prompts", "the server declares prompts; by default as it says itself"),
    ConfigKey::feature("logging", "the server declares logging; by default as it says itself"),
    ConfigKey::feature("completions", "the server declares completions; by default as it says itself"),
    ConfigKey::worded_feature(
        CALL,
        CALLS,
        "tools that may be called: those with `readOnlyHint: true` and those that roles name; those alone that roles name; \
         any; or none",
    ),
    ConfigKey::role(
        "any",
        &["name: string", "arguments?: any"],
        "a tool that may be called with these arguments",
    ),
    ConfigKey::role(
        "echo",
        &["name: string", "arg: string"],
        "a tool that gives the text of this argument back",
    ),
    ConfigKey::role(
        "sleep",
        &["name: string", "arguments: any", "ms: integer"],
        "a tool that takes so many milliseconds; a `{text}` in its arguments comes back",
    ),
    ConfigKey::role("noargs", &["name: string"], "a tool without required arguments"),
    ConfigKey::role("log", &["name: string", "arguments?: any"], "a tool that logs"),
    ConfigKey::role("ask", &["name: string", "arguments?: any"], "a tool that asks the client"),
    ConfigKey::role(
        "blob",
        &["name: string", "arguments: any"],
        "a tool that returns as many bytes as `{bytes}` in its arguments says",
    ),
    ConfigKey::role("counter", &["name: string", "arguments?: any"], "a tool that counts its calls"),
    ConfigKey::choice(
        "revision",
        &["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"],
        "revision that is asked for; by default the newest one",
    ),
    ConfigKey::choice("fractional_id", &["echo", "refuse", "silent"], "a request whose id has a fraction"),
    ConfigKey::choice("response_to_server", &["refuse", "silent"], "a response that nobody waits for"),
    ConfigKey::choice("mcp_unknown_version", &["other", "error"], "`initialize` with an unknown revision"),
    ConfigKey::choice("mcp_resource_unknown", &["-32002", "-32602"], "code for an unknown resource"),
    ConfigKey::STARTUP_MS,
];
