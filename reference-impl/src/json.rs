//! Strict JSON (RFC 8259) in strict UTF-8: iterative, bounded in depth, with byte offsets in errors.
//!
//! Two ways in, one grammar:
//! - [`Scanner`] validates a text in one pass and gives the members of its top-level object as raw spans
//!   ([`Raw`], [`RawStr`]), unescaped only when asked. It also says whether the text holds anything on which
//!   implementations differ ([`Traits`]).
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

pub use number::{Number, is_big, rounded};
pub use scanner::{Document, Kind, Object, Raw, Scanned, Scanner, Traits};
pub use text::{RawStr, Text, unescape_document};
pub use value::Value;
pub use write::{write_canonical, write_str, write_text, write_value};

/// Why a text is not JSON, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at byte {at}")]
pub struct Error {
    /// What is wrong.
    pub kind: ErrorKind,
    /// Offset of the offending byte from the start of the text; the length of the text when it ends too early.
    pub at: usize,
}

/// What is wrong with a text.
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
    /// Half of a surrogate pair, refused by [`LoneSurrogates::Refuse`].
    #[error("lone surrogate escape")]
    LoneSurrogate,
    /// A number that a double does not hold, refused by [`BigNumbers::Refuse`].
    #[error("number beyond the range of a double")]
    BigNumber,
}

impl ErrorKind {
    /// The kinds that the grammar itself finds.
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

/// Which of two members with one name counts (contract §0).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DuplicateKeys {
    /// The last one, at the place of the first.
    #[default]
    Last,
    /// The first one.
    First,
    /// Neither: the text is refused.
    Refuse,
}

/// What becomes of an escaped half of a surrogate pair (contract §0).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LoneSurrogates {
    /// It is data and is written as it was read.
    #[default]
    Echo,
    /// It becomes U+FFFD.
    Replace,
    /// The text is refused.
    Refuse,
}

/// What becomes of integers beyond ±(2^53−1) and of numbers beyond a double (contract §0).
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

/// The behaviours chosen where the contract leaves JSON open; the default keeps what was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Policy {
    /// Two members with one name.
    pub duplicate_keys: DuplicateKeys,
    /// Half of a surrogate pair.
    pub lone_surrogates: LoneSurrogates,
    /// Numbers that a double does not hold.
    pub big_numbers: BigNumbers,
}

impl Policy {
    /// True when a text with `traits` may hold something that this policy refuses; [`Value::parse`] then tells.
    pub fn may_refuse(&self, traits: Traits) -> bool {
        (traits.duplicate_keys && self.duplicate_keys == DuplicateKeys::Refuse)
            || (traits.lone_surrogates && self.lone_surrogates == LoneSurrogates::Refuse)
            || (traits.big_numbers && self.big_numbers == BigNumbers::Refuse)
    }
}
