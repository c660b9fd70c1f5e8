//! Errors of the decoder.

use std::fmt;

#[cfg(doc)]
use super::DecodeLimits;

/// Decoding error and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// Offset of the first wrong byte; the length of the text if it ends early.
    pub offset: usize,
    /// Kind of error.
    pub kind: DecodeErrorKind,
}

/// Kind of a decoding error: invalid JSON or an exceeded limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// The text is longer than [`DecodeLimits::bytes_max`].
    TooLong {
        /// The limit.
        bytes_max: usize,
    },
    /// Nesting exceeds [`DecodeLimits::depth_max`].
    TooDeep {
        /// The limit.
        depth_max: usize,
    },
    /// The text starts with a UTF-8 byte order mark.
    ByteOrderMark,
    /// The bytes are not UTF-8 (overlong forms, surrogates, stray or cut sequences).
    InvalidUtf8,
    /// The text is empty or ends before its value is complete.
    UnexpectedEnd,
    /// A byte is not allowed here.
    UnexpectedByte {
        /// Description of the bytes allowed here.
        expected: &'static str,
        /// The wrong byte.
        found: u8,
    },
    /// Something other than white space follows the value.
    TrailingBytes,
    /// A raw control character (below U+0020) inside a string.
    ControlCharacter {
        /// The character.
        found: u8,
    },
    /// A backslash starts no escape of RFC 8259 §7.
    InvalidEscape,
    /// A number breaks the grammar of RFC 8259 §6, such as `01` or `1.`.
    InvalidNumber,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: ", self.offset)?;
        match self.kind {
            DecodeErrorKind::TooLong { bytes_max } => write!(f, "the text is longer than {bytes_max} bytes"),
            DecodeErrorKind::TooDeep { depth_max } => write!(f, "nested deeper than {depth_max} levels"),
            DecodeErrorKind::ByteOrderMark => f.write_str("the text starts with a byte order mark"),
            DecodeErrorKind::InvalidUtf8 => f.write_str("the bytes are not UTF-8"),
            DecodeErrorKind::UnexpectedEnd => f.write_str("the text ends before its value is complete"),
            DecodeErrorKind::UnexpectedByte { expected, found } => match found {
                0x21..=0x7E => write!(f, "expected {expected}, found `{}`", char::from(found)),
                _ => write!(f, "expected {expected}, found the byte 0x{found:02x}"),
            },
            DecodeErrorKind::TrailingBytes => f.write_str("unexpected text after the value"),
            DecodeErrorKind::ControlCharacter { found } => {
                write!(f, "the control character 0x{found:02x} is not escaped in a string")
            }
            DecodeErrorKind::InvalidEscape => f.write_str("the backslash does not begin a JSON escape"),
            DecodeErrorKind::InvalidNumber => f.write_str("the number is not valid JSON"),
        }
    }
}

impl std::error::Error for DecodeError {}
