//! Rules of HTTP: framing of requests, and status and headers of replies.

use peerproof_engine::contract::face::{Allowed, HttpExchange, HttpTrace, PlacedExpectation};
use peerproof_engine::data::carriage::Carriage;
use peerproof_engine::data::finding::{Finding, Judgement};
use peerproof_engine::data::json::{self, DecodeLimits};
use peerproof_engine::data::lines::RequestLine;
use peerproof_engine::data::payload::shorten;

use super::super::model::{Acceptance, Input};
use super::{AllowedReply, Engine, Message, QUOTED_CHARS};

const ANSWER: &str = "ENV-HTTP-01";
const TYPE: &str = "ENV-HTTP-02";
const REFUSAL: &str = "ENV-HTTP-03";
const ERROR_BODY: &str = "ENV-HTTP-04";
const OF_CONTENT: &str = "ENV-HTTP-06";
const OF_PATH: &str = "ENV-HTTP-07";
const OF_METHOD: &str = "ENV-HTTP-08";
const OF_SIZE: &str = "ENV-HTTP-09";
const OF_TYPE: &str = "ENV-HTTP-10";
const ELSEWHERE: &str = "ENV-HTTP-13";
const BEHIND: &str = "ENV-HTTP-14";
/// Clause: connections stay open after a reply.
pub(crate) const KEEP_ALIVE: &str = "ENV-HTTP-18";
const CUT: &str = "ENV-HTTP-20";
/// Clause: pipelined requests are answered in order.
pub(crate) const IN_ORDER: &str = "ENV-HTTP-21";
/// Clause: concurrent requests do not mix.
pub(crate) const MIXED: &str = "ENV-HTTP-23";
const LOOPBACK: &str = "ENV-HTTP-24";
/// Clause: both transports give equal replies.
pub(crate) const SAME: &str = "ENV-HTTP-25";

/// Clauses about bytes that are not JSON.
const NO_JSON: [&str; 2] = ["ENV-JSON-01", "ENV-JSON-02"];
/// Clause about size.
const OVER_SIZE: &str = "ENV-SIZE-02";

/// Refuses text after the envelope, because a body is one entity.
pub(crate) fn read_as_body(input: &mut Input) {
    let traits = input.sent.iter_mut().flat_map(|sent| &mut sent.traits).chain(&mut input.traits);
    for it in traits.filter(|it| it.clause == "ENV-FRAME-03") {
        (it.stand, it.clause) = (Acceptance::Refuse, BEHIND);
    }
}

/// True if path and method are those of the service.
fn is_for_it(how: &Carriage) -> bool {
    how.method == "POST" && how.path.is_none()
}

/// Adds the replies that HTTP allows because of the request's framing.
pub(super) fn allow(
    asked: &mut PlacedExpectation<Engine>,
    line: &RequestLine,
    how: Option<&Carriage>,
    exchange: &HttpExchange<'_>,
) {
    let (Some(how), Some(part)) = (how, asked.due.parts.first_mut()) else { return };
    let refused = || Allowed::answer(AllowedReply::Refused);
    let is_over_size =
        part.extra.sent.as_ref().is_some_and(|sent| sent.traits.iter().any(|it| it.clause == OVER_SIZE));
    // The status of a forbidden reply is judged elsewhere.
    let anything = match () {
        () if how.is_cut() => Some(CUT),
        () if how.host.is_some() => Some(LOOPBACK),
        () if !is_for_it(how) => Some(ELSEWHERE),
        () => None,
    };
    if let Some(clause) = anything {
        let mut allowed = vec![Allowed::answer(AllowedReply::Processed), refused()];
        // A server may answer requests for other paths in any way. If it does not read the body, it may reset the
        // connection.
        let is_reset = exchange.failure.is_some() && !line.bytes.is_empty();
        let may_say_nothing = clause != ELSEWHERE || exchange.reply.is_some() || is_reset;
        allowed.extend(may_say_nothing.then(Allowed::silence));
        (part.clause, part.allowed, part.choice, part.extra.sent) = (clause, allowed, None, None);
    } else if !how.is_json() && part.allowed_answers().all(|(_, way)| *way == AllowedReply::Processed) {
        part.allowed.push(refused());
        part.clear_choices();
    } else if is_over_size && exchange.failure.is_some() {
        // A reset connection counts as a refusal.
        part.allowed.push(Allowed::silence().shows("refuse"));
    }
}

/// Decodes a body by the status of its reply.
pub(super) fn read(status: u16, bytes: &[u8], is_error: impl Fn(&json::Json) -> bool) -> Option<Message> {
    let quoted = || shorten(&String::from_utf8_lossy(bytes), QUOTED_CHARS).into_owned();
    let refused = || Some(Message::Refused(format!("status {status}, {}", quoted())));
    if !matches!(status, 200..=299) {
        return refused();
    }
    let decoded = json::decode(json::trim(bytes), &DecodeLimits::default()).ok()?;
    match &decoded.value {
        value if value.as_object().is_none() => None,
        value if is_error(value) => refused(),
        _ => Some(Message::Envelope { lone_surrogates: decoded.facts.lone_surrogates, value: decoded.value }),
    }
}

/// Judges the status of a reply, its content type, and the body of a refusal.
pub(super) fn status(carried: &HttpTrace<'_, Engine>) -> Judgement {
    let HttpTrace { asked, exchange, how, output, .. } = carried;
    let (Some(status), Some(how)) = (exchange.status(), how) else { return Judgement::default() };
    let body = exchange.body.unwrap_or_default();
    let quoted = || shorten(&String::from_utf8_lossy(body), QUOTED_CHARS).into_owned();
    let one = |clause: &str, expected: &str| {
        let finding = Finding::new(clause, "http_status", expected, format!("status {status}, {}", quoted()));
        Judgement { findings: vec![finding.at(asked.step)], ..Judgement::default() }
    };
    let traits = asked.due.parts.iter().flat_map(|part| &part.extra.sent).flat_map(|sent| &sent.traits);
    let is_too_large = traits.into_iter().any(|it| it.clause == OVER_SIZE);
    let code = |clause: &str, codes: &[u16], expected: &str| {
        // Another status code is reported once.
        let is_about = asked.aim.as_ref().is_some_and(|aim| aim.clause.0 == clause);
        if is_about && !codes.contains(&status) { one(clause, expected) } else { Judgement::default() }
    };
    if how.host.is_some() {
        return one(LOOPBACK, "no listening socket on an address other than loopback");
    }
    if how.is_cut() {
        return match output.held.whole() {
            Some(Message::Envelope { .. }) => one(CUT, "no envelope for an incomplete body"),
            _ => Judgement::default(),
        };
    }
    if status >= 400 && has_envelope(body) {
        let expected = "an empty body, text, or JSON without `current_stage` and `outputs`";
        return one(ERROR_BODY, expected);
    }
    if !is_for_it(how) {
        let is_method = how.method != "POST";
        return match status {
            501 if is_method => Judgement::default(),
            500.. => one(ELSEWHERE, "no status of 500 or above for another path or method"),
            _ if is_method => code(OF_METHOD, &[404, 405], "status 405, 404 or 501 for another method"),
            _ => code(OF_PATH, &[404], "status 404 for another path"),
        };
    }
    let may_refuse = asked
        .due
        .parts
        .iter()
        .any(|part| part.allowed_answers().any(|(_, way)| *way == AllowedReply::Refused));
    match output.held.whole() {
        None => {
            let error = json::decode(json::trim(body), &DecodeLimits::default()).err();
            let why = error.map_or(String::new(), |error| format!("{error}: "));
            let got = format!("status {status}, {why}{}", quoted());
            let expected = "status 200 and one envelope, or a refusal";
            let finding = Finding::new(ANSWER, "http_status", expected, got).at(asked.step);
            Judgement { findings: vec![finding], ..Judgement::default() }
        }
        Some(Message::Envelope { .. }) if status != 200 => one(ANSWER, "an envelope with status 200"),
        Some(Message::Envelope { .. }) => {
            let name = exchange.content_type.and_then(|name| name.split(';').next()).unwrap_or_default();
            if name.trim().eq_ignore_ascii_case("application/json") {
                return Judgement::default();
            }
            let expected = "Content-Type: application/json";
            let got = exchange.content_type.unwrap_or("no Content-Type");
            let finding = Finding::new(TYPE, "content_type", expected, got).at(asked.step);
            Judgement { findings: vec![finding], ..Judgement::default() }
        }
        // A forbidden refusal is reported already.
        Some(Message::Refused(_)) if !may_refuse => Judgement::default(),
        Some(Message::Refused(_)) if !matches!(status, 400..=499) => {
            one(REFUSAL, "a status from 400 to 499 for a refusal")
        }
        Some(Message::Refused(_)) if !how.is_json() => {
            code(OF_TYPE, &[415], "status 415 for another content type, or an envelope as for JSON")
        }
        Some(Message::Refused(_)) if is_too_large => {
            code(OF_SIZE, &[413], "status 413 for a body over the size limit")
        }
        Some(Message::Refused(_)) => {
            let is_json = asked.due.parts.iter().all(|part| !NO_JSON.contains(&part.clause));
            let codes: &[u16] = if is_json { &[400, 422] } else { &[400] };
            code(
                OF_CONTENT,
                codes,
                "status 400 for text that is not JSON, 400 or 422 for JSON that is not a valid envelope",
            )
        }
    }
}

fn has_envelope(body: &[u8]) -> bool {
    let decoded = json::decode(json::trim(body), &DecodeLimits::default());
    decoded.is_ok_and(|it| ["current_stage", "outputs"].iter().any(|name| it.value.get(name).is_some()))
}
