//! Writes a value as text, without recursion.

use std::fmt;
use std::slice;

use super::{Json, Number};

/// Style of a text: spelling of its tokens and white space between them.
pub(super) trait Style {
    /// Writes white space, or nothing, at `place` inside `depth` open containers.
    fn space(&mut self, out: &mut String, place: WhitespacePlace, depth: usize);

    /// Writes a string or a member name, quotes included.
    fn string(&mut self, out: &mut String, string: &str) {
        write_string(out, string);
    }

    /// Writes a number.
    fn number(&mut self, out: &mut String, number: &Number) {
        out.push_str(number.text());
    }
}

/// Place where white space may stand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WhitespacePlace {
    /// Before the first and after the last token of the text.
    Outside,
    /// Between the brackets of an empty container.
    Empty,
    /// Before the first element, and after a comma.
    BeforeElement,
    /// After an element: before a comma.
    AfterElement,
    /// After the last element: before the closing bracket.
    BeforeClose,
    /// Before a colon.
    BeforeColon,
    /// After a colon.
    AfterColon,
}

enum OpenIterator<'a> {
    Array(slice::Iter<'a, Json>),
    Object(slice::Iter<'a, (String, Json)>),
}

/// Appends `value` to `out` in this style.
pub(super) fn write(out: &mut String, value: &Json, style: &mut impl Style) {
    style.space(out, WhitespacePlace::Outside, 0);
    let mut open = Vec::new();
    write_or_open(out, value, style, &mut open);
    let mut first = true;
    loop {
        let depth = open.len();
        let (child, closing) = match open.last_mut() {
            None => break,
            Some(OpenIterator::Array(items)) => (items.next().map(|value| (None, value)), ']'),
            Some(OpenIterator::Object(members)) => {
                (members.next().map(|(key, value)| (Some(key), value)), '}')
            }
        };
        let Some((key, value)) = child else {
            style.space(out, WhitespacePlace::BeforeClose, depth - 1);
            out.push(closing);
            open.pop();
            first = false;
            continue;
        };
        if !first {
            style.space(out, WhitespacePlace::AfterElement, depth);
            out.push(',');
        }
        style.space(out, WhitespacePlace::BeforeElement, depth);
        if let Some(key) = key {
            style.string(out, key);
            style.space(out, WhitespacePlace::BeforeColon, depth);
            out.push(':');
            style.space(out, WhitespacePlace::AfterColon, depth);
        }
        write_or_open(out, value, style, &mut open);
        first = open.len() > depth;
    }
    style.space(out, WhitespacePlace::Outside, 0);
}

/// Writes a scalar or an empty container, or the opening bracket of another container.
fn write_or_open<'a>(
    out: &mut String,
    value: &'a Json,
    style: &mut impl Style,
    open: &mut Vec<OpenIterator<'a>>,
) {
    match value {
        Json::Null => out.push_str("null"),
        Json::Bool(true) => out.push_str("true"),
        Json::Bool(false) => out.push_str("false"),
        Json::Number(number) => style.number(out, number),
        Json::String(string) => style.string(out, string),
        Json::Array(items) => {
            out.push('[');
            if items.is_empty() {
                style.space(out, WhitespacePlace::Empty, open.len());
                out.push(']');
            } else {
                open.push(OpenIterator::Array(items.iter()));
            }
        }
        Json::Object(members) => {
            out.push('{');
            if members.is_empty() {
                style.space(out, WhitespacePlace::Empty, open.len());
                out.push('}');
            } else {
                open.push(OpenIterator::Object(members.iter()));
            }
        }
    }
}

/// Writes a string with only the escapes that RFC 8259 §7 requires.
fn write_string(out: &mut String, string: &str) {
    out.push('"');
    let mut written = 0;
    for (at, byte) in string.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.push_str(&string[written..at]);
        written = at + 1;
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            0x08 => out.push_str("\\b"),
            0x0C => out.push_str("\\f"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            _ => write_code_unit(out, u16::from(byte), false),
        }
    }
    out.push_str(&string[written..]);
    out.push('"');
}

/// Writes `\uXXXX`.
pub(super) fn write_code_unit(out: &mut String, unit: u16, upper_case: bool) {
    out.push_str("\\u");
    for shift in [12, 8, 4, 0] {
        let digit = char::from_digit(u32::from(unit >> shift & 0xF), 16).unwrap_or('0');
        out.push(if upper_case { digit.to_ascii_uppercase() } else { digit });
    }
}

/// Style without white space.
pub(super) struct Compact;

impl Style for Compact {
    fn space(&mut self, _: &mut String, _: WhitespacePlace, _: usize) {}
}

/// Style with one element per line and two spaces per level.
struct Pretty;

impl Style for Pretty {
    fn space(&mut self, out: &mut String, place: WhitespacePlace, depth: usize) {
        match place {
            WhitespacePlace::BeforeElement | WhitespacePlace::BeforeClose => {
                out.push('\n');
                out.extend(std::iter::repeat_n("  ", depth));
            }
            WhitespacePlace::AfterColon => out.push(' '),
            WhitespacePlace::Outside
            | WhitespacePlace::Empty
            | WhitespacePlace::AfterElement
            | WhitespacePlace::BeforeColon => {}
        }
    }
}

impl Json {
    /// Text on one line without white space, with numbers in their source spelling.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        self.write_text(&mut out);
        out
    }

    /// Appends the text of [`Json::to_text`].
    pub(crate) fn write_text(&self, out: &mut String) {
        write(out, self, &mut Compact);
    }

    /// Text with one element per line and two spaces per level, without a final line feed.
    pub fn to_text_pretty(&self) -> String {
        let mut out = String::new();
        write(&mut out, self, &mut Pretty);
        out
    }
}

impl fmt::Display for Json {
    /// Writes the text of [`Json::to_text`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text())
    }
}

impl fmt::Debug for Json {
    /// Writes the text of [`Json::to_text`]: a derived form would recurse.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text())
    }
}
