//! The course of one call in time: read it, start the toolhost, collect its reply, judge, answer, end.

use super::call::Call;
use super::{Config, Failure, FailureExit, FailureKind, LivesOn, PrintedAs, UnrunnablePath, reply};
use crate::frame::append_within;
use crate::json::write_str;
use crate::machine::{Action, ChildExit, Event, Machine, Millis, SpawnFailure};

/// A dispatcher for one call.
///
/// Exactly one answer is always written, and the exit status is 0 (after a failure, the configured one). Only
/// [`Event::Terminate`] ends the dispatcher without an answer, with status 143, as a shell shows for SIGTERM. Before
/// the answer the toolhost and its descendants are killed, so that nothing outlives the call.
#[derive(Debug)]
pub struct Dispatcher {
    config: Config,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    /// Collecting the call.
    Reading(Vec<u8>),
    /// The toolhost is running, or has exited while another process still holds its standard output.
    Running(Run),
    /// The answer is given.
    Done,
}

#[derive(Debug)]
struct Run {
    call: Call,
    /// Deadline of the toolhost.
    deadline: Millis,
    stdout: Vec<u8>,
    stdout_open: bool,
    /// Exit of the toolhost, and the time until which more output is awaited.
    exit: Option<(ChildExit, Millis)>,
}

impl Dispatcher {
    /// Creates a dispatcher that waits for its call.
    pub fn new(config: Config) -> Self {
        Self { config, phase: Phase::Reading(Vec::new()) }
    }

    /// Bytes of the call or reply in memory.
    pub fn held_bytes(&self) -> usize {
        match &self.phase {
            Phase::Reading(bytes) => bytes.len(),
            Phase::Running(run) => run.stdout.len(),
            Phase::Done => 0,
        }
    }

    fn read(&mut self, bytes: &[u8], actions: &mut Vec<Action>) {
        let Phase::Reading(held) = &mut self.phase else { return };
        let bytes_max = self.config.limits.stdin_bytes_max;
        if append_within(held, bytes, bytes_max) {
            return;
        }
        let failure =
            Failure::new(FailureKind::Exception, format!("the call is longer than {bytes_max} bytes"));
        self.answer(&Err(failure), actions);
    }

    fn start(&mut self, now: Millis, actions: &mut Vec<Action>) {
        let Phase::Reading(held) = &mut self.phase else { return };
        let call = Call::parse(&std::mem::take(held), &self.config);
        // The answer names the aid if it could be read.
        let refused = match (&call, &self.config.refusal) {
            (Err(malformed), _) => Some((malformed.aid_text.as_str(), malformed.detail.as_str())),
            (Ok(call), Some(refusal)) => Some((call.aid_text.as_str(), refusal.as_str())),
            (Ok(_), None) => None,
        };
        if let Some((aid_text, detail)) = refused {
            let failure = Failure::new(FailureKind::Exception, detail);
            actions.push(Action::Stdout(reply::error_line(aid_text, &failure)));
            self.end(false, actions);
            return;
        }
        let Ok(call) = call else { return };
        let deadline = now.saturating_add(self.config.limits.toolhost_timeout_ms);
        actions.push(Action::WakeAt(deadline));
        actions.push(Action::Spawn {
            argv: vec![
                self.config.peer.clone(),
                "--run".to_owned(),
                self.config.plugin.clone(),
                call.aid.clone(),
            ],
            stdin: call.request(self.config.request_shape),
        });
        self.phase =
            Phase::Running(Run { call, deadline, stdout: Vec::new(), stdout_open: true, exit: None });
    }

    fn collect(&mut self, bytes: &[u8], actions: &mut Vec<Action>) {
        let Phase::Running(run) = &mut self.phase else { return };
        let bytes_max = self.config.limits.toolhost_stdout_bytes_max;
        if append_within(&mut run.stdout, bytes, bytes_max) {
            return;
        }
        let detail = format!("the toolhost wrote more than {bytes_max} bytes");
        self.answer(&Err(Failure::new(FailureKind::ParseError, detail)), actions);
    }

    /// Judges once the toolhost has exited and its output is complete or its grace period is over.
    fn judge(&mut self, now: Millis, actions: &mut Vec<Action>) {
        let Phase::Running(run) = &self.phase else { return };
        match run.exit {
            Some((exit, until)) if !run.stdout_open || now >= until => {
                let outcome = reply::judge(&run.stdout, exit, &self.config);
                self.answer(&outcome, actions);
            }
            Some((_, until)) => actions.push(Action::WakeAt(until)),
            None if now >= run.deadline => {
                let outcome = self.time_is_up(&run.stdout);
                self.answer(&outcome, actions);
            }
            None => actions.push(Action::WakeAt(run.deadline)),
        }
    }

    /// Result of a toolhost that is still running at its deadline.
    fn time_is_up(&self, stdout: &[u8]) -> Result<String, Failure> {
        let time_ms = self.config.limits.toolhost_timeout_ms;
        let timeout =
            || Failure::new(FailureKind::Timeout, format!("the toolhost did not end within {time_ms} ms"));
        match self.config.lives_on {
            LivesOn::Timeout => Err(timeout()),
            LivesOn::Result => match reply::judge(stdout, ChildExit::Code(0), &self.config) {
                Err(Failure { kind: FailureKind::ParseError, .. }) => Err(timeout()),
                answered => answered,
            },
        }
    }

    fn answer(&mut self, outcome: &Result<String, Failure>, actions: &mut Vec<Action>) {
        let aid_text = match &self.phase {
            Phase::Running(run) => {
                actions.push(Action::Kill);
                run.call.aid_text.as_str()
            }
            _ => "\"\"",
        };
        let line = match outcome {
            Ok(output) => output_line(output, self.config.printed_as),
            Err(failure) => reply::error_line(aid_text, failure),
        };
        actions.push(Action::Stdout(line));
        self.end(outcome.is_ok(), actions);
    }

    fn end(&mut self, succeeded: bool, actions: &mut Vec<Action>) {
        let nonzero = !succeeded && self.config.failure_exit == FailureExit::Nonzero;
        actions.push(Action::Exit(i32::from(nonzero)));
        self.phase = Phase::Done;
    }
}

/// A success with its LF; `output` is the JSON text of the tool's output.
fn output_line(output: &str, printed_as: PrintedAs) -> Vec<u8> {
    let mut line = Vec::with_capacity(output.len() + 3);
    match printed_as {
        PrintedAs::Value => line.extend_from_slice(output.as_bytes()),
        PrintedAs::Text => write_str(&mut line, output),
    }
    line.push(b'\n');
    line
}

impl Machine for Dispatcher {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        match event {
            Event::Stdin(bytes) => self.read(bytes, actions),
            Event::StdinEof => self.start(now, actions),
            Event::ChildStdout(bytes) => self.collect(bytes, actions),
            Event::ChildStdoutEof => {
                if let Phase::Running(run) = &mut self.phase {
                    run.stdout_open = false;
                }
                self.judge(now, actions);
            }
            Event::ChildExit(exit) => {
                if let Phase::Running(run) = &mut self.phase {
                    let until = now.saturating_add(self.config.limits.toolhost_pipe_grace_ms);
                    run.exit = Some((exit, until.min(run.deadline)));
                }
                self.judge(now, actions);
            }
            Event::ChildSpawnFailed(failure) => {
                let failure = match failure {
                    SpawnFailure::NotFound(detail) => Failure::new(FailureKind::NotFound, detail),
                    SpawnFailure::NotRunnable(detail) => match self.config.unrunnable_path {
                        UnrunnablePath::NotFound => Failure::new(FailureKind::NotFound, detail),
                        UnrunnablePath::Exception => Failure::new(FailureKind::Exception, detail),
                    },
                    SpawnFailure::Other(detail) => Failure::new(FailureKind::Exception, detail),
                };
                if matches!(self.phase, Phase::Running(_)) {
                    self.answer(&Err(failure), actions);
                }
            }
            Event::Wake => self.judge(now, actions),
            Event::Terminate => {
                if matches!(self.phase, Phase::Running(_)) {
                    actions.push(Action::Kill);
                }
                if !matches!(self.phase, Phase::Done) {
                    actions.push(Action::Exit(143));
                    self.phase = Phase::Done;
                }
            }
            Event::Fetched(_) => {}
        }
    }

    fn wants_stdin(&self) -> bool {
        matches!(self.phase, Phase::Reading(_))
    }
}
