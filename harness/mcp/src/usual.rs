//! A server that plays every role under its usual name.

use serde_json::json;

use peerproof_engine::clause::Side;
use peerproof_engine::facts::Facts;

/// Facts about such a server, as its probe would bring them.
pub fn facts(side: Side) -> Facts {
    let mut facts = Facts::new(side);
    if side == Side::Consumer {
        return facts;
    }
    facts.commands.insert("command".to_owned());
    facts.learned = json!({
        "revision": "2025-11-25",
        "server": { "name": "usual", "version": "1" },
        "capabilities": {
            "tools": { "listChanged": true },
            "resources": { "subscribe": true, "listChanged": true },
            "prompts": {},
            "logging": {},
            "completions": {},
        },
        "tools": [{
            "name": "echo",
            "annotations": { "readOnlyHint": true },
            "inputSchema": {
                "type": "object",
                "properties": { "text": { "type": "string" } },
                "required": ["text"],
            },
        }],
        "resources": [{ "uri": "usual://one", "name": "one" }],
        "resourceTemplates": [{ "uriTemplate": "usual://{name}", "name": "any" }],
        "prompts": [{ "name": "greet", "arguments": [{ "name": "who", "required": true }] }],
    });
    facts
}
