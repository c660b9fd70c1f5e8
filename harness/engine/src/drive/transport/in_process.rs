//! Peer inside this process: a [`Machine`] on a virtual clock.
//!
//! Time passes only in waits, and then at once: a wait jumps to the machine's next wake-up or to its deadline. So a
//! conversation is deterministic and costs no more than the machine itself.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::time::Duration;

use super::inbox::{Inbox, micros};
use super::outbox::Outbox;
use super::{Connection, Log, Pumped, Until, Waiting, gave_up};
use crate::data::budget::Budget;
use crate::data::plan::Chunking;
use crate::data::transcript::{EventKind, Exit};
use crate::drive::machine::{Action, Machine, MachineEvent, Millis};

/// Time of day at the machine's time 0, milliseconds since 1970.
pub const UNIX_MS_AT_START: u64 = 1_700_000_000_000;
/// Maximum bytes of standard input in one event, as if a shell read a pipe.
const EVENT_BYTES_MAX: usize = 64 << 10;
/// Virtual time of an answer to the machine, so that a machine that asks forever reaches its deadline.
const ANSWER_US: u64 = 1;
const SIGINT: i32 = 2;
const SIGABRT: i32 = 6;
const SIGKILL: i32 = 9;

/// Machine behind the interface of a process.
pub struct InProcessConnection {
    machine: Box<dyn Machine>,
    budget: Budget,
    now_us: u64,
    actions: Vec<Action>,
    /// Pending answers to the machine.
    answers: VecDeque<WorkerAnswer>,
    wakes: BTreeSet<Millis>,
    outbox: Outbox,
    close_requested: bool,
    stdin_closed: bool,
    inbox: Inbox,
    exit: Option<Exit>,
    over_budget: bool,
    finished: bool,
    begun: bool,
}

enum WorkerAnswer {
    Fetched(String),
    SpawnFailed(String),
}

impl fmt::Debug for InProcessConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcessConnection")
            .field("now_us", &self.now_us)
            .field("exit", &self.exit)
            .finish_non_exhaustive()
    }
}

impl InProcessConnection {
    /// Connection to `machine` at time 0. The recorder notes the start ([`EventKind::Started`]).
    ///
    /// A machine that starts processes is told that they could not be started.
    pub fn new(machine: Box<dyn Machine>, budget: &Budget) -> Self {
        Self {
            machine,
            budget: budget.clone(),
            now_us: 0,
            actions: Vec::new(),
            answers: VecDeque::new(),
            wakes: BTreeSet::new(),
            outbox: Outbox::default(),
            close_requested: false,
            stdin_closed: false,
            inbox: Inbox::new(budget),
            exit: None,
            over_budget: false,
            finished: false,
            begun: false,
        }
    }

    fn has_ended(&self) -> bool {
        self.exit.is_some() || self.over_budget || self.finished
    }

    fn deliver(&mut self, event: MachineEvent<'_>, log: &mut dyn Log) {
        self.machine.handle(event, self.now_us / 1_000, &mut self.actions);
        self.act(log);
    }

    /// Delivers the next event that needs no time; returns false if there is none.
    fn step(&mut self, log: &mut dyn Log) -> bool {
        if let Some(answer) = self.answers.pop_front() {
            self.now_us += ANSWER_US;
            match answer {
                WorkerAnswer::Fetched(reply) => self.deliver(MachineEvent::Fetched(Err(reply)), log),
                WorkerAnswer::SpawnFailed(failure) => self.deliver(MachineEvent::SpawnFailed(failure), log),
            }
            return true;
        }
        if let Some(chunk) = self.outbox.next().filter(|_| self.machine.wants_stdin()) {
            let bytes = &chunk.bytes[..chunk.bytes.len().min(EVENT_BYTES_MAX)];
            self.machine.handle(MachineEvent::Stdin(bytes), self.now_us / 1_000, &mut self.actions);
            let length = bytes.len();
            self.outbox.advance(length);
            self.act(log);
            return true;
        }
        if self.close_requested && !self.stdin_closed && self.outbox.is_empty() {
            self.stdin_closed = true;
            self.inbox.record(self.now_us, EventKind::StdinClosed, log);
            self.deliver(MachineEvent::StdinEof, log);
            return true;
        }
        false
    }

    /// Carries out the machine's actions.
    fn act(&mut self, log: &mut dyn Log) {
        let mut actions = std::mem::take(&mut self.actions);
        for action in actions.drain(..) {
            match action {
                // Nothing happens after the end.
                _ if self.has_ended() => break,
                Action::Stdout(bytes) => {
                    self.over_budget = !self.inbox.take_stdout(&bytes, self.now_us, log);
                }
                Action::Stderr(bytes) => self.inbox.take_stderr(&bytes),
                Action::WakeAt(at) => {
                    self.wakes.insert(at);
                }
                Action::Fetch { .. } => {
                    self.answers.push_back(WorkerAnswer::Fetched("there is no network here".to_owned()));
                }
                Action::Spawn { .. } => {
                    let words = "no process can be started from here".to_owned();
                    self.answers.push_back(WorkerAnswer::SpawnFailed(words));
                }
                Action::Exit(code) => self.end(Exit::Code(code), log),
                Action::Abort => self.end(Exit::Signal(SIGABRT), log),
            }
        }
        // Keeps the capacity for the next event.
        actions.clear();
        self.actions = actions;
    }

    fn end(&mut self, exit: Exit, log: &mut dyn Log) {
        self.inbox.record(self.now_us, EventKind::StdoutClosed, log);
        let unwritten_bytes = self.outbox.clear();
        if unwritten_bytes > 0 {
            self.inbox.record(self.now_us, EventKind::StdinBroken { unwritten_bytes }, log);
        }
        self.exit = Some(exit);
        self.inbox.record(self.now_us, EventKind::Exited { exit }, log);
    }

    fn settled(&self, until: Until) -> Option<Pumped> {
        let reached = match until {
            Until::Frames(frames) => self.inbox.frames >= frames,
            Until::Written => self.outbox.is_empty() && self.stdin_closed == self.close_requested,
            Until::Exited => self.exit.is_some(),
            Until::Elapsed(_) => false,
        };
        match (self.over_budget, reached, self.has_ended()) {
            (true, _, _) => Some(Pumped::OverBudget),
            (_, true, _) => Some(Pumped::Reached),
            (_, _, true) => Some(Pumped::Gone),
            _ => None,
        }
    }

    fn pump_until(&mut self, waiting: Waiting<'_>, log: &mut dyn Log) -> Pumped {
        let until = waiting.until;
        let began_us = self.now_us;
        if !std::mem::replace(&mut self.begun, true) {
            self.machine.begin(began_us / 1_000, &mut self.actions);
            self.act(log);
        }
        let life_left = self.budget.connection.saturating_sub(Duration::from_micros(began_us));
        let end_us = began_us.saturating_add(micros(waiting.patience(life_left)));
        loop {
            if self.budget.is_interrupted() {
                return Pumped::Interrupted;
            }
            while !self.has_ended() && self.now_us <= end_us && self.step(log) {}
            if let Some(pumped) = self.settled(until) {
                return pumped;
            }
            let wake = self.wakes.first().copied();
            match wake.map(|at| at.saturating_mul(1_000).max(self.now_us + ANSWER_US)) {
                Some(at_us) if at_us <= end_us => {
                    self.wakes.pop_first();
                    self.now_us = at_us;
                    self.deliver(MachineEvent::Wake, log);
                }
                _ => break,
            }
        }
        self.now_us = self.now_us.max(end_us);
        gave_up(until)
    }
}

impl Connection for InProcessConnection {
    fn queue(&mut self, bytes: Vec<u8>, chunking: Chunking) {
        if !self.close_requested && !self.has_ended() {
            self.outbox.push(bytes, chunking);
        }
    }

    fn close_stdin(&mut self) {
        self.close_requested = true;
    }

    fn pump_beside(&mut self, waiting: Waiting<'_>, log: &mut dyn Log) -> Option<Pumped> {
        let pumped = self.pump_until(waiting, log);
        self.inbox.record_held(log);
        Some(pumped)
    }

    fn signal(&mut self, name: &str, log: &mut dyn Log) {
        if !matches!(name, "TERM" | "INT" | "KILL") {
            return;
        }
        self.inbox.record(self.now_us, EventKind::Signalled { signal: name.to_owned() }, log);
        match name {
            _ if self.has_ended() => {}
            "TERM" => self.deliver(MachineEvent::Terminate, log),
            "INT" => self.end(Exit::Signal(SIGINT), log),
            _ => self.end(Exit::Signal(SIGKILL), log),
        }
        self.inbox.record_held(log);
    }

    fn memory_hwm_bytes(&mut self) -> Option<u64> {
        None
    }

    fn pid(&self) -> Option<i32> {
        None
    }

    fn exit(&self) -> Option<Exit> {
        self.exit
    }

    fn now_us(&self) -> u64 {
        self.now_us
    }

    fn finish(&mut self, log: &mut dyn Log) {
        if self.finished {
            return;
        }
        if !self.has_ended() {
            self.inbox.record(self.now_us, EventKind::Killed, log);
        }
        self.finished = true;
        self.inbox.record_stderr(self.now_us, log);
    }
}

#[cfg(test)]
mod tests;
