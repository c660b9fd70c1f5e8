//! Strict JSON (RFC 8259) in strict UTF-8: iterative, bounded in depth, with byte offsets in errors.
//!
//! It offers two APIs for one grammar:
//! - [`Scanner`] validates a text in one pass and returns the members of its top-level object as raw spans ([`Raw`],
//!   [`RawStr`]), unescaped on demand. It also reports ambiguities, on which implementations differ ([`Traits`]).
//! - [`Value`] is a small tree: numbers as text, objects in order of appearance.
//!
//! Duplicate keys, lone surrogates and large numbers are open in the contract (§0); [`Policy`] picks one behaviour.

mod bytes;
mod embedded;
mod grammar;
mod number;
mod scanner;
mod text;
mod value;
mod write;

pub use number::{Number, rounded};
pub use scanner::{Document, Kind, Object, Raw, Scanned, Scanner, Traits};
pub use text::{RawStr, Text, unescape_document};
pub use value::Value;
pub(crate) use write::write_text;
pub use write::{write_canonical, write_str, write_value};

/// Error that says why a text is not JSON, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at byte {at}")]
pub struct Error {
    /// Fault of the text.
    pub kind: ErrorKind,
    /// Offset of the offending byte from the start of the text; the length of the text when it ends too early.
    pub at: usize,
}

/// Fault of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A byte sequence that is not UTF-8.
    #[error("invalid UTF-8")]
    Utf8,
    /// The text ends within a value.
    #[error("unexpected end of text")]
    Eof,
    /// A value was expected.
    #[error("expected a value")]
    Value,
    /// A member name was expected.
    #[error("expected a member name")]
    Key,
    /// A colon was expected.
    #[error("expected ':'")]
    Colon,
    /// A comma or the end of the array or object was expected.
    #[error("expected ',' or a closing bracket")]
    Comma,
    /// A number with a leading zero, a bare sign, or an empty fraction or exponent.
    #[error("malformed number")]
    Number,
    /// A raw control character in a string.
    #[error("raw control character in a string")]
    Control,
    /// An escape that JSON does not have.
    #[error("malformed escape")]
    Escape,
    /// Bytes after the value.
    #[error("unexpected bytes after the value")]
    Trailing,
    /// More nested arrays and objects than allowed.
    #[error("nested too deeply")]
    Depth,
    /// More bytes than allowed, or 4 GiB.
    #[error("too many bytes")]
    Size,
    /// A member name that appeared before, refused by [`DuplicateKeys::Refuse`].
    #[error("duplicate member name")]
    DuplicateKey,
    /// A lone surrogate, refused by [`LoneSurrogates::Refuse`].
    #[error("lone surrogate escape")]
    LoneSurrogate,
    /// A number beyond the exact range of a double, refused by [`BigNumbers::Refuse`].
    #[error("number beyond the range of a double")]
    BigNumber,
}

impl ErrorKind {
    /// Faults that the grammar itself finds.
    const GRAMMAR: [Self; 10] = [
        Self::Eof,
        Self::Value,
        Self::Key,
        Self::Colon,
        Self::Comma,
        Self::Number,
        Self::Control,
        Self::Escape,
        Self::Trailing,
        Self::Depth,
    ];
}

/// Treatment of two members with one name (contract §0).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DuplicateKeys {
    /// The last one counts, in the position of the first.
    #[default]
    Last,
    /// The first one counts.
    First,
    /// The text is refused.
    Refuse,
}

/// Treatment of a lone surrogate escape (contract §0).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LoneSurrogates {
    /// It is kept and written as it was read.
    #[default]
    Echo,
    /// It is replaced by U+FFFD.
    Replace,
    /// The text is refused.
    Refuse,
}

/// Treatment of integers beyond ±(2^53−1) and of numbers beyond a double (contract §0).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BigNumbers {
    /// The digits are kept.
    #[default]
    Exact,
    /// They become the nearest finite double.
    Round,
    /// The text is refused.
    Refuse,
}

/// Treatment of the ambiguities that the contract leaves open. The default keeps the text as it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Policy {
    /// Treatment of two members with one name.
    pub duplicate_keys: DuplicateKeys,
    /// Treatment of lone surrogates.
    pub lone_surrogates: LoneSurrogates,
    /// Treatment of numbers beyond the exact range of a double.
    pub big_numbers: BigNumbers,
}

impl Policy {
    /// True if this policy may refuse a text with `traits`; [`Value::parse`] then decides.
    pub(crate) fn may_refuse(&self, traits: Traits) -> bool {
        (traits.duplicate_keys && self.duplicate_keys == DuplicateKeys::Refuse)
            || (traits.lone_surrogates && self.lone_surrogates == LoneSurrogates::Refuse)
            || (traits.big_numbers && self.big_numbers == BigNumbers::Refuse)
    }
}
