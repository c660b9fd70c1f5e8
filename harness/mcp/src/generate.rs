//! Generates conversations: valid and malformed messages on an open connection. The model derives the allowed
//! replies.

use serde_json::{Value, json};

use super::figures;
use super::role::{call as params, callable, role};
use super::sample;
use super::server_knowledge::{LISTS, ServerKnowledge};
use super::talk::Talk;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::plan::Plan;
use peerproof_engine::data::rng::Rng;
use peerproof_json_rpc::talk::{UNKNOWN_METHOD, call};

/// Lines that are not a request, or not JSON.
const ODD: &[&str] = &[
    "",
    "{",
    "{}",
    "[]",
    "null",
    "true",
    "1",
    "\"text\"",
    "{\"jsonrpc\":\"2.0\"}",
    "{\"jsonrpc\":\"2.0\",\"id\":77001}",
    "{\"jsonrpc\":\"2.0\",\"method\":1,\"id\":77002}",
    "{\"jsonrpc\":\"1.0\",\"method\":\"ping\",\"id\":77003}",
    "{\"method\":\"ping\",\"id\":77004}",
    "{\"jsonrpc\":\"2.0\",\"result\":{},\"id\":77005}",
    "{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":null}",
    "{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"params\":[],\"id\":77006}",
    "{'jsonrpc':'2.0'}",
    "no JSON",
];

/// Most messages in one conversation.
const MESSAGES_MAX: u64 = 20;

/// Time that a call may take, milliseconds.
const CALL_MS: u64 = 10_000;

/// Params of a tool call: valid ones, or ones with a single fault. Slow tools are left out.
fn tool_call(facts: &Facts, rng: &mut Rng) -> Option<Value> {
    let mut tools = callable(facts);
    tools.retain(|tool| role(facts, "sleep").is_none_or(|sleep| sleep["name"] != tool["name"]));
    if tools.is_empty() {
        return None;
    }
    let tool = *rng.pick(&tools);
    let picked = |all: Vec<Value>, rng: &mut Rng| (!all.is_empty()).then(|| rng.pick(&all).clone());
    let arguments = match rng.below(4) {
        0 => picked(sample::invalid(tool).into_iter().map(|(_, bad)| bad).collect(), rng),
        1 => picked(sample::beyond(tool), rng),
        2 => sample::unusual(tool, rng),
        _ => sample::valid(tool, rng.chance(1, 2)),
    };
    Some(params(tool["name"].as_str()?, arguments?))
}

/// A random conversation with a server of these facts.
pub fn conversation(facts: &Facts, rng: &mut Rng) -> Plan {
    let mut talk = Talk::opened(facts);
    let known = ServerKnowledge::of(facts);
    talk.canary().act(figures::sample());
    for _ in 0..rng.range(1..=MESSAGES_MAX) {
        if rng.chance(1, 2)
            && let Some(params) = tool_call(facts, rng)
        {
            talk.request("tools/call", Some(params));
            talk.last(|step| step.allow_ms = CALL_MS);
            continue;
        }
        match rng.below(8) {
            0 => {
                talk.request("ping", None);
            }
            1 => {
                let list = rng.pick(&LISTS);
                talk.request(list.method, rng.chance(1, 2).then(|| json!({})));
            }
            2 => {
                talk.request(UNKNOWN_METHOD, rng.chance(1, 2).then(|| json!({ "a": 1 })));
            }
            3 => {
                talk.notify("notifications/peerproof", Some(json!({ "n": rng.below(9) })));
            }
            4 => {
                let names = known.items("prompts").iter().filter_map(|prompt| prompt["name"].as_str());
                let names: Vec<&str> = names.chain([super::model::UNKNOWN_PROMPT]).collect();
                let name = *rng.pick(&names);
                talk.request("prompts/get", Some(json!({ "name": name })));
            }
            5 => {
                let uris = known.items("resources").iter().filter_map(|item| item["uri"].as_str());
                let uris: Vec<&str> = uris.chain([super::model::UNKNOWN_URI]).collect();
                let uri = *rng.pick(&uris);
                talk.request("resources/read", Some(json!({ "uri": uri })));
            }
            6 => {
                let id = talk.fresh_id();
                let params: Value = rng.pick(&[json!([]), json!(1), json!(null), json!("x")]).clone();
                talk.send(&call("ping", Some(&params.to_string()), Some(&id.to_string()))).canary();
            }
            _ => {
                let line: &&str = rng.pick(ODD);
                talk.send(line).canary();
            }
        }
    }
    talk.canary().act(figures::sample()).finish()
}
