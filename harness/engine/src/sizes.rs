//! Messages of an exact size, for checks of limits.

use crate::payload::{Payload, Segment, Vars};

/// What padding is made of. A limit counts bytes as they arrive, so each puts another wrong count to the test: of
/// characters, or of decoded text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// One byte a character.
    Ascii,
    /// Two, three and four bytes a character.
    MultiByte,
    /// Six bytes a character, two of them.
    Escapes,
}

impl Fill {
    /// All of them with their names.
    pub const ALL: [(Self, &'static str); 3] =
        [(Self::Ascii, "ascii"), (Self::MultiByte, "multi-byte"), (Self::Escapes, "escapes")];

    /// The text that is repeated.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Ascii => "x",
            Self::MultiByte => "é€😀",
            Self::Escapes => "\\u00e9\\u0061",
        }
    }
}

/// The text of a JSON object with a member of padding (`"pad":"…"`, before the others), so that it has exactly `bytes`
/// bytes, which must be at least as many as without. What `unit` does not divide is filled with `x`.
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
                assert!(crate::json::decode(&text, &crate::json::DecodeLimits::default()).is_ok());
            }
        }
    }
}
