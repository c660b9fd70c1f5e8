//! Finds out which conformance roles a server has and whether it takes batches, where its configuration does not say.
//!
//! Unmapped roles are tried once under the names of the reference's methods, and mapped where the method answers as
//! the table of roles says. The feature is probed only where the configuration has no `[features]` table.

use serde_json::{Value, json};

use super::frames;
use super::role::{reference_method, reference_role};
use super::talk::{Talk, UNKNOWN_METHOD, call, quoted};
use crate::facts::Facts;
use crate::json::Json;
use crate::payload::Payload;
use crate::plan::{Chunking, Plan};
use crate::transcript::Transcript;

/// Roles that are probed: id of the request, params.
const PROBES: &[(&str, &str)] = &[
    ("echo", r#"{"probe":["echo",1]}"#),
    ("fail", "{}"),
    ("named", r#"{"minuend":42,"subtrahend":23}"#),
    ("counter", "{}"),
];

const BATCH: &str = "peerproof-probe-batch";

/// The conversations that ask.
pub fn plans(facts: &Facts) -> Vec<Plan> {
    if !facts.commands.contains("command") {
        return Vec::new();
    }
    let mut talk = Talk::plain(facts);
    for (role, params) in PROBES.iter().filter(|(role, _)| !facts.roles.contains_key(*role)) {
        let text = call(&reference_method(role), Some(params), Some(&quoted(&id(role))));
        talk.push(Payload::text(text + "\n"), Chunking::Whole, 1);
    }
    // In a conversation of its own: a server without batches may answer it in any way.
    let mut batch = Talk::plain(facts);
    let text = format!("[{}]\n", call(UNKNOWN_METHOD, None, Some(&quoted(BATCH))));
    batch.push(Payload::text(text), Chunking::Whole, 1);
    vec![talk.finish(), batch.finish()]
}

fn id(role: &str) -> String {
    format!("peerproof-probe-{role}")
}

/// Completes the facts by what the probes showed.
pub fn complete(facts: &mut Facts, features_given: bool, probes: &[Transcript]) {
    let mut responses: Vec<Json> = Vec::new();
    let mut arrays = false;
    for transcript in probes {
        let out = transcript.stdout(0);
        for frame in frames::lines(&out, PROBES.len()).0 {
            let Ok(value) = frame.value else { continue };
            match value.as_array() {
                Some(items) => {
                    arrays |= items.iter().any(|item| item.get("id").and_then(Json::as_str) == Some(BATCH));
                }
                None => responses.push(value),
            }
        }
    }
    for (role, params) in PROBES {
        let id = id(role);
        let response =
            responses.iter().find(|response| response.get("id").and_then(Json::as_str) == Some(&id));
        let result = response.and_then(|response| response.get("result"));
        let code = response.and_then(|response| response.pointer("/error/code")).and_then(Json::as_i64);
        let plays = match *role {
            "echo" => result.is_some() && result == params.parse::<Json>().ok().as_ref(),
            "fail" => {
                result.is_none()
                    && code.is_some_and(|code| !(-32602..=-32600).contains(&code) && code != -32700)
            }
            "named" => result.and_then(Json::as_i64) == Some(19),
            _ => result.is_some_and(|result| result.get("count").and_then(Json::as_u64) == Some(1)),
        };
        if plays && !facts.roles.contains_key(*role) {
            facts.roles.insert((*role).to_owned(), reference_role(role));
        }
    }
    if !features_given && !facts.features.contains_key("batch") {
        facts.features.insert("batch".to_owned(), Value::Bool(arrays));
    }
    // A configuration that names features and says nothing of batches has them: they are on by default.
    if features_given && !facts.features.contains_key("batch") {
        facts.features.insert("batch".to_owned(), json!(true));
    }
}
