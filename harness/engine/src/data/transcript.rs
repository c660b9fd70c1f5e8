//! Transcripts: exact record of everything between the harness and a peer, in order.
//!
//! A transcript is append-only during recording and pure data afterwards: judging it again always gives the same
//! findings. It is stored as newline-delimited JSON, the header first, then one event per line.

mod found_entries;
mod packed;
pub(crate) mod redact;
mod sights;
pub mod strict;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::data::blame::Misconfigured;
use crate::data::budget;
use crate::data::facts::Facts;
use crate::data::payload::{Payload, Vars};
use crate::data::plan::{Act, Chunking, Plan, Step};
use crate::data::text::visible_lines;

pub use found_entries::{FolderChange, FoundEntry, FoundKind};
pub use packed::Packed;
pub use redact::{Secrets, placeholder};
pub use sights::{SightResult, StdinState};

/// Exact bytes, stored as a [`Payload`], so that a long run takes a few characters.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Bytes(pub Vec<u8>);

impl Bytes {
    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", Payload::from_bytes(&self.0).summary(200))
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Payload::from_bytes(&self.0).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let payload = Payload::deserialize(deserializer)?;
        payload.expand(&Vars::new()).map(Self).map_err(serde::de::Error::custom)
    }
}

// Serde passes the field by reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

// Serde passes the field by reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(flag: &bool) -> bool {
    !flag
}

fn is_empty(bytes: &Bytes) -> bool {
    bytes.0.is_empty()
}

/// Exit of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// Exit with this status.
    Code(i32),
    /// Death by this signal.
    Signal(i32),
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit status {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// Event that was due when a deadline passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Awaited {
    /// Reply frames.
    Frames,
    /// Reading of its input by the peer.
    Writing,
    /// End of the process.
    Exit,
    /// Effect outside the session.
    Effect,
}

/// Event of one session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum EventKind {
    /// The peer's process was started, or the in-process peer made.
    Started {
        /// Program and arguments.
        argv: Vec<String>,
    },
    /// The peer could not be started.
    StartFailed {
        /// Error of the operating system.
        error: String,
    },
    /// The time of day was read: before a step whose bytes depend on it, and before the counterpart plays.
    Clock {
        /// Milliseconds since 1970 on the peer's clock, which may be virtual.
        unix_ms: u64,
    },
    /// A step queued its payload for writing.
    Sent {
        /// Index of the step in the plan.
        step: usize,
        /// Bytes written: variables have their values, secrets their placeholders.
        payload: Payload,
    },
    /// The harness answered a request of the peer's own, outside the steps of the plan.
    Answered {
        /// Exact bytes.
        bytes: Bytes,
    },
    /// Standard input was closed after everything queued was written.
    StdinClosed,
    /// The peer closed its standard input or ended before everything was written.
    StdinBroken {
        /// Number of bytes not taken.
        unwritten_bytes: u64,
    },
    /// The peer wrote to standard output.
    Received {
        /// Exact bytes of one read.
        bytes: Bytes,
    },
    /// An HTTP reply came. Its body, if any, is the next received line, with line feeds as carriage returns, which are
    /// equivalent in JSON, and without white space at its end. [`Transcript::body`] returns the exact body.
    HttpReply {
        /// Step whose payload the request carried.
        step: usize,
        /// Number of earlier lines completed by this step.
        of_step: usize,
        /// Number of the connection.
        connection: u32,
        /// Set if the connection had carried another exchange.
        reused: bool,
        /// Status code.
        status: u16,
        /// `Content-Type`.
        content_type: Option<String>,
        /// All header and trailer lines, also of interim replies, as received.
        #[serde(default, skip_serializing_if = "Bytes::is_empty")]
        head: Bytes,
        /// Length of the body.
        body_bytes: u64,
        /// Exact body, if the next received line differs from it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<Bytes>,
        /// Set if another request may follow on the connection.
        keeps_open: bool,
        /// Time from queueing to the last byte, microseconds.
        took_us: u64,
    },
    /// A request got no HTTP reply.
    HttpFailed {
        /// Step whose payload the request carried.
        step: usize,
        /// Number of earlier lines completed by this step.
        of_step: usize,
        /// Number of the connection.
        connection: u32,
        /// Description of the failure, one phrase.
        reason: String,
        /// Set if the whole request was sent.
        wholly_sent: bool,
        /// Set if it is sent again on a new connection.
        will_retry: bool,
    },
    /// The peer's standard output ended.
    StdoutClosed,
    /// The peer wrote more than the budget allows. The rest was dropped and the peer killed.
    StdoutOverflow {
        /// Budget, bytes.
        bytes_max: u64,
        /// Budget, lines, if that was exceeded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lines_max: Option<u64>,
    },
    /// Beginning of standard error, once, when the session ends.
    Stderr {
        /// First bytes.
        bytes: Bytes,
        /// Number of all bytes.
        total_bytes: u64,
    },
    /// Beginning of a recorded client's standard error, once, when the recording ends.
    ClientStderr {
        /// First bytes.
        bytes: Bytes,
        /// Number of all bytes.
        total_bytes: u64,
    },
    /// The harness sent a signal.
    Signalled {
        /// Signal name such as `TERM`.
        signal: String,
    },
    /// The process ended by itself.
    Exited {
        /// Kind of exit.
        exit: Exit,
    },
    /// A deadline passed.
    DeadlinePassed {
        /// Awaited event.
        awaited: Awaited,
        /// Time waited, milliseconds; 0 if nothing could bring the event any more.
        waited_ms: u64,
        /// The peer slept at the end of the wait: a busy machine did not keep it.
        #[serde(default, skip_serializing_if = "is_false")]
        slept: bool,
    },
    /// The harness killed the process, which was still alive after the session.
    Killed,
    /// The harness waited, in real or virtual time.
    Waited {
        /// Milliseconds.
        ms: u64,
    },
    /// Memory of the peer's process tree was sampled.
    Memory {
        /// Label of the step.
        label: String,
        /// Sum of VmHWM, bytes.
        hwm_bytes: u64,
    },
    /// Processor time of the peer's process tree was sampled.
    Processor {
        /// Label of the step.
        label: String,
        /// Time used so far, milliseconds.
        used_ms: u64,
    },
    /// A descendant was alive after the peer had ended, and was then killed.
    LeakedProcess {
        /// Process id.
        pid: i32,
        /// Command name.
        command: String,
    },
    /// A file was left in the temporary directory of the session.
    LeftFile {
        /// Path relative to that directory.
        path: String,
    },
    /// A fixture's HTTP listener accepted a connection.
    ListenerHit {
        /// Name of the fixture.
        listener: String,
        /// First bytes received: the request head.
        head: Bytes,
        /// Body, if the fixture reads whole requests.
        #[serde(default, skip_serializing_if = "is_empty")]
        body: Bytes,
    },
    /// A connection to a fixture's HTTP listener was served: everything was written, or the connection ended.
    ListenerReplied {
        /// Name of the fixture.
        listener: String,
        /// Status of the reply.
        status: u16,
        /// Number of bytes taken, including the head.
        bytes: u64,
        /// Set if the reply was taken completely.
        whole: bool,
    },
    /// The peer started an actor.
    ActorStarted {
        /// Name of the fixture.
        actor: String,
        /// Arguments of the process.
        argv: Vec<String>,
        /// Process id.
        pid: i32,
    },
    /// An actor read standard input.
    ActorReceived {
        /// Name of the fixture.
        actor: String,
        /// Exact bytes.
        bytes: Bytes,
        /// Process id, if the actor takes requests one after the other.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pid: Option<i32>,
    },
    /// An actor took a look.
    ActorSaw {
        /// Name of the fixture.
        actor: String,
        /// Process id, which tells the starts of an actor apart.
        pid: i32,
        /// Result of the look.
        seen: SightResult,
    },
    /// Standard output of one start of an actor, recorded after its end or death.
    ActorWrote {
        /// Name of the fixture.
        actor: String,
        /// Process id.
        pid: i32,
        /// Bytes taken by the pipe, not necessarily read.
        bytes: Payload,
        /// Set if all of it was taken. Otherwise the reader closed, or the actor was killed during a write, which is
        /// then missing.
        whole: bool,
    },
    /// An actor ended by its script. A killed one has no such event.
    ActorEnded {
        /// Name of the fixture.
        actor: String,
        /// Process id.
        pid: i32,
        /// Kind of end.
        exit: Exit,
    },
    /// The recorded client was started.
    ClientStarted {
        /// Program and arguments.
        argv: Vec<String>,
    },
    /// The recorded client stopped reading.
    ClientDeaf {
        /// Bytes of the first write that was not taken completely.
        unwritten_bytes: u64,
    },
    /// The recorded client ended by itself.
    ClientExited {
        /// Kind of exit.
        exit: Exit,
    },
    /// Recording stopped before the conversation ended.
    RecordingStopped {
        /// Reason, one phrase.
        why: String,
    },
    /// Contents of a kept file after the peer had ended.
    FileHeld {
        /// Name of the fixture.
        file: String,
        /// First bytes.
        bytes: Bytes,
    },
    /// A look at a path and everything below it, even if nothing was there.
    Looked {
        /// Label of the step.
        label: String,
        /// Path, relative to the folder of the fixtures.
        path: Bytes,
        /// Entries by path; empty if nothing was there.
        found: Vec<FoundEntry>,
        /// Set if there were more entries than a look records.
        cut: bool,
    },
    /// The harness put a file. The time is just before.
    FilePut {
        /// Path, relative to the folder of the fixtures.
        path: Bytes,
        /// Contents.
        bytes: Payload,
        /// Error of the operating system, if it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// The harness moved a file or folder. The time is just before.
    FileMoved {
        /// Old path, relative to the folder of the fixtures.
        from: Bytes,
        /// New path.
        to: Bytes,
        /// Error of the operating system, if it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A path in a watched folder changed, by the peer or the harness. The event stands in its place among starts and
    /// ends of actors.
    FolderChanged {
        /// Name of the fixture.
        folder: String,
        /// Changed path, relative to the folder.
        path: Bytes,
        /// Kind of change.
        change: FolderChange,
        /// Set if the path is a folder.
        is_folder: bool,
        /// Number shared by both ends of a move within the watched folders; 0 for other changes.
        #[serde(default, skip_serializing_if = "is_zero")]
        pair: u32,
    },
    /// Changes of watched folders were lost before this: a missing event proves nothing.
    WatchOverflow,
    /// An actor, or a process that it started, was alive at a probe.
    ActorAlive {
        /// Name of the fixture.
        actor: String,
        /// Label of the probing step.
        label: String,
        /// Role of the process: `self`, `child`, `left_group`.
        role: String,
    },
    /// The file named by the last argument of an actor's last start still existed at a probe.
    ActorFileStays {
        /// Name of the fixture.
        actor: String,
        /// Label of the probing step.
        label: String,
        /// Absolute path.
        path: String,
    },
}

/// Event with its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Microseconds since the transcript began, possibly on a virtual clock. Events of actors and listeners have the
    /// time at which the harness saw them, or their own if a folder is watched.
    pub at_us: u64,
    /// Session of the plan.
    pub session: usize,
    /// The event.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// Recorded conversation with everything that its judge needs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Transcript {
    /// Name of the boundary that judges it.
    pub boundary: String,
    /// Id of the check.
    pub check: String,
    /// Facts about the peer, without secrets.
    #[serde(with = "shared")]
    pub facts: Arc<Facts>,
    /// Plan, with its expectations.
    #[serde(with = "shared")]
    pub plan: Arc<Plan>,
    /// `--timeout-scale` of the run.
    #[serde(default = "unscaled", skip_serializing_if = "is_unscaled")]
    pub timeout_scale: f64,
    /// Events in order.
    #[serde(skip)]
    pub events: Vec<Event>,
}

fn unscaled() -> f64 {
    1.0
}

// Serde passes the field by reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_unscaled(timeout_scale: &f64) -> bool {
    timeout_scale.to_bits() == unscaled().to_bits()
}

/// Version of the stored form; files of other versions are refused.
const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Header<T> {
    peerproof_transcript: u32,
    #[serde(flatten)]
    transcript: T,
}

/// Standard output of `session` so far.
pub(crate) fn stdout(events: &[Event], session: usize) -> Vec<u8> {
    let received = events.iter().filter_map(|event| match &event.kind {
        EventKind::Received { bytes } if event.session == session => Some(bytes.0.as_slice()),
        _ => None,
    });
    // Allocates exactly its size.
    received.collect::<Vec<_>>().concat()
}

impl Transcript {
    /// Time from its beginning to its last event.
    pub(crate) fn lasted(&self) -> Duration {
        Duration::from_micros(self.events.last().map_or(0, |event| event.at_us))
    }

    /// Milliseconds that the peer had, if the contract gives it `ms`.
    pub fn stretched_ms(&self, ms: u64) -> u64 {
        let time = budget::stretched(Duration::from_millis(ms), self.timeout_scale);
        u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
    }

    /// Standard output of `session`.
    pub fn stdout(&self, session: usize) -> Vec<u8> {
        stdout(&self.events, session)
    }

    /// Exact body of the HTTP reply at this event; `None` for other events.
    pub fn body(&self, event: usize) -> Option<&[u8]> {
        let reply = self.events.get(event)?;
        let EventKind::HttpReply { body, body_bytes, .. } = &reply.kind else { return None };
        if let Some(body) = body {
            return Some(&body.0);
        }
        let line = self.events[event + 1..].iter().find(|next| next.session == reply.session);
        match line.map(|line| &line.kind) {
            Some(EventKind::Received { bytes }) if *body_bytes > 0 => bytes.0.strip_suffix(b"\n"),
            _ => Some(&[]),
        }
    }

    /// Events of one session.
    pub fn of(&self, session: usize) -> impl Iterator<Item = &Event> {
        self.events.iter().filter(move |event| event.session == session)
    }

    /// Number of SIGKILLs that were to follow an effect, by effect, made or not.
    pub fn kills(&self) -> BTreeMap<String, u64> {
        let is_killed = |session: &usize| self.exit(*session) == Some(Exit::Signal(9));
        let mut killed: BTreeSet<usize> = (0..self.plan.sessions.len()).filter(is_killed).collect();
        let mut kills = BTreeMap::new();
        // Backwards, because the steps after a kill are left out. The last such step killed.
        for step in self.plan.steps.iter().rev() {
            let Act::SignalWhen { signal, what, .. } = &step.act else { continue };
            let what = serde_json::to_value(what).unwrap_or_default();
            let word = what.as_object().and_then(|what| what.keys().next()).filter(|_| signal == "KILL");
            if let Some(word) = word {
                let what = match killed.remove(&step.session) {
                    true => format!("killed after `{word}`"),
                    false => format!("not killed: `{word}` was not seen"),
                };
                *kills.entry(what).or_default() += 1;
            }
        }
        kills
    }

    /// Exit of the peer of `session` by itself, if any.
    pub fn exit(&self, session: usize) -> Option<Exit> {
        self.of(session).find_map(|event| match event.kind {
            EventKind::Exited { exit } => Some(exit),
            _ => None,
        })
    }

    /// Steps of a recorded conversation, which repeat the client's writes. They await nothing, because nobody knows
    /// what the client waited for.
    fn recorded_steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for event in &self.events {
            match &event.kind {
                EventKind::Sent { payload, .. } => steps.push(Step::new(Act::Send {
                    payload: payload.clone(),
                    chunking: Chunking::Whole,
                    await_frames: 0,
                })),
                EventKind::StdinClosed => steps.push(Step::new(Act::Finish)),
                _ => {}
            }
        }
        steps
    }

    /// Writes the stored form.
    ///
    /// # Errors
    /// Passes on errors of the writer.
    pub fn store(&self, mut to: impl Write) -> std::io::Result<()> {
        self.write(&mut to)
    }

    fn write(&self, to: &mut dyn Write) -> std::io::Result<()> {
        let header = serde_json::to_string(&Header { peerproof_transcript: FORMAT, transcript: self })?;
        writeln!(to, "{}", visible_lines(&header))?;
        for event in &self.events {
            writeln!(to, "{}", visible_lines(&serde_json::to_string(event)?))?;
        }
        to.flush()
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// Names the line: not a transcript, another version, or a malformed line.
    pub fn load(mut from: impl BufRead) -> Result<Self, Misconfigured> {
        Self::read(&mut from)
    }

    fn read(from: &mut dyn BufRead) -> Result<Self, Misconfigured> {
        let mut lines = from.lines();
        let first = lines
            .next()
            .ok_or("the file is empty; a transcript starts with a header line")?
            .map_err(|error| error.to_string())?;
        let not_header =
            |error: &dyn fmt::Display| format!("line 1 is not the header of a transcript: {error}");
        let first: Value = serde_json::from_str(&first).map_err(|error| not_header(&error))?;
        match first.get("peerproof_transcript").and_then(Value::as_u64) {
            Some(format) if format != u64::from(FORMAT) => {
                return Err(format!(
                    "the transcript has format {format}, this peerproof reads format {FORMAT}"
                )
                .into());
            }
            _ => {}
        }
        let header: Header<Self> = strict::read(&first, "").map_err(|error| not_header(&error))?;
        let mut transcript = header.transcript;
        let mut lines = lines.enumerate().peekable();
        while let Some((index, line)) = lines.next() {
            let line = line.map_err(|error| error.to_string())?;
            match serde_json::from_str::<Value>(&line) {
                Ok(event) => {
                    let event = strict::read(&event, "").map_err(|error| {
                        format!("line {} is not an event of a transcript: {error}", index + 2)
                    })?;
                    transcript
                        .events
                        .push(as_written(event).map_err(|error| format!("line {}: {error}", index + 2))?);
                }
                // A recorder that was killed in the middle of a line leaves the lines before it.
                Err(error) if error.is_eof() && transcript.plan.recorded && lines.peek().is_none() => {
                    transcript.events.push(Event {
                        at_us: transcript.events.last().map_or(0, |event| event.at_us),
                        session: 0,
                        kind: EventKind::RecordingStopped { why: "the file ends within a line".to_owned() },
                    });
                }
                Err(error) => {
                    return Err(format!("line {} is not an event of a transcript: {error}", index + 2).into());
                }
            }
        }
        if transcript.plan.recorded && transcript.plan.steps.is_empty() {
            let steps = transcript.recorded_steps();
            Arc::make_mut(&mut transcript.plan).steps = steps;
        }
        Ok(transcript)
    }
}

/// Refuses events of earlier versions that contain names of variables instead of their unknown values.
fn as_written(event: Event) -> Result<Event, Misconfigured> {
    match &event.kind {
        EventKind::Sent { payload, .. } if payload.variables().next().is_some() => Err(
            "it contains the name of a variable instead of the written value; judge it with the version of \
             peerproof that wrote it, or record it again"
                .into(),
        ),
        _ => Ok(event),
    }
}

/// Stores the contents of an `Arc`.
mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<T, S>(shared: &Arc<T>, serializer: S) -> Result<S::Ok, S::Error>
    where
        T: Serialize,
        S: Serializer,
    {
        shared.as_ref().serialize(serializer)
    }

    pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<Arc<T>, D::Error>
    where
        T: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        T::deserialize(deserializer).map(Arc::new)
    }
}
