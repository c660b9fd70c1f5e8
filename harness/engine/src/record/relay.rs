//! The two directions of a recorded conversation: bytes are told to the recorder, then passed on as they came.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::sync::mpsc::SyncSender;
use std::time::Instant;

use crate::payload::Payload;
use crate::transcript::{Bytes, Exit, Kind};

/// Size of one read; a pipe holds as much by default.
const READ_BYTES: usize = 64 << 10;

/// What a thread saw, and when.
pub(super) struct Seen {
    pub at_us: u64,
    pub what: What,
}

/// Of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    Client,
    Server,
}

pub(super) enum What {
    /// To be recorded.
    Kind(Kind),
    /// The client wrote this; its step is counted by whoever records it.
    Sent(Vec<u8>),
    /// This was written to standard error.
    Errors(Whose, Vec<u8>),
    /// Nothing more is written there.
    ErrorsDone(Whose),
    /// The client's bytes are passed on no more.
    ClientDone,
    /// The server's bytes came to their end.
    ServerDone,
    /// The client ended.
    ClientExited(Exit),
    /// The server ended.
    ServerExited(Exit),
}

/// Tells the recorder. The channel is bounded: a disk that is slower than both peers slows them down instead of
/// filling memory.
#[derive(Clone)]
pub(super) struct Teller {
    pub begun: Instant,
    pub to: SyncSender<Seen>,
}

impl Teller {
    pub fn tell(&self, what: What) {
        let at_us = u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        // Nobody listens any more only when the recording is over.
        let _ = self.to.send(Seen { at_us, what });
    }
}

/// Reads once; nothing at the end or where reading fails, which for a pipe is the same.
pub(super) fn read(from: &mut File, block: &mut [u8]) -> usize {
    loop {
        match from.read(block) {
            Ok(bytes) => return bytes,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return 0,
        }
    }
}

/// Writes everything; the number of bytes that were not taken.
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

/// From the client to the server, until either is gone. What the server does not take any more the client may not
/// write any more, as if nobody stood between them.
pub(super) fn forth(mut client: File, mut server: File, teller: &Teller) {
    let mut block = vec![0; READ_BYTES];
    loop {
        let count = read(&mut client, &mut block);
        if count == 0 {
            teller.tell(What::Kind(Kind::StdinClosed));
            break;
        }
        // Told first: no answer can be told before it.
        teller.tell(What::Sent(block[..count].to_vec()));
        let unwritten_bytes = write(&mut server, &block[..count]);
        if unwritten_bytes > 0 {
            teller.tell(What::Kind(Kind::StdinBroken { unwritten_bytes }));
            break;
        }
    }
    drop((client, server));
    teller.tell(What::ClientDone);
}

/// From the server to the client. Where the client reads no more the rest is read all the same: that nobody wants it
/// is not the server's fault.
pub(super) fn back(mut server: File, client: File, teller: &Teller) {
    let mut client = Some(client);
    let mut block = vec![0; READ_BYTES];
    loop {
        let count = read(&mut server, &mut block);
        if count == 0 {
            break;
        }
        teller.tell(What::Kind(Kind::Received { bytes: Bytes(block[..count].to_vec()) }));
        if let Some(to) = &mut client {
            let unwritten_bytes = write(to, &block[..count]);
            if unwritten_bytes > 0 {
                client = None;
                teller.tell(What::Kind(Kind::ClientDeaf { unwritten_bytes }));
            }
        }
    }
    teller.tell(What::Kind(Kind::StdoutClosed));
    drop(client);
    teller.tell(What::ServerDone);
}

/// A payload of exactly these bytes.
pub(super) fn payload(bytes: &[u8]) -> Payload {
    Payload::from_bytes(bytes)
}
