//! Requests: reading and validation.

use super::Config;
use super::choices::{Caught, EnvRead, Unknown};
use crate::json::{Value, write_str, write_value};
use crate::refusal::Refusal;

/// A valid call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// `module:function`.
    pub entry: String,
    /// Payload of the tool.
    pub payload: Value,
    /// Guarantees in force.
    pub guarantees: Vec<String>,
}

impl Order {
    /// Reads a whole input.
    ///
    /// # Errors
    /// One sentence: the reason for the refusal.
    pub fn read(input: &[u8], config: &Config) -> Result<Self, Refusal> {
        let choices = &config.choices;
        let input = choices.bom.strip(input);
        let request = Value::parse(input, config.limits.nesting_max, &choices.policy())?;
        if request.as_object().is_none() {
            return Err("a request is one object".into());
        }
        let member = |name: &str| request.get(name).filter(|value| **value != Value::Null);
        match request.get("protocol_version") {
            Some(Value::Number(number)) if number.as_f64() == 1.0 => {}
            _ => return Err("`protocol_version` has to be 1".into()),
        }
        if member("tool").and_then(Value::as_str).is_none_or(str::is_empty) {
            return Err("`tool` has to be a string that is not empty".into());
        }
        let entry = member("entry").and_then(Value::as_str).filter(|entry| is_entry(entry));
        let Some(entry) = entry else {
            return Err("`entry` has to be module:function, two dotted names".into());
        };
        let Some(payload) = member("payload").filter(|payload| payload.as_object().is_some()) else {
            return Err("`payload` has to be an object".into());
        };
        if member("trace_id").is_some_and(|trace_id| trace_id.as_text().is_none()) {
            return Err("`trace_id` has to be a string".into());
        }
        if member("sandbox").is_some_and(|sandbox| sandbox.as_bool().is_none()) {
            return Err("`sandbox` has to be true or false".into());
        }
        let guarantees = guarantees(member("capability_context"), config)?;
        let is_sandboxed = member("sandbox").and_then(Value::as_bool) == Some(true);
        if is_sandboxed && guarantees.is_empty() && choices.sandbox_unsupported == Unknown::Refuse {
            return Err("there is no sandbox but the guarantees".into());
        }
        Ok(Self { entry: entry.to_owned(), payload: payload.clone(), guarantees })
    }

    /// The call as JSON for the shim.
    pub fn text(&self, config: &Config) -> Vec<u8> {
        let mut out = b"{\"entry\":".to_vec();
        write_str(&mut out, &self.entry);
        out.extend_from_slice(b",\"payload\":");
        write_value(&mut out, &self.payload);
        out.extend_from_slice(b",\"guarantees\":[");
        for (at, name) in self.guarantees.iter().enumerate() {
            out.extend_from_slice(if at > 0 { b"," } else { b"" });
            write_str(&mut out, name);
        }
        let env_read = if config.choices.env_read_block == EnvRead::Refuse { "refuse" } else { "empty" };
        let caught = if config.choices.caught_block == Caught::Failure { "failure" } else { "success" };
        out.extend_from_slice(format!("],\"env_read\":\"{env_read}\",\"caught\":\"{caught}\"}}").as_bytes());
        out
    }
}

/// Guarantees in force: known ones that are true.
fn guarantees(context: Option<&Value>, config: &Config) -> Result<Vec<String>, Refusal> {
    let Some(context) = context else { return Ok(Vec::new()) };
    if context.as_object().is_none() {
        return Err("`capability_context` has to be an object".into());
    }
    let Some(given) = context.get("guarantees").filter(|given| **given != Value::Null) else {
        return Ok(Vec::new());
    };
    let given = given.as_object().ok_or("`guarantees` has to be an object")?;
    let mut names = Vec::new();
    for (name, value) in given {
        let is_asked = value.as_bool().ok_or("a guarantee has to be true or false")?;
        let known = config.guarantees.iter().find(|known| name == **known);
        match known {
            Some(known) if is_asked => names.push((*known).to_owned()),
            None if is_asked && config.choices.unknown_guarantee == Unknown::Refuse => {
                return Err(format!("nobody enforces the guarantee {:?}", name.to_lossy()).into());
            }
            _ => {}
        }
    }
    Ok(names)
}

/// True if a text is two dotted names with a colon between them.
pub(super) fn is_entry(text: &str) -> bool {
    let is_name = |part: &str| {
        let mut chars = part.chars();
        chars.next().is_some_and(|first| first.is_alphabetic() || first == '_')
            && chars.all(|char| char.is_alphanumeric() || char == '_')
    };
    let is_dotted = |text: &str| text.split('.').all(is_name);
    text.split_once(':').is_some_and(|(module, function)| is_dotted(module) && is_dotted(function))
}
