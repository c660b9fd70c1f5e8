//! Finds out which conformance roles and features a toolhost has, where its configuration does not say.
//!
//! Unmapped roles are tried once under the reference's action ids and mapped where the tool answers as the table of
//! roles says. Features are probed only where the configuration has no `[features]` table.

use serde_json::{Value, json};

use super::expect::{Allowed, Expect, Outcome, parse};
use super::role::{ROLES, reference_aid, role};
use super::talk::{Request, Talk, quoted};
use crate::clause::Side;
use crate::facts::Facts;
use crate::json::{self as strict, DecodeLimits, Json};
use crate::payload::Payload;
use crate::plan::{Act, Chunking, Fixture, Manner, Plan};
use crate::transcript::{Kind, Transcript};

/// How leases are obtained from the reference, and tried from peers that say nothing about it.
pub fn default_lease() -> Value {
    json!({
        "issue": {"aid": "_lease.issue", "tool_aid": "{aid}", "tier": "{tier}", "ttl_ms": "{ttl_ms}"},
        "token": "/token_id"
    })
}

/// Clause under which probes are filed; they are never judged.
const CLAUSE: &str = "TH-FRAME-01";

/// The conversations that ask.
pub fn plans(facts: &Facts) -> Vec<Plan> {
    if facts.side == Side::Consumer {
        return Vec::new();
    }
    let mut plans = Vec::new();
    if facts.commands.contains("serve") {
        plans.push(serve_plan(facts));
        if !facts.features.contains_key("lease") {
            plans.push(lease_plan(facts));
        }
        plans.push(crash_plan(facts));
    } else if facts.commands.contains("run") {
        plans.push(run_plan(facts));
    }
    plans
}

fn anything() -> Expect {
    Expect::new(CLAUSE, Allowed::of(Outcome::Any))
}

fn aid_of(facts: &Facts, name: &str) -> String {
    role(facts, name).map_or_else(|| reference_aid(name), |role| role.aid)
}

/// Every role in its place; `crash` has a plan of its own because it may end the process.
fn asked_roles(facts: &Facts) -> Vec<(&'static str, &'static str)> {
    ROLES.iter().copied().filter(|(name, _)| *name != "crash" && !facts.roles.contains_key(*name)).collect()
}

fn input_of(name: &str, input: &str) -> Payload {
    if name == "http_get" {
        Payload::text("\"{\\\"url\\\":\\\"http://127.0.0.1:").var("web.port").then(Payload::text("/\\\"}\""))
    } else {
        Payload::text(quoted(input))
    }
}

fn web(talk: &mut Talk<'_>) {
    talk.fixture(Fixture::Listener {
        name: "web".to_owned(),
        status: 200,
        location: None,
        body: Payload::text("probe"),
        manner: Manner::default(),
    });
}

fn serve_plan(facts: &Facts) -> Plan {
    let mut talk = Talk::serve(facts);
    web(&mut talk);
    for (name, input) in asked_roles(facts) {
        let request = Request::aid(&reference_aid(name)).payload("input_json", input_of(name, input));
        talk.send(request.line(), anything());
    }
    let (aid, input) = repeatable(facts);
    for _ in 0..2 {
        talk.send(Request::aid(&aid).input(&input).key("peerproof-probe").line(), anything());
    }
    talk.finish();
    talk.plan()
}

/// A tool that shows whether a repeated key runs it again: the counter where there is one.
fn repeatable(facts: &Facts) -> (String, String) {
    match role(facts, "counter").or_else(|| role(facts, "any")) {
        Some(role) => (role.aid, role.input.map_or_else(|| "{}".to_owned(), |input| input.to_string())),
        None => (reference_aid("counter"), "{}".to_owned()),
    }
}

fn lease_plan(facts: &Facts) -> Plan {
    let mut talk = Talk::serve_env(facts, &[("MACHINA_LEASE_ENFORCE", "1")]);
    let request = Request::aid("_lease.issue")
        .member("tool_aid", quoted(&aid_of(facts, "tier1")))
        .member("tier", "1")
        .member("ttl_ms", "10000");
    talk.send(request.line(), anything());
    talk.capture("/token_id", "token", true);
    talk.finish();
    talk.plan()
}

fn crash_plan(facts: &Facts) -> Plan {
    let mut talk = Talk::serve(facts);
    let request = Request::aid(&aid_of(facts, "crash")).input("{}");
    talk.send(request.line(), anything());
    talk.finish();
    talk.plan()
}

fn run_plan(facts: &Facts) -> Plan {
    let mut talk = Talk::runs(facts);
    web(&mut talk);
    for (name, input) in asked_roles(facts) {
        let body = Request::empty().payload("input_json", input_of(name, input)).body();
        talk.add_session("run", &[("aid", &reference_aid(name))], &[]);
        talk.send_as(body, Chunking::Whole, 0, anything());
        talk.act(Act::Finish);
    }
    talk.plan()
}

/// Completes the facts by what the probes showed.
pub fn complete(facts: &mut Facts, features_given: bool, probes: &[Transcript]) {
    let asked = asked_roles(facts);
    let serve = facts.commands.contains("serve");
    let mut leases = false;
    let mut repeats = false;
    for (index, transcript) in probes.iter().enumerate() {
        let replies = replies(transcript, serve);
        let is_lease = index == 1 && probes.len() == 3;
        let is_crash = serve && index + 1 == probes.len() && index > 0;
        if is_lease {
            leases = replies
                .first()
                .and_then(|reply| reply.as_ref()?.get("token_id")?.as_str().map(str::is_empty))
                == Some(false);
        } else if is_crash {
            if !facts.roles.contains_key("crash") && crashes(&replies, transcript, facts) {
                map(facts, "crash");
            }
        } else {
            for ((name, input), reply) in asked.iter().zip(&replies) {
                if reply.as_ref().is_some_and(|reply| plays(name, input, reply)) {
                    map(facts, name);
                }
            }
            repeats = serve && repeated(&replies);
        }
    }
    if !facts.roles.contains_key("any")
        && let Some(echo) = role(facts, "echo")
    {
        facts.roles.insert("any".to_owned(), json!({"aid": echo.aid, "input": {"any": 1}}));
    }
    if features_given {
        for feature in ["lease"] {
            if facts.features.get(feature) == Some(&Value::Bool(true)) {
                facts.features.insert(feature.to_owned(), default_lease());
            }
        }
        return;
    }
    let has = |facts: &Facts, role: &str| facts.roles.contains_key(role);
    if repeats {
        facts.features.insert("idempotency".to_owned(), Value::Bool(true));
    }
    if leases {
        facts.features.insert("lease".to_owned(), default_lease());
    }
    if has(facts, "put") && has(facts, "get") {
        facts.features.insert("ds_state".to_owned(), Value::Bool(true));
    }
    if has(facts, "http_get") {
        facts.features.insert("http_get".to_owned(), Value::Bool(true));
    }
}

fn map(facts: &mut Facts, name: &str) {
    facts.roles.insert(name.to_owned(), json!({ "aid": reference_aid(name) }));
}

/// The reply to each step: lines of a serve session, or whole outputs of run sessions.
fn replies(transcript: &Transcript, serve: bool) -> Vec<Option<Json>> {
    let decode =
        |bytes: &[u8]| strict::decode(bytes, &DecodeLimits::default()).ok().map(|decoded| decoded.value);
    if serve {
        let out = transcript.stdout(0);
        return out.split(|byte| *byte == b'\n').take(transcript.plan.steps.len()).map(decode).collect();
    }
    (0..transcript.plan.sessions.len()).map(|session| decode(&transcript.stdout(session))).collect()
}

fn output(reply: &Json) -> Option<Json> {
    if reply.get("ok").and_then(Json::as_bool) != Some(true) {
        return None;
    }
    parse(reply.get("output_json")?.as_str()?)
}

/// Whether a reply is what the table of roles says for the probing input.
fn plays(name: &str, input: &str, reply: &Json) -> bool {
    if name == "fail" {
        return reply.get("status").and_then(Json::as_str) == Some("TOOL_ERROR")
            && reply.get("error").and_then(Json::as_str).is_some_and(|error| error.contains("probe"));
    }
    let Some(output) = output(reply) else { return false };
    match name {
        "any" | "put" | "remove" | "noise" => true,
        "echo" => Some(output) == parse(input),
        "counter" | "tier1" | "tier2" | "tier3" => output.get("count").and_then(Json::as_u64).is_some(),
        "get" => output.get("artifact").is_some(),
        "sleep" => output.get("slept_ms").is_some(),
        "blob" => output.get("data").and_then(Json::as_str) == Some("xxx"),
        "http_get" => {
            output.get("status").and_then(Json::as_u64) == Some(200)
                && output.get("body").and_then(Json::as_str) == Some("probe")
        }
        _ => false,
    }
}

/// A tool that is there and crashes answers `TOOL_ERROR` or ends the process; one that is not there is refused.
fn crashes(replies: &[Option<Json>], transcript: &Transcript, facts: &Facts) -> bool {
    match replies.first().and_then(Option::as_ref) {
        Some(reply) => reply.get("status").and_then(Json::as_str) == Some("TOOL_ERROR"),
        None => {
            facts.roles.contains_key("echo")
                && transcript.events.iter().any(|event| matches!(event.kind, Kind::Exited { .. }))
        }
    }
}

/// Whether the second of two requests with one key shows a sign of being answered from a cache.
fn repeated(replies: &[Option<Json>]) -> bool {
    let answered: Vec<&Json> = replies.iter().flatten().collect();
    let [.., first, second] = answered.as_slice() else { return false };
    let hit = second.get("idempotent_hit").and_then(Json::as_bool) == Some(true);
    let count = |reply: &Json| output(reply).and_then(|output| output.get("count").and_then(Json::as_u64));
    hit || (count(first).is_some() && count(first) == count(second))
}
