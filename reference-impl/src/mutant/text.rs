//! Changes to the text of a message.

/// Where `part` begins in `text`.
pub fn find(text: &[u8], part: &str) -> Option<usize> {
    memchr::memmem::find(text, part.as_bytes())
}

/// Whether `text` holds `part`.
pub fn has(text: &[u8], part: &str) -> bool {
    find(text, part).is_some()
}

/// `text` with the first `from` replaced by `to`.
pub fn swap(text: &[u8], from: &str, to: &str) -> Vec<u8> {
    match find(text, from) {
        Some(at) => [&text[..at], to.as_bytes(), &text[at + from.len()..]].concat(),
        None => text.to_vec(),
    }
}

/// `text` with the last `from` replaced by `to`.
pub fn swap_last(text: &[u8], from: &str, to: &str) -> Vec<u8> {
    match memchr::memmem::rfind(text, from.as_bytes()) {
        Some(at) => [&text[..at], to.as_bytes(), &text[at + from.len()..]].concat(),
        None => text.to_vec(),
    }
}

/// `text` with one byte in the place of each character, so that a limit on bytes is one on characters.
pub fn byte_a_character(text: &[u8]) -> Vec<u8> {
    let begins = text.iter().filter(|byte| !matches!(byte, 0x80..=0xbf));
    begins.map(|byte| if byte.is_ascii() { *byte } else { b'?' }).collect()
}

/// `text` with every `from` replaced by `to`.
pub fn swap_all(text: &[u8], from: &str, to: &str) -> Vec<u8> {
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
