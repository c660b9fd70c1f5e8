//! Mutants that misjudge replies.

use super::super::{End, Outcome, Target};
use super::Change::{
    Both, Config as Told, End as Ends, Line, Outcome as Comes, Parts as Made, Reply, Status,
};
use super::{Mutant, each, has, judge, member, of, parsed, with_text};
use crate::envelope::{get, number, set};
use crate::envelope_caller::mutants::Fault;
use crate::json::{ErrorKind, Value};
use crate::machine::ChildExit;
use crate::mutant::carrier;

pub(super) const MUTANTS: &[Mutant] = &[
    of(
        "runtime-forgets-crashes",
        &["PT-RT-01"],
        "Of a crash nothing is written.",
        Made(|parts| {
            parts.text = |text| if has(&text, "\"outcome\":\"crash\"") { Vec::new() } else { text };
        }),
    ),
    of(
        "runtime-tells-twice",
        &["PT-RT-01"],
        "Each call has two lines.",
        Made(|parts| {
            parts.text = |text| [text.as_slice(), &text].concat();
        }),
    ),
    of(
        "runtime-tells-in-single-quotes",
        &["PT-RT-01"],
        "Lines of crashes are no JSON.",
        Made(|parts| {
            parts.text = |text| match has(&text, "\"outcome\":\"crash\"") {
                true => String::from_utf8_lossy(&text).replace('"', "'").into_bytes(),
                false => text,
            };
        }),
    ),
    of("runtime-exits-1", &["PT-RT-02"], "It exits with status 1.", Status(|status| status.max(1))),
    of(
        "runtime-tells-no-message",
        &["PT-RT-03"],
        "Errors of its own have an empty message.",
        Line(|line| {
            if get(line, "outcome") != Some(&Value::from("tool_error"))
                && let Some(Value::Object(error)) = member(line, "error")
            {
                set(error, "message", Value::from(""));
            }
        }),
    ),
    of(
        "runtime-takes-success-for-invalid",
        &["PT-RT-04"],
        "A local reply is invalid.",
        Ends(|_, end| match end {
            End::Exited(ChildExit::Code(0), _) => End::Unreadable,
            other => other,
        }),
    ),
    of(
        "runtime-takes-200-for-unavailable",
        &["PT-RT-05"],
        "A service's reply is no reply.",
        Ends(|_, end| match end {
            End::Replied(200, _) => End::Failed,
            other => other,
        }),
    ),
    of(
        "runtime-takes-any-exit",
        &["PT-RT-06"],
        "A reply counts whatever the exit status.",
        Ends(|_, end| match end {
            End::Exited(_, text) => End::Exited(ChildExit::Code(0), text),
            other => other,
        }),
    ),
    of(
        "runtime-takes-crashes-for-invalid",
        &["PT-RT-06"],
        "A crash without output is invalid.",
        Ends(|_, end| match end {
            End::Exited(exit, text) if exit != ChildExit::Code(0) && text.is_empty() => End::Unreadable,
            other => other,
        }),
    ),
    of(
        "runtime-takes-any-status",
        &["PT-RT-07"],
        "A reply counts whatever the HTTP status.",
        Ends(|_, end| match end {
            End::Replied(_, body) => End::Replied(200, body),
            other => other,
        }),
    ),
    of(
        "runtime-takes-201-for-200",
        &["PT-RT-07"],
        "Any status from 200 to 299 is success.",
        Ends(|_, end| match end {
            End::Replied(200..300, body) => End::Replied(200, body),
            other => other,
        }),
    ),
    of(
        "runtime-takes-the-first-object",
        &["PT-RT-08"],
        "What follows the first object is dropped.",
        Ends(|_, end| {
            with_text(end, |text| match parsed(&text) {
                Err((ErrorKind::Trailing, at)) => text[..at].to_vec(),
                _ => text,
            })
        }),
    ),
    of(
        "runtime-takes-the-last-line",
        &["PT-RT-08"],
        "What stands before the last line is dropped.",
        Ends(|_, end| {
            with_text(end, |text| {
                let last = text.split(|byte| *byte == b'\n').rfind(|line| !line.is_empty());
                last.map(<[u8]>::to_vec).unwrap_or_default()
            })
        }),
    ),
    of(
        "runtime-repairs-utf8",
        &["PT-RT-08"],
        "Bytes that are no UTF-8 are replaced.",
        Ends(|_, end| with_text(end, |text| String::from_utf8_lossy(&text).into_owned().into_bytes())),
    ),
    of(
        "runtime-completes-what-is-cut",
        &["PT-RT-08"],
        "A cut object is closed.",
        Ends(|_, end| {
            with_text(end, |text| {
                let close = |end: &str| [text.as_slice(), end.as_bytes()].concat();
                let whole =
                    ["", "}", "\"}", "}}", "\"}}"].map(close).into_iter().find(|it| parsed(it).is_ok());
                whole.unwrap_or(text)
            })
        }),
    ),
    of(
        "runtime-takes-what-is-true-enough",
        &["PT-RT-09"],
        "`ok` may be 1 or \"true\".",
        Reply(|_, reply| {
            if let Some(Value::Number(_) | Value::String(_)) = get(reply, "ok") {
                set(reply, "ok", Value::Bool(true));
            }
        }),
    ),
    of(
        "runtime-needs-no-ok",
        &["PT-RT-09"],
        "Without `ok` a result is success.",
        Reply(|_, reply| {
            if get(reply, "ok").is_none_or(|ok| *ok == Value::Null) {
                set(reply, "ok", Value::Bool(true));
            }
        }),
    ),
    of(
        "runtime-needs-no-result",
        &["PT-RT-10"],
        "Without `result` it is null.",
        Reply(|_, reply| {
            if get(reply, "result").is_none() && get(reply, "error").is_none() {
                set(reply, "result", Value::Null);
            }
        }),
    ),
    of(
        "runtime-takes-null-for-nothing",
        &["PT-RT-10"],
        "A result that is null is none.",
        Reply(|_, reply| {
            reply.retain(|(name, value)| *name != *"result" || *value != Value::Null);
        }),
    ),
    of(
        "runtime-overlooks-errors",
        &["PT-RT-11"],
        "With `ok` true an error is dropped.",
        Reply(|_, reply| {
            if get(reply, "ok") == Some(&Value::Bool(true)) {
                reply.retain(|(name, _)| *name != *"error");
            }
        }),
    ),
    of(
        "runtime-needs-no-version",
        &["PT-RT-12"],
        "A local reply need not have a version.",
        Reply(|ready, reply| {
            if matches!(ready.target, Target::Local(_)) && get(reply, "protocol_version").is_none() {
                set(reply, "protocol_version", number(1));
            }
        }),
    ),
    of(
        "runtime-takes-any-version",
        &["PT-RT-12"],
        "A local reply may have any version.",
        Reply(|ready, reply| {
            if matches!(ready.target, Target::Local(_)) && get(reply, "protocol_version").is_some() {
                set(reply, "protocol_version", number(1));
            }
        }),
    ),
    of(
        "runtime-takes-any-version-of-a-service",
        &["PT-RT-13"],
        "A service's version is not looked at.",
        Reply(|ready, reply| {
            if !matches!(ready.target, Target::Local(_)) {
                set(reply, "protocol_version", number(1));
            }
        }),
    ),
    of(
        "runtime-drops-reasons",
        &["PT-RT-14"],
        "`reason_code` is dropped.",
        Line(|line| {
            if let Some(Value::Object(error)) = member(line, "error") {
                error.retain(|(name, _)| *name != *"reason_code");
            }
        }),
    ),
    of(
        "runtime-takes-failures-for-invalid",
        &["PT-RT-14"],
        "A failure is invalid.",
        Comes(|outcome| match outcome {
            Outcome::ToolError(_) => Outcome::Other("invalid", "it failed".to_owned()),
            other => other,
        }),
    ),
    of(
        "runtime-takes-bad-failures-for-results",
        &["PT-RT-15"],
        "A failure without a proper error is a result.",
        Reply(|_, reply| {
            if get(reply, "error").is_none_or(|error| error.get("type").is_none())
                && get(reply, "ok") == Some(&Value::Bool(false))
            {
                *reply = vec![
                    ("ok".into(), Value::Bool(true)),
                    ("protocol_version".into(), number(1)),
                    ("result".into(), Value::Null),
                ];
            }
        }),
    ),
    of(
        "runtime-drops-nulls",
        &["PT-RT-16"],
        "Members that are null are dropped from results.",
        Reply(|_, reply| {
            if let Some(Value::Object(result)) = member(reply, "result") {
                result.retain(|(_, value)| *value != Value::Null);
            }
        }),
    ),
    carrier(
        "runtime-takes-cut-bodies",
        &["PT-RT-17", "PT-RT-48"],
        "A body that ends before its length counts where it is JSON.",
        Fault::TakesCut,
    ),
    of(
        "runtime-trims-messages",
        &["PT-RT-14"],
        "Messages of failures lose the blanks around them.",
        Reply(|_, reply| {
            if let Some(Value::Object(error)) = member(reply, "error")
                && let Some(Value::String(message)) = get(error, "message")
            {
                let trimmed = message.to_lossy().trim().to_owned();
                set(error, "message", Value::from(trimmed.as_str()));
            }
        }),
    ),
    of(
        "runtime-cuts-messages",
        &["PT-RT-14"],
        "Messages of failures have at most 1,000 characters.",
        Reply(|_, reply| {
            if let Some(Value::Object(error)) = member(reply, "error")
                && let Some(Value::String(message)) = get(error, "message")
            {
                let cut: String = message.to_lossy().chars().take(1_000).collect();
                set(error, "message", Value::from(cut.as_str()));
            }
        }),
    ),
    of(
        "runtime-drops-empty-reasons",
        &["PT-RT-14"],
        "`reason_code` is dropped where it is empty.",
        Reply(|_, reply| {
            if let Some(Value::Object(error)) = member(reply, "error") {
                error.retain(|(name, value)| *name != *"reason_code" || *value != Value::from(""));
            }
        }),
    ),
    of(
        "runtime-rounds-fractions",
        &["PT-RT-16"],
        "Fractions of results have seven digits.",
        Reply(|_, reply| {
            if let Some(Value::Object(result)) = member(reply, "result") {
                for (_, value) in result {
                    if let Value::Number(number) = value
                        && number.as_f64().fract() != 0.0
                        && let Ok(rounded) = parsed(format!("{:.6e}", number.as_f64()).as_bytes())
                    {
                        *value = rounded;
                    }
                }
            }
        }),
    ),
    of(
        "runtime-heeds-ok-in-results",
        &["PT-RT-16"],
        "A result with `ok` false is a failure.",
        Reply(|_, reply| {
            if get(reply, "result").and_then(|result| result.get("ok")) == Some(&Value::Bool(false)) {
                *reply = vec![("ok".into(), Value::Bool(false))];
            }
        }),
    ),
    of(
        "runtime-takes-32-levels",
        &["PT-RT-70"],
        "A reply has at most 32 levels.",
        Told(|config| config.limits.nesting_max = 32),
    ),
    of(
        "runtime-holds-what-it-refuses",
        &["PT-RT-66"],
        "A reply of up to 100 MB is read before it is refused for its length.",
        Both(|config, parts| {
            let bytes_max = std::mem::replace(&mut config.reply_bytes_max, 100 << 20);
            parts.judge = Box::new(move |ready, config, end| match &end {
                End::Exited(_, text) | End::Replied(_, text) if text.len() > bytes_max => {
                    Outcome::Other("invalid", "the reply is too long".to_owned())
                }
                _ => judge(ready, config, end),
            });
        }),
    ),
    carrier(
        "runtime-mends-pieces",
        &["PT-RT-71"],
        "Each piece of a reply is made UTF-8 by itself.",
        Fault::MendsPieces,
    ),
    of(
        "runtime-knows-no-services",
        &["PT-RT-29"],
        "No service is there for it.",
        Told(|config| {
            each(config, |ready| {
                if let Target::Service(url) = &mut ready.target {
                    *url = "http://127.0.0.1:1/".to_owned();
                }
            });
        }),
    ),
    of(
        "runtime-takes-absence-for-invalid",
        &["PT-RT-17"],
        "What is not there is invalid.",
        Ends(|_, end| match end {
            End::Failed => End::Unreadable,
            other => other,
        }),
    ),
];
