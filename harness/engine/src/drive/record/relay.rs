//! Relay between two recorded peers: each read is reported to the recorder, then passed on unchanged.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::sync::mpsc::SyncSender;
use std::time::Instant;

use crate::data::payload::Payload;
use crate::data::transcript::{Bytes, EventKind, Exit};

/// Size of one read: the default capacity of a pipe.
const READ_BYTES: usize = 64 << 10;

/// Event of a relay thread, with its time in microseconds.
pub(super) struct RelayEvent {
    pub at_us: u64,
    pub what: RelayEventKind,
}

/// One of the two peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RelaySide {
    Client,
    Server,
}

pub(super) enum RelayEventKind {
    /// Event to record.
    Kind(EventKind),
    /// Bytes from the client; the recorder numbers the steps.
    Sent(Vec<u8>),
    /// Bytes on standard error.
    Errors(RelaySide, Vec<u8>),
    /// End of standard error.
    ErrorsDone(RelaySide),
    /// End of relaying the client's bytes.
    ClientDone,
    /// End of the server's output.
    ServerDone,
    /// Exit of the client.
    ClientExited(Exit),
    /// Exit of the server.
    ServerExited(Exit),
}

/// Sender of events to the recorder. The channel is bounded: a slow disk slows down both peers instead of filling
/// memory.
#[derive(Clone)]
pub(super) struct RelaySender {
    pub begun: Instant,
    pub to: SyncSender<RelayEvent>,
}

impl RelaySender {
    pub(super) fn tell(&self, what: RelayEventKind) {
        let at_us = u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        // Sending fails only after the recording has ended.
        let _ = self.to.send(RelayEvent { at_us, what });
    }
}

/// Reads once; returns 0 at the end or on an error, which is the same for a pipe.
pub(super) fn read(from: &mut File, block: &mut [u8]) -> usize {
    loop {
        match from.read(block) {
            Ok(bytes) => return bytes,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return 0,
        }
    }
}

/// Writes everything; returns the number of bytes not taken.
fn write(to: &mut File, mut bytes: &[u8]) -> u64 {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(0) => break,
            Ok(taken) => bytes = &bytes[taken..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    bytes.len() as u64
}

/// Relays from the client to the server until either is gone. If the server stops reading, the client's writes fail as
/// if the two were connected directly.
pub(super) fn forth(mut client: File, mut server: File, teller: &RelaySender) {
    let mut block = vec![0; READ_BYTES];
    loop {
        let count = read(&mut client, &mut block);
        if count == 0 {
            teller.tell(RelayEventKind::Kind(EventKind::StdinClosed));
            break;
        }
        // Report first, so that no answer is reported before it.
        teller.tell(RelayEventKind::Sent(block[..count].to_vec()));
        let unwritten_bytes = write(&mut server, &block[..count]);
        if unwritten_bytes > 0 {
            teller.tell(RelayEventKind::Kind(EventKind::StdinBroken { unwritten_bytes }));
            break;
        }
    }
    drop((client, server));
    teller.tell(RelayEventKind::ClientDone);
}

/// Relays from the server to the client. If the client stops reading, the rest is still read, because that is not the
/// server's fault.
pub(super) fn back(mut server: File, client: File, teller: &RelaySender) {
    let mut client = Some(client);
    let mut block = vec![0; READ_BYTES];
    loop {
        let count = read(&mut server, &mut block);
        if count == 0 {
            break;
        }
        teller.tell(RelayEventKind::Kind(EventKind::Received { bytes: Bytes(block[..count].to_vec()) }));
        if let Some(to) = &mut client {
            let unwritten_bytes = write(to, &block[..count]);
            if unwritten_bytes > 0 {
                client = None;
                teller.tell(RelayEventKind::Kind(EventKind::ClientDeaf { unwritten_bytes }));
            }
        }
    }
    teller.tell(RelayEventKind::Kind(EventKind::StdoutClosed));
    drop(client);
    teller.tell(RelayEventKind::ServerDone);
}

/// Payload of exactly these bytes.
pub(super) fn payload(bytes: &[u8]) -> Payload {
    Payload::from_bytes(bytes)
}
