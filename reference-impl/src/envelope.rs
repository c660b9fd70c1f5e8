//! The envelope boundary: an engine that reads one envelope and writes one back ("Envelope State Exchange").
//!
//! [`machine`] is the engine of `process`: all of standard input is one envelope, all of standard output the reply. It
//! either returns the envelope unchanged ([`choices::Process::Identity`]) or runs the next of six deterministic agents
//! ([`advance`]).

pub(crate) mod advance;
pub(crate) mod agents;
pub mod choices;
pub(crate) mod datetime;
mod engine;
pub(crate) mod kind;
pub(crate) mod members;
pub mod mutants;
pub(crate) mod validate;

pub use choices::Choices;
pub use engine::{Engine, refusal};

use crate::json::{Text, Value};
use crate::limits::Limits;
use crate::machine::Machine;

/// Members of an object, in order.
pub type Members = Vec<(Text, Value)>;

/// Configuration of an engine.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// Chosen behaviour for each open clause.
    pub choices: Choices,
    /// Limits in force.
    pub limits: Limits,
    /// Start time of the engine, in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// Seed of generated ids, different for each process.
    pub id_seed: u64,
}

/// Creates an engine that has read nothing.
pub fn machine(config: Config) -> Box<dyn Machine + Send> {
    Box::new(Engine::new(config))
}

/// The value of a member.
pub(crate) fn get<'a>(members: &'a Members, name: &str) -> Option<&'a Value> {
    members.iter().find(|(key, _)| key == name).map(|(_, value)| value)
}

/// Sets the value of a member, or appends the member.
pub(crate) fn set(members: &mut Members, name: &str, value: Value) {
    match members.iter_mut().find(|(key, _)| key == name) {
        Some((_, old)) => *old = value,
        None => members.push((name.into(), value)),
    }
}

/// Mutable value of a member; a missing member is appended as `null`.
pub(crate) fn slot<'a>(members: &'a mut Members, name: &str) -> &'a mut Value {
    let at = members.iter().position(|(key, _)| key == name).unwrap_or_else(|| {
        members.push((name.into(), Value::Null));
        members.len() - 1
    });
    &mut members[at].1
}

/// Object with these members.
pub(crate) fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::Object(members.into_iter().map(|(name, value)| (name.into(), value)).collect())
}

/// Array of these strings.
pub(crate) fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> Value {
    Value::Array(names.into_iter().map(Value::from).collect())
}

/// Whole number.
pub(crate) fn number(value: i64) -> Value {
    Value::Number(value.into())
}
