//! Tasks: calls that go on while the client asks for their state.

use serde_json::{Value, json};

use super::tools::ask;
use super::{callable, check};
use crate::model::{UNKNOWN_TASK, arguments};
use crate::role::{self, call, sleeping};
use crate::sample;
use crate::server_knowledge::ServerKnowledge;
use crate::talk::Talk;
use peerproof_engine::data::check::{Check, Untestable};
use peerproof_engine::data::plan::Capture;

/// Variable that holds the id of a task.
const TASK: &str = "task";
/// Requested lifetime of a task, ms.
const TTL_MS: u64 = 60_000;
/// Time that a task may take, milliseconds.
const RUN_MS: u64 = 10_000;

/// Checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    let checks = vec![
        check(
            "tasks/created",
            "A tool that supports tasks answers a call with a task by a working task.",
            &["MCP-TSK-02"],
            |talk, _| create(talk),
        ),
        check(
            "tasks/result",
            "The result of a task comes after its end and names the task, and the task does not change \
             afterwards.",
            &["MCP-TSK-03", "MCP-TSK-02"],
            |talk, _| {
                create(talk)?;
                of_task(talk, "tasks/result");
                talk.last(|step| step.allow_ms = RUN_MS);
                of_task(talk, "tasks/get");
                of_task(talk, "tasks/get");
                Ok(())
            },
        ),
        check(
            "tasks/unknown",
            "A task that does not exist gets error -32602.",
            &["MCP-TSK-04"],
            |talk, _| {
                for method in ["tasks/get", "tasks/result"] {
                    talk.request(method, Some(json!({ "taskId": UNKNOWN_TASK })));
                }
                if can_cancel(talk) {
                    talk.request("tasks/cancel", Some(json!({ "taskId": UNKNOWN_TASK })));
                }
                Ok(())
            },
        ),
        check(
            "tasks/cancel",
            "A cancelled task stays cancelled, and cannot be cancelled again.",
            &["MCP-TSK-04"],
            |talk, _| {
                if !can_cancel(talk) {
                    return Err(Untestable::new(
                        "not_declared",
                        "the server does not declare `tasks.cancel`",
                    ));
                }
                create(talk)?;
                for method in ["tasks/cancel", "tasks/get", "tasks/cancel", "tasks/get"] {
                    of_task(talk, method);
                }
                Ok(())
            },
        ),
        check(
            "tasks/required",
            "A tool that requires a task and is called without one gets error -32601 or -32600.",
            &["MCP-TSK-05"],
            |talk, _| {
                let tools = role::callable(talk.facts());
                let needs = |tool: &&Value| arguments::task_support(tool) == "required";
                let params = tools.into_iter().filter(needs).find_map(sampled);
                let params = params.ok_or_else(|| none("no callable tool requires a task"))?;
                talk.aim("MCP-TSK-05");
                ask(talk, params);
                Ok(())
            },
        ),
        check(
            "malformed/task-of-other-tool",
            "A tool without support for tasks that is called with one gets error -32601.",
            &["MCP-TSK-06"],
            |talk, _| {
                let lacks = |tool: &&Value| matches!(arguments::task_support(tool), "" | "forbidden");
                let params = callable(talk.facts()).into_iter().filter(lacks).find_map(sampled);
                let mut params = params.ok_or_else(|| none("each callable tool supports tasks"))?;
                params["task"] = json!({ "ttl": TTL_MS });
                ask(talk, params);
                Ok(())
            },
        ),
    ];
    checks.into_iter().map(|check| check.feature("tasks")).collect()
}

fn none(why: &str) -> Untestable {
    Untestable::new("no_callable_tool", why)
}

fn can_cancel(talk: &Talk<'_>) -> bool {
    ServerKnowledge::of(talk.facts()).declares("tasks/cancel")
}

/// Params of a valid call.
fn sampled(tool: &Value) -> Option<Value> {
    Some(call(tool["name"].as_str()?, sample::valid(tool, false)?))
}

/// Calls a tool with a task, preferably the one that takes time.
fn create(talk: &mut Talk<'_>) -> Result<(), Untestable> {
    let supports = |tool: &&Value| matches!(arguments::task_support(tool), "optional" | "required");
    let tools: Vec<&Value> = role::callable(talk.facts()).into_iter().filter(supports).collect();
    let slow = sleeping(talk.facts(), "peerproof").ok().map(|(params, _)| params);
    let slow = slow.filter(|params| tools.iter().any(|tool| tool["name"] == params["name"]));
    let params = slow.or_else(|| tools.into_iter().find_map(sampled));
    let mut params = params.ok_or_else(|| none("no callable tool supports tasks"))?;
    params["task"] = json!({ "ttl": TTL_MS });
    talk.canary();
    ask(talk, params);
    let pointer = "/result/task/taskId".to_owned();
    let until = Some("/peerproof/never".to_owned());
    talk.last(|step| step.capture = Some(Capture { pointer, var: TASK.to_owned(), secret: false, until }));
    Ok(())
}

/// Asks about the created task.
fn of_task(talk: &mut Talk<'_>, method: &str) {
    talk.request_with(method, "taskId", TASK);
}
