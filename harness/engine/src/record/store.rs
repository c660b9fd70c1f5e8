//! The file of a recording: written as it happens, a whole line at a time, within a bound.

use std::fs::File;
use std::io::Write as _;

use crate::transcript::{Event, Kind, Transcript};

/// Written at once where more waits to be written.
const BUFFER_BYTES: usize = 256 << 10;

/// Where the events of a conversation go.
#[derive(Debug)]
pub struct Store {
    file: File,
    buffer: Vec<u8>,
    stored_bytes: u64,
    bytes_max: u64,
    last_us: u64,
    stopped: Option<String>,
    broken: bool,
}

impl Store {
    /// Begins a file with the header of `transcript`, whose events are to follow.
    ///
    /// # Errors
    /// The header cannot be written.
    pub fn begin(file: File, transcript: &Transcript, bytes_max: u64) -> std::io::Result<Self> {
        let mut buffer = Vec::new();
        transcript.store(&mut buffer)?;
        let mut store =
            Self { file, buffer, stored_bytes: 0, bytes_max, last_us: 0, stopped: None, broken: false };
        match store.write_out() {
            Ok(()) => Ok(store),
            Err((_, error)) => Err(error),
        }
    }

    /// Appends an event of this moment. What comes after the bound, or after a write that failed, is left out.
    pub fn push(&mut self, at_us: u64, kind: Kind) {
        if self.stopped.is_some() {
            return;
        }
        // Threads that saw things nearly at once tell them in the order in which they count.
        self.last_us = self.last_us.max(at_us);
        let before = self.buffer.len();
        self.append(kind);
        if self.stored_bytes + self.buffer.len() as u64 > self.bytes_max {
            self.buffer.truncate(before);
            let why = format!("it reached {} bytes, the most that was asked for", self.bytes_max);
            self.append(Kind::RecordingStopped { why: why.clone() });
            self.stopped = Some(why);
            self.flush();
        } else if self.buffer.len() >= BUFFER_BYTES {
            self.flush();
        }
    }

    fn append(&mut self, kind: Kind) {
        let event = Event { at_us: self.last_us, session: 0, kind };
        // Writing to memory cannot fail, and an event is always JSON.
        if serde_json::to_writer(&mut self.buffer, &event).is_ok() {
            self.buffer.push(b'\n');
        }
    }

    /// Hands everything to the operating system. Where that fails the file keeps the whole lines that it took.
    pub fn flush(&mut self) {
        if self.buffer.is_empty() || self.broken {
            return;
        }
        if let Err((taken, error)) = self.write_out() {
            let whole = memchr::memrchr(b'\n', &self.buffer[..taken]).map_or(0, |at| at + 1);
            self.stored_bytes += whole as u64;
            // Where even this fails the reader meets a line without its end, and passes over it.
            let _ = self.file.set_len(self.stored_bytes);
            self.buffer.clear();
            self.broken = true;
            self.stopped = Some(error.to_string());
        }
    }

    fn write_out(&mut self) -> Result<(), (usize, std::io::Error)> {
        let mut taken = 0;
        while taken < self.buffer.len() {
            match self.file.write(&self.buffer[taken..]) {
                Ok(0) => return Err((taken, std::io::ErrorKind::WriteZero.into())),
                Ok(bytes) => taken += bytes,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err((taken, error)),
            }
        }
        self.stored_bytes += taken as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Why nothing more is stored, where that is so.
    pub fn stopped(&self) -> Option<&str> {
        self.stopped.as_deref()
    }

    /// The file could not be written.
    pub fn is_broken(&self) -> bool {
        self.broken
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::clause::Side;
    use crate::facts::Facts;
    use crate::payload::Payload;
    use crate::plan::{Plan, Session};

    fn transcript() -> Transcript {
        let plan =
            Plan { sessions: vec![Session::default()], by_model: true, recorded: true, ..Plan::default() };
        Transcript {
            boundary: "toolhost".to_owned(),
            check: "recorded".to_owned(),
            facts: Arc::new(Facts::new(Side::Provider)),
            plan: Arc::new(plan),
            timeout_scale: 1.0,
            events: Vec::new(),
        }
    }

    fn sent(text: &str) -> Kind {
        Kind::Sent { step: 0, payload: Payload::text(text) }
    }

    fn read(path: &std::path::Path) -> Transcript {
        Transcript::load(std::fs::read(path).unwrap().as_slice()).unwrap()
    }

    #[test]
    fn what_is_stored_is_a_transcript_whose_steps_are_the_writes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        let mut store = Store::begin(File::create(&path).unwrap(), &transcript(), 1 << 20).unwrap();
        store.push(7, sent("a\n"));
        store.push(5, Kind::StdinClosed);
        store.flush();
        let read = read(&path);
        assert_eq!((read.events.len(), read.plan.steps.len()), (2, 2));
        assert_eq!(read.events[1].at_us, 7, "time does not run backwards");
    }

    #[test]
    fn past_its_bound_a_recording_says_that_it_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        let mut store = Store::begin(File::create(&path).unwrap(), &transcript(), 2_000).unwrap();
        for _ in 0..1_000 {
            store.push(1, sent("{\"jsonrpc\":\"2.0\"}\n"));
        }
        assert!(store.stopped().is_some() && !store.is_broken());
        let read = read(&path);
        assert!(matches!(read.events.last().unwrap().kind, Kind::RecordingStopped { .. }));
        assert!(read.events.len() > 5 && read.events.len() < 100, "{}", read.events.len());
    }

    #[test]
    fn a_full_disk_is_said_once_and_ends_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        let mut store = Store::begin(File::create(&path).unwrap(), &transcript(), 1 << 20).unwrap();
        store.file = File::options().write(true).open("/dev/full").unwrap();
        store.push(1, sent("a\n"));
        store.flush();
        assert!(store.is_broken());
        assert!(store.stopped().unwrap().contains("space"), "{:?}", store.stopped());
        store.push(2, sent("b\n"));
        store.flush();
        assert!(store.buffer.is_empty());
    }

    #[test]
    fn a_recording_that_was_cut_within_a_line_can_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        let mut store = Store::begin(File::create(&path).unwrap(), &transcript(), 1 << 20).unwrap();
        store.push(1, sent("a\n"));
        store.push(1, sent("b\n"));
        store.flush();
        let bytes = std::fs::read(&path).unwrap();
        let cut = Transcript::load(&bytes[..bytes.len() - 9]).unwrap();
        assert!(matches!(cut.events.last().unwrap().kind, Kind::RecordingStopped { .. }));
        assert_eq!(cut.plan.steps.len(), 1);
    }
}
