//! A server and a client with every role under its usual name.

use serde_json::json;

use super::client;
use super::role::reference_role;
use peerproof_engine::data::carriage::HTTP;
use peerproof_engine::data::clause::Side;
use peerproof_engine::data::facts::Facts;

/// Roles with fixed params, as far as checks need them.
const ROLES: [&str; 7] = ["echo", "fail", "sleep", "named", "counter", "blob", "stream"];

/// Facts of such a peer of this side.
pub fn facts(side: Side) -> Facts {
    let mut facts = Facts::new(side);
    if side == Side::Provider {
        facts.commands.extend(["command", HTTP].map(str::to_owned));
        for role in ROLES {
            facts.roles.insert(role.to_owned(), reference_role(role));
        }
        for feature in ["batch", "concurrent", "profile_methods", "streaming"] {
            facts.features.insert(feature.to_owned(), json!(true));
        }
    } else {
        facts.commands.insert(client::COMMAND.to_owned());
        facts.features.insert("retry".to_owned(), json!(true));
    }
    facts
}
