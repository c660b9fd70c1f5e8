//! Changes to the values of a message.

use crate::json::Value;

/// Changes `value` and every value in it, the containers before what is in them, by the levels around it.
pub fn each(value: &mut Value, levels: usize, change: &mut dyn FnMut(&mut Value, usize)) {
    change(value, levels);
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| each(item, levels + 1, change)),
        Value::Object(members) => members.iter_mut().for_each(|(_, it)| each(it, levels + 1, change)),
        _ => {}
    }
}

/// Changes a value that is a text.
pub fn edit_string(value: &mut Value, edit: fn(&str) -> String) {
    if let Some(text) = value.as_str().map(edit) {
        *value = Value::from(text.as_str());
    }
}

/// Puts `&` for each `&amp;` in a text.
pub fn unescape(value: &mut Value) {
    edit_string(value, |text| text.replace("&amp;", "&"));
}
