//! Trials of roles: calls that show whether a tool plays its role; and tools that may play one.

use serde_json::{Value, json};

use super::model::arguments::required;
use super::role::{ROLES, call, reads, role};
use super::sample;
use super::server_knowledge::ServerKnowledge;
use super::talk::Talk;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::payload::shorten;
use peerproof_engine::data::plan::Plan;
use peerproof_engine::data::transcript::{EventKind, Transcript};
use peerproof_engine::drive::peer::fill_template;
use peerproof_json_rpc::frames;

/// Texts for `echo`. A tool may fail to return their characters unchanged: it may quote them, or treat them as a
/// pattern.
const TEXTS: [&str; 2] = ["peerproof \"é\" 2006-01-02 %d {0} <b> one", "peerproof \"ü\" 15:04 %s $1 \\ two"];
/// Two lengths for `blob`, bytes.
const BYTES: [u64; 2] = [3, 1_000];
/// Longest call, milliseconds.
const CALL_MS: u64 = 10_000;
/// Time that `sleep` may take beyond its own, milliseconds.
const LATE_MS: u64 = 1_500;
/// Largest id of a call; those of canaries are larger.
const IDS_MAX: u64 = 100;

/// A trial of each mapped role.
pub(crate) fn plans(facts: &Facts) -> Vec<(&'static str, Plan)> {
    let plan = |name: &&'static str| {
        let capabilities = match *name {
            "ask" => json!({ "roots": {}, "sampling": {}, "elicitation": {} }),
            _ => json!({}),
        };
        let mut talk = Talk::declaring(facts, &capabilities);
        talk.canary();
        for params in calls(name, role(facts, name)?) {
            talk.request("tools/call", Some(params));
            talk.last(|step| step.allow_ms = CALL_MS);
        }
        Some((*name, talk.finish()))
    };
    ROLES.iter().filter_map(plan).collect()
}

/// Params of the calls of a trial.
fn calls(name: &str, role: &Value) -> Vec<Value> {
    let tool = role["name"].as_str().unwrap_or_default();
    let arguments = role.get("arguments").cloned().unwrap_or_else(|| json!({}));
    let filled = |bytes: u64| {
        let values = [("text", json!(TEXTS[0])), ("bytes", json!(bytes))];
        call(tool, fill_template(&arguments, &values).unwrap_or_else(|_| arguments.clone()))
    };
    match name {
        "echo" => {
            let arg = role["arg"].as_str().unwrap_or_default();
            TEXTS.iter().map(|text| call(tool, json!({ arg: text }))).collect()
        }
        "blob" => BYTES.map(filled).to_vec(),
        "counter" => vec![filled(0), filled(0)],
        _ => vec![filled(0)],
    }
}

/// Describes the difference between the tool and its role. `None` if it plays the role.
pub(crate) fn role_fault(facts: &Facts, name: &str, trial: &Transcript) -> Option<String> {
    let role = role(facts, name)?;
    let messages = frames::messages(&trial.stdout(0), 1_000);
    let id = |message: &Json| message.get("id").and_then(Json::as_u64).filter(|id| (2..IDS_MAX).contains(id));
    let mut answers: Vec<&Json> = messages.iter().filter(|message| id(message).is_some()).collect();
    answers.retain(|message| !frames::is_call(message));
    answers.sort_by_key(|message| id(message));
    if answers.len() < calls(name, role).len() {
        return Some("it does not answer".to_owned());
    }
    let is_failure = |answer: &&Json| {
        answer.pointer("/result/isError").and_then(Json::as_bool) == Some(true)
            || answer.get("result").is_none()
    };
    if let Some(failure) = answers.iter().find(|answer| is_failure(answer)) {
        return Some(format!("its call fails: {}", shorten(&failure.to_text(), 160)));
    }
    let has =
        |at: usize, text: &str| answers[at].has(|part| part.as_str().is_some_and(|it| it.contains(text)));
    let object = |at: usize, member: &str| {
        let text = answers[at].pointer("/result/content/0/text").and_then(Json::as_str);
        let text = text.and_then(|text| text.parse::<Json>().ok());
        let structured = answers[at].pointer("/result/structuredContent").cloned();
        text.into_iter().chain(structured).find_map(|object| object.get(member).cloned())
    };
    let why = match name {
        "echo" if !(has(0, TEXTS[0]) && has(1, TEXTS[1])) => "the text does not come back",
        "sleep" => {
            let (ms, took) = (role["ms"].as_u64().unwrap_or_default(), duration_ms(trial)?);
            if took < ms * 8 / 10 || took > ms + LATE_MS {
                return Some(format!("it takes {took} ms"));
            }
            let is_lost = role["arguments"].to_string().contains("{text}") && !has(0, TEXTS[0]);
            return is_lost.then(|| "the text does not come back".to_owned());
        }
        "blob" => {
            let is_long = |at: usize| {
                object(at, "data").and_then(|data| Some(data.as_str()?.len() as u64)) == Some(BYTES[at])
            };
            return (!is_long(0) || !is_long(1)).then(|| "its `data` has another length".to_owned());
        }
        "counter" => {
            let count = |at| object(at, "count").and_then(|count| count.as_u64());
            let grows = count(0).zip(count(1)).is_some_and(|(first, second)| second == first + 1);
            return (!grows).then(|| "its `count` does not grow by one".to_owned());
        }
        "log"
            if !messages.iter().any(|it| it.get("method") == Some(&Json::from("notifications/message"))) =>
        {
            "it does not log"
        }
        "ask" if !messages.iter().any(|it| frames::is_call(it) && it.get("id").is_some()) => {
            "it sends no request"
        }
        _ => return None,
    };
    Some(why.to_owned())
}

/// Time from the last call to the last output before the next step, ms.
fn duration_ms(trial: &Transcript) -> Option<u64> {
    let call = trial.plan.steps.len().checked_sub(2)?;
    let sent = |at: usize| {
        trial.events.iter().position(|event| matches!(event.kind, EventKind::Sent { step, .. } if step == at))
    };
    let (from, to) = (sent(call)?, sent(call + 1)?);
    let came =
        trial.events[from..to].iter().rev().find(|event| matches!(event.kind, EventKind::Received { .. }))?;
    Some(came.at_us.saturating_sub(trial.events[from].at_us) / 1_000)
}

/// Roles that read-only tools may play, the likeliest first. A trial shows which of them are played.
pub(crate) fn candidates(facts: &Facts) -> Vec<(&'static str, Value)> {
    let known = ServerKnowledge::of(facts);
    let (mut found, mut rare) = (Vec::new(), Vec::new());
    for tool in known.tools().iter().filter(|tool| reads(known, tool)) {
        let Some(arguments) = sample::valid(tool, false) else { continue };
        let (name, required) = (&tool["name"], required(tool));
        let members = tool.pointer("/inputSchema/properties").and_then(Value::as_object);
        let members: Vec<(&String, &Value)> =
            members.into_iter().flatten().filter(|(_, schema)| schema.get("enum").is_none()).collect();
        let of_type = |kinds: &'static [&str]| {
            let is_of =
                move |schema: &Value| schema["type"].as_str().is_some_and(|kind| kinds.contains(&kind));
            members.iter().filter(move |(_, schema)| is_of(schema)).map(|(arg, _)| *arg)
        };
        for arg in of_type(&["string"]).filter(|arg| required == [arg.as_str()]) {
            found.push(("echo", json!({ "name": name, "arg": arg })));
        }
        // A duration in seconds would be slow for milliseconds, so it comes first.
        for (arg, (value, ms)) in
            of_type(&["integer", "number"]).flat_map(|arg| [(2, 2_000), (1_200, 1_200)].map(|it| (arg, it)))
        {
            let with = |member: Option<&String>| {
                let mut arguments = arguments.clone();
                arguments[arg] = json!(value);
                member.into_iter().for_each(|member| arguments[member] = json!("{text}"));
                json!({ "name": name, "arguments": arguments, "ms": ms })
            };
            found.extend(of_type(&["string"]).take(1).map(|text| ("sleep", with(Some(text)))));
            found.push(("sleep", with(None)));
            let mut blob = arguments.clone();
            blob[arg] = json!("{bytes}");
            rare.push(("blob", json!({ "name": name, "arguments": blob })));
        }
        if required.is_empty() {
            found.push(("noargs", json!({ "name": name })));
            rare.extend(["counter", "log", "ask"].map(|role| (role, json!({ "name": name }))));
        }
        found.push(("any", json!({ "name": name, "arguments": arguments })));
    }
    rare.retain(|(role, _)| *role != "log" || known.declares("logging"));
    found.extend(rare);
    found
}
