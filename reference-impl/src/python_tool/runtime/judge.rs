//! Judgement of replies.

use super::{Config, Ready, Target};
use crate::json::Value;
use crate::machine::ChildExit;

/// End of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The program could not be started, or the connection failed.
    Failed,
    /// No complete reply came in time.
    TimedOut,
    /// The reply is over the size limit, or not valid HTTP.
    Unreadable,
    /// The program exited, with this output.
    Exited(ChildExit, Vec<u8>),
    /// The server replied, with this status and body.
    Replied(u16, Vec<u8>),
}

/// Outcome of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// A result.
    Result(Value),
    /// An error reported by the runner.
    ToolError(Value),
    /// Another outcome, with a reason.
    Other(&'static str, String),
}

impl Outcome {
    fn other(word: &'static str, why: &str) -> Self {
        Self::Other(word, why.to_owned())
    }
}

/// Kind of a reply.
enum Reply {
    Result(Value),
    Failure(Value),
    Wrong(&'static str),
}

pub(super) fn judge(ready: &Ready, config: &Config, end: End) -> Outcome {
    let read = |text: &[u8]| read(text, config, matches!(ready.target, Target::Local(_)));
    match end {
        End::Failed => Outcome::other("unavailable", "nothing answers there"),
        End::TimedOut => Outcome::other("timeout", "its time is over"),
        End::Unreadable => Outcome::other("invalid", "the reply is too long or no HTTP"),
        End::Exited(ChildExit::Code(0), text) | End::Replied(200, text) => match read(&text) {
            Reply::Result(result) => Outcome::Result(result),
            Reply::Failure(error) => Outcome::ToolError(error),
            Reply::Wrong(why) => Outcome::other("invalid", why),
        },
        End::Exited(exit, text) => match read(&text) {
            Reply::Failure(error) => Outcome::ToolError(error),
            _ => Outcome::Other("crash", format!("it ended with {exit:?}")),
        },
        End::Replied(status, text) => match read(&text) {
            Reply::Failure(error) => Outcome::ToolError(error),
            _ => Outcome::Other("unavailable", format!("status {status}")),
        },
    }
}

fn read(text: &[u8], config: &Config, is_local: bool) -> Reply {
    let Ok(reply) = Value::parse(text, config.limits.nesting_max, &config.choices.policy()) else {
        return Reply::Wrong("it is no JSON");
    };
    if reply.as_object().is_none() {
        return Reply::Wrong("it is no object");
    }
    let is_one = |value: &Value| matches!(value, Value::Number(number) if number.as_f64() == 1.0);
    if !reply.get("protocol_version").map_or(!is_local, is_one) {
        return Reply::Wrong("`protocol_version` is not 1");
    }
    let error = reply.get("error").filter(|error| **error != Value::Null);
    match (reply.get("ok").and_then(Value::as_bool), reply.get("result"), error) {
        (Some(true), Some(result), None) => Reply::Result(result.clone()),
        (Some(true), _, Some(_)) => Reply::Wrong("success comes with an error"),
        (Some(true), None, None) => Reply::Wrong("there is no `result`"),
        (Some(false), None | Some(Value::Null), Some(error)) if is_proper(error) => {
            Reply::Failure(error.clone())
        }
        (Some(false), _, _) => Reply::Wrong("the failure has no proper `error`"),
        (None, ..) => Reply::Wrong("`ok` is no boolean"),
    }
}

fn is_proper(error: &Value) -> bool {
    let text = |name: &str| error.get(name).and_then(Value::as_text);
    text("type").is_some_and(|kind| !kind.as_bytes().is_empty())
        && text("message").is_some()
        && error.get("reason_code").is_none_or(|reason| *reason == Value::Null || reason.as_text().is_some())
}

/// True if the reply to a handshake confirms all required guarantees.
pub(super) fn assured(ready: &Ready, config: &Config, end: &End) -> bool {
    let Some(reply) = handshake(config, end) else { return false };
    let supported = reply.get("supported_guarantees");
    let is_listed = |name: &String| {
        let own = supported.and_then(|supported| supported.get(name));
        own.and_then(Value::as_bool) == Some(true)
    };
    matches!(end, End::Replied(200, _))
        && reply.get("ok").and_then(Value::as_bool) == Some(true)
        && reply.get("enforcement").and_then(Value::as_str) == Some("enforced")
        && ready.required.iter().all(is_listed)
}

/// Reply to a handshake, if it is JSON.
pub(super) fn handshake(config: &Config, end: &End) -> Option<Value> {
    let End::Replied(_, text) = end else { return None };
    Value::parse(text, config.limits.nesting_max, &config.choices.policy()).ok()
}
