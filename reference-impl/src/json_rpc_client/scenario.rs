//! The scenario of a client.

use crate::json::{Policy, Value};
use crate::json_rpc::AuthConfig;
use crate::scenario::ScenarioError;

/// Levels of nesting of a scenario.
const NESTING_MAX: usize = 256;

/// Retries of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// Largest number of attempts, including the first.
    pub max_attempts: u32,
    /// Middle of the first delay's range, in ms.
    pub base_ms: u64,
}

/// The default is one attempt.
impl Default for Retry {
    fn default() -> Self {
        Self { max_attempts: 1, base_ms: 100 }
    }
}

/// One call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallSpec {
    /// Its name in the results.
    pub name: String,
    /// Method to call.
    pub method: String,
    /// Params, if any.
    pub params: Option<Value>,
    /// Time limit for all attempts, in ms.
    pub timeout_ms: u64,
    /// Retries.
    pub retry: Retry,
    /// True for a notification, which has no response.
    pub notify: bool,
    /// Name of the batch in which it is sent.
    pub batch: Option<String>,
    /// Indices of the calls that have to finish first.
    pub after: Vec<usize>,
}

/// All calls and their common settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scenario {
    /// Key for signing requests.
    pub auth: Option<AuthConfig>,
    /// The calls, in the order of the file.
    pub calls: Vec<CallSpec>,
}

impl Scenario {
    /// Reads a scenario: one JSON object.
    ///
    /// # Errors
    /// A sentence that names the missing or invalid member.
    pub fn parse(text: &[u8]) -> Result<Self, ScenarioError> {
        let value = Value::parse(text, NESTING_MAX, &Policy::default())?;
        let auth = match value.get("auth") {
            None | Some(Value::Null) => None,
            Some(auth) => {
                let key = auth.get("key").and_then(Value::as_str).ok_or(ScenarioError::NoKey)?;
                let key_id = auth.get("key_id").and_then(Value::as_str).map(str::to_owned);
                Some(AuthConfig { key: key.as_bytes().to_vec(), key_id })
            }
        };
        let usual = retry(value.get("retry"), Retry::default())?;
        let listed = value.get("calls").and_then(Value::as_array).ok_or(ScenarioError::NoCalls)?;
        let name_of = |call: &Value| call.get("ref").and_then(Value::as_str).map(str::to_owned);
        let names: Vec<Option<String>> = listed.iter().map(name_of).collect();
        let mut calls = Vec::with_capacity(listed.len());
        for (at, (call, name)) in listed.iter().zip(&names).enumerate() {
            let name = name.clone().ok_or(ScenarioError::NoRef(at))?;
            if names.iter().take(at).flatten().any(|other| *other == name) {
                return Err(ScenarioError::SameRef(name));
            }
            let wrong = |member| ScenarioError::Lacks { call: name.clone(), member };
            let method =
                call.get("method").and_then(Value::as_str).ok_or_else(|| wrong("method"))?.to_owned();
            let timeout_ms =
                number(call.get("timeout_ms")).ok_or_else(|| wrong("timeout_ms that is a whole number"))?;
            let mut after = Vec::new();
            for other in call.get("after").and_then(Value::as_array).unwrap_or_default() {
                let other = other.as_str().ok_or_else(|| wrong("list of refs in `after`"))?;
                let place = names.iter().position(|name| name.as_deref() == Some(other));
                after.push(place.ok_or_else(|| {
                    let after = other.to_owned();
                    ScenarioError::NoSuchCall { call: name.clone(), after }
                })?);
            }
            calls.push(CallSpec {
                method,
                params: call.get("params").cloned(),
                timeout_ms,
                retry: retry(call.get("retry"), usual)?,
                notify: call.get("notify").and_then(Value::as_bool).unwrap_or_default(),
                batch: call.get("batch").and_then(Value::as_str).map(str::to_owned),
                after,
                name,
            });
        }
        Ok(Self { auth, calls })
    }
}

fn number(value: Option<&Value>) -> Option<u64> {
    u64::try_from(value?.as_i64()?).ok()
}

fn retry(value: Option<&Value>, usual: Retry) -> Result<Retry, ScenarioError> {
    let Some(value) = value else { return Ok(usual) };
    let member = |name: &'static str, usual: u64| match value.get(name) {
        None => Ok(usual),
        some => number(some).ok_or(ScenarioError::Retry(name)),
    };
    let attempts = member("max_attempts", u64::from(usual.max_attempts))?;
    Ok(Retry {
        max_attempts: u32::try_from(attempts).unwrap_or(u32::MAX),
        base_ms: member("base_ms", usual.base_ms)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_take_over_what_holds_of_all() {
        let text = br#"{"retry":{"max_attempts":4,"base_ms":10},"calls":[
            {"ref":"a","method":"m","timeout_ms":5,"params":[1]},
            {"ref":"b","method":"m","timeout_ms":5,"after":["a"],"retry":{"max_attempts":2},"notify":true}]}"#;
        let scenario = Scenario::parse(text).unwrap();
        assert_eq!(scenario.calls[0].retry, Retry { max_attempts: 4, base_ms: 10 });
        assert_eq!(scenario.calls[1].retry, Retry { max_attempts: 2, base_ms: 10 });
        assert_eq!((scenario.calls[1].after.as_slice(), scenario.calls[1].notify), (&[0][..], true));
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        for (text, word) in [
            ("[]", "list of calls"),
            (r#"{"calls":[{}]}"#, "no ref"),
            (r#"{"calls":[{"ref":"a"}]}"#, "no method"),
            (r#"{"calls":[{"ref":"a","method":"m"}]}"#, "timeout_ms"),
            (r#"{"calls":[{"ref":"a","method":"m","timeout_ms":1,"after":["b"]}]}"#, "which is no call"),
            (
                r#"{"calls":[{"ref":"a","method":"m","timeout_ms":1},{"ref":"a","method":"m","timeout_ms":1}]}"#,
                "two",
            ),
            (r#"{"auth":{},"calls":[]}"#, "no key"),
        ] {
            assert!(Scenario::parse(text.as_bytes()).unwrap_err().to_string().contains(word), "{text}");
        }
    }
}
