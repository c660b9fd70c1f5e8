//! A driver, a bridge and a selector with every role.

use serde_json::json;

use super::config;
use super::request::Request;
use peerproof_engine::data::clause::Side;
use peerproof_engine::data::facts::Facts;

/// Roles of a driver, each with a payload for which the reference plays it.
pub fn payloads() -> [(&'static str, Request); 3] {
    let plain = Request::plain();
    [
        ("pick", plain.clone()),
        ("pick_inp", plain.clone().inputs(r#"{"policy_patch":{"k":"v"}}"#)),
        ("pick_inp64", plain.inputs(r#"{"policy_patch64":{"k":"v"}}"#)),
    ]
}

/// Facts of such a peer of this side.
pub fn facts(side: Side) -> Facts {
    let mut facts = Facts::new(side);
    let commands = super::boundary().description().commands_of(side);
    facts.commands.extend(commands.map(str::to_owned));
    for feature in config::FEATURES {
        facts.features.insert((*feature).to_owned(), json!(true));
    }
    if side == Side::Provider {
        for (role, request) in payloads() {
            let payload: serde_json::Value = serde_json::from_str(&request.text()).unwrap_or_default();
            facts.roles.insert(role.to_owned(), json!({ "payload": payload }));
        }
        // A driver merges nothing.
        facts.features.remove("merged_inputs");
    }
    facts
}
