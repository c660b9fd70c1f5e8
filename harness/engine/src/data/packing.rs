//! Valid and corrupt gzip bodies.

use std::io::{self, Write as _};

use serde::{Deserialize, Serialize};

/// Size of the blocks in which padding is compressed, so that much padding takes little memory.
const BLOCK_BYTES: u64 = 64 << 10;

/// Length of the checksum and size at the end of a gzip stream, bytes.
const SUM_BYTES: usize = 8;

/// Gzip form of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Packing {
    /// Valid stream.
    Whole,
    /// Valid stream of the text with white space appended up to this many bytes.
    PaddedTo(u64),
    /// Stream with a wrong checksum.
    WrongSum,
    /// Stream without its checksum and size.
    NoSum,
    /// First half of the stream.
    Cut,
    /// Uncompressed text, which is not a gzip stream.
    Not,
}

impl Packing {
    /// Parses the suffix of a word that names a form: ``, `-padded-to-N`, `-wrong-sum`, `-no-sum`, `-cut`, `-not`.
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

    /// Suffix that [`Packing::of_word`] parses.
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

    /// True for a valid gzip stream.
    pub fn is_sound(self) -> bool {
        matches!(self, Self::Whole | Self::PaddedTo(_))
    }

    /// Inflated length for a text of `text_bytes` bytes.
    pub fn inflated_bytes(self, text_bytes: usize) -> usize {
        match self {
            Self::PaddedTo(bytes) => text_bytes.max(usize::try_from(bytes).unwrap_or(usize::MAX)),
            _ => text_bytes,
        }
    }

    /// Packs `text` in this form.
    ///
    /// # Errors
    /// Never fails: it writes to memory.
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
