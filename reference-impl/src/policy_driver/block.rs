//! The output of a driver: exactly one block of five forms (`policy` §2 "Output"; contract §2 "Payload and block").
//!
//! ```text
//! <PICK><SID0007><END>
//! <PICK><SID0007><INP>{…}</INP><END>
//! <PICK><SID0007><INP64>BASE64</INP64><END>
//! <ASK_SUP><END>
//! <NOOP><END>
//! ```
//!
//! An `INP` ends at the first `</INP>` outside a JSON string. JSON has no `<` outside strings, so a valid block ends
//! in `</INP><END>` with JSON before it. The reader checks the end and never searches for it.

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose::STANDARD};

use super::Sid;
use crate::dispatcher::text::normalise_with;
use crate::json::{self, Policy, Scanner};

/// Decoder for [`Rules::lenient_base64`], applied without white space and padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true),
);

/// Behaviours that contract and choices leave open for blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// True to accept unpadded, URL-alphabet, non-canonical and spaced base64.
    pub lenient_base64: bool,
    /// True to trim vertical tabs and form feeds too.
    pub trims_vt_ff: bool,
    /// Levels of arrays and objects in a patch.
    pub nesting_max: usize,
    /// Treatment of ambiguous JSON.
    pub policy: Policy,
}

/// Decision of a driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block<'t> {
    /// `<PICK>`
    Pick {
        /// The picked entry.
        sid: Sid,
        /// Text of a JSON object, if present, without white space around it. The spelling is the driver's, unless
        /// ambiguities had to be resolved.
        patch: Option<Cow<'t, str>>,
    },
    /// `<ASK_SUP>`
    AskSup,
    /// `<NOOP>`
    Noop,
}

impl Block<'_> {
    /// Copies borrowed text.
    pub fn into_owned(self) -> Block<'static> {
        match self {
            Self::Pick { sid, patch } => {
                Block::Pick { sid, patch: patch.map(|patch| Cow::Owned(patch.into_owned())) }
            }
            Self::AskSup => Block::AskSup,
            Self::Noop => Block::Noop,
        }
    }
}

/// Reason why a text is not a block.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BlockError {
    /// Nothing but white space.
    #[error("nothing was written")]
    Empty,
    /// It has none of the five forms.
    #[error("it is no block")]
    Form,
    /// No SID of four digits follows the pick.
    #[error("the pick names no SID of four digits")]
    Sid,
    /// A pick does not end like its form: it is cut, or more text follows.
    #[error("the pick is cut short or followed by something")]
    End,
    /// The patch is not JSON.
    #[error("the patch is not JSON: {0}")]
    Json(json::Error),
    /// The patch is JSON but not an object.
    #[error("the patch is no JSON object")]
    NoObject,
    /// The patch is not base64.
    #[error("the patch is not base64")]
    Base64,
}

/// Reader of blocks. It keeps its buffers between blocks.
#[derive(Debug)]
pub struct BlockReader {
    rules: Rules,
    scanner: Scanner,
}

impl BlockReader {
    /// Creates a reader that follows `rules`.
    pub fn new(rules: Rules) -> Self {
        Self { rules, scanner: Scanner::new(rules.nesting_max) }
    }

    /// Reads the whole output of a driver.
    ///
    /// # Errors
    /// Fails for anything but exactly one block, with or without white space around it.
    pub fn read<'t>(&mut self, stdout: &'t [u8]) -> Result<Block<'t>, BlockError> {
        let text = self.trim(stdout);
        match text {
            b"" => return Err(BlockError::Empty),
            b"<ASK_SUP><END>" => return Ok(Block::AskSup),
            b"<NOOP><END>" => return Ok(Block::Noop),
            _ => {}
        }
        let rest = text.strip_prefix(b"<PICK>").ok_or(BlockError::Form)?;
        let (sid, rest) = rest.split_at_checked("<SID0000>".len()).ok_or(BlockError::Sid)?;
        let sid = sid.strip_prefix(b"<").and_then(|sid| sid.strip_suffix(b">")).and_then(Sid::parse);
        let sid = sid.ok_or(BlockError::Sid)?;
        let patch = if rest == b"<END>" {
            None
        } else if let Some(rest) = rest.strip_prefix(b"<INP>") {
            let json = rest.strip_suffix(b"</INP><END>").ok_or(BlockError::End)?;
            Some(self.object(json)?)
        } else if let Some(rest) = rest.strip_prefix(b"<INP64>") {
            let base64 = rest.strip_suffix(b"</INP64><END>").ok_or(BlockError::End)?;
            let json = self.decode(base64)?;
            Some(Cow::Owned(self.object(&json)?.into_owned()))
        } else {
            return Err(BlockError::End);
        };
        Ok(Block::Pick { sid, patch })
    }

    fn trim<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        let vt_ff = self.rules.trims_vt_ff;
        let is_space = |byte: &u8| {
            matches!(byte, b' ' | b'\t' | b'\n' | b'\r') || (vt_ff && matches!(byte, 0x0B | 0x0C))
        };
        let start = text.iter().position(|byte| !is_space(byte)).unwrap_or(text.len());
        let end = text.iter().rposition(|byte| !is_space(byte)).map_or(start, |last| last + 1);
        text.get(start..end).unwrap_or_default()
    }

    /// Validates the JSON text of a patch.
    fn object<'t>(&mut self, json: &'t [u8]) -> Result<Cow<'t, str>, BlockError> {
        let Rules { nesting_max, policy, .. } = self.rules;
        let normal =
            normalise_with(&mut self.scanner, json, nesting_max, &policy).map_err(BlockError::Json)?;
        let text = match normal {
            Cow::Borrowed(text) => str::from_utf8(text.trim_ascii()).ok().map(Cow::Borrowed),
            Cow::Owned(text) => String::from_utf8(text).ok().map(Cow::Owned),
        };
        text.filter(|text| text.starts_with('{')).ok_or(BlockError::NoObject)
    }

    fn decode(&self, text: &[u8]) -> Result<Vec<u8>, BlockError> {
        if !self.rules.lenient_base64 {
            return STANDARD.decode(text).map_err(|_| BlockError::Base64);
        }
        let mut plain: Vec<u8> = text
            .iter()
            .filter(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))
            .map(|byte| match byte {
                b'-' => b'+',
                b'_' => b'/',
                other => *other,
            })
            .collect();
        let digits = plain.iter().rposition(|byte| *byte != b'=').map_or(0, |last| last + 1);
        plain.truncate(digits);
        LENIENT.decode(plain).map_err(|_| BlockError::Base64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RULES: Rules = Rules {
        lenient_base64: false,
        trims_vt_ff: false,
        nesting_max: 64,
        policy: Policy {
            duplicate_keys: json::DuplicateKeys::Last,
            lone_surrogates: json::LoneSurrogates::Echo,
            big_numbers: json::BigNumbers::Exact,
        },
    };

    fn read_with(rules: Rules, text: &[u8]) -> Result<Block<'_>, BlockError> {
        BlockReader::new(rules).read(text)
    }

    fn read(text: &str) -> Result<Block<'_>, BlockError> {
        read_with(RULES, text.as_bytes())
    }

    fn patch_of(text: &str) -> Result<Option<String>, BlockError> {
        match read(text)? {
            Block::Pick { patch, .. } => Ok(patch.map(Cow::into_owned)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn reads_the_five_forms() {
        let sid = Sid::parse(b"SID0007").unwrap();
        assert_eq!(read("<PICK><SID0007><END>"), Ok(Block::Pick { sid, patch: None }));
        assert_eq!(read("<ASK_SUP><END>"), Ok(Block::AskSup));
        assert_eq!(read("<NOOP><END>"), Ok(Block::Noop));
        assert_eq!(patch_of("<PICK><SID0007><INP> {\"a\":1}\n</INP><END>"), Ok(Some("{\"a\":1}".to_owned())));
        assert_eq!(
            patch_of("<PICK><SID0007><INP64>eyJhIjoxfQ==</INP64><END>"),
            Ok(Some("{\"a\":1}".to_owned()))
        );
        assert_eq!(patch_of("<PICK><SID0007><INP>{}</INP><END>"), Ok(Some("{}".to_owned())));
        assert_eq!(read(" \t\r\n<NOOP><END>\r\n\t "), Ok(Block::Noop));
    }

    #[test]
    fn a_string_may_hold_every_tag() {
        let json = r#"{"a</INP><END>":"</INP><END><PICK><SID0001><END><INP64>\"</INP64>"}"#;
        assert_eq!(patch_of(&format!("<PICK><SID0007><INP>{json}</INP><END>")), Ok(Some(json.to_owned())));
    }

    #[test]
    fn refuses_near_misses() {
        for (text, error) in [
            ("", BlockError::Empty),
            (" \n", BlockError::Empty),
            ("<pick><SID0007><END>", BlockError::Form),
            ("x<NOOP><END>", BlockError::Form),
            ("\u{FEFF}<NOOP><END>", BlockError::Form),
            ("\u{B}<NOOP><END>", BlockError::Form),
            ("<NOOP><END>\u{C}", BlockError::Form),
            ("<NOOP><END>x", BlockError::Form),
            ("<NOOP> <END>", BlockError::Form),
            ("<NOOP><END><NOOP><END>", BlockError::Form),
            ("<NOOP><END>\n<PICK><SID0001><END>", BlockError::Form),
            ("<ASK_SUP>", BlockError::Form),
            ("<NOOP", BlockError::Form),
            ("<PICK>", BlockError::Sid),
            ("<PICK><END>", BlockError::Sid),
            ("<PICK><SID007><END>", BlockError::Sid),
            ("<PICK><SID00007><END>", BlockError::Sid),
            ("<PICK><sid0007><END>", BlockError::Sid),
            ("<PICK> <SID0007><END>", BlockError::Sid),
            ("<PICK><PICK><SID0007><END>", BlockError::Sid),
            ("<PICK><SID0007>", BlockError::End),
            ("<PICK><SID0007><SID0008><END>", BlockError::End),
            ("<PICK><SID0007><end>", BlockError::End),
            ("<PICK><SID0007><END><END>", BlockError::End),
            ("<PICK><SID0007>\n<END>", BlockError::End),
            ("<PICK><SID0007><INP>{}<END>", BlockError::End),
            ("<PICK><SID0007><INP>{}</INP>", BlockError::End),
            ("<PICK><SID0007><INP>{}</INP> <END>", BlockError::End),
            ("<PICK><SID0007><INP>{}</INP64><END>", BlockError::End),
            ("<PICK><SID0007><INP64>e30=</INP><END>", BlockError::End),
            ("<PICK><SID0007><INP></INP64><END>", BlockError::End),
            ("<PICK><SID0007><INP>[]</INP><END>", BlockError::NoObject),
            ("<PICK><SID0007><INP>null</INP><END>", BlockError::NoObject),
            ("<PICK><SID0007><INP64>W10=</INP64><END>", BlockError::NoObject),
            ("<PICK><SID0007><INP64>e30</INP64><END>", BlockError::Base64),
            ("<PICK><SID0007><INP64>e31=</INP64><END>", BlockError::Base64),
            ("<PICK><SID0007><INP64> e30=</INP64><END>", BlockError::Base64),
            ("<PICK><SID0007><INP64>eyJhIjoiPz4_In0=</INP64><END>", BlockError::Base64),
        ] {
            assert_eq!(read(text), Err(error), "{text:?}");
        }
        for json in [
            "",
            "{'a':1}",
            "{\"a\":1,}",
            "{} {}",
            "{}</INP><INP64>e30=",
            "{}</INP><INP>{}",
            "{\"a\":NaN}",
            "\u{FEFF}{}",
            "{\"a\":\"\n\"}",
        ] {
            let text = format!("<PICK><SID0007><INP>{json}</INP><END>");
            assert!(matches!(read(&text), Err(BlockError::Json(_))), "{text:?}");
        }
        assert!(matches!(
            read_with(RULES, b"<PICK><SID0007><INP>{\"a\":\"\xff\"}</INP><END>"),
            Err(BlockError::Json(_))
        ));
        assert!(matches!(read("<PICK><SID0007><INP64></INP64><END>"), Err(BlockError::Json(_))));
    }

    #[test]
    fn leniency_is_a_choice() {
        let rules = Rules { lenient_base64: true, trims_vt_ff: true, ..RULES };
        for base64 in ["e30=", "e30", "e31", " e3\n0 =\t", "eyJhIjoiPz4_In0"] {
            let text = format!("<PICK><SID0007><INP64>{base64}</INP64><END>");
            assert!(
                matches!(read_with(rules, text.as_bytes()), Ok(Block::Pick { patch: Some(_), .. })),
                "{base64:?}"
            );
        }
        assert_eq!(read_with(rules, b"<PICK><SID0007><INP64>e3*0</INP64><END>"), Err(BlockError::Base64));
        assert_eq!(read_with(rules, b"\x0B<NOOP><END>\x0C"), Ok(Block::Noop));
    }

    #[test]
    fn what_is_ambiguous_is_settled() {
        assert_eq!(
            patch_of("<PICK><SID0007><INP>{\"a\":1,\"a\": 2}</INP><END>"),
            Ok(Some("{\"a\":2}".to_owned()))
        );
        let refusing = Policy { duplicate_keys: json::DuplicateKeys::Refuse, ..RULES.policy };
        let rules = Rules { policy: refusing, ..RULES };
        let text = b"<PICK><SID0007><INP>{\"a\":1,\"a\":2}</INP><END>";
        assert!(matches!(read_with(rules, text), Err(BlockError::Json(_))));
    }

    proptest! {
        #[test]
        fn what_is_between_the_tags_decides(value in "[ -~é\u{2028}]{0,40}") {
            let mut json = b"{\"k\":".to_vec();
            json::write_str(&mut json, &value);
            json.push(b'}');
            let json = String::from_utf8(json).unwrap();
            let text = format!("<PICK><SID0007><INP>{json}</INP><END>");
            prop_assert_eq!(patch_of(&text), Ok(Some(json.clone())));
            let text = format!("<PICK><SID0007><INP64>{}</INP64><END>", STANDARD.encode(&json));
            prop_assert_eq!(patch_of(&text), Ok(Some(json)));
        }

        #[test]
        fn no_bytes_break_it(bytes in proptest::collection::vec(any::<u8>(), 0..64), cut in 0_usize..60) {
            let text = b"<PICK><SID0007><INP64>eyJhIjoxfQ==</INP64><END>";
            let mut edited = text[..cut.min(text.len())].to_vec();
            edited.extend(bytes);
            let _ = read_with(RULES, &edited);
        }
    }
}
