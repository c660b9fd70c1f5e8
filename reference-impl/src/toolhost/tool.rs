//! Tools behind a trait, and the table that names them.

use std::borrow::Cow;
use std::sync::Arc;

use super::choices::Choices;
use super::reply::OutputRef;
use super::state::StateStore;
use crate::json::{self, BigNumbers, LoneSurrogates, Policy, RawStr, Text, Traits, Value, unescape_document};
use crate::limits::Limits;
use crate::machine::{Fetched, Millis};

/// Outcome of a tool (IPC §4 `status`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// `OK`
    Ok,
    /// `INVALID_PICK`; no tool of this crate answers it.
    InvalidPick,
    /// `TOOL_ERROR`
    ToolError,
    /// `BREAKER_TRIP`; no tool of this crate answers it.
    BreakerTrip,
}

impl Status {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::InvalidPick => "INVALID_PICK",
            Self::ToolError => "TOOL_ERROR",
            Self::BreakerTrip => "BREAKER_TRIP",
        }
    }
}

/// What a tool gives back on success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Its input, as it was sent; only as the answer to [`Tool::call`].
    Input,
    /// A JSON text.
    Json(String),
}

/// How a call ended (IPC §6 `ToolResult`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// Outcome.
    pub status: Status,
    /// `output_json`; ignored unless the status is `OK`.
    pub output: Output,
    /// `error`; ignored when the status is `OK`, and never empty otherwise.
    pub error: Text,
}

impl ToolResult {
    /// A success with the JSON text `output`.
    pub fn json(output: impl Into<String>) -> Self {
        Self { status: Status::Ok, output: Output::Json(output.into()), error: Text::default() }
    }

    /// A failure.
    pub fn error(error: impl Into<Text>) -> Self {
        Self { status: Status::ToolError, output: Output::Json("{}".to_owned()), error: error.into() }
    }
}

/// What a tool does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// It is done.
    Done(ToolResult),
    /// It wants to be resumed at this time.
    WaitUntil(Millis),
    /// It wants to be resumed with the reply of an HTTP server.
    Fetch(FetchRequest),
    /// It aborts the process.
    Abort,
}

/// An HTTP GET that a tool asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchRequest {
    /// Host name or address as it is contacted, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Path and query.
    pub path: String,
    /// Value of the `Host` header.
    pub host_header: String,
}

/// Why a tool is resumed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The time of [`Step::WaitUntil`] has come.
    Woken,
    /// The answer to [`Step::Fetch`].
    Fetched(Result<Fetched, String>),
}

/// What a tool printed. The host sends both to standard error: standard output carries the protocol alone.
#[derive(Debug, Default)]
pub struct Printed {
    /// Bytes that the tool wrote to its standard output.
    pub stdout: Vec<u8>,
    /// Bytes that the tool wrote to its standard error.
    pub stderr: Vec<u8>,
}

/// What a tool can see and touch.
pub struct Context<'a> {
    /// The time.
    pub now: Millis,
    /// The caps in force.
    pub limits: &'a Limits,
    /// The choices in force.
    pub choices: &'a Choices,
    /// The slots; the host undoes what a failed tool wrote, unless chosen otherwise.
    pub state: &'a mut dyn StateStore,
    /// The tool's standard streams.
    pub printed: &'a mut Printed,
}

/// The input of a call: a JSON object.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    source: Source<'a>,
    traits: Traits,
    policy: Policy,
    nesting_max: usize,
}

/// How an input is at hand.
#[derive(Debug, Clone, Copy)]
enum Source<'a> {
    /// Its text.
    Text(&'a str),
    /// The string that holds its text.
    Escaped(RawStr<'a>),
}

impl<'a> Input<'a> {
    /// An input whose text was scanned and has `traits`; `policy` says what to do about them, and the text is nested up to
    /// `nesting_max` levels.
    pub fn new(text: &'a str, traits: Traits, policy: Policy, nesting_max: usize) -> Self {
        Self { source: Source::Text(text), traits, policy, nesting_max }
    }

    /// As [`Input::new`], of a text that is still within a string of the request.
    pub fn escaped(string: RawStr<'a>, traits: Traits, policy: Policy, nesting_max: usize) -> Self {
        Self { source: Source::Escaped(string), traits, policy, nesting_max }
    }

    /// The JSON text; validated, but for what the policy refuses.
    pub fn text(&self) -> Cow<'a, str> {
        match self.source {
            Source::Text(text) => Cow::Borrowed(text),
            Source::Escaped(string) => {
                let mut text = Vec::new();
                unescape_document(string, &mut text);
                Cow::Owned(String::from_utf8(text).unwrap_or_default())
            }
        }
    }

    /// True when the text, as it is, means one thing to every reader under the chosen policy.
    pub fn is_plain(&self) -> bool {
        let Policy { lone_surrogates, big_numbers, .. } = self.policy;
        !self.traits.duplicate_keys
            && (!self.traits.lone_surrogates || lone_surrogates == LoneSurrogates::Echo)
            && (!self.traits.big_numbers || big_numbers == BigNumbers::Exact)
    }

    /// The input as a tree.
    ///
    /// # Errors
    /// Something that the policy refuses.
    pub fn value(&self) -> Result<Value, json::Error> {
        Value::parse(self.text().as_bytes(), self.nesting_max, &self.policy)
    }

    /// Refuses what the policy refuses.
    ///
    /// # Errors
    /// What, and where in the text.
    pub fn check(&self) -> Result<(), json::Error> {
        if self.policy.may_refuse(self.traits) { self.value().map(|_| ()) } else { Ok(()) }
    }

    /// The string that holds the text, where it is at hand, else the text.
    pub(super) fn output(&self) -> OutputRef<'a> {
        match self.source {
            Source::Text(text) => OutputRef::Json(text),
            Source::Escaped(string) => OutputRef::Escaped(string.raw()),
        }
    }
}

/// A tool. One call runs at a time.
pub trait Tool: Send {
    /// Starts a call.
    fn call(&mut self, input: &Input<'_>, cx: &mut Context<'_>) -> Step;

    /// Continues a call that waited.
    fn resume(&mut self, answer: Answer, cx: &mut Context<'_>) -> Step {
        let _ = (answer, cx);
        Step::Done(ToolResult::error("the tool did not expect to be resumed"))
    }

    /// Tools that came of the call that is done; those whose aids are there already are dropped.
    fn made(&mut self) -> Vec<ToolEntry> {
        Vec::new()
    }
}

/// A tool under its name.
pub struct ToolEntry {
    /// Action id.
    pub aid: Arc<str>,
    /// Tier of the lease it needs; 0 for none.
    pub tier: u8,
    /// The tool.
    pub tool: Box<dyn Tool>,
}

/// The tools of a toolhost.
#[derive(Default)]
pub struct ToolTable {
    /// The entries, each aid once.
    pub entries: Vec<ToolEntry>,
}

impl ToolTable {
    /// Adds a tool.
    pub fn add(&mut self, aid: &str, tier: u8, tool: impl Tool + 'static) {
        self.entries.push(ToolEntry { aid: aid.into(), tier, tool: Box::new(tool) });
    }

    /// The place of the tool `aid`.
    pub fn find(&self, aid: RawStr<'_>) -> Option<usize> {
        self.entries.iter().position(|entry| aid.is(&entry.aid))
    }
}
