//! Edits of requests on their way in and of replies on their way out.

use crate::http::HttpRequest;
use crate::json::{Policy, Text, Value, write_value};
use crate::machine::{Action, Event, Machine, Millis};
use crate::mutant::Inner;

/// Levels of nesting that an edit parses.
pub(super) const NESTING_MAX: usize = 1_000;

/// Edit of a mutant.
#[derive(Debug, Clone, Copy)]
pub enum Edit {
    /// Edits the request before it is read.
    Request(fn(&mut Value)),
    /// Edits the bytes of the request.
    Bytes(fn(Vec<u8>) -> Vec<u8>),
    /// Edits the reply, given the request, before it is written.
    Reply(fn(&Value, &mut Value)),
    /// Edits the request, and the reply given the original request.
    Both(fn(&mut Value), fn(&Value, &mut Value)),
    /// Replaces a line of the shim so that the result has a member `printed` with the printed text. That text is
    /// written before the reply.
    Printing {
        /// The line of the shim.
        from: &'static str,
        /// Its replacement.
        to: &'static str,
    },
    /// Edits the bytes of the reply, given the request.
    Output(fn(&Value, Vec<u8>) -> Vec<u8>),
    /// Edits the body of a request to a service.
    Posted(fn(&mut Value)),
    /// Edits a request to a service.
    Carried(fn(&mut HttpRequest)),
    /// Edits status and body of a service's reply, given the request. Status 0 keeps the reply and makes it the last
    /// one.
    Answered(fn(&Value, &mut u16, &mut Value)),
    /// Edits the exit status, given request and reply. A negative status `n` suppresses the output and exits with
    /// `-1 - n`.
    Status(fn(&Value, &Value) -> Option<i32>),
}

/// A machine with rewritten input and output.
pub(super) struct Edited {
    inner: Inner,
    edit: Edit,
    input: Vec<u8>,
    request: Value,
}

fn read(bytes: &[u8]) -> Option<Value> {
    Value::parse(bytes, NESTING_MAX, &Policy::default()).ok()
}

fn text(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write_value(&mut out, value);
    out.push(b'\n');
    out
}

impl Edited {
    pub(super) fn new(inner: Inner, edit: Edit) -> Self {
        Self { inner, edit, input: Vec::new(), request: Value::Null }
    }

    fn rewritten(&mut self, input: Vec<u8>) -> Vec<u8> {
        if let Edit::Bytes(edit) = self.edit {
            return edit(input);
        }
        let Some(mut request) = read(&input) else { return input };
        self.request = request.clone();
        match self.edit {
            Edit::Request(edit) | Edit::Both(edit, _) => edit(&mut request),
            _ => return input,
        }
        text(&request)
    }

    fn answered(&self, actions: &mut [Action], from: usize) {
        let reply = actions[from..].iter().find_map(|action| match action {
            Action::Stdout(bytes) => Some(bytes.clone()),
            _ => None,
        });
        let value = reply.as_deref().and_then(read).unwrap_or(Value::Null);
        let status = match self.edit {
            Edit::Status(edit) => edit(&self.request, &value),
            _ => None,
        };
        for action in &mut actions[from..] {
            match (action, self.edit, status) {
                (Action::Stdout(bytes), Edit::Printing { .. }, _) => {
                    let printed = value.get("result").and_then(|result| result.get("printed"));
                    let printed = printed.and_then(Value::as_str).unwrap_or_default();
                    bytes.splice(0..0, printed.bytes());
                }
                (Action::Stdout(bytes), Edit::Reply(edit) | Edit::Both(_, edit), _) => {
                    let mut value = value.clone();
                    edit(&self.request, &mut value);
                    *bytes = text(&value);
                }
                (Action::Stdout(bytes), Edit::Output(edit), _) => {
                    *bytes = edit(&self.request, std::mem::take(bytes));
                }
                (Action::Stdout(bytes), Edit::Status(_), Some(status)) if status < 0 => bytes.clear(),
                (Action::Exit(own), Edit::Status(_), Some(status)) => {
                    *own = if status < 0 { -1 - status } else { status }
                }
                _ => {}
            }
        }
    }
}

impl Machine for Edited {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        let from = actions.len();
        match event {
            Event::Stdin(bytes) => self.input.extend_from_slice(bytes),
            Event::StdinEof => {
                let input = std::mem::take(&mut self.input);
                let input = self.rewritten(input);
                if !input.is_empty() {
                    self.inner.handle(Event::Stdin(&input), now, actions);
                }
                self.inner.handle(Event::StdinEof, now, actions);
            }
            event => self.inner.handle(event, now, actions),
        }
        self.answered(actions, from);
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

/// Mutable member of an object. A missing member is added as `null`, another value becomes an object.
pub(super) fn slot<'a>(value: &'a mut Value, name: &str) -> &'a mut Value {
    if value.as_object().is_none() {
        *value = Value::Object(Vec::new());
    }
    let Value::Object(members) = value else { unreachable!("it was made an object") };
    let at = members.iter().position(|(key, _)| key == name).unwrap_or_else(|| {
        members.push((Text::from(name), Value::Null));
        members.len() - 1
    });
    &mut members[at].1
}

/// Removes a member that is null.
pub(super) fn remove_null(value: &mut Value, name: &str) {
    if value.get(name) == Some(&Value::Null) {
        remove(value, name);
    }
}

/// Removes a member.
pub(super) fn remove(value: &mut Value, name: &str) {
    if let Value::Object(members) = value {
        members.retain(|(key, _)| key != name);
    }
}
