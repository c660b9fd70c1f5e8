//! JSON texts as trees, for faults that look into them.

use crate::json::{Policy, Text, Value, write_value};

/// Members of an object.
pub(super) type Members = Vec<(Text, Value)>;

/// Value of a text, if it is JSON.
pub(super) fn parse(text: &[u8]) -> Option<Value> {
    Value::parse(text, 1024, &Policy::default()).ok()
}

/// Members of a text, if it is a JSON object.
pub(super) fn members(text: &[u8]) -> Option<Members> {
    match parse(text)? {
        Value::Object(members) => Some(members),
        _ => None,
    }
}

/// The text of a value.
pub(super) fn text(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write_value(&mut out, value);
    out
}

/// Edits the members of a JSON object. Other texts stay unchanged.
pub(super) fn edited(object: &[u8], change: impl FnOnce(&mut Members)) -> Vec<u8> {
    match members(object) {
        Some(mut members) => {
            change(&mut members);
            text(&Value::Object(members))
        }
        None => object.to_vec(),
    }
}

/// The member `name`.
pub(super) fn get<'m>(members: &'m mut Members, name: &str) -> Option<&'m mut Value> {
    members.iter_mut().find(|(key, _)| key == name).map(|(_, value)| value)
}

/// Sets the member `name`, or appends it.
pub(super) fn put(members: &mut Members, name: &str, value: Value) {
    match get(members, name) {
        Some(old) => *old = value,
        None => members.push((name.into(), value)),
    }
}

/// Removes the member `name` and returns its value.
pub(super) fn take(members: &mut Members, name: &str) -> Option<Value> {
    let place = members.iter().position(|(key, _)| key == name)?;
    Some(members.remove(place).1)
}

/// True if `holds` is true of `value` or of a value in it.
pub(super) fn any(value: &Value, holds: &dyn Fn(&Value) -> bool) -> bool {
    holds(value)
        || match value {
            Value::Array(elements) => elements.iter().any(|element| any(element, holds)),
            Value::Object(members) => members.iter().any(|(_, member)| any(member, holds)),
            _ => false,
        }
}

/// Edits every value in `value`, the inner ones first.
pub(super) fn each(value: &mut Value, change: &dyn Fn(&mut Value)) {
    match value {
        Value::Array(elements) => elements.iter_mut().for_each(|element| each(element, change)),
        Value::Object(members) => members.iter_mut().for_each(|(_, member)| each(member, change)),
        _ => {}
    }
    change(value);
}

/// Rounds an integer through a 32-bit float.
pub(super) fn round(value: &mut Value) {
    if let Some(number) = value.as_i64() {
        #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "that is the fault")]
        let rounded = number as f32 as i64;
        *value = Value::Number(rounded.into());
    }
}
