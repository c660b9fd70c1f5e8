//! Rules about the form of every message: responses, requests and notifications.

use super::{Form, Kind, Need};
use crate::model::{Server, ends_opening};
use peerproof_engine::contract::face::{SessionTrace, Trace};
use peerproof_engine::data::finding::{Finding, Repair};
use peerproof_engine::data::json::Json;
use peerproof_json_rpc::frames::violations;
use peerproof_json_rpc::model::IdRule;

const MESSAGES: &str = "MCP-BAS-03";
const CODES: &str = "MCP-BAS-22";
/// Clause: requests of the server have ids.
const OWN_IDS: &str = "MCP-SRQ-01";
/// Clause about requests without a valid id.
const ODD_IDS: &str = "MCP-BAS-14";
/// Error codes that JSON-RPC reserves.
const RESERVED: std::ops::RangeInclusive<i64> = -32_768..=-32_100;
/// Error codes that JSON-RPC defines.
const BASE: [i64; 5] = [-32_700, -32_600, -32_601, -32_602, -32_603];

/// Faults in the form of messages.
pub(super) fn judge(_: &Trace<'_, Server>, heard: &SessionTrace<'_, Server>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (asked, unit, answer) in heard.answers().filter(|(_, unit, _)| !ends_opening(unit)) {
        // The answer itself is a fault.
        if unit.must_be_silent() {
            continue;
        }
        let needs_id = unit.allowed_answers().all(|(_, way)| way.rpc.id == IdRule::Own);
        let faults = of_response(answer.message, needs_id, Some(asked.step));
        // The answer may repeat the invalid id of its request.
        found.extend(faults.into_iter().filter(|fault| unit.clause != ODD_IDS || fault.reason != "id_type"));
    }
    for message in heard.output.iter().filter_map(|output| output.held.whole()) {
        if message.get("method").is_some() {
            found.extend(of_call(message));
        }
    }
    found
}

/// JSON pointers to the parts of a response that break the form of every response.
pub(crate) fn faulty_places(response: &Json) -> Vec<String> {
    let repairs = of_response(response, true, None).into_iter().filter(|fault| fault.clause.0 == MESSAGES);
    let places = repairs.filter_map(|fault| match fault.repair {
        Some(Repair::Set { at, .. }) if at.starts_with("/result") || at.starts_with("/error") => Some(at),
        _ => None,
    });
    places.collect()
}

/// Faults of one response. Rules that MCP narrows are judged by its own model.
fn of_response(response: &Json, needs_id: bool, step: Option<usize>) -> Vec<Finding> {
    let is_error = response.get("error").is_some();
    let base = violations(response).into_iter().filter(|finding| {
        // An error may omit its id if the message was not a request.
        !(finding.reason == "id_missing" && is_error && !needs_id)
    });
    let mut found: Vec<Finding> =
        base.map(|finding| Finding { clause: MESSAGES.into(), step, ..finding }).collect();
    let mut form = Form::of(response, step);
    if response.get("result").is_some() && !is_error {
        form.member(MESSAGES, "/result", Kind::Object, Need::Required);
    }
    if let Some(code) = response.pointer("/error/code").and_then(Json::as_i64)
        && RESERVED.contains(&code)
        && !BASE.contains(&code)
    {
        form.fault(
            CODES,
            "reserved_code",
            "/error/code",
            "no reserved error code except the five of JSON-RPC",
        );
    }
    found.append(&mut form.found);
    found
}

/// Faults of one request or notification of the server.
fn of_call(message: &Json) -> Vec<Finding> {
    let mut form = Form::of(message, None);
    if message.get("jsonrpc").and_then(Json::as_str) != Some("2.0") {
        form.fault(MESSAGES, "wrong_version", "/jsonrpc", "`jsonrpc` is the string \"2.0\"");
    }
    form.member(MESSAGES, "/params", Kind::Object, Need::Optional);
    match message.get("id") {
        None | Some(Json::String(_)) => {}
        Some(Json::Number(number)) if number.is_integral() => {}
        Some(_) => {
            form.fault(OWN_IDS, "id_type", "/id", "the id of a request is a string or an integer");
        }
    }
    form.found
}
