//! Blocks in the output of a driver, as far as a log shows them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use peerproof_engine::data::json::{self, DecodeLimits, Json};

/// Largest output of a driver, bytes (`policy` §2).
const BYTES_MAX: usize = 65_536;

/// Nesting of a patch that every selector accepts, levels.
const DEPTH_MAX: usize = 64;

/// Meaning of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OutputMeaning {
    /// A PICK of this SID, with its patch if it has one.
    Pick(String, Option<Json>),
    /// `ASK_SUP`.
    AskSup,
    /// `NOOP`.
    Noop,
    /// No block, so the fallback selects.
    Fails,
    /// An output that only some selectors accept as a block.
    Open,
}

/// Reads the output of a driver.
pub(crate) fn read(output: &[u8]) -> OutputMeaning {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    let start = output.iter().position(|byte| !is_blank(byte)).unwrap_or(output.len());
    let end = output.iter().rposition(|byte| !is_blank(byte)).map_or(start, |at| at + 1);
    let Ok(text) = std::str::from_utf8(&output[start..end]) else { return OutputMeaning::Fails };
    match text {
        _ if output.len() > BYTES_MAX => OutputMeaning::Fails,
        _ if text.starts_with(['\u{b}', '\u{c}']) || text.ends_with(['\u{b}', '\u{c}']) => {
            OutputMeaning::Open
        }
        "<NOOP><END>" => OutputMeaning::Noop,
        "<ASK_SUP><END>" => OutputMeaning::AskSup,
        _ => pick(text).unwrap_or(OutputMeaning::Fails),
    }
}

fn pick(text: &str) -> Option<OutputMeaning> {
    let (sid, rest) = text.strip_prefix("<PICK><")?.split_once('>')?;
    let digits = sid.strip_prefix("SID")?;
    if digits.len() != 4 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let patch = if rest == "<END>" {
        return Some(OutputMeaning::Pick(sid.to_owned(), None));
    } else if let Some(rest) = rest.strip_prefix("<INP>") {
        rest.strip_suffix("</INP><END>")?.as_bytes().to_vec()
    } else {
        let digits = rest.strip_prefix("<INP64>")?.strip_suffix("</INP64><END>")?;
        match STANDARD.decode(digits) {
            Ok(patch) => patch,
            // Other alphabets and paddings are open.
            Err(_) => return Some(OutputMeaning::Open),
        }
    };
    let decoded = json::decode(json::trim(&patch), &DecodeLimits::default()).ok()?;
    decoded.value.as_object()?;
    let facts = decoded.facts;
    let is_open = facts.depth > DEPTH_MAX || facts.duplicate_keys || facts.lone_surrogates;
    let is_beyond = || decoded.value.has_number(json::Number::is_beyond_double);
    let pick = OutputMeaning::Pick(sid.to_owned(), Some(decoded.value.clone()));
    Some(if is_open || is_beyond() { OutputMeaning::Open } else { pick })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_forms_of_the_contract_are_blocks() {
        let patch = Some(r#"{"k":"</INP><END>"}"#.parse().unwrap());
        let pick = |patch| OutputMeaning::Pick("SID0001".to_owned(), patch);
        assert_eq!(read(b" <PICK><SID0001><END>\r\n"), pick(None));
        assert_eq!(read(br#"<PICK><SID0001><INP>{"k":"</INP><END>"}</INP><END>"#), pick(patch));
        assert_eq!(read(b"<PICK><SID0001><INP64>e30=</INP64><END>"), pick(Some("{}".parse().unwrap())));
        assert_eq!(
            (read(b"<NOOP><END>\n"), read(b"<ASK_SUP><END>")),
            (OutputMeaning::Noop, OutputMeaning::AskSup)
        );
        for text in [
            "",
            "noop",
            "<NOOP><END><NOOP><END>",
            "<PICK><SID001><END>",
            "<PICK><SID0001><INP>[]</INP><END>",
            "<PICK><SID0001><INP>{}</INP><END>x",
            "x <NOOP><END>",
        ] {
            assert_eq!(read(text.as_bytes()), OutputMeaning::Fails, "{text}");
        }
        assert_eq!(read(br#"<PICK><SID0001><INP>{"a":1,"a":2}</INP><END>"#), OutputMeaning::Open);
    }
}
