//! The course of one call in time: read it, start the toolhost, collect its reply, judge, answer, end.

use super::call::Call;
use super::{Config, Failure, FailureKind, reply};
use crate::machine::{Action, ChildExit, Event, Machine, Millis, SpawnFailure};

/// A dispatcher for one call.
///
/// Whatever happens, exactly one answer is written and the exit status is 0; only [`Event::Terminate`] ends it
/// without an answer, with the status 143 that a shell shows for SIGTERM. Before the answer the toolhost and all it
/// started are killed, so that nothing outlives the call.
#[derive(Debug)]
pub struct Dispatcher {
    config: Config,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    /// Collecting the call.
    Reading(Vec<u8>),
    /// The toolhost runs, or has ended while something still holds its standard output.
    Running(Run),
    /// The answer is given.
    Done,
}

#[derive(Debug)]
struct Run {
    call: Call,
    /// When the time of the toolhost is up.
    deadline: Millis,
    stdout: Vec<u8>,
    stdout_open: bool,
    /// How the toolhost ended, and until when more output is awaited.
    exit: Option<(ChildExit, Millis)>,
}

impl Dispatcher {
    /// A dispatcher that waits for its call.
    pub fn new(config: Config) -> Self {
        Self { config, phase: Phase::Reading(Vec::new()) }
    }

    /// Bytes of call or reply that are held.
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
        if bytes.len() <= bytes_max - held.len() {
            held.extend_from_slice(bytes);
            return;
        }
        let failure =
            Failure::new(FailureKind::Exception, format!("the call is longer than {bytes_max} bytes"));
        self.answer(&Err(failure), actions);
    }

    fn start(&mut self, now: Millis, actions: &mut Vec<Action>) {
        let Phase::Reading(held) = &mut self.phase else { return };
        let call = match Call::parse(&std::mem::take(held), &self.config) {
            Ok(call) => call,
            Err(malformed) => {
                // The answer names the aid as far as it could be read.
                let failure = Failure::new(FailureKind::Exception, malformed.detail);
                actions.push(Action::Stdout(reply::error_line(&malformed.aid_text, &failure)));
                self.end(actions);
                return;
            }
        };
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
        if bytes.len() <= bytes_max - run.stdout.len() {
            run.stdout.extend_from_slice(bytes);
            return;
        }
        let detail = format!("the toolhost wrote more than {bytes_max} bytes");
        self.answer(&Err(Failure::new(FailureKind::ParseError, detail)), actions);
    }

    /// Judges once the toolhost has ended and its output is complete, or has been waited for long enough.
    fn judge(&mut self, now: Millis, actions: &mut Vec<Action>) {
        let Phase::Running(run) = &self.phase else { return };
        match run.exit {
            Some((exit, until)) if !run.stdout_open || now >= until => {
                let outcome = reply::judge(&run.stdout, exit, &self.config);
                self.answer(&outcome, actions);
            }
            Some((_, until)) => actions.push(Action::WakeAt(until)),
            None if now >= run.deadline => {
                let time_ms = self.config.limits.toolhost_timeout_ms;
                let detail = format!("the toolhost did not end within {time_ms} ms");
                self.answer(&Err(Failure::new(FailureKind::Timeout, detail)), actions);
            }
            None => actions.push(Action::WakeAt(run.deadline)),
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
            Ok(output) => format!("{output}\n").into_bytes(),
            Err(failure) => reply::error_line(aid_text, failure),
        };
        actions.push(Action::Stdout(line));
        self.end(actions);
    }

    fn end(&mut self, actions: &mut Vec<Action>) {
        actions.push(Action::Exit(0));
        self.phase = Phase::Done;
    }
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
