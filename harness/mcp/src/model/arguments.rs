//! Comparison of arguments with the schemas in the list of tools.

use serde_json::Value;

use crate::server_knowledge::ServerKnowledge;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::schema::{Schema, Schemas};

/// Keywords whose violation must not lead to a success.
const STRICT: [&str; 4] = ["required", "type", "enum", "const"];

/// Keywords that bound a value. A server SHOULD refuse values beyond.
const BOUNDS: [&str; 6] =
    ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength"];

/// Relation of arguments to a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fits {
    /// The arguments are valid.
    Yes,
    /// They break `required`, `type`, `enum` or `const`.
    No,
    /// They only break bounds.
    Beyond,
    /// They break another keyword, or the schema cannot be used.
    Unclear,
}

/// Compares arguments with the `inputSchema` of a tool.
pub(crate) fn fit(tool: &Value, arguments: &Json) -> Fits {
    if !Schemas::enabled() {
        return Fits::Unclear;
    }
    let Some(schema) = tool.get("inputSchema") else { return Fits::Unclear };
    let Ok(schema) = schema.to_string().parse::<Json>() else { return Fits::Unclear };
    let Ok(schema) = Schema::of_peer(&schema) else { return Fits::Unclear };
    let violations = schema.validate(arguments);
    if violations.is_empty() {
        return Fits::Yes;
    }
    // After `anyOf` and similar keywords the intended branch is unknown.
    let all = |words: &[&str]| violations.iter().all(|fault| words.contains(&fault.keyword.as_str()));
    match () {
        () if all(&STRICT) => Fits::No,
        () if all(&BOUNDS) => Fits::Beyond,
        () => Fits::Unclear,
    }
}

/// Compares generated arguments with the `inputSchema` of a tool.
pub(crate) fn fit_value(tool: &Value, arguments: &Value) -> Fits {
    arguments.to_string().parse::<Json>().map_or(Fits::Unclear, |arguments| fit(tool, &arguments))
}

/// Capability of calls with a task.
pub(crate) const TASKS: &str = "tasks/requests/tools/call";

/// Word for the support of tasks that a tool lists; empty for none.
pub(crate) fn task_support(tool: &Value) -> &str {
    tool.pointer("/execution/taskSupport").and_then(Value::as_str).unwrap_or_default()
}

/// True for params of a call that makes a task, if the session supports tasks.
pub(crate) fn makes_task(known: ServerKnowledge<'_>, params: &Json) -> bool {
    let tool = params.get("name").and_then(Json::as_str).and_then(|name| known.tool(name));
    let supports = tool.is_some_and(|tool| matches!(task_support(tool), "optional" | "required"));
    known.declares(TASKS) && params.get("task").is_some() && supports
}

/// Names of the members that a tool's schema requires.
pub(crate) fn required(tool: &Value) -> Vec<&str> {
    let names = tool.pointer("/inputSchema/required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).collect()
}
