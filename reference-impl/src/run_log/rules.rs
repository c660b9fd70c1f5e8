//! What a replayer decides by.

use std::fmt::Debug;

use super::choices::TwoRuns;
use super::digest::state_digest;
use super::event::{Event, Reading, ToolOk};
use super::line::{Header, Line};
use super::state::{Item, State, request};
use super::tool::Outcome;
use super::{Choices, Config};
use crate::json::{Error, Text, Value, write_canonical};
use crate::policy_driver::merge;

/// What may come next in a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// `run_started`.
    Start,
    /// `selector_chosen`, or the end.
    Selection,
    /// What follows a PICK: its patch, if it has one, else a tool event.
    Pick(Option<Value>),
    /// A tool event.
    Tool,
    /// Nothing.
    End,
}

/// Where a replay is.
#[derive(Debug, Clone)]
pub struct Place {
    /// What may come next.
    pub expected: Expected,
    /// Header of the run's first line.
    pub first: Option<Header>,
    /// Selections so far.
    pub selections: u64,
    /// Step of the last event that the contract names.
    pub last_step: u64,
}

impl Default for Place {
    fn default() -> Self {
        Self { expected: Expected::Start, first: None, selections: 0, last_step: 0 }
    }
}

/// An execution that has to be made again.
#[derive(Debug, Clone)]
pub struct Rerun {
    /// The tool.
    pub aid: Text,
    /// Its input, a JSON text.
    pub input: String,
    /// The state before it.
    pub before: State,
    /// The state after it, by the log.
    pub after: State,
    /// What the log says that it gave; nothing for a `tool_error`.
    pub output_json: Option<Text>,
}

/// The decisions of a replayer; what is provided is right.
pub trait Rules: Debug + Send {
    /// Reads the payload of a line.
    ///
    /// # Errors
    /// One sentence: a member is absent or of another type.
    fn event(&self, line: &Line, reading: Reading) -> Result<Event, String> {
        Event::read(&line.event, &line.payload, reading)
    }

    /// Holds a header against that of the first line; there is none on the first.
    ///
    /// # Errors
    /// One sentence about the member that differs or is not known.
    fn header(&self, first: Option<&Header>, own: &Header, choices: &Choices) -> Result<(), String> {
        if !own.has_default_versions() {
            choices.other_spec_version.allow("spec_version or profile_id is not the default")?;
        }
        if !own.has_known_form() {
            choices.run_id_other_form.allow("run_id is neither a UUID nor 32 hex digits")?;
        }
        match first {
            Some(first) if first.run_id != own.run_id => Err("the run_id is another".to_owned()),
            Some(first) if first.request_id != own.request_id => Err("the request_id is another".to_owned()),
            _ => Ok(()),
        }
    }

    /// Decides whether an event may come here.
    ///
    /// # Errors
    /// One sentence that says what should come.
    fn follows(&self, expected: &Expected, event: &Event, choices: &Choices) -> Result<(), String> {
        let no_patch = |patch: &Option<Value>| {
            patch.as_ref().and_then(Value::as_object).is_none_or(<[(Text, Value)]>::is_empty)
        };
        let wanted = match (expected, event) {
            (Expected::Start, Event::Started { .. })
            | (Expected::Selection, Event::Chosen(_) | Event::Finished { .. })
            | (Expected::Pick(Some(_)), Event::Patched { .. })
            | (Expected::Tool, Event::ToolOk(_) | Event::ToolError { .. })
            | (Expected::Selection | Expected::Pick(_) | Expected::Tool, Event::Other) => return Ok(()),
            (Expected::Pick(patch), Event::ToolOk(_) | Event::ToolError { .. }) if no_patch(patch) => {
                return Ok(());
            }
            (Expected::Pick(None), Event::Patched { .. }) => {
                return choices.patch_without_selection_patch.allow("the selection has no patch");
            }
            (Expected::End, Event::Started { .. }) if choices.two_runs == TwoRuns::Each => return Ok(()),
            (Expected::Start, _) => "the log does not begin with run_started",
            (Expected::Selection, _) => "neither selector_chosen nor run_finished",
            (Expected::Pick(Some(_)), _) => "the patch of the selection does not follow",
            (Expected::Pick(None) | Expected::Tool, _) => "the event of the tool does not follow",
            (Expected::End, _) => "a line follows run_finished",
        };
        Err(wanted.to_owned())
    }

    /// Decides whether an event may have this step.
    ///
    /// # Errors
    /// One sentence that says which it should have.
    fn step(&self, place: &Place, event: &Event, step: u64) -> Result<(), String> {
        let last = place.selections.saturating_sub(1);
        let (min, max) = match event {
            Event::Started { .. } => (0, 0),
            Event::Chosen(_) => (place.selections, place.selections),
            Event::Patched { .. } | Event::ToolOk(_) | Event::ToolError { .. } => (last, last),
            Event::Finished { .. } => (last, u64::MAX),
            Event::Other => (place.last_step, place.selections),
        };
        if (min..=max).contains(&step) { Ok(()) } else { Err(format!("the step is {step}, not {min}")) }
    }

    /// Whether what `inputs_patched` says is the patch of the selection.
    fn same_patch(&self, selected: &Value, patch: &Value) -> bool {
        self.same(selected, patch)
    }

    /// The inputs with a patch.
    ///
    /// # Errors
    /// A text that is nested too deeply.
    fn merge(&self, inputs: &str, patch: &str, nesting_max: usize) -> Result<String, Error> {
        merge(inputs, patch, nesting_max)
    }

    /// Whether two JSON values are equal, however they are written.
    fn same(&self, one: &Value, other: &Value) -> bool {
        let canonical = |value: &Value| {
            let mut out = Vec::new();
            write_canonical(&mut out, value);
            out
        };
        canonical(one) == canonical(other)
    }

    /// Whether the inputs that `inputs_patched` shows are the merged ones.
    fn same_inputs(&self, merged: &Value, shown: &Value) -> bool {
        self.same(merged, shown)
    }

    /// Whether the tool event is that of the tool that was selected.
    fn same_tool(&self, selected: &Text, aid: &Text) -> bool {
        selected == aid
    }

    /// Reads a `tx_patch`.
    ///
    /// # Errors
    /// One sentence about the first item that is wrong.
    fn items(&self, tx_patch: &[Value], choices: &Choices) -> Result<Vec<Item>, String> {
        Item::read_all(tx_patch, choices)
    }

    /// The state after a patch.
    ///
    /// # Errors
    /// One sentence: an item does not fit the state.
    fn apply(&self, state: &State, items: &[Item], choices: &Choices) -> Result<State, String> {
        state.apply(items, choices)
    }

    /// The digest of a state.
    fn digest(&self, state: &State) -> String {
        state_digest(state)
    }

    /// Whether a digest in the log is that of the state; `last` for the one of `run_finished`.
    fn same_digest(&self, state: &State, logged: &Text, _last: bool, choices: &Choices) -> bool {
        let own = self.digest(state);
        *logged == *own
            || (choices.digest_upper_case.allow("").is_ok() && *logged == *own.to_ascii_uppercase())
    }

    /// Whether the tool of a `tool_ok` is run again.
    fn reruns(&self, event: &ToolOk) -> bool {
        event.deterministic
    }

    /// Whether the tool of a `tool_error` is run again.
    fn reruns_failed(&self, deterministic: bool, choices: &Choices) -> bool {
        deterministic && choices.tool_error_rerun
    }

    /// What the toolhost is asked.
    fn request(&self, rerun: &Rerun) -> Vec<u8> {
        request(&rerun.input, &rerun.before)
    }

    /// Holds what a tool came to against the log.
    ///
    /// # Errors
    /// One sentence: it came to something else.
    fn reran(&self, rerun: &Rerun, outcome: &Outcome, reading: Reading) -> Result<(), String> {
        let (Some(logged), success) = (&rerun.output_json, outcome) else {
            return match outcome {
                Ok(_) => Err("the tool that failed succeeds when run again".to_owned()),
                Err(_) => Ok(()),
            };
        };
        let success = success.as_ref().map_err(|failed| format!("the tool fails: {}", failed.error))?;
        if !self.same_output(&success.output_json, logged, reading) {
            return Err("the tool gives another output".to_owned());
        }
        if !self.same_state(&success.state, &rerun.after) {
            return Err("the tool leads to another state".to_owned());
        }
        Ok(())
    }

    /// Whether two outputs are equal as JSON values.
    fn same_output(&self, own: &Text, logged: &Text, reading: Reading) -> bool {
        let value = |text: &Text| Value::parse(text.as_bytes(), reading.nesting_max, &reading.policy).ok();
        match (value(own), value(logged)) {
            (Some(own), Some(logged)) => self.same(&own, &logged),
            _ => false,
        }
    }

    /// Whether a re-run led to the state that the log leads to.
    fn same_state(&self, own: &State, logged: &State) -> bool {
        own.slots == logged.slots
    }

    /// Whether `steps` is the number of selections.
    fn same_steps(&self, selections: u64, steps: u64) -> bool {
        selections == steps
    }

    /// Decides whether a log may end here.
    ///
    /// # Errors
    /// One sentence: the run is not finished.
    fn end(&self, expected: &Expected) -> Result<(), String> {
        match expected {
            Expected::End => Ok(()),
            Expected::Start => Err("the log is empty".to_owned()),
            _ => Err("the log ends without run_finished".to_owned()),
        }
    }

    /// The verdict on standard output, and the exit status; a failure is a line number and a reason.
    fn verdict(&self, failure: Option<(u64, &str)>, _config: &Config) -> (String, i32) {
        match failure {
            None => ("REPLAY_STRICT OK\n".to_owned(), 0),
            // What a tool said may have lines of its own.
            Some((line, reason)) => {
                let reason = reason.replace(char::is_control, " ");
                (format!("REPLAY_STRICT FAIL line {line}: {reason}\n"), 1)
            }
        }
    }
}

/// The right decisions.
#[derive(Debug, Clone, Copy)]
pub struct Right;

impl Rules for Right {}
