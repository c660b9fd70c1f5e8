//! Strict decoder: RFC 8259 in strict UTF-8, iterative, with limits.

use std::mem;

use super::Json;
use super::error::{DecodeError, DecodeErrorKind};
use super::make::{DiscardingBuilder, JsonBuilder, Make, TextBuilder as _};
use super::number;

/// Limits of the decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeLimits {
    /// Maximum length of a text, bytes.
    pub bytes_max: usize,
    /// Maximum nesting of arrays and objects; a scalar has depth 0, `[]` has 1.
    pub depth_max: usize,
}

impl Default for DecodeLimits {
    /// 64 MiB and a million levels. As nothing recurses, only memory (about 64 bytes per level) limits the depth.
    fn default() -> Self {
        DecodeLimits { bytes_max: 64 << 20, depth_max: 1_000_000 }
    }
}

/// Decoded text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// Value of the text.
    pub value: Json,
    /// Properties of the text that the value does not show.
    pub facts: TextProperties,
}

/// Properties of a text that the contract leaves open and that its value does not show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextProperties {
    /// Depth of nesting of arrays and objects; a scalar has 0, `[]` has 1.
    pub depth: usize,
    /// Set if an object has two members whose names are equal after unescaping.
    pub duplicate_keys: bool,
    /// Set if a string has an escaped surrogate without its other half, decoded to U+FFFD.
    pub lone_surrogates: bool,
}

/// Decodes one JSON text: RFC 8259 in strict UTF-8, with optional white space around the value.
///
/// Refuses a byte order mark. Lone surrogate escapes become U+FFFD and set a fact. Duplicate keys are kept and set a
/// fact.
///
/// # Errors
///
/// Returns the first offence in the text, or the exceeded limit.
pub fn decode(bytes: &[u8], limits: &DecodeLimits) -> Result<Decoded, DecodeError> {
    let (value, facts) = made::<JsonBuilder>(bytes, limits)?;
    Ok(Decoded { value, facts })
}

/// Validates a text as [`decode`] does, without building a value.
///
/// # Errors
///
/// As [`decode`].
pub fn check(bytes: &[u8], limits: &DecodeLimits) -> Result<(), DecodeError> {
    made::<DiscardingBuilder>(bytes, limits).map(|_| ())
}

fn made<M: Make>(bytes: &[u8], limits: &DecodeLimits) -> Result<(M::Value, TextProperties), DecodeError> {
    if bytes.len() > limits.bytes_max {
        let kind = DecodeErrorKind::TooLong { bytes_max: limits.bytes_max };
        return Err(DecodeError { offset: limits.bytes_max, kind });
    }
    if bytes.starts_with(b"\xEF\xBB\xBF") {
        return Err(DecodeError { offset: 0, kind: DecodeErrorKind::ByteOrderMark });
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Decoder::<M>::new(text, limits.depth_max).document(),
        Err(error) => {
            // A syntax error before the broken sequence comes first; otherwise the sequence is the offence.
            let offset = error.valid_up_to();
            let valid = std::str::from_utf8(&bytes[..offset]).unwrap_or_default();
            match Decoder::<DiscardingBuilder>::new(valid, limits.depth_max).document() {
                Err(earlier) if earlier.offset < offset => Err(earlier),
                _ => Err(DecodeError { offset, kind: DecodeErrorKind::InvalidUtf8 }),
            }
        }
    }
}

/// Number of elements above which a finished root container takes over the working stack instead of copying it.
const COPIED_ELEMENTS_MAX: usize = 4096;

/// Spare capacity after the first escape of a string: JSON inside a string has an escape every few bytes.
const ESCAPED_BYTES: usize = 48;

/// Initial capacity for the members of an ordinary message.
const MEMBERS: usize = 8;

/// Open array or object, with the start of its elements on the stack of finished values.
enum OpenContainer<T> {
    Array { start: usize },
    Object { start: usize, key: T },
}

struct Decoder<'a, M: Make> {
    text: &'a str,
    position: usize,
    depth_max: usize,
    facts: TextProperties,
    open: Vec<OpenContainer<M::Text>>,
    // Finished elements of all open arrays and members of all open objects. A closing bracket moves its own into a
    // vector of exactly their number: one allocation per container.
    elements: Vec<M::Value>,
    members: Vec<(M::Text, M::Value)>,
}

impl<'a, M: Make> Decoder<'a, M> {
    fn new(text: &'a str, depth_max: usize) -> Self {
        Decoder {
            text,
            position: 0,
            depth_max,
            facts: TextProperties::default(),
            open: Vec::new(),
            elements: Vec::new(),
            members: Vec::with_capacity(MEMBERS),
        }
    }

    fn document(mut self) -> Result<(M::Value, TextProperties), DecodeError> {
        let value = self.value()?;
        match self.skip_white_space() {
            None => Ok((value, self.facts)),
            Some(_) => Err(self.error(DecodeErrorKind::TrailingBytes)),
        }
    }

    fn value(&mut self) -> Result<M::Value, DecodeError> {
        loop {
            let Some(mut value) = self.value_or_open()? else { continue };
            // Passes the value to its parent, as long as that is complete, too.
            loop {
                match self.open.last_mut() {
                    None => return Ok(value),
                    Some(OpenContainer::Array { start }) => {
                        let start = *start;
                        self.elements.push(value);
                        match self.skip_white_space() {
                            Some(b',') => {
                                self.position += 1;
                                break;
                            }
                            Some(b']') => value = M::array(take_tail(&mut self.elements, start)),
                            found => return Err(self.unexpected("`,` or `]`", found)),
                        }
                    }
                    Some(OpenContainer::Object { start, key }) => {
                        let start = *start;
                        self.members.push((mem::take(key), value));
                        match self.skip_white_space() {
                            Some(b',') => {
                                self.position += 1;
                                let next = self.key()?;
                                if let Some(OpenContainer::Object { key, .. }) = self.open.last_mut() {
                                    *key = next;
                                }
                                break;
                            }
                            Some(b'}') => {
                                let members = take_tail(&mut self.members, start);
                                self.facts.duplicate_keys |=
                                    !self.facts.duplicate_keys && M::has_duplicate_keys(&members);
                                value = M::object(members);
                            }
                            found => return Err(self.unexpected("`,` or `}`", found)),
                        }
                    }
                }
                self.position += 1;
                self.open.pop();
            }
        }
    }

    /// Complete scalar or empty container, or `None` after opening a container with elements.
    fn value_or_open(&mut self) -> Result<Option<M::Value>, DecodeError> {
        Ok(Some(match self.skip_white_space() {
            Some(b'"') => M::string(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b'{') => {
                self.descend()?;
                if self.skip_white_space() == Some(b'}') {
                    self.position += 1;
                    return Ok(Some(M::object(Vec::new())));
                }
                let key = self.key()?;
                self.open.push(OpenContainer::Object { start: self.members.len(), key });
                return Ok(None);
            }
            Some(b'[') => {
                self.descend()?;
                if self.skip_white_space() == Some(b']') {
                    self.position += 1;
                    return Ok(Some(M::array(Vec::new())));
                }
                self.open.push(OpenContainer::Array { start: self.elements.len() });
                return Ok(None);
            }
            Some(b't') => self.word("true", Some(true))?,
            Some(b'f') => self.word("false", Some(false))?,
            Some(b'n') => self.word("null", None)?,
            found => return Err(self.unexpected("a value", found)),
        }))
    }

    /// Skips an opening bracket.
    fn descend(&mut self) -> Result<(), DecodeError> {
        let depth = self.open.len() + 1;
        if depth > self.depth_max {
            return Err(self.error(DecodeErrorKind::TooDeep { depth_max: self.depth_max }));
        }
        self.facts.depth = self.facts.depth.max(depth);
        self.position += 1;
        Ok(())
    }

    /// Member name and the colon after it.
    fn key(&mut self) -> Result<M::Text, DecodeError> {
        match self.skip_white_space() {
            Some(b'"') => {}
            found => return Err(self.unexpected("a member name", found)),
        }
        let key = self.string()?;
        match self.skip_white_space() {
            Some(b':') => self.position += 1,
            found => return Err(self.unexpected("`:`", found)),
        }
        Ok(key)
    }

    /// Reads `word`: a boolean, or `null` if `value` is `None`.
    fn word(&mut self, word: &'static str, value: Option<bool>) -> Result<M::Value, DecodeError> {
        for expected in word.bytes() {
            match self.peek() {
                Some(found) if found == expected => self.position += 1,
                found => return Err(self.unexpected(word, found)),
            }
        }
        Ok(M::word(value))
    }

    fn number(&mut self) -> Result<M::Value, DecodeError> {
        let start = self.position;
        match number::scan(&self.text.as_bytes()[start..]) {
            Ok(len) => {
                self.position += len;
                Ok(M::number(&self.text[start..start + len]))
            }
            Err(offset) => {
                self.position += offset;
                let end = self.position == self.text.len();
                Err(self.error(if end {
                    DecodeErrorKind::UnexpectedEnd
                } else {
                    DecodeErrorKind::InvalidNumber
                }))
            }
        }
    }

    /// String, from its opening to its closing quote.
    fn string(&mut self) -> Result<M::Text, DecodeError> {
        self.position += 1;
        let start = self.position;
        if self.plain_run()? == b'"' {
            let string = M::Text::of(&self.text[start..self.position], 0);
            self.position += 1;
            return Ok(string);
        }
        let mut string = M::Text::of(&self.text[start..self.position], ESCAPED_BYTES);
        loop {
            let character = self.escape()?;
            string.push(character);
            let start = self.position;
            let delimiter = self.plain_run()?;
            string.push_str(&self.text[start..self.position]);
            if delimiter == b'"' {
                self.position += 1;
                return Ok(string);
            }
        }
    }

    /// Skips unescaped characters up to the next quote or backslash, which it returns.
    fn plain_run(&mut self) -> Result<u8, DecodeError> {
        /// Most strings are shorter than the set-up of a vector search is worth.
        const BYTEWISE_MAX: usize = 16;
        let rest = &self.text.as_bytes()[self.position..];
        for (at, byte) in rest.iter().enumerate().take(BYTEWISE_MAX) {
            match byte {
                b'"' | b'\\' => {
                    self.position += at;
                    return Ok(*byte);
                }
                0..0x20 => return Err(self.control_character(at, *byte)),
                _ => {}
            }
        }
        let end = memchr::memchr2(b'"', b'\\', rest);
        let run = &rest[..end.unwrap_or(rest.len())];
        if let Some(at) = first_control_character(run) {
            return Err(self.control_character(at, run[at]));
        }
        self.position += run.len();
        match end {
            Some(end) => Ok(rest[end]),
            None => Err(self.error(DecodeErrorKind::UnexpectedEnd)),
        }
    }

    fn control_character(&mut self, at: usize, found: u8) -> DecodeError {
        self.position += at;
        self.error(DecodeErrorKind::ControlCharacter { found })
    }

    /// Character of an escape, from its backslash on.
    fn escape(&mut self) -> Result<char, DecodeError> {
        let Some(&letter) = self.text.as_bytes().get(self.position + 1) else {
            self.position = self.text.len();
            return Err(self.error(DecodeErrorKind::UnexpectedEnd));
        };
        let character = match letter {
            b'"' | b'\\' | b'/' => char::from(letter),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let unit = self.code_unit()?;
                return self.character_of(unit);
            }
            _ => return Err(self.error(DecodeErrorKind::InvalidEscape)),
        };
        self.position += 2;
        Ok(character)
    }

    /// UTF-16 code unit of the `\uXXXX` at the current position.
    fn code_unit(&mut self) -> Result<u32, DecodeError> {
        let digits = self.text.as_bytes()[self.position + 2..].iter().take(4);
        let mut unit = 0;
        let mut count = 0;
        for digit in digits {
            let Some(value) = char::from(*digit).to_digit(16) else {
                return Err(self.error(DecodeErrorKind::InvalidEscape));
            };
            unit = unit << 4 | value;
            count += 1;
        }
        if count < 4 {
            self.position = self.text.len();
            return Err(self.error(DecodeErrorKind::UnexpectedEnd));
        }
        self.position += 6;
        Ok(unit)
    }

    /// Character of `unit`; takes the low half of a surrogate pair from the next escape.
    fn character_of(&mut self, unit: u32) -> Result<char, DecodeError> {
        if (0xD800..0xDC00).contains(&unit) && self.text.as_bytes()[self.position..].starts_with(b"\\u") {
            let before = self.position;
            let low = self.code_unit()?;
            if (0xDC00..0xE000).contains(&low) {
                let code_point = 0x1_0000 + ((unit - 0xD800) << 10 | (low - 0xDC00));
                return Ok(char::from_u32(code_point).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.position = before;
        }
        Ok(char::from_u32(unit).unwrap_or_else(|| {
            self.facts.lone_surrogates = true;
            char::REPLACEMENT_CHARACTER
        }))
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }

    /// Skips white space (RFC 8259 §2: only these four) and peeks at the next byte.
    fn skip_white_space(&mut self) -> Option<u8> {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.position += 1,
                other => return other,
            }
        }
    }

    fn unexpected(&self, expected: &'static str, found: Option<u8>) -> DecodeError {
        self.error(match found {
            None => DecodeErrorKind::UnexpectedEnd,
            Some(found) => DecodeErrorKind::UnexpectedByte { expected, found },
        })
    }

    fn error(&self, kind: DecodeErrorKind) -> DecodeError {
        DecodeError { offset: self.position, kind }
    }
}

/// Moves the elements of `stack` from `start` on into a vector without spare capacity.
fn take_tail<T>(stack: &mut Vec<T>, start: usize) -> Vec<T> {
    if start == 0 && stack.len() > COPIED_ELEMENTS_MAX {
        let mut all = mem::take(stack);
        all.shrink_to_fit();
        return all;
    }
    stack.drain(start..).collect()
}

/// Offset of the first byte below 0x20. Works on whole blocks without an early exit, which compile to vector code.
fn first_control_character(bytes: &[u8]) -> Option<usize> {
    const BLOCK_BYTES: usize = 64;
    for (block, chunk) in bytes.chunks(BLOCK_BYTES).enumerate() {
        if chunk.iter().fold(false, |found, byte| found | (*byte < 0x20)) {
            return chunk.iter().position(|byte| *byte < 0x20).map(|at| block * BLOCK_BYTES + at);
        }
    }
    None
}
