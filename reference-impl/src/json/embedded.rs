//! A JSON document within a JSON string, read through the string's escapes.
//!
//! This is the fast path to validate `input_json`: one pass over the request instead of three. It accepts a subset.
//! All other documents (a `\\u` escape of the outer string, a malformed document) go the slow path, which unescapes
//! the string and reports the fault.

use super::ErrorKind;
use super::bytes::{byte, plain_run};
use super::grammar::{
    ESCAPED, Fault, LONE_SURROGATE, Layer, StrSpan, hex4, is_high_surrogate, is_low_surrogate,
};

/// A document whose quotes and backslashes are escaped once more.
pub(super) struct Embedded;

impl Layer for Embedded {
    const QUOTE: usize = 2;

    #[inline(always)]
    fn is_quote(text: &[u8], at: usize) -> bool {
        byte(text, at) == b'\\' && byte(text, at + 1) == b'"'
    }

    #[inline(always)]
    fn skip_space(text: &[u8], mut at: usize) -> usize {
        loop {
            match byte(text, at) {
                b' ' => at += 1,
                b'\\' if matches!(byte(text, at + 1), b'n' | b'r' | b't') => at += 2,
                _ => return at,
            }
        }
    }

    #[inline(always)]
    fn string(text: &[u8], start: usize) -> Result<StrSpan, Fault> {
        let end = plain_run(text, start);
        if Self::is_quote(text, end) {
            return Ok(StrSpan { start, end, escaped: false, lone_surrogate: false });
        }
        escaped_string(text, end).map(|packed| StrSpan::unpack(start, packed))
    }
}

/// Reads the rest of a string of the document, from the first byte `at` that is not plain. The result is packed as in
/// the grammar.
#[inline(never)]
fn escaped_string(text: &[u8], mut at: usize) -> Result<u64, Fault> {
    let mut flags = 0;
    loop {
        match (byte(text, at), byte(text, at + 1)) {
            (b'\\', b'"') => return Ok((at as u64) << 2 | flags),
            (b'\\', b'/') => at += 2,
            (b'\\', b'\\') => match (byte(text, at + 2), byte(text, at + 3)) {
                (b'/' | b'b' | b'f' | b'n' | b'r' | b't', _) => at += 3,
                (b'\\', b'"' | b'\\' | b'/') => at += 4,
                (b'u', _) => {
                    let unit = hex4(text, at + 3)?;
                    at += 7;
                    if is_high_surrogate(unit)
                        && text.get(at..at + 3) == Some(b"\\\\u")
                        && is_low_surrogate(hex4(text, at + 3)?)
                    {
                        at += 7;
                    } else if is_high_surrogate(unit) || is_low_surrogate(unit) {
                        flags |= LONE_SURROGATE;
                    }
                }
                _ => return Err(Fault::new(ErrorKind::Escape, at)),
            },
            _ => return Err(Fault::new(ErrorKind::Escape, at)),
        }
        flags |= ESCAPED;
        at = plain_run(text, at);
    }
}
