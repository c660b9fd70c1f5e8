//! Helpers for mutants at the seam of lines: constructors, and edits of messages.

use super::wire::{Memory, Pass, Rewrite};
use crate::json::{Policy, Text, Value, write_value};
pub(crate) use crate::mutant::text::{has, swap_all};
use crate::mutant::{Mutant, Seam};

/// Members of a message.
pub(crate) type Object = Vec<(Text, Value)>;

pub(crate) const fn incoming<C, P, F>(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    incoming: fn(&mut Memory, &[u8]) -> Pass,
) -> Mutant<C, P, Rewrite, F> {
    both_ways(id, clauses, fault, incoming, unchanged)
}

pub(super) const fn outgoing<C, P, F>(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    outgoing: fn(&mut Memory, &[u8]) -> Vec<u8>,
) -> Mutant<C, P, Rewrite, F> {
    both_ways(id, clauses, fault, forward, outgoing)
}

pub(crate) const fn both_ways<C, P, F>(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    incoming: fn(&mut Memory, &[u8]) -> Pass,
    outgoing: fn(&mut Memory, &[u8]) -> Vec<u8>,
) -> Mutant<C, P, Rewrite, F> {
    Mutant::new(id, clauses, fault, Seam::Wire(Rewrite { incoming, outgoing }))
}

fn forward(_: &mut Memory, _: &[u8]) -> Pass {
    Pass::Forward
}

fn unchanged(_: &mut Memory, line: &[u8]) -> Vec<u8> {
    ended(line.to_vec())
}

/// Levels of nesting of a line, counted by brackets.
pub(crate) fn depth(line: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in line {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// Appends an LF.
pub(crate) fn ended(mut line: Vec<u8>) -> Vec<u8> {
    line.push(b'\n');
    line
}

pub(crate) fn value(line: &[u8]) -> Option<Value> {
    Value::parse(line, 256, &Policy::default()).ok()
}

pub(crate) fn text(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write_value(&mut out, value);
    out
}

/// Replaces a line, or forwards it if it is unchanged.
pub(crate) fn replaced(old: &[u8], new: Vec<u8>) -> Pass {
    if old == new.as_slice() { Pass::Forward } else { Pass::Replace(vec![new]) }
}

/// Edits each response of a line, single or in a batch. Stream messages stay unchanged.
pub(super) fn responses(line: &[u8], edit: fn(&mut Object)) -> Vec<u8> {
    messages(line, |object| {
        if find(object, "method").is_none() {
            edit(object);
        }
    })
}

/// Edits each error object of a line.
pub(super) fn errors(line: &[u8], edit: fn(&mut Object)) -> Vec<u8> {
    messages(line, |object| {
        if let Some(error) = object_mut(object, "error") {
            edit(error);
        }
    })
}

/// Edits each object of a line, single or in an array.
pub(crate) fn messages(line: &[u8], edit: impl Fn(&mut Object)) -> Vec<u8> {
    let Some(mut message) = value(line) else { return ended(line.to_vec()) };
    match &mut message {
        Value::Object(object) => edit(object),
        Value::Array(elements) => {
            for element in elements {
                if let Value::Object(object) = element {
                    edit(object);
                }
            }
        }
        _ => {}
    }
    ended(text(&message))
}

/// The `options` in the params of a call.
pub(super) fn options(call: &mut Object) -> Option<&mut Object> {
    object_mut(object_mut(call, "params")?, "options")
}

/// Member `name`, if it is an object.
pub(crate) fn object_mut<'o>(object: &'o mut Object, name: &str) -> Option<&'o mut Object> {
    match find_mut(object, name)? {
        Value::Object(inner) => Some(inner),
        _ => None,
    }
}

pub(crate) fn find<'o>(object: &'o Object, name: &str) -> Option<&'o Value> {
    object.iter().find(|(key, _)| key == name).map(|(_, value)| value)
}

pub(crate) fn find_mut<'o>(object: &'o mut Object, name: &str) -> Option<&'o mut Value> {
    object.iter_mut().find(|(key, _)| key == name).map(|(_, value)| value)
}

pub(crate) fn set(object: &mut Object, name: &str, value: Value) {
    match find_mut(object, name) {
        Some(old) => *old = value,
        None => object.push((name.into(), value)),
    }
}

pub(crate) fn remove(object: &mut Object, name: &str) {
    object.retain(|(key, _)| key != name);
}

/// A number value.
pub(crate) fn number(value: i64) -> Value {
    Value::Number(value.into())
}

pub(super) const INVALID: &[u8] =
    b"{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32600,\"message\":\"Invalid Request\"},\"id\":null}";

pub(crate) fn method(message: &Value) -> Option<&str> {
    message.get("method").and_then(Value::as_str)
}

/// Edits a line that is an object.
pub(crate) fn edited(line: &[u8], edit: impl Fn(&mut Object) -> bool) -> Pass {
    let Some(Value::Object(mut object)) = value(line) else { return Pass::Forward };
    if edit(&mut object) { Pass::Replace(vec![text(&Value::Object(object))]) } else { Pass::Forward }
}

/// Edits the params of calls of one method.
pub(super) fn with_params(object: &mut Object, method: &str, edit: impl Fn(&mut Object) -> bool) -> bool {
    if find(object, "method").and_then(Value::as_str) != Some(method) {
        return false;
    }
    object_mut(object, "params").is_some_and(edit)
}
