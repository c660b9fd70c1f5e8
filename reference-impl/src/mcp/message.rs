//! Messages: from a JSON value to a request, notification or response, and back.

use super::choices::{Choices, FractionalId};
use crate::json::{Text, Value};
use crate::json_rpc;

/// An error of the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// JSON-RPC error code.
    pub code: i64,
    /// Explanation in one sentence.
    pub message: String,
    /// Member `data`, if any.
    pub data: Option<Value>,
}

impl Failure {
    /// An error without `data`.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Creates a -32600 with its message.
    pub(crate) fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(INVALID_REQUEST, message)
    }

    /// Creates a -32602 with its message.
    pub(crate) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }
}

impl From<json_rpc::Failure> for Failure {
    fn from(failure: json_rpc::Failure) -> Self {
        Self::new(failure.kind.code().into(), failure.details)
    }
}

/// The message is not a request.
pub(crate) const INVALID_REQUEST: i64 = -32600;
/// No method has this name.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
/// The params do not fit the method.
pub(crate) const INVALID_PARAMS: i64 = -32602;
/// No resource has this uri.
pub(crate) const RESOURCE_NOT_FOUND: i64 = -32002;

/// Result or error of a request.
pub type Outcome = Result<Value, Failure>;

/// One message of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// A message that must be answered.
    Request {
        /// String or number.
        id: Value,
        /// Name of the method.
        method: Text,
        /// An object; empty if the member is absent or null.
        params: Value,
        /// True if the member `params` is present.
        has_params: bool,
    },
    /// A message without an answer.
    Notification {
        /// Name of the method.
        method: Text,
        /// An object; `None` for anything else.
        params: Option<Value>,
    },
    /// Response to a request of the server: the whole object.
    Response(Value),
    /// Invalid message, with the error and the id for its answer.
    Malformed(Failure, Value),
    /// Invalid message that gets no answer.
    Dropped,
}

/// Reads one message.
pub(super) fn read(value: Value, choices: &Choices) -> Message {
    let refuse = |why: &str, id: Value| Message::Malformed(Failure::invalid_request(why), id);
    if value.as_object().is_none() {
        return refuse("a message is an object", Value::Null);
    }
    let Value::Object(members) = &value else { return Message::Dropped };
    let find = |name: &str| members.iter().find(|(key, _)| key == name).map(|(_, value)| value);
    let is_two = find("jsonrpc").and_then(Value::as_str) == Some("2.0");
    let method = find("method").map(Value::as_text);
    let params = find("params");
    let Some(id) = find("id") else {
        return match method {
            Some(Some(method)) => {
                let params = match params {
                    None | Some(Value::Null) => Some(Value::Object(Vec::new())),
                    Some(params) => params.as_object().map(|_| params.clone()),
                };
                Message::Notification { method: method.clone(), params }
            }
            _ => refuse("a message has a method or an id", Value::Null),
        };
    };
    if method.is_none() && (find("result").is_some() || find("error").is_some()) {
        return Message::Response(value);
    }
    let id = match id {
        Value::String(_) => id.clone(),
        Value::Number(number) if number.as_i64().is_none() && number.as_str().contains(['.', 'e', 'E']) => {
            match choices.fractional_id {
                FractionalId::Echo => id.clone(),
                FractionalId::Refuse => return refuse("id is no integer", Value::Null),
                FractionalId::Silent => return Message::Dropped,
            }
        }
        Value::Number(_) => id.clone(),
        _ => return refuse("id is neither a string nor a number", Value::Null),
    };
    let Some(Some(method)) = method else { return refuse("method is not a string", id) };
    if !is_two {
        return refuse("jsonrpc is not \"2.0\"", id);
    }
    let (params, has_params) = match params {
        None | Some(Value::Null) => (Value::Object(Vec::new()), false),
        Some(params @ Value::Object(_)) => (params.clone(), true),
        Some(_) => return refuse("params are not an object", id),
    };
    Message::Request { id, method: method.clone(), params, has_params }
}

/// Answer to the request with this id.
pub(super) fn response(id: Value, outcome: Outcome) -> Value {
    let (name, value) = match outcome {
        Ok(result) => ("result", result),
        Err(Failure { code, message, data }) => {
            let mut error = vec![("code".into(), code.into()), ("message".into(), message.into())];
            error.extend(data.map(|data| ("data".into(), data)));
            ("error", Value::Object(error))
        }
    };
    [("jsonrpc", "2.0".into()), ("id", id), (name, value)].into()
}

/// A notification of the server.
pub(crate) fn notification(method: &str, params: Value) -> Value {
    [("jsonrpc", "2.0".into()), ("method", method.into()), ("params", params)].into()
}

/// A request of the server.
pub(super) fn request(id: Value, method: &str, params: Value) -> Value {
    [("jsonrpc", "2.0".into()), ("id", id), ("method", method.into()), ("params", params)].into()
}
