//! The configuration vocabulary of the python_tool boundary.

use peerproof_engine::contract::boundary::{ConfigKey, Member, Placeholder};
use peerproof_engine::data::carriage::HTTP;
use peerproof_engine::data::clause::Side;
use peerproof_engine::data::facts::Facts;
use serde_json::{Value, json};

use super::probe;
use super::roles::{ROLES, maps_own, usual_entry};

/// Canonical name of the runtime's command; a configuration may call it `command`.
pub const RUNTIME: &str = "runtime";

/// Feature: the runtime runs containers.
pub(crate) const CONTAINER: &str = "container";

/// Feature: calls may continue without assurance.
pub(crate) const UNSAFE_OVERRIDE: &str = "unsafe_override";

/// Feature: extent to which guarantees are enforced.
pub(crate) const ENFORCEMENT: &str = "enforcement";

/// Feature: names of the enforced guarantees.
pub(crate) const GUARANTEES: &str = "guarantees";

/// Feature: the service supports handshakes.
pub(crate) const HANDSHAKE: &str = "handshake";

/// Feature: the service runs several calls at once.
pub(crate) const CONCURRENT: &str = "concurrent";

/// Derived feature: guarantees hold on every route.
pub(crate) const ENFORCED: &str = "enforced";

/// Known guarantees.
pub(crate) const NAMES: [&str; 6] = {
    let [write, read, network, subprocess, env_read, env_write] = &probe::GUARANTEES;
    [write.name, read.name, network.name, subprocess.name, env_read.name, env_write.name]
};

const REFUSAL: &[&str] = &["reply", "crash"];
const ENTRY: &[Member] = &[Member::string("entry"), Member::string("tool").optional()];

const fn claim(name: &'static str) -> ConfigKey {
    ConfigKey::feature(name, "The runner enforces this guarantee; same as its name in `guarantees`")
        .of(Side::Provider)
}

const fn role(name: &'static str) -> ConfigKey {
    ConfigKey::role(
        name,
        ENTRY,
        "Entry of the tool that plays this role; default: a tool of the scratch project",
    )
    .of(Side::Provider)
}

/// Every key that a configuration for a runner or a service may hold.
pub(crate) const KEYS: &[ConfigKey] = &[
    ConfigKey::command(
        "command",
        &[],
        "Command line of a local runner, started in the scratch project: one request on stdin, one reply on \
         stdout",
    ),
    ConfigKey::command(
        HTTP,
        &[Placeholder::optional("{port}"), Placeholder::optional("{addr}")],
        "Command line of a service, started in the scratch project, that takes calls on a port of \
         127.0.0.1; or { command, url, ready }. A url without a command is the address of a service that \
         already runs",
    ),
    ConfigKey::command(
        RUNTIME,
        &[Placeholder::required("{scenario}"), Placeholder::required("{results}")],
        "Command line of a runtime that makes the calls of a scenario and appends the result of each call \
         to a file; `command` with these placeholders means the same",
    ),
    ConfigKey::feature(CONTAINER, "Runtime: also calls tools in containers").of(Side::Consumer),
    ConfigKey::feature(
        UNSAFE_OVERRIDE,
        "Runtime: makes a call with `unsafe_override` even if its guarantees are not assured",
    )
    .of(Side::Consumer),
    ConfigKey::feature(HANDSHAKE, "Service: assures guarantees at /capabilities/handshake")
        .of(Side::Provider),
    ConfigKey::feature(CONCURRENT, "Service: a slow call does not delay the others").of(Side::Provider),
    ConfigKey::feature_with_values(
        ENFORCEMENT,
        &["enforced", "partial", "none"],
        "Extent to which guarantees are enforced: on all routes, on plain routes only, or not at all",
    )
    .of(Side::Provider),
    ConfigKey::feature_with_values(
        GUARANTEES,
        &NAMES,
        "Names of the guarantees that are enforced; default: all six",
    )
    .of(Side::Provider),
    ConfigKey::feature(
        ENFORCED,
        "Guarantees hold on every route; same as `enforcement` with the value enforced",
    )
    .of(Side::Provider),
    claim(NAMES[0]),
    claim(NAMES[1]),
    claim(NAMES[2]),
    claim(NAMES[3]),
    claim(NAMES[4]),
    claim(NAMES[5]),
    role("any"),
    role("echo"),
    role("value"),
    role("fail"),
    role("sleep"),
    role("blob"),
    role("noise"),
    role("quit"),
    role("spawn"),
    role("stdin"),
    role("write"),
    role("read"),
    role("connect"),
    role("process"),
    role("env_read"),
    role("env_write"),
    role("greet"),
    role("imported"),
    ConfigKey::choice(
        "refusal_status",
        &["200", "400"],
        "HTTP status of a refusal by a service; 400 stands for any 4xx",
    )
    .of(Side::Provider),
    ConfigKey::choice(
        "handshake_shortfall",
        &["partial", "none", "error"],
        "Reply to a handshake if the service cannot give every guarantee",
    )
    .of(Side::Provider),
    ConfigKey::choice("refusal", REFUSAL, "How the runner refuses a malformed request").of(Side::Provider),
    ConfigKey::choice("tool_exit", REFUSAL, "Outcome of a tool that ends its process").of(Side::Provider),
    ConfigKey::choice("unknown_guarantee", &["refuse", "ignore"], "Handling of an unknown guarantee")
        .of(Side::Provider),
    ConfigKey::choice(
        "env_read_block",
        &["refuse", "empty"],
        "Effect on a tool that reads the environment although a guarantee forbids it",
    )
    .of(Side::Provider),
    ConfigKey::choice(
        "caught_block",
        &["success", "failure"],
        "Outcome of a tool that catches the refusal of a forbidden operation",
    )
    .of(Side::Provider),
    ConfigKey::choice(
        "sandbox_unsupported",
        &["run", "refuse"],
        "Handling of a call with `sandbox` and without guarantees",
    )
    .of(Side::Provider),
    ConfigKey::choice(
        "order_of_calls",
        &["together", "one_by_one"],
        "Order of independent calls: all at once, or one by one",
    )
    .of(Side::Consumer),
    ConfigKey::choice(
        "local_guarantees_unsandboxed",
        &["send", "blocked"],
        "Handling of a local call with guarantees but without `sandbox`",
    )
    .of(Side::Consumer),
    ConfigKey::choice(
        "round_timeout_up",
        &["true", "false"],
        "The runtime rounds the timeout of a call up to whole seconds",
    )
    .of(Side::Consumer),
    ConfigKey::choice(
        "container_guarantees",
        &["run", "blocked"],
        "Handling of a container call with guarantees",
    )
    .of(Side::Consumer),
    ConfigKey::choice("over_size", &["refuse", "process"], "Handling of a request of more than 10 MB"),
    ConfigKey::choice("bom", &["ignore", "refuse"], "Handling of a byte order mark"),
    ConfigKey::DUPLICATE_KEYS,
    ConfigKey::LONE_SURROGATES,
    ConfigKey::BIG_INTEGERS,
    ConfigKey::limit_from("nesting_max", 64, "Levels of nesting that the peer accepts"),
    ConfigKey::STARTUP_MS,
];

/// Maps unmapped roles to the tools of the scratch project. Does nothing if the peer maps entries of its own,
/// because it need not find that project.
pub(crate) fn fill_roles(facts: &mut Facts) {
    if maps_own(facts) {
        return;
    }
    for name in ROLES {
        let usual = || json!({ "entry": usual_entry(name) });
        facts.roles.entry(name.to_owned()).or_insert_with(usual);
    }
}

/// Turns `enforcement` and `guarantees` into one claim per guarantee, and one for all routes.
pub(crate) fn spell_out(facts: &mut Facts) {
    let Some(level) = facts.features.remove(ENFORCEMENT) else { return };
    let named = facts.features.remove(GUARANTEES);
    let is_listed = |name: &str| match &named {
        Some(Value::Array(names)) => names.iter().any(|it| it == name),
        Some(Value::String(one)) => one == name,
        _ => true,
    };
    if level == "none" || level == Value::Bool(false) {
        return;
    }
    let claims = NAMES.into_iter().filter(|name| is_listed(name));
    facts.features.extend(claims.map(|name| (name.to_owned(), true.into())));
    if level != "partial" {
        facts.features.insert(ENFORCED.to_owned(), true.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_maps_entries_plays_what_it_maps() {
        let roles = |given: Value| {
            let mut facts = Facts::new(Side::Provider);
            facts.roles = serde_json::from_value(given).unwrap();
            fill_roles(&mut facts);
            facts.roles.len()
        };
        assert_eq!(roles(json!({})), ROLES.len());
        assert_eq!(roles(json!({"any": {"entry": "tools.peerproof:any", "tool": "t"}})), ROLES.len());
        assert_eq!(roles(json!({"any": {"entry": "mine:any"}, "echo": {"entry": "mine:echo"}})), 2);
        let keys = KEYS.iter().filter(|key| key.table() == "roles").map(|key| key.name);
        assert!(keys.eq(ROLES));
    }

    #[test]
    fn a_level_is_a_claim_for_each_guarantee() {
        let claims = |level: Value, names: Option<Value>| {
            let mut facts = Facts::new(Side::Provider);
            facts.features.insert(ENFORCEMENT.to_owned(), level);
            facts.features.extend(names.map(|names| (GUARANTEES.to_owned(), names)));
            spell_out(&mut facts);
            facts.features.into_keys().collect::<Vec<_>>()
        };
        assert_eq!(claims("none".into(), None), [""; 0]);
        assert_eq!(claims("partial".into(), Some(vec!["no_network"].into())), ["no_network"]);
        assert_eq!(claims("enforced".into(), None).len(), 7);
    }
}
