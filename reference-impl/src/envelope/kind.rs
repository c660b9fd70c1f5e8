//! Values of the kinds of members.

use super::choices::Lenient;
use super::members::{GOAL_STATUSES, Kind};
use super::{Choices, datetime};
use crate::json::{Number, Text, Value};

/// True if `value` is of this kind.
pub(crate) fn is_of_kind(value: &Value, kind: Kind, choices: &Choices) -> bool {
    let all = |items: &[Value], is: fn(&Value) -> bool| items.iter().all(is);
    match (kind, value) {
        (Kind::Id(prefix), Value::String(text)) => is_id(text, prefix),
        (Kind::Time, Value::String(text)) => text.as_str().is_some_and(|text| is_time(text, choices)),
        (Kind::OneOf(names), Value::String(text)) => names.iter().any(|name| *text == **name),
        (Kind::Count(least), Value::Number(number)) => is_whole(number) && number.as_f64() >= least as f64,
        (Kind::Whole, Value::Number(number)) => is_whole(number),
        (Kind::Names, Value::Array(items)) => all(items, |item| matches!(item, Value::String(_))),
        (Kind::Records | Kind::Stages, Value::Array(items)) => {
            all(items, |item| matches!(item, Value::Object(_)))
        }
        (Kind::Maps, Value::Object(members)) => {
            members.iter().all(|(_, member)| matches!(member, Value::Object(_)))
        }
        (Kind::Goals, Value::Object(goals)) => {
            goals.iter().all(|(_, status)| is_of_kind(status, Kind::OneOf(GOAL_STATUSES), choices))
        }
        (Kind::Text, Value::String(_))
        | (Kind::Number, Value::Number(_))
        | (Kind::Flag, Value::Bool(_))
        | (Kind::Map, Value::Object(_))
        | (Kind::Free, _) => true,
        _ => false,
    }
}

/// True if a text is an id with this prefix.
pub(crate) fn is_id(text: &Text, prefix: &str) -> bool {
    let digits = text.as_bytes().strip_prefix(prefix.as_bytes());
    digits.is_some_and(|digits| {
        digits.len() == 16 && digits.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

fn is_time(text: &str, choices: &Choices) -> bool {
    let takes = |is_so: bool, choice: Lenient| !is_so || choice == Lenient::Accept;
    datetime::read(text).is_some_and(|time| {
        takes(time.leap_second, choices.leap_second) && takes(time.space_for_t, choices.space_for_t)
    })
}

/// True if a number is whole, as every double from 2^63 on is.
fn is_whole(number: &Number) -> bool {
    number.as_i64().is_some() || number.as_f64().abs() >= 9_223_372_036_854_775_808.0
}
