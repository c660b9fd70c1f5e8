//! File of a recording: written during the recording in whole lines, up to a maximum size.
//!
//! Secrets are replaced before anything is written. If a read ends within a possible secret, or within a server's line
//! that may issue a new one, it is held back with everything after it.

use std::fs::File;
use std::io::Write as _;

use super::relay;
use crate::data::payload::Vars;
use crate::data::transcript::{Event, EventKind, Secrets, Transcript};

/// Buffer size that triggers a write.
const BUFFER_BYTES: usize = 256 << 10;

/// Maximum bytes held back; beyond it they are written.
const HELD_BYTES_MAX: usize = 1 << 20;

/// Extracts the secret that a whole line of the server gives out, if any.
pub(super) type Issued = Box<dyn Fn(&[u8]) -> Option<String> + Send>;

/// Secrets that must not be stored.
#[derive(Default)]
pub struct Hidden {
    /// Secrets known in advance.
    pub secrets: Secrets,
    /// Finder of secrets that the server's lines give out.
    pub issued: Option<Issued>,
}

/// Writer of a recording's events.
pub struct Store {
    file: File,
    hidden: Hidden,
    /// Events not written yet, in order, and their bytes in both directions.
    held: Vec<Event>,
    sent: Vec<u8>,
    received: Vec<u8>,
    /// Unfinished line of the server.
    line: Vec<u8>,
    buffer: Vec<u8>,
    stored_bytes: u64,
    bytes_max: u64,
    last_us: u64,
    stopped: Option<String>,
    broken: bool,
}

impl Store {
    /// Begins a file with the header of `transcript`, to which the events are appended.
    ///
    /// # Errors
    /// Fails if the header cannot be written.
    pub fn begin(
        file: File,
        transcript: &Transcript,
        hidden: Hidden,
        bytes_max: u64,
    ) -> std::io::Result<Self> {
        let mut buffer = Vec::new();
        transcript.store(&mut buffer)?;
        let hidden = Hidden { secrets: hidden.secrets.beyond(transcript), ..hidden };
        let mut store = Self {
            file,
            hidden,
            held: Vec::new(),
            sent: Vec::new(),
            received: Vec::new(),
            line: Vec::new(),
            buffer,
            stored_bytes: 0,
            bytes_max,
            last_us: 0,
            stopped: None,
            broken: false,
        };
        match store.write_out() {
            Ok(()) => Ok(store),
            Err((_, error)) => Err(error),
        }
    }

    /// Appends an event. Drops it beyond the maximum size or after a failed write.
    pub fn push(&mut self, at_us: u64, kind: EventKind) {
        if self.stopped.is_some() {
            return;
        }
        // Threads may report nearly simultaneous events late: their order of arrival counts.
        self.last_us = self.last_us.max(at_us);
        match &kind {
            EventKind::Sent { payload, .. } => {
                self.sent.extend(payload.expand(&Vars::new()).unwrap_or_default());
            }
            EventKind::Received { bytes } => {
                self.received.extend_from_slice(&bytes.0);
                self.learn(&bytes.0);
            }
            _ => {}
        }
        self.held.push(Event { at_us: self.last_us, session: 0, kind });
        let secrets = &self.hidden.secrets;
        let waits =
            !self.line.is_empty() || [&self.sent, &self.received].iter().any(|it| secrets.may_go_on(it));
        if !waits || self.sent.len() + self.received.len() > HELD_BYTES_MAX {
            self.settle();
        }
    }

    /// Looks for new secrets in the server's output.
    fn learn(&mut self, bytes: &[u8]) {
        let Some(issued) = &self.hidden.issued else { return };
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                issued(&self.line).iter().for_each(|secret| self.hidden.secrets.add(secret));
                self.line.clear();
            }
        }
    }

    /// Writes the held-back events with secrets replaced.
    fn settle(&mut self) {
        let mut events = std::mem::take(&mut self.held);
        let secrets = &self.hidden.secrets;
        if !secrets.is_empty() {
            let sent = events.iter().filter_map(|event| match &event.kind {
                EventKind::Sent { payload, .. } => payload.expand(&Vars::new()).ok(),
                _ => None,
            });
            let mut covered: Vec<Vec<u8>> = sent.collect();
            secrets.cover_pieces(covered.iter_mut().collect());
            let mut covered = covered.into_iter();
            for event in &mut events {
                if let EventKind::Sent { payload, .. } = &mut event.kind
                    && let Some(bytes) = covered.next()
                {
                    *payload = relay::payload(&bytes);
                }
            }
            secrets.cover_events(&mut events);
        }
        for event in events {
            self.write(&event);
        }
        [&mut self.sent, &mut self.received, &mut self.line].into_iter().for_each(Vec::clear);
    }

    /// Writes everything, including held-back events.
    pub fn close(&mut self) {
        if let Some(issued) = &self.hidden.issued {
            issued(&self.line).iter().for_each(|secret| self.hidden.secrets.add(secret));
        }
        self.settle();
        self.flush();
    }

    fn write(&mut self, event: &Event) {
        if self.stopped.is_some() {
            return;
        }
        let before = self.buffer.len();
        self.append(event);
        if self.stored_bytes + self.buffer.len() as u64 > self.bytes_max {
            self.buffer.truncate(before);
            let why = format!("it reached the size limit of {} bytes", self.bytes_max);
            let kind = EventKind::RecordingStopped { why: why.clone() };
            self.append(&Event { at_us: event.at_us, session: 0, kind });
            self.stopped = Some(why);
            self.flush();
        } else if self.buffer.len() >= BUFFER_BYTES {
            self.flush();
        }
    }

    fn append(&mut self, event: &Event) {
        // Cannot fail: it writes an event to memory.
        if serde_json::to_writer(&mut self.buffer, event).is_ok() {
            self.buffer.push(b'\n');
        }
    }

    /// Passes everything to the operating system. If that fails, the file keeps the whole lines written.
    pub fn flush(&mut self) {
        if self.buffer.is_empty() || self.broken {
            return;
        }
        if let Err((taken, error)) = self.write_out() {
            let whole = memchr::memrchr(b'\n', &self.buffer[..taken]).map_or(0, |at| at + 1);
            self.stored_bytes += whole as u64;
            // If this fails, too, readers skip the unfinished line.
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

    /// Reason why nothing more is stored; `None` if all is well.
    pub fn stopped(&self) -> Option<&str> {
        self.stopped.as_deref()
    }

    /// True if the file could not be written.
    pub fn is_broken(&self) -> bool {
        self.broken
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::data::clause::Side;
    use crate::data::facts::Facts;
    use crate::data::payload::Payload;
    use crate::data::plan::{Plan, Session};

    fn transcript() -> Transcript {
        let plan =
            Plan { sessions: vec![Session::default()], by_model: true, recorded: true, ..Plan::default() };
        Transcript {
            boundary: "toy".to_owned(),
            check: "recorded".to_owned(),
            facts: Arc::new(Facts::new(Side::Provider)),
            plan: Arc::new(plan),
            timeout_scale: 1.0,
            events: Vec::new(),
        }
    }

    fn sent(text: &str) -> EventKind {
        EventKind::Sent { step: 0, payload: Payload::text(text) }
    }

    fn read(path: &std::path::Path) -> Transcript {
        Transcript::load(std::fs::read(path).unwrap().as_slice()).unwrap()
    }

    #[test]
    fn what_is_stored_is_a_transcript_whose_steps_are_the_writes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        let mut store =
            Store::begin(File::create(&path).unwrap(), &transcript(), Hidden::default(), 1 << 20).unwrap();
        store.push(7, sent("a\n"));
        store.push(5, EventKind::StdinClosed);
        store.flush();
        let read = read(&path);
        assert_eq!((read.events.len(), read.plan.steps.len()), (2, 2));
        assert_eq!(read.events[1].at_us, 7, "time does not run backwards");
    }

    #[test]
    fn past_its_bound_a_recording_says_that_it_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        let mut store =
            Store::begin(File::create(&path).unwrap(), &transcript(), Hidden::default(), 2_000).unwrap();
        for _ in 0..1_000 {
            store.push(1, sent("{\"jsonrpc\":\"2.0\"}\n"));
        }
        assert!(store.stopped().is_some() && !store.is_broken());
        let read = read(&path);
        assert!(matches!(read.events.last().unwrap().kind, EventKind::RecordingStopped { .. }));
        assert!(read.events.len() > 5 && read.events.len() < 100, "{}", read.events.len());
    }

    #[test]
    fn a_full_disk_is_said_once_and_ends_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        let mut store =
            Store::begin(File::create(&path).unwrap(), &transcript(), Hidden::default(), 1 << 20).unwrap();
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
        let mut store =
            Store::begin(File::create(&path).unwrap(), &transcript(), Hidden::default(), 1 << 20).unwrap();
        store.push(1, sent("a\n"));
        store.push(1, sent("b\n"));
        store.flush();
        let bytes = std::fs::read(&path).unwrap();
        let cut = Transcript::load(&bytes[..bytes.len() - 9]).unwrap();
        assert!(matches!(cut.events.last().unwrap().kind, EventKind::RecordingStopped { .. }));
        assert_eq!(cut.plan.steps.len(), 1);
    }

    #[test]
    fn secrets_are_replaced_wherever_they_stand_and_reads_have_cut_them() {
        const KNOWN: &str = "s3cr3t/key-77";
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        let mut secrets = Secrets::default();
        secrets.add(KNOWN);
        let issued = |line: &[u8]| {
            let line: serde_json::Value = serde_json::from_slice(line).ok()?;
            Some(line.get("token")?.as_str()?.to_owned())
        };
        let hidden = Hidden { secrets, issued: Some(Box::new(issued)) };
        let mut store = Store::begin(File::create(&path).unwrap(), &transcript(), hidden, 1 << 20).unwrap();
        let received =
            |text: &str| EventKind::Received { bytes: crate::data::transcript::Bytes(text.into()) };
        store.push(1, EventKind::Started { argv: vec!["peer".to_owned(), format!("--key={KNOWN}")] });
        store.push(2, sent("{\"a\":\"s3cr3t\\"));
        store.push(3, received("{\"token\":\"lease-"));
        store.push(4, sent("/key-77\"}\n"));
        store.push(5, received("0815\",\"b\":\"s"));
        store.push(6, received("3cr3t/key-77\"}\n"));
        store.flush();
        store.push(7, sent("{\"use\":\"lease-0815\"}\n"));
        store.push(8, received("{\"token\":\"lease-4711\"}"));
        store.close();
        let text = std::fs::read_to_string(&path).unwrap();
        for part in ["s3cr3t", "key-77", "lease-", "0815", "4711"] {
            assert!(!text.contains(part), "{part}: {text}");
        }
        let read = read(&path);
        assert_eq!(read.events.len(), 8, "{text}");
        let said = |events: &[Event], of: fn(&EventKind) -> Option<Vec<u8>>| -> String {
            String::from_utf8(events.iter().filter_map(|event| of(&event.kind)).flatten().collect()).unwrap()
        };
        let asked = said(&read.events, |kind| match kind {
            EventKind::Sent { payload, .. } => payload.expand(&Vars::new()).ok(),
            _ => None,
        });
        let answered = said(&read.events, |kind| match kind {
            EventKind::Received { bytes } => Some(bytes.0.clone()),
            _ => None,
        });
        let token = answered.split('"').nth(3).unwrap();
        assert!(
            token.len() == "lease-0815".len() && asked.contains(&format!("\"use\":\"{token}\"")),
            "{text}"
        );
        assert_eq!(asked.len(), "{'a':'s3cr3t?/key-77'}\n{'use':'lease-0815'}\n".len());
    }
}
