//! One connection to a server: its opening, its canary, and the answers to its own requests.

use serde_json::{Value, json};

use super::revision::{NEWEST, Revision};
use super::server_knowledge::ServerKnowledge;
use peerproof_engine::contract::boundary::UnmatchedFrame;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::plan::Plan;
use peerproof_json_rpc::frames;
use peerproof_json_rpc::model::code;
use peerproof_json_rpc::settings;

/// Request that opens a connection.
pub(crate) const INITIALIZE: &str = "initialize";
/// Notification that ends the opening.
pub(crate) const INITIALIZED: &str = "notifications/initialized";
/// Request that changes nothing.
pub(crate) const PING: &str = "ping";
/// Method with which clients of revision 2026-07-28 begin.
pub(crate) const DISCOVER: &str = "server/discover";

/// Member of `Plan::expect`: number of steps that only open the connection.
pub(crate) const OPENING: &str = "opening";
/// Member of `Plan::expect`: answers to requests of the server, by method.
pub(crate) const ANSWERS: &str = "answers";

/// Params of an opening with these client capabilities.
pub(crate) fn opening(revision: &str, capabilities: &Value) -> Value {
    json!({
        "protocolVersion": revision,
        "capabilities": capabilities,
        "clientInfo": { "name": "peerproof", "version": env!("CARGO_PKG_VERSION") },
    })
}

/// Revision that a connection asks for.
pub(crate) fn revision_asked(facts: &Facts) -> &str {
    let accepted = || ServerKnowledge::of(facts).revision().map_or(NEWEST.date(), Revision::date);
    facts.choices.get("revision").map_or_else(accepted, String::as_str)
}

/// Handling of a frame that answers no request of the client, with the reply to a request of the server. `None` for
/// a response or an array, which may be an answer.
pub fn unmatched_frame(facts: &Facts, plan: &Plan, frame: &[u8]) -> Option<UnmatchedFrame> {
    let Some(message) = frames::message(frame) else { return Some(UnmatchedFrame::default()) };
    if message.as_array().is_some() {
        return None;
    }
    if !frames::is_call(&message) {
        let is_response = message.get("result").is_some() || message.get("error").is_some();
        return (!is_response).then(UnmatchedFrame::default);
    }
    Some(UnmatchedFrame { reply: reply(facts, plan, &message) })
}

/// Answer to a request of the server: from the plan, else configured, else that of a client without capabilities.
fn reply(facts: &Facts, plan: &Plan, request: &Json) -> Option<Vec<u8>> {
    let id = request.get("id").filter(|id| matches!(id, Json::String(_) | Json::Number(_)))?;
    let method = request.get("method").and_then(Json::as_str)?;
    let planned = plan.expect.get(ANSWERS).and_then(|answers| answers.get(method)).cloned();
    let answer = planned.or_else(|| settings::answer(facts, method));
    let (name, value) = match &answer {
        Some(Value::Null) => return None,
        Some(answer) if answer.get("code").is_some() => ("error", answer.to_string()),
        Some(answer) => ("result", answer.to_string()),
        None if method == PING => ("result", "{}".to_owned()),
        None => {
            ("error", json!({ "code": code::METHOD, "message": "the client does not have this" }).to_string())
        }
    };
    let text = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"{name}\":{value}}}\n", id.to_text());
    Some(text.into_bytes())
}
