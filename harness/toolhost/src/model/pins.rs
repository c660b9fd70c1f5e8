//! Configuration of the peer, looked up once per transcript.

use std::collections::BTreeMap;

use serde::Deserialize as _;

use super::super::role::{ROLES, Role};
use peerproof_engine::data::facts::Facts;

/// A tool of the peer with known behaviour.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tool {
    /// Its role.
    pub role: &'static str,
    /// Required lease tier; `None` if unknown.
    pub tier: Option<u64>,
    /// Input known to succeed (role `any`).
    pub input: Option<String>,
}

/// Facts that the model uses.
pub(super) struct Pins {
    choices: BTreeMap<String, String>,
    pub idempotency: bool,
    pub lease: bool,
    pub ds_state: bool,
    /// Action id of the lease command.
    pub issue_aid: Option<String>,
    tools: BTreeMap<String, Tool>,
}

impl Pins {
    pub(super) fn of(facts: &Facts) -> Self {
        let mut tools: BTreeMap<String, Tool> = BTreeMap::new();
        for (name, _) in ROLES {
            let Some(value) = facts.roles.get(*name) else { continue };
            let Ok(role) = Role::deserialize(value) else { continue };
            let tier = match *name {
                "tier1" => Some(role.tier.unwrap_or(1)),
                "tier2" => Some(role.tier.unwrap_or(2)),
                "tier3" => Some(role.tier.unwrap_or(3)),
                "http_get" => role.tier,
                _ => Some(role.tier.unwrap_or(0)),
            };
            let input = role.input.map(|input| input.to_string());
            let tool = Tool { role: name, tier, input };
            // One tool may play several roles; `any` is the least specific.
            match tools.get(&role.aid) {
                Some(known) if known.role != "any" => {}
                _ => drop(tools.insert(role.aid, tool)),
            }
        }
        let lease = facts.claims("lease");
        let issue = facts.features.get("lease").and_then(|lease| lease.get("issue")?.get("aid")?.as_str());
        Self {
            choices: facts.choices.clone(),
            idempotency: facts.claims("idempotency"),
            lease,
            ds_state: facts.claims("ds_state"),
            issue_aid: issue.filter(|_| lease).map(str::to_owned),
            tools,
        }
    }

    /// Pinned value of a choice.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.choices.get(key).map(String::as_str)
    }

    pub(super) fn is(&self, key: &str, value: &str) -> bool {
        self.get(key) == Some(value)
    }

    /// Pinned value of a boolean choice.
    pub(super) fn flag(&self, key: &str) -> Option<bool> {
        self.get(key).map(|value| value == "true")
    }

    pub(super) fn tool(&self, aid: &str) -> Option<&Tool> {
        self.tools.get(aid)
    }

    /// Action ids of the tools that count their executions.
    pub(crate) fn counters(&self) -> impl Iterator<Item = &str> {
        let counts = |role: &str| matches!(role, "counter" | "tier1" | "tier2" | "tier3");
        self.tools.iter().filter(move |(_, tool)| counts(tool.role)).map(|(aid, _)| aid.as_str())
    }

    /// Action ids of other tools that may share a counter with the tool `aid`.
    pub(crate) fn sharers<'a>(&'a self, aid: &'a str) -> impl Iterator<Item = &'a str> {
        let tiered = |role: &str| matches!(role, "tier1" | "tier2" | "tier3");
        let shares = self.tool(aid).is_some_and(|tool| tiered(tool.role));
        let others =
            self.tools.iter().filter(move |(other, tool)| shares && *other != aid && tiered(tool.role));
        others.map(|(other, _)| other.as_str())
    }

    /// Action id of the sleeping tool.
    pub(crate) fn sleep_aid(&self) -> Option<&str> {
        self.tools.iter().find(|(_, tool)| tool.role == "sleep").map(|(aid, _)| aid.as_str())
    }

    /// True if no peer with these roles has a tool `aid`. A name that another tool might have is not certain.
    pub(crate) fn is_unknown(&self, aid: &str) -> bool {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':' | '/' | '@');
        if aid.starts_with('_') || aid.starts_with("AID.PEERPROOF.") || aid.starts_with("AID.NET.") {
            return self.tools.keys().any(|known| one_more_or_less(known, aid)) || !aid.chars().all(plain);
        }
        aid.contains("NO.SUCH")
            || aid.contains("PEERPROOF-NONE")
            || !aid.chars().all(plain)
            || self.tools.keys().any(|known| one_more_or_less(known, aid))
    }

    /// True if the peer has a tool that may end the process.
    pub(crate) fn may_abort(&self) -> bool {
        !self.is("crash_kind", "throw") && self.tools.values().any(|tool| tool.role == "crash")
    }
}

/// True if `other` is `known` with one added or removed character that is not a digit.
fn one_more_or_less(known: &str, other: &str) -> bool {
    let (long, short) = if known.len() > other.len() { (known, other) } else { (other, known) };
    let (long, short): (Vec<char>, Vec<char>) = (long.chars().collect(), short.chars().collect());
    if long.len() != short.len() + 1 {
        return false;
    }
    let same = long.iter().zip(&short).take_while(|(left, right)| left == right).count();
    // Another digit may be another version of the tool.
    !long[same].is_ascii_digit() && long[same + 1..] == short[same..]
}
