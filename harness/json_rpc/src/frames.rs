//! Decoding of a server's standard output: responses, arrays of responses, and other lines.

use std::sync::OnceLock;

use include_dir::include_dir;

use peerproof_engine::contract::face::{Frame, Reading};
use peerproof_engine::data::finding::{Finding, Repair};
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::payload::shorten;
use peerproof_engine::data::schema::Schemas;

/// True for a request or notification that the server sends. It is not a response and is not judged.
pub fn is_call(value: &Json) -> bool {
    value.get("method").is_some_and(|method| method.as_str().is_some())
        && value.get("result").is_none()
        && value.get("error").is_none()
}

/// Reading of a frame that is not JSON: an answer if it resembles a message, else other output.
pub fn undecodable<M>(frame: &Frame<'_>, error: &str) -> Reading<M> {
    let got = format!("{error}: {}", shorten(&String::from_utf8_lossy(frame.bytes), 240));
    let not_json = |expected| Finding::new("RPC-MSG-05", "reply_not_json", expected, got.clone());
    let only_messages = "only JSON-RPC messages, one per line";
    if frame.status.is_some() {
        Reading::Garbled(not_json("a reply whose body is a JSON-RPC message"))
    } else if resembles_message(frame.bytes) {
        Reading::Garbled(not_json(only_messages))
    } else {
        Reading::Broken(Finding::new("RPC-FRAME-05", "other_output", only_messages, got))
    }
}

/// True if text begins as a message or an array of messages does.
pub fn resembles_message(text: &[u8]) -> bool {
    [&b"{"[..], b"[{"].iter().any(|start| text.trim_ascii_start().starts_with(start))
}

/// The JSON values in the complete lines of `out`; looks at `most` lines at most.
pub fn messages(out: &[u8], most: usize) -> Vec<Json> {
    let end = out.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let lines = out[..end].split_inclusive(|byte| *byte == b'\n').take(most);
    lines.filter_map(message).collect()
}

/// The JSON value of a line, with or without its line feed. `None` if it is not JSON.
pub fn message(line: &[u8]) -> Option<Json> {
    Some(json::decode(line.trim_ascii_end(), &DecodeLimits::default()).ok()?.value)
}

/// Faults in the form of a response object, each with its own clause.
pub fn violations(response: &Json) -> Vec<Finding> {
    let mut findings = Vec::new();
    let text = || shorten(&response.to_text(), 240).into_owned();
    let mut add = |clause: &str, reason: &str, expected: &str, repair: Repair| {
        findings.push(Finding::new(clause, reason, expected, text()).repaired_by(repair));
    };
    let other = Repair::other;
    if !matches!(response, Json::Object(_)) {
        add("RPC-MSG-05", "not_an_object", "a response that is an object", other(""));
        return findings;
    }
    if response.get("jsonrpc").and_then(Json::as_str) != Some("2.0") {
        add(
            "RPC-MSG-01",
            "wrong_version",
            "`jsonrpc` is the string \"2.0\"",
            Repair::set("/jsonrpc", "\"2.0\""),
        );
    }
    match (response.get("result"), response.get("error")) {
        (Some(_), Some(_)) => {
            add("RPC-MSG-02", "result_and_error", "either `result` or `error`, never both", other(""));
        }
        (None, None) => add("RPC-MSG-02", "neither", "either `result` or `error`", other("/result")),
        _ => {}
    }
    match response.get("id") {
        None => {
            let expected = "a response with `id`; null if the id of the request is unreadable";
            add("RPC-MSG-03", "id_missing", expected, other("/id"));
        }
        Some(id) if !is_no_id(id) => {}
        Some(_) => add("RPC-MSG-03", "id_type", "`id` is a string, a number or null", other("/id")),
    }
    if let Some(error) = response.get("error").filter(|_| response.get("result").is_none()) {
        let code = error.get("code").and_then(Json::as_number);
        if !matches!(error, Json::Object(_)) {
            add("RPC-MSG-04", "error_shape", "`error` is an object", other("/error"));
        } else if !code.is_some_and(peerproof_engine::data::json::Number::is_integral) {
            add("RPC-MSG-04", "error_code", "`error.code` is an integer", other("/error/code"));
        } else if error.get("message").and_then(Json::as_str).is_none() {
            add("RPC-MSG-04", "error_message", "`error.message` is a string", other("/error/message"));
        }
    }
    // The schema is a second opinion, used only if no rule found a fault.
    if findings.is_empty() {
        findings.extend(schema_violation(response));
    }
    findings
}

/// True for a value whose type no id has.
pub(crate) fn is_no_id(value: &Json) -> bool {
    !matches!(value, Json::String(_) | Json::Number(_) | Json::Null)
}

/// First fault that the JSON Schema of a response finds.
fn schema_violation(response: &Json) -> Option<Finding> {
    static SCHEMAS: OnceLock<Schemas> = OnceLock::new();
    if !Schemas::enabled() {
        return None;
    }
    let schemas = SCHEMAS.get_or_init(|| {
        let files = include_dir!("$CARGO_MANIFEST_DIR/corpora/schemas");
        Schemas::load_dir(&files)
            .unwrap_or_else(|error| unreachable!("corpora/json_rpc/schemas do not load: {error}"))
    });
    // A missing schema would be a fault of the harness; a test shows that it is there.
    let violations = schemas.validate("response", response).ok()?;
    let violation = violations.first()?;
    let got = format!("at {:?}: {}", violation.instance_path, violation.message);
    let expected = "a response that conforms to the JSON Schema `response`";
    let repair = Repair::other(violation.instance_path.to_string());
    Some(Finding::new("RPC-MSG-05", "schema", expected, got).repaired_by(repair))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reasons(response: &str) -> Vec<String> {
        violations(&response.parse().unwrap()).into_iter().map(|finding| finding.reason).collect()
    }

    #[test]
    fn each_rule_has_its_reason() {
        for (response, reason) in [
            (r#"{"result":1,"id":1}"#, "wrong_version"),
            (r#"{"jsonrpc":2.0,"result":1,"id":1}"#, "wrong_version"),
            (r#"{"jsonrpc":"2.0","result":1,"error":null,"id":1}"#, "result_and_error"),
            (r#"{"jsonrpc":"2.0","id":1}"#, "neither"),
            (r#"{"jsonrpc":"2.0","result":1}"#, "id_missing"),
            (r#"{"jsonrpc":"2.0","result":1,"id":[1]}"#, "id_type"),
            (r#"{"jsonrpc":"2.0","error":"e","id":1}"#, "error_shape"),
            (r#"{"jsonrpc":"2.0","error":{"code":"1","message":"m"},"id":1}"#, "error_code"),
            (r#"{"jsonrpc":"2.0","error":{"code":1.5,"message":"m"},"id":1}"#, "error_code"),
            (r#"{"jsonrpc":"2.0","error":{"code":1},"id":1}"#, "error_message"),
            ("[]", "not_an_object"),
        ] {
            assert_eq!(reasons(response), [reason], "{response}");
        }
    }

    #[test]
    fn the_schema_sees_what_no_rule_sees() {
        assert!(
            !Schemas::enabled()
                || schema_violation(&r#"{"jsonrpc":"2.0","id":1}"#.parse().unwrap()).is_some()
        );
    }

    #[test]
    fn good_responses_break_no_rule() {
        for response in [
            r#"{"jsonrpc":"2.0","result":null,"id":null}"#,
            r#"{"id":"a","result":{},"jsonrpc":"2.0","more":1}"#,
            r#"{"jsonrpc":"2.0","error":{"code":-32600.0,"message":"","data":[]},"id":1.5}"#,
        ] {
            assert_eq!(reasons(response), [""; 0], "{response}");
        }
    }
}
