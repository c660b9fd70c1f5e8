//! Tools behind a trait, and the table of their names.

use std::borrow::Cow;
use std::sync::Arc;

use super::choices::Choices;
use super::reply::OutputRef;
pub use super::reply::Status;
use super::state::StateStore;
use crate::json::{self, BigNumbers, LoneSurrogates, Policy, RawStr, Text, Traits, Value, unescape_document};
use crate::limits::Limits;
use crate::machine::{FetchError, Fetched, Millis};

/// Output of a successful tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// The input as it was sent; only as the answer to [`Tool::call`].
    Input,
    /// A JSON text.
    Json(String),
}

/// Result of a call (IPC §6 `ToolResult`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// Outcome.
    pub status: Status,
    /// `output_json`; ignored unless the status is `OK`.
    pub output: Output,
    /// `error`; ignored if the status is `OK`, and never empty otherwise.
    pub error: Text,
}

impl ToolResult {
    /// Creates a success with the JSON text `output`.
    pub fn json(output: impl Into<String>) -> Self {
        Self { status: Status::Ok, output: Output::Json(output.into()), error: Text::default() }
    }

    /// Creates a failure.
    pub fn error(error: impl Into<Text>) -> Self {
        Self { status: Status::ToolError, output: Output::Json("{}".to_owned()), error: error.into() }
    }
}

/// Next step of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The tool is done.
    Done(ToolResult),
    /// The tool is to be resumed at this time.
    WaitUntil(Millis),
    /// The tool is to be resumed with the reply of an HTTP server.
    Fetch(FetchRequest),
    /// The tool aborts the process.
    Abort,
}

/// HTTP GET of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchRequest {
    /// Host name or address to connect to, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Path and query.
    pub path: String,
    /// Value of the `Host` header.
    pub host_header: String,
}

/// Event that resumes a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The time of [`Step::WaitUntil`] has come.
    Woken,
    /// The result of [`Step::Fetch`].
    Fetched(Result<Fetched, FetchError>),
}

/// Printed output of a tool. The host sends both streams to standard error, because standard output carries only the
/// protocol.
#[derive(Debug, Default)]
pub struct Printed {
    /// Bytes that the tool wrote to its standard output.
    pub stdout: Vec<u8>,
    /// Bytes that the tool wrote to its standard error.
    pub stderr: Vec<u8>,
}

/// Resources of a tool during a call.
pub struct Context<'a> {
    /// Current time.
    pub now: Millis,
    /// Limits in force.
    pub limits: &'a Limits,
    /// Choices in force.
    pub choices: &'a Choices,
    /// Slots. The host undoes the writes of a failed tool, unless configured otherwise.
    pub state: &'a mut dyn StateStore,
    /// Standard streams of the tool.
    pub printed: &'a mut Printed,
}

/// Input of a call, a JSON object.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    source: Source<'a>,
    traits: Traits,
    policy: Policy,
    nesting_max: usize,
}

/// Form of an input.
#[derive(Debug, Clone, Copy)]
enum Source<'a> {
    /// Its text.
    Text(&'a str),
    /// The JSON string with its text.
    Escaped(RawStr<'a>),
}

impl<'a> Input<'a> {
    /// Creates an input from a scanned text with `traits`, nested up to `nesting_max` levels. `policy` decides their
    /// treatment.
    pub fn new(text: &'a str, traits: Traits, policy: Policy, nesting_max: usize) -> Self {
        Self { source: Source::Text(text), traits, policy, nesting_max }
    }

    /// [`Input::new`] from a text that is still within a string of the request.
    pub fn escaped(string: RawStr<'a>, traits: Traits, policy: Policy, nesting_max: usize) -> Self {
        Self { source: Source::Escaped(string), traits, policy, nesting_max }
    }

    /// JSON text, valid except for parts that the policy refuses.
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

    /// True if the text is unambiguous under the policy.
    pub(crate) fn is_plain(&self) -> bool {
        let Policy { lone_surrogates, big_numbers, .. } = self.policy;
        !self.traits.duplicate_keys
            && (!self.traits.lone_surrogates || lone_surrogates == LoneSurrogates::Echo)
            && (!self.traits.big_numbers || big_numbers == BigNumbers::Exact)
    }

    /// Input as a tree.
    ///
    /// # Errors
    /// Fails for a part that the policy refuses.
    pub fn value(&self) -> Result<Value, json::Error> {
        Value::parse(self.text().as_bytes(), self.nesting_max, &self.policy)
    }

    /// Checks that the policy refuses no part.
    ///
    /// # Errors
    /// The refused part, and its position.
    pub fn check(&self) -> Result<(), json::Error> {
        if self.policy.may_refuse(self.traits) { self.value().map(|_| ()) } else { Ok(()) }
    }

    /// The string with the text, if available, else the text.
    pub(super) fn output(&self) -> OutputRef<'a> {
        match self.source {
            Source::Text(text) => OutputRef::Json(text),
            Source::Escaped(string) => OutputRef::Escaped(string.raw()),
        }
    }
}

/// A tool. It runs one call at a time.
pub trait Tool: Send {
    /// Starts a call.
    fn call(&mut self, input: &Input<'_>, cx: &mut Context<'_>) -> Step;

    /// Continues a waiting call.
    fn resume(&mut self, answer: Answer, cx: &mut Context<'_>) -> Step {
        let _ = (answer, cx);
        Step::Done(ToolResult::error("the tool did not expect to be resumed"))
    }

    /// New tools made by the finished call. Those with an existing aid are dropped.
    fn made(&mut self) -> Vec<ToolEntry> {
        Vec::new()
    }
}

/// A tool with its name.
pub struct ToolEntry {
    /// Action id.
    pub aid: Arc<str>,
    /// Tier of the required lease; 0 for none.
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

    /// Index of the tool `aid`.
    pub fn find(&self, aid: RawStr<'_>) -> Option<usize> {
        self.entries.iter().position(|entry| aid.is(&entry.aid))
    }
}
