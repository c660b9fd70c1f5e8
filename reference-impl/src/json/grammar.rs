//! The grammar: an iterative walk over a text that reports its parts to a [`Sink`].

use super::bytes::{byte, plain_run};
use super::{Error, ErrorKind};

/// Raw string in a text: the bytes between its quotes, already validated.
#[derive(Debug, Clone, Copy)]
pub(super) struct StrSpan {
    /// Offset of the first byte after the opening quote.
    pub start: usize,
    /// Offset of the closing quote.
    pub end: usize,
    /// True if the string holds a backslash.
    pub escaped: bool,
    /// True if the string holds a lone surrogate.
    pub lone_surrogate: bool,
}

impl StrSpan {
    /// Creates a span from `start` to the offset in `packed`, with the flags in the low bits.
    pub(crate) fn unpack(start: usize, packed: u64) -> Self {
        let end = (packed >> 2) as usize;
        let (escaped, lone_surrogate) = (packed & ESCAPED != 0, packed & LONE_SURROGATE != 0);
        Self { start, end, escaped, lone_surrogate }
    }
}

/// An error in one word, so that results travel in registers: these functions run once for each token.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fault(u64);

impl Fault {
    #[cold]
    pub(super) fn new(kind: ErrorKind, at: usize) -> Self {
        Self((at as u64) << 8 | kind as u64)
    }

    /// Fault of kind `kind` for an unexpected byte, or [`ErrorKind::Eof`] at the end of the text.
    #[cold]
    pub(crate) fn unexpected(text: &[u8], at: usize, kind: ErrorKind) -> Self {
        Self::new(if at >= text.len() { ErrorKind::Eof } else { kind }, at)
    }

    fn error(self) -> Error {
        let kind = ErrorKind::GRAMMAR.iter().find(|kind| **kind as u64 == self.0 & 0xFF);
        Error { kind: kind.copied().unwrap_or(ErrorKind::Value), at: (self.0 >> 8) as usize }
    }
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
    /// A number from `start` to `end`. `exponent` is true if it has one.
    fn number(&mut self, start: usize, end: usize, exponent: bool);
    /// `null` (`None`), `true` or `false` from `start` to `end`.
    fn literal(&mut self, value: Option<bool>, start: usize, end: usize);
    /// A string value starts before `start`. A sink that reads the string by itself returns the offset of its closing
    /// quote; [`Sink::string`] is then not called.
    #[inline(always)]
    fn take_string(&mut self, start: usize) -> Option<usize> {
        let _ = start;
        None
    }
}

/// Encoding of a text's characters in its bytes.
pub(super) trait Layer {
    /// Length of a quote in bytes.
    const QUOTE: usize;
    /// True if a quote starts at `at`.
    fn is_quote(text: &[u8], at: usize) -> bool;
    /// First offset from `at` on without white space.
    fn skip_space(text: &[u8], at: usize) -> usize;
    /// Reads a string whose first byte after the quote is at `start`.
    fn string(text: &[u8], start: usize) -> Result<StrSpan, Fault>;
}

/// A text without outer escapes.
pub(super) struct Plain;

impl Layer for Plain {
    const QUOTE: usize = 1;

    #[inline(always)]
    fn is_quote(text: &[u8], at: usize) -> bool {
        byte(text, at) == b'"'
    }

    #[inline(always)]
    fn skip_space(text: &[u8], mut at: usize) -> usize {
        while matches!(byte(text, at), b' ' | b'\n' | b'\r' | b'\t') {
            at += 1;
        }
        at
    }

    #[inline(always)]
    fn string(text: &[u8], start: usize) -> Result<StrSpan, Fault> {
        let end = plain_run(text, start);
        if byte(text, end) == b'"' {
            return Ok(StrSpan { start, end, escaped: false, lone_surrogate: false });
        }
        escaped_string(text, end).map(|packed| StrSpan::unpack(start, packed))
    }
}

/// Walks over the one value in `text`, which may have white space around it. `text` must be valid UTF-8, as all
/// callers ensure. `stack` is a scratch buffer.
pub(super) fn walk<S: Sink>(
    text: &[u8],
    nesting_max: usize,
    stack: &mut Vec<bool>,
    sink: &mut S,
) -> Result<(), Error> {
    match walk_value::<Plain, S>(text, 0, nesting_max, stack, sink) {
        Ok(end) if end == text.len() => Ok(()),
        Ok(at) => Err(Error { kind: ErrorKind::Trailing, at }),
        Err(fault) => Err(fault.error()),
    }
}

/// Walks over the value at `at` and the white space after it. Returns the offset after both.
pub(super) fn walk_value<L: Layer, S: Sink>(
    text: &[u8],
    mut at: usize,
    nesting_max: usize,
    stack: &mut Vec<bool>,
    sink: &mut S,
) -> Result<usize, Fault> {
    stack.clear();
    // White space is searched for only if the expected byte is missing.
    'value: loop {
        if L::is_quote(text, at) {
            let start = at + L::QUOTE;
            at = match sink.take_string(start) {
                Some(end) => end,
                None => {
                    let string = L::string(text, start)?;
                    sink.string(string);
                    string.end
                }
            } + L::QUOTE;
        } else {
            match byte(text, at) {
                open @ (b'{' | b'[') => {
                    if stack.len() >= nesting_max {
                        return Err(Fault::new(ErrorKind::Depth, at));
                    }
                    let object = open == b'{';
                    stack.push(object);
                    sink.open(object, at);
                    at = L::skip_space(text, at + 1);
                    if byte(text, at) != closing(object) {
                        if object {
                            at = key::<L, S>(text, at, sink)?;
                        }
                        continue 'value;
                    }
                    stack.pop();
                    at += 1;
                    sink.close(object, at);
                }
                b'-' | b'0'..=b'9' => {
                    let packed = number(text, at)?;
                    let end = (packed >> 1) as usize;
                    sink.number(at, end, packed & 1 != 0);
                    at = end;
                }
                b't' => at = literal(text, at, "true", Some(true), sink)?,
                b'f' => at = literal(text, at, "false", Some(false), sink)?,
                b'n' => at = literal(text, at, "null", None, sink)?,
                _ => {
                    let next = L::skip_space(text, at);
                    if next == at {
                        return Err(Fault::unexpected(text, at, ErrorKind::Value));
                    }
                    at = next;
                    continue 'value;
                }
            }
        }
        // After a value: close what ends here, then go on with the next one.
        loop {
            let Some(&object) = stack.last() else { return Ok(L::skip_space(text, at)) };
            let mut next = byte(text, at);
            if next != b',' && next != closing(object) {
                at = L::skip_space(text, at);
                next = byte(text, at);
            }
            if next == b',' {
                at += 1;
                if object {
                    at = key::<L, S>(text, at, sink)?;
                }
                continue 'value;
            }
            if next != closing(object) {
                return Err(Fault::unexpected(text, at, ErrorKind::Comma));
            }
            stack.pop();
            at += 1;
            sink.close(object, at);
        }
    }
}

#[inline(always)]
fn closing(object: bool) -> u8 {
    if object { b'}' } else { b']' }
}

/// Reads a member name and its colon; returns the offset after the colon.
#[inline(always)]
fn key<L: Layer, S: Sink>(text: &[u8], mut at: usize, sink: &mut S) -> Result<usize, Fault> {
    if !L::is_quote(text, at) {
        at = L::skip_space(text, at);
        if !L::is_quote(text, at) {
            return Err(Fault::unexpected(text, at, ErrorKind::Key));
        }
    }
    let name = L::string(text, at + L::QUOTE)?;
    sink.key(name);
    at = name.end + L::QUOTE;
    if byte(text, at) != b':' {
        at = L::skip_space(text, at);
        if byte(text, at) != b':' {
            return Err(Fault::unexpected(text, at, ErrorKind::Colon));
        }
    }
    Ok(at + 1)
}

fn literal<S: Sink>(
    text: &[u8],
    at: usize,
    word: &str,
    value: Option<bool>,
    sink: &mut S,
) -> Result<usize, Fault> {
    let end = at + word.len();
    if text.get(at..end) == Some(word.as_bytes()) {
        sink.literal(value, at, end);
        return Ok(end);
    }
    let same = word.bytes().enumerate().take_while(|(i, b)| byte(text, at + i) == *b).count();
    Err(Fault::unexpected(text, at + same, ErrorKind::Value))
}

/// Reads a number. The result is the offset of its end, shifted left, with a flag for an exponent in the low bit.
#[inline(always)]
fn number(text: &[u8], start: usize) -> Result<u64, Fault> {
    let mut at = start + usize::from(byte(text, start) == b'-');
    let first = byte(text, at);
    if !first.is_ascii_digit() {
        return Err(Fault::unexpected(text, at, ErrorKind::Number));
    }
    at += 1;
    if first != b'0' {
        at = skip_digits(text, at);
    } else if byte(text, at).is_ascii_digit() {
        return Err(Fault::new(ErrorKind::Number, at));
    }
    if byte(text, at) == b'.' {
        at = some_digits(text, at + 1)?;
    }
    let exponent = matches!(byte(text, at), b'e' | b'E');
    if exponent {
        at += 1;
        at += usize::from(matches!(byte(text, at), b'+' | b'-'));
        at = some_digits(text, at)?;
    }
    Ok((at as u64) << 1 | u64::from(exponent))
}

#[inline(always)]
fn skip_digits(text: &[u8], mut at: usize) -> usize {
    while byte(text, at).is_ascii_digit() {
        at += 1;
    }
    at
}

#[inline(always)]
fn some_digits(text: &[u8], at: usize) -> Result<usize, Fault> {
    let end = skip_digits(text, at);
    if end == at { Err(Fault::unexpected(text, at, ErrorKind::Number)) } else { Ok(end) }
}

/// Flag of a packed string: it holds an escape. The offset is above the flags.
pub(super) const ESCAPED: u64 = 1;
/// Flag of a packed string: it holds a lone surrogate.
pub(super) const LONE_SURROGATE: u64 = 2;

/// Reads the rest of a plain string, from the first byte `at` that is not plain. The result packs the offset of the
/// quote and two flags.
#[inline(never)]
fn escaped_string(text: &[u8], mut at: usize) -> Result<u64, Fault> {
    let mut flags = 0;
    loop {
        match byte(text, at) {
            b'"' => return Ok((at as u64) << 2 | flags),
            b'\\' => {
                flags |= ESCAPED;
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
                            flags |= LONE_SURROGATE;
                        }
                    }
                    _ => return Err(Fault::unexpected(text, at + 1, ErrorKind::Escape)),
                }
            }
            _ => return Err(Fault::unexpected(text, at, ErrorKind::Control)),
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

/// Four hexadecimal digits at `at` in a validated string.
pub(super) fn valid_hex4(text: &[u8], at: usize) -> u16 {
    hex4(text, at).unwrap_or_default()
}

/// Four hexadecimal digits at `at`.
pub(super) fn hex4(text: &[u8], at: usize) -> Result<u16, Fault> {
    let mut unit = 0;
    for i in at..at + 4 {
        let digit = match byte(text, i) {
            b @ b'0'..=b'9' => b - b'0',
            b @ b'a'..=b'f' => b - b'a' + 10,
            b @ b'A'..=b'F' => b - b'A' + 10,
            _ => return Err(Fault::unexpected(text, i, ErrorKind::Escape)),
        };
        unit = unit << 4 | u16::from(digit);
    }
    Ok(unit)
}
