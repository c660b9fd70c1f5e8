//! Plans: an experiment as data.
//!
//! A plan says which peers to start, what to write to them, what to wait for, and what the oracle shall expect. It is
//! expanded from a case or made by a generator before any peer runs, so that it can be printed, stored, replayed and
//! shrunk. What is expected is opaque here; the boundary's oracle reads it.

mod beside;
mod fixture;
mod limits;
mod turns;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::carriage::Carriage;
use crate::payload::{Payload, Vars};

pub use beside::{Effect, Placing};
pub use fixture::{ActorStep, Aside, Fixture, Manner, PathKind, REFUSED_STATUS, ReplyFault, Resource, Sight};
pub use limits::Limits;

/// Reason code where what should show that the peer still works does not show it.
pub const CANARY_FAILED: &str = "canary_failed";

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
    /// Two peers talked to each other and were listened to: the steps are what the client wrote, and who ended the
    /// server was not the harness.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recorded: bool,
}

/// Most bytes that a conversation writes which shares its process with others.
const SHARED_BYTES_MAX: usize = 64 << 10;

/// Variable that stands for the folder in which the files of all fixtures lie.
pub const FOLDER: &str = "folder";

impl Plan {
    /// Bytes that it writes, or has a counterpart write, and those of its files.
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

    /// Lets a wrong answer to a canary break the clause that it is about, instead of the one that its step names.
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

    /// Whether a session is asked a canary so far.
    pub fn has_canary(&self, session: usize) -> bool {
        self.steps.iter().any(|step| step.session == session && step.canary)
    }

    /// The steps that open its one session, where the others may as well follow other conversations of the same process.
    pub fn opening(&self) -> Option<&[Step]> {
        let [session] = &self.sessions[..] else { return None };
        let Session { command, shows_start, .. } = session;
        let usual = Session { command: command.clone(), shows_start: *shows_start, ..Session::default() };
        let (opening, rest) = self.steps.split_at(self.steps.iter().take_while(|step| step.setup).count());
        let goes_on = |step: &Step| matches!(step.act, Act::Send { .. } | Act::Wait { .. } | Act::Flush);
        let is_alone = self.recorded || !self.fixtures.is_empty() || self.bytes() > SHARED_BYTES_MAX;
        (*session == usual && !is_alone && !opening.is_empty() && rest.iter().all(goes_on)).then_some(opening)
    }

    /// Whether it needs the folder of the fixtures: it has some, or names the folder alone.
    pub fn needs_folder(&self) -> bool {
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

/// The signal of [`Act::Signal`] that is `KILL` to the whole process group of the peer: what lives on has left the group.
pub const KILL_GROUP: &str = "KILL-GROUP";

/// One process of the peer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// Which configured command: `run`, `serve`, `command`.
    pub command: String,
    /// Values for the placeholders of the command line. A value `{{fixture.member}}` is taken from a fixture;
    /// `{{folder}}` is the folder that all of them are in.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub placeholders: BTreeMap<String, String>,
    /// Arguments that this session adds behind those of the command, with placeholders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// Environment that this session adds to the configured one, with the same values of fixtures.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Variables of the configuration that this session does not have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// Its working directory, with the same values of fixtures; without one the configured directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// What the operating system caps for it.
    #[serde(default, skip_serializing_if = "Limits::is_empty")]
    pub limits: Limits,
    /// Whether the time to its first output is the start-up time of its command. Without a word it is where the first step
    /// is a canary: what is asked there takes no time of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shows_start: Option<bool>,
    /// Its process serves no other conversation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub apart: bool,
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
    /// Send a signal (`TERM`, `KILL`, `INT`, or [`KILL_GROUP`]) and wait for the end of the process.
    Signal(String),
    /// Let time pass: really, or on the virtual clock of an in-process peer.
    Wait {
        /// Milliseconds.
        ms: u64,
    },
    /// Let what is left pass of the time that the slowest measured start took, and of 300 ms at the least, where the process
    /// has said nothing yet.
    AwaitStart,
    /// Wait until everything queued was written or the deadline of a reply passes.
    Flush,
    /// Record the memory of the peer's process tree.
    SampleMemory {
        /// Name for the oracle.
        label: String,
    },
    /// Record the processor time that the peer's process tree has used.
    SampleProcessor {
        /// Name for the oracle.
        label: String,
    },
    /// Let the boundary's counterpart speak with a peer that asks: it takes frames and says what is written when, until
    /// the peer ends. Then the kept files of the plan are recorded.
    Play {
        /// What the counterpart does; the boundary reads it.
        script: Value,
        /// Time after which the peer must have ended, start-up not counted, milliseconds.
        life_ms: u64,
    },
    /// Take what lies at the path of a fixture away, or put it back: meanwhile it cannot be started.
    Hide {
        /// Fixture.
        fixture: String,
        /// Whether it goes.
        hidden: bool,
    },
    /// Record what lies at a path, also where nothing does. No session is opened for it.
    Look {
        /// Name for the oracle.
        label: String,
        /// A file or a folder, with variables of fixtures; relative to the folder that they are in, or absolute and below it.
        path: Payload,
        /// Time that passes before, milliseconds; more with `--timeout-scale`.
        #[serde(default, skip_serializing_if = "is_zero")]
        after_ms: u64,
    },
    /// Put a file somewhere, in the place of what is there. No session is opened for it.
    Put {
        /// Where, as in [`Act::Look`].
        path: Payload,
        /// What is in it, with variables of fixtures.
        content: Payload,
        /// How it comes there.
        by: Placing,
    },
    /// Move a file or a folder. No session is opened for it.
    Move {
        /// From where, as in [`Act::Look`].
        from: Payload,
        /// Where to.
        to: Payload,
    },
    /// Wait for something beside the session. No session is opened for it.
    Await {
        /// For what.
        what: Effect,
        /// For how long at the most, milliseconds; more with `--timeout-scale`.
        within_ms: u64,
    },
    /// Send a signal as soon as something is seen beside the session, and wait for the end of the process, but after
    /// `STOP` and `CONT`. Where it is not seen in time nothing is sent.
    SignalWhen {
        /// Signal name, as in [`Act::Signal`].
        signal: String,
        /// What is to be seen.
        what: Effect,
        /// How long that is waited for at the most, milliseconds; more with `--timeout-scale`.
        within_ms: u64,
    },
    /// Record which processes of an actor are still alive, and the file that its last start was given as last argument
    /// if it is still there. Also after the end of the session.
    ProbeActor {
        /// Fixture.
        actor: String,
        /// Name for the oracle.
        label: String,
        /// Time for what is looked for to go, milliseconds; more with `--timeout-scale`.
        #[serde(default, skip_serializing_if = "is_zero")]
        after_ms: u64,
    },
}

impl Act {
    /// Whether it needs no process: it is about files beside the session of its step.
    pub fn is_beside(&self) -> bool {
        matches!(self, Self::Look { .. } | Self::Put { .. } | Self::Move { .. } | Self::Await { .. })
    }
}

/// Takes a value out of a reply for later payloads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Capture {
    /// JSON Pointer into the frame that answers this step; at [`Act::Finish`] into all of standard output.
    pub pointer: String,
    /// Variable that receives the value: the JSON text of it, without quotes where it is a string. `VAR~KIND` is a near miss of
    /// it, and `VAR~fill-BYTES` the length that it would have to have in a frame of so many bytes.
    pub var: String,
    /// A secret is replaced by a placeholder before anything is stored.
    #[serde(default)]
    pub secret: bool,
    /// The conversation is complete, whatever steps follow, once the reply holds `true` at this pointer, holds no value to
    /// take, or the same as the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
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
    /// that has to pass. More with `--timeout-scale`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub allow_ms: u64,
    /// A plain valid request whose answer shows that the peer is alive and works.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub canary: bool,
    /// Part of what opens the session: it stays whatever else goes when a conversation is made smaller.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub setup: bool,
    /// The frames that the certain answers to this step and to those sent just before it are in are waited for, to so
    /// many steps in all; where other frames come on the way, counting them tells nothing.
    #[serde(default, skip_serializing_if = "is_none")]
    pub await_answers: u32,
    /// The start of the plan's actor that it brings about first, counted from 0: the step and what the actor does at that
    /// start belong together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<usize>,
    /// How its bytes are carried where the session speaks HTTP; as lines where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<Carriage>,
}

impl Step {
    /// Whether it waits for answers: what was sent before it had its chance.
    pub fn awaits_answers(&self) -> bool {
        matches!(self.act, Act::Send { await_frames, .. } if await_frames > 0)
    }

    /// A step on the first session that expects nothing.
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
            http: None,
        }
    }
}

// Serde hands the field over by reference.
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
    use crate::transcript::strict;

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
            Act::Await { what: Effect::Starts { actor: "x".to_owned(), start: 1 }, within_ms: 5 },
            Act::SignalWhen {
                signal: "KILL".to_owned(),
                what: Effect::Empty { folder: "x".to_owned(), path: String::new() },
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
