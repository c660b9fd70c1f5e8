//! Writing strict JSON. Everything is appended to a byte buffer.

use super::bytes::plain_run;
use super::number::decimal;
use super::text::Text;
use super::value::Value;

/// Appends `text` as a JSON string with its quotes.
pub fn write_str(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    escape(out, text);
    out.push(b'"');
}

/// Appends `text` as a JSON string with its quotes; a lone surrogate becomes its escape.
pub(crate) fn write_text(out: &mut Vec<u8>, text: &Text) {
    if let Some(text) = text.as_str() {
        return write_str(out, text);
    }
    out.push(b'"');
    for piece in text.pieces() {
        match piece {
            Ok(text) => escape(out, text),
            Err(unit) => out.extend_from_slice(format!("\\u{unit:04x}").as_bytes()),
        }
    }
    out.push(b'"');
}

/// Appends the characters of `text`, escaped, without quotes.
fn escape(out: &mut Vec<u8>, text: &str) {
    let text = text.as_bytes();
    let mut at = 0;
    loop {
        let end = plain_run(text, at);
        out.extend_from_slice(&text[at..end]);
        let Some(&special) = text.get(end) else { return };
        match special {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            8 => out.extend_from_slice(b"\\b"),
            12 => out.extend_from_slice(b"\\f"),
            control => out.extend_from_slice(format!("\\u{control:04x}").as_bytes()),
        }
        at = end + 1;
    }
}

/// Appends `value` without white space.
pub fn write_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => out.extend_from_slice(number.as_str().as_bytes()),
        Value::String(text) => write_text(out, text),
        Value::Array(elements) => {
            list(out, b'[', elements, b']', write_value);
        }
        Value::Object(members) => {
            list(out, b'{', members, b'}', |out, (name, value)| {
                write_text(out, name);
                out.push(b':');
                write_value(out, value);
            });
        }
    }
}

/// Appends a canonical form, equal for all spellings of one value: names are sorted, numbers written by their value.
///
/// It is for comparison, not for reading: a number becomes digits and a power of ten.
pub fn write_canonical(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Number(number) => {
            let (negative, digits, power) = decimal(number.as_str());
            let sign = if negative { "-" } else { "" };
            out.extend_from_slice(format!("{sign}{digits}e{power}").as_bytes());
        }
        Value::Array(elements) => list(out, b'[', elements, b']', write_canonical),
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by(|a, b| a.0.cmp(&b.0));
            list(out, b'{', sorted, b'}', |out, (name, value)| {
                write_text(out, name);
                out.push(b':');
                write_canonical(out, value);
            });
        }
        other => write_value(out, other),
    }
}

fn list<T>(
    out: &mut Vec<u8>,
    open: u8,
    items: impl IntoIterator<Item = T>,
    close: u8,
    mut item: impl FnMut(&mut Vec<u8>, T),
) {
    out.push(open);
    let mut first = true;
    for each in items {
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        item(out, each);
    }
    out.push(close);
}
