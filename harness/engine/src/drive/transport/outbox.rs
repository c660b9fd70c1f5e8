//! Queue of bytes to write to a peer, divided by their chunking.

use std::collections::VecDeque;

use crate::data::plan::Chunking;

/// Maximum size of a payload that is dribbled byte by byte.
const BYTEWISE_BYTES_MAX: usize = 64 << 10;
/// Size of the first and last part of a larger dribbled payload.
const EDGE_BYTES: usize = 4 << 10;
/// Chunk size in the first and last part, bytes: a prime, so that it drifts against every record size.
const EDGE_CHUNK_BYTES: usize = 61;
/// Chunk size between the first and last part, bytes.
const MIDDLE_CHUNK_BYTES: usize = 4_093;
/// Number of paced chunks at the start and end of a payload.
const PACED_CHUNKS: usize = 256;

/// Queue of one connection.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    items: VecDeque<QueuedWrite>,
    unwritten_bytes: u64,
}

#[derive(Debug)]
struct QueuedWrite {
    bytes: Vec<u8>,
    at: usize,
    chunking: Chunking,
    chunks_written: usize,
}

/// Contents of the next write.
pub(super) struct Chunk<'a> {
    pub(super) bytes: &'a [u8],
    /// Set if the peer should be able to read it before the next write.
    pub(super) paced: bool,
}

impl Outbox {
    pub(super) fn push(&mut self, bytes: Vec<u8>, chunking: Chunking) {
        if !bytes.is_empty() {
            self.unwritten_bytes += bytes.len() as u64;
            self.items.push_back(QueuedWrite { bytes, at: 0, chunking, chunks_written: 0 });
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(super) fn unwritten_bytes(&self) -> u64 {
        self.unwritten_bytes
    }

    pub(super) fn next(&self) -> Option<Chunk<'_>> {
        let item = self.items.front()?;
        let length = chunk_bytes(item.chunking, item.at, item.bytes.len());
        let left = item.bytes.len() - item.at;
        let paced = item.chunking != Chunking::Whole
            && (item.chunks_written < PACED_CHUNKS || left / length < PACED_CHUNKS);
        Some(Chunk { bytes: &item.bytes[item.at..item.at + length], paced })
    }

    /// Records that `bytes` of the next chunk were written.
    pub(super) fn advance(&mut self, bytes: usize) {
        if let Some(item) = self.items.front_mut() {
            item.at += bytes;
            item.chunks_written += 1;
            self.unwritten_bytes -= bytes as u64;
            if item.at == item.bytes.len() {
                self.items.pop_front();
            }
        }
    }

    /// Drops everything; returns the number of unwritten bytes.
    pub(super) fn clear(&mut self) -> u64 {
        self.items.clear();
        std::mem::take(&mut self.unwritten_bytes)
    }
}

/// Length of the chunk at `at`. It depends only on the offset, so that a short write does not shift later divisions.
fn chunk_bytes(chunking: Chunking, at: usize, total: usize) -> usize {
    let to_cut = |from: usize, size: usize| size - (at - from) % size;
    let end = match chunking {
        Chunking::Whole => total,
        Chunking::Every(size) => at + to_cut(0, (size as usize).max(1)),
        Chunking::Dribble if total <= BYTEWISE_BYTES_MAX => at + 1,
        Chunking::Dribble if at < EDGE_BYTES => (at + to_cut(0, EDGE_CHUNK_BYTES)).min(EDGE_BYTES),
        Chunking::Dribble if at < total - EDGE_BYTES => {
            (at + to_cut(EDGE_BYTES, MIDDLE_CHUNK_BYTES)).min(total - EDGE_BYTES)
        }
        Chunking::Dribble => at + to_cut(total - EDGE_BYTES, EDGE_CHUNK_BYTES),
    };
    end.min(total) - at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cuts(total: usize, chunking: Chunking) -> Vec<usize> {
        let mut outbox = Outbox::default();
        outbox.push(vec![0; total], chunking);
        let mut lengths = Vec::new();
        while let Some(chunk) = outbox.next() {
            let length = chunk.bytes.len();
            lengths.push(length);
            outbox.advance(length);
        }
        assert_eq!(outbox.clear(), 0);
        lengths
    }

    #[test]
    fn whole_is_one_chunk() {
        assert_eq!(cuts(100_000, Chunking::Whole), [100_000]);
    }

    #[test]
    fn every_n_ends_with_the_rest() {
        assert_eq!(cuts(10, Chunking::Every(4)), [4, 4, 2]);
        assert_eq!(cuts(3, Chunking::Every(0)), [1, 1, 1]);
    }

    #[test]
    fn dribble_is_bytewise_up_to_64_kib_and_coarse_above() {
        assert_eq!(cuts(65_536, Chunking::Dribble), vec![1; 65_536]);
        let above = cuts(1 << 20, Chunking::Dribble);
        assert_eq!(above.iter().sum::<usize>(), 1 << 20);
        assert_eq!(&above[..2], [61, 61]);
        assert_eq!(above[67..70], [4_096 - 67 * 61, 4_093, 4_093]);
        assert_eq!(above[above.len() - 2..], [61, 4_096 - 67 * 61]);
    }

    #[test]
    fn a_short_write_does_not_shift_the_cuts() {
        let mut outbox = Outbox::default();
        outbox.push(vec![0; 10], Chunking::Every(4));
        outbox.advance(3);
        assert_eq!(outbox.next().unwrap().bytes.len(), 1);
        assert_eq!(outbox.clear(), 7);
    }

    #[test]
    fn nothing_is_queued_for_no_bytes() {
        let mut outbox = Outbox::default();
        outbox.push(Vec::new(), Chunking::Dribble);
        assert!(outbox.is_empty());
    }
}
