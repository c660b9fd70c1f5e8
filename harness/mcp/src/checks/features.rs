//! Resources, prompts, logging, completion, cancellation, progress, and requests of the server.

use serde_json::{Value, json};

use super::tools::ask;
use super::{callable, check};
use crate::model::{LEVELS, UNKNOWN_PROMPT, UNKNOWN_URI, arguments};
use crate::role::{call, role, sleeping};
use crate::sample;
use crate::server_knowledge::ServerKnowledge;
use crate::talk::Talk;
use peerproof_engine::data::check::{Check, Untestable};
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::plan::{Act, Capture, Plan};
use peerproof_engine::data::rng::Rng;

/// Variable that holds a uri.
const URI: &str = "uri";
/// Most items that are tried.
const ITEMS_MAX: usize = 5;
/// Time that a server may take to read a resource, milliseconds.
const READ_MS: u64 = 10_000;

/// Time for which the client does not answer, milliseconds.
const UNANSWERED_MS: u64 = 2_000;

/// Checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    [resources(), prompts(), logging(), cancellation(), progress(), requests()].concat()
}

fn resources() -> Vec<Check> {
    let checks = vec![
        check(
            "resources/read",
            "A listed resource can be read, and its contents conform to the schema.",
            &["MCP-RES-01", "MCP-RES-06"],
            |talk, _| {
                listed_first(talk);
                let uris = uris(talk)?;
                for uri in uris {
                    talk.request("resources/read", Some(json!({ "uri": uri })));
                    talk.last(|step| step.allow_ms = READ_MS);
                }
                Ok(())
            },
        ),
        check(
            "resources/unknown",
            "An unknown uri gets error -32002.",
            &["MCP-RES-02", "MCP-RES-03"],
            |talk, _| {
                talk.request("resources/read", Some(json!({ "uri": UNKNOWN_URI })));
                Ok(())
            },
        ),
        check(
            "malformed/read-without-uri",
            "A resources/read without uri gets error -32602.",
            &["MCP-RES-04"],
            |talk, _| {
                talk.request("resources/read", Some(json!({})));
                Ok(())
            },
        ),
        check(
            "resources/subscribe",
            "Subscribing to a listed uri and unsubscribing have results.",
            &["MCP-RES-05"],
            |talk, _| {
                if !ServerKnowledge::of(talk.facts()).declares("resources/subscribe") {
                    return Err(Untestable::new("not_declared", "the server does not declare `subscribe`"));
                }
                let uri = uris(talk)?.remove(0);
                talk.request("resources/subscribe", Some(json!({ "uri": uri })));
                talk.request("resources/unsubscribe", Some(json!({ "uri": uri })));
                Ok(())
            },
        ),
    ];
    checks.into_iter().map(|check| check.feature("resources")).collect()
}

/// Asks for the list of resources, and reads its first one.
fn listed_first(talk: &mut Talk<'_>) {
    talk.canary().request("resources/list", None);
    let capture = Capture {
        pointer: "/result/resources/0/uri".to_owned(),
        var: URI.to_owned(),
        secret: false,
        until: None,
    };
    if ServerKnowledge::of(talk.facts()).items("resources").is_empty() {
        return;
    }
    talk.last(|step| step.capture = Some(capture));
    talk.request_with("resources/read", "uri", URI).last(|step| step.allow_ms = READ_MS);
}

/// Uris of some listed resources.
fn uris(talk: &Talk<'_>) -> Result<Vec<String>, Untestable> {
    let items = ServerKnowledge::of(talk.facts()).items("resources");
    let uris: Vec<String> =
        items.iter().filter_map(|item| item["uri"].as_str()).take(ITEMS_MAX).map(str::to_owned).collect();
    match uris.is_empty() {
        true => Err(Untestable::new("no_resource", "the server lists no resource")),
        false => Ok(uris),
    }
}

fn prompts() -> Vec<Check> {
    let checks = vec![
        check(
            "prompts/get",
            "A listed prompt with its arguments returns messages that conform to the schema.",
            &["MCP-PRM-01"],
            |talk, _| {
                let prompts = listed_prompts(talk)?;
                for prompt in prompts {
                    let wanted = prompt["arguments"].as_array().into_iter().flatten();
                    let names = wanted.filter_map(|argument| argument["name"].as_str());
                    let arguments: serde_json::Map<String, Value> =
                        names.map(|name| (name.to_owned(), json!("1"))).collect();
                    talk.request(
                        "prompts/get",
                        Some(json!({ "name": prompt["name"], "arguments": arguments })),
                    );
                    talk.last(|step| step.allow_ms = READ_MS);
                }
                Ok(())
            },
        ),
        check(
            "prompts/unknown",
            "An unknown prompt gets error -32602.",
            &["MCP-PRM-02", "MCP-BAS-22"],
            |talk, _| {
                talk.request("prompts/get", Some(json!({ "name": UNKNOWN_PROMPT })));
                Ok(())
            },
        ),
        check(
            "prompts/missing-argument",
            "A prompt without an argument that it requires gets error -32602.",
            &["MCP-PRM-03"],
            |talk, _| {
                let needs = |prompt: &&Value| {
                    let arguments = prompt["arguments"].as_array();
                    arguments.into_iter().flatten().any(|argument| argument["required"] == true)
                };
                let prompts = listed_prompts(talk)?;
                let Some(prompt) = prompts.into_iter().find(needs) else {
                    return Err(Untestable::new("no_prompt", "no listed prompt requires an argument"));
                };
                talk.request("prompts/get", Some(json!({ "name": prompt["name"] })));
                Ok(())
            },
        ),
    ];
    let completion = vec![
        check(
            "completion/prompt-argument",
            "A completion of an argument of a prompt conforms to the schema.",
            &["MCP-UTL-06"],
            |talk, _| {
                let prompts = listed_prompts(talk)?;
                let has_argument = |prompt: &&Value| prompt.pointer("/arguments/0/name").is_some();
                let Some(prompt) = prompts.into_iter().find(has_argument) else {
                    return Err(Untestable::new("no_prompt", "no listed prompt has an argument"));
                };
                complete(talk, &prompt["name"], &prompt["arguments"][0]["name"]);
                Ok(())
            },
        ),
        check(
            "completion/unknown-prompt",
            "A completion for an unknown prompt gets error -32602.",
            &["MCP-UTL-07"],
            |talk, _| {
                complete(talk, &json!(UNKNOWN_PROMPT), &json!("peerproof"));
                Ok(())
            },
        ),
    ];
    let of_prompts = checks.into_iter().map(|check| check.feature("prompts"));
    of_prompts.chain(completion.into_iter().map(|check| check.feature("completions"))).collect()
}

fn complete(talk: &mut Talk<'_>, prompt: &Value, argument: &Value) {
    let params = json!({
        "ref": { "type": "ref/prompt", "name": prompt },
        "argument": { "name": argument, "value": "" },
    });
    talk.request("completion/complete", Some(params));
}

fn listed_prompts<'a>(talk: &Talk<'a>) -> Result<Vec<&'a Value>, Untestable> {
    let prompts: Vec<&Value> =
        ServerKnowledge::of(talk.facts()).items("prompts").iter().take(ITEMS_MAX).collect();
    if prompts.is_empty() {
        return Err(Untestable::new("no_prompt", "the server lists no prompt"));
    }
    Ok(prompts)
}

fn logging() -> Vec<Check> {
    let checks = vec![
        check("logging/levels", "Each of the eight log levels has a result.", &["MCP-UTL-02"], |talk, _| {
            for level in LEVELS {
                talk.request("logging/setLevel", Some(json!({ "level": level })));
            }
            Ok(())
        }),
        check(
            "malformed/log-level",
            "An unknown log level gets error -32602.",
            &["MCP-UTL-03"],
            |talk, _| {
                talk.request("logging/setLevel", Some(json!({ "level": "peerproof" })));
                Ok(())
            },
        ),
        check(
            "logging/messages",
            "Log messages conform to the schema, and none is below the level that was set.",
            &["MCP-UTL-04", "MCP-UTL-05"],
            |talk, _| {
                for level in ["debug", "error", "emergency"] {
                    talk.request("logging/setLevel", Some(json!({ "level": level })));
                    call_free_tools(talk)?;
                }
                Ok(())
            },
        ),
    ];
    checks.into_iter().map(|check| check.feature("logging")).collect()
}

/// Calls each tool without required arguments, and the tools of the roles `log` and `ask`.
pub(super) fn call_free_tools(talk: &mut Talk<'_>) -> Result<(), Untestable> {
    let facts = talk.facts();
    let tools = callable(facts);
    let free = tools.iter().filter(|tool| arguments::required(tool).is_empty());
    let mut calls: Vec<Value> =
        free.take(ITEMS_MAX).map(|tool| json!({ "name": tool["name"], "arguments": {} })).collect();
    for name in ["log", "ask"] {
        if let Some(role) = role(facts, name) {
            let arguments = role.get("arguments").cloned().unwrap_or_else(|| json!({}));
            calls.push(json!({ "name": role["name"], "arguments": arguments }));
        }
    }
    if calls.is_empty() {
        return Err(Untestable::new("no_callable_tool", "no callable tool works without arguments"));
    }
    calls.into_iter().for_each(|params| ask(talk, params));
    Ok(())
}

fn cancellation() -> Vec<Check> {
    let cancelled = "notifications/cancelled";
    vec![
        check(
            "cancellation/of-nothing",
            "A cancellation of an unknown or finished request gets no reply, and the session goes on.",
            &["MCP-CAN-02", "MCP-CAN-03"],
            move |talk, _| {
                let id = talk.request("ping", None);
                talk.aim("MCP-CAN-02");
                talk.notify(cancelled, Some(json!({ "requestId": id, "reason": "peerproof" })));
                talk.notify(cancelled, Some(json!({ "requestId": 777_777 })));
                talk.aim("MCP-CAN-03").canary().canary();
                Ok(())
            },
        ),
        check(
            "malformed/cancellation",
            "A malformed cancellation gets no reply, and the session goes on.",
            &["MCP-CAN-02", "MCP-CAN-03"],
            move |talk, _| {
                talk.aim("MCP-CAN-02");
                talk.notify(cancelled, None);
                talk.notify(cancelled, Some(json!({})));
                talk.notify(cancelled, Some(json!({ "requestId": { "a": 1 } })));
                talk.aim("MCP-CAN-03").canary().canary();
                Ok(())
            },
        ),
        check(
            "cancellation/in-flight",
            "A call that is cancelled in flight gets no error, and the session goes on.",
            &["MCP-CAN-01", "MCP-CAN-03"],
            move |talk, _| {
                let (params, ms) = sleeping(talk.facts(), "peerproof")?;
                talk.canary();
                let id = talk.queue_request("tools/call", Some(params));
                talk.act(Act::Wait { ms: (ms / 4).min(500) });
                talk.notify(cancelled, Some(json!({ "requestId": id })));
                talk.act(Act::Wait { ms: ms.min(5_000) });
                talk.aim("MCP-CAN-03").canary().last(|step| step.allow_ms = ms);
                Ok(())
            },
        )
        .roles(&["sleep"])
        .waits(),
    ]
}

fn progress() -> Vec<Check> {
    vec![
        check(
            "progress/tokens",
            "Progress comes only for the token of an active request, grows, and ends with the response.",
            &["MCP-PRG-01", "MCP-PRG-02", "MCP-PRG-03"],
            |talk, _| {
                let mut asked = 0;
                for tool in callable(talk.facts()).into_iter().take(ITEMS_MAX) {
                    let Some(arguments) = sample::valid(tool, false) else { continue };
                    let name = tool["name"].as_str().unwrap_or_default();
                    ask(talk, call(name, arguments.clone()));
                    for token in [json!(format!("peerproof-{asked}")), json!(1_000 + asked)] {
                        let mut params = call(name, arguments.clone());
                        params["_meta"] = json!({ "progressToken": token });
                        ask(talk, params);
                        asked += 1;
                    }
                }
                if let Ok((sleep, _)) = sleeping(talk.facts(), "peerproof") {
                    for token in [json!("peerproof"), json!(0), json!(7)] {
                        let mut params = sleep.clone();
                        params["_meta"] = json!({ "progressToken": token });
                        ask(talk, params);
                        asked += 1;
                    }
                }
                if asked == 0 {
                    return Err(Untestable::new(
                        "no_callable_tool",
                        "no tool is callable; see `call` under [features]",
                    ));
                }
                talk.canary().act(Act::Wait { ms: 300 });
                Ok(())
            },
        )
        .feature("tools")
        .waits(),
    ]
}

/// A check with a client of these capabilities that gives this answer.
fn with_client(
    id: &str,
    title: &str,
    clauses: &[&str],
    capabilities: Value,
    answers: Vec<(&'static str, Value)>,
) -> Check {
    let plan = move |facts: &Facts, _: &mut Rng| -> Result<Plan, Untestable> {
        let mut talk = Talk::declaring(facts, &capabilities);
        for (method, answer) in &answers {
            talk.answering(method, answer.clone());
        }
        if !answers.is_empty() {
            // An id that comes twice needs two requests.
            talk.aim("MCP-SRQ-02");
            call_free_tools(&mut talk)?;
        }
        call_free_tools(&mut talk)?;
        Ok(talk.finish())
    };
    Check::new(format!("mcp/stdio/{id}"), title, clauses.iter().copied(), "command", plan).feature("tools")
}

/// A check with a client that does not answer; other requests must be answered meanwhile.
fn unanswered() -> Check {
    let plan = |facts: &Facts, _: &mut Rng| -> Result<Plan, Untestable> {
        let all = json!({ "roots": { "listChanged": false }, "sampling": {}, "elicitation": {} });
        let mut talk = Talk::declaring(facts, &all);
        for method in ["roots/list", "sampling/createMessage", "elicitation/create"] {
            talk.answering(method, Value::Null);
        }
        let ask = role(facts, "ask").ok_or("the role `ask` is not mapped")?;
        let arguments = ask.get("arguments").cloned().unwrap_or_else(|| json!({}));
        talk.canary().aim("MCP-SRQ-02");
        let id =
            talk.queue_request("tools/call", Some(call(ask["name"].as_str().unwrap_or_default(), arguments)));
        talk.act(Act::Wait { ms: UNANSWERED_MS }).request("ping", None);
        talk.notify("notifications/cancelled", Some(json!({ "requestId": id })));
        talk.aim("MCP-CAN-03");
        Ok(talk.finish())
    };
    let title = "A server that waits for answers to its own requests still answers other requests.";
    Check::new("mcp/stdio/requests/unanswered", title, ["MCP-SRQ-02"], "command", plan)
        .feature("tools")
        .roles(&["ask"])
        .waits()
}

fn requests() -> Vec<Check> {
    let all = json!({ "roots": { "listChanged": false }, "sampling": {}, "elicitation": {} });
    let roots = json!({ "roots": [{ "uri": "file:///peerproof", "name": "peerproof" }] });
    let sampled = json!({
        "role": "assistant", "content": { "type": "text", "text": "peerproof" }, "model": "peerproof",
    });
    let elicited = json!({ "action": "decline" });
    let refused = json!({ "code": -32_601, "message": "the client does not have this" });
    vec![
        with_client(
            "requests/nothing-declared",
            "A server sends no requests or notifications of undeclared capabilities.",
            &["MCP-CAP-03", "MCP-CAP-05", "MCP-CAP-06", "MCP-INI-14"],
            json!({}),
            Vec::new(),
        ),
        with_client(
            "requests/answered",
            "Requests of the server have unique ids and conform to the schema.",
            &["MCP-SRQ-01", "MCP-SRQ-02", "MCP-SRQ-03"],
            all.clone(),
            vec![
                ("roots/list", roots),
                ("sampling/createMessage", sampled),
                ("elicitation/create", elicited),
            ],
        ),
        unanswered(),
        with_client(
            "requests/refused",
            "A server keeps running if its requests are refused.",
            &["MCP-SRQ-02"],
            all,
            vec![
                ("roots/list", refused.clone()),
                ("sampling/createMessage", refused.clone()),
                ("elicitation/create", refused),
            ],
        ),
    ]
}
