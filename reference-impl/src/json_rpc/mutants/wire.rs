//! The seam of lines: a wrapper that sees every line before the machine, and every line that the machine writes.

use std::collections::BTreeMap;

use crate::machine::{Action, Event, Machine, Millis};
use crate::mutant::{Intake, Piece};

/// Functions of a rewriting wrapper.
#[derive(Clone, Copy)]
pub struct Rewrite {
    /// Handles an input line, without its LF.
    pub incoming: fn(&mut Memory, &[u8]) -> Pass,
    /// Handles an output line, without its LF. Returns the bytes to write instead, LF included.
    pub outgoing: fn(&mut Memory, &[u8]) -> Vec<u8>,
}

/// Treatment of an input line.
pub enum Pass {
    /// Forward it unchanged.
    Forward,
    /// Forward these lines instead, in order.
    Replace(Vec<Vec<u8>>),
    /// Answer it here.
    Answer(Vec<u8>),
    /// Drop it.
    Drop,
    /// Abort the process.
    Abort,
}

/// State of a wrapper.
#[derive(Default)]
pub struct Memory {
    /// Number of output lines.
    pub replies: u64,
    /// Data of a mutant, by key.
    pub kept: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Exit status after the current reply, if a rewriter has set it.
    pub exit: Option<i32>,
}

/// Longest line in bytes that the wrapper handles. Longer lines pass unchanged.
const LINE_BYTES_MAX: usize = 1_100_000;

/// A machine behind a [`Rewrite`].
pub(crate) struct Wire {
    inner: Box<dyn Machine + Send>,
    rewrite: Rewrite,
    memory: Memory,
    intake: Intake,
    reply: Vec<u8>,
    ended: bool,
}

impl Wire {
    pub(crate) fn new(inner: Box<dyn Machine + Send>, rewrite: Rewrite) -> Self {
        let intake = Intake::lines(LINE_BYTES_MAX);
        Self { inner, rewrite, memory: Memory::default(), intake, reply: Vec::new(), ended: false }
    }

    fn line(&mut self, line: &[u8], now: Millis, actions: &mut Vec<Action>) {
        let bare = line.strip_suffix(b"\n").unwrap_or(line);
        match (self.rewrite.incoming)(&mut self.memory, bare) {
            Pass::Forward => self.inner(Event::Stdin(line), now, actions),
            Pass::Replace(lines) => {
                for line in lines {
                    self.inner(Event::Stdin(&[&line[..], b"\n"].concat()), now, actions);
                }
            }
            Pass::Answer(mut reply) => {
                reply.push(b'\n');
                actions.push(Action::Stdout(reply));
            }
            Pass::Drop => {}
            Pass::Abort => {
                self.ended = true;
                actions.push(Action::Abort);
            }
        }
    }

    fn inner(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        if self.ended {
            return;
        }
        let mut inner_actions = Vec::new();
        self.inner.handle(event, now, &mut inner_actions);
        for action in inner_actions {
            match action {
                _ if self.ended => return,
                Action::Stdout(bytes) => self.replies(&bytes, actions),
                other => {
                    self.ended = matches!(other, Action::Exit(_) | Action::Abort);
                    actions.push(other);
                }
            }
        }
    }

    fn replies(&mut self, bytes: &[u8], actions: &mut Vec<Action>) {
        self.reply.extend_from_slice(bytes);
        while let Some(end) = memchr::memchr(b'\n', &self.reply) {
            let line: Vec<u8> = self.reply.drain(..=end).collect();
            self.memory.replies += 1;
            let out = (self.rewrite.outgoing)(&mut self.memory, line.strip_suffix(b"\n").unwrap_or(&line));
            if !out.is_empty() {
                actions.push(Action::Stdout(out));
            }
            if let Some(status) = self.memory.exit.take() {
                self.ended = true;
                actions.push(Action::Exit(status));
                return;
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
                        Piece::Line(line) => self.line(&line, now, actions),
                        Piece::Part(part) => self.inner(Event::Stdin(&part), now, actions),
                    }
                }
            }
            Event::StdinEof => {
                let (Ok(rest) | Err(rest)) = self.intake.rest();
                if !rest.is_empty() {
                    self.inner(Event::Stdin(&rest), now, actions);
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
