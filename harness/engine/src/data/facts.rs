//! Facts: knowledge about a peer that plans and judges may use. It comes from configuration and probes, never from the
//! peer's name.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::data::clause::Side;

/// Knowledge about the peer under test, without secrets and command lines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Provider or consumer.
    pub side: Side,
    /// Configured commands, such as `run` and `serve`.
    pub commands: BTreeSet<String>,
    /// Mapped conformance roles, in the boundary's form.
    pub roles: BTreeMap<String, Value>,
    /// Configured roles whose tools do something else, each with a description. They are missing in `roles`, unless a
    /// claimed feature needs them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub misfits: BTreeMap<String, String>,
    /// Configured roles that the probes could not verify, each with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub untold: BTreeMap<String, String>,
    /// Claimed features with their settings (`true` or a table).
    pub features: BTreeMap<String, Value>,
    /// Pinned choices.
    pub choices: BTreeMap<String, String>,
    /// Limits that the contract lets a peer set.
    pub limits: BTreeMap<String, u64>,
    /// Requirement set of the peer; empty for the boundary's default.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub requirements: String,
    /// Set if one running process serves all conversations, and perhaps other users.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// Facts from the boundary's probes, in its own form; null if there are none.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub learned: Value,
    /// Number of the conversation within its process, from 0. Makes values differ that a process must see only once.
    #[serde(skip)]
    pub turn: u32,
}

/// Result of a plain call of the tool configured for a role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoleTrial {
    /// The tool does what the role promises.
    Plays,
    /// The tool does something else, as described.
    Misplays(String),
    /// The trial did not tell, or failed by a fault of the peer itself; with the reason.
    Untold(String),
}

impl Facts {
    /// Facts about an unknown peer.
    pub fn new(side: Side) -> Self {
        Self {
            side,
            commands: BTreeSet::new(),
            roles: BTreeMap::new(),
            misfits: BTreeMap::new(),
            untold: BTreeMap::new(),
            features: BTreeMap::new(),
            choices: BTreeMap::new(),
            limits: BTreeMap::new(),
            requirements: String::new(),
            shared: false,
            learned: Value::Null,
            turn: 0,
        }
    }

    /// Records the result of a trial. A tool that does something else loses its role.
    pub fn enter(&mut self, role: &str, came: RoleTrial) {
        match came {
            RoleTrial::Plays => {}
            RoleTrial::Misplays(why) => {
                self.misfits.entry(role.to_owned()).or_insert(why);
                self.roles.remove(role);
            }
            RoleTrial::Untold(why) => {
                self.untold.insert(role.to_owned(), why);
            }
        }
    }

    /// Result of the trial of a role, by the probes.
    pub fn trial(&self, role: &str) -> RoleTrial {
        let misfit = self.misfits.get(role).cloned().map(RoleTrial::Misplays);
        let untold = || self.untold.get(role).cloned().map(RoleTrial::Untold);
        misfit.or_else(untold).unwrap_or(RoleTrial::Plays)
    }

    /// True if the peer claims `feature`. A feature neither claimed nor denied counts as claimed only if the boundary
    /// says so when it completes the facts.
    pub fn claims(&self, feature: &str) -> bool {
        self.features.get(feature).is_some_and(|value| value != &Value::Bool(false))
    }
}
