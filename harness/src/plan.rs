//! Plans: an experiment as data.
//!
//! A plan says which peers to start, what to write to them, what to wait for, and what the oracle shall expect. It is
//! expanded from a case or made by a generator before any peer runs, so that it can be printed, stored, replayed and
//! shrunk. What is expected is opaque here; the boundary's oracle reads it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::payload::Payload;

/// An experiment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Things around the peer: listeners and actors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fixtures: Vec<Fixture>,
    /// One peer process each; opened when its first step comes.
    pub sessions: Vec<Session>,
    /// What happens, in order.
    pub steps: Vec<Step>,
    /// Parameters for the oracle that belong to no single step.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub expect: Value,
    /// What is expected follows from the bytes that were really written, not from `expect` in the steps: a generated,
    /// mutated or shrunk conversation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_model: bool,
}

/// One process of the peer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// Which configured command: `run`, `serve`, `command`.
    pub command: String,
    /// Values for the placeholders of the command line. A value `{{fixture.member}}` is taken from a fixture.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub placeholders: BTreeMap<String, String>,
    /// Environment that this session adds to the configured one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

/// How a payload is cut into writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Chunking {
    /// One write (the pipe may still cut it).
    #[default]
    Whole,
    /// Byte by byte up to 64 KiB; above, 61-byte chunks in the first and last 4 KiB and 4,093 between.
    Dribble,
    /// Chunks of this many bytes.
    Every(u32),
}

/// What a step does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// Queue bytes for standard input and wait until the session has given `await_frames` more frames than were
    /// asked for before (0: go on at once; later steps wait for the sum).
    Send {
        /// The bytes, line feed included where the transport needs one.
        payload: Payload,
        /// How to cut them.
        #[serde(default)]
        chunking: Chunking,
        /// Least number of reply frames to wait for.
        await_frames: u32,
    },
    /// Close standard input once everything queued was written, then wait for the end of the process.
    Finish,
    /// Close standard input and go on.
    CloseStdin,
    /// Send a signal (`TERM`, `KILL`, `INT`) and wait for the end of the process.
    Signal(String),
    /// Let time pass: really, or on the virtual clock of an in-process peer.
    Wait {
        /// Milliseconds.
        ms: u64,
    },
    /// Wait until everything queued was written or the deadline of a reply passes.
    Flush,
    /// Record the memory of the peer's process tree.
    SampleMemory {
        /// Name for the oracle.
        label: String,
    },
    /// Record which processes of an actor are still alive.
    ProbeActor {
        /// Fixture.
        actor: String,
        /// Name for the oracle.
        label: String,
    },
}

/// Takes a value out of a reply for later payloads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Capture {
    /// JSON Pointer into the frame that answers this step.
    pub pointer: String,
    /// Variable that receives the value: the JSON text of it, without quotes where it is a string.
    pub var: String,
    /// A secret is replaced by a placeholder before anything is stored.
    #[serde(default)]
    pub secret: bool,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Index into [`Plan::sessions`].
    #[serde(default)]
    pub session: usize,
    /// What to do.
    #[serde(flatten)]
    pub act: Act,
    /// Values to take from the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture: Option<Capture>,
    /// What the boundary's oracle shall expect of it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub expect: Value,
    /// Time that this step may take on top of the budget for a reply, milliseconds: a tool that sleeps, a timeout
    /// that has to pass.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub allow_ms: u64,
    /// A plain valid request whose answer shows that the peer is alive and works.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub canary: bool,
}

impl Step {
    /// A step on the first session that expects nothing.
    pub fn new(act: Act) -> Self {
        Self { session: 0, act, capture: None, expect: Value::Null, allow_ms: 0, canary: false }
    }
}

// Serde hands the field over by reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Something around the peer that the harness plays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fixture {
    /// An HTTP server on 127.0.0.1, and on the same port of ::1 where it is there and free; `{{name.port}}` and `{{name.address}}` are its variables.
    Listener {
        /// Name.
        name: String,
        /// Status of every reply.
        status: u16,
        /// `Location` header; may hold variables of other fixtures as `{{other.port}}`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        location: Option<String>,
        /// Body of every reply.
        body: Payload,
    },
    /// A program that the peer starts; `{{name.path}}` is its path.
    Actor {
        /// Name.
        name: String,
        /// What it does.
        script: Vec<ActorStep>,
    },
    /// A path for the peer to stumble over; `{{name.path}}`.
    Path {
        /// Name.
        name: String,
        /// What is there.
        what: PathKind,
    },
}

/// What lies at the path of a [`Fixture::Path`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathKind {
    /// Nothing.
    Missing,
    /// A directory.
    Directory,
    /// A file without the run bit.
    NotExecutable,
}

/// One thing that an actor does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActorStep {
    /// Read standard input until one complete JSON object or its end, and record it.
    ReadRequest,
    /// Write to standard output.
    Stdout(Payload),
    /// Write to standard error.
    Stderr(Payload),
    /// Write this unit to standard output until nobody reads or `bytes_max` is reached.
    Flood {
        /// UTF-8 text.
        unit: String,
        /// Bound, bytes.
        bytes_max: u64,
    },
    /// Do nothing for this long.
    Sleep {
        /// Milliseconds.
        ms: u64,
    },
    /// Close standard output and live on.
    CloseStdout,
    /// Start a child that holds the inherited pipes and sleeps.
    ForkHolder {
        /// How long it lives if nobody ends it, milliseconds.
        ms: u64,
        /// Whether it leaves the process group (a session of its own).
        leave_group: bool,
    },
    /// Ignore SIGTERM from here on.
    IgnoreTerm,
    /// End by this signal number.
    Die(i32),
    /// End with this status.
    Exit(i32),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_survives_storage() {
        let steps = [
            Act::Send { payload: Payload::text("x\n"), chunking: Chunking::Every(3), await_frames: 1 },
            Act::Finish,
            Act::CloseStdin,
            Act::Flush,
            Act::Signal("TERM".to_owned()),
            Act::Wait { ms: 5 },
        ];
        let plan = Plan {
            sessions: vec![Session { command: "serve".to_owned(), ..Session::default() }],
            steps: steps.into_iter().map(Step::new).collect(),
            ..Plan::default()
        };
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan, "{text}");
    }
}
