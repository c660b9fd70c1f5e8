//! What the configuration says about the peer, looked up once a transcript.

use std::collections::BTreeMap;

use super::super::role::{ROLES, Role};
use super::value::{has_big_numbers, has_numbers_beyond_doubles};
use super::{DEPTH_CERTAIN, DEPTH_CERTAIN_BY_SPEC, Unit, methods};
use crate::facts::Facts;
use crate::json::{self, Json};

/// The facts that the model uses.
pub struct Pins {
    choices: BTreeMap<String, String>,
    methods: BTreeMap<String, (&'static str, Role)>,
    /// The clauses of document 004 bind the peer, beside those of JSON-RPC 2.0.
    pub profile: bool,
    /// Batches are claimed.
    pub batch: bool,
    /// Nesting that the peer has to take.
    pub depth: usize,
}

impl Pins {
    /// Those of a peer.
    pub fn of(facts: &Facts) -> Self {
        let mut methods: BTreeMap<String, (&'static str, Role)> = BTreeMap::new();
        for name in ROLES {
            if let Some(role) = super::super::role::role(facts, name) {
                methods.entry(role.method.clone()).or_insert((name, role));
            }
        }
        Self {
            choices: facts.choices.clone(),
            methods,
            profile: facts.requirements != "spec",
            batch: facts.claims("batch"),
            // RFC 8259 §9 lets parsers set limits.
            depth: if facts.requirements == "spec" { DEPTH_CERTAIN_BY_SPEC } else { DEPTH_CERTAIN },
        }
    }

    /// Whether a text may be refused as a whole for what is doubtful about it, wherever in it the doubt lies.
    pub fn may_refuse(&self, facts: &json::Facts, value: &Json) -> bool {
        let open = |key: &str| self.choices.get(key).is_none_or(|pinned| pinned == "refuse");
        facts.duplicate_keys && open("duplicate_keys")
            || facts.lone_surrogates && open("lone_surrogates")
            || has_big_numbers(value) && open("big_integers")
            || has_numbers_beyond_doubles(value)
    }

    /// Whether the configuration pins a choice to this value.
    pub fn is(&self, key: &str, value: &str) -> bool {
        self.choices.get(key).is_some_and(|pinned| pinned == value)
    }

    /// The role that a method plays.
    pub fn method(&self, name: &str) -> Option<&(&'static str, Role)> {
        self.methods.get(name)
    }

    /// Whether certainly no peer has a method of this name.
    pub fn is_unknown(&self, name: &str) -> bool {
        name.starts_with(methods::UNKNOWN) && self.method(name).is_none()
    }

    /// Leaves those alternatives that the pinned value of the choice allows.
    pub fn apply(&self, unit: &mut Unit) {
        let Some(pinned) = unit.choice.and_then(|key| self.choices.get(key)) else { return };
        let fits = |shows: Option<&str>| shows.is_none_or(|shows| shows == pinned);
        if unit.allowed.iter().any(|allowed| fits(allowed.shows)) {
            unit.allowed.retain(|allowed| fits(allowed.shows));
        }
    }
}
