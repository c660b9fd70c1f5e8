//! What both sides of a session said, line by line, as JSON.

use crate::json::{self, DecodeError, DecodeLimits, Decoded, Json};
use crate::lines::Spoken;
use crate::payload::shorten;

/// Characters of a line that are kept to be shown.
const SHOWN_CHARS: usize = 240;

/// One line, whoever wrote it.
#[derive(Debug, Clone)]
pub struct Said {
    /// The harness wrote it.
    pub is_ours: bool,
    /// When it was complete, microseconds.
    pub at_us: u64,
    /// What it holds.
    pub decoded: Result<Decoded, DecodeError>,
    /// Its text, shortened.
    pub text: String,
    /// Number of its bytes.
    pub length: usize,
    /// A line feed ended it; else the end of input did.
    pub ended: bool,
}

impl Said {
    /// What was spoken; a carriage return at its end is no part of it.
    pub fn of(line: &Spoken) -> Self {
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

    /// Its value, where it is JSON.
    pub fn value(&self) -> Option<&Json> {
        self.decoded.as_ref().ok().map(|decoded| &decoded.value)
    }

    /// The values in it: those of an array, or itself.
    pub fn messages(&self) -> &[Json] {
        self.value().map_or(&[], |value| value.as_array().unwrap_or(std::slice::from_ref(value)))
    }

    /// Whether it is an array.
    pub fn is_array(&self) -> bool {
        self.value().is_some_and(|value| value.as_array().is_some())
    }
}
