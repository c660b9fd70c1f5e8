//! Strict JSON of the harness: judges read peers with it and generators write with it.
//!
//! It shares no code with the reference's codec, so that a mistake of one cannot hide in the other. [`decode`] accepts
//! exactly RFC 8259 in strict UTF-8 and reports the points that the contract leaves open as [`TextProperties`]. Nothing
//! recurses: decoding, writing, comparing, cloning and dropping work for any depth of nesting (only serde cannot, see
//! [`serde_form`]).

mod decode;
mod equivalence;
mod error;
mod make;
mod nested;
mod number;
mod present;
mod serde_form;
#[cfg(test)]
mod tests;
mod write;

pub use decode::{DecodeLimits, Decoded, TextProperties, check, decode};
pub use equivalence::is_kept;
pub use error::{DecodeError, DecodeErrorKind};
pub use number::Number;
pub use present::{Presentation, present};

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::mem;
use std::str::FromStr;

/// JSON value.
///
/// Equality is by meaning: numbers compare by exact decimal value, members in any order, and the last of several
/// members with one name counts, as in [`Json::get`]. All members are kept as written.
///
/// The type has a destructor of its own, because a derived one would recurse. So patterns cannot move its parts out;
/// use [`Json::into_object`] and its siblings, or [`std::mem::take`].
#[derive(Default)]
pub enum Json {
    /// `null`
    #[default]
    Null,
    /// `true` or `false`
    Bool(bool),
    /// Number with its source text.
    Number(Number),
    /// String, unescaped.
    String(String),
    /// Array.
    Array(Vec<Json>),
    /// Object: members in source order, duplicates included.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Makes an object of `members`, in this order.
    pub fn object<K: Into<String>>(members: impl IntoIterator<Item = (K, Json)>) -> Json {
        Json::Object(members.into_iter().map(|(key, value)| (key.into(), value)).collect())
    }

    /// Makes an array of `items`.
    pub fn array<T: Into<Json>>(items: impl IntoIterator<Item = T>) -> Json {
        Json::Array(items.into_iter().map(Into::into).collect())
    }

    /// True for `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Json::Null)
    }

    /// Boolean; `None` for other types.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Json::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// Number; `None` for other types.
    pub fn as_number(&self) -> Option<&Number> {
        match self {
            Json::Number(number) => Some(number),
            _ => None,
        }
    }

    /// Exact value if it is an integer of `u64`, in any spelling.
    pub fn as_u64(&self) -> Option<u64> {
        self.as_number()?.as_u64()
    }

    /// Exact value if it is an integer of `i64`, in any spelling.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_number()?.as_i64()
    }

    /// Nearest double; `None` beyond the range of doubles.
    pub fn as_f64(&self) -> Option<f64> {
        self.as_number()?.as_f64()
    }

    /// Characters of a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Json::String(string) => Some(string),
            _ => None,
        }
    }

    /// Items of an array.
    pub fn as_array(&self) -> Option<&[Json]> {
        match self {
            Json::Array(items) => Some(items),
            _ => None,
        }
    }

    /// Mutable items of an array.
    pub fn as_array_mut(&mut self) -> Option<&mut Vec<Json>> {
        match self {
            Json::Array(items) => Some(items),
            _ => None,
        }
    }

    /// Members of an object, duplicates included.
    pub fn as_object(&self) -> Option<&[(String, Json)]> {
        match self {
            Json::Object(members) => Some(members),
            _ => None,
        }
    }

    /// Mutable members of an object.
    pub fn as_object_mut(&mut self) -> Option<&mut Vec<(String, Json)>> {
        match self {
            Json::Object(members) => Some(members),
            _ => None,
        }
    }

    /// Moves the characters of a string out; returns other types as the error.
    pub fn into_string(mut self) -> Result<String, Json> {
        match &mut self {
            Json::String(string) => Ok(mem::take(string)),
            _ => Err(self),
        }
    }

    /// Moves the members of an object out; returns other types as the error.
    pub fn into_object(mut self) -> Result<Vec<(String, Json)>, Json> {
        match &mut self {
            Json::Object(members) => Ok(mem::take(members)),
            _ => Err(self),
        }
    }

    /// Member `key` of an object, the last of several; `None` for other types.
    pub fn get(&self, key: &str) -> Option<&Json> {
        self.as_object()?.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Mutable member `key` of an object, the last of several.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Json> {
        self.as_object_mut()?.iter_mut().rev().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Makes `value` the only member `key` of an object, at the place of the first one or else at the end.
    ///
    /// Other types stay as they are.
    pub fn set(&mut self, key: &str, value: impl Into<Json>) {
        let Some(members) = self.as_object_mut() else { return };
        match members.iter().position(|(name, _)| name == key) {
            None => members.push((key.to_owned(), value.into())),
            Some(first) => {
                members[first].1 = value.into();
                let mut at = 0;
                members.retain(|(name, _)| {
                    at += 1;
                    at <= first + 1 || name != key
                });
            }
        }
    }

    /// Removes all members `key` of an object and returns the last.
    pub fn remove(&mut self, key: &str) -> Option<Json> {
        let mut removed = None;
        self.as_object_mut()?.retain_mut(|(name, value)| {
            let stays = name != key;
            if !stays {
                removed = Some(mem::take(value));
            }
            stays
        });
        removed
    }

    /// Removes all but the first of members with one name, in every object.
    pub fn keep_first(&mut self) {
        self.for_each_object(|members| {
            let mut seen = BTreeSet::new();
            members.retain(|(name, _)| seen.insert(name.clone()));
        });
    }

    /// Removes all but the last of members with one name, in every object.
    pub fn keep_last(&mut self) {
        self.for_each_object(|members| {
            let mut seen = BTreeSet::new();
            members.reverse();
            members.retain(|(name, _)| seen.insert(name.clone()));
            members.reverse();
        });
    }

    /// Value at a JSON Pointer (RFC 6901) such as `/slots/0/type`; the empty pointer is the whole value.
    ///
    /// `None` if nothing is there or `pointer` is invalid.
    pub fn pointer(&self, pointer: &str) -> Option<&Json> {
        pointer_steps(pointer)?.try_fold(self, |value, step| {
            let step = step?;
            match value {
                Json::Array(items) => items.get(array_index(&step)?),
                _ => value.get(&step),
            }
        })
    }

    /// Mutable value at a JSON Pointer (RFC 6901).
    pub fn pointer_mut(&mut self, pointer: &str) -> Option<&mut Json> {
        pointer_steps(pointer)?.try_fold(self, |value, step| {
            let step = step?;
            match value {
                Json::Array(items) => items.get_mut(array_index(&step)?),
                _ => value.get_mut(&step),
            }
        })
    }
}

/// Unescaped reference tokens of a JSON Pointer; a token with a stray `~` is `None`.
fn pointer_steps(pointer: &str) -> Option<impl Iterator<Item = Option<Cow<'_, str>>>> {
    let mut steps = pointer.split('/');
    // Text before the first slash, which must be empty.
    if !steps.next()?.is_empty() {
        return None;
    }
    Some(steps.map(|step| {
        if !step.contains('~') {
            return Some(Cow::Borrowed(step));
        }
        let escapes = step.matches("~0").count() + step.matches("~1").count();
        (escapes == step.matches('~').count()).then(|| step.replace("~1", "/").replace("~0", "~").into())
    }))
}

/// Index that a reference token names: decimal digits without a leading zero (RFC 6901 §4).
fn array_index(step: &str) -> Option<usize> {
    let plain = step.bytes().all(|byte| byte.is_ascii_digit()) && (step == "0" || !step.starts_with('0'));
    plain.then(|| step.parse().ok())?
}

impl FromStr for Json {
    type Err = DecodeError;

    /// Decodes a text with the default limits and drops the facts of [`decode`].
    fn from_str(text: &str) -> Result<Json, DecodeError> {
        Ok(decode(text.as_bytes(), &DecodeLimits::default())?.value)
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Json {
        Json::Bool(value)
    }
}

impl From<&str> for Json {
    fn from(value: &str) -> Json {
        Json::String(value.to_owned())
    }
}

impl From<String> for Json {
    fn from(value: String) -> Json {
        Json::String(value)
    }
}

impl From<Number> for Json {
    fn from(value: Number) -> Json {
        Json::Number(value)
    }
}

impl From<Vec<Json>> for Json {
    fn from(items: Vec<Json>) -> Json {
        Json::Array(items)
    }
}

impl<T: Into<Json>> From<Option<T>> for Json {
    /// `null` for `None`.
    fn from(value: Option<T>) -> Json {
        value.map_or(Json::Null, Into::into)
    }
}

macro_rules! from_integers {
    ($($integer:ty),*) => {$(
        impl From<$integer> for Json {
            fn from(value: $integer) -> Json {
                Json::Number(value.into())
            }
        }
    )*};
}

from_integers!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize);

/// Text without JSON white space around it (RFC 8259 §2), which excludes form feeds.
pub fn trim(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t' | b'\n' | b'\r', rest @ ..] | [rest @ .., b' ' | b'\t' | b'\n' | b'\r'] = text {
        text = rest;
    }
    text
}

/// Offset after the closing quote of the string whose content begins at `at` in a JSON text.
pub fn string_end(text: &[u8], mut at: usize) -> usize {
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}
