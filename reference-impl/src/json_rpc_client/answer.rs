//! Responses of a server, as a client reads them.

use crate::json::Value;

/// `data.type` of a -32000 that may be retried.
const TIMEOUT: &str = "TIMEOUT";
/// Codes that may always be retried: resource unavailable, rate limit exceeded.
const TRANSIENT: [i64; 2] = [-32001, -32002];
/// Code for a failed execution; `data.type` gives the reason.
const EXECUTION: i64 = -32000;

/// Error response to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorAnswer {
    /// The error object.
    pub error: Value,
    /// True if a retry may succeed.
    pub transient: bool,
    /// `data.retry_after_ms`.
    pub retry_after_ms: Option<u64>,
}

/// Content of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Success.
    Result(Value),
    /// Failure.
    Error(ErrorAnswer),
    /// It is not a valid response.
    Invalid,
}

/// Reader of responses.
pub trait Reader: Send {
    /// Reads `response`, an object with the id of a call.
    fn read(&self, response: &Value) -> Answer;
}

/// The correct reader.
#[derive(Debug)]
pub struct StrictReader;

impl Reader for StrictReader {
    fn read(&self, response: &Value) -> Answer {
        if response.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Answer::Invalid;
        }
        match (response.get("result"), response.get("error")) {
            (Some(result), None) => Answer::Result(result.clone()),
            (None, Some(error)) => error_answer(error).map_or(Answer::Invalid, Answer::Error),
            _ => Answer::Invalid,
        }
    }
}

fn error_answer(error: &Value) -> Option<ErrorAnswer> {
    let code = error.get("code")?.as_i64()?;
    error.get("message")?.as_text()?;
    let data = error.get("data");
    let kind = data.and_then(|data| data.get("type")).and_then(Value::as_str);
    let asked = data.and_then(|data| data.get("retry_after_ms")).and_then(Value::as_i64);
    Some(ErrorAnswer {
        error: error.clone(),
        transient: TRANSIENT.contains(&code) || code == EXECUTION && kind == Some(TIMEOUT),
        retry_after_ms: asked.and_then(|ms| u64::try_from(ms).ok()),
    })
}
