//! The course of a selector in time: read a line, decide, start the driver, collect its output, judge, answer.

use super::block::{Block, BlockError};
use super::choices::{BlankLine, LastLine, OtherModes, PipeHeldByChild, SelectorChoices};
use super::guard::Denied;
use super::settings::Settings;
use super::{Failure, Menu, Mode, Parts, Request, Selection, SelectionKind};
use crate::dispatcher::text::compact;
use crate::frame::{Frame, LineReader, append_within};
use crate::json::Scanner;
use crate::limits::Limits;
use crate::machine::{Action, ChildExit, DriveOrder, Event, Machine, Millis, SpawnFailure};

/// Exit status after SIGTERM.
const STATUS_TERMINATED: i32 = 143;

/// Configuration of a selector.
#[derive(Debug, Clone)]
pub struct SelectorConfig {
    /// Settings from environment variables.
    pub settings: Settings,
    /// Chosen behaviour for each open clause.
    pub choices: SelectorChoices,
    /// Limits in force; `stdin_bytes_max` limits a line.
    pub limits: Limits,
    /// True to allow patches. Otherwise a block with a patch is invalid.
    pub patches: bool,
    /// True to include the merged inputs in the answer.
    pub merged_inputs: bool,
}

/// A selector for lines: one request in, one Selection out, in order.
#[derive(Debug)]
pub struct Selector {
    config: SelectorConfig,
    parts: Parts,
    lines: LineReader,
    /// Input that arrived while a driver ran.
    held: Vec<u8>,
    ended: bool,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Waiting for the next line.
    Reading,
    /// A driver is running, or has exited while another process still holds its standard output.
    Driving(Drive),
    /// The last Selection was written.
    Done,
}

#[derive(Debug)]
struct Drive {
    menu: Menu,
    /// JSON text of the inputs, if they are to be merged.
    inputs: String,
    deadline: Millis,
    stdout: Vec<u8>,
    stdout_open: bool,
    /// Time until which more output is awaited, after the driver exited with status 0.
    exited_until: Option<Millis>,
}

impl Selector {
    /// Creates a selector that waits for its first line.
    pub fn new(config: SelectorConfig, parts: Parts) -> Self {
        let lines = LineReader::new(config.limits.stdin_bytes_max);
        let (held, ended, state) = (Vec::new(), false, State::Reading);
        Self { lines, held, ended, state, config, parts }
    }

    #[cfg(test)]
    pub(super) fn config_mut(&mut self) -> &mut SelectorConfig {
        &mut self.config
    }

    /// Handles input up to a line that starts a driver. The rest is held.
    fn read(&mut self, mut input: &[u8], now: Millis, actions: &mut Vec<Action>) {
        let empty = LineReader::new(self.config.limits.stdin_bytes_max);
        let mut lines = std::mem::replace(&mut self.lines, empty);
        while matches!(self.state, State::Reading) && !input.is_empty() {
            match lines.next(&mut input) {
                Some(Frame::Line(line)) => self.step(line, now, actions),
                Some(Frame::TooLong) => invalid("the request is too long", actions),
                None => {}
            }
        }
        self.lines = lines;
        self.held.extend_from_slice(input);
    }

    /// Handles the held input. Exits once all input is handled and standard input has ended.
    fn go_on(&mut self, now: Millis, actions: &mut Vec<Action>) {
        let held = std::mem::take(&mut self.held);
        self.read(&held, now, actions);
        if !(self.ended && matches!(self.state, State::Reading)) {
            return;
        }
        let empty = LineReader::new(self.config.limits.stdin_bytes_max);
        let mut lines = std::mem::replace(&mut self.lines, empty);
        if let Some(Frame::Line(line)) = lines.finish() {
            match self.config.choices.last_line_without_lf {
                LastLine::Refuse => invalid("the last line has no end", actions),
                LastLine::Silent if Scanner::new(self.config.limits.nesting_max).scan(line).is_err() => {}
                LastLine::Process | LastLine::Silent => self.step(line, now, actions),
            }
        }
        if matches!(self.state, State::Reading) {
            self.state = State::Done;
            actions.push(Action::Exit(0));
        }
    }

    /// Answers a line, or starts a driver for it.
    fn step(&mut self, line: &[u8], now: Millis, actions: &mut Vec<Action>) {
        let choices = &self.config.choices;
        if line.trim_ascii().is_empty() {
            if choices.blank_line == BlankLine::Refuse {
                invalid("the line is blank", actions);
            }
            return;
        }
        let request = match self.parts.requests.read(line) {
            Ok(request) => request,
            Err(why) => return invalid(&format!("malformed request: {why}"), actions),
        };
        match request.mode {
            Mode::PolicyOnly => self.drive(request, now, actions),
            Mode::FallbackOnly => self.fall_back(&request.menu, "the mode is FALLBACK_ONLY", actions),
            Mode::Other if choices.other_modes == OtherModes::Invalid => {
                invalid("the mode is neither POLICY_ONLY nor FALLBACK_ONLY", actions);
            }
            Mode::Other => self.fall_back(&request.menu, "the mode is not POLICY_ONLY", actions),
        }
    }

    fn drive(&mut self, request: Request, now: Millis, actions: &mut Vec<Action>) {
        let Settings { command, timeout_ms, resources, .. } = &self.config.settings;
        let words = match (self.parts.split)(command.as_deref().unwrap_or_default()) {
            Ok(words) => words,
            Err(error) => {
                return invalid(&format!("the command of the policy cannot be split: {error}"), actions);
            }
        };
        if words.is_empty() {
            return self.fall_back(&request.menu, "no policy is configured", actions);
        }
        let admitted = self.parts.admission.admit(&words, &*self.parts.files);
        if let Err(Denied::Refused(why)) = admitted {
            return invalid(&format!("the policy is not started: {why}"), actions);
        }
        if self.parts.breaker.is_open(now) {
            return self.fall_back(&request.menu, "the policy failed too often and is left alone", actions);
        }
        let admitted = match admitted {
            Ok(admitted) => admitted,
            Err(Denied::NotStartable(why) | Denied::Refused(why)) => {
                return self.fail(&request.menu, &Failure::NotStartable(why), now, actions);
            }
        };
        let deadline = now.saturating_add(*timeout_ms);
        actions.push(Action::WakeAt(deadline));
        actions.push(Action::Drive(Box::new(DriveOrder {
            program: admitted.program,
            argv: admitted.argv,
            payload: request.payload,
            resources: *resources,
        })));
        self.state = State::Driving(Drive {
            menu: request.menu,
            inputs: if self.config.merged_inputs { request.inputs } else { String::new() },
            deadline,
            stdout: Vec::new(),
            stdout_open: true,
            exited_until: None,
        });
    }

    fn fall_back(&self, menu: &Menu, why: &str, actions: &mut Vec<Action>) {
        let raw = format!("fallback: {why}");
        let kind = self.parts.fallback.choose(menu);
        let selection = Selection { kind, input_patch_json: None, raw: &raw, inputs: None };
        actions.push(Action::Stdout(selection.line()));
    }

    /// Counts a failure and falls back.
    fn fail(&mut self, menu: &Menu, failure: &Failure, now: Millis, actions: &mut Vec<Action>) {
        self.parts.breaker.failed(failure, now);
        self.fall_back(menu, &failure.to_string(), actions);
    }

    /// Kills the running driver, if any, and fails.
    fn give_up(&mut self, failure: &Failure, now: Millis, actions: &mut Vec<Action>) {
        if let Some(drive) = self.stop(actions) {
            self.fail(&drive.menu, failure, now, actions);
            self.go_on(now, actions);
        }
    }

    fn collect(&mut self, bytes: &[u8], now: Millis, actions: &mut Vec<Action>) {
        let State::Driving(drive) = &mut self.state else { return };
        let bytes_max = self.config.settings.stdout_bytes_max;
        if append_within(&mut drive.stdout, bytes, bytes_max) {
            return;
        }
        self.give_up(&Failure::TooLong { bytes_max }, now, actions);
    }

    fn ended(&mut self, exit: ChildExit, now: Millis, actions: &mut Vec<Action>) {
        match exit {
            ChildExit::Code(0) => {
                if let State::Driving(drive) = &mut self.state {
                    let grace_ms = self.config.limits.policy_pipe_grace_ms;
                    drive.exited_until = Some(now.saturating_add(grace_ms).min(drive.deadline));
                }
                self.look(now, actions);
            }
            ChildExit::Code(status) => self.give_up(&Failure::Status(status), now, actions),
            ChildExit::Signal(signal) => self.give_up(&Failure::Signal(signal), now, actions),
        }
    }

    /// Judges once the driver has exited and its output is complete or its grace period is over.
    fn look(&mut self, now: Millis, actions: &mut Vec<Action>) {
        let State::Driving(drive) = &self.state else { return };
        match drive.exited_until {
            Some(_) if !drive.stdout_open => self.judge(now, actions),
            Some(until) if now < until => actions.push(Action::WakeAt(until)),
            Some(_) => match self.config.choices.pipe_held_by_child {
                PipeHeldByChild::Pick => self.judge(now, actions),
                PipeHeldByChild::Failure => self.give_up(&Failure::PipeHeld, now, actions),
            },
            None if now < drive.deadline => actions.push(Action::WakeAt(drive.deadline)),
            None => {
                let time_ms = self.config.settings.timeout_ms;
                self.give_up(&Failure::Timeout { time_ms }, now, actions);
            }
        }
    }

    /// Judges the complete output of a driver that exited with status 0.
    fn judge(&mut self, now: Millis, actions: &mut Vec<Action>) {
        let Some(drive) = self.stop(actions) else { return };
        match self.selection(&drive) {
            Ok(line) => {
                self.parts.breaker.succeeded();
                actions.push(Action::Stdout(line));
            }
            Err(failure) => self.fail(&drive.menu, &failure, now, actions),
        }
        self.go_on(now, actions);
    }

    /// Kills the running driver with its descendants and returns it.
    fn stop(&mut self, actions: &mut Vec<Action>) -> Option<Drive> {
        match std::mem::replace(&mut self.state, State::Reading) {
            State::Driving(drive) => {
                actions.push(Action::Kill);
                Some(drive)
            }
            other => {
                self.state = other;
                None
            }
        }
    }

    fn selection(&mut self, drive: &Drive) -> Result<Vec<u8>, Failure> {
        let block = self.parts.blocks.read(&drive.stdout).map_err(Failure::NoBlock)?;
        let raw = String::from_utf8_lossy(&drive.stdout);
        let (kind, patch) = match &block {
            Block::Pick { sid, .. } if !drive.menu.lists(*sid) => return Err(Failure::UnknownSid(*sid)),
            Block::Pick { patch: Some(_), .. } if !self.config.patches => return Err(Failure::Patch),
            Block::Pick { sid, patch } => (SelectionKind::Pick(*sid), patch.as_deref()),
            Block::AskSup => (SelectionKind::AskSup, None),
            Block::Noop => (SelectionKind::Noop, None),
        };
        let merged = match kind {
            SelectionKind::Pick(_) if self.config.merged_inputs => {
                let patch = compact(patch.unwrap_or("{}"));
                let merged = (self.parts.merge)(&drive.inputs, &patch, self.config.limits.nesting_max);
                Some(merged.map_err(|error| Failure::NoBlock(BlockError::Json(error)))?)
            }
            _ => None,
        };
        Ok(Selection { kind, input_patch_json: patch, raw: &raw, inputs: merged.as_deref() }.line())
    }
}

fn invalid(why: &str, actions: &mut Vec<Action>) {
    let kind = SelectionKind::Invalid;
    actions.push(Action::Stdout(Selection { kind, input_patch_json: None, raw: why, inputs: None }.line()));
}

impl Machine for Selector {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        match event {
            Event::Stdin(bytes) => self.read(bytes, now, actions),
            Event::StdinEof => {
                self.ended = true;
                self.go_on(now, actions);
            }
            Event::ChildStdout(bytes) => self.collect(bytes, now, actions),
            Event::ChildStdoutEof => {
                if let State::Driving(drive) = &mut self.state {
                    drive.stdout_open = false;
                }
                self.look(now, actions);
            }
            Event::ChildExit(exit) => self.ended(exit, now, actions),
            Event::ChildSpawnFailed(failure) => {
                let (SpawnFailure::NotFound(why) | SpawnFailure::NotRunnable(why) | SpawnFailure::Other(why)) =
                    failure;
                self.give_up(&Failure::Launch(why), now, actions);
            }
            Event::Wake => self.look(now, actions),
            Event::Terminate => {
                if matches!(self.state, State::Driving(_)) {
                    actions.push(Action::Kill);
                }
                if !matches!(self.state, State::Done) {
                    self.state = State::Done;
                    actions.push(Action::Exit(STATUS_TERMINATED));
                }
            }
            Event::Fetched(_) => {}
        }
    }

    fn wants_stdin(&self) -> bool {
        matches!(self.state, State::Reading)
    }
}
