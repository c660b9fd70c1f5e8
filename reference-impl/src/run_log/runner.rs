//! The runner as a machine: it reads a request, runs a selector and a toolhost, and writes the log line by line.

use std::fmt::Debug;

use super::Config;
use super::choices::RunIdForm;
use super::digest::{goal_digest, state_digest};
use super::event::{Event, Reading, SelectorChosen, ToolOk, embedded};
use super::line::{Header, Line, object, quoted, text_of};
use super::request::{RunRequest, ToolEntry};
use super::state::{State, request};
use super::tool::{Execution, Outcome};
use crate::frame::append_within;
use crate::json::Value;
use crate::machine::{self, Action, Machine, Millis};
use crate::policy_driver::{Merge, SelectionKind, merge};
use crate::refusal::Refusal;

const STATUS_REFUSED: i32 = 2;
const STATUS_TERMINATED: i32 = 143;

/// Decisions of a runner. The default methods are correct; mutants override them.
pub trait RunnerDecisions: Debug + Send {
    /// Reads the request.
    ///
    /// # Errors
    /// One sentence: the reason for the refusal.
    fn read(&self, text: &[u8], config: &Config) -> Result<RunRequest, Refusal> {
        RunRequest::read(text, config)
    }

    /// Merge of a patch into the inputs.
    fn merge(&self) -> Merge {
        merge
    }

    /// Digest of a state.
    fn digest(&self, state: &State) -> String {
        state_digest(state)
    }

    /// Request to the selector.
    fn selection_request(&self, run: &Run) -> Vec<u8> {
        let RunRequest { goal_id, mode, .. } = &run.request;
        let goal = quoted(&goal_digest(goal_id, &run.request.menu_digest()));
        let state = quoted(&self.digest(&run.state));
        format!(
            "{{\"control_mode\":\"{}\",\"goal_digest\":{goal},\"state_digest\":{state},\"inputs\":{},\"menu\":{}}}\n",
            mode.word(),
            run.inputs,
            run.request.menu(),
        )
        .into_bytes()
    }

    /// Request to the toolhost.
    fn tool_request(&self, run: &Run) -> Vec<u8> {
        request(&run.inputs, &run.state)
    }

    /// Event for the outcome of an execution, and the state after it.
    fn outcome(&self, run: &Run, tool: &ToolEntry, outcome: Outcome) -> (Event, State) {
        match outcome {
            Ok(success) => {
                let after = success.state;
                let tx_patch = run.state.patch_to(&after).iter().map(super::state::Item::to_value).collect();
                let event = ToolOk {
                    aid: tool.aid.clone(),
                    deterministic: tool.deterministic,
                    output_json: success.output_json,
                    tx_patch,
                    state_digest: self.digest(&after).into(),
                };
                (Event::ToolOk(event), after)
            }
            Err(failed) => {
                let event = Event::ToolError {
                    aid: tool.aid.clone(),
                    status: failed.status,
                    error: failed.error,
                    // A timeout or a crash need not happen again.
                    deterministic: false,
                };
                (event, run.state.clone())
            }
        }
    }

    /// Reason to end the run after a selection without a tool; `None` to continue.
    fn ends(&self, kind: SelectionKind, config: &Config) -> Option<&'static str> {
        match kind {
            SelectionKind::Noop => Some("noop"),
            SelectionKind::AskSup if config.choices.ask_sup_ends => Some("ask_sup"),
            SelectionKind::Invalid if config.choices.invalid_ends => Some("invalid"),
            _ => None,
        }
    }

    /// True if the number of selections has reached its limit.
    fn is_last(&self, run: &Run, config: &Config) -> bool {
        run.selections >= run.request.max_steps.unwrap_or(config.steps_default)
    }
}

/// The correct decisions.
#[derive(Debug, Clone, Copy)]
pub struct Ordinary;

impl RunnerDecisions for Ordinary {}

/// Replaceable parts of a runner.
pub struct RunnerParts {
    /// Selector: one request per line, one selection per line.
    pub selector: Box<dyn Machine + Send>,
    /// Decisions.
    pub ways: Box<dyn RunnerDecisions>,
}

/// A running run.
#[derive(Debug, Clone)]
pub struct Run {
    /// Request of the run.
    pub request: RunRequest,
    /// Current inputs, a JSON text.
    pub inputs: String,
    /// Current state.
    pub state: State,
    /// Number of selections so far.
    pub selections: u64,
    /// Header of its lines.
    pub header: Header,
}

/// A runner. Its standard input is the request; it appends to the log.
pub struct Runner {
    config: Config,
    parts: RunnerParts,
    phase: Phase,
    run: Option<Run>,
}

enum Phase {
    /// Collecting the request.
    Reading(Vec<u8>),
    /// Waiting for the selector.
    Selecting,
    /// Waiting for a tool.
    Running(Box<ToolEntry>, Execution),
    /// The run has ended.
    Done,
}

impl Runner {
    /// Creates a runner that waits for its request.
    pub fn new(config: Config, parts: RunnerParts) -> Self {
        Self { config, parts, phase: Phase::Reading(Vec::new()), run: None }
    }

    fn begin(&mut self, text: &[u8], now: Millis, actions: &mut Vec<Action>) {
        let request = match self.parts.ways.read(text, &self.config) {
            Ok(request) => request,
            Err(why) => return self.refuse(&why.to_string(), actions),
        };
        let run_id = run_id(&self.config);
        let started = Event::Started {
            goal_id: request.goal_id.clone(),
            inputs: request.inputs.clone(),
            control_mode: Some(request.mode.word().into()),
            state: None,
        };
        self.run = Some(Run {
            header: Header::new(&run_id, request.request_id.clone()),
            inputs: text_of(&request.inputs),
            state: State::default(),
            selections: 0,
            request,
        });
        self.log(started, 0, actions);
        self.select(now, actions);
    }

    fn refuse(&mut self, why: &str, actions: &mut Vec<Action>) {
        actions.push(Action::Stderr(format!("the request is refused: {why}\n").into_bytes()));
        actions.push(Action::Exit(STATUS_REFUSED));
        self.phase = Phase::Done;
    }

    /// Writes a line of the log.
    fn log(&self, event: Event, step: u64, actions: &mut Vec<Action>) {
        let Some(run) = &self.run else { return };
        let (event, payload) = event.write();
        let line = Line { header: run.header.clone(), event: event.into(), step, payload };
        actions.push(Action::Append(line.write(&self.config.choices)));
    }

    /// Step of the current or last selection.
    fn step(&self) -> u64 {
        let selections = self.run.as_ref().map_or(0, |run| run.selections);
        selections.saturating_sub(1) + self.config.choices.first_step
    }

    fn select(&mut self, now: Millis, actions: &mut Vec<Action>) {
        let Some(run) = &self.run else { return };
        let request = self.parts.ways.selection_request(run);
        self.phase = Phase::Selecting;
        self.selector(machine::Event::Stdin(&request), now, actions);
    }

    /// Passes an event to the selector and handles its selection, if any.
    fn selector(&mut self, event: machine::Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        let mut asked = Vec::new();
        self.parts.selector.handle(event, now, &mut asked);
        let mut selection = None;
        for action in asked {
            match action {
                Action::Stdout(line) => selection = Some(line),
                other => actions.push(other),
            }
        }
        if let Some(line) = selection {
            self.selected(&line, now, actions);
        }
    }

    fn selected(&mut self, line: &[u8], now: Millis, actions: &mut Vec<Action>) {
        let Some(mut run) = self.run.take() else { return };
        run.selections += 1;
        let (chosen, tool) = self.chosen(&run, line);
        let kind = chosen.kind;
        let patch = chosen.patch.clone();
        if let Some((_, patch)) = &patch {
            let nesting_max = self.config.limits.nesting_max;
            // The selector accepted these texts within the same limit, so they can be merged.
            if let Ok(merged) = (self.parts.ways.merge())(&run.inputs, &text_of(patch), nesting_max) {
                run.inputs = merged;
            }
        }
        self.run = Some(run);
        self.log(Event::Chosen(chosen), self.step(), actions);
        if let Some((_, patch)) = patch
            && (self.config.choices.empty_patch_logged || patch != object([]))
        {
            let inputs = self.run.as_ref().map_or("{}", |run| &run.inputs);
            let reading = self.reading();
            let inputs = Value::parse(inputs.as_bytes(), reading.nesting_max, &reading.policy).ok();
            self.log(Event::Patched { patch, inputs }, self.step(), actions);
        }
        let Some(tool) = tool else {
            return match self.parts.ways.ends(kind, &self.config) {
                Some(reason) => self.finish(reason, actions),
                None => self.go_on(now, actions),
            };
        };
        let Some(run) = &self.run else { return };
        let request = self.parts.ways.tool_request(run);
        let bytes_max = self.config.limits.toolhost_stdout_bytes_max;
        let execution = Execution::start(&self.config, bytes_max, &tool.aid, request, now, actions);
        self.phase = Phase::Running(Box::new(tool), execution);
    }

    fn reading(&self) -> Reading {
        Reading { nesting_max: self.config.limits.nesting_max, policy: self.config.choices.policy() }
    }

    /// Selection in a line of the selector, and the picked tool.
    fn chosen(&self, run: &Run, line: &[u8]) -> (SelectorChosen, Option<ToolEntry>) {
        let reading = self.reading();
        let line = Value::parse(line, reading.nesting_max, &reading.policy).unwrap_or(Value::Null);
        let text = |name: &str| line.get(name).and_then(Value::as_text).cloned();
        let raw = text("raw").unwrap_or_default();
        let plain = |kind| (SelectorChosen { kind, aid: None, patch: None, raw: raw.clone() }, None);
        match text("kind").unwrap_or_default().as_bytes() {
            b"NOOP" => return plain(SelectionKind::Noop),
            b"ASK_SUP" => return plain(SelectionKind::AskSup),
            b"PICK" => {}
            _ => return plain(SelectionKind::Invalid),
        }
        let sid = text("sid").unwrap_or_default();
        let place =
            sid.as_str().and_then(|sid| sid.strip_prefix("SID")?.parse::<usize>().ok()?.checked_sub(1));
        let tool = place.and_then(|place| run.request.tools.get(place));
        let (Some(tool), Some(sid)) = (tool, crate::policy_driver::Sid::parse(sid.as_bytes())) else {
            return plain(SelectionKind::Invalid);
        };
        let patch = text("input_patch_json")
            .and_then(|text| embedded("", &text, reading).ok().map(|value| (text, value)));
        let kind = SelectionKind::Pick(sid);
        (SelectorChosen { kind, aid: Some(tool.aid.clone()), patch, raw }, Some(tool.clone()))
    }

    /// Starts another selection, or ends the run at its limit.
    fn go_on(&mut self, now: Millis, actions: &mut Vec<Action>) {
        match &self.run {
            Some(run) if self.parts.ways.is_last(run, &self.config) => self.finish("max_steps", actions),
            _ => self.select(now, actions),
        }
    }

    fn child(&mut self, event: machine::Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        let Phase::Running(_, execution) = &mut self.phase else { return };
        let Some(outcome) = execution.handle(event, now, &self.config, actions) else { return };
        actions.push(Action::Kill);
        let Phase::Running(tool, _) = std::mem::replace(&mut self.phase, Phase::Selecting) else { return };
        let Some(mut run) = self.run.take() else { return };
        let (event, after) = self.parts.ways.outcome(&run, &tool, outcome);
        run.state = after;
        self.run = Some(run);
        let failed = matches!(event, Event::ToolError { .. });
        self.log(event, self.step(), actions);
        if failed && self.config.choices.tool_error_ends {
            self.finish("tool_error", actions);
        } else {
            self.go_on(now, actions);
        }
    }

    fn finish(&mut self, reason: &str, actions: &mut Vec<Action>) {
        let Some(run) = &self.run else { return };
        let finished = Event::Finished {
            reason: reason.into(),
            steps: run.selections,
            state_digest: self.parts.ways.digest(&run.state).into(),
        };
        self.log(finished, self.step(), actions);
        actions.push(Action::Exit(0));
        self.phase = Phase::Done;
    }
}

/// `run_id` of a seed: a UUID of version 4, or 32 digits.
fn run_id(config: &Config) -> String {
    let mut seed = config.run_seed;
    seed[6] = seed[6] & 0x0F | 0x40;
    seed[8] = seed[8] & 0x3F | 0x80;
    let hex: String = seed.iter().map(|byte| format!("{byte:02x}")).collect();
    match config.choices.run_id_form {
        RunIdForm::Hex32 => hex,
        RunIdForm::Uuid => {
            let mut id = hex;
            for at in [20, 16, 12, 8] {
                id.insert(at, '-');
            }
            id
        }
    }
}

impl Machine for Runner {
    fn handle(&mut self, event: machine::Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        match (event, &mut self.phase) {
            (_, Phase::Done) => {}
            (machine::Event::Stdin(bytes), Phase::Reading(held)) => {
                if !append_within(held, bytes, self.config.limits.stdin_bytes_max) {
                    self.refuse("it is too long", actions);
                }
            }
            (machine::Event::StdinEof, Phase::Reading(held)) => {
                let text = std::mem::take(held);
                self.begin(&text, now, actions);
            }
            (machine::Event::Terminate, phase) => {
                if !matches!(phase, Phase::Reading(_)) {
                    actions.push(Action::Kill);
                }
                actions.push(Action::Exit(STATUS_TERMINATED));
                self.phase = Phase::Done;
            }
            (event, Phase::Selecting) => self.selector(event, now, actions),
            (event, Phase::Running(..)) => self.child(event, now, actions),
            (_, Phase::Reading(_)) => {}
        }
    }

    fn wants_stdin(&self) -> bool {
        matches!(self.phase, Phase::Reading(_))
    }
}

impl RunnerParts {
    /// Creates parts with the correct decisions and this selector.
    pub fn new(selector: Box<dyn Machine + Send>) -> Self {
        Self { selector, ways: Box::new(Ordinary) }
    }
}
