//! The scenario of a caller.

use crate::json::{Policy, Value};
use crate::scenario::ScenarioError;

/// Levels of nesting of a scenario.
const NESTING_MAX: usize = 512;

/// Default time limit of a call, in ms.
const TIMEOUT_MS: u64 = 10_000;

/// Destination of an envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A program: its argv.
    Program(Vec<String>),
    /// A server: its URL.
    Server(String),
}

/// One call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallSpec {
    /// Its name in the results.
    pub name: String,
    /// Its destination.
    pub target: Target,
    /// Envelope to process.
    pub envelope: Value,
    /// Time limit for the whole call, in ms.
    pub timeout_ms: u64,
    /// Indices of the calls that have to finish first.
    pub after: Vec<usize>,
}

/// All calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scenario {
    /// In the order of the file.
    pub calls: Vec<CallSpec>,
}

impl Scenario {
    /// Reads a scenario: one JSON object.
    ///
    /// # Errors
    /// A sentence that names the missing or invalid member.
    pub fn parse(text: &[u8]) -> Result<Self, ScenarioError> {
        let value = Value::parse(text, NESTING_MAX, &Policy::default())?;
        let listed = value.get("calls").and_then(Value::as_array).ok_or(ScenarioError::NoCalls)?;
        let name_of = |call: &Value| call.get("ref").and_then(Value::as_str).map(str::to_owned);
        let names: Vec<Option<String>> = listed.iter().map(name_of).collect();
        let mut calls = Vec::with_capacity(listed.len());
        for (at, (call, name)) in listed.iter().zip(&names).enumerate() {
            let name = name.clone().ok_or(ScenarioError::NoRef(at))?;
            if names[..at].contains(&Some(name.clone())) {
                return Err(ScenarioError::SameRef(name));
            }
            let wrong = |member| ScenarioError::Lacks { call: name.clone(), member };
            let text = |name: &str| call.get(name).and_then(Value::as_str).map(str::to_owned);
            let target = match text("transport").as_deref() {
                Some("stdio") => Target::Program(
                    strings(call.get("command"))
                        .filter(|argv| !argv.is_empty())
                        .ok_or_else(|| wrong("command"))?,
                ),
                Some("http") => Target::Server(text("url").ok_or_else(|| wrong("url"))?),
                _ => return Err(wrong("transport that is known")),
            };
            let timeout_ms = match call.get("timeout_ms") {
                None => TIMEOUT_MS,
                some => some
                    .and_then(Value::as_i64)
                    .and_then(|ms| u64::try_from(ms).ok())
                    .ok_or_else(|| wrong("timeout_ms that is a whole number"))?,
            };
            let after = match call.get("after") {
                None => Vec::new(),
                some => strings(some).ok_or_else(|| wrong("list of refs in `after`"))?,
            };
            let place = |other: &String| names.iter().position(|name| name.as_ref() == Some(other));
            let after = after.iter().map(place).collect::<Option<Vec<_>>>();
            calls.push(CallSpec {
                target,
                envelope: call.get("envelope").cloned().ok_or_else(|| wrong("envelope"))?,
                timeout_ms,
                after: after.ok_or_else(|| wrong("call that it comes after"))?,
                name,
            });
        }
        Ok(Self { calls })
    }
}

fn strings(value: Option<&Value>) -> Option<Vec<String>> {
    value?.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}
