//! What is wrong with a text that is not accepted.

use std::fmt;

#[cfg(doc)]
use super::DecodeLimits;

/// Why a text is not accepted, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// Offset in bytes of the first byte that cannot stand where it stands; the text's length when it ends early.
    pub offset: usize,
    /// What is wrong there.
    pub kind: DecodeErrorKind,
}

/// The ways in which a text is not strict JSON or exceeds a limit.
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
    /// The text ends before its value is complete; also an empty text.
    UnexpectedEnd,
    /// A byte that cannot stand here.
    UnexpectedByte {
        /// What could have stood here, in words.
        expected: &'static str,
        /// What stands here.
        found: u8,
    },
    /// Something else than white space follows the value.
    TrailingBytes,
    /// A raw control character (below U+0020) inside a string.
    ControlCharacter {
        /// The character.
        found: u8,
    },
    /// A backslash that starts no escape of RFC 8259 §7.
    InvalidEscape,
    /// A number that breaks the grammar of RFC 8259 §6, such as `01` or `1.`.
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
            DecodeErrorKind::TrailingBytes => f.write_str("something follows the value"),
            DecodeErrorKind::ControlCharacter { found } => {
                write!(f, "the control character 0x{found:02x} stands unescaped in a string")
            }
            DecodeErrorKind::InvalidEscape => f.write_str("the backslash starts no JSON escape"),
            DecodeErrorKind::InvalidNumber => f.write_str("the number breaks the JSON grammar"),
        }
    }
}

impl std::error::Error for DecodeError {}
