//! Seam of envelopes: a wrapper that edits the input before the engine reads it, and the engine's reply.

use super::super::kind::is_of_kind;
use super::super::members::{Kind, Member, STAGE_MEMBERS, find};
use super::super::validate::default;
use super::super::{Choices, Members, get, set, slot};
use crate::json::{Policy, Value, write_value};
use crate::machine::{Action, Event, Machine, Millis};
use crate::mutant::Inner;

/// Edit that a wrapper makes.
#[derive(Clone, Copy)]
pub enum Edit {
    /// Rewrites the input text.
    Text(fn(Vec<u8>) -> Vec<u8>),
    /// Rewrites the input envelope.
    Given(fn(&mut Members)),
    /// Rewrites the reply, given the input.
    Reply(fn(&Members, &mut Members)),
    /// Rewrites the reply, given the input, if the engine advanced by a stage.
    Advanced(fn(&Members, &mut Members)),
    /// Rewrites the reply, given the input, if the engine terminated the envelope.
    Ended(fn(&Members, &mut Members)),
    /// Rewrites input and reply.
    Both(fn(&mut Members), fn(&Members, &mut Members)),
    /// Replaces an invalid value of this member by its default.
    Coerces(&'static str),
    /// Replaces an invalid value of this member of a completed stage by its default.
    CoercesInStage(&'static str),
    /// Returns the default of this member.
    Loses(&'static str),
}

/// Levels of nesting that a wrapper parses.
const NESTING_MAX: usize = 512;

/// A machine behind an [`Edit`].
pub(super) struct Edited {
    inner: Inner,
    edit: Edit,
    input: Vec<u8>,
}

impl Edited {
    pub(super) fn new(inner: Inner, edit: Edit) -> Self {
        Self { inner, edit, input: Vec::new() }
    }
}

fn members(text: &[u8]) -> Option<Members> {
    match Value::parse(text, NESTING_MAX, &Policy::default()) {
        Ok(Value::Object(members)) => Some(members),
        _ => None,
    }
}

fn text(members: Members) -> Vec<u8> {
    let mut out = Vec::new();
    write_value(&mut out, &Value::Object(members));
    out.push(b'\n');
    out
}

impl Edit {
    fn incoming(self, input: &[u8]) -> Vec<u8> {
        if let Self::Text(rewrite) = self {
            return rewrite(input.to_vec());
        }
        let Some(mut envelope) = members(input) else { return input.to_vec() };
        match self {
            Self::Given(rewrite) | Self::Both(rewrite, _) => rewrite(&mut envelope),
            Self::Coerces(name) => {
                if let Some(row) = find(name) {
                    coerce(&mut envelope, row);
                }
            }
            Self::CoercesInStage(name) => {
                let Value::Array(stages) = slot(&mut envelope, "completed_stages") else {
                    return input.to_vec();
                };
                for stage in stages {
                    if let (Value::Object(stage), Some(row)) =
                        (stage, STAGE_MEMBERS.iter().find(|row| row.name == name))
                    {
                        coerce(stage, row);
                    }
                }
            }
            _ => return input.to_vec(),
        }
        text(envelope)
    }

    fn outgoing(self, input: &[u8], output: Vec<u8>) -> Vec<u8> {
        let rewrite: &dyn Fn(&Members, &mut Members) = match &self {
            Self::Reply(rewrite) | Self::Both(_, rewrite) => rewrite,
            Self::Advanced(rewrite) => &|given, reply| {
                if is_advanced(given, reply) {
                    rewrite(given, reply);
                }
            },
            Self::Ended(rewrite) => &|given, reply| {
                if is_ended(given, reply) {
                    rewrite(given, reply);
                }
            },
            Self::Loses(name) => &|_, reply| {
                if let Some(empty) = find(name).and_then(default) {
                    set(reply, name, empty);
                }
            },
            _ => return output,
        };
        let Some(mut reply) = members(&output).filter(|reply| get(reply, "current_stage").is_some()) else {
            return output;
        };
        rewrite(&members(input).unwrap_or_default(), &mut reply);
        text(reply)
    }
}

/// True if the engine advanced the envelope by a stage.
pub(crate) fn is_advanced(given: &Members, reply: &Members) -> bool {
    get(given, "current_stage") != get(reply, "current_stage")
}

/// True if the engine terminated the envelope.
pub(crate) fn is_ended(given: &Members, reply: &Members) -> bool {
    get(given, "terminated") != get(reply, "terminated")
}

/// Replaces a value that is invalid for its member by the default.
fn coerce(members: &mut Members, row: &Member) {
    let is_right = |value: &Value| {
        *value == Value::Null || is_of_kind(value, row.kind, &Choices::default()) && row.kind != Kind::Stages
    };
    if get(members, row.name).is_none_or(is_right) {
        return;
    }
    let id = |prefix: &str| Value::from(format!("{prefix}0123456789abcdef").as_str());
    match (row.kind, default(row)) {
        (Kind::Id(prefix), _) => set(members, row.name, id(prefix)),
        (Kind::Stages, _) if get(members, row.name).is_some_and(all_objects) => {}
        (_, Some(default)) => set(members, row.name, default),
        (_, None) => members.retain(|(name, _)| *name != *row.name),
    }
}

fn all_objects(value: &Value) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(|item| item.as_object().is_some()))
}

impl Machine for Edited {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        match event {
            Event::Stdin(bytes) => self.input.extend_from_slice(bytes),
            Event::StdinEof => {
                let changed = self.edit.incoming(&self.input);
                let mut asked = Vec::new();
                if !changed.is_empty() {
                    self.inner.handle(Event::Stdin(&changed), now, &mut asked);
                }
                self.inner.handle(Event::StdinEof, now, &mut asked);
                actions.extend(asked.into_iter().map(|action| match action {
                    Action::Stdout(output) => Action::Stdout(self.edit.outgoing(&self.input, output)),
                    other => other,
                }));
            }
            other => self.inner.handle(other, now, actions),
        }
    }
}
