//! One execution of a tool by a toolhost in run mode (contract §1 "Run mode", §3 "A re-run is right when").

use super::event::{FAILED, Reading, embedded};
use super::state::State;
use super::{Choices, Config};
use crate::frame::append_within;
use crate::json::{Text, Value};
use crate::machine::{Action, ChildExit, Event, Millis};
use crate::refusal::Refusal;

/// Outcome of a successful execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Success {
    /// `output_json` as the toolhost wrote it.
    pub output_json: Text,
    /// State after the execution.
    pub state: State,
}

/// Outcome of a failed execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// Status of the failure.
    pub status: Text,
    /// Error of the tool, or the fault of its reply; not empty.
    pub error: Text,
}

/// Error text of a tool that reports none.
pub(crate) const UNSAID: &str = "the tool failed and did not say why";

/// Outcome of an execution.
pub(crate) type Outcome = Result<Success, Failed>;

impl Failed {
    fn new(error: impl Into<String>) -> Self {
        Self { status: FAILED[0].into(), error: error.into().into() }
    }
}

/// An execution of one tool by a toolhost.
#[derive(Debug)]
pub(crate) struct Execution {
    deadline: Millis,
    time_ms: Millis,
    stdout: Vec<u8>,
    stdout_bytes_max: usize,
    stdout_open: bool,
    /// Exit of the toolhost, and the time until which more output is awaited.
    exit: Option<(ChildExit, Millis)>,
    pipe_grace_ms: Millis,
}

impl Execution {
    /// Starts a toolhost with this request.
    pub(crate) fn start(
        config: &Config,
        stdout_bytes_max: usize,
        aid: &Text,
        request: Vec<u8>,
        now: Millis,
        actions: &mut Vec<Action>,
    ) -> Self {
        let time_ms = config.limits.toolhost_timeout_ms;
        let deadline = now.saturating_add(time_ms);
        let aid = aid.to_lossy().into_owned();
        let argv = vec![config.peer.clone(), "--run".to_owned(), config.plugin.clone(), aid];
        actions.push(Action::WakeAt(deadline));
        actions.push(Action::Spawn { argv, stdin: request });
        Self {
            deadline,
            time_ms,
            stdout: Vec::new(),
            stdout_bytes_max,
            stdout_open: true,
            exit: None,
            pipe_grace_ms: config.limits.toolhost_pipe_grace_ms,
        }
    }

    /// Handles an event. An outcome ends the execution; the caller must then kill the toolhost.
    pub(crate) fn handle(
        &mut self,
        event: Event<'_>,
        now: Millis,
        config: &Config,
        actions: &mut Vec<Action>,
    ) -> Option<Outcome> {
        match event {
            Event::ChildStdout(bytes) => {
                if !append_within(&mut self.stdout, bytes, self.stdout_bytes_max) {
                    let bytes_max = self.stdout_bytes_max;
                    let error = format!("the toolhost wrote more than {bytes_max} bytes");
                    return Some(Err(Failed::new(error)));
                }
                return None;
            }
            Event::ChildStdoutEof => self.stdout_open = false,
            Event::ChildExit(exit) => {
                let until = now.saturating_add(self.pipe_grace_ms);
                self.exit = Some((exit, until.min(self.deadline)));
            }
            Event::ChildSpawnFailed(failure) => {
                return Some(Err(Failed::new(format!("the toolhost cannot be started: {failure}"))));
            }
            Event::Wake => {}
            _ => return None,
        }
        match self.exit {
            Some((exit, until)) if !self.stdout_open || now >= until => {
                Some(judge(&self.stdout, exit, config))
            }
            None if now >= self.deadline => {
                Some(Err(Failed::new(format!("the toolhost did not end within {} ms", self.time_ms))))
            }
            exit => {
                actions.push(Action::WakeAt(exit.map_or(self.deadline, |(_, until)| until)));
                None
            }
        }
    }

    /// Bytes in memory.
    pub(crate) fn held_bytes(&self) -> usize {
        self.stdout.len()
    }
}

/// Judges the whole output of a toolhost and its exit.
fn judge(stdout: &[u8], exit: ChildExit, config: &Config) -> Outcome {
    match exit {
        ChildExit::Code(0) => {}
        ChildExit::Code(status) => {
            return Err(Failed::new(format!("the toolhost ended with status {status}")));
        }
        ChildExit::Signal(signal) => {
            return Err(Failed::new(format!("the toolhost was ended by signal {signal}")));
        }
    }
    let reading = Reading { nesting_max: config.limits.nesting_max, policy: config.choices.policy() };
    let malformed = |what: Refusal| Failed::new(Refusal::of("malformed reply")(what));
    let reply = Value::parse(stdout, reading.nesting_max, &reading.policy)
        .map_err(|error| malformed(error.into()))?;
    match reply.get("ok").and_then(Value::as_bool) {
        Some(true) => {}
        Some(false) => return Err(told(&reply)),
        None => return Err(malformed("ok is not a boolean".into())),
    }
    if reply.get("status").and_then(Value::as_text).is_none_or(|status| *status != "OK") {
        return Err(malformed("ok is true and status is not OK".into()));
    }
    let output_json = reply.get("output_json").and_then(Value::as_text);
    let output_json = output_json.ok_or_else(|| malformed("output_json is not a string".into()))?;
    embedded("output_json", output_json, reading).map_err(malformed)?;
    let state = reply.get("ds_state").ok_or_else(|| malformed("ds_state is missing".into()))?;
    // A wrong size is an error in a reply, even if a log may contain one.
    let choices = Choices { size_bytes_wrong: super::choices::SizeBytes::Fail, ..config.choices };
    let state = State::from_ds_state(state, &choices).map_err(malformed)?;
    Ok(Success { output_json: output_json.clone(), state })
}

/// Failure that a reply reports.
fn told(reply: &Value) -> Failed {
    let status = reply.get("status").and_then(Value::as_text);
    let status = status.filter(|status| FAILED.iter().any(|known| **status == **known));
    let error = reply.get("error").and_then(Value::as_text).filter(|error| !error.as_bytes().is_empty());
    Failed {
        status: status.cloned().unwrap_or_else(|| FAILED[0].into()),
        error: error.cloned().unwrap_or_else(|| UNSAID.into()),
    }
}
