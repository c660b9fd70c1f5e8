//! Edits of lines and values, for mutants of the replayer.

use super::wire::{Members, edit, member, members, put, replied};
use crate::json::{Policy, Text, Value};
use crate::mutant::text::swap_all;
use crate::run_log::line::{Line, text_of};

/// True if a line contains `part`.
pub(super) fn has(line: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(line, part).is_some()
}

/// Line with an edited payload, if it is of this event.
pub(super) fn with(line: &Line, event: &str, change: impl FnOnce(&mut Members)) -> Line {
    let mut payload = members(&line.payload);
    if line.event == *event {
        change(&mut payload);
    }
    Line { payload: Value::Object(payload), ..line.clone() }
}

/// Line with a member added to its payload, if it is missing.
pub(super) fn filled(line: &Line, event: &str, name: &str, value: Value) -> Line {
    with(line, event, |payload| {
        if member(payload, name).is_none() {
            put(payload, name, value);
        }
    })
}

/// Items with one of their strings edited.
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

/// Value with parts replaced for which `change` returns another value. All other containers are searched.
pub(super) fn walked(value: &Value, change: fn(&Value) -> Option<Value>) -> Value {
    match (change(value), value) {
        (Some(changed), _) => changed,
        (None, Value::Array(elements)) => {
            Value::Array(elements.iter().map(|element| walked(element, change)).collect())
        }
        (None, Value::Object(members)) => {
            let member = |(name, value): &(Text, Value)| (name.clone(), walked(value, change));
            Value::Object(members.iter().map(member).collect())
        }
        (None, other) => other.clone(),
    }
}

/// Value with integers rounded through a 32-bit float.
pub(super) fn coarse(value: &Value) -> Value {
    walked(value, |value| match value {
        Value::Number(number) => {
            number.as_i64().map(|integer| Value::Number(((integer as f32) as i64).into()))
        }
        _ => None,
    })
}

/// Value with texts and names cut at U+0000.
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

/// Value with sorted arrays.
pub(super) fn sorted(value: &Value) -> Value {
    walked(value, |value| {
        let mut elements: Vec<Value> = value.as_array()?.iter().map(sorted).collect();
        elements.sort_by_key(text_of);
        Some(Value::Array(elements))
    })
}

/// Value with each text that is JSON replaced by its value.
pub(super) fn unquoted(value: &Value) -> Value {
    walked(value, |value| match value {
        Value::String(text) => Value::parse(text.as_bytes(), 64, &Policy::default()).ok(),
        _ => None,
    })
}

/// Value with names in lower case. The last of two equal names wins.
pub(super) fn folded(value: &Value) -> Value {
    match value {
        Value::Array(elements) => Value::Array(elements.iter().map(folded).collect()),
        Value::Object(named) => {
            let mut all = Members::new();
            for (name, value) in named {
                put(&mut all, &name.to_lossy().to_ascii_lowercase(), folded(value));
            }
            Value::Object(all)
        }
        other => other.clone(),
    }
}

/// Value with containers below six levels of arrays replaced by `null`.
pub(super) fn shallow(value: &Value) -> Value {
    fn within(value: &Value, levels: usize) -> Value {
        match value {
            Value::Array(_) | Value::Object(_) if levels == 0 => Value::Null,
            Value::Array(elements) => {
                Value::Array(elements.iter().map(|element| within(element, levels - 1)).collect())
            }
            other => other.clone(),
        }
    }
    within(value, 6)
}

/// First 4,096 bytes of a program's output.
pub(super) fn first_page(said: &[u8]) -> Vec<u8> {
    said[..said.len().min(4_096)].to_vec()
}

/// Output of a program up to the first line separator.
pub(super) fn first_paragraph(said: &[u8]) -> Vec<u8> {
    let end = memchr::memmem::find(said, "\u{2028}".as_bytes());
    end.map_or_else(|| said.to_vec(), |end| [&said[..end], b"\n"].concat())
}

/// Request of run mode with `input_json` as an object.
pub(super) fn given_as_object(request: &[u8]) -> Vec<u8> {
    replied(request, |request| edit(request, "input_json", |input| *input = unquoted(input)))
}

/// Value with fractions rounded to six significant digits.
pub(super) fn rounded(value: &Value) -> Value {
    walked(value, |value| match value {
        Value::Number(number) if number.as_i64().is_none() => {
            Value::parse(format!("{:.5e}", number.as_f64()).as_bytes(), 1, &Policy::default()).ok()
        }
        _ => None,
    })
}

/// Items with a `size_bytes` of `true` replaced by 1.
pub(super) fn counted(tx_patch: &[Value]) -> Vec<Value> {
    let item = |item: &Value| {
        let mut item = item.clone();
        edit(&mut item, "value", |value| {
            edit(value, "size_bytes", |size| {
                if *size == Value::Bool(true) {
                    *size = Value::Number(1.into());
                }
            });
        });
        item
    };
    tx_patch.iter().map(item).collect()
}

/// A text of JSON whose NaN is null, within the strings that hold JSON too.
pub(super) fn nan_as_null(text: &[u8]) -> Vec<u8> {
    let text = swap_all(text, ":NaN", ":null");
    swap_all(&text, "\"NaN\"", "\"null\"")
}
