//! The seam of lines: a wrapper that sees every request before the machine, and every reply before the caller.

use std::collections::{BTreeMap, VecDeque};

use crate::json::{Value, write_value};
use crate::machine::{Action, Event, Machine, Millis};
use crate::mutant::{Intake, Piece};
use crate::toolhost::Choices;

/// Functions of a rewriting wrapper.
#[derive(Clone, Copy)]
pub struct Rewrite {
    /// Handles a request: a line without its LF, or all of standard input in run mode.
    pub request: fn(&mut Memory, &[u8]) -> Pass,
    /// Handles a reply, without its LF. Returns the bytes to write, line feed included; empty drops it.
    pub reply: fn(&mut Memory, &[u8]) -> Vec<u8>,
}

/// Treatment of a request.
pub enum Pass {
    /// Forward it unchanged.
    Forward,
    /// Forward this instead.
    Replace(Vec<u8>),
    /// Answer it here.
    Answer(Vec<u8>),
    /// Run this first and discard its reply; then forward the request.
    RunFirst(Vec<u8>),
    /// Abort the process.
    Abort,
}

/// State of a wrapper.
#[derive(Default)]
pub struct Memory {
    /// Number of requests so far.
    pub requests: u64,
    /// Number of replies so far.
    pub replies: u64,
    /// Requests without replies yet, oldest first.
    pub asked: VecDeque<Vec<u8>>,
    /// Data of a mutant, by key.
    pub kept: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Request to run after the current reply, if a rewriter has set it; its own reply is discarded.
    pub run_after: Option<Vec<u8>>,
    /// Exit status after the current reply, if a rewriter has set it.
    pub exit: Option<i32>,
    /// True in run mode.
    pub run_mode: bool,
}

/// Longest request in bytes that the wrapper handles. Longer ones pass unchanged.
const REQUEST_BYTES_MAX: usize = 24 * 1024 * 1024;

/// A machine behind a [`Rewrite`].
pub(super) struct Wire {
    inner: Box<dyn Machine + Send>,
    rewrite: Rewrite,
    memory: Memory,
    intake: Intake,
    /// Bytes of a reply without its LF yet.
    reply: Vec<u8>,
    /// Pending replies of the inner machine, true for each that is to be discarded.
    unseen: VecDeque<bool>,
    ended: bool,
}

impl Wire {
    pub(super) fn new(inner: Box<dyn Machine + Send>, rewrite: Rewrite, run_mode: bool) -> Self {
        let memory = Memory { run_mode, ..Memory::default() };
        let intake = if run_mode { Intake::whole } else { Intake::lines };
        Self {
            inner,
            rewrite,
            memory,
            intake: intake(REQUEST_BYTES_MAX),
            reply: Vec::new(),
            unseen: VecDeque::new(),
            ended: false,
        }
    }

    /// Handles one request, with its LF in serve mode.
    fn request(&mut self, request: &[u8], now: Millis, actions: &mut Vec<Action>) {
        if self.ended {
            return;
        }
        let line = request.strip_suffix(b"\n").filter(|_| !self.memory.run_mode);
        let bare = line.unwrap_or(request);
        self.memory.requests += 1;
        match (self.rewrite.request)(&mut self.memory, bare) {
            Pass::Forward => self.hand_on(bare, request, true, now, actions),
            Pass::Replace(other) => self.hand_on(bare, &self.framed(other), true, now, actions),
            Pass::RunFirst(first) => {
                self.hand_on(b"", &self.framed(first), false, now, actions);
                self.hand_on(bare, request, true, now, actions);
            }
            Pass::Answer(mut reply) => {
                reply.push(b'\n');
                actions.push(Action::Stdout(reply));
            }
            Pass::Abort => {
                self.ended = true;
                actions.push(Action::Abort);
            }
        }
    }

    fn framed(&self, mut request: Vec<u8>) -> Vec<u8> {
        if !self.memory.run_mode {
            request.push(b'\n');
        }
        request
    }

    fn hand_on(&mut self, asked: &[u8], request: &[u8], seen: bool, now: Millis, actions: &mut Vec<Action>) {
        if seen {
            self.memory.asked.push_back(asked.get(..asked.len().min(1 << 20)).unwrap_or_default().to_vec());
        }
        self.unseen.push_back(!seen);
        if !request.is_empty() {
            self.inner(Event::Stdin(request), now, actions);
        }
    }

    fn inner(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        let mut inner_actions = Vec::new();
        self.inner.handle(event, now, &mut inner_actions);
        for action in inner_actions {
            match action {
                Action::Stdout(bytes) => self.replies(&bytes, now, actions),
                Action::Exit(_) | Action::Abort if self.ended => {}
                other => actions.push(other),
            }
        }
    }

    fn replies(&mut self, bytes: &[u8], now: Millis, actions: &mut Vec<Action>) {
        self.reply.extend_from_slice(bytes);
        while let Some(end) = memchr::memchr(b'\n', &self.reply) {
            let line: Vec<u8> = self.reply.drain(..=end).collect();
            let line = line.strip_suffix(b"\n").unwrap_or(&line);
            if self.unseen.pop_front() == Some(true) {
                continue;
            }
            self.memory.replies += 1;
            let out = (self.rewrite.reply)(&mut self.memory, line);
            self.memory.asked.pop_front();
            if self.ended {
                return;
            }
            if !out.is_empty() {
                actions.push(Action::Stdout(out));
            }
            if let Some(status) = self.memory.exit.take() {
                self.ended = true;
                actions.push(Action::Exit(status));
                return;
            }
            if let Some(request) = self.memory.run_after.take() {
                self.hand_on(b"", &self.framed(request), false, now, actions);
            }
        }
    }
}

impl Machine for Wire {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        if self.ended {
            return;
        }
        match event {
            Event::Stdin(bytes) => {
                for piece in self.intake.take(bytes) {
                    match piece {
                        Piece::Line(line) => self.request(&line, now, actions),
                        Piece::Part(part) if part.ends_with(b"\n") && !self.memory.run_mode => {
                            self.hand_on(b"", &part, true, now, actions);
                        }
                        Piece::Part(part) => self.inner(Event::Stdin(&part), now, actions),
                    }
                }
            }
            Event::StdinEof => {
                match self.intake.rest() {
                    Ok(request) if self.memory.run_mode => self.request(&request, now, actions),
                    Ok(rest) | Err(rest) if !rest.is_empty() => {
                        self.hand_on(b"", &rest, true, now, actions);
                    }
                    Ok(_) | Err(_) => {}
                }
                self.inner(Event::StdinEof, now, actions);
            }
            other => self.inner(other, now, actions),
        }
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

/// Forwards every request.
pub(crate) fn forward(_: &mut Memory, _: &[u8]) -> Pass {
    Pass::Forward
}

/// Leaves every reply unchanged.
pub(crate) fn unchanged(_: &mut Memory, reply: &[u8]) -> Vec<u8> {
    line(reply.to_vec())
}

/// Appends the LF.
pub(super) fn line(mut reply: Vec<u8>) -> Vec<u8> {
    reply.push(b'\n');
    reply
}

/// Replaces a request, or forwards it if it is unchanged.
pub(super) fn replaced(old: &[u8], new: Vec<u8>) -> Pass {
    if old == new.as_slice() { Pass::Forward } else { Pass::Replace(new) }
}

/// Value of a request, if it is strict JSON.
pub(super) fn value(request: &[u8]) -> Option<Value> {
    Value::parse(request, 128, &Choices::default().policy()).ok()
}

/// Request without the members for which `drop` returns true.
pub(super) fn without(request: &Value, drop: impl Fn(&str, &Value) -> bool) -> Vec<u8> {
    let mut out = b"{".to_vec();
    for (name, value) in request.as_object().unwrap_or_default() {
        let name = name.to_lossy();
        if drop(&name, value) {
            continue;
        }
        if out.len() > 1 {
            out.push(b',');
        }
        crate::json::write_str(&mut out, &name);
        out.push(b':');
        write_value(&mut out, value);
    }
    out.push(b'}');
    out
}

/// Success reply of the current mode with this `output_json`, already escaped.
pub(super) fn success(memory: &Memory, output: &str) -> Vec<u8> {
    let state = if memory.run_mode { "{\"slots\":{}}" } else { "{\"delta\":true,\"slots\":{}}" };
    format!(
        "{{\"ok\":true,\"status\":\"OK\",\"output_json\":\"{output}\",\"error\":\"\",\"ds_state\":{state}}}"
    )
    .into_bytes()
}

/// Host error reply.
pub(super) fn failure(error: &str) -> Vec<u8> {
    format!("{{\"ok\":false,\"error\":\"{error}\"}}").into_bytes()
}
