//! The decisions of a replayer.

use std::fmt::Debug;

use super::choices::TwoRuns;
use super::digest::state_digest;
use super::event::{Event, Reading, ToolOk};
use super::fault::LogFault;
use super::line::{Header, Line};
use super::state::{Item, State, request};
use super::tool::{Failed, Outcome};
use super::{Choices, Config};
use crate::json::{Error, Text, Value, write_canonical};
use crate::policy_driver::merge;
use crate::refusal::Refusal;

/// Next expected event of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// `run_started`.
    Start,
    /// `selector_chosen`, or the end.
    Selection,
    /// The events after a PICK: its patch, if it has one, else a tool event.
    Pick(Option<Value>),
    /// A tool event.
    Tool,
    /// No further event.
    End,
}

/// Position of a replay.
#[derive(Debug, Clone)]
pub struct Place {
    /// Next expected event.
    pub expected: Expected,
    /// Header of the run's first line.
    pub first: Option<Header>,
    /// Number of selections so far.
    pub selections: u64,
    /// Step of the last known event.
    pub last_step: u64,
}

impl Default for Place {
    fn default() -> Self {
        Self { expected: Expected::Start, first: None, selections: 0, last_step: 0 }
    }
}

/// An execution that is to be repeated.
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
    /// Logged output; `None` for a `tool_error`.
    pub output_json: Option<Text>,
}

/// Decisions of a replayer. The default methods are correct; mutants override them.
pub trait Rules: Debug + Send {
    /// Reads the payload of a line.
    ///
    /// # Errors
    /// One sentence: a member is missing or of a wrong type.
    fn event(&self, line: &Line, reading: Reading) -> Result<Event, Refusal> {
        Event::read(&line.event, &line.payload, reading)
    }

    /// Compares a header with that of the first line, if there is one.
    ///
    /// # Errors
    /// One sentence that names the member that differs or is unknown.
    fn header(&self, first: Option<&Header>, own: &Header, choices: &Choices) -> Result<(), LogFault> {
        if !own.has_default_versions() {
            choices
                .other_spec_version
                .allow(LogFault::Header("spec_version or profile_id is not the default"))?;
        }
        if !own.has_known_form() {
            choices
                .run_id_other_form
                .allow(LogFault::Header("run_id is neither a UUID nor 32 hex digits"))?;
        }
        match first {
            Some(first) if first.run_id != own.run_id => Err(LogFault::Header("the run_id is another")),
            Some(first) if first.request_id != own.request_id => {
                Err(LogFault::Header("the request_id is another"))
            }
            _ => Ok(()),
        }
    }

    /// Checks that an event is expected here.
    ///
    /// # Errors
    /// One sentence that names the expected event.
    fn follows(&self, expected: &Expected, event: &Event, choices: &Choices) -> Result<(), LogFault> {
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
                let reason = LogFault::Order("the selection has no patch");
                return choices.patch_without_selection_patch.allow(reason);
            }
            (Expected::End, Event::Started { .. }) if choices.two_runs == TwoRuns::Each => return Ok(()),
            (Expected::Start, _) => "the log does not begin with run_started",
            (Expected::Selection, _) => "neither selector_chosen nor run_finished",
            (Expected::Pick(Some(_)), _) => "the patch of the selection does not follow",
            (Expected::Pick(None) | Expected::Tool, _) => "the event of the tool does not follow",
            (Expected::End, _) => "a line follows run_finished",
        };
        Err(LogFault::Order(wanted))
    }

    /// Checks the step of an event.
    ///
    /// # Errors
    /// One sentence that names the expected step.
    fn step(&self, place: &Place, event: &Event, step: u64) -> Result<(), LogFault> {
        let last = place.selections.saturating_sub(1);
        let (min, max) = match event {
            Event::Started { .. } => (0, 0),
            Event::Chosen(_) => (place.selections, place.selections),
            Event::Patched { .. } | Event::ToolOk(_) | Event::ToolError { .. } => (last, last),
            Event::Finished { .. } => (last, u64::MAX),
            Event::Other => (place.last_step, place.selections),
        };
        if (min..=max).contains(&step) { Ok(()) } else { Err(LogFault::Step { step, expected: min }) }
    }

    /// True if the patch in `inputs_patched` is that of the selection.
    fn same_patch(&self, selected: &Value, patch: &Value) -> bool {
        self.same(selected, patch)
    }

    /// Merges a patch into the inputs.
    ///
    /// # Errors
    /// Fails for a text that is nested too deeply.
    fn merge(&self, inputs: &str, patch: &str, nesting_max: usize) -> Result<String, Error> {
        merge(inputs, patch, nesting_max)
    }

    /// True if two JSON values are equal, in any spelling.
    fn same(&self, one: &Value, other: &Value) -> bool {
        let canonical = |value: &Value| {
            let mut out = Vec::new();
            write_canonical(&mut out, value);
            out
        };
        canonical(one) == canonical(other)
    }

    /// True if the inputs in `inputs_patched` are the merged ones.
    fn same_inputs(&self, merged: &Value, shown: &Value) -> bool {
        self.same(merged, shown)
    }

    /// True if the tool event belongs to the selected tool.
    fn same_tool(&self, selected: &Text, aid: &Text) -> bool {
        selected == aid
    }

    /// Reads a `tx_patch`.
    ///
    /// # Errors
    /// One sentence about the first invalid item.
    fn items(&self, tx_patch: &[Value], choices: &Choices) -> Result<Vec<Item>, Refusal> {
        Item::read_all(tx_patch, choices)
    }

    /// Applies a patch to a state.
    ///
    /// # Errors
    /// One sentence: an item does not fit the state.
    fn apply(&self, state: &State, items: &[Item], choices: &Choices) -> Result<State, LogFault> {
        state.apply(items, choices)
    }

    /// Digest of a state.
    fn digest(&self, state: &State) -> String {
        state_digest(state)
    }

    /// True if a logged digest is that of the state. `last` is true for the digest in `run_finished`.
    fn same_digest(&self, state: &State, logged: &Text, _last: bool, choices: &Choices) -> bool {
        let own = self.digest(state);
        *logged == *own
            || (choices.digest_upper_case.allow("").is_ok() && *logged == *own.to_ascii_uppercase())
    }

    /// True if the tool of a `tool_ok` is to be re-run.
    fn reruns(&self, event: &ToolOk) -> bool {
        event.deterministic
    }

    /// True if the tool of a `tool_error` is to be re-run.
    fn reruns_failed(&self, deterministic: bool, choices: &Choices) -> bool {
        deterministic && choices.tool_error_rerun
    }

    /// Request to the toolhost.
    fn request(&self, rerun: &Rerun) -> Vec<u8> {
        request(&rerun.input, &rerun.before)
    }

    /// Compares the outcome of a re-run with the log.
    ///
    /// # Errors
    /// One sentence: the outcome differs.
    fn reran(&self, rerun: &Rerun, outcome: &Outcome, reading: Reading) -> Result<(), LogFault> {
        let (Some(logged), success) = (&rerun.output_json, outcome) else {
            return match outcome {
                Ok(_) => Err(LogFault::RerunDiffers("the tool that failed succeeds when run again")),
                Err(_) => Ok(()),
            };
        };
        let fails = |failed: &Failed| LogFault::RerunFails(failed.error.to_string());
        let success = success.as_ref().map_err(fails)?;
        if !self.same_output(&success.output_json, logged, reading) {
            return Err(LogFault::RerunDiffers("the tool gives another output"));
        }
        if !self.same_state(&success.state, &rerun.after) {
            return Err(LogFault::RerunDiffers("the tool leads to another state"));
        }
        Ok(())
    }

    /// True if two outputs are equal as JSON values.
    fn same_output(&self, own: &Text, logged: &Text, reading: Reading) -> bool {
        let value = |text: &Text| Value::parse(text.as_bytes(), reading.nesting_max, &reading.policy).ok();
        match (value(own), value(logged)) {
            (Some(own), Some(logged)) => self.same(&own, &logged),
            _ => false,
        }
    }

    /// True if a re-run led to the state in the log.
    fn same_state(&self, own: &State, logged: &State) -> bool {
        own.slots == logged.slots
    }

    /// True if `steps` is the number of selections.
    fn same_steps(&self, selections: u64, steps: u64) -> bool {
        selections == steps
    }

    /// Checks that a log may end here.
    ///
    /// # Errors
    /// One sentence: the run is not finished.
    fn end(&self, expected: &Expected) -> Result<(), LogFault> {
        match expected {
            Expected::End => Ok(()),
            Expected::Start => Err(LogFault::Unfinished("the log is empty")),
            _ => Err(LogFault::Unfinished("the log ends without run_finished")),
        }
    }

    /// Verdict for standard output, and the exit status. A failure is a line number and a reason.
    fn verdict(&self, failure: Option<(u64, &str)>, _config: &Config) -> (String, i32) {
        match failure {
            None => ("REPLAY_STRICT OK\n".to_owned(), 0),
            // A tool's message may contain line ends.
            Some((line, reason)) => {
                let reason = reason.replace(char::is_control, " ");
                (format!("REPLAY_STRICT FAIL line {line}: {reason}\n"), 1)
            }
        }
    }
}

/// The correct decisions.
#[derive(Debug, Clone, Copy)]
pub struct CorrectDecisions;

impl Rules for CorrectDecisions {}
