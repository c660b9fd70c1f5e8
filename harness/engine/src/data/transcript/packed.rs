//! Transcripts packed for keeping in memory.

use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;

use super::{Event, EventKind, Transcript};

/// Minimum size of compressed pieces, bytes.
const LARGE_BYTES: usize = 4 << 10;

/// Transcript whose large pieces from the peer are compressed, because they usually repeat themselves.
#[derive(Debug, Clone)]
pub struct Packed {
    /// Transcript without the large pieces.
    thin: Transcript,
    /// Large pieces: event and place in it, original length, compressed bytes.
    large: Vec<((usize, usize), usize, Vec<u8>)>,
}

impl Packed {
    /// Number of bytes sent, and received in large pieces.
    pub fn bytes(&self) -> usize {
        self.thin.plan.bytes() + self.large.iter().map(|(_, length, _)| length).sum::<usize>()
    }
}

impl From<Transcript> for Packed {
    fn from(mut transcript: Transcript) -> Self {
        let mut large = Vec::new();
        for (at, event) in transcript.events.iter_mut().enumerate() {
            for (place, bytes) in large_bytes(event).enumerate() {
                if bytes.len() >= LARGE_BYTES
                    && let Some(less) = compressed(bytes)
                {
                    large.push(((at, place), bytes.len(), less));
                    *bytes = Vec::new();
                }
            }
        }
        transcript.events.shrink_to_fit();
        Self { thin: transcript, large }
    }
}

impl From<Packed> for Transcript {
    fn from(Packed { mut thin, large }: Packed) -> Self {
        for ((at, place), length, less) in large {
            if let Some(bytes) = thin.events.get_mut(at).and_then(|event| large_bytes(event).nth(place)) {
                bytes.reserve_exact(length);
                // Cannot fail: it was compressed here.
                let _ = DeflateDecoder::new(less.as_slice()).read_to_end(bytes);
            }
        }
        thin
    }
}

/// Parts of an event that may be large.
fn large_bytes(event: &mut Event) -> impl Iterator<Item = &mut Vec<u8>> {
    let (one, found) = match &mut event.kind {
        EventKind::Received { bytes }
        | EventKind::ActorReceived { bytes, .. }
        | EventKind::FileHeld { bytes, .. }
        | EventKind::HttpReply { body: Some(bytes), .. }
        | EventKind::ListenerHit { body: bytes, .. } => (Some(bytes), None),
        EventKind::Looked { found, .. } => (None, Some(found)),
        _ => (None, None),
    };
    let found = found.into_iter().flatten().filter_map(|found| found.bytes.as_mut());
    one.into_iter().chain(found).map(|bytes| &mut bytes.0)
}

/// Compresses `bytes`; `None` if that saves nothing.
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
    use crate::data::clause::Side;
    use crate::data::facts::Facts;
    use crate::data::plan::Plan;
    use crate::data::rng::Rng;
    use crate::data::transcript::{Bytes, FoundEntry, FoundKind};

    #[test]
    fn a_packed_transcript_comes_back_to_the_byte_and_takes_less() {
        let mut rng = Rng::new(1);
        let large = || Bytes("\u{fffd}\n".repeat(1 << 20).into_bytes());
        let pieces = [
            Bytes(b"small".to_vec()),
            large(),
            Bytes((0..LARGE_BYTES).map(|_| rng.below(256) as u8).collect()),
        ];
        let found = |bytes: Option<Bytes>| FoundEntry {
            path: Bytes::default(),
            kind: FoundKind::File,
            inode: 1,
            mode: 0,
            total_bytes: 1,
            bytes,
        };
        let looked = EventKind::Looked {
            label: String::new(),
            path: Bytes::default(),
            found: vec![found(None), found(Some(Bytes::default())), found(Some(large()))],
            cut: false,
        };
        let kinds = pieces.map(|bytes| EventKind::Received { bytes }).into_iter().chain([looked]);
        let events: Vec<Event> = kinds.map(|kind| Event { at_us: 7, session: 1, kind }).collect();
        let transcript = Transcript {
            boundary: "any".to_owned(),
            check: "by-hand".to_owned(),
            facts: Arc::new(Facts::new(Side::Provider)),
            plan: Arc::new(Plan::default()),
            timeout_scale: 1.0,
            events,
        };
        let packed = Packed::from(transcript.clone());
        let less: usize = packed.large.iter().map(|(_, _, less)| less.len()).sum();
        assert!(packed.large.len() == 2 && less < 128 << 10 && packed.bytes() == 8 << 20, "{less}");
        assert_eq!(Transcript::from(packed).events, transcript.events);
    }
}
