//! Settings of connections for protocols built on JSON-RPC: steps that open and end a session, and answers to
//! requests of the server.

use serde_json::{Value, json};

use peerproof_engine::data::blame::Misconfigured;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{CWD, ROOT_URI};
use peerproof_engine::drive::peer::fill_template;

/// Key of the steps that open a session.
pub const OPENING: &str = "opening";
/// Key of the steps that end a session.
pub const CLOSING: &str = "closing";
/// Key of the capabilities that the client declares.
pub const CLIENT_CAPABILITIES: &str = "client_capabilities";
/// Key of the answers to requests of the server.
pub const SERVER_REQUESTS: &str = "server_requests";

/// Checks the form of a setting.
///
/// # Errors
/// Describes the expected form.
pub fn check(name: &str, value: &Value) -> Result<(), Misconfigured> {
    let only = |value: &Value, known: &[&str]| {
        let is_known = |name: &String| known.contains(&name.as_str());
        value.as_object().is_some_and(|members| !members.is_empty() && members.keys().all(is_known))
    };
    let is_step = |step: &Value| match step.get("send") {
        Some(message) => {
            let awaits =
                step.get("await").is_none_or(|it| ["result", "answer", "none"].iter().any(|word| it == word));
            let is_message = message.is_object() && filled(message, 1, "").is_ok();
            only(step, &["send", "await"]) && is_message && awaits
        }
        None => only(step, &["wait_ms"]) && step["wait_ms"].is_u64(),
    };
    let is_answer = |answer: &Value| {
        let is_error = |error: &Value| error["code"].is_i64() && error["message"].is_string();
        answer == "ignore"
            || only(answer, &["result"])
            || only(answer, &["error"]) && is_error(&answer["error"])
    };
    let (fits, form) = match name {
        OPENING | CLOSING => (
            value.as_array().is_some_and(|steps| steps.iter().all(is_step)),
            "a list of { send = { … }, await = \"result\", \"answer\" or \"none\" } and { wait_ms = number }, with no other \
             placeholders than {id}, {pid}, {cwd}, {root_uri} and {version}",
        ),
        SERVER_REQUESTS => (
            value.as_object().is_some_and(|all| all.values().all(is_answer)),
            "a table of method = { result = … }, { error = { code = number, message = \"…\" } } or \"ignore\"",
        ),
        _ => (value.is_object(), "a table"),
    };
    if fits { Ok(()) } else { Err(format!("{name:?} must be {form}, not {value}").into()) }
}

/// Mark around the name of a variable: no character of any text.
const MARK: char = '\u{FFFF}';

/// The line of a step with its placeholders filled in. The working folder of the server is known when the line is written.
///
/// # Errors
/// There is another placeholder.
pub fn filled(message: &Value, id: u64, version: &str) -> Result<Payload, Misconfigured> {
    let later = |name: &str| json!(format!("{MARK}{name}{MARK}"));
    let values = [
        ("id", json!(id)),
        ("pid", json!(std::process::id())),
        ("version", json!(version)),
        (CWD, later(CWD)),
        (ROOT_URI, later(ROOT_URI)),
    ];
    let text = fill_template(message, &values)?.to_string() + "\n";
    let mut line = Payload::default();
    for (at, part) in text.split(MARK).enumerate() {
        line = if at % 2 == 0 { line.then(Payload::text(part)) } else { line.var(part) };
    }
    Ok(line)
}

/// Configured answer to a request of the server: a result, an error object, or null without either. `None` if not
/// configured.
pub fn answer(facts: &Facts, method: &str) -> Option<Value> {
    let answer = facts.features.get(SERVER_REQUESTS)?.get(method)?;
    Some(answer.get("result").or_else(|| answer.get("error")).cloned().unwrap_or(Value::Null))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_filled_in_when_the_line_is_written() {
        let message = json!({ "id": "{id}", "at": "{cwd}/x", "uri": "{root_uri}" });
        let line = filled(&message, 7, "").unwrap();
        assert_eq!(line.variables().collect::<Vec<_>>(), [CWD, ROOT_URI]);
        let folder =
            [(CWD.to_owned(), "/a".to_owned()), (ROOT_URI.to_owned(), "file:///a".to_owned())].into();
        let bytes = line.expand(&folder).unwrap();
        let sent: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(sent, json!({ "id": 7, "at": "/a/x", "uri": "file:///a" }));
    }

    #[test]
    fn settings_have_their_form() {
        let good = [
            (OPENING, r#"[{"send":{"method":"a"},"await":"none"},{"wait_ms":5},{"send":{"id":"{id}"}}]"#),
            (SERVER_REQUESTS, r#"{"a":{"result":{}},"b":{"error":{"code":1,"message":"m"}},"c":"ignore"}"#),
            (CLIENT_CAPABILITIES, r#"{"roots":{}}"#),
        ];
        for (name, text) in good {
            assert_eq!(check(name, &text.parse().unwrap()), Ok(()), "{name} {text}");
        }
        let bad = [
            (OPENING, r#"[{"send":{},"await":"all"}]"#),
            (CLOSING, r#"[{"wait_ms":5,"send":{}}]"#),
            (CLOSING, r#"{"wait_ms":5}"#),
            (OPENING, r#"[{"send":{"method":"{folder}"}}]"#),
            (SERVER_REQUESTS, r#"{"a":{}}"#),
            (SERVER_REQUESTS, r#"{"a":{"error":{"code":"1"}}}"#),
            (CLIENT_CAPABILITIES, "[]"),
        ];
        for (name, text) in bad {
            assert!(check(name, &text.parse().unwrap()).is_err(), "{name} {text}");
        }
    }
}
