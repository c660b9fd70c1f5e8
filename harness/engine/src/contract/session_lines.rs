//! Lines of both sides of a session as JSON.

use crate::data::json::{self, DecodeError, DecodeLimits, Decoded, Json};
use crate::data::lines::SpokenLine;
use crate::data::payload::shorten;

/// Maximum length of the text kept for display, characters.
const SHOWN_CHARS: usize = 240;

/// Line of either side.
#[derive(Debug, Clone)]
pub struct SessionLine {
    /// Set if the harness wrote it.
    pub is_ours: bool,
    /// Time of completion, microseconds.
    pub at_us: u64,
    /// Decoded JSON, or the error.
    pub decoded: Result<Decoded, DecodeError>,
    /// Shortened text.
    pub text: String,
    /// Length in bytes.
    pub length: usize,
    /// Set if a line feed ended it, rather than the end of input.
    pub ended: bool,
}

impl SessionLine {
    /// Decodes a line, without a carriage return at its end.
    pub fn of(line: &SpokenLine) -> Self {
        let bytes = line.bytes.strip_suffix(b"\r").unwrap_or(&line.bytes);
        Self {
            is_ours: line.step.is_some(),
            at_us: line.at_us,
            decoded: json::decode(bytes, &DecodeLimits::default()),
            text: shorten(&String::from_utf8_lossy(bytes), SHOWN_CHARS).into_owned(),
            length: bytes.len(),
            ended: line.ended,
        }
    }

    /// Value, if it is JSON.
    pub fn value(&self) -> Option<&Json> {
        self.decoded.as_ref().ok().map(|decoded| &decoded.value)
    }

    /// Items of an array, or else the value itself.
    pub fn messages(&self) -> &[Json] {
        self.value().map_or(&[], |value| value.as_array().unwrap_or(std::slice::from_ref(value)))
    }

    /// True for an array.
    pub fn is_array(&self) -> bool {
        self.value().is_some_and(|value| value.as_array().is_some())
    }
}
