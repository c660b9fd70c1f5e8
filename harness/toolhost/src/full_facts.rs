//! Facts about a toolhost and a dispatcher that have every role under its usual name.

use serde_json::json;

use super::probe::default_lease;
use super::role::{ROLES, reference_aid};
use peerproof_engine::data::clause::Side;
use peerproof_engine::data::facts::Facts;

/// Facts from a usual configuration file of a peer on this side.
pub fn facts(side: Side) -> Facts {
    let mut facts = Facts::new(side);
    let commands = super::boundary().description().commands_of(side);
    facts.commands.extend(commands.map(str::to_owned));
    if side == Side::Provider {
        for (role, _) in ROLES {
            facts.roles.insert((*role).to_owned(), json!({ "aid": reference_aid(role) }));
        }
        for feature in ["idempotency", "ds_state", "http_get"] {
            facts.features.insert(feature.to_owned(), json!(true));
        }
        facts.features.insert("lease".to_owned(), default_lease());
    }
    facts
}
