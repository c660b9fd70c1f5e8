//! A server with every role under its usual name.

use serde_json::json;

use super::probe;
use peerproof_engine::data::clause::Side;
use peerproof_engine::data::facts::Facts;

/// Facts about such a server, as its probe would bring them.
pub fn facts(side: Side) -> Facts {
    let mut facts = Facts::new(side);
    if side == Side::Consumer {
        return facts;
    }
    facts.commands.insert("command".to_owned());
    facts.learned = serde_json::from_str(include_str!("../corpora/usual.json"))
        .unwrap_or_else(|error| unreachable!("corpora/mcp/usual.json: {error}"));
    let roles = json!({
        "echo": { "name": "echo", "arg": "text" },
        "sleep": { "name": "sleep", "arguments": { "ms": 1_000, "text": "{text}" }, "ms": 1_000 },
        "noargs": { "name": "noargs" },
        "log": { "name": "log" },
        "ask": { "name": "ask" },
        "blob": { "name": "blob", "arguments": { "bytes": "{bytes}" } },
        "counter": { "name": "counter" },
    });
    facts.roles = serde_json::from_value(roles).unwrap_or_default();
    probe::complete(&mut facts, &[]);
    facts
}
