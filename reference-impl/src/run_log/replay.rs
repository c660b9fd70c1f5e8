//! The course of a replay, line by line.

use super::Config;
use super::choices::Choices;
use super::event::{Event, Reading, SelectorChosen, ToolOk};
use super::fault::LogFault;
use super::line::{Line, text_of};
use super::rules::{Expected, Place, Rerun, Rules};
use super::state::State;
use super::tool::Outcome;
use crate::json::{Text, Value};
use crate::policy_driver::SelectionKind;
use crate::refusal::Refusal;

/// Next step after a line.
#[derive(Debug)]
pub enum ReplayStep {
    /// Read the next line.
    Line,
    /// Re-run a tool; [`Replay::reran`] takes the outcome.
    Rerun(Box<Rerun>),
}

/// State of a log that is being read. Its size does not grow with the number of lines.
#[derive(Debug)]
pub struct Replay {
    rules: Box<dyn Rules>,
    choices: Choices,
    reading: Reading,
    place: Place,
    inputs: String,
    state: State,
    /// Tool of the last selection.
    aid: Option<Text>,
}

impl Replay {
    /// Creates a replay that has read nothing.
    pub fn new(config: &Config, rules: Box<dyn Rules>) -> Self {
        let reading = Reading { nesting_max: config.limits.nesting_max, policy: config.choices.policy() };
        Self {
            rules,
            choices: config.choices,
            reading,
            place: Place::default(),
            inputs: "{}".to_owned(),
            state: State::default(),
            aid: None,
        }
    }

    /// Decisions of the replay.
    pub fn rules(&self) -> &dyn Rules {
        &*self.rules
    }

    /// Handles a line without its LF.
    ///
    /// # Errors
    /// One sentence that says why the line is inconsistent.
    pub fn line(&mut self, text: &[u8]) -> Result<ReplayStep, LogFault> {
        // Inputs and patches have a nesting limit of their own; here they are within two more objects.
        let line = Line::read(text, self.reading.nesting_max + 2, &self.reading.policy)?;
        let event = self.rules.event(&line, self.reading)?;
        self.rules.follows(&self.place.expected, &event, &self.choices)?;
        if let (Expected::End, Event::Started { .. }) = (&self.place.expected, &event) {
            self.begin_again(&line)?;
        }
        self.rules.header(self.place.first.as_ref(), &line.header, &self.choices)?;
        self.rules.step(&self.place, &event, line.step)?;
        if event != Event::Other {
            self.place.last_step = line.step;
        }
        match event {
            Event::Started { inputs, state, .. } => {
                self.place.first = Some(line.header);
                self.inputs = text_of(&inputs);
                if let Some(state) = state {
                    self.state = State::from_ds_state(&state, &self.choices)?;
                }
                self.place.expected = Expected::Selection;
            }
            Event::Chosen(chosen) => self.chosen(chosen),
            Event::Patched { patch, inputs } => self.patched(&patch, inputs.as_ref())?,
            Event::ToolOk(tool) => return self.tool_ok(tool),
            Event::ToolError { aid, deterministic, .. } => return self.tool_error(aid, deterministic),
            Event::Finished { steps, state_digest, .. } => {
                if !self.rules.same_steps(self.place.selections, steps) {
                    let selections = self.place.selections;
                    return Err(LogFault::Steps { steps, selections });
                }
                self.same_digest(&self.state, &state_digest, true)?;
                self.place.expected = Expected::End;
            }
            Event::Other => {}
        }
        Ok(ReplayStep::Line)
    }

    /// Starts again from the beginning, for another run.
    fn begin_again(&mut self, line: &Line) -> Result<(), LogFault> {
        if self.place.first.as_ref().is_some_and(|first| first.run_id == line.header.run_id) {
            return Err(LogFault::Header("a second run has the run_id of the first"));
        }
        self.place = Place::default();
        self.state = State::default();
        Ok(())
    }

    fn chosen(&mut self, chosen: SelectorChosen) {
        self.place.selections += 1;
        self.place.expected = match chosen.kind {
            SelectionKind::Pick(_) => Expected::Pick(chosen.patch.map(|(_, patch)| patch)),
            _ => Expected::Selection,
        };
        self.aid = chosen.aid;
    }

    fn patched(&mut self, patch: &Value, shown: Option<&Value>) -> Result<(), LogFault> {
        if let Expected::Pick(Some(selected)) = &self.place.expected
            && !self.rules.same_patch(selected, patch)
        {
            return Err(LogFault::Inputs("the patch is not that of the selection"));
        }
        let Reading { nesting_max, policy } = self.reading;
        let merged = self.rules.merge(&self.inputs, &text_of(patch), nesting_max);
        self.inputs = merged.map_err(Refusal::from)?;
        if let Some(shown) = shown {
            let merged = Value::parse(self.inputs.as_bytes(), nesting_max, &policy);
            if !merged.is_ok_and(|merged| self.rules.same_inputs(&merged, shown)) {
                return Err(LogFault::Inputs("the inputs are not those before with the patch"));
            }
        }
        self.place.expected = Expected::Tool;
        Ok(())
    }

    fn tool_ok(&mut self, tool: ToolOk) -> Result<ReplayStep, LogFault> {
        self.same_tool(&tool.aid)?;
        let items = self.rules.items(&tool.tx_patch, &self.choices)?;
        let after = self.rules.apply(&self.state, &items, &self.choices)?;
        self.same_digest(&after, &tool.state_digest, false)?;
        let reruns = self.rules.reruns(&tool);
        let before = std::mem::replace(&mut self.state, after.clone());
        self.place.expected = Expected::Selection;
        if !reruns {
            return Ok(ReplayStep::Line);
        }
        let (aid, output_json) = (tool.aid, Some(tool.output_json));
        Ok(ReplayStep::Rerun(Box::new(Rerun { aid, input: self.inputs.clone(), before, after, output_json })))
    }

    fn tool_error(&mut self, aid: Text, deterministic: bool) -> Result<ReplayStep, LogFault> {
        self.same_tool(&aid)?;
        self.place.expected = Expected::Selection;
        if !self.rules.reruns_failed(deterministic, &self.choices) {
            return Ok(ReplayStep::Line);
        }
        let (before, after) = (self.state.clone(), self.state.clone());
        let input = self.inputs.clone();
        Ok(ReplayStep::Rerun(Box::new(Rerun { aid, input, before, after, output_json: None })))
    }

    fn same_tool(&self, aid: &Text) -> Result<(), LogFault> {
        match &self.aid {
            Some(selected) if self.rules.same_tool(selected, aid) => Ok(()),
            _ => Err(LogFault::Tool),
        }
    }

    fn same_digest(&self, state: &State, logged: &Text, last: bool) -> Result<(), LogFault> {
        if self.rules.same_digest(state, logged, last, &self.choices) {
            return Ok(());
        }
        Err(LogFault::Digest(self.rules.digest(state)))
    }

    /// Handles the outcome of a re-run.
    ///
    /// # Errors
    /// One sentence: the outcome differs from the log.
    pub(crate) fn reran(&mut self, rerun: &Rerun, outcome: &Outcome) -> Result<(), LogFault> {
        self.rules.reran(rerun, outcome, self.reading)
    }

    /// Handles the end of the log.
    ///
    /// # Errors
    /// One sentence: the run is not finished.
    pub fn end(&self) -> Result<(), LogFault> {
        self.rules.end(&self.place.expected)
    }

    /// Bytes in memory.
    pub fn held_bytes(&self) -> usize {
        self.inputs.len() + self.state.held_bytes()
    }
}
