//! Facts: what plans and oracles may know about a peer. They come from its configuration and from probing, never from
//! its name.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::clause::Side;

/// What is known about the peer under test, without its secrets and its command lines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Provider or consumer.
    pub side: Side,
    /// Names of the commands that are configured, such as `run` and `serve`.
    pub commands: BTreeSet<String>,
    /// Conformance roles that are mapped, as the boundary defines them.
    pub roles: BTreeMap<String, Value>,
    /// Configured roles whose tools do something else, with what they do; they are not among `roles`, unless a claimed
    /// feature rests on them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub misfits: BTreeMap<String, String>,
    /// Configured roles of which the probes do not tell whether they are played, with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub untold: BTreeMap<String, String>,
    /// Claimed features with their settings (`true` or a table).
    pub features: BTreeMap<String, Value>,
    /// Pinned choices.
    pub choices: BTreeMap<String, String>,
    /// Limits that the contract lets a peer set.
    pub limits: BTreeMap<String, u64>,
    /// The set of clauses that bind it, where the boundary has several; empty: the boundary's first one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub requirements: String,
    /// One process that runs already serves all conversations, and others perhaps.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// Knowledge that a boundary took from its probes, in its own form; null where it took none.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub learned: Value,
    /// Number of the conversation among those that its process serves, from 0 on: what must not come twice in a process
    /// differs by it.
    #[serde(skip)]
    pub turn: u32,
}

/// What a plain call of the tool that is configured for a role came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoleTrial {
    /// What the role promises.
    Plays,
    /// Something else, as said.
    Misplays(String),
    /// Nothing that tells, or what the peer itself has to answer for; why.
    Untold(String),
}

impl Facts {
    /// Facts about a peer of which nothing is known.
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

    /// Enters what a trial of a configured role came to. A tool that does something else plays it no more.
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

    /// What the probes showed of a role that was tried.
    pub fn trial(&self, role: &str) -> RoleTrial {
        let misfit = self.misfits.get(role).cloned().map(RoleTrial::Misplays);
        let untold = || self.untold.get(role).cloned().map(RoleTrial::Untold);
        misfit.or_else(untold).unwrap_or(RoleTrial::Plays)
    }

    /// Whether the peer claims `feature`. A feature that is neither claimed nor denied counts as claimed only where
    /// the boundary says so when it completes the facts.
    pub fn claims(&self, feature: &str) -> bool {
        self.features.get(feature).is_some_and(|value| value != &Value::Bool(false))
    }
}
