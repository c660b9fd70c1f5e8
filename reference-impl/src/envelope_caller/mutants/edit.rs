//! Helpers with which mutants change replies.

use super::super::{CallSpec, End};
use crate::envelope::kind::is_of_kind;
use crate::envelope::members::{Kind, MEMBERS, find as member};
use crate::envelope::{self, Members, get, set};
use crate::json::{ErrorKind, Policy, Value, write_value};

/// Prefixes and names of ids.
pub(super) fn ids() -> impl Iterator<Item = (&'static str, &'static str)> {
    MEMBERS.iter().filter_map(|row| match row.kind {
        Kind::Id(prefix) => Some((prefix, row.name)),
        _ => None,
    })
}

pub(super) fn fill_ids(call: &CallSpec, reply: &mut Members) {
    for (_, name) in ids() {
        if get(reply, name).is_none() {
            set(reply, name, call.envelope.get(name).cloned().unwrap_or(Value::Null));
        }
    }
}

pub(super) fn parsed(text: &[u8]) -> Result<Value, (ErrorKind, usize)> {
    Value::parse(text, 512, &Policy::default()).map_err(|error| (error.kind, error.at))
}

/// Changes the text of the reply in `end`.
pub(super) fn with_text(end: End, change: impl FnOnce(Vec<u8>) -> Vec<u8>) -> End {
    match end {
        End::Exited(exit, text) => End::Exited(exit, change(text)),
        End::Replied(status, text) => End::Replied(status, change(text)),
        other => other,
    }
}

/// Changes the members of a reply's text. Text that is not an object stays as it is.
pub(super) fn edited(text: Vec<u8>, change: impl FnOnce(&mut Members)) -> Vec<u8> {
    let Ok(Value::Object(mut members)) = parsed(&text) else { return text };
    change(&mut members);
    let mut out = Vec::new();
    write_value(&mut out, &Value::Object(members));
    out
}

/// Drops optional members with an invalid value, if `is` returns true for their kind and value.
pub(super) fn drop_wrong(reply: &mut Members, is: fn(Kind, &Value) -> bool) {
    let choices = envelope::Choices::default();
    reply.retain(|(name, value)| {
        let row = name.as_str().and_then(member).filter(|row| !row.core);
        row.is_none_or(|row| {
            row.nullable && *value == Value::Null
                || is_of_kind(value, row.kind, &choices)
                || !is(row.kind, value)
        })
    });
}

pub(super) fn without_nulls(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        Value::Object(members) => {
            members.retain(|(_, value)| *value != Value::Null);
            members.iter_mut().for_each(|(_, value)| without_nulls(value));
        }
        _ => {}
    }
}
