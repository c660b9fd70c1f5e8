//! Detects roles, batches and the four methods of the profile, as far as the configuration does not name them.
//!
//! Unmapped roles are tried once under the names of the reference's methods. A role is mapped if the method answers
//! as the table of roles demands. Features are probed only without a `[features]` table. A server has
//! `profile_methods` if none of these methods is answered with -32601.

use serde_json::{Value, json};

use super::frames;
use super::model::METHODS;
use super::model::code::METHOD as METHOD_NOT_FOUND;
use super::role::{ROLES, mapped, reference_method, reference_role};
use super::talk::{Talk, UNKNOWN_METHOD, call, quoted};
use super::trial;
use peerproof_engine::data::carriage::HTTP;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Chunking, Plan};
use peerproof_engine::data::transcript::Transcript;

/// Probed roles and the params of their calls.
const PROBES: &[(&str, &str)] = &[
    ("echo", r#"{"probe":["echo",1]}"#),
    ("fail", "{}"),
    ("named", r#"{"minuend":42,"subtrahend":23}"#),
    ("counter", "{}"),
    ("sleep", r#"{"ms":1}"#),
    ("blob", r#"{"bytes":3}"#),
];

const BATCH: &str = "peerproof-probe-batch";

/// Probe conversations.
pub(crate) fn plans(facts: &Facts) -> Vec<Plan> {
    if !facts.commands.contains("command") && !facts.commands.contains(HTTP) {
        return Vec::new();
    }
    let roles = PROBES.iter().filter(|(role, _)| !facts.roles.contains_key(*role));
    let mut asked: Vec<String> = roles
        .map(|(role, params)| call(&reference_method(role), Some(params), Some(&quoted(&id(role)))))
        .collect();
    // All these methods must refuse the empty params, so the call shows that a method exists without any effect.
    let methods = METHODS.iter().filter(|_| !facts.features.contains_key("profile_methods"));
    asked.extend(methods.map(|method| call(method, Some("{}"), Some(&quoted(&id(method))))));
    if asked.is_empty() {
        // Shows at least that the peer answers.
        asked.push(call(UNKNOWN_METHOD, None, Some(&quoted(&id("nobody")))));
    }
    let mut talk = Talk::plain(facts);
    for text in asked {
        talk.push(Payload::text(text + "\n"), Chunking::Whole, 1);
    }
    // The batch has a conversation of its own, because a server without batches may answer it in any way.
    let mut batch = Talk::plain(facts);
    let text = format!("[{}]\n", call(UNKNOWN_METHOD, None, Some(&quoted(BATCH))));
    batch.push(Payload::text(text), Chunking::Whole, 1);
    let mut plans = vec![talk.finish(), batch.finish()];
    let configured = configured(facts);
    if !configured.is_empty() {
        plans.push(trial::plan(facts, &configured));
    }
    plans
}

/// Roles that the configuration maps.
fn configured(facts: &Facts) -> Vec<&'static str> {
    ROLES.iter().copied().filter(|name| mapped(facts, name).is_some()).collect()
}

fn id(role: &str) -> String {
    format!("peerproof-probe-{role}")
}

/// Completes the facts from the probes.
pub(crate) fn complete(facts: &mut Facts, features_given: bool, probes: &[Transcript]) {
    let mut responses: Vec<Json> = Vec::new();
    let mut arrays = false;
    for transcript in probes {
        let out = transcript.stdout(0);
        for value in frames::messages(&out, 2 * (PROBES.len() + METHODS.len()) + 1_000) {
            match value.as_array() {
                Some(items) => {
                    arrays |= items.iter().any(|item| item.get("id").and_then(Json::as_str) == Some(BATCH));
                }
                None => responses.push(value),
            }
        }
    }
    // The mapped roles are tried before others are added.
    for name in configured(facts) {
        let why = probes.iter().find_map(|probe| trial::contradicts(name, &responses, probe));
        if let Some((why, role)) = why.zip(mapped(facts, name)) {
            facts.misfits.insert(name.to_owned(), format!("{} as role `{name}`: {why}", role.method));
        }
    }
    let answer = |name: &str| {
        let id = id(name);
        responses.iter().find(|response| response.get("id").and_then(Json::as_str) == Some(&id))
    };
    for (role, params) in PROBES {
        let response = answer(role);
        // The counter of a fresh process starts with one.
        let is_first = |response: &Json| {
            *role != "counter" || response.pointer("/result/count").and_then(Json::as_u64) == Some(1)
        };
        let plays =
            response.is_some_and(|response| trial::plays(role, params, true, response) && is_first(response));
        if plays && !facts.roles.contains_key(*role) {
            facts.roles.insert((*role).to_owned(), reference_role(role));
        }
    }
    if facts.shared {
        // Other clients of the server count as well.
        facts.roles.remove("counter");
    }
    if !features_given && !facts.features.contains_key("batch") {
        facts.features.insert("batch".to_owned(), Value::Bool(arrays));
    }
    if !features_given && !facts.features.contains_key("profile_methods") {
        let is_there = |method: &&str| {
            let code = |response: &Json| response.pointer("/error/code").and_then(Json::as_i64);
            answer(method).is_some_and(|response| code(response) != Some(METHOD_NOT_FOUND))
        };
        facts.features.insert("profile_methods".to_owned(), Value::Bool(METHODS.iter().all(is_there)));
    }
    // Batches are supported by default if the configuration names features but not batches.
    if features_given && !facts.features.contains_key("batch") {
        facts.features.insert("batch".to_owned(), json!(true));
    }
}

/// Completes the facts from a recorded conversation. A reply that is an array shows batches; a stream shows
/// streaming.
pub(crate) fn complete_recorded(facts: &mut Facts, transcript: &Transcript) {
    let out = transcript.stdout(0);
    let messages = frames::messages(&out, out.len());
    let mut shows = |feature: &str, shown: &dyn Fn(&Json) -> bool| {
        let is_shown = || messages.iter().any(shown);
        if !facts.features.contains_key(feature) && is_shown() {
            facts.features.insert(feature.to_owned(), json!(true));
        }
    };
    shows("batch", &|value| value.as_array().is_some());
    shows("streaming", &|value| value.get("method").and_then(Json::as_str) == Some("stream_start"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use peerproof_engine::data::clause::Side;
    use peerproof_engine::data::plan::Act;

    /// A server with all roles mapped is probed as well.
    #[test]
    fn whoever_maps_every_role_is_asked_all_the_same() {
        let facts = crate::full_facts::facts(Side::Provider);
        assert!(PROBES.iter().all(|(role, _)| facts.roles.contains_key(*role)));
        assert!(facts.features.contains_key("profile_methods"));
        for plan in plans(&facts) {
            assert!(plan.steps.iter().any(|step| matches!(step.act, Act::Send { .. })), "{plan:?}");
        }
        assert!(!plans(&facts).is_empty());
    }
}
