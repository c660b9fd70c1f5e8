//! Edits of a message's text.

/// Offset of `part` in `text`.
pub(crate) fn find(text: &[u8], part: &str) -> Option<usize> {
    memchr::memmem::find(text, part.as_bytes())
}

/// True if `text` contains `part`.
pub(crate) fn has(text: &[u8], part: &str) -> bool {
    find(text, part).is_some()
}

/// `text` with the first `from` replaced by `to`.
pub(crate) fn swap(text: &[u8], from: &str, to: &str) -> Vec<u8> {
    match find(text, from) {
        Some(at) => [&text[..at], to.as_bytes(), &text[at + from.len()..]].concat(),
        None => text.to_vec(),
    }
}

/// `text` with the last `from` replaced by `to`.
pub(crate) fn swap_last(text: &[u8], from: &str, to: &str) -> Vec<u8> {
    match memchr::memmem::rfind(text, from.as_bytes()) {
        Some(at) => [&text[..at], to.as_bytes(), &text[at + from.len()..]].concat(),
        None => text.to_vec(),
    }
}

/// `text` with one byte per character, so that a limit on bytes becomes a limit on characters.
pub(crate) fn byte_a_character(text: &[u8]) -> Vec<u8> {
    let begins = text.iter().filter(|byte| !matches!(byte, 0x80..=0xbf));
    begins.map(|byte| if byte.is_ascii() { *byte } else { b'?' }).collect()
}

/// `text` with every `from` replaced by `to`.
pub(crate) fn swap_all(text: &[u8], from: &str, to: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = find(rest, from) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(to.as_bytes());
        rest = &rest[at + from.len()..];
    }
    out.extend_from_slice(rest);
    out
}

/// First line of `text` by the line separators of Unicode.
pub(crate) fn first_line(text: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(text);
    text.split(['\u{2028}', '\u{2029}', '\u{85}']).next().unwrap_or_default().as_bytes().to_vec()
}

/// Interleaves lines of more than `large_bytes`: one waits in `held` for the next.
pub(crate) fn interleaved(held: &mut Vec<u8>, line: Vec<u8>, large_bytes: usize) -> Vec<u8> {
    match (held.is_empty(), line.len() > large_bytes) {
        (true, true) => {
            *held = line;
            Vec::new()
        }
        (false, true) => {
            let (first, rest) = line.split_at(line.len() / 2);
            [first, &std::mem::take(held), rest].concat()
        }
        (_, false) => [std::mem::take(held), line].concat(),
    }
}
