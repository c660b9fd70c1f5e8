//! What the decoder makes of a text: a tree, or nothing where it only has to be strict.

use super::Json;
use super::decode::has_duplicate_keys;
use super::number::Number;

/// Takes the characters of a string or of a member name.
pub(super) trait Text: Default {
    /// Begins with `run` and makes room for as many bytes more.
    fn of(run: &str, more: usize) -> Self;
    /// Appends the character of an escape.
    fn push(&mut self, character: char);
    /// Appends characters that stand for themselves.
    fn push_str(&mut self, run: &str);
}

/// Takes the values of a text.
pub(super) trait Make {
    type Text: Text;
    type Value;

    fn string(text: Self::Text) -> Self::Value;
    /// `text` is exactly one number.
    fn number(text: &str) -> Self::Value;
    /// A boolean, or `null`.
    fn word(value: Option<bool>) -> Self::Value;
    fn array(items: Vec<Self::Value>) -> Self::Value;
    fn object(members: Vec<(Self::Text, Self::Value)>) -> Self::Value;
    fn has_duplicate_keys(members: &[(Self::Text, Self::Value)]) -> bool;
}

/// Makes a [`Json`].
pub(super) struct Tree;

/// Makes nothing: no value takes any room, and no fact about names is found.
pub(super) struct Nothing;

impl Text for String {
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

impl Make for Tree {
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
        has_duplicate_keys(members)
    }
}

impl Text for () {
    fn of(_: &str, _: usize) {}

    fn push(&mut self, _: char) {}

    fn push_str(&mut self, _: &str) {}
}

impl Make for Nothing {
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
