//! Output of the decoder: a tree, or nothing for mere validation.

use std::collections::HashSet;

use super::Json;
use super::number::Number;

/// Maximum size of objects in which duplicate keys are found by comparing all pairs.
const PAIRWISE_MEMBERS_MAX: usize = 16;

/// Builder of a string or member name.
pub(super) trait TextBuilder: Default {
    /// Starts with `run` and reserves space for `more` further bytes.
    fn of(run: &str, more: usize) -> Self;
    /// Appends the character of an escape.
    fn push(&mut self, character: char);
    /// Appends unescaped characters.
    fn push_str(&mut self, run: &str);
}

/// Builder of values.
pub(super) trait Make {
    type Text: TextBuilder;
    type Value;

    fn string(text: Self::Text) -> Self::Value;
    /// Makes a number of `text`, which is exactly one number.
    fn number(text: &str) -> Self::Value;
    /// Makes a boolean, or `null` for `None`.
    fn word(value: Option<bool>) -> Self::Value;
    fn array(items: Vec<Self::Value>) -> Self::Value;
    fn object(members: Vec<(Self::Text, Self::Value)>) -> Self::Value;
    fn has_duplicate_keys(members: &[(Self::Text, Self::Value)]) -> bool;
}

/// Builds a [`Json`].
pub(super) struct JsonBuilder;

/// Builds nothing: values take no memory, and duplicate names are not noticed.
pub(super) struct DiscardingBuilder;

impl TextBuilder for String {
    fn of(run: &str, more: usize) -> Self {
        let mut text = Self::with_capacity(run.len() + more);
        text.push_str(run);
        text
    }

    fn push(&mut self, character: char) {
        self.push(character);
    }

    fn push_str(&mut self, run: &str) {
        self.push_str(run);
    }
}

impl Make for JsonBuilder {
    type Text = String;
    type Value = Json;

    fn string(text: String) -> Json {
        Json::String(text)
    }

    fn number(text: &str) -> Json {
        Json::Number(Number::from_scanned(text))
    }

    fn word(value: Option<bool>) -> Json {
        value.map_or(Json::Null, Json::Bool)
    }

    fn array(items: Vec<Json>) -> Json {
        Json::Array(items)
    }

    fn object(members: Vec<(String, Json)>) -> Json {
        Json::Object(members)
    }

    fn has_duplicate_keys(members: &[(String, Json)]) -> bool {
        if members.len() <= PAIRWISE_MEMBERS_MAX {
            return members
                .iter()
                .enumerate()
                .any(|(at, (key, _))| members[..at].iter().any(|(other, _)| other == key));
        }
        let mut seen = HashSet::with_capacity(members.len());
        members.iter().any(|(key, _)| !seen.insert(key.as_str()))
    }
}

impl TextBuilder for () {
    fn of(_: &str, _: usize) {}

    fn push(&mut self, _: char) {}

    fn push_str(&mut self, _: &str) {}
}

impl Make for DiscardingBuilder {
    type Text = ();
    type Value = ();

    fn string((): ()) {}

    fn number(_: &str) {}

    fn word(_: Option<bool>) {}

    fn array(_: Vec<()>) {}

    fn object(_: Vec<((), ())>) {}

    fn has_duplicate_keys(_: &[((), ())]) -> bool {
        false
    }
}
