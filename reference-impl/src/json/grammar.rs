//! The grammar, once: an iterative walk over a text that tells a [`Sink`] what it meets.

use super::{Error, ErrorKind};

/// A string as it stands in the text: the bytes between its quotes, already validated.
#[derive(Debug, Clone, Copy)]
pub(super) struct StrSpan {
    /// Offset of the first byte after the opening quote.
    pub start: usize,
    /// Offset of the closing quote.
    pub end: usize,
    /// The string holds at least one backslash.
    pub escaped: bool,
    /// The string holds half of a surrogate pair.
    pub lone_surrogate: bool,
}

/// Receives the parts of a text in order. Offsets count bytes from the start of the text.
pub(super) trait Sink {
    /// An array (`object` false) or object starts at `at`.
    fn open(&mut self, object: bool, at: usize);
    /// The innermost array or object ends; `end` is the offset after its bracket.
    fn close(&mut self, object: bool, end: usize);
    /// A member name.
    fn key(&mut self, key: StrSpan);
    /// A string value.
    fn string(&mut self, string: StrSpan);
    /// A number from `start` to `end`.
    fn number(&mut self, start: usize, end: usize);
    /// `null` (`None`), `true` or `false` from `start` to `end`.
    fn literal(&mut self, value: Option<bool>, start: usize, end: usize);
}

/// Walks over the one value in `text`, surrounded by white space at most. `text` must be valid UTF-8 (the callers
/// hold it as such); `stack` is a scratch buffer.
pub(super) fn walk<S: Sink>(
    text: &[u8],
    nesting_max: usize,
    stack: &mut Vec<bool>,
    sink: &mut S,
) -> Result<(), Error> {
    stack.clear();
    let mut at = 0;
    'value: loop {
        at = skip_space(text, at);
        match byte(text, at) {
            b'"' => {
                let string = string(text, at + 1)?;
                sink.string(string);
                at = string.end + 1;
            }
            b'{' => {
                enter(stack, true, nesting_max, at)?;
                sink.open(true, at);
                at = skip_space(text, at + 1);
                if byte(text, at) == b'}' {
                    stack.pop();
                    at += 1;
                    sink.close(true, at);
                } else {
                    at = key(text, at, sink)?;
                    continue 'value;
                }
            }
            b'[' => {
                enter(stack, false, nesting_max, at)?;
                sink.open(false, at);
                at = skip_space(text, at + 1);
                if byte(text, at) == b']' {
                    stack.pop();
                    at += 1;
                    sink.close(false, at);
                } else {
                    continue 'value;
                }
            }
            b'-' | b'0'..=b'9' => {
                let end = number(text, at)?;
                sink.number(at, end);
                at = end;
            }
            b't' => at = literal(text, at, "true", Some(true), sink)?,
            b'f' => at = literal(text, at, "false", Some(false), sink)?,
            b'n' => at = literal(text, at, "null", None, sink)?,
            _ => return Err(unexpected(text, at, ErrorKind::Value)),
        }
        // After a value: close what ends here, then go on with the next one.
        loop {
            at = skip_space(text, at);
            let Some(&object) = stack.last() else {
                return if at == text.len() { Ok(()) } else { Err(Error { kind: ErrorKind::Trailing, at }) };
            };
            match (byte(text, at), object) {
                (b',', true) => {
                    at = skip_space(text, at + 1);
                    at = key(text, at, sink)?;
                    continue 'value;
                }
                (b',', false) => {
                    at += 1;
                    continue 'value;
                }
                (b'}', true) | (b']', false) => {
                    stack.pop();
                    at += 1;
                    sink.close(object, at);
                }
                _ => return Err(unexpected(text, at, ErrorKind::Comma)),
            }
        }
    }
}

/// The byte at `at`, or 0, which no place of the grammar accepts, past the end.
#[inline(always)]
fn byte(text: &[u8], at: usize) -> u8 {
    text.get(at).copied().unwrap_or(0)
}

fn unexpected(text: &[u8], at: usize, kind: ErrorKind) -> Error {
    Error { kind: if at >= text.len() { ErrorKind::Eof } else { kind }, at }
}

fn enter(stack: &mut Vec<bool>, object: bool, nesting_max: usize, at: usize) -> Result<(), Error> {
    if stack.len() >= nesting_max {
        return Err(Error { kind: ErrorKind::Depth, at });
    }
    stack.push(object);
    Ok(())
}

#[inline(always)]
fn skip_space(text: &[u8], mut at: usize) -> usize {
    while matches!(byte(text, at), b' ' | b'\n' | b'\r' | b'\t') {
        at += 1;
    }
    at
}

/// Reads a member name and its colon; returns the offset after the colon.
#[inline(always)]
fn key<S: Sink>(text: &[u8], at: usize, sink: &mut S) -> Result<usize, Error> {
    if byte(text, at) != b'"' {
        return Err(unexpected(text, at, ErrorKind::Key));
    }
    let name = string(text, at + 1)?;
    sink.key(name);
    let at = skip_space(text, name.end + 1);
    if byte(text, at) != b':' {
        return Err(unexpected(text, at, ErrorKind::Colon));
    }
    Ok(at + 1)
}

fn literal<S: Sink>(
    text: &[u8],
    at: usize,
    word: &str,
    value: Option<bool>,
    sink: &mut S,
) -> Result<usize, Error> {
    let end = at + word.len();
    if text.get(at..end) == Some(word.as_bytes()) {
        sink.literal(value, at, end);
        return Ok(end);
    }
    let same = word.bytes().enumerate().take_while(|(i, b)| byte(text, at + i) == *b).count();
    Err(unexpected(text, at + same, ErrorKind::Value))
}

fn number(text: &[u8], start: usize) -> Result<usize, Error> {
    let mut at = start + usize::from(byte(text, start) == b'-');
    let first = byte(text, at);
    if !first.is_ascii_digit() {
        return Err(unexpected(text, at, ErrorKind::Number));
    }
    at += 1;
    if first == b'0' {
        if byte(text, at).is_ascii_digit() {
            return Err(Error { kind: ErrorKind::Number, at });
        }
    } else {
        at = skip_digits(text, at);
    }
    if byte(text, at) == b'.' {
        at = some_digits(text, at + 1)?;
    }
    if matches!(byte(text, at), b'e' | b'E') {
        at += 1;
        at += usize::from(matches!(byte(text, at), b'+' | b'-'));
        at = some_digits(text, at)?;
    }
    Ok(at)
}

fn skip_digits(text: &[u8], mut at: usize) -> usize {
    while byte(text, at).is_ascii_digit() {
        at += 1;
    }
    at
}

fn some_digits(text: &[u8], at: usize) -> Result<usize, Error> {
    let end = skip_digits(text, at);
    if end == at { Err(unexpected(text, at, ErrorKind::Number)) } else { Ok(end) }
}

/// Reads a string whose first byte after the quote is at `start`.
#[inline(always)]
fn string(text: &[u8], start: usize) -> Result<StrSpan, Error> {
    let end = plain_run(text, start);
    if byte(text, end) == b'"' {
        return Ok(StrSpan { start, end, escaped: false, lone_surrogate: false });
    }
    escaped_string(text, start, end)
}

/// The rest of [`string`], from the first byte `at` that is not plain.
fn escaped_string(text: &[u8], start: usize, mut at: usize) -> Result<StrSpan, Error> {
    let mut escaped = false;
    let mut lone_surrogate = false;
    loop {
        match byte(text, at) {
            b'"' => return Ok(StrSpan { start, end: at, escaped, lone_surrogate }),
            b'\\' => {
                escaped = true;
                match byte(text, at + 1) {
                    b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => at += 2,
                    b'u' => {
                        let unit = hex4(text, at + 2)?;
                        at += 6;
                        if is_high_surrogate(unit)
                            && byte(text, at) == b'\\'
                            && byte(text, at + 1) == b'u'
                            && is_low_surrogate(hex4(text, at + 2)?)
                        {
                            at += 6;
                        } else if is_high_surrogate(unit) || is_low_surrogate(unit) {
                            lone_surrogate = true;
                        }
                    }
                    _ => return Err(unexpected(text, at + 1, ErrorKind::Escape)),
                }
            }
            _ => return Err(unexpected(text, at, ErrorKind::Control)),
        }
        at = plain_run(text, at);
    }
}

pub(super) fn is_high_surrogate(unit: u16) -> bool {
    (0xD800..0xDC00).contains(&unit)
}

pub(super) fn is_low_surrogate(unit: u16) -> bool {
    (0xDC00..0xE000).contains(&unit)
}

/// The four hexadecimal digits at `at`.
pub(super) fn hex4(text: &[u8], at: usize) -> Result<u16, Error> {
    let mut unit = 0;
    for i in at..at + 4 {
        let digit = match byte(text, i) {
            b @ b'0'..=b'9' => b - b'0',
            b @ b'a'..=b'f' => b - b'a' + 10,
            b @ b'A'..=b'F' => b - b'A' + 10,
            _ => return Err(unexpected(text, i, ErrorKind::Escape)),
        };
        unit = unit << 4 | u16::from(digit);
    }
    Ok(unit)
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// High bit of each byte of `word` that equals `b`; exact up to the lowest hit, which is all that is used.
#[inline(always)]
pub(super) fn equal_mask(word: u64, b: u8) -> u64 {
    let x = word ^ (ONES * u64::from(b));
    x.wrapping_sub(ONES) & !x & HIGHS
}

/// High bit of each byte of `word` that ends a plain run: quote, backslash, control character.
#[inline(always)]
fn special_mask(word: u64) -> u64 {
    (word.wrapping_sub(ONES * 0x20) & !word & HIGHS) | equal_mask(word, b'"') | equal_mask(word, b'\\')
}

#[inline(always)]
pub(super) fn word(text: &[u8], at: usize) -> Option<u64> {
    text.get(at..at + 8).map(|bytes| {
        let mut word = [0; 8];
        word.copy_from_slice(bytes);
        u64::from_le_bytes(word)
    })
}

/// Offset of the first quote, backslash or control character from `at` on, or the length of the text.
#[inline(always)]
pub(super) fn plain_run(text: &[u8], mut at: usize) -> usize {
    for _ in 0..4 {
        let Some(word) = word(text, at) else { return plain_tail(text, at) };
        let mask = special_mask(word);
        if mask != 0 {
            return at + (mask.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    plain_blocks(text, at)
}

fn plain_tail(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + rest.iter().position(|&b| b < 0x20 || b == b'"' || b == b'\\').unwrap_or(rest.len())
}

/// [`plain_run`] for long runs: whole blocks in a form that the compiler turns into vector instructions.
#[inline(never)]
fn plain_blocks(text: &[u8], mut at: usize) -> usize {
    const BLOCK: usize = 64;
    while let Some(block) = text.get(at..at + BLOCK) {
        let special = block.iter().fold(false, |any, &b| any | (b < 0x20) | (b == b'"') | (b == b'\\'));
        if special {
            break;
        }
        at += BLOCK;
    }
    while let Some(word) = word(text, at) {
        let mask = special_mask(word);
        if mask != 0 {
            return at + (mask.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    plain_tail(text, at)
}
