//! Replacements for a driver's output, for mutants that misread it.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose::STANDARD};

use super::super::tree;
use crate::json::Value;
use crate::mutant::text::find;

/// Replaces the text between `<INP>` and the last `</INP>`.
pub(super) fn with_patch(text: &[u8], replace: impl FnOnce(&[u8]) -> Vec<u8>) -> Vec<u8> {
    part(text, "<INP>", "</INP>", replace)
}

pub(super) fn with_base64(text: &[u8], replace: impl FnOnce(&[u8]) -> Vec<u8>) -> Vec<u8> {
    part(text, "<INP64>", "</INP64>", replace)
}

pub(super) fn part(text: &[u8], start: &str, end: &str, replace: impl FnOnce(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let from = find(text, start).map(|at| at + start.len());
    let to = memchr::memmem::rfind(text, end.as_bytes());
    match (from, to) {
        (Some(from), Some(to)) if from <= to => {
            [&text[..from], &replace(&text[from..to]), &text[to..]].concat()
        }
        _ => text.to_vec(),
    }
}

/// Text without white space around it.
pub(super) fn trimmed(text: &[u8]) -> &[u8] {
    text.trim_ascii()
}

/// Accepts tags in any letter case.
pub(super) fn upper_tags(text: &[u8]) -> Vec<u8> {
    const TAGS: [&str; 8] =
        ["<PICK>", "<END>", "<ASK_SUP>", "<NOOP>", "<INP>", "</INP>", "<INP64>", "</INP64>"];
    let mut out = text.to_vec();
    let upper = text.to_ascii_uppercase();
    for tag in TAGS {
        for at in memchr::memmem::find_iter(&upper, tag.as_bytes()) {
            out[at..at + tag.len()].copy_from_slice(tag.as_bytes());
        }
    }
    out
}

/// Replaces the text between `<SID` and `>`.
pub(super) fn with_digits(text: &[u8], replace: fn(&[u8]) -> Option<String>) -> Vec<u8> {
    let digits = || {
        let from = find(text, "<SID")? + "<SID".len();
        let to = from + memchr::memchr(b'>', &text[from..])?;
        Some([&text[..from], replace(&text[from..to])?.as_bytes(), &text[to..]].concat())
    };
    digits().unwrap_or_else(|| text.to_vec())
}

pub(super) fn number(digits: &[u8]) -> Option<String> {
    let number: u32 = std::str::from_utf8(digits).ok()?.trim().parse().ok()?;
    (number < 10_000).then(|| format!("{number:04}"))
}

/// Replaces a patch by `{}` if it is JSON for which `wanted` returns true.
pub(super) fn as_object(patch: &[u8], wanted: fn(&Value) -> bool) -> Vec<u8> {
    match tree::parse(patch) {
        Some(value) if wanted(&value) => b"{}".to_vec(),
        _ => patch.to_vec(),
    }
}

/// Removes parts outside of JSON strings. `skip` returns the number of bytes to remove at a place.
pub(super) fn without(json: &[u8], skip: impl Fn(&[u8]) -> usize) -> Vec<u8> {
    let (mut out, mut at, mut in_string) = (Vec::new(), 0, false);
    while let Some(byte) = json.get(at) {
        let left_out = if in_string { 0 } else { skip(&json[at..]) };
        if left_out > 0 {
            at += left_out;
            continue;
        }
        if in_string && *byte == b'\\' {
            out.extend(json[at..].iter().take(2));
            at += 2;
            continue;
        }
        in_string ^= *byte == b'"';
        out.push(*byte);
        at += 1;
    }
    out
}

pub(super) fn comment(rest: &[u8]) -> usize {
    if rest.starts_with(b"/*") {
        find(rest, "*/").map_or(0, |at| at + 2)
    } else if rest.starts_with(b"//") {
        memchr::memchr(b'\n', rest).unwrap_or(0)
    } else {
        0
    }
}

pub(super) fn trailing_comma(rest: &[u8]) -> usize {
    let closes = rest.strip_prefix(b",").is_some_and(|rest| rest.trim_ascii_start().starts_with(b"}"));
    usize::from(closes)
}

/// Decodes base64 and skips all other characters.
pub(super) fn careless_base64(text: &[u8]) -> Vec<u8> {
    const ENGINE: GeneralPurpose = GeneralPurpose::new(
        &alphabet::STANDARD,
        GeneralPurposeConfig::new()
            .with_decode_padding_mode(DecodePaddingMode::RequireNone)
            .with_decode_allow_trailing_bits(true),
    );
    let plain: Vec<u8> = text
        .iter()
        .copied()
        .filter(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
        .collect();
    match ENGINE.decode(&plain) {
        Ok(bytes) => STANDARD.encode(bytes).into_bytes(),
        Err(_) => text.to_vec(),
    }
}

/// Edits the decoded bytes of an INP64.
pub(super) fn with_decoded(text: &[u8], change: fn(Vec<u8>) -> Vec<u8>) -> Vec<u8> {
    with_base64(text, |base64| match STANDARD.decode(base64) {
        Ok(bytes) => STANDARD.encode(change(bytes)).into_bytes(),
        Err(_) => base64.to_vec(),
    })
}
