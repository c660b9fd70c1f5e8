//! The scenario of a runtime.

use super::super::request::is_entry;
use crate::json::{Policy, Value};
use crate::refusal::Refusal;
use crate::scenario::ScenarioError;

/// Levels of nesting of a scenario.
const NESTING_MAX: usize = 512;

/// Default time limit of a call, in ms.
const TIMEOUT_MS: u64 = 10_000;

/// Place of execution of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// In a program: its argv.
    Local(Vec<String>),
    /// On a server: its URL.
    Service(String),
    /// In a container: the container program, the image, and the argv.
    Container(String, String, Vec<String>),
}

/// A valid call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    /// Place of execution.
    pub target: Target,
    /// The call as in the scenario.
    pub told: Value,
    /// Time limit for the whole call, in ms.
    pub timeout_ms: u64,
    /// Guarantees that are true.
    pub required: Vec<String>,
}

/// One call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Its name in the results.
    pub name: String,
    /// Indices of the calls that have to finish first.
    pub after: Vec<usize>,
    /// The valid call, or the reason why it is invalid.
    pub ready: Result<Ready, Refusal>,
}

/// All calls and their common settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scenario {
    /// In the order of the file.
    pub calls: Vec<Call>,
    /// Project information for services.
    pub project: Option<Value>,
    /// Working directory of local runners.
    pub folder: Option<String>,
}

impl Scenario {
    /// Reads a scenario: one JSON object.
    ///
    /// # Errors
    /// A sentence that names the missing or invalid member.
    pub fn parse(text: &[u8]) -> Result<Self, ScenarioError> {
        let value = Value::parse(text, NESTING_MAX, &Policy::default())?;
        let listed = value.get("calls").and_then(Value::as_array).ok_or(ScenarioError::NoCalls)?;
        let mut names: Vec<String> = Vec::new();
        for (at, call) in listed.iter().enumerate() {
            let name = call.get("ref").and_then(Value::as_str).ok_or(ScenarioError::NoRef(at))?;
            if names.iter().any(|known| known == name) {
                return Err(ScenarioError::SameRef(name.to_owned()));
            }
            names.push(name.to_owned());
        }
        let after: Vec<Result<Vec<usize>, Refusal>> = listed.iter().map(|call| after(call, &names)).collect();
        let reached = |at: usize| -> Result<(), Refusal> {
            let mut pending = after[at].clone()?;
            let mut seen = vec![false; names.len()];
            while let Some(other) = pending.pop() {
                if other == at {
                    return Err("`after` runs in a circle".into());
                }
                if !std::mem::replace(&mut seen[other], true) {
                    pending.extend(after[other].iter().flatten());
                }
            }
            Ok(())
        };
        let calls = listed.iter().zip(&names).enumerate().map(|(at, (call, name))| {
            let ready = reached(at).and_then(|()| Ready::read(call));
            let after = if ready.is_ok() { after[at].clone().unwrap_or_default() } else { Vec::new() };
            Call { name: name.clone(), after, ready }
        });
        let project = value.get("project").cloned();
        let folder = project.as_ref().and_then(|project| project.get("app_root")?.as_str());
        Ok(Self { calls: calls.collect(), folder: folder.map(str::to_owned), project })
    }
}

fn after(call: &Value, names: &[String]) -> Result<Vec<usize>, Refusal> {
    let Some(given) = call.get("after") else { return Ok(Vec::new()) };
    let given = strings(Some(given)).ok_or("`after` has to be a list of refs")?;
    let place = |other: &String| names.iter().position(|name| name == other);
    given.iter().map(place).collect::<Option<Vec<_>>>().ok_or_else(|| "`after` names no call".into())
}

fn strings(value: Option<&Value>) -> Option<Vec<String>> {
    value?.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

impl Ready {
    /// Reads a call.
    ///
    /// # Errors
    /// One sentence that names the fault.
    fn read(call: &Value) -> Result<Self, Refusal> {
        let text = |name: &str| {
            let value = call.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
            value.map(str::to_owned).ok_or_else(|| format!("`{name}` has to be a string that is not empty"))
        };
        let argv = || {
            let argv = strings(call.get("command"));
            argv.filter(|argv| !argv.is_empty()).ok_or("`command` has to be a list of strings")
        };
        let target = match call.get("runner").and_then(Value::as_str) {
            Some("local") => Target::Local(argv()?),
            Some("service") => Target::Service(text("url")?),
            Some("container") => Target::Container(text("container_runtime")?, text("image")?, argv()?),
            _ => return Err("`runner` has to be local, service or container".into()),
        };
        text("tool")?;
        if !is_entry(&text("entry")?) {
            return Err("`entry` has to be module:function, two dotted names".into());
        }
        if call.get("payload").is_none_or(|payload| payload.as_object().is_none()) {
            return Err("`payload` has to be an object".into());
        }
        type Is = fn(&Value) -> bool;
        let is_text: Is = |value| value.as_text().is_some();
        let is_bool: Is = |value| value.as_bool().is_some();
        let bools: Is =
            |value| value.as_object().is_some_and(|own| own.iter().all(|(_, it)| it.as_bool().is_some()));
        let texts: Is =
            |value| value.as_object().is_some_and(|own| own.iter().all(|(_, it)| it.as_text().is_some()));
        let optional = [
            ("trace_id", is_text),
            ("resolved_source", is_text),
            ("sandbox", is_bool),
            ("unsafe_override", is_bool),
            ("guarantees", bools),
            ("pack", texts),
        ];
        for (name, is) in optional {
            if call.get(name).is_some_and(|value| !is(value)) {
                return Err(format!("`{name}` has a wrong type").into());
            }
        }
        let time = |name: &str, unit_ms: f64| match call.get(name) {
            None => Ok(None),
            Some(Value::Number(number)) if number.as_f64() > 0.0 => {
                Ok(Some((number.as_f64() * unit_ms).round() as u64))
            }
            Some(_) => Err(format!("`{name}` has to be a number over 0")),
        };
        let (ms, seconds) = (time("timeout_ms", 1.0)?, time("timeout_seconds", 1_000.0)?);
        let given = call.get("guarantees").and_then(Value::as_object).unwrap_or_default();
        let required = given.iter().filter(|(_, value)| value.as_bool() == Some(true));
        Ok(Self {
            target,
            told: call.clone(),
            timeout_ms: ms.or(seconds).unwrap_or(TIMEOUT_MS),
            required: required.map(|(name, _)| name.to_lossy().into_owned()).collect(),
        })
    }

    /// True if the boolean member `name` is true.
    pub fn is(&self, name: &str) -> bool {
        self.told.get(name).and_then(Value::as_bool) == Some(true)
    }
}
