//! Model of a JSON-RPC server: derives the allowed replies from the bytes that were really written.
//!
//! This boundary has no other judge. A check is only a conversation, so generated, mutated and shrunk conversations
//! are judged like written ones. A step may name the clause that it tests ([`Aim`]). If the contract leaves a
//! choice, every alternative is allowed. The model never blames a correct peer.

use std::collections::HashMap;

use super::frames;
use peerproof_engine::contract::face::{Expectation, Outcome, PlacedExpectation, Stimulus};
use peerproof_engine::data::carriage::HTTP;
use peerproof_engine::data::json::{self, DecodeErrorKind, DecodeLimits, Decoded, Json};
use peerproof_engine::data::lines::RequestLine;
use peerproof_engine::data::packing::Packing;
use peerproof_engine::data::plan::Step;
use peerproof_engine::data::transcript::{Event, EventKind, Transcript};

pub mod allowed;
pub(crate) mod auth;
mod gzip;
mod methods;
mod pins;
mod profile;
pub(crate) mod rate;
mod request;
mod value;
mod work;

pub use allowed::{Allowed, AllowedAnswer, AnswerKind, Codes, Demand, IdRule, RequestNotes, RequestPart};
pub use peerproof_engine::contract::face::Aim;
pub use pins::{Pins, depth};
pub use profile::{METHODS, Shape};
pub use value::{Equality, same};
pub(crate) use work::TIMEOUT_DEFAULT_MS;
pub use work::Work;

/// Error codes of JSON-RPC 2.0 §5.1.
pub mod code {
    /// Invalid JSON.
    pub(crate) const PARSE: i64 = -32700;
    /// Not a valid request.
    pub const REQUEST: i64 = -32600;
    /// Unknown method.
    pub const METHOD: i64 = -32601;
    /// Invalid params.
    pub const PARAMS: i64 = -32602;
    /// Internal error of the server.
    pub(crate) const INTERNAL: i64 = -32603;
    /// A method failed, or ran out of time (RPC Standard Error Codes).
    pub(crate) const EXECUTION: i64 = -32000;
}

/// Error codes of messages of the profile that never reached a method.
const NOT_FROM_METHODS_OF_THE_PROFILE: &[i64] = &[code::PARSE, code::REQUEST, code::METHOD, code::PARAMS];

/// Longest line that a peer of the profile must accept, bytes without its line feed.
pub const LINE_BYTES_CERTAIN: usize = 1_000_000;
/// Longest line that a peer of the profile may accept, bytes without its line feed.
pub const LINE_BYTES_MAX: usize = 1_048_576;
/// Nesting that every peer must accept, levels.
pub const DEPTH_CERTAIN: usize = 64;
/// Nesting that every peer accepts if only the specification binds it, levels.
const DEPTH_CERTAIN_BY_SPEC: usize = 16;
/// Deepest nesting that checks try if the peer declares more, levels; signed messages are not written deeper.
const DEPTH_TOLD_MAX: usize = 150;
/// Most elements of a batch that every peer with batches must accept.
const BATCH_CERTAIN: usize = 10_000;
/// Length of lines below which every reply fits, however it is spelled.
const REPLY_FITS_BYTES: usize = 100_000;

/// Required form of the error that refuses an over-long message.
const TOO_LARGE: ErrorRule =
    ErrorRule { clause: "RPC-SIZE-06", codes: &[], of: code::REQUEST, types: &["MESSAGE_TOO_LARGE"] };

/// Required content of an allowed error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorRule {
    /// Clause of the rule.
    pub clause: &'static str,
    /// Allowed codes; empty: any.
    pub codes: &'static [i64],
    /// Code to which `types` applies.
    pub of: i64,
    /// Allowed values of `data.type`.
    pub types: &'static [&'static str],
}

/// A JSON-RPC server.
pub struct Server;

/// Allowed replies to one line.
pub type Asking = Expectation<AllowedAnswer, RequestNotes>;

/// First allowed outcome that a response object fits.
pub fn fit<'a>(unit: &'a RequestPart, response: &Json) -> Option<&'a Allowed> {
    let id = unit.extra.id.as_ref();
    unit.allowed_answers().find(|(_, way)| way.misfit(id, response).is_none()).map(|(allowed, _)| allowed)
}

/// True if `id` is the id of the request, possibly rounded.
pub(crate) fn has_id(unit: &RequestPart, id: Option<&Json>) -> bool {
    unit.extra.id.as_ref().is_some_and(|own| id.is_some_and(|id| same(own, id) != Equality::No))
}

/// State of one session.
struct Session {
    pins: Pins,
    runs: Runs,
    /// Time of day at which the transcript began, microseconds since 1970.
    clock_us: Option<u64>,
}

/// State of a conversation.
pub struct State(Vec<Session>);

impl State {
    /// The state before the first message.
    pub fn new(transcript: &Transcript) -> Self {
        let sessions = transcript.plan.sessions.iter().enumerate();
        let session = |(session, spec): (usize, &peerproof_engine::data::plan::Session)| {
            let mut pins = Pins::of(&transcript.facts);
            pins.over_http = spec.command == HTTP;
            if pins.over_http {
                let is_beside = |event: &&Event| {
                    let EventKind::Sent { step, .. } = event.kind else { return false };
                    let how = transcript.plan.steps.get(step).and_then(|step| step.http.as_ref());
                    how.is_some_and(|how| how.connection != 0 && !how.is_raw())
                };
                pins.gate.borrow_mut().beside = transcript.of(session).filter(is_beside).count() as u64;
            }
            Session { pins, runs: Runs::of(transcript, session), clock_us: clock_us(transcript, session) }
        };
        Self(sessions.map(session).collect())
    }

    /// Allowed replies to a line.
    pub fn expect(&mut self, stimulus: &Stimulus<'_>, line: &RequestLine) -> Asking {
        let Session { pins, runs, clock_us } = &mut self.0[stimulus.session];
        runs.pass(stimulus.fenced);
        pins.gate.borrow_mut().next_line(clock_us.map(|offset| (line.at_us + offset) / 1_000));
        let mut due = Asking { parts: Vec::new(), together: false, whole: None };
        match stimulus.how.filter(|_| pins.over_http).and_then(|how| how.gzip) {
            Some(packing) => read_packed(line, packing, pins, &mut due),
            None => read(line, pins, &mut due),
        }
        runs.count(&due);
        due
    }

    /// Adds the effects of concurrent work to the allowed replies.
    pub fn complete(&mut self, steps: &[Step], asked: &mut [PlacedExpectation<Server>]) {
        for (at, session) in self.0.iter().enumerate() {
            let mut own: Vec<&mut PlacedExpectation<Server>> =
                asked.iter_mut().filter(|asked| asked.session == at).collect();
            // Counts can only be bounded once all concurrent calls are known.
            session.runs.settle(steps, &mut own);
            work::settle(steps, &mut own);
            for asked in own {
                asked
                    .due
                    .parts
                    .iter_mut()
                    .chain(&mut asked.due.whole)
                    .for_each(|unit| session.pins.apply(unit));
            }
        }
    }
}

/// Time of day at which the transcript began, microseconds since 1970; `None` if it holds no time of day.
fn clock_us(transcript: &Transcript, session: usize) -> Option<u64> {
    transcript.of(session).find_map(|event| match event.kind {
        EventKind::Clock { unix_ms } => (unix_ms * 1_000).checked_sub(event.at_us),
        _ => None,
    })
}

/// Allowed replies to a message that was sent alone.
#[cfg(test)]
pub fn of_message(facts: &peerproof_engine::data::facts::Facts, bytes: &[u8]) -> Option<RequestPart> {
    let value = json::decode(bytes, &DecodeLimits::default()).ok()?;
    let pins = Pins::of(facts);
    let mut unit = request::unit(&value.value, &value.facts, &pins);
    pins.apply(&mut unit);
    Some(unit)
}

/// Number of frames that these bytes, which are whole lines, must be answered with.
pub fn frames_due(facts: &peerproof_engine::data::facts::Facts, bytes: &[u8]) -> u32 {
    let pins = Pins::of(facts);
    let mut due = 0;
    for bytes in bytes.split_inclusive(|byte| *byte == b'\n') {
        let Some(bytes) = bytes.strip_suffix(b"\n") else { continue };
        let line = RequestLine::alone(bytes);
        let mut asked = Asking { parts: Vec::new(), together: false, whole: None };
        read(&line, &pins, &mut asked);
        asked.parts.iter_mut().for_each(|unit| pins.apply(unit));
        due += match asked.together {
            true => u32::from(!asked.may_be_silent()),
            false => asked.parts.iter().filter(|unit| !unit.may_be_silent()).count() as u32,
        };
    }
    due
}

fn read(line: &RequestLine, pins: &Pins, asked: &mut Asking) {
    read_text(line, false, pins, asked);
}

/// Reads a body that is compressed as a whole.
fn read_packed(line: &RequestLine, packing: Packing, pins: &Pins, asked: &mut Asking) {
    let inflated = packing.inflated_bytes(line.bytes.len());
    if !packing.is_sound() {
        asked.parts.push(gzip::corrupt());
    } else if inflated > LINE_BYTES_MAX {
        asked.parts.push(gzip::too_large());
    } else {
        let mut line = line.clone();
        line.bytes.resize(inflated, b' ');
        read_text(&line, true, pins, asked);
    }
}

/// Reads a line, or the content of a compressed one.
fn read_text(line: &RequestLine, inflated: bool, pins: &Pins, asked: &mut Asking) {
    let bytes = line.bytes.strip_suffix(b"\r").unwrap_or(&line.bytes);
    let length = bytes.len();
    let null_error = |codes: &'static [i64]| vec![allowed::error(codes, IdRule::Null)];
    let unit = if !line.ended && bytes.is_empty() {
        return;
    } else if bytes.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r')) {
        let refused = allowed::error(&[code::PARSE, code::REQUEST], IdRule::Null).shows("refuse");
        allowed::unit(None, "RPC-FRAME-06", vec![Allowed::silence().shows("ignore"), refused])
            .about("blank_line")
    } else if length > LINE_BYTES_MAX && pins.profile {
        let mut unit = allowed::unit(None, "RPC-SIZE-02", null_error(&[code::REQUEST]));
        unit.extra.error_rule = Some(TOO_LARGE);
        unit
    } else {
        match json::decode(bytes, &DecodeLimits::default()) {
            Err(error) => malformed(&error.kind, bytes, pins),
            Ok(decoded) => return read_json(line, &decoded, inflated, pins, asked),
        }
    };
    asked.parts.push(unit);
    if !line.ended {
        unended(asked, false, pins);
    }
}

/// Reads the JSON text of a line, or of the content of a compressed one.
fn read_json(line: &RequestLine, decoded: &Decoded, inflated: bool, pins: &Pins, asked: &mut Asking) {
    let null_error = |codes: &'static [i64]| vec![allowed::error(codes, IdRule::Null)];
    if pins.gzip
        && (!inflated || pins.over_http)
        && let Some(wrapped) = gzip::unwrapped(&decoded.value, &decoded.facts)
    {
        match wrapped {
            // HTTP bodies are compressed by `Content-Encoding`; the contract is silent about this form
            // there.
            _ if pins.over_http => asked.parts.push(gzip::unspoken()),
            Ok(bytes) => read_text(&RequestLine { bytes, ..line.clone() }, true, pins, asked),
            Err(unit) => asked.parts.push(unit),
        }
        return;
    }
    pins.gate.borrow_mut().begin(&decoded.value);
    match &decoded.value {
        Json::Array(elements) if elements.is_empty() => {
            let mut unit = allowed::unit(None, "RPC-BATCH-02", null_error(&[code::REQUEST]));
            if !pins.batch {
                unit.allowed.push(allowed::reply(IdRule::Null));
            }
            asked.parts.push(unit);
        }
        Json::Array(elements) => {
            asked.together = true;
            asked.parts = elements
                .iter()
                .map(|element| match element {
                    Json::Object(_) => request::unit(element, &decoded.facts, pins),
                    _ => request::no_object("RPC-BATCH-03"),
                })
                .collect();
            if !pins.batch || elements.len() > BATCH_CERTAIN {
                let mut allowed = null_error(&[code::REQUEST, code::PARSE]);
                if !pins.batch {
                    allowed.push(Allowed::silence());
                    allowed.push(allowed::reply(IdRule::Null));
                }
                asked.whole = Some(allowed::unit(None, "RPC-BATCH-01", allowed));
            }
        }
        value @ Json::Object(_) => asked.parts.push(request::unit(value, &decoded.facts, pins)),
        _ => {
            let mut unit = request::no_object("RPC-REQ-03");
            if !pins.profile {
                // RFC 4627, which the specification cites, accepts only objects and arrays as JSON
                // texts.
                unit.allowed.extend(null_error(&[code::PARSE]));
            }
            asked.parts.push(unit);
        }
    }
    let length = line.bytes.strip_suffix(b"\r").unwrap_or(&line.bytes).len();
    allow_refusals(length, decoded, pins, asked);
    if length > REPLY_FITS_BYTES {
        for unit in asked.parts.iter_mut().filter(|unit| !unit.must_be_silent()) {
            // An id may be too long to echo.
            let id_bytes = unit.extra.id.as_ref().map_or(0, |id| id.to_text().len());
            unit.allowed.push(match id_bytes > REPLY_FITS_BYTES {
                true => allowed::error(&[code::INTERNAL, code::REQUEST], IdRule::OwnOrNull),
                false => allowed::error(&[code::INTERNAL], IdRule::Own),
            });
        }
    }
    work::give_way(asked);
    if !line.ended {
        unended(asked, true, pins);
    }
}

/// Adds the refusal of a text that some servers cannot read, or may not want to.
fn allow_refusals(length: usize, decoded: &Decoded, pins: &Pins, asked: &mut Asking) {
    let deep = decoded.facts.depth > pins.depth;
    let doubtful = pins.may_refuse(&decoded.facts, &decoded.value);
    if !deep && !doubtful && length <= LINE_BYTES_CERTAIN {
        return;
    }
    let refused = allowed::error(&[code::REQUEST, code::PARSE], IdRule::OwnOrNull);
    for unit in &mut asked.parts {
        unit.allowed.push(refused.clone());
        unit.extra.counts.0 = 0;
    }
    if doubtful && !pins.profile {
        // Parsers disagree about such texts (RFC 8259 §4, §6, §8.2).
        for unit in &mut asked.parts {
            unit.allowed.extend([allowed::reply(IdRule::Any), Allowed::silence()]);
        }
    }
    if !deep && !doubtful && !pins.profile {
        // The specification sets no limit, but a peer may have one.
        asked.parts.iter_mut().for_each(|unit| unit.allowed.push(Allowed::silence()));
    }
    if asked.together {
        let refused = allowed::error(&[code::REQUEST, code::PARSE], IdRule::Null);
        asked.whole.get_or_insert(allowed::unit(None, "RPC-JSON-08", vec![refused]));
    }
}

/// An upper bound of the nesting that a reader of these bytes may reach.
fn depth_at_most(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| matches!(byte, b'[' | b'{')).count()
}

fn malformed(kind: &DecodeErrorKind, bytes: &[u8], pins: &Pins) -> RequestPart {
    let holds = |word: &str| memchr::memmem::find(bytes, word.as_bytes()).is_some();
    let clause = match kind {
        DecodeErrorKind::InvalidUtf8 => "RPC-JSON-02",
        DecodeErrorKind::ByteOrderMark => "RPC-JSON-03",
        _ if holds("NaN") || holds("Infinity") => "RPC-JSON-12",
        _ => "RPC-JSON-01",
    };
    let mut codes: &'static [i64] = &[code::PARSE];
    let too_deep = depth_at_most(bytes) > pins.depth;
    if too_deep || matches!(kind, DecodeErrorKind::TooDeep { .. } | DecodeErrorKind::TooLong { .. }) {
        codes = &[code::PARSE, code::REQUEST];
    }
    let mut unit = allowed::unit(None, clause, vec![allowed::error(codes, IdRule::Null)]);
    if !pins.profile && clause != "RPC-JSON-01" {
        // Parsers may accept more than JSON (RFC 8259 §9), so any reply is allowed.
        unit.allowed.extend([allowed::reply(IdRule::Any), Allowed::silence()]);
    }
    unit
}

/// Allows a last line without a line feed to be processed, refused or ignored. An incomplete one must not be
/// processed.
fn unended(asked: &mut Asking, complete: bool, pins: &Pins) {
    if asked.together {
        let refused = allowed::error(&[code::PARSE, code::REQUEST], IdRule::Null);
        asked.whole = Some(allowed::unit(None, "RPC-FRAME-07", vec![Allowed::silence(), refused]));
    }
    for unit in &mut asked.parts {
        if complete && unit.choice.is_none() && !unit.must_be_silent() {
            // A peer that ignores an incomplete line may still process a complete one.
            let shows = if pins.is("last_line_without_lf", "silent") { None } else { Some("process") };
            unit.allowed.iter_mut().for_each(|allowed| allowed.shows = shows);
            unit.choice = Some("last_line_without_lf");
        }
        let shows = |allowed: Allowed, value| match unit.choice {
            Some("last_line_without_lf") => allowed.shows(value),
            _ => allowed,
        };
        let refused = allowed::error(&[code::PARSE, code::REQUEST], IdRule::OwnOrNull);
        let more = [shows(refused, "refuse"), shows(Allowed::silence(), "silent")];
        unit.allowed.extend(more);
        unit.clause = "RPC-FRAME-07";
        unit.extra.counts.0 = 0;
    }
}

/// Groups of lines that may run concurrently: all lines up to the next wait for answers.
fn bursts<'s, 'a>(
    steps: &'s [Step],
    all: &'s mut [&'a mut PlacedExpectation<Server>],
) -> impl Iterator<Item = &'s mut [&'a mut PlacedExpectation<Server>]> {
    let waits = |step: usize| steps.get(step).is_some_and(Step::awaits_answers);
    all.chunk_by_mut(move |one, next| one.step == next.step || !waits(one.step))
}

/// Bounds for the runs of the counting method. Concurrent requests may run in any order.
#[derive(Debug, Default)]
struct Runs {
    /// Number of certain runs before the last fence.
    settled: u64,
    /// Number of certain runs, once the pending ones are done.
    certain: u64,
    /// For each line, the runs settled before it.
    before: Vec<u64>,
    /// Number of counting results by id. A call without a result may or may not have run. That is judged elsewhere
    /// and must not fail later calls.
    told: HashMap<String, u64>,
}

impl Runs {
    fn of(transcript: &Transcript, session: usize) -> Self {
        let mut told = HashMap::new();
        let out = transcript.stdout(session);
        let may_tell = |line: &&[u8]| memchr::memmem::find(line, b"\"count\"").is_some();
        for value in out.split(|byte| *byte == b'\n').filter(may_tell).filter_map(frames::message) {
            let one = std::slice::from_ref(&value);
            for response in value.as_array().unwrap_or(one) {
                let key = response.pointer("/result/count").and(response.get("id")).and_then(allowed::key);
                *told.entry(key.unwrap_or_default()).or_insert(0) += 1;
            }
        }
        Self { told, ..Self::default() }
    }

    /// Number of certain runs of a request. A request with an id is certain to run only if a result shows it.
    fn certain(&mut self, unit: &RequestPart) -> u64 {
        let certain = unit.extra.counts.0;
        if certain == 0 || unit.extra.id.is_none() {
            return certain;
        }
        let told = unit.key().and_then(|key| self.told.get_mut(key)).filter(|told| **told > 0);
        told.map_or(0, |told| {
            *told -= 1;
            certain
        })
    }

    fn pass(&mut self, fenced: bool) {
        if fenced {
            self.settled = self.certain;
        }
    }

    fn count(&mut self, asked: &Asking) {
        self.before.push(self.settled);
        let certain: u64 = asked.parts.iter().map(|unit| self.certain(unit)).sum();
        self.certain += certain;
    }

    /// Sets the bounds in the allowed results of counting requests.
    fn settle(&self, steps: &[Step], all: &mut [&mut PlacedExpectation<Server>]) {
        let mut before = self.before.iter();
        let mut most = 0;
        for burst in bursts(steps, all) {
            let units = burst.iter().flat_map(|asked| &asked.due.parts);
            most += units.map(|unit| unit.extra.counts.1).sum::<u64>();
            for (asked, before) in burst.iter_mut().zip(&mut before) {
                let low = before + 1;
                for unit in &mut asked.due.parts {
                    for allowed in &mut unit.allowed {
                        if let Outcome::Answer(AllowedAnswer {
                            what: AnswerKind::Result(Demand::Count(from, to)),
                            ..
                        }) = &mut allowed.outcome
                        {
                            (*from, *to) = (low, most.max(low));
                        }
                    }
                }
            }
        }
    }
}
