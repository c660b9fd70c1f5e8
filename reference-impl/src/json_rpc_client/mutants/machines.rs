//! Faults of the client as a whole.

use super::Mutant;
use super::wire::{parse, put};
use crate::json::Value;
use crate::machine::{Action, Event, Machine, Millis};
use crate::mutant::text::has;
use crate::mutant::{ShellFault, machine as mutant, shell, waits_anew};

/// Mark that a client keeps after a second error.
const DOUBLED: &[u8] = b"doubled";

/// A fault around the correct client.
type Fault = fn(&mut FaultyClient, Event<'_>, Millis, &mut Vec<Action>);

struct FaultyClient {
    inner: Box<dyn Machine + Send>,
    fault: Fault,
    /// Bytes of an unfinished line, or other data of a fault.
    kept: Vec<u8>,
    /// Last id that the client sent.
    last_id: Option<Value>,
    /// All ids that the client sent.
    ids: Vec<Value>,
    status: Option<i32>,
    stays: bool,
}

impl FaultyClient {
    fn look(&mut self, inner: Vec<Action>, actions: &mut Vec<Action>) {
        for action in inner {
            match action {
                Action::Exit(_) if self.stays => {}
                Action::Exit(status) => actions.push(Action::Exit(self.status.unwrap_or(status))),
                Action::Stdout(bytes) => {
                    for line in bytes.split(|byte| *byte == b'\n') {
                        if let Some(id) = parse(line).and_then(|value| value.get("id").cloned()) {
                            self.ids.push(id.clone());
                            self.last_id = Some(id);
                        }
                    }
                    actions.push(Action::Stdout(bytes));
                }
                other => actions.push(other),
            }
        }
    }

    fn pass(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        let mut inner = Vec::new();
        self.inner.handle(event, now, &mut inner);
        self.look(inner, actions);
    }
}

impl Machine for FaultyClient {
    fn begin(&mut self, now: Millis, actions: &mut Vec<Action>) {
        let mut inner = Vec::new();
        self.inner.begin(now, &mut inner);
        self.look(inner, actions);
    }

    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        (self.fault)(self, event, now, actions);
    }
}

fn around(inner: Box<dyn Machine + Send>, fault: Fault) -> FaultyClient {
    FaultyClient {
        inner,
        fault,
        kept: Vec::new(),
        last_id: None,
        ids: Vec::new(),
        status: None,
        stays: false,
    }
}

/// Passes an event on. Replaces each line for which `change` returns another message.
fn rewritten(
    client: &mut FaultyClient,
    event: Event<'_>,
    now: Millis,
    actions: &mut Vec<Action>,
    change: impl Fn(&Value, &Value, &mut Vec<u8>) -> Option<Value>,
) {
    let (Event::Stdin(bytes), Some(id)) = (&event, client.last_id.clone()) else {
        client.pass(event, now, actions);
        return;
    };
    let mut text = Vec::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        match parse(line).and_then(|value| change(&value, &id, &mut client.kept)) {
            Some(value) => {
                text.extend_from_slice(&super::wire::text(&value));
                text.push(b'\n');
            }
            None => text.extend_from_slice(line),
        }
    }
    client.pass(Event::Stdin(&text), now, actions);
}

/// Copy of a message with another id and without a method.
fn readdressed(message: &Value, id: &Value) -> Option<Value> {
    let members = message.as_object()?.iter().filter(|(name, _)| name != "id" && name != "method");
    Some(Value::Object(members.cloned().chain([("id".into(), id.clone())]).collect()))
}

/// A mutant made from a function on events.
macro_rules! events {
    ($id:literal, $clauses:expr, $fault:literal, $do:expr) => {
        mutant($id, $clauses, $fault, |inner| Box::new(around(inner, $do)))
    };
}

pub(super) const MUTANTS: &[Mutant] = &[
    events!(
        "client-counts-doubled-errors",
        &["RPC-CLIENT-13"],
        "An error that comes twice has its call sent twice, under two ids.",
        |client, event, now, actions| {
            if let Event::Stdin(bytes) = &event {
                for line in bytes.split(|byte| *byte == b'\n').filter(|line| has(line, "-32001")) {
                    match client.kept == line {
                        true => client.kept = DOUBLED.to_vec(),
                        false => client.kept = line.to_vec(),
                    }
                }
            }
            let known = actions.len();
            client.pass(event, now, actions);
            let sent = actions[known..].iter().find_map(|action| match action {
                Action::Stdout(bytes) if client.kept == DOUBLED => parse(bytes),
                _ => None,
            });
            if let Some(Value::Object(mut request)) = sent {
                client.kept.clear();
                put(&mut request, "id", Value::from("doubled"));
                let text = super::wire::text(&Value::Object(request));
                actions.push(Action::Stdout([text, b"\n".to_vec()].concat()));
            }
        }
    ),
    events!(
        "client-reads-one-line-of-a-chunk",
        &["RPC-CLIENT-19"],
        "Of lines that come together only the first is read.",
        |client, event, now, actions| match event {
            Event::Stdin(bytes) => {
                let end = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
                client.pass(Event::Stdin(&bytes[..end]), now, actions);
            }
            other => client.pass(other, now, actions),
        }
    ),
    events!(
        "client-reads-whole-lines-only",
        &["RPC-CLIENT-19"],
        "A line that comes in pieces is lost.",
        |client, event, now, actions| match event {
            Event::Stdin(bytes) if !bytes.ends_with(b"\n") => {
                client.kept.push(b'.');
            }
            Event::Stdin(_) if !client.kept.is_empty() => client.kept.clear(),
            other => client.pass(other, now, actions),
        }
    ),
    events!(
        "client-drops-slow-lines",
        &["RPC-CLIENT-19"],
        "Half a line that nothing follows for a second is taken for a whole one.",
        |client, event, now, actions| {
            if let Event::Stdin(bytes) = &event {
                let since = String::from_utf8_lossy(&client.kept).parse::<Millis>();
                if since.is_ok_and(|since| now >= since + 1_000) {
                    client.pass(Event::Stdin(b"\n"), now, actions);
                }
                client.kept.clear();
                if !bytes.ends_with(b"\n") {
                    client.kept = now.to_string().into_bytes();
                }
            }
            client.pass(event, now, actions);
        }
    ),
    events!(
        "client-takes-any-answer",
        &["RPC-CLIENT-19"],
        "An answer to an unknown id is taken for the last call's.",
        |client, event, now, actions| match event {
            Event::Stdin(bytes) => {
                let mut text = Vec::new();
                for line in bytes.split_inclusive(|byte| *byte == b'\n') {
                    let unknown = parse(line).filter(|value| {
                        value.get("method").is_none() && value.get("id").and_then(Value::as_str).is_some()
                    });
                    match (unknown, &client.last_id) {
                        (Some(Value::Object(mut members)), Some(id)) => {
                            super::wire::put(&mut members, "id", id.clone());
                            text.extend_from_slice(&super::wire::text(&Value::Object(members)));
                            text.push(b'\n');
                        }
                        _ => text.extend_from_slice(line),
                    }
                }
                client.pass(Event::Stdin(&text), now, actions);
            }
            other => client.pass(other, now, actions),
        }
    ),
    events!(
        "client-takes-any-object",
        &["RPC-CLIENT-19"],
        "An object without a usable id is taken for the last call's answer.",
        |client, event, now, actions| {
            rewritten(client, event, now, actions, |message, id, _| {
                let usable = |id: &Value| matches!(id, Value::Number(_) | Value::String(_) | Value::Null);
                let strange = message.get("method").is_none() && !message.get("id").is_some_and(usable);
                readdressed(message, id).filter(|_| strange)
            });
        }
    ),
    events!(
        "client-ends-all-at-an-error-for-no-id",
        &["RPC-CLIENT-19"],
        "An error for no id is taken for the answer to every call.",
        |client, event, now, actions| {
            let is_for_none = |message: &Value| {
                message.get("error").is_some() && message.get("id").is_some_and(|id| *id == Value::Null)
            };
            let mut text = Vec::new();
            if let Event::Stdin(bytes) = &event {
                for message in bytes.split(|byte| *byte == b'\n').filter_map(parse).filter(is_for_none) {
                    for line in client.ids.iter().filter_map(|id| readdressed(&message, id)) {
                        text.extend_from_slice(&super::wire::text(&line));
                        text.push(b'\n');
                    }
                }
            }
            if text.is_empty() {
                client.pass(event, now, actions);
            } else {
                client.pass(Event::Stdin(&text), now, actions);
            }
        }
    ),
    events!(
        "client-takes-notifications-for-answers",
        &["RPC-CLIENT-19"],
        "A notification is taken for the last call's answer.",
        |client, event, now, actions| {
            rewritten(client, event, now, actions, |message, id, _| {
                let notified = message.get("method").is_some() && message.get("id").is_none();
                readdressed(message, id).filter(|_| notified)
            });
        }
    ),
    events!(
        "client-takes-answers-twice",
        &["RPC-CLIENT-19"],
        "An answer that comes again is taken for the last call's.",
        |client, event, now, actions| {
            rewritten(client, event, now, actions, |message, id, kept| {
                let own = message.get("id").and_then(Value::as_i64)?;
                let own = u8::try_from(own).ok()?;
                if kept.contains(&own) {
                    return readdressed(message, id);
                }
                kept.push(own);
                None
            });
        }
    ),
    events!(
        "client-dies-of-length",
        &["RPC-CLIENT-23"],
        "A line of more than a million bytes ends the process.",
        |client, event, now, actions| {
            if let Event::Stdin(bytes) = &event {
                if bytes.contains(&b'\n') {
                    client.kept.clear();
                }
                let tail = bytes.iter().rev().take_while(|byte| **byte != b'\n').count();
                client.kept.resize(client.kept.len() + tail, b'.');
                if client.kept.len() > 1_000_000 {
                    actions.push(Action::Abort);
                    return;
                }
            }
            client.pass(event, now, actions);
        }
    ),
    events!(
        "client-dies-of-many-lines",
        &["RPC-CLIENT-23"],
        "Five thousand lines end the process.",
        |client, event, now, actions| {
            if let Event::Stdin(bytes) = &event {
                let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
                client.kept.resize(client.kept.len() + lines, b'.');
                if client.kept.len() > 5_000 {
                    actions.push(Action::Abort);
                    return;
                }
            }
            client.pass(event, now, actions);
        }
    ),
    events!(
        "client-dies-of-odd-values",
        &["RPC-CLIENT-23"],
        "A number beyond every double, half a surrogate pair or two members with one name end the process.",
        |client, event, now, actions| match event {
            Event::Stdin(bytes)
                if ["1e400", "\\ud800", "\"a\":1,\"a\":2"].iter().any(|odd| has(bytes, odd)) =>
            {
                actions.push(Action::Exit(1));
            }
            other => client.pass(other, now, actions),
        }
    ),
    events!(
        "client-dies-of-versions",
        &["RPC-CLIENT-23"],
        "A response of version 1.0 ends the process.",
        |client, event, now, actions| match event {
            Event::Stdin(bytes) if has(bytes, "\"jsonrpc\":\"1.0\"") => actions.push(Action::Exit(1)),
            other => client.pass(other, now, actions),
        }
    ),
    events!(
        "client-ignores-hang-up",
        &["RPC-CLIENT-20"],
        "That the server is gone is not noticed.",
        |client, event, now, actions| match event {
            Event::StdinEof => {}
            other => client.pass(other, now, actions),
        }
    ),
    events!(
        "client-dies-of-depth",
        &["RPC-CLIENT-23"],
        "A line with a thousand brackets ends the process.",
        |client, event, now, actions| match event {
            Event::Stdin(bytes) if bytes.iter().filter(|byte| **byte == b'[').count() > 1_000 => {
                actions.push(Action::Abort);
            }
            other => client.pass(other, now, actions),
        }
    ),
    events!(
        "client-dies-of-bad-utf8",
        &["RPC-CLIENT-23"],
        "A byte that is no UTF-8 ends the process.",
        |client, event, now, actions| match event {
            Event::Stdin(bytes) if bytes.contains(&0xff) => actions.push(Action::Exit(1)),
            other => client.pass(other, now, actions),
        }
    ),
    shell(
        "client-leaves-a-child",
        &["RPC-CLIENT-25"],
        "A child process outlives the client.",
        ShellFault::LeavesChild,
    ),
    shell(
        "client-leaves-a-file",
        &["RPC-CLIENT-25"],
        "A temporary file outlives the client.",
        ShellFault::LeavesFile,
    ),
    mutant(
        "client-clock-is-slow",
        &["RPC-CLIENT-11"],
        "Its clock takes six seconds for one: every time is over late, and is told as if it were not.",
        |inner| Box::new(SlowClock(inner)),
    ),
    mutant(
        "client-waits-anew-with-every-byte",
        &["RPC-CLIENT-11"],
        "The time of its calls begins anew with every byte that comes.",
        waits_anew,
    ),
    mutant(
        "client-fails-in-the-end",
        &["RPC-CLIENT-22"],
        "It exits with 1 when every call has finished.",
        |inner| {
            let pass: Fault = |client, event, now, actions| client.pass(event, now, actions);
            Box::new(FaultyClient { status: Some(1), ..around(inner, pass) })
        },
    ),
    mutant("client-stays", &["RPC-CLIENT-22"], "It lives on when every call has finished.", |inner| {
        let pass: Fault = |client, event, now, actions| client.pass(event, now, actions);
        Box::new(FaultyClient { stays: true, ..around(inner, pass) })
    }),
];

/// Factor by which a slow clock is slow.
const SLOW: Millis = 6;

struct SlowClock(Box<dyn Machine + Send>);

impl SlowClock {
    fn hand_on(inner: Vec<Action>, actions: &mut Vec<Action>) {
        actions.extend(inner.into_iter().map(|action| match action {
            Action::WakeAt(at) => Action::WakeAt(at.saturating_mul(SLOW)),
            other => other,
        }));
    }
}

impl Machine for SlowClock {
    fn begin(&mut self, now: Millis, actions: &mut Vec<Action>) {
        let mut inner = Vec::new();
        self.0.begin(now / SLOW, &mut inner);
        Self::hand_on(inner, actions);
    }

    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        let mut inner = Vec::new();
        self.0.handle(event, now / SLOW, &mut inner);
        Self::hand_on(inner, actions);
    }
}
