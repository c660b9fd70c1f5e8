//! What is done to a request on its way in and to a reply on its way out.

use crate::http::HttpRequest;
use crate::json::{Policy, Text, Value, write_value};
use crate::machine::{Action, Event, Machine, Millis};
use crate::mutant::Inner;

/// Levels that are read of what is rewritten.
pub(super) const NESTING_MAX: usize = 1_000;

/// A rewriting.
#[derive(Debug, Clone, Copy)]
pub enum Edit {
    /// The request, before it is read.
    Request(fn(&mut Value)),
    /// The bytes of the request.
    Bytes(fn(Vec<u8>) -> Vec<u8>),
    /// The reply, before it is written; with the request.
    Reply(fn(&Value, &mut Value)),
    /// Both, the reply with the request as it came.
    Both(fn(&mut Value), fn(&Value, &mut Value)),
    /// Another line of the shim gives what was printed as a member `printed` of the result, which stands before the reply.
    Printing {
        /// The line.
        from: &'static str,
        /// What stands there instead.
        to: &'static str,
    },
    /// The bytes of the reply, with the request.
    Output(fn(&Value, Vec<u8>) -> Vec<u8>),
    /// The body of a request to a service.
    Posted(fn(&mut Value)),
    /// A request to a service.
    Carried(fn(&mut HttpRequest)),
    /// Status and body of a reply of a service, with the request; status 0 leaves it and is the last that is answered.
    Answered(fn(&Value, &mut u16, &mut Value)),
    /// The exit status, with the request and the reply; a status of less than 0 for one that writes nothing.
    Status(fn(&Value, &Value) -> Option<i32>),
}

/// A machine whose input and output are rewritten.
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

/// The member of an object, to be changed; `null` is added where it is missing.
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

/// Takes a member away that is null: it was added where it was missing.
pub(super) fn remove_null(value: &mut Value, name: &str) {
    if value.get(name) == Some(&Value::Null) {
        remove(value, name);
    }
}

/// Takes a member away.
pub(super) fn remove(value: &mut Value, name: &str) {
    if let Value::Object(members) = value {
        members.retain(|(key, _)| key != name);
    }
}
