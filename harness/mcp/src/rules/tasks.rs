//! Rules about tasks: form, states and results.

use std::collections::BTreeMap;

use super::{Form, Kind, Need, first_of_each};
use crate::model::{Server, Session, arguments, is_terminal};
use crate::server_knowledge::ServerKnowledge;
use peerproof_engine::contract::face::{SessionTrace, Trace};
use peerproof_engine::data::finding::Finding;
use peerproof_engine::data::json::Json;

const FORM: &str = "MCP-TSK-02";
const STATES: &str = "MCP-TSK-03";
const CANCELLATION: &str = "MCP-TSK-04";
const CANCELLED: &str = "cancelled";
/// JSON pointer to the id of the task that a result belongs to.
const RELATED: &str = "/_meta/io.modelcontextprotocol~1related-task/taskId";

/// Findings about tasks.
pub(super) fn judge(trace: &Trace<'_, Server>, heard: &SessionTrace<'_, Server>) -> Vec<Finding> {
    let nobody = Session::default();
    let session = trace.state.session(heard.session).unwrap_or(&nobody);
    let known = ServerKnowledge::of(&trace.transcript.facts);
    if !session.declares(known, arguments::TASKS) {
        return Vec::new();
    }
    let mut found = Vec::new();
    // Last status of each task, and true if its result was returned.
    let mut states: BTreeMap<&str, &str> = BTreeMap::new();
    let mut awaited: BTreeMap<&str, bool> = BTreeMap::new();
    for (asked, unit, answer) in heard.answers() {
        let (Some(method), Some(params)) = (unit.extra.method.as_deref(), unit.extra.params.as_ref()) else {
            continue;
        };
        let Some(result) = answer.message.get("result").filter(|result| result.as_object().is_some()) else {
            if method == "tasks/result"
                && let Some(id) = params.get("taskId").and_then(Json::as_str)
            {
                awaited.insert(id, false);
            }
            continue;
        };
        let mut form = Form::part(result, "/result", "", asked.step);
        let id = params.get("taskId").and_then(Json::as_str).unwrap_or_default();
        let status = result.get("status").and_then(Json::as_str).unwrap_or_default();
        match method {
            "tools/call" if arguments::makes_task(known, params) => created(&mut form),
            "tasks/get" => {
                let before = states.insert(id, status).filter(|before| is_terminal(before));
                if let Some(before) = before.filter(|before| *before != status) {
                    let clause = if before == CANCELLED { CANCELLATION } else { STATES };
                    form.fault(clause, "state_changed", "/status", &format!("{before:?}, as before"));
                }
                match awaited.get(id) {
                    Some(_) if !is_terminal(status) => {
                        let expected = "a finished task, because tasks/result waits for its end";
                        form.fault(STATES, "not_awaited", "/status", expected);
                    }
                    Some(false) if status == "completed" => {
                        let expected = "a result of tasks/result, because the task is completed";
                        form.fault(STATES, "no_task_result", "/status", expected);
                    }
                    _ => {}
                }
            }
            "tasks/result" => {
                awaited.insert(id, true);
                if form.value.pointer(RELATED).and_then(Json::as_str) != Some(id) {
                    let expected =
                        "`_meta` with the id of the task under io.modelcontextprotocol/related-task";
                    form.fault(STATES, "not_related", "/_meta", expected);
                }
                form.member(STATES, "/content", Kind::Array, Need::Required);
            }
            "tasks/cancel" => {
                states.insert(id, status);
                if status != CANCELLED {
                    form.fault(CANCELLATION, "not_cancelled", "/status", "the status \"cancelled\"");
                }
            }
            _ => {}
        }
        found.append(&mut form.found);
    }
    first_of_each(found)
}

/// Checks the answer to a call that makes a task.
fn created(form: &mut Form<'_>) {
    form.member(FORM, "/task", Kind::Object, Need::Required);
    let Some(task) = form.value.get("task").filter(|task| task.as_object().is_some()) else { return };
    form.member(FORM, "/task/taskId", Kind::Text, Need::Required);
    if task.get("status").and_then(Json::as_str) != Some("working") {
        form.fault(FORM, "task_status", "/task/status", "the status \"working\"");
    }
    for name in ["createdAt", "lastUpdatedAt"] {
        if !task.get(name).and_then(Json::as_str).is_some_and(is_time) {
            form.fault(FORM, "task_time", &format!("/task/{name}"), "a time in ISO 8601");
        }
    }
    if !task.get("ttl").is_some_and(|ttl| ttl.is_null() || ttl.as_number().is_some()) {
        form.fault(FORM, "task_ttl", "/task/ttl", "`ttl`, a number or null");
    }
}

/// True for a date with a time of day.
fn is_time(text: &str) -> bool {
    let form = b"0000-00-00T00:00";
    let fits = |(byte, like): (u8, u8)| if like == b'0' { byte.is_ascii_digit() } else { byte == like };
    text.len() >= form.len() && text.bytes().zip(*form).all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_known() {
        assert!(is_time("2025-11-25T10:30:00Z") && is_time("2025-11-25T10:30:00.123+01:00"));
        assert!(!is_time("2025-11-25") && !is_time("1764028800000000") && !is_time(""));
    }
}
