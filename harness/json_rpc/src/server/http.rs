//! Rules about HTTP replies beyond their bodies.
//!
//! A body with an unusual status is examined only if it is JSON. Otherwise it is not a message, because servers and
//! proxies report errors in formats of their own.

use super::super::model::{Aim, Asking, IdRule, LINE_BYTES_CERTAIN, RequestPart, allowed};
use super::Server;
use peerproof_engine::contract::face::{
    Allowed, HttpExchange, HttpTrace, PlacedExpectation, SessionTrace, Trace,
};
use peerproof_engine::contract::judge::not_kept;
use peerproof_engine::data::carriage::Carriage;
use peerproof_engine::data::check::Untestable;
use peerproof_engine::data::finding::{ChoiceSeen, Finding, Judgement, Repair};
use peerproof_engine::data::json::Json;
use peerproof_engine::data::lines::RequestLine;

const RESULT_STATUS: &str = "RPC-HTTP-01";
const ERROR_STATUS: &str = "RPC-HTTP-02";
const NOTHING: &str = "RPC-HTTP-03";
const OVER_SIZE: &str = "RPC-HTTP-04";
const OTHER_METHOD: &str = "RPC-HTTP-05";
const OTHER_TYPE: &str = "RPC-HTTP-06";
const OVER_SIZE_FORM: &str = "RPC-HTTP-11";
const INFLATED_SIZE: &str = "RPC-GZIP-02";
const COMPRESSED: &str = "RPC-GZIP-06";
const KEEP_ALIVE: &str = "RPC-HTTP-08";

/// HTTP aspects of a sent message.
struct Sent<'a> {
    how: Option<&'a Carriage>,
    /// Size of the inflated message, bytes.
    bytes: usize,
    is_blank: bool,
}

impl<'a> Sent<'a> {
    fn of(line: &RequestLine, how: Option<&'a Carriage>) -> Self {
        let packing = how.and_then(|how| how.gzip);
        let bytes = packing.map_or(line.bytes.len(), |packing| packing.inflated_bytes(line.bytes.len()));
        Self { how, bytes, is_blank: line.bytes.iter().all(u8::is_ascii_whitespace) }
    }

    fn is_post(&self) -> bool {
        self.how.is_none_or(|how| how.method == "POST")
    }

    fn is_json(&self) -> bool {
        self.how.is_none_or(Carriage::is_json)
    }

    fn is_packed(&self) -> bool {
        self.how.is_some_and(|how| how.gzip.is_some())
    }

    /// True if a server may refuse this body as unsupported.
    fn may_be_unsupported(&self) -> bool {
        !self.is_json() || self.is_packed()
    }
}

/// Adds the alternatives that HTTP allows to those of the model.
pub(super) fn allow(
    asked: &mut PlacedExpectation<Server>,
    line: &RequestLine,
    how: Option<&Carriage>,
    exchange: &HttpExchange<'_>,
) {
    let sent = Sent::of(line, how);
    let status = exchange.status();
    let gave_up = exchange.failure.is_some() && !exchange.wholly_sent;
    let refused = !sent.is_post()
        || sent.may_be_unsupported() && status == Some(415)
        // The contract is silent about an empty body.
        || sent.is_blank
        || sent.bytes > LINE_BYTES_CERTAIN && (status == Some(413) || gave_up);
    if !refused {
        return;
    }
    // Any reply is allowed; a refused request is not executed.
    let anything = vec![Allowed::silence(), allowed::reply(IdRule::Any)];
    let clause = asked.due.parts.first().map_or("RPC-FRAME-01", |unit: &RequestPart| unit.clause);
    let mut unit = allowed::unit(None, clause, anything);
    unit.extra.old = true;
    asked.due = Asking::one(unit);
}

/// Judges the status of a reply.
pub(super) fn status(carried: &HttpTrace<'_, Server>) -> Judgement {
    let HttpTrace { asked, exchange, .. } = carried;
    let sent = Sent::of(carried.line, carried.how);
    let mut own = Judgement::default();
    let is_about = |clause: &str| asked.aim.as_ref().is_some_and(|aim: &Aim| aim.clause.0 == clause);
    // The choice that the peer shows, if the step tests it.
    let choice = |clause: &str, key: &str, value: &str| {
        let (key, value) = (key.to_owned(), value.to_owned());
        is_about(clause).then_some(ChoiceSeen { pinned: false, key, value })
    };
    let Some(reply) = &exchange.reply else {
        // A notification needs an HTTP reply as well. A server that refuses the method may close the connection
        // before it reads the body, and the refusal may be lost.
        let is_read = sent.is_post() || sent.is_blank;
        let is_owed = is_read && (exchange.wholly_sent || sent.bytes <= LINE_BYTES_CERTAIN);
        if let Some(reason) = exchange.failure
            && asked.due.may_be_silent()
            && !carried.is_over
            && is_owed
        {
            let expected = "an HTTP reply to every request";
            let finding = Finding::new(NOTHING, "no_http_reply", expected, reason);
            own.findings.push(asked.file(finding.repaired_by(Repair::Send)));
        }
        return own;
    };
    let status = reply.status;
    let wrong = |clause: &str, expected: &str| {
        let got = format!("status {status}, {} bytes of body", reply.body_bytes);
        vec![Finding::new(clause, "http_status", expected, got).at(asked.step)]
    };
    if !sent.is_post() {
        if !matches!(status, 404 | 405) {
            own.findings = wrong(OTHER_METHOD, "status 405 or 404 for a method other than POST");
        }
        return own;
    }
    if sent.may_be_unsupported() && status == 415 {
        if sent.is_packed() {
            own.choice = choice(COMPRESSED, "gzip_over_http", "415");
            if asked.aim.is_some() && !is_about(COMPRESSED) {
                let why = Untestable::new(
                    "no_gzip_over_http",
                    "the server answers compressed bodies with status 415",
                );
                own.untestable = Some(why);
            }
        }
        return own;
    }
    if sent.is_blank {
        return own;
    }
    let over_size = sent.bytes > LINE_BYTES_CERTAIN;
    let size_clause = if sent.is_packed() { INFLATED_SIZE } else { OVER_SIZE };
    if over_size && status == 413 {
        own.choice = choice(OVER_SIZE_FORM, "over_size_body", "413");
        return own;
    }
    match carried.output.held.whole().map(|message| &message.value) {
        Some(value) => {
            let is_error = |value: &Json| value.get("error").is_some();
            let all_errors = match value {
                Json::Array(items) => items.iter().all(is_error),
                value => is_error(value),
            };
            let fine = status == 200 || all_errors && status == 400;
            let (clause, expected) = match all_errors {
                _ if over_size => (size_clause, "status 413, or 200 with error -32600"),
                _ if !sent.is_json() => (OTHER_TYPE, "status 415, or a reply as for JSON"),
                true => (ERROR_STATUS, "status 200 or 400 for an error"),
                false => (RESULT_STATUS, "status 200 for a JSON-RPC reply"),
            };
            if !fine {
                own.findings = wrong(clause, expected);
            } else if over_size && all_errors {
                own.choice = choice(OVER_SIZE_FORM, "over_size_body", "-32600");
            } else if all_errors && !matches!(value, Json::Array(_)) {
                own.choice = choice(ERROR_STATUS, "error_status", &status.to_string());
            }
            if fine && sent.is_packed() {
                own.choice = choice(COMPRESSED, "gzip_over_http", "accept").or(own.choice);
            }
        }
        None if over_size => own.findings = wrong(size_clause, "status 413, or 200 with error -32600"),
        None if !sent.is_json() => own.findings = wrong(OTHER_TYPE, "status 415, or a reply as for JSON"),
        None if asked.due.may_be_silent() && (!matches!(status, 200 | 202 | 204) || reply.body_bytes > 0) => {
            own.findings =
                wrong(NOTHING, "status 200, 202 or 204 and an empty body, because no response is due");
        }
        // The missing reply is already reported.
        None => {}
    }
    own
}

/// Finding about connections that were not kept, if a step tests that.
pub(crate) fn connections(_: &Trace<'_, Server>, heard: &SessionTrace<'_, Server>) -> Vec<Finding> {
    not_kept(heard, KEEP_ALIVE)
}
