//! Rules about results of resources, prompts and completions.

use super::tools::{block, contents};
use super::{Form, Kind, Need, first_of_each, results, revision_of};
use crate::connection::PING;
use crate::model::Server;
use peerproof_engine::contract::face::{SessionTrace, Trace};
use peerproof_engine::data::finding::Finding;
use peerproof_engine::data::json::Json;

const CONTENTS: &str = "MCP-RES-01";
const MESSAGES: &str = "MCP-PRM-01";
const PONG: &str = "MCP-UTL-01";
const EMPTY_PONG: &str = "MCP-UTL-01b";
const COMPLETION: &str = "MCP-UTL-06";
/// Most values of a completion.
const VALUES_MAX: usize = 100;

/// Faults of these results.
pub(super) fn judge(trace: &Trace<'_, Server>, heard: &SessionTrace<'_, Server>) -> Vec<Finding> {
    let revision = revision_of(trace, heard.session);
    let count =
        |result: &Json, name: &str| result.get(name).and_then(Json::as_array).map_or(0, <[Json]>::len);
    let mut found = Vec::new();
    for (asked, _, result) in results(heard, PING) {
        let members = result.as_object().unwrap_or_default();
        // Each conversation has pings; only those about pings report this.
        let is_about = asked.aim.as_ref().is_some_and(|aim| aim.clause.0 == PONG);
        if is_about && members.iter().any(|(name, _)| name != "_meta") {
            let mut form = Form::part(result, "/result", "", asked.step);
            form.fault(EMPTY_PONG, "pong_members", "", "an empty result, or `_meta` alone");
            found.append(&mut form.found);
        }
    }
    for (asked, _, result) in results(heard, "resources/read") {
        let mut form = Form::part(result, "/result", "", asked.step);
        form.member(CONTENTS, "/contents", Kind::Array, Need::Required);
        (0..count(result, "contents"))
            .for_each(|at| contents(&mut form, CONTENTS, &format!("/contents/{at}")));
        found.append(&mut form.found);
    }
    for (asked, _, result) in results(heard, "prompts/get") {
        let mut form = Form::part(result, "/result", "", asked.step);
        form.member(MESSAGES, "/messages", Kind::Array, Need::Required);
        form.member(MESSAGES, "/description", Kind::Text, Need::Optional);
        for at in 0..count(result, "messages") {
            let role = format!("/messages/{at}/role");
            let is_known = |role: &str| matches!(role, "user" | "assistant");
            if !result.pointer(&role).and_then(Json::as_str).is_some_and(is_known) {
                form.fault(MESSAGES, "message_role", &role, "the role user or assistant");
            }
            block(&mut form, MESSAGES, &format!("/messages/{at}/content"), revision);
        }
        found.append(&mut form.found);
    }
    for (asked, _, result) in results(heard, "completion/complete") {
        let mut form = Form::part(result, "/result", "", asked.step);
        form.member(COMPLETION, "/completion", Kind::Object, Need::Required);
        if result.get("completion").and_then(Json::as_object).is_some() {
            form.member(COMPLETION, "/completion/values", Kind::Array, Need::Required);
            form.member(COMPLETION, "/completion/total", Kind::Number, Need::Optional);
            form.member(COMPLETION, "/completion/hasMore", Kind::Bool, Need::Optional);
            let values = result.pointer("/completion/values").and_then(Json::as_array).unwrap_or_default();
            if values.len() > VALUES_MAX || values.iter().any(|value| value.as_str().is_none()) {
                form.fault(COMPLETION, "values", "/completion/values", "at most 100 strings");
            }
        }
        found.append(&mut form.found);
    }
    first_of_each(found)
}
