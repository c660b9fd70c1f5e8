//! HTTP: which reply belongs to which message, and what holds of replies besides what is in them.
//!
//! The body of a reply answers the body of its own request and no other. A body with another status than that of a
//! JSON-RPC reply is looked at where it is JSON, and else is no message: servers and what stands before them say so in
//! their own words.

use super::super::deal::{Came, deal};
use super::super::frames::{self, Frame};
use super::super::model::{Allowed, Asked, IdRule, LINE_BYTES_CERTAIN, Unit};
use super::super::rules;
use super::{Session, answered as answered_units, clause};
use peerproof_engine::carriage::{Carriage, HTTP};
use peerproof_engine::finding::{ChoiceSeen, Finding, Nature};
use peerproof_engine::json::Json;
use peerproof_engine::lines::Line;
use peerproof_engine::transcript::{Kind, Transcript};

/// Clauses about HTTP.
mod of_http {
    pub const RESULT_STATUS: &str = "RPC-HTTP-01";
    pub const ERROR_STATUS: &str = "RPC-HTTP-02";
    pub const NOTHING: &str = "RPC-HTTP-03";
    pub const OVER_SIZE: &str = "RPC-HTTP-04";
    pub const OTHER_METHOD: &str = "RPC-HTTP-05";
    pub const OTHER_TYPE: &str = "RPC-HTTP-06";
    pub const OVER_SIZE_FORM: &str = "RPC-HTTP-11";
    pub const INFLATED_SIZE: &str = "RPC-GZIP-02";
    pub const COMPRESSED: &str = "RPC-GZIP-06";
    pub const KEEP_ALIVE: &str = "RPC-HTTP-08";
    pub const LIVES_ON: &str = "RPC-HTTP-10";
}

/// Whether a session speaks HTTP.
pub fn is_http(transcript: &Transcript, session: usize) -> bool {
    transcript.plan.sessions.get(session).is_some_and(|spec| spec.command == HTTP)
}

/// What came for one message.
#[derive(Default)]
struct Exchange<'a> {
    reply: Option<Reply>,
    /// Why there was no reply.
    failure: Option<&'a str>,
    /// All of the request was sent.
    wholly_sent: bool,
    /// Its connection ended without a word about it, and it was sent again.
    was_dropped: bool,
    body: Option<Vec<u8>>,
    /// How many replies came before this one.
    place: usize,
}

struct Reply {
    status: u16,
    body_bytes: u64,
    keeps_open: bool,
}

/// The exchange of each message, in the order of sending.
fn exchanges<'a>(transcript: &'a Transcript, session: usize, asked: &[Asked]) -> Vec<Exchange<'a>> {
    // A message is known by its step and how many the step ended before.
    let mut of_step = 0;
    let places: Vec<(usize, usize)> = (0..asked.len())
        .map(|at| {
            of_step = if at > 0 && asked[at - 1].step == asked[at].step { of_step + 1 } else { 0 };
            (asked[at].step, of_step)
        })
        .collect();
    let mut all: Vec<Exchange<'a>> = asked.iter().map(|_| Exchange::default()).collect();
    let (mut current, mut place) = (None, 0);
    for event in transcript.of(session) {
        match &event.kind {
            Kind::HttpReply { step, of_step, status, body_bytes, keeps_open, .. } => {
                current = places.binary_search(&(*step, *of_step)).ok();
                place += 1;
                if let Some(at) = current {
                    all[at].place = place;
                    all[at].reply =
                        Some(Reply { status: *status, body_bytes: *body_bytes, keeps_open: *keeps_open });
                    all[at].wholly_sent = true;
                }
            }
            Kind::HttpFailed { step, of_step, reason, wholly_sent, will_retry, .. } => {
                current = None;
                if let Ok(at) = places.binary_search(&(*step, *of_step)) {
                    all[at].was_dropped |= will_retry;
                    if !will_retry {
                        (all[at].failure, all[at].wholly_sent) = (Some(reason.as_str()), *wholly_sent);
                    }
                }
            }
            Kind::Received { bytes } => {
                if let Some(at) = current.take() {
                    all[at].body = Some(bytes.0.clone());
                }
            }
            _ => {}
        }
    }
    all
}

/// What the bytes of a message were, as far as HTTP is concerned.
struct Sent<'a> {
    how: Option<&'a Carriage>,
    /// Bytes of the message, once it is inflated.
    bytes: usize,
    is_blank: bool,
}

impl Sent<'_> {
    fn is_post(&self) -> bool {
        self.how.is_none_or(|how| how.method == "POST")
    }

    fn is_json(&self) -> bool {
        self.how.is_none_or(Carriage::is_json)
    }

    fn is_packed(&self) -> bool {
        self.how.is_some_and(|how| how.gzip.is_some())
    }

    /// Whether a server may say that it does not take such a body.
    fn may_be_unsupported(&self) -> bool {
        !self.is_json() || self.is_packed()
    }
}

impl Session<'_> {
    /// Judges a session that speaks HTTP.
    pub(super) fn judge_http(&mut self, mut asked: Vec<Asked>, lines: &[Line]) {
        let transcript = self.transcript;
        let exchanges = exchanges(transcript, self.session, &asked);
        let mut answered: Vec<bool> = Vec::new();
        let mut judged = Vec::new();
        for ((asked, exchange), line) in asked.iter_mut().zip(&exchanges).zip(lines) {
            let how = transcript.plan.steps.get(asked.step).and_then(|step| step.http.as_ref());
            let is_blank = line.bytes.iter().all(u8::is_ascii_whitespace);
            let packing = how.and_then(|how| how.gzip);
            let bytes = packing.map_or(line.bytes.len(), |packing| packing.inflated_bytes(line.bytes.len()));
            let sent = Sent { how, bytes, is_blank };
            allow(asked, exchange, &sent);
            let body = exchange.body.as_deref().unwrap_or_default();
            let mut frames = frames::lines(body, 1).0;
            // In the words of HTTP, or no message where none may come.
            let refuses = exchange.reply.as_ref().is_some_and(|reply| !matches!(reply.status, 200..=299));
            let unasked = asked.may_be_silent();
            frames.retain(|frame| match &frame.value {
                Err(_) => !refuses && !unasked,
                Ok(value) => matches!(value, Json::Object(_) | Json::Array(_)) || !refuses && !unasked,
            });
            answered.push(!frames.is_empty());
            judged.push((sent, frames));
        }
        let last = answered.iter().rposition(|answered| *answered);
        let mut all_answers: Vec<(&Unit, &Json)> = Vec::new();
        for (index, ((asked, exchange), (sent, frames))) in
            asked.iter().zip(&exchanges).zip(&judged).enumerate()
        {
            self.lone_surrogates = frames.iter().any(|frame| frame.lone_surrogates);
            self.body_is_json(asked, frames);
            self.own.findings.extend(rules::of_frames(frames).map(|finding| finding.at(asked.step)));
            let (mut came, mut extra) = deal(std::slice::from_ref(asked), frames);
            let is_open = |came: &&mut Came<'_>| asked.batch && came.array.is_none() && came.whole.is_none();
            if let Some(came) = came.first_mut().filter(is_open) {
                // It can belong to nothing but this batch.
                came.unwrapped.append(&mut extra);
            }
            let before = self.own.findings.len();
            self.exchange_status(asked, exchange, sent, frames);
            let of_http = self.own.findings.len() > before;
            if let Some(came) = came.first() {
                self.http_line(asked, came, exchange, of_http, last > Some(index));
                all_answers.extend(answered_units(asked, came));
            }
            self.extra(std::slice::from_ref(asked), &extra);
        }
        self.connections(&asked, &exchanges);
        // On one connection calls are carried one after the other.
        let connection = |at: usize| {
            let step = transcript.plan.steps.get(asked[at].step);
            step.and_then(|step| step.http.as_ref()).map_or(0, |how| how.connection)
        };
        let place = |at: usize| answered[at].then_some(exchanges[at].place);
        self.held_up(&asked, &place, &|slow, quick| connection(slow) != connection(quick));
        self.rate(&asked, &all_answers);
        self.own.findings.extend(rules::of_logs(transcript, self.session));
        self.http_end();
    }

    /// A body that is no JSON and yet stands where a message has to.
    fn body_is_json(&mut self, asked: &Asked, frames: &[Frame]) {
        let wrong = frames.iter().find_map(|frame| Some((frame, frame.value.as_ref().err()?)));
        if let Some((frame, error)) = wrong {
            let got = format!("{error}: {}", frame.text());
            let expected = "the body of a reply is a JSON-RPC message";
            let finding = Finding::new(clause::STRICT_JSON, "reply_not_json", expected, got);
            self.own.findings.push(finding.at(asked.step));
        }
    }

    fn http_line(
        &mut self,
        asked: &Asked,
        came: &Came<'_>,
        exchange: &Exchange<'_>,
        of_http: bool,
        others_answered_later: bool,
    ) {
        let nothing =
            came.array.is_none() && came.whole.is_none() && came.answers.iter().all(Option::is_none);
        let refused = exchange.reply.as_ref().map(|reply| reply.status);
        match refused {
            // An HTTP reply came, so nothing is lost and nobody hangs.
            Some(status) if nothing && came.unwrapped.is_empty() && !asked.may_be_silent() => {
                if !of_http && let Some(unit) = asked.units.iter().find(|unit| !unit.may_be_silent()) {
                    let got = format!("HTTP status {status} without a JSON-RPC reply");
                    let finding = Finding::new(unit.clause, "no_reply", unit.phrase(), got);
                    self.file(asked, finding);
                }
            }
            _ => {
                let before = self.own.findings.len();
                self.line(asked, came, others_answered_later);
                let Some(failure) = exchange.failure else { return };
                for finding in &mut self.own.findings[before..] {
                    finding.got = finding.got.replacen("no reply", failure, 1);
                }
            }
        }
    }

    /// The status of a reply, where it says something of its own.
    fn exchange_status(&mut self, asked: &Asked, exchange: &Exchange<'_>, sent: &Sent<'_>, frames: &[Frame]) {
        let Some(reply) = &exchange.reply else {
            // No answer to a notification is an HTTP reply all the same.
            if let Some(reason) = exchange.failure
                && asked.may_be_silent()
                && !self.over
                && self.ending.exit.is_none()
                && (exchange.wholly_sent || sent.bytes <= LINE_BYTES_CERTAIN)
            {
                let expected = "an HTTP reply to every request";
                let finding = Finding::new(of_http::NOTHING, "no_http_reply", expected, reason);
                self.file(asked, finding);
            }
            return;
        };
        let status = reply.status;
        let mut wrong = |clause: &str, expected: &str| {
            let got = format!("status {status}, {} bytes of body", reply.body_bytes);
            self.own.findings.push(Finding::new(clause, "http_status", expected, got).at(asked.step));
        };
        if !sent.is_post() {
            if !matches!(status, 404 | 405) {
                wrong(of_http::OTHER_METHOD, "405 or 404 for a method that is not POST");
            }
            return;
        }
        if sent.may_be_unsupported() && status == 415 {
            if sent.is_packed() {
                self.choose(asked, of_http::COMPRESSED, "gzip_over_http", "415");
                if asked.aim.as_ref().is_some_and(|aim| aim.clause.0 != of_http::COMPRESSED) {
                    self.own.untestable =
                        Some("no_gzip_over_http: compressed bodies are answered 415".to_owned());
                }
            }
            return;
        }
        if sent.is_blank {
            return;
        }
        let over_size = sent.bytes > LINE_BYTES_CERTAIN;
        let size_clause = if sent.is_packed() { of_http::INFLATED_SIZE } else { of_http::OVER_SIZE };
        if over_size && status == 413 {
            self.choose(asked, of_http::OVER_SIZE_FORM, "over_size_body", "413");
            return;
        }
        let value = frames.first().and_then(|frame| frame.value.as_ref().ok());
        match value {
            Some(value) => {
                let is_error = |value: &Json| value.get("error").is_some();
                let all_errors = match value {
                    Json::Array(items) => items.iter().all(is_error),
                    value => is_error(value),
                };
                let fine = status == 200 || all_errors && status == 400;
                let (clause, expected) = match all_errors {
                    _ if over_size => (size_clause, "413, or 200 with the error -32600"),
                    _ if !sent.is_json() => (of_http::OTHER_TYPE, "415, or the message treated as JSON"),
                    true => (of_http::ERROR_STATUS, "200 or 400 for an error"),
                    false => (of_http::RESULT_STATUS, "200 for a JSON-RPC reply"),
                };
                if !fine {
                    wrong(clause, expected);
                } else if over_size && all_errors {
                    self.choose(asked, of_http::OVER_SIZE_FORM, "over_size_body", "-32600");
                } else if all_errors && !matches!(value, Json::Array(_)) {
                    self.choose(asked, of_http::ERROR_STATUS, "error_status", &status.to_string());
                }
                if fine && sent.is_packed() {
                    self.choose(asked, of_http::COMPRESSED, "gzip_over_http", "accept");
                }
            }
            None if over_size => wrong(size_clause, "413, or 200 with the error -32600"),
            None if !sent.is_json() => wrong(of_http::OTHER_TYPE, "415, or the message treated as JSON"),
            None if asked.may_be_silent() && (!matches!(status, 200 | 202 | 204) || reply.body_bytes > 0) => {
                wrong(of_http::NOTHING, "200, 202 or 204 with an empty body where nothing is answered");
            }
            // The missing reply says it all.
            None => {}
        }
    }

    /// Notes what the peer chose, where the step is about that.
    fn choose(&mut self, asked: &Asked, clause: &str, key: &str, value: &str) {
        if asked.aim.as_ref().is_some_and(|aim| aim.clause.0 == clause) {
            self.own.choice =
                Some(ChoiceSeen { pinned: false, key: key.to_owned(), value: value.to_owned() });
        }
    }

    /// Whether connections can be kept, where a step is about that.
    fn connections(&mut self, asked: &[Asked], exchanges: &[Exchange<'_>]) {
        let about = |asked: &Asked| asked.aim.as_ref().is_some_and(|aim| aim.clause.0 == of_http::KEEP_ALIVE);
        let pairs = || asked.iter().zip(exchanges).filter(|(asked, _)| about(asked));
        let dropped = pairs().find(|(_, exchange)| exchange.was_dropped);
        let closing =
            |exchange: &Exchange<'_>| exchange.reply.as_ref().is_some_and(|reply| !reply.keeps_open);
        let closed = pairs().find(|(_, exchange)| closing(exchange));
        let (asked, got) = match (dropped, closed) {
            (Some((asked, _)), _) => (asked, "closed without a word after a reply"),
            (None, Some((asked, _))) => (asked, "the reply says that the connection ends"),
            (None, None) => return,
        };
        let expected = "a connection goes on after a reply";
        let finding = Finding::new(of_http::KEEP_ALIVE, "closed", expected, got);
        self.own.findings.push(finding.at(asked.step));
    }

    /// A server ends when it is told to, and never by itself.
    fn http_end(&mut self) {
        if self.over {
            return;
        }
        if let Some(exit) = self.ending.exit.filter(|_| !self.ending.signalled) {
            let expected = "a server that lives on, whatever it is sent";
            let finding = Finding::new(of_http::LIVES_ON, "ended_early", expected, exit.to_string());
            self.own.findings.push(finding.of_nature(Nature::Crash));
        }
        if self.ending.signalled && self.ending.late {
            let expected = "the process ends within 2 s of SIGTERM";
            let finding =
                Finding::new(clause::ENDS_AT_TERM, "does_not_end", expected, "still running, killed");
            self.own.findings.push(finding.of_nature(Nature::Hang));
        }
    }
}

/// Adds what HTTP allows beside what the model says of the bytes.
fn allow(asked: &mut Asked, exchange: &Exchange<'_>, sent: &Sent<'_>) {
    let status = exchange.reply.as_ref().map(|reply| reply.status);
    let gave_up = exchange.failure.is_some() && !exchange.wholly_sent;
    let refused = !sent.is_post()
        || sent.may_be_unsupported() && status == Some(415)
        // An empty body is nothing that a contract speaks of.
        || sent.is_blank
        || sent.bytes > LINE_BYTES_CERTAIN && (status == Some(413) || gave_up);
    if !refused {
        return;
    }
    // In any words; what is refused is not carried out.
    let anything = vec![Allowed::silence(), Allowed::reply(IdRule::Any)];
    let clause = asked.units.first().map_or("RPC-FRAME-01", |unit: &Unit| unit.clause);
    let unit = Unit { old: true, ..Unit::new(None, clause, anything) };
    asked.batch = false;
    asked.whole = None;
    asked.units = vec![unit];
}
