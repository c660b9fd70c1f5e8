//! Strict parser of a driver's output, written from the contract alone: one block in one of five forms.
//!
//! It shares no code with the reference's parser. Property tests compare the two.

mod base64;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeSet;
use std::ops::Range;

pub use words::{Fault, Form, Open};

use peerproof_engine::data::json::{
    DecodeError, DecodeErrorKind, DecodeLimits, Decoded, Json, Number, decode, string_end,
};

/// Largest output of a driver, bytes, including the white space around the block.
pub const OUTPUT_BYTES_MAX: usize = 65_536;

/// Nesting that every patch may have, levels.
const DEPTH: usize = 64;

/// The one block of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Form.
    pub form: Form,
    /// SID of the picked entry; in forms with a PICK.
    pub sid: Option<String>,
    /// Object of the patch with all its members, repeated ones included; in forms with a patch.
    pub patch: Option<Json>,
    /// Byte range of the block in the output.
    pub span: Range<usize>,
    /// Points of the text that the contract leaves to the selector. If there are any, a selector may refuse the
    /// block.
    pub open: BTreeSet<Open>,
}

impl Block {
    /// Fault of a block that a driver must not print although selectors may accept it: `INP64` that is not standard
    /// padded base64.
    pub fn driver_fault(&self) -> Option<Fault> {
        self.open.contains(&Open::LenientBase64).then_some(Fault::BadBase64)
    }
}

/// Parses a driver's output under the documented limit of 65,536 bytes.
///
/// # Errors
/// The output is not exactly one block; the error says why.
pub fn parse(output: &[u8]) -> Result<Block, Fault> {
    parse_within(output, OUTPUT_BYTES_MAX)
}

/// Parses an output of at most `bytes_max` bytes, for selectors with a limit of their own.
///
/// # Errors
/// The output is not exactly one block; the error says why.
pub fn parse_within(output: &[u8], bytes_max: usize) -> Result<Block, Fault> {
    if output.len() > bytes_max {
        return Err(Fault::TooLong);
    }
    let (start, trimmed, vt_ff) = trim(output);
    if trimmed.is_empty() {
        return Err(Fault::Empty);
    }
    let text = std::str::from_utf8(trimmed).map_err(|_| Fault::NotUtf8)?;
    let mut reader = Reader { text, at: 0, open: BTreeSet::new() };
    if vt_ff {
        reader.open.insert(Open::VtFfTrim);
    }
    let (form, sid, patch) = reader.block()?;
    Ok(Block { form, sid, patch, span: start..start + trimmed.len(), open: reader.open })
}

/// Offset of the text without surrounding white space, the text, and true if a vertical tab or a form feed was
/// removed.
fn trim(output: &[u8]) -> (usize, &[u8], bool) {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let start = output.iter().position(|byte| !is_space(byte)).unwrap_or(output.len());
    let end = output.iter().rposition(|byte| !is_space(byte)).map_or(start, |last| last + 1);
    let vt_ff = output[..start].iter().chain(&output[end..]).any(|byte| matches!(byte, 0x0B | 0x0C));
    (start, &output[start..end], vt_ff)
}

/// Words at the beginning of a block.
const FIRST: [&str; 3] = ["<PICK>", "<ASK_SUP>", "<NOOP>"];

struct Reader<'a> {
    text: &'a str,
    at: usize,
    open: BTreeSet<Open>,
}

type Parts = (Form, Option<String>, Option<Json>);

impl<'a> Reader<'a> {
    fn block(&mut self) -> Result<Parts, Fault> {
        let parts = if self.take("<PICK>") {
            let sid = self.sid()?;
            let (form, patch) = self.patch()?;
            (form, Some(sid.to_owned()), patch)
        } else if self.take("<ASK_SUP>") {
            (Form::AskSup, None, None)
        } else if self.take("<NOOP>") {
            (Form::Noop, None, None)
        } else {
            return Err(self.no_beginning());
        };
        if !self.take("<END>") {
            return Err(self.no_end(parts.2.is_some()));
        }
        match self.rest().trim_ascii_start() {
            "" => Ok(parts),
            rest if FIRST.iter().any(|word| rest.starts_with(word)) => Err(Fault::TwoBlocks),
            _ => Err(Fault::TextAfter),
        }
    }

    fn sid(&mut self) -> Result<&'a str, Fault> {
        let rest = self.rest();
        if !rest.is_empty() && !rest.starts_with('<') {
            return Err(Fault::TextBetween);
        }
        let (word, _) = rest.split_once('>').ok_or(Fault::Unclosed)?;
        let sid = &word[1..];
        match is_sid(sid) {
            true => {
                self.at += sid.len() + 2;
                Ok(sid)
            }
            false if is_sid(&sid.to_ascii_uppercase()) => Err(Fault::LowerCase),
            false => Err(Fault::BadSid),
        }
    }

    fn patch(&mut self) -> Result<(Form, Option<Json>), Fault> {
        if self.take("<INP>") {
            let text = self.plain_patch()?;
            Ok((Form::PickInp, Some(self.object(text.as_bytes())?)))
        } else if self.take("<INP64>") {
            let (text, _) = self.rest().split_once("</INP64>").ok_or_else(|| self.unclosed("</INP64>"))?;
            self.at += text.len() + "</INP64>".len();
            let decoded = base64::decode(text).ok_or(Fault::BadBase64)?;
            if !decoded.is_standard {
                self.open.insert(Open::LenientBase64);
            }
            Ok((Form::PickInp64, Some(self.object(&decoded.bytes)?)))
        } else {
            Ok((Form::Pick, None))
        }
    }

    /// Text up to the first `</INP>` outside a JSON string.
    fn plain_patch(&mut self) -> Result<&'a str, Fault> {
        let rest = self.rest();
        let mut at = 0;
        loop {
            at += memchr::memchr2(b'"', b'<', &rest.as_bytes()[at..]).ok_or(Fault::Unclosed)?;
            if rest.as_bytes()[at] == b'"' {
                at = string_end(rest.as_bytes(), at + 1);
            } else if rest[at..].starts_with("</INP>") {
                self.at += at + "</INP>".len();
                return Ok(&rest[..at]);
            } else if starts_in_any_case(&rest[at..], "</INP>") {
                return Err(Fault::LowerCase);
            } else {
                at += 1;
            }
        }
    }

    /// Parses a strict JSON object, and records open points.
    fn object(&mut self, text: &[u8]) -> Result<Json, Fault> {
        let limits = DecodeLimits { bytes_max: text.len(), depth_max: text.len() };
        let Decoded { value, facts } = decode(text, &limits).map_err(fault_of)?;
        if value.as_object().is_none() {
            return Err(Fault::PatchNotObject);
        }
        let found = [
            (facts.depth > DEPTH, Open::DeepNesting),
            (facts.duplicate_keys, Open::DuplicateKeys),
            (facts.lone_surrogates, Open::LoneSurrogates),
            (value.has_number(is_big), Open::BigNumbers),
        ];
        self.open.extend(found.into_iter().filter(|(found, _)| *found).map(|(_, open)| open));
        Ok(value)
    }

    /// Skips `word` if it comes next.
    fn take(&mut self, word: &str) -> bool {
        let found = self.rest().starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Fault of a text that does not begin with a block.
    fn no_beginning(&self) -> Fault {
        let text = self.text;
        if text.starts_with('\u{FEFF}') {
            Fault::Bom
        } else if FIRST.iter().any(|word| starts_in_any_case(text, word)) {
            Fault::LowerCase
        } else if FIRST.iter().any(|word| word.starts_with(text)) {
            Fault::Unclosed
        } else if FIRST.iter().any(|word| text.contains(word)) {
            Fault::TextBefore
        } else {
            Fault::NoBlock
        }
    }

    /// Fault of a text without `<END>` in its place.
    fn no_end(&self, has_patch: bool) -> Fault {
        let rest = self.rest();
        if rest.starts_with("<PICK>") {
            Fault::SecondPick
        } else if has_patch && (rest.starts_with("<INP>") || rest.starts_with("<INP64>")) {
            Fault::BothPatches
        } else if ["<END>", "<INP>", "<INP64>"].iter().any(|word| starts_in_any_case(rest, word)) {
            // An upper-case patch tag in a form without a patch.
            if rest.starts_with("<INP") { Fault::TextBetween } else { Fault::LowerCase }
        } else if "<END>".starts_with(rest) {
            Fault::Unclosed
        } else {
            Fault::TextBetween
        }
    }

    /// Fault of a patch without a closing `word`.
    fn unclosed(&self, word: &str) -> Fault {
        let has_other_case = self.rest().to_ascii_uppercase().contains(word);
        if has_other_case { Fault::LowerCase } else { Fault::Unclosed }
    }
}

fn fault_of(error: DecodeError) -> Fault {
    match error.kind {
        DecodeErrorKind::ByteOrderMark => Fault::Bom,
        _ => Fault::PatchNotJson,
    }
}

/// `SID` and exactly four digits.
pub(crate) fn is_sid(sid: &str) -> bool {
    let digits = sid.strip_prefix("SID").unwrap_or_default();
    digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn starts_in_any_case(text: &str, word: &str) -> bool {
    text.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word))
}

/// True if a number may change in a peer that uses doubles: an integer beyond ±(2^53−1), a number beyond all
/// doubles, or one with more digits than a double keeps.
fn is_big(number: &Number) -> bool {
    const SAFE: i64 = (1 << 53) - 1;
    match number.as_i64() {
        Some(integer) => !(-SAFE..=SAFE).contains(&integer),
        None => {
            number.is_integral()
                || number.as_f64().and_then(Number::from_f64).is_none_or(|nearest| nearest != *number)
        }
    }
}
