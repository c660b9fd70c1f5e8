//! Serve mode: one reply line for each request line, in order (IPC §3b).

use super::choices::{BlankLine, LastLine};
use super::host::{Host, Progress};
use super::reply::ActionBuilder;
use super::request::is_blank;
use super::tool::Answer;
use super::{Components, Config};
use crate::frame::{Frame, LineReader};
use crate::json::Scanner;
use crate::machine::{Action, Event, Machine, Millis};

/// The toolhost in serve mode.
///
/// The session stops reading while a tool waits, and when the pending replies exceed one batch of output. Later input
/// then stays unread. Input of the same event waits in a backlog, which is never larger than that event.
pub struct Serve {
    lines: LineReader,
    host: Host,
    /// Bytes that arrived but were not handled, from `backlog_at` on.
    backlog: Vec<u8>,
    backlog_at: usize,
    /// True to write the pending replies before the backlog is continued.
    yielding: bool,
    eof: bool,
    ended: bool,
}

impl Serve {
    /// Creates a toolhost that has read nothing.
    pub fn new(config: Config, components: Components) -> Self {
        Self {
            lines: LineReader::new(config.limits.stdin_bytes_max),
            host: Host::new(config, components),
            backlog: Vec::new(),
            backlog_at: 0,
            yielding: false,
            eof: false,
            ended: false,
        }
    }

    fn is_blocked(&self) -> bool {
        self.yielding || self.ended || self.host.is_waiting()
    }

    /// Takes lines from `input` until it is empty or the toolhost has to wait.
    fn read_lines(&mut self, input: &mut &[u8], now: Millis, out: &mut ActionBuilder<'_>) {
        while !input.is_empty() && !self.is_blocked() {
            let Some(frame) = self.lines.next(input) else { return };
            match frame {
                Frame::Line(line) => self.ended = answer(&mut self.host, line, now, out),
                Frame::TooLong => too_long(&mut self.host, out),
            }
            let enough = out.replies().len() >= self.host.config().limits.output_batch_bytes;
            if enough && !input.is_empty() && !self.is_blocked() {
                self.yielding = true;
                out.push(Action::WakeAt(now));
            }
        }
    }

    fn read_backlog(&mut self, now: Millis, out: &mut ActionBuilder<'_>) {
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

    /// Ends the session once all input is answered.
    fn end_if_done(&mut self, now: Millis, out: &mut ActionBuilder<'_>) {
        if !self.eof || self.is_blocked() || !self.backlog.is_empty() {
            return;
        }
        if let Some(Frame::Line(line)) = self.lines.finish() {
            let blank = is_blank(line);
            let config = self.host.config();
            match config.choices.last_line_without_lf {
                LastLine::Silent if Scanner::new(config.limits.nesting_max).scan(line).is_err() => {}
                LastLine::Refuse if !blank => {
                    Host::refuse("malformed request: the last line does not end in a newline", out);
                }
                LastLine::Process | LastLine::Refuse | LastLine::Silent => {
                    self.ended = answer(&mut self.host, line, now, out)
                }
            }
        }
        if !self.is_blocked() {
            self.ended = true;
            out.push(Action::Exit(0));
        }
    }
}

/// Answers one line. Returns true if the session ends with it.
fn answer(host: &mut Host, line: &[u8], now: Millis, out: &mut ActionBuilder<'_>) -> bool {
    let choices = &host.config().choices;
    let text = choices.bom.strip(line);
    if text.first().is_none_or(|b| b.is_ascii_whitespace()) && is_blank(text) {
        match choices.blank_line {
            BlankLine::Ignore => return false,
            BlankLine::Refuse => {
                Host::refuse("malformed request: blank line", out);
                return false;
            }
            BlankLine::End => {
                out.push(Action::Exit(0));
                return true;
            }
        }
    }
    host.request(line, now, out) == Progress::Aborted
}

fn too_long(host: &mut Host, out: &mut ActionBuilder<'_>) {
    let bytes_max = host.config().limits.stdin_bytes_max;
    Host::refuse(&format!("request too large: a line has at most {bytes_max} bytes"), out);
}

impl Machine for Serve {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        if self.ended {
            return;
        }
        let out = &mut ActionBuilder::new(actions);
        match event {
            Event::Stdin(bytes) => {
                let mut input = bytes;
                if self.backlog.is_empty() {
                    self.read_lines(&mut input, now, out);
                }
                self.backlog.extend_from_slice(input);
                return;
            }
            Event::StdinEof => self.eof = true,
            Event::Terminate => {
                self.ended = true;
                out.push(Action::Exit(self.host.config().mode.status_terminated()));
                return;
            }
            Event::Wake if self.yielding => self.yielding = false,
            Event::Wake => self.resume(Answer::Woken, now, out),
            Event::Fetched(reply) => self.resume(Answer::Fetched(reply), now, out),
            _ => return,
        }
        if !self.is_blocked() {
            self.read_backlog(now, out);
        }
        self.end_if_done(now, out);
    }

    fn wants_stdin(&self) -> bool {
        !self.is_blocked() && self.backlog.is_empty()
    }
}

impl Serve {
    fn resume(&mut self, answer: Answer, now: Millis, out: &mut ActionBuilder<'_>) {
        if self.host.resume(answer, now, out) == Some(Progress::Aborted) {
            self.ended = true;
        }
    }
}
