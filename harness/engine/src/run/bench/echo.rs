//! Calibration peer: the minimal process that reads whole messages and answers. It shows the cost of a process as such.
//!
//! The harness binary plays it, started with a hidden argument. It is measured beside every peer.

use std::io;

use rustix::io::Errno;
use rustix::stdio::{stdin, stdout};

/// First argument that makes the harness binary play the calibration peer; the second is a [`EchoMode`].
pub const ECHO_ARGUMENT: &str = "__echo-calibration";

/// Longest line or input, bytes.
const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// Bytes of one read: the capacity of a pipe.
const BLOCK_BYTES: usize = 64 << 10;
/// The short answer.
const SHORT: &[u8] = b"{\"ok\":true}\n";

/// Manner in which the calibration peer answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EchoMode {
    /// Echoes every line.
    Lines,
    /// Answers every line with a short line.
    Short,
    /// Answers its whole input with one short line.
    Once,
}

impl EchoMode {
    /// All manners.
    pub const ALL: [Self; 3] = [Self::Lines, Self::Short, Self::Once];

    /// Argument that selects this manner.
    pub fn word(self) -> &'static str {
        match self {
            Self::Lines => "lines",
            Self::Short => "short",
            Self::Once => "once",
        }
    }
}

/// Plays the calibration peer on the standard streams and returns the exit status.
pub fn main(manner: &str) -> i32 {
    let Some(manner) = EchoMode::ALL.into_iter().find(|known| known.word() == manner) else { return 2 };
    match answer(manner) {
        Ok(()) => 0,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
        Err(_) => 1,
    }
}

fn answer(manner: EchoMode) -> io::Result<()> {
    let mut held = vec![0; BLOCK_BYTES];
    let mut filled = 0;
    loop {
        if filled == held.len() {
            if filled >= MESSAGE_BYTES_MAX {
                return Err(io::Error::other("the message is too long"));
            }
            held.resize(filled * 2, 0);
        }
        let read = match rustix::io::read(stdin(), &mut held[filled..]) {
            Ok(0) => break,
            Ok(read) => read,
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        let fresh = filled;
        filled += read;
        if manner == EchoMode::Once {
            continue;
        }
        // A real peer, too, needs whole lines before it answers. The lines of one read go out in one write.
        let Some(end) = memchr::memrchr(b'\n', &held[fresh..filled]).map(|at| fresh + at + 1) else {
            continue;
        };
        if manner == EchoMode::Lines {
            write_all(&held[..end])?;
        } else {
            let lines = memchr::memchr_iter(b'\n', &held[fresh..end]).count();
            write_all(&SHORT.repeat(lines))?;
        }
        held.copy_within(end..filled, 0);
        filled -= end;
    }
    if manner == EchoMode::Once { write_all(SHORT) } else { Ok(()) }
}

fn write_all(mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(stdout(), bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
