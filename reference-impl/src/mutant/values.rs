//! Edits of a message's values.

use crate::json::Value;

/// Applies `change` to `value` and every value in it, containers first, with the number of levels around each.
pub(crate) fn each(value: &mut Value, levels: usize, change: &mut dyn FnMut(&mut Value, usize)) {
    change(value, levels);
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| each(item, levels + 1, change)),
        Value::Object(members) => members.iter_mut().for_each(|(_, it)| each(it, levels + 1, change)),
        _ => {}
    }
}

/// Edits a string value.
pub(crate) fn edit_string(value: &mut Value, edit: fn(&str) -> String) {
    if let Some(text) = value.as_str().map(edit) {
        *value = Value::from(text.as_str());
    }
}

/// Replaces each `&amp;` in a string by `&`.
pub(crate) fn unescape(value: &mut Value) {
    edit_string(value, |text| text.replace("&amp;", "&"));
}
