//! Changes of lines and of values, for mutants of the replayer.

use super::wire::{Members, members, put};
use crate::json::{Policy, Text, Value};
use crate::run_log::line::{Line, text_of};

/// Whether a line holds this.
pub(super) fn has(line: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(line, part).is_some()
}

/// The line with the payload of an event changed.
pub(super) fn with(line: &Line, event: &str, change: impl FnOnce(&mut Members)) -> Line {
    let mut payload = members(&line.payload);
    if line.event == *event {
        change(&mut payload);
    }
    Line { payload: Value::Object(payload), ..line.clone() }
}

/// The line with a member of the payload where it is absent.
pub(super) fn filled(line: &Line, event: &str, name: &str, value: Value) -> Line {
    with(line, event, |payload| {
        if !payload.iter().any(|(known, _)| *known == *name) {
            put(payload, name, value);
        }
    })
}

/// The items with one of their strings changed.
pub(super) fn each(tx_patch: &[Value], name: &str, change: fn(&str) -> String) -> Vec<Value> {
    let item = |item: &Value| {
        let mut members = members(item);
        if let Some(text) = item.get(name).and_then(Value::as_str) {
            put(&mut members, name, change(text).as_str().into());
        }
        Value::Object(members)
    };
    tx_patch.iter().map(item).collect()
}

/// A value whose texts end at U+0000.
pub(super) fn cut(value: &Value) -> Value {
    let short = |text: &Text| -> Text {
        let bytes = text.as_bytes();
        let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).as_ref().into()
    };
    match value {
        Value::String(text) => Value::String(short(text)),
        Value::Array(elements) => Value::Array(elements.iter().map(cut).collect()),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (short(name), cut(value))).collect())
        }
        other => other.clone(),
    }
}

/// A value whose arrays are sorted.
pub(super) fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(elements) => {
            let mut elements: Vec<Value> = elements.iter().map(sorted).collect();
            elements.sort_by_key(text_of);
            Value::Array(elements)
        }
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (name.clone(), sorted(value))).collect())
        }
        other => other.clone(),
    }
}

/// A value whose texts are what they hold as JSON.
pub(super) fn unquoted(value: &Value) -> Value {
    match value {
        Value::String(text) => {
            Value::parse(text.as_bytes(), 64, &Policy::default()).unwrap_or_else(|_| value.clone())
        }
        Value::Array(elements) => Value::Array(elements.iter().map(unquoted).collect()),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (name.clone(), unquoted(value))).collect())
        }
        other => other.clone(),
    }
}

/// A value whose fractions have six digits.
pub(super) fn rounded(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.as_i64().is_none() => {
            let short = format!("{:.5e}", number.as_f64());
            Value::parse(short.as_bytes(), 1, &Policy::default()).unwrap_or_else(|_| value.clone())
        }
        Value::Array(elements) => Value::Array(elements.iter().map(rounded).collect()),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (name.clone(), rounded(value))).collect())
        }
        other => other.clone(),
    }
}

/// The items with a `size_bytes` of `true` as 1.
pub(super) fn counted(tx_patch: &[Value]) -> Vec<Value> {
    let item = |item: &Value| {
        let mut item = members(item);
        if let Some((_, value)) = item.iter_mut().find(|(name, _)| *name == "value")
            && value.get("size_bytes") == Some(&Value::Bool(true))
        {
            let mut artifact = members(value);
            put(&mut artifact, "size_bytes", Value::Number(1.into()));
            *value = Value::Object(artifact);
        }
        Value::Object(item)
    };
    tx_patch.iter().map(item).collect()
}
