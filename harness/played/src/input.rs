//! Inputs of fuzz targets: building blocks of conversations and messages.
//!
//! With the feature `arbitrary`, every type here can be drawn from bytes by the crate of that name, so that libFuzzer
//! changes steps and members. Properties take the values without knowing their origin.

use std::ops::Deref;

use peerproof_engine::data::json::Json;

/// Maximum nesting of arrays and objects; deeper values are null. [`Edit`] and word lists produce deep nesting.
const LEVELS_MAX: usize = 8;
/// Maximum number of lines of a recorded conversation.
const LINES_MAX: usize = 200;

/// Strings and names that are easily lost or changed.
const TEXTS: [&str; 24] = [
    "a",
    "b",
    "",
    "x",
    "é€😀",
    "e\u{301}",
    "\0",
    "a\nb\r\n",
    "\u{2028}",
    "\u{feff}",
    "\"\\",
    "<PICK><SID0001><END>",
    "</INP>",
    "null",
    "7",
    "1e3",
    "__proto__",
    "id",
    "method",
    "slots",
    "delta",
    "type",
    "http",
    "SID0001",
];

const NUMBERS: [&str; 10] =
    ["0.5", "-0.0", "1E2", "1e-7", "4294967296", "9007199254740991", "-9007199254740991", "1.0", "8", "1e21"];

/// Tokens that an edit inserts, most of which break JSON.
const TOKENS: [&[u8]; 26] = [
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b" ",
    b"\t",
    b"\r",
    b"0",
    b"-",
    b".",
    b"e9",
    b"1e400",
    b"9007199254740993",
    b"null",
    b"\\ud800",
    b"\"a\":1,",
    b"\0",
    b"\xFF",
    b"\xC3",
    b"\xEF\xBB\xBF",
    b"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    b"]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
];

/// Index in a list of any length.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub struct Choice(u8);

impl Choice {
    /// Selects one of `items`, which must not be empty.
    pub fn of<T: Copy>(self, items: &[T]) -> T {
        items[usize::from(self.0) % items.len()]
    }
}

/// List; at most `MAX` items if drawn.
#[derive(Clone, Debug)]
pub struct ShortList<T, const MAX: usize>(pub Vec<T>);

impl<T, const MAX: usize> Deref for ShortList<T, MAX> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

/// JSON string.
#[derive(Clone, Debug)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub enum Text {
    /// String from a list.
    Known(Choice),
    /// The letter k and a number.
    Numbered(u8),
    /// This many letters.
    Long(u8),
}

impl Text {
    /// The string without quotes.
    pub fn text(&self) -> String {
        match self {
            Text::Known(choice) => choice.of(&TEXTS).to_owned(),
            Text::Numbered(number) => format!("k{number}"),
            Text::Long(bytes) => "x".repeat(usize::from(*bytes)),
        }
    }
}

/// Plain JSON: no duplicate names, no number that a double cannot keep, no lone surrogate.
#[derive(Clone, Debug)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
#[allow(missing_docs, reason = "the names are those of JSON")]
pub enum Value {
    Null,
    Flag(bool),
    Whole(i16),
    Number(Choice),
    Text(Text),
    Array(ShortList<Value, 4>),
    Object(ShortList<(Text, Value), 4>),
}

impl Value {
    /// Converts to the harness's JSON value.
    pub fn json(&self) -> Json {
        self.within(LEVELS_MAX)
    }

    fn within(&self, levels: usize) -> Json {
        match self {
            Value::Array(_) | Value::Object(_) if levels == 0 => Json::Null,
            Value::Null => Json::Null,
            Value::Flag(flag) => Json::from(*flag),
            Value::Whole(number) => Json::from(i64::from(*number)),
            Value::Number(choice) => choice.of(&NUMBERS).parse().unwrap_or_default(),
            Value::Text(text) => Json::from(text.text()),
            Value::Array(items) => {
                Json::array(items.iter().map(|item| item.within(levels - 1)).collect::<Vec<_>>())
            }
            Value::Object(members) => {
                let mut object = Json::Object(Vec::new());
                members.iter().for_each(|(name, value)| object.set(&name.text(), value.within(levels - 1)));
                object
            }
        }
    }
}

/// JSON text of a member: one of its message's list, or any value.
#[derive(Clone, Debug)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub enum Member {
    /// Entry of the list.
    Known(Choice),
    /// Any value.
    Value(Value),
}

impl Member {
    /// Text of the member, given its message's list.
    pub fn text(&self, known: &[&str]) -> String {
        match self {
            Member::Known(choice) => choice.of(known).to_owned(),
            Member::Value(value) => value.json().to_text(),
        }
    }
}

/// Change of a line in one place, which may make it malformed. A place beyond the end wraps around to the beginning.
#[derive(Clone, Debug)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub enum Edit {
    /// Ends the line here.
    Cut(u16),
    /// Inserts a token here.
    Insert(u16, Choice),
    /// Replaces a byte by a token.
    Replace(u16, Choice),
    /// Removes this many bytes.
    Remove(u16, u8),
    /// Repeats the line on the same line.
    Double,
}

impl Edit {
    /// Changes the line without adding a line feed.
    pub fn apply(&self, line: &mut Vec<u8>) {
        let places = line.len() + 1;
        let place = |at: &u16| usize::from(*at) % places;
        match self {
            Edit::Cut(at) => line.truncate(place(at)),
            Edit::Insert(at, token) => {
                let at = place(at);
                line.splice(at..at, token.of(&TOKENS).iter().copied());
            }
            Edit::Replace(at, token) => {
                let at = place(at);
                line.splice(at..line.len().min(at + 1), token.of(&TOKENS).iter().copied());
            }
            Edit::Remove(at, bytes) => {
                let at = place(at);
                line.drain(at..line.len().min(at + usize::from(*bytes)));
            }
            Edit::Double => line.extend_from_within(..),
        }
    }
}

/// Line of a conversation.
#[derive(Clone, Debug)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub enum Line<T> {
    /// Valid message.
    Message(T),
    /// Message with one change.
    Near(T, Edit),
    /// Raw bytes; line feeds are left out.
    Bytes(ShortList<u8, 64>),
}

impl<T> Line<T> {
    /// Line with its line feed; `text` writes its message.
    pub fn bytes(&self, text: impl FnOnce(&T) -> String) -> Vec<u8> {
        let mut line = match self {
            Line::Message(message) => text(message).into_bytes(),
            Line::Near(message, edit) => {
                let mut line = text(message).into_bytes();
                edit.apply(&mut line);
                line
            }
            Line::Bytes(bytes) => bytes.iter().copied().filter(|byte| *byte != b'\n').collect(),
        };
        line.push(b'\n');
        line
    }
}

/// Division of bytes on their way to a machine.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub enum Pieces {
    /// Each line at once.
    Whole,
    /// This many bytes at once, at least one.
    Every(u8),
}

impl Pieces {
    /// Pieces of one line.
    pub fn of(self, line: &[u8]) -> impl Iterator<Item = &[u8]> {
        line.chunks(match self {
            Pieces::Whole => line.len().max(1),
            Pieces::Every(bytes) => usize::from(bytes).max(1),
        })
    }
}

/// Input of a peer, step by step.
#[derive(Clone, Debug)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub struct Conversation<T> {
    /// Division of each line.
    pub pieces: Pieces,
    /// Steps in order.
    pub steps: ShortList<T, 200>,
}

impl<T> Conversation<Line<T>> {
    /// Recorded conversation: the first lines of `data`, unchanged.
    pub fn of(data: &[u8]) -> Self {
        let lines = data.split(|byte| *byte == b'\n').take(LINES_MAX);
        let steps = ShortList(lines.map(|line| Line::Bytes(ShortList(line.to_vec()))).collect());
        Self { pieces: Pieces::Whole, steps }
    }
}

#[cfg(any(test, feature = "arbitrary"))]
pub use drawn::drawn;

#[cfg(any(test, feature = "arbitrary"))]
mod drawn {
    use arbitrary::{Arbitrary, Result, Unstructured};
    use peerproof_engine::data::rng::Rng;

    use super::ShortList;

    impl<'a, T: Arbitrary<'a>, const MAX: usize> Arbitrary<'a> for ShortList<T, MAX> {
        fn arbitrary(bytes: &mut Unstructured<'a>) -> Result<Self> {
            let mut items = Vec::new();
            // Prefers long lists and lets nested values end.
            while items.len() < MAX && !bytes.is_empty() && bytes.ratio(MAX, MAX + 2)? {
                let Ok(item) = T::arbitrary(bytes) else { break };
                items.push(item);
            }
            Ok(ShortList(items))
        }
    }

    /// Draws an input from at most `bytes_max` random bytes; `None` if they do not make one.
    pub fn drawn<T: for<'a> Arbitrary<'a>>(rng: &mut Rng, bytes_max: u64) -> Option<T> {
        let bytes: Vec<u8> = (0..rng.below(bytes_max)).map(|_| rng.next_u64() as u8).collect();
        T::arbitrary_take_rest(Unstructured::new(&bytes)).ok()
    }
}
