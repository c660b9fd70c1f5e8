//! Rewriting of lines between a correct client and its surroundings.

use crate::frame::{Frame, LineReader};
use crate::json::{Policy, Value, write_value};
use crate::limits::Limits;
use crate::machine::{Action, Event, Machine, Millis};

/// State of a rewriter.
#[derive(Default)]
pub struct Memory {
    /// Number of lines of this kind, the current one included.
    pub(super) count: usize,
    /// Data of a fault.
    pub(super) kept: Vec<Vec<u8>>,
}

/// Function from one line, without its line feed, to any number of lines.
pub(super) type Rewrite = fn(&mut Memory, Vec<u8>) -> Vec<Vec<u8>>;

/// Rewritten lines, with the function.
#[derive(Clone, Copy)]
pub enum Lines {
    /// Lines to the server.
    Out(Rewrite),
    /// Lines from the server.
    In(Rewrite),
    /// Lines of the results file.
    Results(Rewrite),
}

/// A client with rewritten lines.
pub(super) struct Wire {
    inner: Box<dyn Machine + Send>,
    lines: Lines,
    reader: LineReader,
    memory: Memory,
}

impl Wire {
    pub(super) fn new(inner: Box<dyn Machine + Send>, lines: Lines) -> Self {
        let reader = LineReader::new(Limits::default().rpc_message_bytes_max * 4);
        Self { inner, lines, reader, memory: Memory::default() }
    }

    fn rewrite(&mut self, text: &[u8], rewrite: Rewrite) -> Vec<u8> {
        let mut out = Vec::new();
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            self.memory.count += 1;
            for line in rewrite(&mut self.memory, line.trim_ascii_end().to_vec()) {
                out.extend_from_slice(&line);
                out.push(b'\n');
            }
        }
        out
    }

    fn hand_on(&mut self, inner: Vec<Action>, actions: &mut Vec<Action>) {
        for action in inner {
            let action = match (action, self.lines) {
                (Action::Stdout(bytes), Lines::Out(rewrite)) => Action::Stdout(self.rewrite(&bytes, rewrite)),
                (Action::Append(bytes), Lines::Results(rewrite)) => {
                    Action::Append(self.rewrite(&bytes, rewrite))
                }
                (other, _) => other,
            };
            actions.push(action);
        }
    }
}

impl Machine for Wire {
    fn begin(&mut self, now: Millis, actions: &mut Vec<Action>) {
        let mut inner = Vec::new();
        self.inner.begin(now, &mut inner);
        self.hand_on(inner, actions);
    }

    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        let mut inner = Vec::new();
        match (&event, self.lines) {
            (Event::Stdin(bytes), Lines::In(rewrite)) => {
                let mut input = *bytes;
                let mut text = Vec::new();
                while !input.is_empty() {
                    if let Some(Frame::Line(line)) = self.reader.next(&mut input) {
                        text.extend_from_slice(line);
                        text.push(b'\n');
                    }
                }
                let text = self.rewrite(&text, rewrite);
                if !text.is_empty() {
                    self.inner.handle(Event::Stdin(&text), now, &mut inner);
                }
            }
            _ => self.inner.handle(event, now, &mut inner),
        }
        self.hand_on(inner, actions);
    }
}

/// Value of a line of JSON.
pub(super) fn parse(line: &[u8]) -> Option<Value> {
    Value::parse(line, 512, &Policy::default()).ok()
}

/// JSON text of a value.
pub(super) fn text(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write_value(&mut out, value);
    out
}

/// Line with `change` applied to each of its messages, single or in an array.
pub(super) fn each_message(
    line: Vec<u8>,
    change: impl Fn(&mut Vec<(crate::json::Text, Value)>),
) -> Vec<Vec<u8>> {
    let Some(mut value) = parse(&line) else { return vec![line] };
    match &mut value {
        Value::Object(members) => change(members),
        Value::Array(messages) => {
            for message in messages {
                if let Value::Object(members) = message {
                    change(members);
                }
            }
        }
        _ => {}
    }
    vec![text(&value)]
}

/// Replaces the value of the member `name`, if present.
pub(super) fn put(members: &mut [(crate::json::Text, Value)], name: &str, value: Value) {
    if let Some(member) = members.iter_mut().find(|(key, _)| key == name) {
        member.1 = value;
    }
}
