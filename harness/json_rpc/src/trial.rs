//! Trials of mapped roles: does each method behave as its role demands? Also finds features that are needed but not
//! claimed.

use serde_json::Value;

use super::frames;
use super::model::auth::UNAUTHORIZED;
use super::model::code;
use super::model::rate::LIMITED;
use super::role::{ROLES, Role, mapped};
use super::talk::{Talk, call, quoted};
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::payload::{Vars, shorten};
use peerproof_engine::data::plan::{Act, Plan};
use peerproof_engine::data::transcript::{EventKind, Transcript};

/// Duration that the role `sleep` is asked for, and the shortest accepted one, ms.
const SLEEP_MS: u64 = 400;
const SLEEP_MS_LEAST: u64 = 300;

/// Id of the trial call of a role.
fn id(name: &str) -> String {
    format!("peerproof-trial-{name}")
}

/// Id of the call before it, for roles that need two calls.
fn earlier(name: &str) -> String {
    format!("peerproof-earlier-{name}")
}

/// Trial conversations by role, for all mapped roles.
pub(crate) fn plans(facts: &Facts) -> Vec<(&'static str, Plan)> {
    let is_mapped = |name: &&&'static str| mapped(facts, name).is_some();
    ROLES.iter().filter(is_mapped).map(|name| (*name, plan(facts, &[*name]))).collect()
}

/// One conversation with the trial calls of these roles.
pub(crate) fn plan(facts: &Facts, names: &[&'static str]) -> Plan {
    let mut talk = Talk::plain(facts);
    for name in names {
        let Some(role) = mapped(facts, name) else { continue };
        let before = matches!(*name, "counter" | "sleep").then(|| earlier(name));
        for id in before.into_iter().chain([id(name)]) {
            let text = call(&role.method, params(name, &role).as_deref(), Some(&quoted(&id)));
            // The server may send other messages before its answer.
            talk.send(&text).last(|step| step.await_answers = 1);
        }
    }
    talk.finish()
}

/// Params of a role's trial call, as JSON text.
fn params(name: &str, role: &Role) -> Option<String> {
    match name {
        "echo" => Some(r#"{"probe":["echo",1]}"#.to_owned()),
        "sleep" => role.filled("ms", SLEEP_MS).ok().map(|params| params.to_string()),
        "blob" => role.filled("bytes", 3).ok().map(|params| params.to_string()),
        _ => Some(role.params.as_ref().map_or_else(|| "{}".to_owned(), Value::to_string)),
    }
}

/// Describes the difference between the method and its role. `None` if it plays the role.
pub(crate) fn role_fault(facts: &Facts, name: &str, trial: &Transcript) -> Option<String> {
    let out = trial.stdout(0);
    let answers = frames::messages(&out, 64);
    let Some(response) = answer(&answers, &id(name)) else {
        // A server that loses ids or writes invalid messages breaks a clause, whatever its role.
        return out.is_empty().then(|| "its call gets no response".to_owned());
    };
    if let Some(why) = contradicts(name, &answers, trial) {
        return Some(why);
    }
    let role = mapped(facts, name);
    let sent = role.as_ref().and_then(|role| params(name, role)).unwrap_or_default();
    let begins = |answer: &Json| answer.get("method").and_then(Json::as_str) == Some("stream_start");
    let is_played = match name {
        "stream" => answers.iter().any(begins) && response.get("result").is_some(),
        _ => {
            let subtracts = role.is_some_and(|role| role.expect.as_deref() == Some("difference"));
            plays(name, &sent, subtracts, response)
        }
    };
    (!is_played).then(|| answers_with(response))
}

fn answer<'a>(answers: &'a [Json], id: &str) -> Option<&'a Json> {
    answers.iter().find(|answer| answer.get("id").and_then(Json::as_str) == Some(id))
}

fn answers_with(response: &Json) -> String {
    format!("answers {}", shorten(&response.to_text(), 100))
}

/// Evidence that the method of a role is another one, whatever other faults the server has: it does not exist, does
/// not fail, does not wait or does not count.
pub(crate) fn contradicts(name: &str, answers: &[Json], trial: &Transcript) -> Option<String> {
    let response = answer(answers, &id(name))?;
    let count = |answer: &Json| answer.pointer("/result/count").and_then(Json::as_u64);
    let is_there = response.pointer("/error/code").and_then(Json::as_i64) != Some(code::METHOD);
    let is_another = match name {
        "fail" => response.get("result").is_some(),
        "sleep" if response.get("result").is_some() => match waited_ms(trial, &id(name)) {
            Some(ms) if ms < SLEEP_MS_LEAST => {
                return Some(format!("answers after {ms} ms instead of {SLEEP_MS} ms"));
            }
            _ => false,
        },
        "counter" => {
            let before = answer(answers, &earlier(name)).and_then(count);
            !is_there || before.is_some() && count(response) <= before
        }
        _ => !is_there,
    };
    is_another.then(|| answers_with(response))
}

/// Time from the call with this id to its answer, ms.
fn waited_ms(trial: &Transcript, id: &str) -> Option<u64> {
    let id = quoted(id);
    let holds = |bytes: &[u8]| memchr::memmem::find(bytes, id.as_bytes()).is_some();
    let is_call = |step: usize| match &trial.plan.steps.get(step)?.act {
        Act::Send { payload, .. } => payload.expand(&Vars::new()).ok().map(|bytes| holds(&bytes)),
        _ => None,
    };
    let mut sent_us = None;
    for event in trial.of(0) {
        match &event.kind {
            EventKind::Sent { step, .. } if is_call(*step) == Some(true) => sent_us = Some(event.at_us),
            EventKind::Received { bytes } if holds(&bytes.0) => {
                return Some(event.at_us.saturating_sub(sent_us?) / 1_000);
            }
            _ => {}
        }
    }
    None
}

/// True if `response` is right for a call of this role with `params`. `subtracts` applies to the role `named`.
pub(crate) fn plays(name: &str, params: &str, subtracts: bool, response: &Json) -> bool {
    let params = params.parse::<Json>().ok();
    let number = |name: &str| params.as_ref()?.get(name)?.as_i64();
    let result = response.get("result");
    let code = response.pointer("/error/code").and_then(Json::as_i64);
    match name {
        "echo" => result.is_some() && result == params.as_ref(),
        // A refused call never reached the method.
        "fail" => {
            let is_refusal = |code| {
                (-32602..=-32600).contains(&code) || [code::PARSE, UNAUTHORIZED, LIMITED].contains(&code)
            };
            result.is_none() && code.is_some_and(|code| !is_refusal(code))
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

/// True for a response that refuses an unsigned message.
pub(crate) fn is_unsigned(response: &Json) -> bool {
    response.pointer("/error/code").and_then(Json::as_i64) == Some(UNAUTHORIZED)
}

/// Features that the answers to the probes show as needed but that are not claimed: name and explanation.
pub(crate) fn undeclared(facts: &Facts, probes: &[Transcript]) -> Vec<(&'static str, &'static str)> {
    let refuses = |probe: &Transcript| frames::messages(&probe.stdout(0), 64).iter().any(is_unsigned);
    if facts.claims("auth") || !probes.iter().any(refuses) {
        return Vec::new();
    }
    vec![(
        "auth",
        "error -32003: the server refuses unsigned messages; export its key and set auth = { key_env = \
         \"NAME\" } under [features]",
    )]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::full_facts;
    use super::*;
    use peerproof_engine::data::clause::Side;

    #[test]
    fn a_method_that_does_something_else_misplays() {
        let played = [
            ("echo", r#"[1]"#, r#"{"result":[1]}"#, true),
            ("echo", r#"[1]"#, r#"{"result":[1.5]}"#, false),
            ("fail", "{}", r#"{"error":{"code":-32000}}"#, true),
            ("fail", "{}", r#"{"error":{"code":-32601}}"#, false),
            ("fail", "{}", r#"{"error":{"code":-32003}}"#, false),
            ("fail", "{}", r#"{"error":{"code":-32002}}"#, false),
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
        let mut facts = full_facts::facts(Side::Provider);
        facts.roles.retain(|name, _| name == "echo");
        facts.roles.insert("blob".to_owned(), json!({ "method": "b", "params": { "n": "{bytes}" } }));
        let plans = plans(&facts);
        assert_eq!(plans.iter().map(|(role, _)| *role).collect::<Vec<_>>(), ["echo", "blob"]);
        let sent = serde_json::to_value(&plans[1].1).unwrap().to_string();
        assert!(sent.contains(r#"\"params\":{\"n\":3}"#), "{sent}");
    }
}
