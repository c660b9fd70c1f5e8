//! Decodes the output of a runner and the bodies of a service, and judges their form.

use peerproof_engine::contract::face::{Frame, Reading};
use peerproof_engine::data::finding::Finding;
use peerproof_engine::data::json::{self, DecodeErrorKind, DecodeLimits, Json};
use peerproof_engine::data::transcript::Exit;

use super::{Message, NOISE, http};

/// Reads an absent output or body.
fn nothing(frame: &Frame<'_>, exit: Exit, own_status: Option<u16>) -> Reading<Message> {
    match exit {
        _ if own_status.is_some() => {
            own_status.map_or(Reading::Blank, |it| Reading::Message(Message::Status(it)))
        }
        _ if frame.status.is_some() && frame.is_due => {
            let got = format!("status {} and no body", frame.status.unwrap_or_default());
            Reading::Broken(Finding::new(http::ANSWER, "no_body", "one JSON object", got))
        }
        // No output; the judge reports how the process ended.
        Exit::Code(0) => Reading::Blank,
        exit => Reading::Message(Message::Ended(exit)),
    }
}

/// Clause, reason and expectation of a text that is no JSON.
fn undecodable(
    kind: &DecodeErrorKind,
    text: &[u8],
    alone: &'static str,
    is_over_http: bool,
) -> (&'static str, &'static str, &'static str) {
    let holds = |word: &str| contains(text, word);
    let expected = "one JSON object and nothing else";
    match kind {
        _ if holds(NOISE[1]) => ("PT-OUT-02", "tool_output", expected),
        _ if holds(NOISE[0]) => ("PT-OUT-01", "tool_output", expected),
        DecodeErrorKind::TrailingBytes => (alone, "more_output", expected),
        DecodeErrorKind::InvalidUtf8 if !is_over_http => ("PT-FRAME-06", "not_utf8", expected),
        _ if !text.starts_with(b"{") => (alone, "no_json", expected),
        DecodeErrorKind::UnexpectedEnd => ("PT-RES-06", "half_written", expected),
        DecodeErrorKind::UnexpectedByte { .. } if holds("NaN") || holds("Infinity") => {
            ("PT-RES-04", "no_json", "a failure, because JSON cannot represent the result")
        }
        _ => ("PT-REPLY-05", "no_json", "strict JSON"),
    }
}

fn contains(text: &[u8], word: &str) -> bool {
    String::from_utf8_lossy(text).contains(word)
}

/// Decodes the output of a runner, or the body of a reply.
pub(super) fn read(frame: &Frame<'_>) -> Reading<Message> {
    let text = json::trim(frame.bytes);
    let exit = frame.exit.unwrap_or(Exit::Code(0));
    // An error status need not come with a reply.
    let own_status = frame.status.filter(|status| !matches!(status, 200..=299));
    if text.is_empty() {
        return nothing(frame, exit, own_status);
    }
    let quoted = || String::from_utf8_lossy(frame.bytes);
    let broken = |clause, reason, expected: &str| {
        Reading::Broken(Finding::new(clause, reason, expected, format!("{exit}: {}", quoted())))
    };
    let holds = |word: &str| contains(text, word);
    let alone = if frame.status.is_some() { http::ANSWER } else { "PT-FRAME-05" };
    let decoded = match json::decode(text, &DecodeLimits::default()) {
        Ok(decoded) if decoded.value.as_object().is_some() => decoded,
        _ if own_status.is_some() && !holds(NOISE[0]) && !holds(NOISE[1]) => {
            return own_status.map_or(Reading::Blank, |it| Reading::Message(Message::Status(it)));
        }
        _ if frame.status.is_some() && !frame.is_due => {
            return Reading::Message(Message::Status(frame.status.unwrap_or_default()));
        }
        Ok(_) => return broken(alone, "no_object", "one JSON object"),
        Err(error) => {
            let (clause, reason, expected) = undecodable(&error.kind, text, alone, frame.status.is_some());
            return broken(clause, reason, expected);
        }
    };
    let reply = &decoded.value;
    let is_reply = reply.get("ok").and_then(Json::as_bool).is_some();
    if let Some(status) = frame.status.filter(|_| !frame.is_due && !is_reply) {
        return Reading::Message(Message::Status(status));
    }
    if own_status.is_some() && reply.get("ok").and_then(Json::as_bool).is_none() {
        return own_status.map_or(Reading::Blank, |it| Reading::Message(Message::Status(it)));
    }
    let broken = |clause, reason, expected: &str| match (broken(clause, reason, expected), own_status) {
        (_, Some(status)) if reply.get("ok").and_then(Json::as_bool) == Some(false) => {
            Reading::Message(Message::Status(status))
        }
        (Reading::Broken(wrong), _) if frame.status.is_some() => {
            Reading::Message(Message::Other { value: reply.clone(), wrong: Box::new(wrong) })
        }
        (reading, _) => reading,
    };
    let is_null = |name: &str| reply.get(name).is_none_or(Json::is_null);
    let version = reply.get("protocol_version");
    let has_version = match frame.status {
        Some(_) if version.is_none() => true,
        _ => version.and_then(Json::as_i64) == Some(1),
    };
    match reply.get("ok").and_then(Json::as_bool) {
        // A service may use one form for all replies; a reply to a handshake lacks a result.
        Some(true)
            if has_version
                && is_null("error")
                && reply.get("result").is_some()
                && !(is_null("result") && reply.get("supported_guarantees").is_some()) =>
        {
            match exit {
                Exit::Code(0) => Reading::Message(Message::Success {
                    result: reply.get("result").cloned().unwrap_or_default(),
                    lone_surrogates: decoded.facts.lone_surrogates,
                }),
                _ => broken("PT-FAIL-05", "status_of_success", "exit status 0 with `ok` true"),
            }
        }
        Some(false) => {
            let error = |name: &str| reply.get("error").and_then(|error| error.get(name));
            let text = |name: &str| error(name).and_then(Json::as_str);
            let reason = error("reason_code").filter(|reason| !reason.is_null());
            match (text("type").filter(|kind| !kind.is_empty()), text("message")) {
                (Some(kind), Some(message)) if has_version && is_null("result") => {
                    if reason.is_some_and(|reason| reason.as_str().is_none()) {
                        return broken(
                            "PT-REPLY-03",
                            "reason_code",
                            "`reason_code` a string, absent or null",
                        );
                    }
                    Reading::Message(Message::Failure {
                        kind: kind.to_owned(),
                        message: message.to_owned(),
                        reason: reason.and_then(Json::as_str).map(str::to_owned),
                        exit,
                    })
                }
                _ => broken(
                    "PT-REPLY-02",
                    "form_of_failure",
                    "`ok` false, `protocol_version` 1, `error` with `type` and `message`, `result` absent or null",
                ),
            }
        }
        _ => broken(
            "PT-REPLY-01",
            "form_of_success",
            "`ok` true or false, `protocol_version` 1, `result`, no `error`",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use include_dir::{Dir, include_dir};
    use peerproof_engine::data::schema::Schemas;

    static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/corpora/schemas");

    /// Clause that a reply breaks by its form.
    fn broken(text: &str, exit: Exit) -> Option<String> {
        let frame = Frame { bytes: text.as_bytes(), exit: Some(exit), status: None, is_due: true };
        match read(&frame) {
            Reading::Broken(finding) => Some(finding.clause.0),
            _ => None,
        }
    }

    #[test]
    fn replies_have_a_form_by_the_model_and_by_the_schema() {
        let schemas = Schemas::load_dir(&FILES).unwrap();
        for (text, clause) in [
            (r#"{"ok":true,"protocol_version":1,"result":null}"#, None),
            (r#"{"ok":true,"protocol_version":1.0,"result":7,"error":null,"x":1}"#, None),
            (
                r#"{"ok":false,"protocol_version":1,"error":{"type":"E","message":"","reason_code":null}}"#,
                None,
            ),
            (r#"{"ok":true,"protocol_version":1}"#, Some("PT-REPLY-01")),
            (r#"{"ok":true,"result":{}}"#, Some("PT-REPLY-01")),
            (r#"{"ok":1,"protocol_version":1,"result":{}}"#, Some("PT-REPLY-01")),
            (r#"{"ok":true,"protocol_version":1,"result":{},"error":{}}"#, Some("PT-REPLY-01")),
            (r#"{"ok":false,"protocol_version":1,"error":{"type":"","message":"m"}}"#, Some("PT-REPLY-02")),
            (r#"{"ok":false,"protocol_version":1,"error":{"type":"E"}}"#, Some("PT-REPLY-02")),
            (
                r#"{"ok":false,"protocol_version":"1","error":{"type":"E","message":"m"}}"#,
                Some("PT-REPLY-02"),
            ),
            (
                r#"{"ok":false,"protocol_version":1,"error":{"type":"E","message":"m"},"result":{}}"#,
                Some("PT-REPLY-02"),
            ),
            (r#"{"ok":false,"protocol_version":1,"error":{"type":"E","message":"m"},"result":null}"#, None),
            (
                r#"{"ok":false,"protocol_version":1,"error":{"type":"E","message":"m","reason_code":7}}"#,
                Some("PT-REPLY-03"),
            ),
        ] {
            assert_eq!(broken(text, Exit::Code(0)).as_deref(), clause, "{text}");
            if Schemas::enabled() {
                let objections = schemas.validate("reply", &text.parse().unwrap()).unwrap();
                assert_eq!(objections.is_empty(), clause.is_none(), "{text}: {objections:?}");
            }
        }
    }

    #[test]
    fn what_is_no_reply_is_told_apart() {
        let good = r#"{"ok":true,"protocol_version":1,"result":{}}"#;
        assert_eq!(broken(good, Exit::Code(3)).as_deref(), Some("PT-FAIL-05"));
        for (text, clause) in [
            (format!("{good}{good}"), "PT-FRAME-05"),
            (format!("ready\n{good}"), "PT-FRAME-05"),
            (format!("{} {good}", NOISE[0]), "PT-OUT-01"),
            (format!("{good}{}", NOISE[1]), "PT-OUT-02"),
            (good[..30].to_owned(), "PT-RES-06"),
            (good.replace("{}", "NaN"), "PT-RES-04"),
            (good.replace("{}}", "{},}"), "PT-REPLY-05"),
            ("[]".to_owned(), "PT-FRAME-05"),
        ] {
            assert_eq!(broken(&text, Exit::Code(0)).as_deref(), Some(clause), "{text}");
        }
    }
}
