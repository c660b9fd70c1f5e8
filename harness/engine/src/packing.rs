//! Compressed bodies, whole ones and such as are none: one list of forms for whatever carries them.

use std::io::{self, Write as _};

use serde::{Deserialize, Serialize};

/// Bytes of padding that are compressed at a time, so that what inflates to much is small here.
const BLOCK_BYTES: u64 = 64 << 10;

/// Bytes at the end of a gzip stream: its check sum and its size.
const SUM_BYTES: usize = 8;

/// A gzip form of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Packing {
    /// The text itself.
    Whole,
    /// The text with white space behind it, so many bytes in all.
    PaddedTo(u64),
    /// The text with a wrong check sum.
    WrongSum,
    /// The stream without its check sum and size.
    NoSum,
    /// The first half of the stream.
    Cut,
    /// The text as it is: no gzip stream at all.
    Not,
}

impl Packing {
    /// Reads the part of a word that names a form: ``, `-padded-to-N`, `-wrong-sum`, `-no-sum`, `-cut`, `-not`.
    pub fn of_word(word: &str) -> Option<Self> {
        Some(match word {
            "" => Self::Whole,
            "-wrong-sum" => Self::WrongSum,
            "-no-sum" => Self::NoSum,
            "-cut" => Self::Cut,
            "-not" => Self::Not,
            _ => Self::PaddedTo(word.strip_prefix("-padded-to-")?.parse().ok()?),
        })
    }

    /// What [`Packing::of_word`] reads.
    pub fn word(self) -> String {
        match self {
            Self::Whole => String::new(),
            Self::PaddedTo(bytes) => format!("-padded-to-{bytes}"),
            Self::WrongSum => "-wrong-sum".to_owned(),
            Self::NoSum => "-no-sum".to_owned(),
            Self::Cut => "-cut".to_owned(),
            Self::Not => "-not".to_owned(),
        }
    }

    /// Whether it is a gzip stream from its beginning to its end.
    pub fn is_sound(self) -> bool {
        matches!(self, Self::Whole | Self::PaddedTo(_))
    }

    /// Bytes that it inflates to, where the text has `text_bytes`.
    pub fn inflated_bytes(self, text_bytes: usize) -> usize {
        match self {
            Self::PaddedTo(bytes) => text_bytes.max(usize::try_from(bytes).unwrap_or(usize::MAX)),
            _ => text_bytes,
        }
    }

    /// The bytes of this form of `text`.
    ///
    /// # Errors
    /// None that can happen: it is written to memory.
    pub fn pack(self, text: &[u8]) -> io::Result<Vec<u8>> {
        if self == Self::Not {
            return Ok(text.to_vec());
        }
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(9));
        encoder.write_all(text)?;
        let mut left = (self.inflated_bytes(text.len()) - text.len()) as u64;
        let block = vec![b' '; usize::try_from(left.min(BLOCK_BYTES)).unwrap_or_default()];
        while left > 0 {
            let count = left.min(BLOCK_BYTES);
            encoder.write_all(&block[..usize::try_from(count).unwrap_or_default()])?;
            left -= count;
        }
        let mut packed = encoder.finish()?;
        match self {
            Self::WrongSum => {
                if let Some(byte) = packed.len().checked_sub(SUM_BYTES).and_then(|at| packed.get_mut(at)) {
                    *byte ^= 1;
                }
            }
            Self::NoSum => packed.truncate(packed.len() - SUM_BYTES),
            Self::Cut => packed.truncate(packed.len() / 2),
            _ => {}
        }
        Ok(packed)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn inflate(packed: &[u8]) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        flate2::read::GzDecoder::new(packed).read_to_end(&mut text)?;
        Ok(text)
    }

    #[test]
    fn sound_forms_inflate_and_the_others_do_not() {
        let text = b"{\"jsonrpc\":\"2.0\"}";
        for form in [
            Packing::Whole,
            Packing::PaddedTo(3),
            Packing::PaddedTo(200_001),
            Packing::WrongSum,
            Packing::NoSum,
            Packing::Cut,
            Packing::Not,
        ] {
            assert_eq!(Packing::of_word(&form.word()), Some(form));
            let inflated = inflate(&form.pack(text).unwrap());
            assert_eq!(inflated.is_ok(), form.is_sound(), "{form:?}");
            if let Ok(inflated) = inflated {
                assert!(inflated.starts_with(text) && inflated.trim_ascii_end() == text);
                assert_eq!(inflated.len(), form.inflated_bytes(text.len()));
            }
        }
        assert_eq!(Packing::of_word("-padded-to-"), None);
    }
}
