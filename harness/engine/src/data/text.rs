//! Text wrapping, and display of peers' text without characters that a terminal or editor would act on.

use std::borrow::Cow;
use std::fmt::Write as _;

use unicode_general_category::{GeneralCategory, get_general_category};

/// Width of a line without indentation, columns.
const COLUMNS: usize = 100;

/// Wraps text to lines that begin with `indent`, without a final line feed.
pub fn wrap(text: &str, indent: &str) -> String {
    wrap_to(COLUMNS, text, indent)
}

/// Wraps text to `columns` columns, not counting `indent`, without a final line feed.
pub(crate) fn wrap_to(columns: usize, text: &str, indent: &str) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let word = visible(word);
        let width = word.chars().count();
        if column > 0 && column + 1 + width > columns {
            out.push('\n');
            column = 0;
        }
        if column == 0 {
            out.push_str(indent);
        } else {
            out.push(' ');
            column += 1;
        }
        out.push_str(&word);
        column += width;
    }
    out
}

/// Joins the words of a text with single spaces.
pub fn one_line(text: &str) -> String {
    visible(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}

/// Escapes text of a peer for display, so that texts that differ look different and a terminal acts on none of them:
/// control characters, including line ends, characters that change text direction, combining marks, and characters that
/// show nothing become JSON escapes (`\u001b`).
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, is_hidden)
}

/// True for white space in the form that [`visible`] gives it.
pub fn is_blank(shown: &str) -> bool {
    shown.replace("\\r", "").replace("\\t", "").trim().is_empty()
}

/// Escapes text as [`visible`] does, but keeps line feeds. JSON keeps its value.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c != '\n' && is_hidden(c))
}

/// True for controls (C0, DEL, C1), characters without a width of their own (combining marks, joiners, direction marks),
/// separators other than the space, characters that are blank despite their category, and U+FFFE and U+FFFF, which XML
/// forbids.
fn is_hidden(c: char) -> bool {
    // Most text is ASCII.
    if c.is_ascii() {
        return c.is_control();
    }
    let is_of_category = matches!(
        get_general_category(c),
        GeneralCategory::Control
            | GeneralCategory::Format
            | GeneralCategory::NonspacingMark
            | GeneralCategory::SpacingMark
            | GeneralCategory::EnclosingMark
            | GeneralCategory::SpaceSeparator
            | GeneralCategory::LineSeparator
            | GeneralCategory::ParagraphSeparator
    );
    // Vowels and finals of Hangul join the consonant before them.
    let is_joining = matches!(c, '\u{1160}'..='\u{11ff}' | '\u{d7b0}'..='\u{d7fb}');
    let is_blank = matches!(c, '\u{115f}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}');
    is_of_category || is_joining || is_blank || matches!(c, '\u{fffe}' | '\u{ffff}')
}

fn escaped(text: &str, is_hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            c if !is_hidden(c) => out.push(c),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing to a String cannot fail.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    Cow::Owned(out)
}

/// Path or text as part of a URI: every byte but letters, digits and `-._~/` as `%` and two hexadecimal digits.
pub fn percent_encoded(bytes: &[u8]) -> String {
    let mut out = String::new();
    for byte in bytes {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => {
                out.push(char::from(*byte));
            }
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// Bytes in lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_becomes_indented_lines() {
        let text = wrap(&"word ".repeat(40), "  ");
        assert_eq!(text.lines().count(), 2);
        assert!(text.lines().all(|line| line.starts_with("  word") && line.len() <= COLUMNS + 2), "{text}");
        assert_eq!(wrap("", "  "), "");
        assert_eq!(one_line(" a\n b "), "a b");
    }

    #[test]
    fn nothing_that_a_terminal_acts_on_is_shown() {
        for code in (0..0x20)
            .chain(0x7f..0xa0)
            .chain([0x61c, 0x200f, 0x2028, 0x2029, 0x202e, 0x2066, 0x2069, 0xfeff, 0xffff])
            .chain([0xa0, 0xad, 0x301, 0x1161, 0x200b, 0x200d, 0x2060, 0x3164, 0xfe0f, 0xe0061])
        {
            let c = char::from_u32(code).unwrap();
            let text = format!("a{c}é");
            for shown in [visible(&text).into_owned(), wrap(&text, ""), one_line(&format!("x{c}x"))] {
                assert!(!shown.contains(c) || c == '\n', "{code:x}: {shown:?}");
            }
            let json = serde_json::to_string(&text).unwrap();
            let shown = visible_lines(&json);
            assert!(!shown.contains(c), "{shown:?}");
            assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), text, "JSON keeps its value");
        }
        assert_eq!(visible("\u{1b}[31m\n\u{202e}"), "\\u001b[31m\\n\\u202e");
        assert_eq!(visible_lines("a\tb\n"), "a\\tb\n");
        assert!(matches!(visible("plain é 😀"), Cow::Borrowed(_)));
    }

    #[test]
    fn texts_that_differ_look_different() {
        assert_eq!(visible("e\u{301}"), "e\\u0301");
        assert_eq!(visible("a\u{a0}b\u{200b}"), "a\\u00a0b\\u200b");
        assert_eq!(visible("\u{e0061}"), "\\udb40\\udc61", "a pair, as in JSON");
        let letters = "\u{e9} ß ñ Ω я 中 한 か א ع ก 👩 § ½ ₂ ← … ｅ";
        assert!(matches!(visible(letters), Cow::Borrowed(_)), "{}", visible(letters));
    }
}
