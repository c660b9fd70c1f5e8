//! The replayer as a machine: a log in, re-runs of tools, one verdict out.

use super::Config;
use super::choices::Verdict;
use super::fault::LogFault;
use super::replay::{Replay, ReplayStep};
use super::rules::{Rerun, Rules};
use super::tool::Execution;
use crate::frame::{Frame, LineReader};
use crate::machine::{Action, Event, Machine, Millis};

const STATUS_TERMINATED: i32 = 143;

/// A replayer. Its standard input is the log. It writes one verdict and stops at the first failure.
#[derive(Debug)]
pub struct Replayer {
    config: Config,
    replay: Replay,
    lines: LineReader,
    /// Input after a line whose tool is being re-run.
    held: Vec<u8>,
    /// Number of the last line, from 1.
    number: u64,
    /// True after the end of the log.
    ended: bool,
    /// True after the check for a byte order mark.
    begun: bool,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    Reading,
    Running(Box<Rerun>, Execution),
    Done,
}

impl Replayer {
    /// Creates a replayer that has read nothing and decides by `rules`.
    pub fn new(config: Config, rules: Box<dyn Rules>) -> Self {
        Self {
            replay: Replay::new(&config, rules),
            lines: LineReader::new(config.limits.stdin_bytes_max),
            held: Vec::new(),
            number: 0,
            ended: false,
            begun: false,
            phase: Phase::Reading,
            config,
        }
    }

    /// Bytes of the log and its state in memory.
    pub fn held_bytes(&self) -> usize {
        let running = match &self.phase {
            Phase::Running(rerun, execution) => {
                execution.held_bytes() + rerun.input.len() + rerun.before.held_bytes()
            }
            Phase::Reading | Phase::Done => 0,
        };
        self.lines.held_bytes() + self.held.len() + self.replay.held_bytes() + running
    }

    /// Reads lines until one starts a tool. The rest is held.
    fn read(&mut self, mut input: &[u8], now: Millis, actions: &mut Vec<Action>) {
        let empty = LineReader::new(self.config.limits.stdin_bytes_max);
        let mut lines = std::mem::replace(&mut self.lines, empty);
        while matches!(self.phase, Phase::Reading) && !input.is_empty() {
            if let Some(frame) = lines.next(&mut input) {
                self.frame(frame, now, actions);
            }
        }
        self.lines = lines;
        if matches!(self.phase, Phase::Running(..)) {
            self.held.extend_from_slice(input);
        }
    }

    fn frame(&mut self, frame: Frame<'_>, now: Millis, actions: &mut Vec<Action>) {
        self.number += 1;
        let line = match frame {
            Frame::Line(line) => line,
            Frame::TooLong => return self.fail(&LogFault::Frame("the line is too long"), actions),
        };
        let line = match line.strip_prefix(b"\xEF\xBB\xBF") {
            Some(rest) if !self.begun && self.config.choices.log_bom == Verdict::Accept => rest,
            _ => line,
        };
        self.begun = true;
        if line.trim_ascii().is_empty() {
            if let Err(why) = self.config.choices.log_blank_line.allow(LogFault::Frame("the line is blank")) {
                self.fail(&why, actions);
            }
            return;
        }
        match self.replay.line(line) {
            Ok(ReplayStep::Line) => {}
            Ok(ReplayStep::Rerun(rerun)) => {
                let request = self.replay.rules().request(&rerun);
                let bytes_max = self.config.limits.stdin_bytes_max;
                let execution = Execution::start(&self.config, bytes_max, &rerun.aid, request, now, actions);
                self.phase = Phase::Running(rerun, execution);
            }
            Err(why) => self.fail(&why, actions),
        }
    }

    /// Handles the held input, and then the end of the log.
    fn go_on(&mut self, now: Millis, actions: &mut Vec<Action>) {
        let held = std::mem::take(&mut self.held);
        self.read(&held, now, actions);
        if !(self.ended && matches!(self.phase, Phase::Reading)) {
            return;
        }
        let empty = LineReader::new(self.config.limits.stdin_bytes_max);
        let mut lines = std::mem::replace(&mut self.lines, empty);
        if let Some(frame) = lines.finish() {
            let reason = LogFault::Frame("the last line has no end");
            match self.config.choices.log_last_line_without_lf.allow(reason) {
                Ok(()) => self.frame(frame, now, actions),
                Err(why) => {
                    self.number += 1;
                    self.fail(&why, actions);
                }
            }
        }
        if !matches!(self.phase, Phase::Reading) {
            return;
        }
        match self.replay.end() {
            Ok(()) => self.say(None, actions),
            Err(why) => {
                self.number += 1;
                self.fail(&why, actions);
            }
        }
    }

    fn fail(&mut self, why: &LogFault, actions: &mut Vec<Action>) {
        self.say(Some((self.number, &why.to_string())), actions);
    }

    fn say(&mut self, failure: Option<(u64, &str)>, actions: &mut Vec<Action>) {
        let (line, status) = self.replay.rules().verdict(failure, &self.config);
        actions.push(Action::Stdout(line.into_bytes()));
        actions.push(Action::Exit(status));
        self.phase = Phase::Done;
        self.held = Vec::new();
    }

    /// Passes an event of the toolhost to the running execution.
    fn child(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        let Phase::Running(_, execution) = &mut self.phase else { return };
        let Some(outcome) = execution.handle(event, now, &self.config, actions) else { return };
        actions.push(Action::Kill);
        if let Phase::Running(rerun, _) = std::mem::replace(&mut self.phase, Phase::Reading)
            && let Err(why) = self.replay.reran(&rerun, &outcome)
        {
            return self.fail(&why, actions);
        }
        self.go_on(now, actions);
    }
}

impl Machine for Replayer {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        match event {
            Event::Stdin(bytes) => match self.phase {
                Phase::Reading => self.read(bytes, now, actions),
                Phase::Running(..) => self.held.extend_from_slice(bytes),
                Phase::Done => {}
            },
            Event::StdinEof => {
                self.ended = true;
                self.go_on(now, actions);
            }
            Event::Terminate => {
                if matches!(self.phase, Phase::Running(..)) {
                    actions.push(Action::Kill);
                }
                if !matches!(self.phase, Phase::Done) {
                    self.phase = Phase::Done;
                    actions.push(Action::Exit(STATUS_TERMINATED));
                }
            }
            other => self.child(other, now, actions),
        }
    }

    fn wants_stdin(&self) -> bool {
        matches!(self.phase, Phase::Reading)
    }
}
