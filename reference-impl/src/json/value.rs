//! A small tree of JSON values.

use std::collections::HashMap;

use super::grammar::{Sink, StrSpan, walk};
use super::number::{Number, is_big, rounded};
use super::text::{RawStr, Text};
use super::{BigNumbers, DuplicateKeys, Error, ErrorKind, LoneSurrogates, Policy};

/// A JSON value. Objects keep the order of their members and hold each name once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, as text.
    Number(Number),
    /// A string.
    String(Text),
    /// An array.
    Array(Vec<Value>),
    /// An object.
    Object(Vec<(Text, Value)>),
}

/// Limit of nesting. Trees are dropped and written recursively; this many levels fit on any stack.
const TREE_NESTING_MAX: usize = 1024;

impl Value {
    /// Parses `text`, which must hold one JSON value, with or without white space around it, nested up to
    /// `nesting_max` levels (1,024 at most).
    ///
    /// # Errors
    /// Fails at the first byte at which the text is not strict JSON in UTF-8, is nested too deeply, or holds something
    /// that `policy` refuses.
    pub fn parse(text: &[u8], nesting_max: usize, policy: &Policy) -> Result<Self, Error> {
        let text = std::str::from_utf8(text)
            .map_err(|error| Error { kind: ErrorKind::Utf8, at: error.valid_up_to() })?;
        let mut builder =
            Builder { text, policy: *policy, open: Vec::new(), done: Value::Null, refused: None };
        walk(text.as_bytes(), nesting_max.min(TREE_NESTING_MAX), &mut Vec::new(), &mut builder)?;
        match builder.refused {
            Some(refused) => Err(refused),
            None => Ok(builder.done),
        }
    }

    /// The member `name` of an object.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.as_object()?.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// The members, if it is an object.
    pub fn as_object(&self) -> Option<&[(Text, Value)]> {
        if let Self::Object(members) = self { Some(members) } else { None }
    }

    /// The elements, if it is an array.
    pub fn as_array(&self) -> Option<&[Value]> {
        if let Self::Array(elements) = self { Some(elements) } else { None }
    }

    /// The string, if it is one.
    pub(crate) fn as_text(&self) -> Option<&Text> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    /// The string, if it is one and has no lone surrogates.
    pub fn as_str(&self) -> Option<&str> {
        self.as_text()?.as_str()
    }

    /// The boolean, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(value) = self { Some(*value) } else { None }
    }

    /// The value as an integer, if it is one and fits, in any spelling.
    pub fn as_i64(&self) -> Option<i64> {
        if let Self::Number(number) = self { number.as_i64() } else { None }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text.into())
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Number(value.into())
    }
}

impl From<Vec<Value>> for Value {
    fn from(elements: Vec<Value>) -> Self {
        Self::Array(elements)
    }
}

impl<const N: usize> From<[(&str, Value); N]> for Value {
    fn from(members: [(&str, Value); N]) -> Self {
        Self::Object(members.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }
}

/// An array or object that has not ended yet.
enum Open {
    Array(Vec<Value>),
    Object { members: Vec<(usize, Text, Value)>, key: (usize, Text) },
}

struct Builder<'t> {
    text: &'t str,
    policy: Policy,
    open: Vec<Open>,
    done: Value,
    refused: Option<Error>,
}

impl Builder<'_> {
    fn refuse(&mut self, kind: ErrorKind, at: usize) {
        self.refused.get_or_insert(Error { kind, at });
    }

    fn put(&mut self, value: Value) {
        match self.open.last_mut() {
            None => self.done = value,
            Some(Open::Array(elements)) => elements.push(value),
            Some(Open::Object { members, key: (at, name) }) => {
                members.push((*at, std::mem::take(name), value));
            }
        }
    }

    fn read(&mut self, span: StrSpan) -> Text {
        let raw = self.text.get(span.start..span.end).unwrap_or_default();
        if !span.escaped {
            return Text::from(raw);
        }
        let text = RawStr { raw, escaped: true }.text();
        match self.policy.lone_surrogates {
            LoneSurrogates::Replace if span.lone_surrogate => Text::from(text.to_lossy().into_owned()),
            LoneSurrogates::Refuse if span.lone_surrogate => {
                self.refuse(ErrorKind::LoneSurrogate, span.start);
                text
            }
            _ => text,
        }
    }

    /// Members of an object with each name once.
    fn distinct(&mut self, members: Vec<(usize, Text, Value)>) -> Vec<(Text, Value)> {
        let mut distinct: Vec<(Text, Value)> = Vec::with_capacity(members.len());
        // A few names are searched linearly. More are indexed, so that a large object does not take quadratic time.
        let mut index: Option<HashMap<Text, usize>> = (members.len() > 16).then(HashMap::new);
        for (at, name, value) in members {
            let place = match &mut index {
                Some(index) => match index.get(&name) {
                    Some(place) => Some(*place),
                    None => {
                        index.insert(name.clone(), distinct.len());
                        None
                    }
                },
                None => distinct.iter().position(|(other, _)| *other == name),
            };
            match (place, self.policy.duplicate_keys) {
                (None, _) => distinct.push((name, value)),
                (Some(place), DuplicateKeys::Last) => {
                    if let Some(member) = distinct.get_mut(place) {
                        member.1 = value;
                    }
                }
                (Some(_), DuplicateKeys::First) => {}
                (Some(_), DuplicateKeys::Refuse) => self.refuse(ErrorKind::DuplicateKey, at),
            }
        }
        distinct
    }
}

impl Sink for Builder<'_> {
    fn open(&mut self, object: bool, _at: usize) {
        self.open.push(if object {
            Open::Object { members: Vec::new(), key: (0, Text::default()) }
        } else {
            Open::Array(Vec::new())
        });
    }

    fn close(&mut self, _object: bool, _end: usize) {
        let value = match self.open.pop() {
            Some(Open::Object { members, .. }) => Value::Object(self.distinct(members)),
            Some(Open::Array(elements)) => Value::Array(elements),
            None => return,
        };
        self.put(value);
    }

    fn key(&mut self, span: StrSpan) {
        let name = self.read(span);
        if let Some(Open::Object { key, .. }) = self.open.last_mut() {
            *key = (span.start, name);
        }
    }

    fn string(&mut self, span: StrSpan) {
        let text = self.read(span);
        self.put(Value::String(text));
    }

    fn number(&mut self, start: usize, end: usize, _exponent: bool) {
        let text = self.text.get(start..end).unwrap_or_default();
        let number = match self.policy.big_numbers {
            BigNumbers::Round if is_big(text) => Number::from_valid(&rounded(text)),
            BigNumbers::Refuse if is_big(text) => {
                self.refuse(ErrorKind::BigNumber, start);
                Number::from_valid(text)
            }
            _ => Number::from_valid(text),
        };
        self.put(Value::Number(number));
    }

    fn literal(&mut self, value: Option<bool>, _start: usize, _end: usize) {
        self.put(value.map_or(Value::Null, Value::Bool));
    }
}
