//! What the configuration says about the peer, looked up once a transcript.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::super::role::{ROLES, Role};
use super::auth::Gate;
use super::value::{has_big_numbers, has_numbers_beyond_doubles};
use super::{DEPTH_CERTAIN, DEPTH_CERTAIN_BY_SPEC, DEPTH_TOLD_MAX, Unit, methods, profile};
use peerproof_engine::facts::Facts;
use peerproof_engine::json::{self, Json};
use peerproof_engine::near_miss::near_misses;

/// The facts that the model uses.
pub struct Pins {
    choices: BTreeMap<String, String>,
    methods: BTreeMap<String, (&'static str, Role)>,
    /// The clauses of document 004 bind the peer, beside those of JSON-RPC 2.0.
    pub profile: bool,
    /// Batches are claimed.
    pub batch: bool,
    /// The four methods of the profile are claimed.
    pub profile_methods: bool,
    /// Messages may be compressed.
    pub gzip: bool,
    /// The messages of this session are bodies of HTTP requests.
    pub over_http: bool,
    /// Nesting that the peer has to take.
    pub depth: usize,
    /// What a server with signatures has seen so far: messages are read in the order of sending.
    pub gate: RefCell<Gate>,
}

/// Levels of nesting that a message may have: those of the contract, or more where the peer says so.
pub fn depth(facts: &Facts) -> usize {
    let told = facts.limits.get("nesting_max").and_then(|told| usize::try_from(*told).ok());
    let certain = if facts.requirements == "spec" { DEPTH_CERTAIN_BY_SPEC } else { DEPTH_CERTAIN };
    told.map_or(certain, |told| told.clamp(DEPTH_CERTAIN, DEPTH_TOLD_MAX))
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
            gzip: facts.claims("gzip"),
            over_http: false,
            gate: RefCell::new(Gate::of(facts)),
            profile_methods: facts.claims("profile_methods"),
            // RFC 8259 §9 lets parsers set limits.
            depth: depth(facts),
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

    /// Whether a method is one of the four of the profile, and claimed.
    pub fn is_of_profile(&self, name: &str) -> bool {
        self.profile && self.profile_methods && profile::METHODS.contains(&name)
    }

    /// Whether certainly no peer has a method of this name. One that is nearly that of a role is not there, but that the
    /// specification does not say whether case counts, and that a method may have a second name without its namespace.
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

    /// Leaves those alternatives that the pinned value of the choice allows.
    pub fn apply(&self, unit: &mut Unit) {
        let Some(pinned) = unit.choice.and_then(|key| self.choices.get(key)) else { return };
        let fits =
            |shows: Option<&str>| shows.is_none_or(|shows| shows.split('|').any(|value| value == pinned));
        if unit.allowed.iter().any(|allowed| fits(allowed.shows)) {
            unit.allowed.retain(|allowed| fits(allowed.shows));
        }
    }
}
