//! Messages of an exact size, for checks of limits.

use crate::data::payload::{Payload, Segment, Vars};

/// Kind of padding. A limit counts bytes as they arrive, so each kind exposes another wrong count: characters, or
/// decoded text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// One byte per character.
    Ascii,
    /// Two, three and four bytes per character.
    MultiByte,
    /// Escapes of six bytes per character.
    Escapes,
}

impl Fill {
    /// All kinds with their names.
    pub const ALL: [(Self, &'static str); 3] =
        [(Self::Ascii, "ascii"), (Self::MultiByte, "multi-byte"), (Self::Escapes, "escapes")];

    /// Text whose repetition fills the message.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Ascii => "x",
            Self::MultiByte => "é€😀",
            Self::Escapes => "\\u00e9\\u0061",
        }
    }
}

/// Text of a JSON object with a padding member (`"pad":"…"`, before the others), exactly `bytes` bytes long, which must
/// not be less than its length without padding. A remainder is filled with `x`.
pub fn padded(object: Payload, unit: &str, bytes: usize) -> Payload {
    let comma = if object == Payload::text("{}") { "" } else { "," };
    let frame = format!("\"pad\":\"\"{comma}").len();
    let room = bytes.saturating_sub(object.len(&Vars::new()) + frame);
    let mut padded = Payload::text(format!("{{\"pad\":\"{}", "x".repeat(room % unit.len())))
        .repeat(unit, (room / unit.len()) as u64)
        .then(Payload::text(format!("\"{comma}")));
    for (index, segment) in object.0.into_iter().enumerate() {
        match segment {
            Segment::Text(text) if index == 0 => padded = padded.then(Payload::text(&text[1..])),
            other => padded.0.push(other),
        }
    }
    padded.merged()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_reaches_every_size_to_the_byte() {
        for object in ["{}", r#"{"jsonrpc":"2.0","id":1}"#] {
            for (fill, bytes) in Fill::ALL.into_iter().flat_map(|(fill, _)| (60..90).map(move |n| (fill, n)))
            {
                let text = padded(Payload::text(object), fill.unit(), bytes).expand(&Vars::new()).unwrap();
                assert_eq!(text.len(), bytes);
                assert!(
                    crate::data::json::decode(&text, &crate::data::json::DecodeLimits::default()).is_ok()
                );
            }
        }
    }
}
