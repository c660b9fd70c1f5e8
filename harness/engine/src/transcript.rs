//! Transcripts: what happened between the harness and a peer, in order, to the byte.
//!
//! A transcript is append-only while it is recorded and pure data afterwards: judging it again gives the same
//! findings for ever. It is stored as newline-delimited JSON, the header first, then one event a line.

mod beside;
mod packed;
pub(crate) mod redact;
mod seen;
pub mod strict;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::blame::Misconfigured;
use crate::budget;
use crate::facts::Facts;
use crate::payload::{Payload, Vars};
use crate::plan::{Act, Chunking, Plan, Step};
use crate::text::visible_lines;

pub use beside::{FolderChange, Found, FoundKind};
pub use packed::Packed;
pub use redact::{Secrets, placeholder};
pub use seen::{Seen, StdinState};

/// Exact bytes; stored as a [`Payload`], so that a long run costs a few characters.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Bytes(pub Vec<u8>);

impl Bytes {
    /// Whether there are none.
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

// Serde hands the field over by reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn is_empty(bytes: &Bytes) -> bool {
    bytes.0.is_empty()
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// With this status.
    Code(i32),
    /// By this signal.
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

/// What the harness was waiting for when a deadline passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Awaited {
    /// Reply frames.
    Frames,
    /// That the peer takes what is written to it.
    Writing,
    /// The end of the process.
    Exit,
    /// Something beside the session.
    Effect,
}

/// One thing that happened on one session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum Kind {
    /// The peer's process was started (or the in-process peer made).
    Started {
        /// Program and arguments.
        argv: Vec<String>,
    },
    /// The peer could not be started.
    StartFailed {
        /// The operating system's words.
        error: String,
    },
    /// The time of day: before a step, where what is written depends on it, and before the boundary's counterpart is played.
    Clock {
        /// Milliseconds since 1970; virtual where the clock of the peer is.
        unix_ms: u64,
    },
    /// A step queued its payload for writing.
    Sent {
        /// Index of the step in the plan.
        step: usize,
        /// What was written: each variable of the plan has its value, secrets have placeholders.
        payload: Payload,
    },
    /// The harness answered a request of the peer's own, beside the steps of the plan.
    Answered {
        /// Exact bytes.
        bytes: Bytes,
    },
    /// Standard input was closed after everything queued was written.
    StdinClosed,
    /// The peer closed its standard input or went away before everything was written.
    StdinBroken {
        /// Bytes that were not taken.
        unwritten_bytes: u64,
    },
    /// The peer wrote to standard output.
    Received {
        /// Exact bytes of one read.
        bytes: Bytes,
    },
    /// An HTTP reply came; its body, where it has one, is the line that is received next, with line feeds as carriage returns,
    /// which JSON takes for the same, and without white space at its end. [`Transcript::body`] gives it to the byte.
    HttpReply {
        /// Step whose payload the request carried.
        step: usize,
        /// How many lines this step ended before.
        of_step: usize,
        /// Number of the connection.
        connection: u32,
        /// The connection had carried another exchange before.
        reused: bool,
        /// Status code.
        status: u16,
        /// `Content-Type`.
        content_type: Option<String>,
        /// All lines of its head, and of heads and trailers beside it, as they came.
        #[serde(default, skip_serializing_if = "Bytes::is_empty")]
        head: Bytes,
        /// Length of the body.
        body_bytes: u64,
        /// The body, where the line that is received next says less.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<Bytes>,
        /// Another request may follow on the connection.
        keeps_open: bool,
        /// From queueing to the last byte, microseconds.
        took_us: u64,
    },
    /// A request got no HTTP reply.
    HttpFailed {
        /// Step whose payload the request carried.
        step: usize,
        /// How many lines this step ended before.
        of_step: usize,
        /// Number of the connection.
        connection: u32,
        /// What happened instead, in one phrase.
        reason: String,
        /// All of the request was sent.
        wholly_sent: bool,
        /// It is sent once more, on a new connection.
        will_retry: bool,
    },
    /// The peer's standard output ended.
    StdoutClosed,
    /// The peer wrote more than the budget allows; the rest was not kept and the peer was killed.
    StdoutOverflow {
        /// The budget, bytes.
        bytes_max: u64,
        /// The budget, lines, where that was exceeded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lines_max: Option<u64>,
    },
    /// What is kept of standard error, once, when the session ends.
    Stderr {
        /// The first bytes.
        bytes: Bytes,
        /// Number of all bytes.
        total_bytes: u64,
    },
    /// What is kept of a recorded client's standard error, once, when the recording ends.
    ClientStderr {
        /// The first bytes.
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
        /// How.
        exit: Exit,
    },
    /// A deadline passed.
    DeadlinePassed {
        /// For what.
        awaited: Awaited,
        /// How long the harness waited, milliseconds; 0 where nothing was under way that could have brought it.
        waited_ms: u64,
    },
    /// The harness killed the process because the session was over and it still lived.
    Killed,
    /// Time was let pass (really, or on the virtual clock).
    Waited {
        /// Milliseconds.
        ms: u64,
    },
    /// Memory of the peer's process tree: VmHWM summed over it.
    Memory {
        /// Label of the step.
        label: String,
        /// Bytes.
        hwm_bytes: u64,
    },
    /// Processor time that the peer's process tree had used.
    Processor {
        /// Label of the step.
        label: String,
        /// Milliseconds.
        used_ms: u64,
    },
    /// A descendant was still there after the peer had ended; it was then killed.
    LeakedProcess {
        /// Its process id.
        pid: i32,
        /// Its command name.
        command: String,
    },
    /// A file was left in the temporary directory that the session was given.
    LeftFile {
        /// Path relative to that directory.
        path: String,
    },
    /// A fixture's HTTP listener accepted a connection.
    ListenerHit {
        /// Name of the fixture.
        listener: String,
        /// First bytes that came: the request head.
        head: Bytes,
        /// The body, where the fixture takes whole requests.
        #[serde(default, skip_serializing_if = "is_empty")]
        body: Bytes,
    },
    /// What a connection to a fixture's HTTP listener got, once it is known: when all was written or the connection ended.
    ListenerReplied {
        /// Name of the fixture.
        listener: String,
        /// Status of the reply.
        status: u16,
        /// Number of the bytes that were taken, those of the head among them.
        bytes: u64,
        /// That was all that the fixture says.
        whole: bool,
    },
    /// An actor that the harness plays was started by the peer.
    ActorStarted {
        /// Name of the fixture.
        actor: String,
        /// Its arguments.
        argv: Vec<String>,
        /// Its process id.
        pid: i32,
    },
    /// What an actor got on standard input.
    ActorReceived {
        /// Name of the fixture.
        actor: String,
        /// Exact bytes.
        bytes: Bytes,
        /// Its process id, where it takes requests one after the other.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pid: Option<i32>,
    },
    /// What an actor saw of what it was given.
    ActorSaw {
        /// Name of the fixture.
        actor: String,
        /// Its process id, which tells its starts apart.
        pid: i32,
        /// What it saw.
        seen: Seen,
    },
    /// What one start of an actor wrote to standard output. It is told when the actor has ended, or was found dead.
    ActorWrote {
        /// Name of the fixture.
        actor: String,
        /// Its process id.
        pid: i32,
        /// What was taken of it: by a pipe, which need not mean that somebody read it.
        bytes: Payload,
        /// All of it was taken. Else the reader went away, or the actor was killed within a write, of which then nothing
        /// is told.
        whole: bool,
    },
    /// An actor ended as its script says. One that was killed has no such event.
    ActorEnded {
        /// Name of the fixture.
        actor: String,
        /// Its process id.
        pid: i32,
        /// How.
        exit: Exit,
    },
    /// The process that talks to the peer was started, where two peers are recorded.
    ClientStarted {
        /// Program and arguments.
        argv: Vec<String>,
    },
    /// It reads no more: so many bytes of the peer's reached nobody.
    ClientDeaf {
        /// Bytes of the first write that was not taken whole.
        unwritten_bytes: u64,
    },
    /// It ended by itself.
    ClientExited {
        /// How.
        exit: Exit,
    },
    /// The conversation went on and nothing more of it was recorded.
    RecordingStopped {
        /// Why, in one phrase.
        why: String,
    },
    /// What a kept file of the plan held when the peer had ended.
    FileHeld {
        /// Name of the fixture.
        file: String,
        /// Its first bytes.
        bytes: Bytes,
    },
    /// What lay at a path and below it. That nothing did is told as well.
    Looked {
        /// Label of the step.
        label: String,
        /// What was looked at, relative to the folder of the fixtures.
        path: Bytes,
        /// By path; empty where nothing was there.
        found: Vec<Found>,
        /// There was more than is recorded of one look.
        cut: bool,
    },
    /// The harness put a file there; the time is that of the moment before.
    FilePut {
        /// Where, relative to the folder of the fixtures.
        path: Bytes,
        /// What is in it.
        bytes: Payload,
        /// Why it could not, in the operating system's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// The harness moved a file or a folder; the time is that of the moment before.
    FileMoved {
        /// From where, relative to the folder of the fixtures.
        from: Bytes,
        /// Where to.
        to: Bytes,
        /// Why it could not, in the operating system's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// Something changed in a watched folder or below it, by the peer or by the harness. Such an event stands before the
    /// starts and ends of actors that came after it, and behind those that came before.
    FolderChanged {
        /// Name of the fixture.
        folder: String,
        /// What changed, relative to the folder.
        path: Bytes,
        /// How.
        change: FolderChange,
        /// It is a folder.
        is_folder: bool,
        /// The same for both ends of a move within what is watched; 0 where nothing moved.
        #[serde(default, skip_serializing_if = "is_zero")]
        pair: u32,
    },
    /// Changes of watched folders were lost before this: that none is on record shows nothing.
    WatchOverflow,
    /// A process that an actor had started, or the actor itself, still lived at a probe.
    ActorAlive {
        /// Name of the fixture.
        actor: String,
        /// Label of the probing step.
        label: String,
        /// What it is: `self`, `child`, `left_group`.
        role: String,
    },
    /// The file that the last start of an actor was given as its last argument was still there at a probe.
    ActorFileStays {
        /// Name of the fixture.
        actor: String,
        /// Label of the probing step.
        label: String,
        /// Absolute path.
        path: String,
    },
}

/// An event with its place in time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Microseconds since the transcript began (virtual where the clock is). What actors and listeners did has the time at
    /// which the harness saw it, and its own where a folder is watched.
    pub at_us: u64,
    /// Session of the plan it belongs to.
    pub session: usize,
    /// What happened.
    #[serde(flatten)]
    pub kind: Kind,
}

/// A recorded conversation together with everything its judge needs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Transcript {
    /// Boundary whose oracles judge it.
    pub boundary: String,
    /// Id of the check it was recorded for.
    pub check: String,
    /// Facts about the peer as configured; secrets are not among them.
    #[serde(with = "shared")]
    pub facts: Arc<Facts>,
    /// What was to be done, with what was expected.
    #[serde(with = "shared")]
    pub plan: Arc<Plan>,
    /// `--timeout-scale` of the run.
    #[serde(default = "unscaled", skip_serializing_if = "is_unscaled")]
    pub timeout_scale: f64,
    /// What happened, in order.
    #[serde(skip)]
    pub events: Vec<Event>,
}

fn unscaled() -> f64 {
    1.0
}

// Serde hands the field over by reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_unscaled(timeout_scale: &f64) -> bool {
    timeout_scale.to_bits() == unscaled().to_bits()
}

/// Version of the stored form; a file of another version is refused.
const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Header<T> {
    peerproof_transcript: u32,
    #[serde(flatten)]
    transcript: T,
}

/// All bytes that came on standard output of `session`, in order.
pub(crate) fn stdout(events: &[Event], session: usize) -> Vec<u8> {
    let received = events.iter().filter_map(|event| match &event.kind {
        Kind::Received { bytes } if event.session == session => Some(bytes.0.as_slice()),
        _ => None,
    });
    // As large as it is, and no larger.
    received.collect::<Vec<_>>().concat()
}

impl Transcript {
    /// From its beginning to its last event.
    pub fn lasted(&self) -> Duration {
        Duration::from_micros(self.events.last().map_or(0, |event| event.at_us))
    }

    /// The milliseconds that the peer had where the contract gives it `ms`.
    pub fn stretched_ms(&self, ms: u64) -> u64 {
        let time = budget::stretched(Duration::from_millis(ms), self.timeout_scale);
        u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
    }

    /// All bytes that came on standard output of `session`, in order.
    pub fn stdout(&self, session: usize) -> Vec<u8> {
        stdout(&self.events, session)
    }

    /// The exact body of the HTTP reply that is the event of this number, if it is one.
    pub fn body(&self, event: usize) -> Option<&[u8]> {
        let reply = self.events.get(event)?;
        let Kind::HttpReply { body, body_bytes, .. } = &reply.kind else { return None };
        if let Some(body) = body {
            return Some(&body.0);
        }
        let line = self.events[event + 1..].iter().find(|next| next.session == reply.session);
        match line.map(|line| &line.kind) {
            Some(Kind::Received { bytes }) if *body_bytes > 0 => bytes.0.strip_suffix(b"\n"),
            _ => Some(&[]),
        }
    }

    /// The events of one session.
    pub fn of(&self, session: usize) -> impl Iterator<Item = &Event> {
        self.events.iter().filter(move |event| event.session == session)
    }

    /// Kills by SIGKILL that were to follow something seen: how many were made behind what, and how many were not.
    pub fn kills(&self) -> BTreeMap<String, u64> {
        let is_killed = |session: &usize| self.exit(*session) == Some(Exit::Signal(9));
        let mut killed: BTreeSet<usize> = (0..self.plan.sessions.len()).filter(is_killed).collect();
        let mut kills = BTreeMap::new();
        // What comes behind a kill is left out; what came before was not seen.
        for step in self.plan.steps.iter().rev() {
            let Act::SignalWhen { signal, what, .. } = &step.act else { continue };
            let what = serde_json::to_value(what).unwrap_or_default();
            let word = what.as_object().and_then(|what| what.keys().next()).filter(|_| signal == "KILL");
            if let Some(word) = word {
                let what = match killed.remove(&step.session) {
                    true => format!("killed behind `{word}`"),
                    false => format!("not killed, for no `{word}` was seen"),
                };
                *kills.entry(what).or_default() += 1;
            }
        }
        kills
    }

    /// How the peer of `session` ended by itself, if it did.
    pub fn exit(&self, session: usize) -> Option<Exit> {
        self.of(session).find_map(|event| match event.kind {
            Kind::Exited { exit } => Some(exit),
            _ => None,
        })
    }

    /// The steps of a conversation that was recorded: what the client wrote is what is to be written. Nothing is
    /// awaited, as it cannot be known what the client waited for.
    fn recorded_steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for event in &self.events {
            match &event.kind {
                Kind::Sent { payload, .. } => steps.push(Step::new(Act::Send {
                    payload: payload.clone(),
                    chunking: Chunking::Whole,
                    await_frames: 0,
                })),
                Kind::StdinClosed => steps.push(Step::new(Act::Finish)),
                _ => {}
            }
        }
        steps
    }

    /// Writes the stored form.
    ///
    /// # Errors
    /// Whatever the writer reports.
    pub fn store(&self, mut to: impl Write) -> std::io::Result<()> {
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
    /// One sentence with the line number: not a transcript, another version, or a malformed line.
    pub fn load(from: impl BufRead) -> Result<Self, Misconfigured> {
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
                // Whoever ended a recorder in the middle of a line still has what stands before it.
                Err(error) if error.is_eof() && transcript.plan.recorded && lines.peek().is_none() => {
                    transcript.events.push(Event {
                        at_us: transcript.events.last().map_or(0, |event| event.at_us),
                        session: 0,
                        kind: Kind::RecordingStopped { why: "the file ends within a line".to_owned() },
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

/// Refuses an event of an earlier peerproof, which had the names of variables where bytes were written: what they stood for
/// cannot be known.
fn as_written(event: Event) -> Result<Event, Misconfigured> {
    match &event.kind {
        Kind::Sent { payload, .. } if payload.variables().next().is_some() => Err(
            "it has the name of a variable in the place of what was written; judge it with the peerproof that wrote it, \
             or record it anew"
                .into(),
        ),
        _ => Ok(event),
    }
}

/// What is shared is stored as what it is.
mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<T, S>(shared: &Arc<T>, serializer: S) -> Result<S::Ok, S::Error>
    where
        T: Serialize,
        S: Serializer,
    {
        shared.as_ref().serialize(serializer)
    }

    pub(super) fn deserialize<'de, T, D>(deserializer: D) -> Result<Arc<T>, D::Error>
    where
        T: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        T::deserialize(deserializer).map(Arc::new)
    }
}
