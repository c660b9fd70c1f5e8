//! Plans: experiments as data.
//!
//! A plan names the peers to start, the messages to write, the events to await and the expectations of the judge. It is
//! expanded from a case or generated before any peer runs, so that it can be printed, stored, replayed and shrunk.
//! Expectations are opaque here; the boundary's judge reads them.

mod fixture;
mod limits;
mod surroundings;
mod turns;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::data::carriage::Carriage;
use crate::data::payload::{Payload, Vars};

pub use fixture::{
    ActorStep, Fixture, ListenerSettings, PathKind, PathReply, REFUSED_STATUS, ReplyFault, Resource, Sight,
};
pub use limits::Limits;
pub(crate) use surroundings::PUT_PREFIX;
pub use surroundings::{AwaitedEffect, Placing};

/// Reason code for a canary without a correct answer.
pub const CANARY_FAILED: &str = "canary_failed";

/// Experiment as data.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Fixtures around the peer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fixtures: Vec<Fixture>,
    /// Sessions of one peer process each, opened at their first step.
    pub sessions: Vec<Session>,
    /// Steps in order.
    pub steps: Vec<Step>,
    /// Expectations that belong to no single step.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub expect: Value,
    /// Set if expectations follow from the bytes actually written instead of `expect` in the steps, as in generated,
    /// mutated or shrunk conversations.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_model: bool,
    /// Set if the conversation of two peers was recorded. The steps are then the client's messages, and the harness did
    /// not end the server.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recorded: bool,
}

/// Maximum bytes written by a conversation that shares its process with others.
const SHARED_BYTES_MAX: usize = 64 << 10;

/// Variable for the folder with the files of all fixtures.
pub const FOLDER: &str = "folder";

/// Variable that stands for the working folder of the peer, escaped as in a JSON string.
pub const CWD: &str = "cwd";
/// Variable that stands for the `file` URI of that folder.
pub const ROOT_URI: &str = "root_uri";

impl Plan {
    /// Number of bytes that it writes itself or through a counterpart, including its files.
    pub fn bytes(&self) -> usize {
        let sent = self.steps.iter().map(|step| match &step.act {
            Act::Send { payload, .. } => payload.len(&Vars::new()),
            Act::Play { script, .. } => script.to_string().len(),
            Act::Put { content, .. } => content.len(&Vars::new()),
            _ => 0,
        });
        let told = self.fixtures.iter().map(|fixture| match fixture {
            Fixture::File { content, .. } => content.len(&Vars::new()),
            _ => 0,
        });
        sent.chain(told).sum()
    }

    /// Lets a wrong answer to a canary break the clause that the canary is about, instead of the clause named by its
    /// step.
    pub(crate) fn let_canaries_speak(&mut self) {
        for step in self.steps.iter_mut().filter(|step| step.canary) {
            // Boundaries may expect more than a clause: then the reason is theirs.
            if let Value::Object(aim) = &mut step.expect
                && aim.len() == 2
                && aim.contains_key("clause")
                && aim.get("reason").and_then(Value::as_str) == Some(CANARY_FAILED)
            {
                aim.remove("reason");
            }
        }
    }

    /// True if the plan sends a canary in this session.
    pub fn has_canary(&self, session: usize) -> bool {
        self.steps.iter().any(|step| step.session == session && step.canary)
    }

    /// Steps that open its only session, if the rest may follow other conversations in the same process.
    pub fn opening(&self) -> Option<&[Step]> {
        let [session] = &self.sessions[..] else { return None };
        let Session { command, shows_start, .. } = session;
        let usual = Session { command: command.clone(), shows_start: *shows_start, ..Session::default() };
        let (opening, rest) = self.steps.split_at(self.steps.iter().take_while(|step| step.setup).count());
        let goes_on = |step: &Step| matches!(step.act, Act::Send { .. } | Act::Wait { .. } | Act::Flush);
        let is_alone = self.recorded || !self.fixtures.is_empty() || self.bytes() > SHARED_BYTES_MAX;
        (*session == usual && !is_alone && !opening.is_empty() && rest.iter().all(goes_on)).then_some(opening)
    }

    /// True if it needs the folder of fixtures: it has fixtures, or names the folder.
    pub(crate) fn needs_folder(&self) -> bool {
        let placeholder = format!("{{{{{FOLDER}}}}}");
        let names = |session: &Session| {
            session
                .placeholders
                .values()
                .chain(session.env.values())
                .chain(&session.folder)
                .any(|value| value.contains(&placeholder))
        };
        let writes = |step: &Step| match &step.act {
            Act::Send { payload, .. } => payload.variables().any(|name| name == FOLDER),
            act => act.is_beside(),
        };
        !self.fixtures.is_empty() || self.sessions.iter().any(names) || self.steps.iter().any(writes)
    }
}

/// Name of a signal in [`Act::Signal`]: `KILL` to the peer's whole process group. Processes outside the group survive.
pub const KILL_GROUP: &str = "KILL-GROUP";

/// Session with one process of the peer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// Configured command: `run`, `serve`, `command`.
    pub command: String,
    /// Values of command-line placeholders. `{{fixture.member}}` stands for a variable of a fixture, `{{folder}}` for
    /// the folder of all fixtures.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub placeholders: BTreeMap<String, String>,
    /// Further arguments after those of the command, with placeholders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// Further environment variables, whose values may name fixtures in the same way.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Configured variables that this session lacks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// Working directory, which may name fixtures in the same way; `None` for the configured one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Resource limits set by the operating system.
    #[serde(default, skip_serializing_if = "Limits::is_empty")]
    pub limits: Limits,
    /// Set if the time to its first output is the start-up time of its command. `None` means: if the first step is a
    /// canary, whose answer takes no time of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shows_start: Option<bool>,
    /// Set if its process serves no other conversation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub apart: bool,
}

/// Division of a payload into writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Chunking {
    /// One write, which the pipe may still divide.
    #[default]
    Whole,
    /// Byte by byte up to 64 KiB; above that, chunks of 61 bytes in the first and last 4 KiB and of 4,093 bytes
    /// between.
    Dribble,
    /// Chunks of this many bytes.
    Every(u32),
}

/// Action of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// Queues bytes for standard input and waits for `await_frames` frames beyond those awaited before. With 0 it goes
    /// on at once; later steps wait for the sum.
    Send {
        /// Bytes, with a line feed if the transport needs one.
        payload: Payload,
        /// Division into writes.
        #[serde(default)]
        chunking: Chunking,
        /// Minimum number of reply frames to await.
        await_frames: u32,
    },
    /// Closes standard input after everything queued is written, then awaits the end of the process.
    Finish,
    /// Closes standard input and goes on.
    CloseStdin,
    /// Sends a signal (`TERM`, `KILL`, `INT` or [`KILL_GROUP`]) and awaits the end of the process.
    Signal(String),
    /// Waits, in real time or on the virtual clock of an in-process peer.
    Wait {
        /// Milliseconds.
        ms: u64,
    },
    /// Waits for the rest of the slowest measured start-up time, at least 300 ms, if the process was silent so far.
    AwaitStart,
    /// Waits until everything queued is written or the deadline of a reply passes.
    Flush,
    /// Records the memory of the peer's process tree.
    SampleMemory {
        /// Name for the judge.
        label: String,
    },
    /// Records the processor time used by the peer's process tree.
    SampleProcessor {
        /// Name for the judge.
        label: String,
    },
    /// Runs the boundary's counterpart for a peer that asks: it takes frames and times its replies, until the peer
    /// ends. Then records the kept files of the plan.
    Play {
        /// Script of the counterpart; the boundary reads it.
        script: Value,
        /// Time until the peer must have ended, without start-up, milliseconds.
        life_ms: u64,
    },
    /// Renames the path of a fixture away, so that it cannot be started, or back.
    Hide {
        /// Fixture.
        fixture: String,
        /// True to rename it away.
        hidden: bool,
    },
    /// Records the files at a path, or their absence. Opens no session.
    Look {
        /// Name for the judge.
        label: String,
        /// File or folder, with variables of fixtures: relative to the fixtures' folder, or absolute and below it.
        path: Payload,
        /// Time to wait before the look, milliseconds; scaled by `--timeout-scale`.
        #[serde(default, skip_serializing_if = "is_zero")]
        after_ms: u64,
    },
    /// Puts a file somewhere, replacing an existing one. Opens no session.
    Put {
        /// Path, as in [`Act::Look`].
        path: Payload,
        /// Content, with variables of fixtures.
        content: Payload,
        /// Way of writing.
        by: Placing,
    },
    /// Moves a file or folder. Opens no session.
    Move {
        /// Old path, as in [`Act::Look`].
        from: Payload,
        /// New path.
        to: Payload,
    },
    /// Waits for an effect outside the session. Opens no session.
    Await {
        /// Effect to await.
        what: AwaitedEffect,
        /// Maximum wait, milliseconds; scaled by `--timeout-scale`.
        within_ms: u64,
    },
    /// Sends a signal as soon as an effect outside the session is seen, and awaits the end of the process, except after
    /// `STOP` and `CONT`. Sends nothing if the effect does not come in time.
    SignalWhen {
        /// Signal name, as in [`Act::Signal`].
        signal: String,
        /// Effect to await.
        what: AwaitedEffect,
        /// Maximum wait for it, milliseconds; scaled by `--timeout-scale`.
        within_ms: u64,
    },
    /// Records which processes of an actor are alive, and the file named by the last argument of its last start if it
    /// still exists. Possible after the end of the session, too.
    ProbeActor {
        /// Fixture.
        actor: String,
        /// Name for the judge.
        label: String,
        /// Time for processes and file to vanish, milliseconds; scaled by `--timeout-scale`.
        #[serde(default, skip_serializing_if = "is_zero")]
        after_ms: u64,
    },
}

impl Act {
    /// True if the act concerns files outside the session and needs no process.
    pub fn is_beside(&self) -> bool {
        matches!(self, Self::Look { .. } | Self::Put { .. } | Self::Move { .. } | Self::Await { .. })
    }
}

/// Capture of a value from a reply for later payloads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Capture {
    /// JSON Pointer into the frame that answers this step; at [`Act::Finish`], into all of standard output.
    pub pointer: String,
    /// Variable for the value: its JSON text, without quotes for a string. `VAR~KIND` is a near miss of it,
    /// `VAR~fill-BYTES` the length that it needs in a frame of this many bytes.
    pub var: String,
    /// Set for a secret, which is replaced by a placeholder before anything is stored.
    #[serde(default)]
    pub secret: bool,
    /// JSON Pointer to an end marker. The conversation is complete, whatever steps follow, once the reply holds `true`
    /// there, lacks the value to capture, or repeats the value before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// Step of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Index in [`Plan::sessions`].
    #[serde(default)]
    pub session: usize,
    /// Action of the step.
    #[serde(flatten)]
    pub act: Act,
    /// Value to capture from the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture: Option<Capture>,
    /// Expectation, read by the boundary's judge.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub expect: Value,
    /// Time on top of the budget for a reply, milliseconds, such as for a tool that sleeps or a timeout that has to
    /// pass. Scaled by `--timeout-scale`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub allow_ms: u64,
    /// Set for a plain valid request whose answer shows that the peer works.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub canary: bool,
    /// Set for a step that opens the session. Shrinking keeps it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub setup: bool,
    /// Number of steps, ending with this one, whose certain answers are awaited. For conversations in which other
    /// frames come between, so that counting frames tells nothing.
    #[serde(default, skip_serializing_if = "is_none")]
    pub await_answers: u32,
    /// Number of the first start of the plan's actor that this step causes, from 0. The step and the actor's script for
    /// that start belong together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<usize>,
    /// Standard output is not read while its bytes are written, until the peer has taken none for so long, milliseconds. More
    /// with `--timeout-scale`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unread_ms: u64,
    /// HTTP settings for its bytes; `None` posts each line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<Carriage>,
}

impl Step {
    /// True if it awaits answers: everything sent before it had its chance.
    pub fn awaits_answers(&self) -> bool {
        matches!(self.act, Act::Send { await_frames, .. } if await_frames > 0)
    }

    /// Step of the first session without expectations.
    pub fn new(act: Act) -> Self {
        Self {
            session: 0,
            act,
            capture: None,
            expect: Value::Null,
            allow_ms: 0,
            canary: false,
            setup: false,
            await_answers: 0,
            turn: None,
            unread_ms: 0,
            http: None,
        }
    }
}

// Serde passes the field by reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_none(number: &u32) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::transcript::strict;

    #[test]
    fn a_plan_survives_storage() {
        let steps = [
            Act::Send { payload: Payload::text("x\n"), chunking: Chunking::Every(3), await_frames: 1 },
            Act::Finish,
            Act::CloseStdin,
            Act::Flush,
            Act::Signal("TERM".to_owned()),
            Act::Wait { ms: 5 },
            Act::AwaitStart,
            Act::Play { script: Value::from("x"), life_ms: 7 },
            Act::Hide { fixture: "x".to_owned(), hidden: true },
            Act::ProbeActor { actor: "x".to_owned(), label: "y".to_owned(), after_ms: 9 },
            Act::Look { label: "y".to_owned(), path: Payload::default().var("x.path"), after_ms: 9 },
            Act::Put { path: Payload::text("x"), content: Payload::text("y"), by: Placing::Rename },
            Act::Move { from: Payload::text("x"), to: Payload::text("y") },
            Act::Await { what: AwaitedEffect::Starts { actor: "x".to_owned(), start: 1 }, within_ms: 5 },
            Act::SignalWhen {
                signal: "KILL".to_owned(),
                what: AwaitedEffect::Empty { folder: "x".to_owned(), path: String::new() },
                within_ms: 5,
            },
        ];
        let plan = Plan {
            sessions: vec![Session { command: "serve".to_owned(), ..Session::default() }],
            steps: steps.into_iter().map(Step::new).collect(),
            ..Plan::default()
        };
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan, "{text}");
        let stored = serde_json::to_value(&plan).unwrap();
        assert_eq!(strict::read::<Plan>(&stored, "").unwrap(), plan);
        for (at, step) in plan.steps.iter().enumerate() {
            let act = serde_json::to_value(&step.act).unwrap();
            let Some((name, _)) =
                act.as_object().and_then(|act| act.iter().find(|(_, what)| what.is_object()))
            else {
                continue;
            };
            let mut misspelt = stored.clone();
            misspelt["steps"][at][name]["unheard_of"] = Value::from(1);
            assert!(
                strict::read::<Plan>(&misspelt, "").unwrap_err().to_string().contains("unheard_of"),
                "{name}"
            );
        }
    }

    #[test]
    fn the_folder_is_needed_where_it_is_named() {
        let session = |value: &str| Session {
            env: BTreeMap::from([("ROOT".to_owned(), value.to_owned())]),
            ..Session::default()
        };
        let plan = |value: &str| Plan { sessions: vec![session(value)], ..Plan::default() };
        assert!(plan("{{folder}}/x").needs_folder());
        assert!(!plan("{{folders}}").needs_folder());
        let payload = Payload::default().var("folder");
        let send = Act::Send { payload, chunking: Chunking::Whole, await_frames: 0 };
        assert!(Plan { steps: vec![Step::new(send)], ..Plan::default() }.needs_folder());
    }
}
