//! Rewriting of log lines and actions.

use crate::json::{Policy, Text, Value};
use crate::machine::{Action, Event, Machine, Millis};
use crate::mutant::text::swap_all;
use crate::mutant::{self, Inner, Mutant, Seam};
use crate::run_log::digest::sha256_hex;
use crate::run_log::line::text_of;

/// Edit of a line, with its LF unless it is cut.
pub(super) type Edit = fn(&mut Memory, Vec<u8>) -> Vec<Vec<u8>>;

/// Rewriting of a mutant.
#[derive(Debug, Clone, Copy)]
pub enum Rewrite {
    /// Edits input lines.
    Read(Edit),
    /// Edits output lines.
    Written(Edit),
    /// Replaces actions.
    Asked(fn(Action) -> Vec<Action>),
    /// Edits each chunk of a program's output.
    Heard(fn(&[u8]) -> Vec<u8>),
    /// Holds all output lines back until the end.
    Late,
    /// Starts each program a second time after its exit.
    Twice,
}

/// State of a rewriting.
#[derive(Debug, Default)]
pub struct Memory {
    /// True after a relevant line.
    pub seen: bool,
    /// Previous line.
    pub last: Vec<u8>,
    /// Line that is held back.
    pub held: Vec<u8>,
}

/// A machine behind a rewriting.
pub(super) struct Rewired {
    inner: Inner,
    rewrite: Rewrite,
    memory: Memory,
    partial: Vec<u8>,
    late: Vec<Action>,
    /// First start of the program.
    first: Option<Action>,
}

impl Rewired {
    pub(super) fn new(inner: Inner, rewrite: Rewrite) -> Self {
        Self { inner, rewrite, memory: Memory::default(), partial: Vec::new(), late: Vec::new(), first: None }
    }

    /// Passes on complete lines, and at the end of input the last one too.
    fn read(&mut self, edit: Edit, ended: bool, now: Millis, actions: &mut Vec<Action>) {
        let mut bytes = std::mem::take(&mut self.partial);
        let complete = memchr::memrchr(b'\n', &bytes).map_or(0, |end| end + 1);
        if !ended {
            self.partial = bytes.split_off(complete);
        }
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            for line in edit(&mut self.memory, line.to_vec()) {
                self.inner.handle(Event::Stdin(&line), now, actions);
            }
            self.memory.last = line.to_vec();
        }
    }
}

impl Machine for Rewired {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        let mut new = Vec::new();
        match (self.rewrite, event) {
            (Rewrite::Read(edit), Event::Stdin(bytes)) => {
                self.partial.extend_from_slice(bytes);
                self.read(edit, false, now, &mut new);
            }
            (Rewrite::Read(edit), Event::StdinEof) => {
                self.read(edit, true, now, &mut new);
                self.inner.handle(Event::StdinEof, now, &mut new);
            }
            (Rewrite::Heard(change), Event::ChildStdout(bytes)) => {
                self.inner.handle(Event::ChildStdout(&change(bytes)), now, &mut new);
            }
            (Rewrite::Twice, Event::ChildStdout(_) | Event::ChildStdoutEof) if self.first.is_some() => {}
            (Rewrite::Twice, Event::ChildExit(_)) if self.first.is_some() => {
                actions.push(Action::Kill);
                actions.extend(self.first.take());
            }
            (_, event) => self.inner.handle(event, now, &mut new),
        }
        for action in new {
            match (self.rewrite, action) {
                (Rewrite::Written(edit), Action::Append(line)) => {
                    let lines = edit(&mut self.memory, line.clone());
                    actions.extend(lines.into_iter().map(Action::Append));
                    self.memory.last = line;
                }
                (Rewrite::Twice, action @ Action::Spawn { .. }) => {
                    self.first = Some(action.clone());
                    actions.push(action);
                }
                (Rewrite::Asked(change), action) => actions.extend(change(action)),
                (Rewrite::Late, action @ Action::Append(_)) => self.late.push(action),
                (Rewrite::Late, action @ Action::Exit(_)) => {
                    actions.append(&mut self.late);
                    actions.push(action);
                }
                (_, action) => actions.push(action),
            }
        }
    }

    fn begin(&mut self, now: Millis, actions: &mut Vec<Action>) {
        self.inner.begin(now, actions);
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

/// Creates a mutant with replaced actions.
pub(super) const fn asks<C, P, F>(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    change: fn(Action) -> Vec<Action>,
) -> Mutant<C, P, Rewrite, F> {
    Mutant::new(id, clauses, fault, Seam::Wire(Rewrite::Asked(change)))
}

/// Adds an argument to the started program.
pub(super) fn more(action: Action) -> Vec<Action> {
    match action {
        Action::Spawn { mut argv, stdin } => {
            argv.push("--strict".to_owned());
            vec![Action::Spawn { argv, stdin }]
        }
        other => vec![other],
    }
}

/// Keeps the input of the started program open through another process.
pub(super) fn left_open(action: Action) -> Vec<Action> {
    match action {
        Action::Spawn { argv, stdin } => {
            let own = ["sh", "-c", r#"{ cat; sleep 9 & } | "$@""#, "sh"].map(str::to_owned);
            vec![Action::Spawn { argv: own.into_iter().chain(argv).collect(), stdin }]
        }
        other => vec![other],
    }
}

/// Mutant that rewrites what each program says to it.
pub(super) const fn hears<C, P, F>(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    change: fn(&[u8]) -> Vec<u8>,
) -> Mutant<C, P, Rewrite, F> {
    Mutant::new(id, clauses, fault, Seam::Wire(Rewrite::Heard(change)))
}

/// Output of a tool without a banner, however it is cut into reads.
pub(super) fn behind_noise(said: &[u8]) -> Vec<u8> {
    said.strip_prefix(b"starting up").unwrap_or(said).to_vec()
}

/// A reply that has no member beside those of the contract; other text in its place where it has.
pub(super) fn known_members(said: &[u8]) -> Vec<u8> {
    if memchr::memmem::find(said, b"\"took_ms\"").is_some() {
        b"unknown member".to_vec()
    } else {
        said.to_vec()
    }
}

/// A machine that hears the first thing that each program says.
pub(super) fn reads_once(inner: Inner) -> Inner {
    Box::new(ReadsOnce { inner, heard: false })
}

struct ReadsOnce {
    inner: Inner,
    heard: bool,
}

impl Machine for ReadsOnce {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        let from = actions.len();
        if !matches!(event, Event::ChildStdout(_)) || !std::mem::replace(&mut self.heard, true) {
            self.inner.handle(event, now, actions);
        }
        if actions[from..].iter().any(|action| matches!(action, Action::Spawn { .. } | Action::Drive(_))) {
            self.heard = false;
        }
    }

    fn begin(&mut self, now: Millis, actions: &mut Vec<Action>) {
        self.inner.begin(now, actions);
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

/// A machine that takes an artifact of 5 bytes which says that it has 99, and writes that.
pub(super) fn odd_sizes(inner: Inner) -> Inner {
    const TOLD: &str = "\"size_bytes\":99";
    const RIGHT: &str = "\"size_bytes\":5";
    mutant::wrap(inner, |inner, event, now, actions| {
        let from = actions.len();
        match event {
            Event::ChildStdout(said) => {
                inner.handle(Event::ChildStdout(&swap_all(said, TOLD, RIGHT)), now, actions);
            }
            event => inner.handle(event, now, actions),
        }
        for action in &mut actions[from..] {
            if let Action::Append(line) = action {
                *line = swap_all(line, RIGHT, TOLD);
            }
        }
    })
}

/// Log of an unfinished run with a `run_finished` appended.
pub(crate) fn closed(log: &[u8]) -> Vec<u8> {
    let end = memchr::memrchr(b'\n', log).map_or(0, |end| end + 1);
    let lines: Vec<&[u8]> = log[..end].split_inclusive(|byte| *byte == b'\n').collect();
    let read = |line: &&[u8]| Value::parse(line, 128, &Policy::default()).unwrap_or(Value::Null);
    let is = |line: &Value, event: &str| line.get("event").and_then(Value::as_str) == Some(event);
    let lines: Vec<Value> = lines.iter().map(read).collect();
    let Some(last) = lines.last().filter(|last| !is(last, "run_finished")) else { return log.to_vec() };
    let digest = lines.iter().rev().find_map(|line| line.get("payload")?.get("state_digest").cloned());
    let steps = lines.iter().filter(|line| is(line, "selector_chosen")).count();
    let payload = vec![
        ("reason".into(), "noop".into()),
        ("steps".into(), Value::Number(i64::try_from(steps).unwrap_or(0).into())),
        ("state_digest".into(), digest.unwrap_or_else(|| sha256_hex(b"").as_str().into())),
    ];
    let mut line = members(last);
    put(&mut line, "event", "run_finished".into());
    put(&mut line, "payload", Value::Object(payload));
    [&log[..end], text_of(&Value::Object(line)).as_bytes(), b"\n"].concat()
}

/// A machine that aborts at deep nesting.
pub(super) fn fragile(inner: Inner) -> Inner {
    mutant::wrap(inner, |inner, event, now, actions| match event {
        Event::Stdin(bytes) if memchr::memchr_iter(b'[', bytes).count() > BRACKETS_MAX => {
            actions.push(Action::Abort);
        }
        event => inner.handle(event, now, actions),
    })
}

/// A machine that aborts at a lone surrogate.
pub(super) fn brittle(inner: Inner) -> Inner {
    mutant::wrap(inner, |inner, event, now, actions| match event {
        Event::Stdin(bytes) if memchr::memmem::find(bytes, b"\\ud800").is_some() => {
            actions.push(Action::Abort)
        }
        event => inner.handle(event, now, actions),
    })
}

/// Edits a message. Text that is not an object stays as it is.
pub(super) fn replied(said: &[u8], change: impl FnOnce(&mut Value)) -> Vec<u8> {
    match Value::parse(said, 128, &Policy::default()) {
        Ok(mut reply @ Value::Object(_)) => {
            change(&mut reply);
            text_of(&reply).into_bytes()
        }
        _ => said.to_vec(),
    }
}

/// Edits the member `name` of an object.
pub(super) fn edit(value: &mut Value, name: &str, change: impl FnOnce(&mut Value)) {
    if let Value::Object(members) = value
        && let Some((_, member)) = members.iter_mut().find(|(known, _)| *known == *name)
    {
        change(member);
    }
}

/// A machine that passes the state of a failed reply, or of one with an error, to the next tool.
pub(super) fn keeps_failed(inner: Inner) -> Inner {
    Box::new(KeepsFailed { inner, kept: None })
}

/// [`keeps_failed`] that also treats every reply with an error as failed.
pub(super) fn keeps_doubted(inner: Inner) -> Inner {
    let doubted = |said: &[u8]| {
        replied(said, |reply| {
            if has_error(reply) {
                edit(reply, "ok", |ok| *ok = Value::Bool(false));
            }
        })
    };
    keeps_failed(Box::new(Rewired::new(inner, Rewrite::Heard(doubted))))
}

fn has_error(reply: &Value) -> bool {
    reply.get("error").and_then(Value::as_str).is_some_and(|error| !error.is_empty())
}

struct KeepsFailed {
    inner: Inner,
    kept: Option<Value>,
}

impl Machine for KeepsFailed {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        if let Event::ChildStdout(bytes) = event
            && let Ok(reply) = Value::parse(bytes, 128, &Policy::default())
            && (reply.get("ok") == Some(&Value::Bool(false)) || has_error(&reply))
        {
            let is_used = |state: &&Value| state.get("slots").is_some_and(|slots| !members(slots).is_empty());
            self.kept = reply.get("ds_state").filter(is_used).cloned();
        }
        let mut new = Vec::new();
        self.inner.handle(event, now, &mut new);
        for action in new {
            actions.push(match action {
                Action::Spawn { argv, stdin } if argv.iter().any(|word| word == "--run") => {
                    let request = Value::parse(&stdin, 128, &Policy::default());
                    let stdin = match (request, self.kept.take()) {
                        (Ok(mut request), Some(kept)) => {
                            edit(&mut request, "ds_state", |state| *state = kept);
                            text_of(&request).into_bytes()
                        }
                        _ => stdin,
                    };
                    Action::Spawn { argv, stdin }
                }
                other => other,
            });
        }
    }

    fn begin(&mut self, now: Millis, actions: &mut Vec<Action>) {
        self.inner.begin(now, actions);
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

/// Brackets in one read above which [`fragile`] aborts.
const BRACKETS_MAX: usize = 4_000;

/// Members of an object.
pub(super) type Members = Vec<(Text, Value)>;

/// Members of an object; empty for another value.
pub(super) fn members(value: &Value) -> Members {
    value.as_object().map(<[_]>::to_vec).unwrap_or_default()
}

/// Member of this name.
pub(super) fn member<'m>(members: &'m Members, name: &str) -> Option<&'m Value> {
    members.iter().find(|(known, _)| *known == *name).map(|(_, value)| value)
}

/// String of this name; empty if it is missing.
pub(super) fn text_in<'m>(members: &'m Members, name: &str) -> &'m str {
    member(members, name).and_then(Value::as_str).unwrap_or_default()
}

/// Sets a member.
pub(super) fn put(members: &mut Members, name: &str, value: Value) {
    match members.iter_mut().find(|(known, _)| *known == *name) {
        Some((_, old)) => *old = value,
        None => members.push((name.into(), value)),
    }
}

/// Removes a member.
pub(super) fn take(members: &mut Members, name: &str) {
    members.retain(|(known, _)| *known != *name);
}

/// Line of an event with edited members, the payload last. Lines of other events stay unchanged.
pub(super) fn changed(
    line: Vec<u8>,
    event: &str,
    change: impl FnOnce(&mut Members, &mut Members),
) -> Vec<Vec<u8>> {
    let Ok(value) = Value::parse(&line, 128, &Policy::default()) else { return vec![line] };
    if !event.is_empty() && value.get("event").and_then(Value::as_str) != Some(event) {
        return vec![line];
    }
    let mut whole = members(&value);
    let mut payload = value.get("payload").map(members).unwrap_or_default();
    change(&mut whole, &mut payload);
    put(&mut whole, "payload", Value::Object(payload));
    let mut line = text_of(&Value::Object(whole)).into_bytes();
    line.push(b'\n');
    vec![line]
}

/// Merges objects recursively.
pub(super) fn merged_deep(inputs: &Value, patch: &Value) -> Value {
    let (Value::Object(_), Value::Object(patched)) = (inputs, patch) else { return patch.clone() };
    let mut merged = members(inputs);
    for (name, value) in patched {
        let value = match merged.iter().find(|(known, _)| known == name) {
            Some((_, old)) => merged_deep(old, value),
            None => value.clone(),
        };
        put(&mut merged, &name.to_lossy(), value);
    }
    Value::Object(merged)
}

/// Value without members that are `null`.
pub(super) fn without_nulls(value: &Value) -> Value {
    let kept = |(_, value): &&(Text, Value)| *value != Value::Null;
    match value {
        Value::Object(members) => Value::Object(
            members.iter().filter(kept).map(|(name, value)| (name.clone(), without_nulls(value))).collect(),
        ),
        other => other.clone(),
    }
}

/// Merges texts by a merge of values.
///
/// # Errors
/// Fails for a text that is not JSON.
pub(super) fn merged_by(
    merge: fn(&Value, &Value) -> Value,
    inputs: &str,
    patch: &str,
    nesting_max: usize,
) -> Result<String, crate::json::Error> {
    let value = |text: &str| Value::parse(text.as_bytes(), nesting_max, &Policy::default());
    Ok(text_of(&merge(&value(inputs)?, &value(patch)?)))
}
