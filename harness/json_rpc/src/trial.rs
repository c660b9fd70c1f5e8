//! Whether a server's own methods play the roles that they are mapped to, and what its answers say of features.

use serde_json::Value;

use super::frames;
use super::model::auth::UNAUTHORIZED;
use super::role::{ROLES, Role, role};
use super::talk::{Talk, call, quoted};
use peerproof_engine::facts::Facts;
use peerproof_engine::json::Json;
use peerproof_engine::payload::shorten;
use peerproof_engine::plan::Plan;
use peerproof_engine::transcript::Transcript;

const ID: &str = "peerproof-trial";

/// A call for each role that is mapped.
pub fn plans(facts: &Facts) -> Vec<(&'static str, Plan)> {
    let plan = |name: &&'static str| {
        let role = role(facts, name)?;
        let text = call(&role.method, params(name, &role).as_deref(), Some(&quoted(ID)));
        Some((*name, Talk::plain(facts).send(&text).finish()))
    };
    ROLES.iter().filter_map(plan).collect()
}

/// What the role is called with, as JSON text.
fn params(name: &str, role: &Role) -> Option<String> {
    match name {
        "echo" => Some(r#"{"probe":["echo",1]}"#.to_owned()),
        "sleep" => role.filled("ms", 1).ok().map(|params| params.to_string()),
        "blob" => role.filled("bytes", 3).ok().map(|params| params.to_string()),
        _ => Some(role.params.as_ref().map_or_else(|| "{}".to_owned(), Value::to_string)),
    }
}

/// What came instead.
pub fn misplays(facts: &Facts, name: &str, trial: &Transcript) -> Option<String> {
    let answers = frames::messages(&trial.stdout(0), 64);
    let is_answer = |answer: &&Json| answer.get("id").and_then(Json::as_str) == Some(ID);
    let Some(response) = answers.iter().find(is_answer) else {
        return Some("no response comes for it".to_owned());
    };
    let sent = role(facts, name).and_then(|role| params(name, &role)).unwrap_or_default();
    let begins = |answer: &Json| answer.get("method").and_then(Json::as_str) == Some("stream_start");
    let is_played = match name {
        "stream" => answers.iter().any(begins) && response.get("result").is_some(),
        _ => {
            let role = role(facts, name);
            let subtracts = role.is_some_and(|role| role.expect.as_deref() == Some("difference"));
            plays(name, &sent, subtracts, response)
        }
    };
    (!is_played).then(|| format!("it answers {}", shorten(&response.to_text(), 100)))
}

/// Whether `response` is what the table of roles gives for a call with `params`; `subtracts` says so of role `named`.
pub fn plays(name: &str, params: &str, subtracts: bool, response: &Json) -> bool {
    let params = params.parse::<Json>().ok();
    let number = |name: &str| params.as_ref()?.get(name)?.as_i64();
    let result = response.get("result");
    let code = response.pointer("/error/code").and_then(Json::as_i64);
    match name {
        "echo" => result.is_some() && result == params.as_ref(),
        "fail" => {
            result.is_none() && code.is_some_and(|code| !(-32602..=-32600).contains(&code) && code != -32700)
        }
        "named" if subtracts => {
            let difference =
                number("minuend").zip(number("subtrahend")).and_then(|(from, less)| from.checked_sub(less));
            result.is_some() && result.and_then(Json::as_i64) == difference
        }
        "blob" => result.is_some_and(|result| result.get("data").and_then(Json::as_str) == Some("xxx")),
        "counter" => result.is_some_and(|result| result.get("count").and_then(Json::as_u64).is_some()),
        _ => result.is_some(),
    }
}

/// Whether a response refuses what is not signed.
pub fn is_unsigned(response: &Json) -> bool {
    response.pointer("/error/code").and_then(Json::as_i64) == Some(UNAUTHORIZED)
}

/// What the answers to the probes say of features that are not claimed.
pub fn untold(facts: &Facts, probes: &[Transcript]) -> Vec<(&'static str, &'static str)> {
    let refuses = |probe: &Transcript| frames::messages(&probe.stdout(0), 64).iter().any(is_unsigned);
    if facts.claims("auth") || !probes.iter().any(refuses) {
        return Vec::new();
    }
    vec![(
        "auth",
        "-32003: needs a key, as it refuses what is not signed: export the key and set auth = { key_env = \"NAME\" } \
         under [features]",
    )]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::usual;
    use super::*;
    use peerproof_engine::clause::Side;

    #[test]
    fn a_method_that_does_something_else_misplays() {
        let played = [
            ("echo", r#"[1]"#, r#"{"result":[1]}"#, true),
            ("echo", r#"[1]"#, r#"{"result":[1.5]}"#, false),
            ("fail", "{}", r#"{"error":{"code":-32000}}"#, true),
            ("fail", "{}", r#"{"error":{"code":-32601}}"#, false),
            ("named", r#"{"minuend":42,"subtrahend":23}"#, r#"{"result":19}"#, true),
            ("named", r#"{"minuend":5,"subtrahend":7}"#, r#"{"result":-2}"#, true),
            ("named", r#"{"minuend":5,"subtrahend":7}"#, r#"{"result":"yes"}"#, false),
            ("named", r#"{"minuend":5,"subtrahend":7}"#, r#"{"error":{"code":-32601}}"#, false),
            ("blob", "{}", r#"{"result":{"data":"xxx"}}"#, true),
            ("counter", "{}", r#"{"result":{"count":7}}"#, true),
            ("counter", "{}", r#"{"error":{"code":-32601}}"#, false),
            ("sleep", "{}", r#"{"error":{"code":-32602}}"#, false),
        ];
        for (name, params, response, is_played) in played {
            assert_eq!(plays(name, params, true, &response.parse().unwrap()), is_played, "{name} {response}");
        }
    }

    #[test]
    fn each_mapped_role_is_called_once() {
        let mut facts = usual::facts(Side::Provider);
        facts.roles.retain(|name, _| name == "echo");
        facts.roles.insert("blob".to_owned(), json!({ "method": "b", "params": { "n": "{bytes}" } }));
        let plans = plans(&facts);
        assert_eq!(plans.iter().map(|(role, _)| *role).collect::<Vec<_>>(), ["echo", "blob"]);
        let sent = serde_json::to_value(&plans[1].1).unwrap().to_string();
        assert!(sent.contains(r#"\"params\":{\"n\":3}"#), "{sent}");
    }
}
