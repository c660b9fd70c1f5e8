//! The envelope boundary: an engine that takes one envelope and gives one back ("Envelope State Exchange").
//!
//! [`machine`] is the engine of `process`: all of standard input is one envelope, all of standard output the reply. It either
//! gives back what it was given ([`choices::Process::Identity`]) or runs the next of six deterministic agents
//! ([`advance`]).

pub mod advance;
pub mod agents;
pub mod choices;
pub mod datetime;
mod engine;
pub mod members;
pub mod mutants;
pub mod validate;

pub use choices::Choices;
pub use engine::{Engine, refusal};

use crate::json::{Text, Value};
use crate::limits::Limits;
use crate::machine::Machine;

/// The members of an object, in order.
pub type Members = Vec<(Text, Value)>;

/// How an engine behaves.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// What the contract leaves open.
    pub choices: Choices,
    /// The caps in force.
    pub limits: Limits,
    /// Milliseconds since 1970 when the engine started.
    pub started_unix_ms: u64,
    /// What generated ids begin with: another number for each process.
    pub id_seed: u64,
}

/// An engine that has read nothing.
pub fn machine(config: Config) -> Box<dyn Machine + Send> {
    Box::new(Engine::new(config))
}

/// The value of a member.
pub(crate) fn get<'a>(members: &'a Members, name: &str) -> Option<&'a Value> {
    members.iter().find(|(key, _)| key == name).map(|(_, value)| value)
}

/// Gives a member another value, or adds it at the end.
pub(crate) fn set(members: &mut Members, name: &str, value: Value) {
    match members.iter_mut().find(|(key, _)| key == name) {
        Some((_, old)) => *old = value,
        None => members.push((name.into(), value)),
    }
}

/// The member to change; `null` is added where it is missing.
pub(crate) fn slot<'a>(members: &'a mut Members, name: &str) -> &'a mut Value {
    let at = members.iter().position(|(key, _)| key == name).unwrap_or_else(|| {
        members.push((name.into(), Value::Null));
        members.len() - 1
    });
    &mut members[at].1
}

/// An object of these members.
pub(crate) fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::Object(members.into_iter().map(|(name, value)| (name.into(), value)).collect())
}

/// A list of strings.
pub(crate) fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> Value {
    Value::Array(names.into_iter().map(Value::from).collect())
}

/// A whole number.
pub(crate) fn number(value: i64) -> Value {
    Value::Number(value.into())
}
