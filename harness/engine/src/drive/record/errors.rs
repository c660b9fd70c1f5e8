//! Standard error of recorded peers: passed on to ours, and its beginning kept.

use std::fs::File;
use std::io::Write as _;

use super::relay::{RelayEventKind, RelaySender, RelaySide, read};
use crate::data::transcript::{Bytes, EventKind};

/// Maximum bytes kept per peer.
pub(super) const KEPT_BYTES: usize = 64 << 10;

/// Passes on the standard error of a peer until its end.
pub(super) fn pass_on(mut from: File, mut to: Option<File>, whose: RelaySide, teller: &RelaySender) {
    let mut block = vec![0; 8 << 10];
    loop {
        let count = read(&mut from, &mut block);
        if count == 0 {
            break;
        }
        // Our standard error may be closed, which the peer must not notice.
        if to.as_mut().is_some_and(|to| to.write_all(&block[..count]).is_err()) {
            to = None;
        }
        teller.tell(RelayEventKind::Errors(whose, block[..count].to_vec()));
    }
    teller.tell(RelayEventKind::ErrorsDone(whose));
}

/// Standard error of both peers.
#[derive(Debug, Default)]
pub(super) struct ErrorStreams {
    client: Stream,
    server: Stream,
}

#[derive(Debug, Default)]
struct Stream {
    kept: Vec<u8>,
    total_bytes: u64,
    done: bool,
}

impl ErrorStreams {
    fn of(&mut self, whose: RelaySide) -> &mut Stream {
        match whose {
            RelaySide::Client => &mut self.client,
            RelaySide::Server => &mut self.server,
        }
    }

    /// Keeps the first bytes and counts all.
    pub(super) fn take(&mut self, whose: RelaySide, bytes: &[u8]) {
        let stream = self.of(whose);
        let room = KEPT_BYTES - stream.kept.len();
        stream.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        stream.total_bytes += bytes.len() as u64;
    }

    /// Marks the end of a stream.
    pub(super) fn done(&mut self, whose: RelaySide) {
        self.of(whose).done = true;
    }

    /// True if the streams were read to their ends; that of the client counts only if `with_client`.
    pub(super) fn is_whole(&self, with_client: bool) -> bool {
        self.server.done && (self.client.done || !with_client)
    }

    /// Events to record.
    pub(super) fn kinds(self) -> Vec<EventKind> {
        let mut kinds = Vec::new();
        let Stream { kept, total_bytes, .. } = self.server;
        if total_bytes > 0 {
            kinds.push(EventKind::Stderr { bytes: Bytes(kept), total_bytes });
        }
        let Stream { kept, total_bytes, .. } = self.client;
        if total_bytes > 0 {
            kinds.push(EventKind::ClientStderr { bytes: Bytes(kept), total_bytes });
        }
        kinds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_is_kept_and_all_is_counted() {
        let mut said = ErrorStreams::default();
        for _ in 0..3 {
            said.take(RelaySide::Server, &[b'x'; 40 << 10]);
        }
        said.done(RelaySide::Server);
        assert!(said.is_whole(false) && !said.is_whole(true));
        let kinds = said.kinds();
        let [EventKind::Stderr { bytes, total_bytes }] = &kinds[..] else { panic!("{} events", kinds.len()) };
        assert_eq!((bytes.0.len(), *total_bytes), (KEPT_BYTES, 120 << 10));
    }
}
