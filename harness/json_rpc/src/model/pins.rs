//! Configuration of the peer, looked up once per transcript.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::super::role::{ROLES, Role};
use super::auth::Gate;
use super::value::{has_big_numbers, has_numbers_beyond_doubles};
use super::{DEPTH_CERTAIN, DEPTH_CERTAIN_BY_SPEC, DEPTH_TOLD_MAX, RequestPart, methods, profile};
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::json::{self, Json};
use peerproof_engine::data::near_miss::near_misses;

/// Configuration facts that the model uses.
pub struct Pins {
    choices: BTreeMap<String, String>,
    methods: BTreeMap<String, (&'static str, Role)>,
    /// True if the clauses of document 004 bind the peer, beside those of JSON-RPC 2.0.
    pub profile: bool,
    /// True if batches are claimed.
    pub batch: bool,
    /// True if the four methods of the profile are claimed.
    pub profile_methods: bool,
    /// True if messages may be compressed.
    pub gzip: bool,
    /// True if messages of this session are bodies of HTTP requests.
    pub over_http: bool,
    /// Nesting that the peer must accept, levels.
    pub depth: usize,
    /// State of the signature checks. Messages are read in the order of sending.
    pub gate: RefCell<Gate>,
}

/// Nesting that a message may have, levels: the minimum of the contract, or more if the peer declares so.
pub fn depth(facts: &Facts) -> usize {
    let told = facts.limits.get("nesting_max").and_then(|told| usize::try_from(*told).ok());
    let certain = if facts.requirements == "spec" { DEPTH_CERTAIN_BY_SPEC } else { DEPTH_CERTAIN };
    told.map_or(certain, |told| told.clamp(DEPTH_CERTAIN, DEPTH_TOLD_MAX))
}

impl Pins {
    /// Configuration of a peer.
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
            gzip: facts.claims("gzip"),
            over_http: false,
            gate: RefCell::new(Gate::of(facts)),
            profile_methods: facts.claims("profile_methods"),
            // RFC 8259 §9 lets parsers set limits.
            depth: depth(facts),
        }
    }

    /// True if a text may be refused as a whole for a doubtful part anywhere in it.
    pub(crate) fn may_refuse(&self, facts: &json::TextProperties, value: &Json) -> bool {
        let open = |key: &str| self.choices.get(key).is_none_or(|pinned| pinned == "refuse");
        facts.duplicate_keys && open("duplicate_keys")
            || facts.lone_surrogates && open("lone_surrogates")
            || has_big_numbers(value) && open("big_integers")
            || has_numbers_beyond_doubles(value)
    }

    /// True if the configuration pins a choice to this value.
    pub fn is(&self, key: &str, value: &str) -> bool {
        self.choices.get(key).is_some_and(|pinned| pinned == value)
    }

    /// Role of a method.
    pub fn method(&self, name: &str) -> Option<&(&'static str, Role)> {
        self.methods.get(name)
    }

    /// True for one of the four methods of the profile, if they are claimed.
    pub(crate) fn is_of_profile(&self, name: &str) -> bool {
        self.profile && self.profile_methods && profile::METHODS.contains(&name)
    }

    /// True if certainly no peer has a method of this name. That includes near misses of a role's method, with two
    /// exceptions: the specification does not say whether case counts, and a method may have a second name without
    /// its namespace.
    pub fn is_unknown(&self, name: &str) -> bool {
        let is_nearly = |right: &String| {
            near_misses(right)
                .iter()
                .filter(|miss| miss.kind != "first-part-missing")
                .any(|miss| miss.text == name && (self.profile || !miss.kind.contains("case")))
        };
        let is_nobodys = || name.starts_with(methods::UNKNOWN) || methods::INHERITED.contains(&name);
        let is_known = self.method(name).is_some() || profile::METHODS.contains(&name);
        !is_known && (is_nobodys() || self.methods.keys().any(is_nearly))
    }

    /// Removes the alternatives that contradict the pinned value of the choice.
    pub fn apply(&self, unit: &mut RequestPart) {
        let Some(pinned) = unit.choice.and_then(|key| self.choices.get(key)) else { return };
        let fits =
            |shows: Option<&str>| shows.is_none_or(|shows| shows.split('|').any(|value| value == pinned));
        if unit.allowed.iter().any(|allowed| fits(allowed.shows)) {
            unit.allowed.retain(|allowed| fits(allowed.shows));
        }
    }
}
