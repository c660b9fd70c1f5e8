//! Transcripts that are kept for later, in little memory.

use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;

use super::{Event, Kind, Transcript};

/// Pieces that hold less stay as they are.
const LARGE_BYTES: usize = 4 << 10;

/// A transcript of which what came from a peer is compressed where it is large: most of what is large repeats itself.
#[derive(Debug, Clone)]
pub struct Packed {
    /// The transcript without the large pieces.
    thin: Transcript,
    /// Number of an event, how long its bytes are, and the same compressed.
    large: Vec<(usize, usize, Vec<u8>)>,
}

impl Packed {
    /// Bytes that were sent, and that came in large pieces.
    pub fn bytes(&self) -> usize {
        self.thin.plan.bytes() + self.large.iter().map(|(_, length, _)| length).sum::<usize>()
    }
}

impl From<Transcript> for Packed {
    fn from(mut transcript: Transcript) -> Self {
        let mut large = Vec::new();
        for (at, event) in transcript.events.iter_mut().enumerate() {
            if let Some(bytes) = large_bytes(event).filter(|bytes| bytes.len() >= LARGE_BYTES)
                && let Some(less) = compressed(bytes)
            {
                large.push((at, bytes.len(), less));
                *bytes = Vec::new();
            }
        }
        transcript.events.shrink_to_fit();
        Self { thin: transcript, large }
    }
}

impl From<Packed> for Transcript {
    fn from(Packed { mut thin, large }: Packed) -> Self {
        for (at, length, less) in large {
            if let Some(bytes) = thin.events.get_mut(at).and_then(large_bytes) {
                bytes.reserve_exact(length);
                // What was compressed here is whole.
                let _ = DeflateDecoder::new(less.as_slice()).read_to_end(bytes);
            }
        }
        thin
    }
}

/// The bytes of an event that can be many.
fn large_bytes(event: &mut Event) -> Option<&mut Vec<u8>> {
    match &mut event.kind {
        Kind::Received { bytes }
        | Kind::ActorReceived { bytes, .. }
        | Kind::FileHeld { bytes, .. }
        | Kind::ListenerHit { body: bytes, .. } => Some(&mut bytes.0),
        _ => None,
    }
}

/// `bytes` compressed; `None` where that spares nothing.
fn compressed(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).ok()?;
    let mut less = encoder.finish().ok()?;
    less.shrink_to_fit();
    (less.len() < bytes.len()).then_some(less)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::clause::Side;
    use crate::facts::Facts;
    use crate::plan::Plan;
    use crate::rng::Rng;
    use crate::transcript::Bytes;

    #[test]
    fn a_packed_transcript_comes_back_to_the_byte_and_takes_less() {
        let mut rng = Rng::new(1);
        let pieces = [
            b"small".to_vec(),
            "\u{fffd}\n".repeat(1 << 20).into_bytes(),
            (0..LARGE_BYTES).map(|_| rng.below(256) as u8).collect(),
        ];
        let events =
            pieces.map(|piece| Event { at_us: 7, session: 1, kind: Kind::Received { bytes: Bytes(piece) } });
        let transcript = Transcript {
            boundary: "any".to_owned(),
            check: "by-hand".to_owned(),
            facts: Arc::new(Facts::new(Side::Provider)),
            plan: Arc::new(Plan::default()),
            timeout_scale: 1.0,
            events: events.to_vec(),
        };
        let packed = Packed::from(transcript.clone());
        let less: usize = packed.large.iter().map(|(_, _, less)| less.len()).sum();
        assert!(packed.large.len() == 1 && less < 64 << 10 && packed.bytes() == 4 << 20, "{less}");
        assert_eq!(Transcript::from(packed).events, transcript.events);
    }
}
