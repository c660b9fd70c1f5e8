//! Tasks: calls that run while the client polls their state.

use super::choices::RequiredTask;
use super::message::{Failure, METHOD_NOT_FOUND, Outcome};
use super::method::{Answer, Call, Methods, Step, World};
use super::revision::Revision;
use crate::json::Value;
use crate::machine::Millis;

/// Metadata key for the task of a result.
pub(crate) const RELATED: &str = "io.modelcontextprotocol/related-task";

const WORKING: &str = "working";
const CANCELLED: &str = "cancelled";

/// A call whose state the client polls.
#[derive(Debug, Clone)]
pub struct Task {
    /// Status of the protocol.
    pub status: &'static str,
    /// Requested life.
    pub ttl: Value,
    /// Outcome of the call, once it ended.
    pub outcome: Option<Outcome>,
    created: Millis,
    updated: Millis,
}

impl Task {
    /// Ends it, unless it has ended.
    pub fn end(&mut self, status: &'static str, outcome: Outcome, now: Millis) {
        if self.outcome.is_none() {
            (self.status, self.outcome, self.updated) = (status, Some(outcome), now);
        }
    }

    /// Ends it with the outcome of its call.
    pub(crate) fn end_by(&mut self, outcome: Outcome, now: Millis) {
        let is_error = |result: &Value| result.get("isError").and_then(Value::as_bool) == Some(true);
        let failed = outcome.as_ref().map_or(true, is_error);
        self.end(if failed { "failed" } else { "completed" }, outcome, now);
    }
}

/// Methods for tasks.
pub(super) fn methods(methods: Methods) -> Methods {
    methods
        .with("tasks/get", |call, world| find(call, world).map(|number| shown(number, world)).into())
        .with("tasks/list", |_, world| {
            let all: Vec<Value> = (0..world.tasks.len()).map(|number| shown(number, world)).collect();
            Ok([("tasks", all.into())].into()).into()
        })
        .with("tasks/cancel", |call, world| cancel(call, world).into())
        .with("tasks/result", |call, world| match find(call, world) {
            Ok(number) => Answer::Later(vec![Step::Of(number)]),
            Err(failure) => Err(failure).into(),
        })
}

/// True if the session has tasks.
pub(super) fn are_known(world: &World) -> bool {
    world.revision >= Revision::V25c && world.catalog.declares("tasks", world.revision)
}

/// Refuses a call that the tool does not support. Returns true if the call becomes a task.
pub(super) fn support(call: &Call<'_>, tool: &Value, world: &World) -> Result<bool, Failure> {
    if !are_known(world) {
        return Ok(false);
    }
    let support = tool.get("execution").and_then(|execution| execution.get("taskSupport"));
    match (call.params.get("task").is_some(), support.and_then(Value::as_str)) {
        (true, Some("optional" | "required")) => Ok(true),
        (true, _) => Err(Failure::new(METHOD_NOT_FOUND, "the tool has no tasks")),
        (false, Some("required")) => Err(match world.choices.mcp_task_required {
            RequiredTask::MethodNotFound => Failure::new(METHOD_NOT_FOUND, "the tool needs a task"),
            RequiredTask::InvalidRequest => Failure::invalid_request("the tool needs a task"),
        }),
        (false, _) => Ok(false),
    }
}

/// Continues an answer as a task.
pub(super) fn begin(call: &Call<'_>, answer: Answer, world: &mut World) -> Answer {
    let ttl = call.params.get("task").and_then(|task| task.get("ttl")).cloned().unwrap_or(Value::Null);
    let number = world.tasks.len();
    let (created, updated) = (world.now, world.now);
    world.tasks.push(Task { status: WORKING, ttl, outcome: None, created, updated });
    let steps = match answer {
        Answer::Later(steps) => steps,
        Answer::Done(outcome) => vec![Step::Done(outcome)],
        answer @ Answer::Task { .. } => return answer,
    };
    Answer::Task { outcome: Ok([("task", shown(number, world))].into()), number, steps }
}

/// Outcome of a task, with the metadata that names the task.
pub(super) fn outcome(number: usize, tasks: &[Task]) -> Option<Outcome> {
    let outcome = tasks.get(number)?.outcome.clone()?;
    Some(outcome.map(|mut result| {
        if let Value::Object(members) = &mut result {
            let related = [("taskId", id(number).into())].into();
            members.push(("_meta".into(), [(RELATED, related)].into()));
        }
        result
    }))
}

fn id(number: usize) -> String {
    format!("task-{number}")
}

fn find(call: &Call<'_>, world: &World) -> Result<usize, Failure> {
    let wanted = call.text("taskId")?;
    let number = (0..world.tasks.len()).find(|number| wanted == id(*number).as_str());
    number.ok_or_else(|| Failure::invalid_params("no task has this id"))
}

fn cancel(call: &Call<'_>, world: &mut World) -> Outcome {
    let number = find(call, world)?;
    let now = world.now;
    match world.tasks.get_mut(number) {
        Some(task) if task.outcome.is_none() => {
            task.end(CANCELLED, Err(Failure::new(-32_000, "the task was cancelled")), now);
            Ok(shown(number, world))
        }
        _ => Err(Failure::invalid_params("the task has ended")),
    }
}

/// A task as the client sees it.
fn shown(number: usize, world: &World) -> Value {
    let Some(task) = world.tasks.get(number) else { return Value::Null };
    [
        ("taskId", id(number).into()),
        ("status", task.status.into()),
        ("createdAt", time(task.created).into()),
        ("lastUpdatedAt", time(task.updated).into()),
        ("ttl", task.ttl.clone()),
        ("pollInterval", 20.into()),
    ]
    .into()
}

/// Timestamp for the server's clock.
fn time(ms: Millis) -> String {
    let seconds = ms / 1_000;
    let (hours, minutes) = (seconds / 3_600 % 24, seconds / 60 % 60);
    format!("2025-11-25T{hours:02}:{minutes:02}:{:02}.{:03}Z", seconds % 60, ms % 1_000)
}
