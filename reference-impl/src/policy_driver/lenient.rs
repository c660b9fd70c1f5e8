//! Lenient reader of a payload that is almost JSON (contract §2, choice `nearly_json_payload`).

/// The first value of a text as strict JSON: without comments and trailing commas, with double quotes, `null` for
/// `NaN` and infinities, U+FFFD for bytes that are not UTF-8, and escapes for control characters. Returns `None` if
/// the value has no end.
pub(super) fn strict(bytes: &[u8]) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(bytes);
    let mut rest = text.trim_start_matches('\u{FEFF}');
    let mut out = String::with_capacity(rest.len());
    let mut depth = 0_usize;
    while let Some(first) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("/*") {
            rest = after.split_once("*/")?.1;
            continue;
        }
        if let Some(after) = rest.strip_prefix("//") {
            rest = after.split_once('\n').map_or("", |(_, rest)| rest);
            continue;
        }
        let token = token(rest, first);
        let (said, after) = rest.split_at(token);
        match first {
            '"' | '\'' => out.push_str(&string(said, first)?),
            '}' | ']' => {
                let kept = out.trim_end();
                out.truncate(kept.strip_suffix(',').unwrap_or(kept).len());
                out.push(first);
                depth = depth.checked_sub(1)?;
            }
            _ => {
                depth += usize::from(matches!(first, '{' | '['));
                let is_number = !matches!(said, "NaN" | "Infinity" | "-Infinity");
                out.push_str(if is_number { said } else { "null" });
            }
        }
        rest = after;
        if depth == 0 && matches!(first, '}' | ']') {
            return Some(out.into_bytes());
        }
    }
    None
}

/// Length in bytes of the first token of `text`.
fn token(text: &str, first: char) -> usize {
    match first {
        '"' | '\'' => {
            let mut escaped = false;
            let end = text.char_indices().skip(1).find(|(_, c)| {
                let is_end = !escaped && *c == first;
                escaped = !escaped && *c == '\\';
                is_end
            });
            end.map_or(text.len(), |(at, _)| at + 1)
        }
        _ if is_of_word(first) => text.find(|c| !is_of_word(c)).unwrap_or(text.len()),
        _ => first.len_utf8(),
    }
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')
}

/// Converts a string with these quotes to strict JSON.
fn string(said: &str, quote: char) -> Option<String> {
    let inner = said.strip_prefix(quote)?.strip_suffix(quote)?;
    let mut out = String::from('"');
    for c in inner.chars() {
        match c {
            '"' if quote == '\'' => out.push_str("\\\""),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_things_are_put_right() {
        for (nearly, right) in [
            (r#"{"a":1}"#, r#"{"a":1}"#),
            ("{\"a\":[1,],}", r#"{"a":[1]}"#),
            ("// x\n{/* } */\"a\":NaN}", r#"{"a":null}"#),
            ("{'a':'b\"c'} and more", r#"{"a":"b\"c"}"#),
            ("\u{FEFF}{\"a\":\"/*\\\"\t\"}", r#"{"a":"/*\"\u0009"}"#),
        ] {
            assert_eq!(
                strict(nearly.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap()).as_deref(),
                Some(right)
            );
        }
        for hopeless in ["", "x", "{\"a\":1", "[[1]", "\"a\"", "{\"a", "}"] {
            assert_eq!(strict(hopeless.as_bytes()), None, "{hopeless}");
        }
    }
}
