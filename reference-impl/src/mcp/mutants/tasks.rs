//! Mutants of tasks.

use super::Mutant;
use super::edit::{
    Object, answers, edited, ended, error, find, instead, messages, object, object_mut, outgoing, parts,
    remove, set, swap_all, with_code, with_result, wrap,
};
use super::edit::{Pass, asked_id, asks, incoming};
use crate::json::Value;
use crate::mcp::{Answer, Components, Failure};

/// Edits new tasks.
fn created(parts: &mut Components, edit: fn(&mut Object)) {
    wrap(parts, "tools/call", move |_, _, answer| {
        with_result(answer, |result| {
            if let Some(task) = object_mut(result, "task") {
                edit(task);
            }
        })
    });
}

/// Name of the tool that a request with a task calls.
fn tool_with_task(message: &Object) -> Option<&str> {
    let params = find(message, "params").filter(|params| params.get("task").is_some())?;
    params.get("name")?.as_str()
}

/// Removes the task from calls of tools for which `is_meant` returns true.
fn without_task(line: &[u8], is_meant: fn(&str) -> bool) -> Pass {
    edited(line, |message| {
        let is_one = tool_with_task(message).is_some_and(is_meant);
        if let Some(params) = object_mut(message, "params").filter(|_| is_one) {
            remove(params, "task");
        }
        is_one
    })
}

/// Replaces a status in answers to tasks/get.
fn status(line: &[u8], from: &str, to: &'static str) -> Vec<u8> {
    messages(line, |message| {
        if let Some(result) = object_mut(message, "result")
            && find(result, "status").and_then(Value::as_str) == Some(from)
        {
            set(result, "status", to.into());
        }
    })
}

fn supports_tasks(tool: &str) -> bool {
    matches!(tool, "sleep" | "job")
}

/// Mutants of tasks.
pub(super) const MUTANTS: &[Mutant] = &[
    parts("refuses-tasks", &["MCP-TSK-01"], "A call with the member `task` is refused.", |_, parts| {
        wrap(parts, "tools/call", |call, _, answer| {
            if call.params.get("task").is_some() {
                return Answer::Done(Err(Failure::invalid_params("task is not known")));
            }
            answer
        });
    })
    .needing("tasks"),
    parts("tasks-without-ttl", &["MCP-TSK-02"], "A task has no ttl.", |_, parts| {
        created(parts, |task| remove(task, "ttl"));
    }),
    parts("task-times-are-numbers", &["MCP-TSK-02"], "The times of a task are numbers.", |_, parts| {
        created(parts, |task| set(task, "createdAt", 1_764_028_800.into()));
    }),
    parts("task-ids-are-numbers", &["MCP-TSK-02"], "The id of a task is a number.", |_, parts| {
        created(parts, |task| set(task, "taskId", 7.into()));
    }),
    parts("tasks-begin-completed", &["MCP-TSK-02"], "A new task is completed.", |_, parts| {
        created(parts, |task| set(task, "status", "completed".into()));
    }),
    incoming("makes-no-tasks", &["MCP-TSK-02"], "A call with a task is served at once.", |_, line| {
        without_task(line, supports_tasks)
    }),
    parts(
        "results-do-not-wait",
        &["MCP-TSK-03"],
        "tasks/result is refused while the task works.",
        |_, parts| {
            wrap(parts, "tasks/result", |_, _, answer| match answer {
                Answer::Later(_) => Answer::Done(Err(Failure::invalid_params("it works"))),
                answer => answer,
            });
        },
    ),
    outgoing("results-name-no-task", &["MCP-TSK-03"], "The result of a task does not name it.", |_, line| {
        swap_all(&ended(line.to_vec()), "io.modelcontextprotocol/related-task", "com.example/task")
    }),
    outgoing(
        "finished-tasks-work-again",
        &["MCP-TSK-03"],
        "A completed task works again.",
        |memory, line| {
            let is_again = answers(memory, line, "tasks/get")
                && memory.kept.insert(b"asked".to_vec(), Vec::new()).is_some();
            if is_again { status(line, "completed", "working") } else { ended(line.to_vec()) }
        },
    ),
    parts(
        "unknown-tasks-are-internal",
        &["MCP-TSK-04"],
        "An unknown task is an internal error.",
        |_, parts| {
            wrap(parts, "tasks/get", |_, _, answer| with_code(answer, -32603));
        },
    ),
    parts("cancels-finished-tasks", &["MCP-TSK-04"], "A finished task can be cancelled.", |_, parts| {
        wrap(parts, "tasks/cancel", |_, _, answer| {
            instead(answer, || object([("taskId", "task-0".into()), ("status", "cancelled".into())]))
        });
    }),
    parts("cancelled-tasks-work", &["MCP-TSK-04"], "A cancelled task works on.", |_, parts| {
        wrap(parts, "tasks/cancel", |_, _, answer| {
            with_result(answer, |task| set(task, "status", "working".into()))
        });
    }),
    outgoing(
        "cancelled-tasks-complete",
        &["MCP-TSK-04"],
        "A cancelled task is completed later.",
        |memory, line| {
            if answers(memory, line, "tasks/get") {
                status(line, "cancelled", "completed")
            } else {
                ended(line.to_vec())
            }
        },
    ),
    incoming(
        "needs-no-task",
        &["MCP-TSK-05"],
        "A tool that requires a task is served without.",
        |_, line| match asked_id(line) {
            Some(id)
                if asks(line, "tools/call")
                    && !super::edit::has(line, "\"task\"")
                    && super::edit::has(line, "\"name\":\"job\"") =>
            {
                super::edit::success(&id)
            }
            _ => Pass::Forward,
        },
    ),
    incoming(
        "any-tool-takes-tasks",
        &["MCP-TSK-06"],
        "The task of a call whose tool has none is ignored.",
        |_, line| without_task(line, |tool| !supports_tasks(tool)),
    ),
    incoming(
        "tasks-of-other-tools-are-invalid",
        &["MCP-TSK-06"],
        "The task of a call whose tool has none is an invalid argument.",
        |_, line| {
            let is_other = match super::edit::value(line) {
                Some(Value::Object(message)) => {
                    tool_with_task(&message).is_some_and(|tool| !supports_tasks(tool))
                }
                _ => false,
            };
            match asked_id(line) {
                Some(id) if is_other => error(&id, -32602),
                _ => Pass::Forward,
            }
        },
    ),
];
