//! Calls of tools.

use serde_json::{Value, json};

use super::{callable, check};
use crate::model::arguments::{self, Fits};
use crate::model::{PENDING_AT_END, UNKNOWN_TOOL};
use crate::role::{call, sleeping};
use crate::rules::BESIDE_CALLS;
use crate::sample;
use crate::server_knowledge::ServerKnowledge;
use crate::talk::Talk;
use peerproof_engine::data::check::{Check, Untestable};
use peerproof_engine::data::plan::Act;
use peerproof_json_rpc::talk::call as line;

/// Most tools of one conversation.
const TOOLS_MAX: usize = 20;
/// Most faults that are tried with one tool.
const FAULTS_MAX: usize = 8;
/// Time that a server may take to end, milliseconds.
const END_MS: u64 = 3_000;
/// Largest length of a text that is too long, characters.
const LENGTH_MAX: usize = 100_000;
/// Time that the call of a tool may take, milliseconds.
const CALL_MS: u64 = 10_000;
/// Time that the refusal of a call may take, milliseconds.
const REFUSAL_MS: u64 = 2_000;

/// Checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    vec![
        check(
            "tools/unknown",
            "A call of a tool that does not exist gets error -32602, and no result.",
            &["MCP-TOL-01", "MCP-TOL-02", "MCP-TOL-13", "MCP-BAS-22"],
            |talk, _| {
                talk.request("tools/call", Some(call(UNKNOWN_TOOL, json!({}))));
                Ok(())
            },
        )
        .feature("tools"),
        check(
            "malformed/tools-call",
            "A call without a name, with a wrong one or with arguments that are an array gets error -32602.",
            &["MCP-TOL-03", "MCP-TOL-04"],
            |talk, _| malformed(talk),
        )
        .feature("tools"),
        check(
            "tools/valid-arguments",
            "A tool that is called with valid arguments returns a result that conforms to the schema.",
            &["MCP-TOL-07", "MCP-TOL-08", "MCP-TOL-09", "MCP-TOL-10"],
            |talk, _| valid(talk),
        )
        .feature("tools"),
        check(
            "tools/without-arguments",
            "Arguments may be left out where the tool requires none.",
            &["MCP-TOL-11"],
            |talk, _| without_arguments(talk),
        )
        .feature("tools"),
        check(
            "tools/invalid-arguments",
            "Arguments that break the schema of the tool get a result with `isError: true`.",
            &["MCP-TOL-05", "MCP-TOL-06"],
            |talk, _| faulty(talk, sample::invalid),
        )
        .feature("tools"),
        check(
            "tools/out-of-bounds",
            "Arguments beyond a bound of the schema of the tool do not succeed.",
            &["MCP-TOL-05b"],
            |talk, _| faulty(talk, beyond_bounds),
        )
        .feature("tools"),
        check(
            "malformed/task",
            "A server without tasks serves a call with a task.",
            &["MCP-TSK-01"],
            |talk, _| {
                if ServerKnowledge::of(talk.facts()).declares("tasks") {
                    return Err(Untestable::new("declared", "the server has tasks"));
                }
                let tools = tools(talk)?;
                let Some(tool) = tools.into_iter().find(|tool| arguments::required(tool).is_empty()) else {
                    return Err(Untestable::new("no_callable_tool", "each callable tool requires arguments"));
                };
                ask(talk, json!({ "name": name_of(tool), "arguments": {}, "task": { "ttl": 1_000 } }));
                Ok(())
            },
        )
        .feature("tools"),
        check(
            "tools/together",
            "Two calls in flight together each get their own content, and a ping is answered meanwhile.",
            &["MCP-TOL-12", BESIDE_CALLS],
            |talk, _| together(talk),
        )
        .feature("tools")
        .roles(&["sleep"]),
        check(
            "end/calls-under-way",
            "Calls in flight at the end of input are answered or dropped.",
            &[PENDING_AT_END],
            |talk, _| {
                let (params, ms) = sleeping(talk.facts(), "peerproof")?;
                talk.canary().aim(PENDING_AT_END);
                talk.queue_request("tools/call", Some(params));
                talk.act(Act::Finish).last(|step| step.allow_ms = ms + END_MS);
                Ok(())
            },
        )
        .feature("tools")
        .roles(&["sleep"])
        .waits(),
    ]
}

fn none_callable() -> Untestable {
    Untestable::new(
        "no_callable_tool",
        "no tool has `readOnlyHint: true`; name one under [roles], or set `call = \"any\"` under [features]",
    )
}

/// Tools that may be called, in one conversation.
fn tools<'a>(talk: &Talk<'a>) -> Result<Vec<&'a Value>, Untestable> {
    let mut tools = callable(talk.facts());
    tools.truncate(TOOLS_MAX);
    if tools.is_empty() { Err(none_callable()) } else { Ok(tools) }
}

fn name_of(tool: &Value) -> &str {
    tool["name"].as_str().unwrap_or_default()
}

fn malformed(talk: &mut Talk<'_>) -> Result<(), Untestable> {
    // A read-only tool without required arguments may accept a call without arguments.
    let there = callable(talk.facts()).into_iter().find(|tool| arguments::required(tool).is_empty());
    let name = there.map_or(UNKNOWN_TOOL, name_of).to_owned();
    for params in [
        json!({ "name": name, "arguments": [] }),
        json!({ "name": name, "arguments": "text" }),
        json!({}),
        json!({ "name": 7 }),
        json!({ "arguments": {} }),
    ] {
        let id = talk.fresh_id().to_string();
        talk.send(&line("tools/call", Some(&params.to_string()), Some(&id))).canary();
    }
    let id = talk.fresh_id().to_string();
    talk.send(&line("tools/call", None, Some(&id)));
    Ok(())
}

/// Calls a tool, and allows it time.
pub(super) fn ask(talk: &mut Talk<'_>, params: Value) {
    talk.request("tools/call", Some(params));
    talk.last(|step| step.allow_ms = CALL_MS);
}

fn valid(talk: &mut Talk<'_>) -> Result<(), Untestable> {
    let mut asked = 0;
    for tool in tools(talk)? {
        let given = talk.facts().roles.values().find(|role| role["name"] == tool["name"]);
        let named = given.and_then(|role| role.get("arguments")).cloned();
        let (least, most) = (sample::valid(tool, false), sample::valid(tool, true));
        let both = most.clone().filter(|most| least.as_ref() != Some(most));
        for arguments in named.into_iter().chain(least).chain(both) {
            ask(talk, call(name_of(tool), arguments));
            asked += 1;
        }
    }
    match asked {
        0 => Err(Untestable::new("no_arguments", "no valid arguments were found for any callable tool")),
        _ => Ok(()),
    }
}

fn without_arguments(talk: &mut Talk<'_>) -> Result<(), Untestable> {
    let free: Vec<&Value> =
        tools(talk)?.into_iter().filter(|tool| arguments::required(tool).is_empty()).collect();
    if free.is_empty() {
        return Err(Untestable::new("no_callable_tool", "each callable tool requires arguments"));
    }
    free.iter().for_each(|tool| ask(talk, json!({ "name": name_of(tool) })));
    Ok(())
}

/// Valid arguments, each with one value beyond a bound.
fn beyond_bounds(tool: &Value) -> Vec<(String, Value)> {
    let Some(good) = sample::valid(tool, false) else { return Vec::new() };
    let mut found = Vec::new();
    for (name, schema) in tool["inputSchema"]["properties"].as_object().into_iter().flatten() {
        let number = |bound: &str| schema[bound].as_i64();
        let length = |bound: &str| schema[bound].as_u64().and_then(|length| usize::try_from(length).ok());
        let long = length("maxLength").filter(|length| *length <= LENGTH_MAX);
        let short = length("minLength").and_then(|length| length.checked_sub(1));
        let values = [
            ("maximum", number("maximum").and_then(|most| most.checked_add(1)).map(Value::from)),
            ("minimum", number("minimum").and_then(|least| least.checked_sub(1)).map(Value::from)),
            ("maxLength", long.map(|length| "x".repeat(length + 1).into())),
            ("minLength", short.map(|length| "x".repeat(length).into())),
        ];
        for (bound, value) in values {
            let Some(value) = value else { continue };
            let mut bad = good.clone();
            bad[name] = value;
            if arguments::fit_value(tool, &bad) == Fits::Beyond {
                found.push((format!("{name:?} beyond its {bound}"), bad));
            }
        }
    }
    found
}

/// Calls tools with arguments with one fault each.
fn faulty(talk: &mut Talk<'_>, faults: fn(&Value) -> Vec<(String, Value)>) -> Result<(), Untestable> {
    let mut asked = 0;
    for tool in tools(talk)? {
        for (_, arguments) in faults(tool).into_iter().take(FAULTS_MAX) {
            ask(talk, call(name_of(tool), arguments));
            talk.last(|step| step.allow_ms = REFUSAL_MS);
            asked += 1;
        }
    }
    match asked {
        0 => Err(Untestable::new(
            "no_arguments",
            "no invalid arguments can be derived from the schemas of the callable tools",
        )),
        _ => Ok(()),
    }
}

fn together(talk: &mut Talk<'_>) -> Result<(), Untestable> {
    talk.canary().aim("MCP-TOL-12");
    for text in ["peerproof-one", "peerproof-two"] {
        let (params, _) = sleeping(talk.facts(), text)?;
        talk.queue_request("tools/call", Some(params));
    }
    talk.aim(BESIDE_CALLS).request("ping", None);
    talk.aim("MCP-TOL-12").last(|step| {
        step.allow_ms = CALL_MS;
        if let Act::Send { await_frames, .. } = &mut step.act {
            *await_frames = 3;
        }
    });
    Ok(())
}
