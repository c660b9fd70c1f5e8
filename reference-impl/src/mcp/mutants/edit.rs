//! Constructors of mutants, and edits of answers and lines.

use super::Mutant;
use crate::json::{Text, Value};
pub(super) use crate::json_rpc::mutants::edit::{
    Object, both_ways, depth, edited, ended, find, find_mut, has, incoming, messages, method, number,
    object_mut, remove, set, swap_all, text, value,
};
pub(super) use crate::json_rpc::mutants::wire::{Memory, Pass};
use crate::mcp::{Answer, Call, Components, Config, Failure, Step, World};
use crate::mutant;
pub(super) use crate::mutant::config;

/// Creates a mutant with other components. Closures need no type annotations.
pub(super) const fn parts(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    change: fn(&mut Config, &mut Components),
) -> Mutant {
    mutant::parts(id, clauses, fault, change)
}

/// Creates a mutant with edited output lines. The function gets the method of the answered request, or an empty one.
pub(super) const fn outgoing(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    outgoing: fn(&mut Memory, &[u8]) -> Vec<u8>,
) -> Mutant {
    both_ways(id, clauses, fault, remember, outgoing)
}

/// Records the method of each request by its id.
fn remember(memory: &mut Memory, line: &[u8]) -> Pass {
    if let Some(message) = value(line)
        && let (Some(id), Some(method)) = (message.get("id"), method(&message))
    {
        memory.kept.insert(text(id), method.as_bytes().to_vec());
    }
    Pass::Forward
}

/// True for the answer to a request of this method, as recorded by [`remember`].
pub(super) fn answers(memory: &Memory, line: &[u8], method: &str) -> bool {
    value(line).is_some_and(|message| {
        message.get("method").is_none()
            && message
                .get("id")
                .and_then(|id| memory.kept.get(&text(id)))
                .is_some_and(|kept| kept == method.as_bytes())
    })
}

/// True for a request or notification of this method.
pub(super) fn asks(line: &[u8], name: &str) -> bool {
    value(line).is_some_and(|message| method(&message) == Some(name))
}

/// Id of a request; `None` for anything else.
pub(super) fn asked_id(line: &[u8]) -> Option<Value> {
    let message = value(line)?;
    method(&message)?;
    message.get("id").cloned()
}

/// Error answer of the mutant.
pub(super) fn error(id: &Value, code: i64) -> Pass {
    let failure = Failure::new(code, "no");
    Pass::Answer(text(&crate::mcp::message::response(id.clone(), Err(failure))))
}

/// Success answer of the mutant.
pub(super) fn success(id: &Value) -> Pass {
    Pass::Answer(text(&crate::mcp::message::response(id.clone(), Ok(Value::Object(Vec::new())))))
}

/// Drops all lines after the first one for which `is_last` returns true.
pub(super) fn mute_after(memory: &mut Memory, line: &[u8], is_last: fn(&[u8]) -> bool) -> Pass {
    let key = b"mute".to_vec();
    if memory.kept.contains_key(&key) {
        return Pass::Drop;
    }
    if is_last(line) {
        memory.kept.insert(key, Vec::new());
    }
    Pass::Forward
}

/// Aborts the process on lines for which `is_deadly` returns true.
pub(super) fn dies_of(line: &[u8], is_deadly: fn(&[u8]) -> bool) -> Pass {
    if is_deadly(line) { Pass::Abort } else { Pass::Forward }
}

/// Wraps a method so that each answer goes through a change.
pub(super) fn wrap(
    parts: &mut Components,
    name: &'static str,
    change: impl Fn(&Call<'_>, &mut World, Answer) -> Answer + Send + 'static,
) {
    parts.methods.wrap(name, change);
}

/// Edits the result of an answer, if it is a success.
pub(super) fn with_result(answer: Answer, edit: impl Fn(&mut Object)) -> Answer {
    answer.edit(|outcome| {
        if let Ok(Value::Object(result)) = outcome {
            edit(result);
        }
    })
}

/// Replaces the code of an answer, if it is an error.
pub(super) fn with_code(answer: Answer, code: i64) -> Answer {
    answer.edit(|outcome| {
        if let Err(failure) = outcome {
            failure.code = code;
        }
    })
}

/// Replaces an error by a result.
pub(super) fn instead(answer: Answer, result: impl FnOnce() -> Value) -> Answer {
    if let Answer::Done(Err(_)) = answer { Ok(result()).into() } else { answer }
}

/// True for an error.
pub(super) fn is_error(answer: &Answer) -> bool {
    matches!(answer, Answer::Done(Err(_)))
}

/// Sends a message before the outcome.
pub(super) fn saying(answer: Answer, message: Value) -> Answer {
    match answer {
        Answer::Done(outcome) => Answer::Later(vec![Step::Say(message), Step::Done(outcome)]),
        Answer::Later(mut steps) => {
            let at = steps.len().saturating_sub(1);
            steps.insert(at, Step::Say(message));
            Answer::Later(steps)
        }
        answer @ Answer::Task { .. } => answer,
    }
}

/// Edits the item of a catalog list whose name or uri is `name`.
pub(super) fn item(parts: &mut Components, list: &str, name: &str, edit: impl Fn(&mut Object)) {
    items(parts, list, |items| {
        for item in items {
            if let Value::Object(item) = item
                && ["name", "uri"].iter().any(|key| find(item, key).and_then(Value::as_str) == Some(name))
            {
                edit(item);
            }
        }
    });
}

/// Edits a list of the catalog.
pub(super) fn items(parts: &mut Components, list: &str, edit: impl FnOnce(&mut Vec<Value>)) {
    if let Value::Object(catalog) = &mut parts.catalog.0
        && let Some(Value::Array(items)) = find_mut(catalog, list)
    {
        edit(items);
    }
}

/// Elements of an array; empty for another value.
pub(super) fn elements<'o>(object: &'o mut Object, name: &str) -> &'o mut [Value] {
    match find_mut(object, name) {
        Some(Value::Array(elements)) => elements,
        _ => &mut [],
    }
}

/// Edits each object of an array.
pub(super) fn each(object: &mut Object, name: &str, edit: impl Fn(&mut Object)) {
    for element in elements(object, name) {
        if let Value::Object(element) = element {
            edit(element);
        }
    }
}

/// An object.
pub(super) fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    members.into()
}

/// Result of a tool with one text block.
pub(super) fn said(text: &str) -> Value {
    let block = object([("type", "text".into()), ("text", text.into())]);
    object([("content", vec![block].into()), ("isError", false.into())])
}

/// String member `name`.
pub(super) fn member<'v>(value: &'v Value, name: &str) -> Option<&'v Text> {
    value.get(name).and_then(Value::as_text)
}
