//! Reading the toolhost's reply and writing the printed answer (`ipc` §4, §5).

use super::{Config, Failure, FailureKind, text};
use crate::json::{Kind, Raw, Scanner, unescape_document, write_str};
use crate::machine::ChildExit;

/// Judges a toolhost that has exited, by its whole standard output and its exit.
///
/// Returns the tool's output as JSON text without white space between its tokens.
///
/// # Errors
/// `crash` for a non-zero status or a signal; else `parse_error` for output that is not exactly one reply; else
/// `exception` for a reply that reports a failure of the tool, with the tool's error in the detail.
pub fn judge(stdout: &[u8], exit: ChildExit, config: &Config) -> Result<String, Failure> {
    match exit {
        ChildExit::Code(0) => output_of(stdout, config),
        ChildExit::Code(status) => Err(crash(format!("the toolhost ended with status {status}"))),
        ChildExit::Signal(signal) => Err(crash(format!("the toolhost was ended by signal {signal}"))),
    }
}

fn crash(detail: String) -> Failure {
    Failure::new(FailureKind::Crash, detail)
}

fn no_reply(what: impl std::fmt::Display) -> Failure {
    Failure::new(FailureKind::ParseError, format!("malformed reply: {what}"))
}

/// Members of a reply that decide the result.
#[derive(Default)]
struct Reply<'t> {
    ok: Option<Raw<'t>>,
    status: Option<Raw<'t>>,
    output_json: Option<Raw<'t>>,
    error: Option<Raw<'t>>,
}

fn output_of(stdout: &[u8], config: &Config) -> Result<String, Failure> {
    let nesting_max = config.limits.nesting_max;
    let normal = text::normalise(stdout, nesting_max, &config.policy).map_err(no_reply)?;
    let mut scanner = Scanner::new(nesting_max);
    let scanned = scanner.scan(&normal).map_err(no_reply)?;
    if scanned.kind() != Kind::Object {
        return Err(no_reply("not an object"));
    }
    let mut reply = Reply::default();
    for (name, value) in scanned.members() {
        for (known, place) in [
            ("ok", &mut reply.ok),
            ("status", &mut reply.status),
            ("output_json", &mut reply.output_json),
            ("error", &mut reply.error),
        ] {
            if name.is(known) {
                *place = Some(value);
            }
        }
    }
    match reply.ok.map(Raw::kind) {
        Some(Kind::Bool(true)) => {}
        Some(Kind::Bool(false)) => return Err(tool_failure(&reply)),
        Some(_) => return Err(no_reply("ok is no boolean")),
        None => return Err(no_reply("ok is missing")),
    }
    if !reply.status.and_then(Raw::as_str).is_some_and(|status| status.is("OK")) {
        return Err(no_reply("ok is true but status is not OK"));
    }
    let Some(document) = reply.output_json.and_then(Raw::as_str) else {
        return Err(no_reply("output_json is no string"));
    };
    let mut output = Vec::new();
    unescape_document(document, &mut output);
    let bad_output = |error| no_reply(format_args!("output_json: {error}"));
    let output = text::normalise(&output, nesting_max, &config.policy).map_err(bad_output)?;
    // The text was validated above. The second scan only gives access to it as text.
    let scanned = scanner.scan(&output).map_err(bad_output)?;
    Ok(text::compact(scanned.text()))
}

fn tool_failure(reply: &Reply<'_>) -> Failure {
    let error = reply.error.and_then(Raw::as_str).map(|error| error.text());
    let detail = match error {
        Some(error) if !error.as_bytes().is_empty() => format!("the tool failed: {error}"),
        _ => "the tool failed and did not say why".to_owned(),
    };
    Failure::new(FailureKind::Exception, detail)
}

/// The error object (`ipc` §5) with its LF; `aid_text` is a JSON string.
pub(crate) fn error_line(aid_text: &str, failure: &Failure) -> Vec<u8> {
    let mut line =
        format!("{{\"error\":true,\"aid\":{aid_text},\"type\":\"{}\",\"detail\":", failure.kind).into_bytes();
    write_str(&mut line, &failure.detail);
    line.extend_from_slice(b"}\n");
    line
}
