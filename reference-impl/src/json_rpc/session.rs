//! Server for lines: one body per line; replies are written as they become ready (contract §7 "Transport").

use super::choices::{BlankLine, LastLine};
use super::reply::{Failure, FailureKind};
use super::server::{Channel, Output, Server};
use super::{Components, Config};
use crate::frame::{Frame, LineReader};
use crate::json::Scanner;
use crate::limits::Limits;
use crate::machine::{Action, Event, Machine, Millis};

/// Ticket of every line. Replies carry no ticket, so they need no distinction.
const TICKET: u64 = 0;

/// Interface of a server for a [`Session`].
pub trait Lined: Send {
    /// Limits in force.
    fn limits(&self) -> &Limits;
    /// Handles a line, without its LF.
    fn line(&mut self, line: &[u8], now: Millis, out: &mut Vec<Output>);
    /// Refuses a line of more than `rpc_message_bytes_max` bytes.
    fn too_long(&mut self, out: &mut Vec<Output>);
    /// Handles the text after the last LF at the end of input.
    fn rest(&mut self, text: &[u8], now: Millis, out: &mut Vec<Output>);
    /// Runs one step of each call that is due.
    fn run(&mut self, now: Millis, out: &mut Vec<Output>);
    /// Ends the calls that would take too long after the end of input.
    fn hurry(&mut self, now: Millis, out: &mut Vec<Output>);
    /// True if no call is in progress.
    fn is_idle(&self) -> bool;
    /// True if no further line should be passed on until a call finishes.
    fn is_full(&self) -> bool;
    /// Time of the next [`Lined::run`], if any. A time in the past means at once.
    fn wake_at(&self) -> Option<Millis>;
}

/// A server on standard input and output.
///
/// The session stops reading in three cases: many calls are in progress, a call is in progress that blocks others, or
/// the pending replies exceed one batch of output. Later input then stays unread. Input of the same event waits in a
/// backlog, which is never larger than that event.
pub struct Session<S = Server> {
    lines: LineReader,
    server: S,
    /// Bytes that arrived but were not handled, from `backlog_at` on.
    backlog: Vec<u8>,
    backlog_at: usize,
    /// True to write the pending replies before the backlog is continued.
    yielding: bool,
    /// Time of the last [`Action::WakeAt`].
    asked: Option<Millis>,
    outputs: Vec<Output>,
    logged: Vec<u8>,
    eof: bool,
    /// True after the server has learned of the end of input.
    hurried: bool,
    ended: bool,
}

/// True for a line of white space only.
pub(crate) fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
}

impl Session {
    /// Creates a session that has read nothing.
    pub fn new(config: Config, components: Components) -> Self {
        Self::of(Server::new(config, components))
    }
}

impl<S: Lined> Session<S> {
    /// Creates a session with `server`, which must have read nothing.
    pub fn of(server: S) -> Self {
        Self {
            lines: LineReader::new(server.limits().rpc_message_bytes_max),
            server,
            backlog: Vec::new(),
            backlog_at: 0,
            yielding: false,
            asked: None,
            outputs: Vec::new(),
            logged: Vec::new(),
            eof: false,
            hurried: false,
            ended: false,
        }
    }

    fn is_blocked(&self) -> bool {
        self.yielding || self.ended || self.server.is_full()
    }

    /// Takes lines from `input` until it is empty or the session has to wait.
    fn read_lines(&mut self, input: &mut &[u8], now: Millis, out: &mut Vec<u8>) {
        while !input.is_empty() && !self.is_blocked() {
            let Some(frame) = self.lines.next(input) else { return };
            match frame {
                Frame::Line(line) => self.server.line(line, now, &mut self.outputs),
                Frame::TooLong => self.server.too_long(&mut self.outputs),
            }
            self.collect(out);
            let enough = out.len() >= self.server.limits().output_batch_bytes;
            self.yielding = enough && !input.is_empty();
        }
    }

    fn read_backlog(&mut self, now: Millis, out: &mut Vec<u8>) {
        if self.backlog.is_empty() {
            return;
        }
        let backlog = std::mem::take(&mut self.backlog);
        let mut input = backlog.get(self.backlog_at..).unwrap_or_default();
        self.read_lines(&mut input, now, out);
        self.backlog_at = backlog.len() - input.len();
        if self.backlog_at < backlog.len() {
            self.backlog = backlog;
        } else {
            self.backlog_at = 0;
        }
    }

    /// Runs the server and collects its output as lines.
    fn run(&mut self, now: Millis, out: &mut Vec<u8>) {
        self.server.run(now, &mut self.outputs);
        self.collect(out);
    }

    fn collect(&mut self, out: &mut Vec<u8>) {
        for output in self.outputs.drain(..) {
            let mut text = match output {
                Output::Reply { body: Some(text), .. } | Output::Notice(text) => text,
                Output::Reply { body: None, .. } => continue,
                Output::Log(line) => {
                    self.logged.extend_from_slice(&line);
                    continue;
                }
            };
            text.push(b'\n');
            if out.is_empty() {
                *out = text;
            } else {
                out.extend_from_slice(&text);
            }
        }
    }

    /// Finishes after the end of input, once all of it was handled. Returns true if nothing is left to do.
    fn end(&mut self, now: Millis, out: &mut Vec<u8>) -> bool {
        if !self.eof || self.is_blocked() || !self.backlog.is_empty() {
            return false;
        }
        if let Some(Frame::Line(text)) = self.lines.finish() {
            self.server.rest(text, now, &mut self.outputs);
        }
        self.run(now, out);
        if !std::mem::replace(&mut self.hurried, true) {
            self.server.hurry(now, &mut self.outputs);
            self.collect(out);
        }
        self.server.is_idle()
    }
}

impl Lined for Server {
    fn limits(&self) -> &Limits {
        &self.config().limits
    }

    fn line(&mut self, line: &[u8], now: Millis, out: &mut Vec<Output>) {
        let blank = line.first().is_none_or(u8::is_ascii_whitespace) && is_blank(line);
        if !blank {
            return self.receive(line, TICKET, Channel::Duplex, now, out);
        }
        if self.config().choices.blank_line == BlankLine::Refuse {
            self.refuse(TICKET, Failure::new(FailureKind::ParseError, "the line is blank"), out);
        }
    }

    fn too_long(&mut self, out: &mut Vec<Output>) {
        self.refuse_too_large(TICKET, out);
    }

    fn rest(&mut self, text: &[u8], now: Millis, out: &mut Vec<Output>) {
        match self.config().choices.last_line_without_lf {
            LastLine::Silent if Scanner::new(self.config().limits.nesting_max).scan(text).is_err() => {}
            LastLine::Refuse if !is_blank(text) => {
                let details = "the last line does not end in a newline";
                self.refuse(TICKET, Failure::new(FailureKind::ParseError, details), out);
            }
            LastLine::Process | LastLine::Refuse | LastLine::Silent => self.line(text, now, out),
        }
    }

    fn run(&mut self, now: Millis, out: &mut Vec<Output>) {
        Self::run(self, now, out);
    }

    fn hurry(&mut self, now: Millis, out: &mut Vec<Output>) {
        Self::hurry(self, now, out);
    }

    fn is_idle(&self) -> bool {
        Self::is_idle(self)
    }

    fn is_full(&self) -> bool {
        Self::is_full(self)
    }

    fn wake_at(&self) -> Option<Millis> {
        Self::wake_at(self)
    }
}

impl<S: Lined> Machine for Session<S> {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        if self.ended {
            return;
        }
        let mut out = Vec::new();
        // Due steps come before new input.
        self.run(now, &mut out);
        match event {
            Event::Stdin(bytes) => {
                let mut input = bytes;
                if self.backlog.is_empty() {
                    self.read_lines(&mut input, now, &mut out);
                }
                self.backlog.extend_from_slice(input);
            }
            Event::StdinEof => self.eof = true,
            Event::Terminate => self.ended = true,
            Event::Wake => {
                self.asked = None;
                self.yielding = false;
            }
            _ => {}
        }
        self.run(now, &mut out);
        if !matches!(event, Event::Stdin(_)) && !self.is_blocked() {
            self.read_backlog(now, &mut out);
        }
        self.ended = self.ended || self.end(now, &mut out);
        if !out.is_empty() {
            actions.push(Action::Stdout(out));
        }
        if !self.logged.is_empty() {
            actions.push(Action::Stderr(std::mem::take(&mut self.logged)));
        }
        if self.ended {
            actions.push(Action::Exit(0));
            return;
        }
        let next = if self.yielding { Some(now) } else { self.server.wake_at().map(|at| at.max(now)) };
        if next.is_some() && next != self.asked {
            self.asked = next;
            actions.extend(next.map(Action::WakeAt));
        }
    }

    fn wants_stdin(&self) -> bool {
        !self.eof && !self.is_blocked() && self.backlog.is_empty()
    }
}
