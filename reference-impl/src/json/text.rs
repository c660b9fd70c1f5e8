//! Strings: raw in a text ([`RawStr`]) and unescaped ([`Text`]).

use std::borrow::Cow;
use std::fmt;

use memchr::memchr;

use super::bytes::{equal_mask, word};
use super::grammar::{is_high_surrogate, is_low_surrogate, valid_hex4};

/// Content of a JSON string: Unicode, possibly with lone surrogates.
///
/// The encoding is UTF-8, with three bytes for a lone surrogate (WTF-8), so that two strings are equal exactly if
/// their code units are equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Text(Vec<u8>);

impl Text {
    /// The string, or `None` if it holds a lone surrogate.
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// The bytes: UTF-8 except for lone surrogates.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Copy with U+FFFD for each lone surrogate. The length in bytes stays the same.
    pub(crate) fn to_lossy(&self) -> Cow<'_, str> {
        match self.as_str() {
            Some(text) => Cow::Borrowed(text),
            None => Cow::Owned(self.pieces().map(|piece| piece.unwrap_or("\u{FFFD}")).collect()),
        }
    }

    /// Valid runs, and `Err(unit)` for each lone surrogate between them.
    pub(super) fn pieces(&self) -> impl Iterator<Item = Result<&str, u16>> {
        let mut rest = &self.0[..];
        let mut surrogate = None;
        std::iter::from_fn(move || {
            if let Some(unit) = surrogate.take() {
                return Some(Err(unit));
            }
            if rest.is_empty() {
                return None;
            }
            let valid = match std::str::from_utf8(rest) {
                Ok(valid) => {
                    rest = &[];
                    valid
                }
                Err(error) => {
                    let (valid, tail) = rest.split_at(error.valid_up_to());
                    let (unit, tail) = tail.split_at(tail.len().min(3));
                    rest = tail;
                    surrogate = Some(decode_surrogate(unit));
                    std::str::from_utf8(valid).unwrap_or_default()
                }
            };
            if valid.is_empty() {
                return surrogate.take().map(Err);
            }
            Some(Ok(valid))
        })
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(text.into_bytes())
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self == *other
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_lossy())
    }
}

/// Raw string in a JSON text: the characters between its quotes, escapes included, already validated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawStr<'t> {
    pub(super) raw: &'t str,
    pub(super) escaped: bool,
}

impl<'t> RawStr<'t> {
    /// The raw characters between the quotes, again the inside of a valid JSON string.
    pub fn raw(self) -> &'t str {
        self.raw
    }

    /// True if the string holds a backslash, so that [`RawStr::raw`] is not its value.
    pub(crate) fn is_escaped(self) -> bool {
        self.escaped
    }

    /// True if the unescaped string is `text`.
    pub fn is(self, text: &str) -> bool {
        if self.escaped { self.text() == *text } else { self.raw == text }
    }

    /// The unescaped bytes (see [`Text`]), borrowed if there are no escapes.
    pub fn bytes(self) -> Cow<'t, [u8]> {
        if self.escaped { Cow::Owned(self.text().0) } else { Cow::Borrowed(self.raw.as_bytes()) }
    }

    /// The unescaped string.
    pub fn text(self) -> Text {
        let mut out = Vec::new();
        unescape(self.raw.as_bytes(), &mut out, &mut |unit, out| {
            out.extend(encode_surrogate(unit));
        });
        Text(out)
    }
}

/// Unescapes a string that holds a JSON document, into `out` (cleared first).
///
/// A lone surrogate becomes its escape within the document, so that the document stays UTF-8 and keeps its meaning.
pub fn unescape_document(document: RawStr<'_>, out: &mut Vec<u8>) {
    out.clear();
    if !document.escaped {
        out.extend_from_slice(document.raw.as_bytes());
        return;
    }
    unescape(document.raw.as_bytes(), out, &mut |unit, out| {
        let backslashes = out.iter().rev().take_while(|&&b| b == b'\\').count();
        if backslashes % 2 == 1 {
            // A backslash before a surrogate is not an escape. U+FFFD keeps the document malformed.
            out.extend_from_slice("\u{FFFD}".as_bytes());
        } else {
            out.extend_from_slice(format!("\\u{unit:04x}").as_bytes());
        }
    });
}

/// Appends the unescaped form of `raw`, a validated string, to `out`. `lone` writes the replacement for a lone
/// surrogate.
fn unescape(raw: &[u8], out: &mut Vec<u8>, lone: &mut dyn FnMut(u16, &mut Vec<u8>)) {
    out.reserve(raw.len() + 8);
    let mut at = 0;
    while at < raw.len() {
        // Short runs are copied word by word, long ones at the speed of memchr and memcpy.
        let mut words = 0;
        while words < 4
            && let Some(word) = word(raw, at)
        {
            words += 1;
            let mask = equal_mask(word, b'\\');
            out.extend_from_slice(&word.to_le_bytes());
            if mask != 0 {
                let plain = (mask.trailing_zeros() / 8) as usize;
                out.truncate(out.len() - 8 + plain);
                at += plain;
                break;
            }
            at += 8;
        }
        if raw.get(at) != Some(&b'\\') {
            let rest = raw.get(at..).unwrap_or_default();
            let plain = memchr(b'\\', rest).unwrap_or(rest.len());
            out.extend_from_slice(&rest[..plain]);
            at += plain;
            if at >= raw.len() {
                return;
            }
        }
        let escape = raw.get(at + 1).copied().unwrap_or_default();
        at += 2;
        match escape {
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'u' => at += unicode_escape(raw, at, out, lone),
            same => out.push(same),
        }
    }
}

/// Unescapes the digits at `at` and the low surrogate that may follow; returns the bytes taken.
fn unicode_escape(
    raw: &[u8],
    at: usize,
    out: &mut Vec<u8>,
    lone: &mut dyn FnMut(u16, &mut Vec<u8>),
) -> usize {
    let unit = valid_hex4(raw, at);
    let mut code = u32::from(unit);
    let mut taken = 4;
    if is_high_surrogate(unit) && raw.get(at + 4..at + 6) == Some(b"\\u") {
        let low = valid_hex4(raw, at + 6);
        if is_low_surrogate(low) {
            code = 0x10000 + (u32::from(unit) - 0xD800) * 0x400 + (u32::from(low) - 0xDC00);
            taken = 10;
        }
    }
    match char::from_u32(code) {
        Some(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        None => lone(unit, out),
    }
    taken
}

fn encode_surrogate(unit: u16) -> [u8; 3] {
    [0xED, 0x80 | (unit >> 6 & 0x3F) as u8, 0x80 | (unit & 0x3F) as u8]
}

fn decode_surrogate(bytes: &[u8]) -> u16 {
    let low6 = |i: usize| u16::from(bytes.get(i).copied().unwrap_or_default() & 0x3F);
    0xD000 | low6(1) << 6 | low6(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> RawStr<'_> {
        RawStr { raw: text, escaped: text.contains('\\') }
    }

    #[test]
    fn unescapes_every_escape() {
        let text =
            raw(r#"\"\\\/\b\f\n\r\t\u0041\u00e9\ud83d\ude00 plain tail that is longer than one word é"#)
                .text();
        assert_eq!(text, "\"\\/\u{8}\u{c}\n\r\tAé😀 plain tail that is longer than one word é");
        assert_eq!(raw(r"a\u0000b").text().as_bytes(), b"a\0b");
    }

    #[test]
    fn lone_surrogates_stay_apart() {
        let text = raw(r"x\ud800y\udc01").text();
        assert_eq!(text.as_str(), None);
        assert_ne!(text, raw(r"x\ud801y\udc01").text());
        assert_eq!(text.to_lossy(), "x\u{FFFD}y\u{FFFD}");
        let pieces: Vec<_> = text.pieces().collect();
        assert_eq!(pieces, [Ok("x"), Err(0xD800), Ok("y"), Err(0xDC01)]);
        assert_eq!(raw(r"\ud800\ud83d\ude00").text().pieces().collect::<Vec<_>>(), [Err(0xD800), Ok("😀")]);
    }

    #[test]
    fn a_document_keeps_its_lone_surrogates_as_escapes() {
        let mut out = Vec::new();
        unescape_document(raw(r#"{\"a\":\"\ud800\"}"#), &mut out);
        assert_eq!(out, br#"{"a":"\ud800"}"#);
        unescape_document(raw(r#"{\"a\":\"\\\ud800\"}"#), &mut out);
        assert_eq!(out, "{\"a\":\"\\\u{FFFD}\"}".as_bytes());
    }
}
