//! A server and a client that play every role under its usual name.

use serde_json::json;

use super::client;
use super::role::reference_role;
use peerproof_engine::carriage::HTTP;
use peerproof_engine::clause::Side;
use peerproof_engine::facts::Facts;

/// Roles whose params are fixed, as far as checks ask for them.
const ROLES: [&str; 7] = ["echo", "fail", "sleep", "named", "counter", "blob", "stream"];

/// What a configuration file for such a peer of this side would say.
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
