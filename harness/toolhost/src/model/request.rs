//! Meaning of the bytes of one line, as far as the contract defines it.

use super::pins::Pins;
use peerproof_engine::data::json::{self, DecodeError, DecodeErrorKind, DecodeLimits, Decoded, Json};
use peerproof_engine::data::lines::{FilledVariable, RequestLine};
use peerproof_engine::data::near_miss;

/// Largest request (`ipc` §7 `MAX_STDIN_BYTES`), bytes without the line feed.
const REQUEST_BYTES_MAX: usize = 10 << 20;
/// Nesting that every peer must accept.
const DEPTH_MIN: usize = 64;
/// Largest integer that every peer must preserve.
const INTEGER_MAX: u64 = (1 << 53) - 1;

/// Kind of a line.
#[derive(Debug)]
pub(super) enum Reading {
    /// White space. `sure` is true if every reader agrees.
    Blank { sure: bool },
    /// Refused by every peer, for this clause.
    Malformed(&'static str),
    /// A line over the size limit.
    TooLong,
    /// A line that gets one reply with unknown content.
    Anything,
    /// A request with members of the right types.
    Request(Box<Request>),
}

/// A request whose known members have the right types.
#[derive(Debug, Default)]
pub(super) struct Request {
    pub aid: String,
    pub input: Input,
    pub state: Option<Json>,
    pub key: Option<String>,
    pub token: Token,
    /// Clause for which a peer may refuse it.
    pub may_refuse: Option<&'static str>,
    /// True if it has members that no peer knows.
    pub has_unknown: bool,
    /// True if it ends with a carriage return.
    pub has_cr: bool,
    /// True if it contains duplicate names.
    pub duplicates: bool,
    /// True if a string holds a lone surrogate.
    pub surrogates: bool,
    pub bytes: usize,
    /// The whole object of a lease request; else null.
    pub whole: Json,
}

/// The input of a tool.
#[derive(Debug, Default)]
pub(super) struct Input {
    /// Text of `input_json`; `None` if absent.
    pub text: Option<String>,
    /// Its value, an object; `None` if the text is not one.
    pub value: Option<Json>,
    /// True if every peer preserves it.
    pub plain: bool,
    /// Clause for which a peer may refuse it.
    pub may_refuse: Option<&'static str>,
}

/// A lease token.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Token {
    #[default]
    Absent,
    Empty,
    /// The captured token of this variable.
    Captured(String),
    /// A captured token with an addition, surely invalid.
    Altered,
    Literal(String),
}

/// Members of a request in serve mode.
const KNOWN: [&str; 6] = ["aid", "input_json", "inputs", "ds_state", "idempotency_key", "_lease_token"];

/// Reads a line of serve mode, or all of standard input in run mode.
pub(super) fn read(line: &RequestLine, pins: &Pins, serve: bool) -> Reading {
    let bytes: &[u8] = &line.bytes;
    let has_cr = bytes.last() == Some(&b'\r');
    let (decoded, bom) = match decoded(line, has_cr, pins, serve) {
        Ok(decoded) => decoded,
        Err(reading) => return reading,
    };
    let facts = decoded.facts;
    let whole = decoded.value;
    let Some(members) = whole.as_object() else { return Reading::Malformed("TH-REQ-01") };
    let mut request = Request {
        has_cr,
        duplicates: facts.duplicate_keys,
        surrogates: facts.lone_surrogates,
        bytes: bytes.len(),
        ..Request::default()
    };
    let mut may = |clause: &'static str| request.may_refuse = Some(clause);
    if bom && !pins.is("bom", "ignore") {
        may("TH-JSON-13");
    }
    if facts.depth > DEPTH_MIN {
        may("TH-JSON-06");
    }
    if facts.lone_surrogates {
        may("TH-JSON-08");
    }
    if numbers(&whole).big {
        may("TH-JSON-09");
    }
    let mut first = false;
    if facts.duplicate_keys {
        may("TH-JSON-07");
        let repeats = |name: &&str| members.iter().filter(|(member, _)| member == name).count() > 1;
        if KNOWN.iter().any(repeats) {
            match pins.get("duplicate_keys") {
                Some("first") => first = true,
                Some("last") => {}
                Some("refuse") => return Reading::Malformed("TH-JSON-07"),
                _ => return Reading::Anything,
            }
        }
    }
    let member = |name: &str| {
        let mut named = members.iter().filter(|(member, _)| member == name).map(|(_, value)| value);
        if first { named.next() } else { named.next_back() }
    };
    request.has_unknown = members.iter().any(|(name, _)| !KNOWN.contains(&name.as_str()));
    let null_refused = pins.is("null_member", "refuse");
    let null_absent = pins.is("null_member", "absent");
    // Reads a string member. `Err` if every peer refuses it.
    let mut text_member = |name: &str, clause: &'static str| match member(name) {
        None => Ok(None),
        Some(Json::String(text)) => Ok(Some(text.clone())),
        Some(Json::Null) if null_refused => Err("TH-REQ-11"),
        Some(Json::Null) => {
            if !null_absent {
                request.may_refuse = Some("TH-REQ-11");
            }
            Ok(None)
        }
        Some(_) => Err(clause),
    };
    if !serve {
        let input = match text_member("input_json", "TH-REQ-04") {
            Ok(input) => input,
            Err(clause) => return Reading::Malformed(clause),
        };
        return with_state(finish(request, input, &member, pins), whole, first);
    }
    let read = (|| {
        Ok((
            text_member("aid", "TH-REQ-02").map_err(|_| "TH-REQ-02")?,
            text_member("input_json", "TH-REQ-04")?,
            if pins.idempotency { text_member("idempotency_key", "TH-REQ-08")? } else { None },
            if pins.lease { text_member("_lease_token", "TH-REQ-09")? } else { None },
        ))
    })();
    let (aid, input, key, token) = match read {
        Ok(read) => read,
        Err(clause) => return Reading::Malformed(clause),
    };
    match aid {
        None => return Reading::Malformed("TH-REQ-02"),
        Some(aid) if aid.is_empty() => return Reading::Malformed("TH-REQ-02"),
        Some(aid) => request.aid = aid,
    }
    // Members of a feature that is not claimed are not judged.
    let unclaimed = (!pins.idempotency && member("idempotency_key").is_some())
        || (!pins.lease && member("_lease_token").is_some());
    if unclaimed {
        return Reading::Anything;
    }
    request.key = key;
    request.token = token.map_or(Token::Absent, |token| token_of(token, &line.filled));
    let is_own = line.filled.len() == 1 && matches!(request.token, Token::Captured(_) | Token::Altered);
    if !is_own && !line.filled.is_empty() {
        return Reading::Anything;
    }
    if pins.issue_aid.as_deref() == Some(request.aid.as_str()) {
        request.whole = whole.clone();
    }
    with_state(finish(request, input, &member, pins), whole, first)
}

/// JSON of a request, and true if a byte order mark precedes it. `Err` if that alone decides.
fn decoded(line: &RequestLine, has_cr: bool, pins: &Pins, serve: bool) -> Result<(Decoded, bool), Reading> {
    let bytes: &[u8] = &line.bytes;
    if bytes.len() > REQUEST_BYTES_MAX - 2 {
        if serve && has_cr && bytes.len() <= REQUEST_BYTES_MAX + 2 {
            return Err(Reading::Anything);
        }
        if bytes.len() > REQUEST_BYTES_MAX {
            return Err(Reading::TooLong);
        }
    }
    let (text, bom) = match bytes.strip_prefix(b"\xEF\xBB\xBF") {
        Some(text) => (text, true),
        None => (bytes, false),
    };
    if let Some(sure) = blank(text) {
        return Err(match serve {
            true => Reading::Blank { sure: sure && !bom },
            false => Reading::Malformed("TH-RUN-01"),
        });
    }
    if bom && pins.is("bom", "refuse") {
        return Err(Reading::Malformed("TH-JSON-13"));
    }
    match json::decode(text, &DecodeLimits::default()) {
        Ok(decoded) => Ok((decoded, bom)),
        Err(error) if matches!(error.kind, DecodeErrorKind::TooDeep { .. }) => Err(Reading::Anything),
        // A variable may have stood for any text.
        Err(_) if !line.filled.is_empty() => Err(Reading::Anything),
        Err(error) => Err(Reading::Malformed(clause_of(&error, text))),
    }
}

/// Moves the effective `ds_state` out of the whole object, if it is an object.
fn with_state(mut reading: Reading, whole: Json, first: bool) -> Reading {
    if let Reading::Request(request) = &mut reading {
        let mut members = whole.into_object().unwrap_or_default();
        let mut states = members.iter_mut().filter(|(name, _)| name == "ds_state").map(|(_, value)| value);
        let state = if first { states.next() } else { states.next_back() };
        request.state = state.filter(|state| state.as_object().is_some()).map(std::mem::take);
    }
    reading
}

fn finish<'a>(
    mut request: Request,
    input: Option<String>,
    member: &dyn Fn(&str) -> Option<&'a Json>,
    pins: &Pins,
) -> Reading {
    match member("ds_state") {
        None => {}
        Some(Json::Null) if pins.is("null_member", "refuse") => return Reading::Malformed("TH-REQ-11"),
        Some(Json::Null) if pins.is("null_member", "absent") => {}
        Some(Json::Null) => request.may_refuse = Some("TH-REQ-11"),
        Some(Json::Object(_)) => {}
        Some(_) => return Reading::Malformed("TH-REQ-07"),
    }
    if input.is_none() && member("inputs").is_some() {
        match pins.get("inputs_member") {
            Some("refuse") => return Reading::Malformed("TH-REQ-12"),
            Some("ignore") => {}
            _ => request.may_refuse = Some("TH-REQ-12"),
        }
    }
    request.input = read_input(input, request.surrogates);
    Reading::Request(Box::new(request))
}

/// Kind of a token, given the texts of the variables in the line.
fn token_of(text: String, filled: &[FilledVariable]) -> Token {
    if let [FilledVariable { name, bytes }] = filled {
        let quoted = [b"\"", bytes.as_slice(), b"\""].concat();
        let issued = json::decode(&quoted, &DecodeLimits::default()).ok();
        let issued = issued.as_ref().and_then(|it| it.value.as_str());
        let is_near = name.contains(near_miss::MARK);
        match issued {
            Some(issued) if issued == text && !is_near => return Token::Captured(name.clone()),
            Some(issued) if text.contains(issued) && (is_near || !issued.is_empty()) => {
                return Token::Altered;
            }
            _ => {}
        }
    }
    if text.is_empty() { Token::Empty } else { Token::Literal(text) }
}

fn read_input(text: Option<String>, surrogates: bool) -> Input {
    let Some(text) = text else {
        let value = Some(Json::object::<&str>([]));
        return Input { text: None, value, plain: true, may_refuse: None };
    };
    let (inner, bom) = match text.strip_prefix('\u{FEFF}') {
        Some(inner) => (inner, true),
        None => (text.as_str(), false),
    };
    let mut input = Input { plain: true, ..Input::default() };
    match json::decode(inner.as_bytes(), &DecodeLimits::default()) {
        Ok(decoded) if decoded.value.as_object().is_some() => {
            let numbers = numbers(&decoded.value);
            let facts = decoded.facts;
            input.plain = !(numbers.inexact
                || numbers.big
                || facts.duplicate_keys
                || facts.lone_surrogates
                || surrogates);
            input.may_refuse = if bom {
                Some("TH-JSON-13")
            } else if facts.depth > DEPTH_MIN {
                Some("TH-JSON-06")
            } else if facts.duplicate_keys {
                Some("TH-JSON-07")
            } else if facts.lone_surrogates {
                Some("TH-JSON-08")
            } else if numbers.big {
                Some("TH-JSON-09")
            } else {
                None
            };
            input.value = Some(decoded.value);
        }
        _ => input.plain = false,
    }
    input.text = Some(text);
    input
}

/// Some if `text` is blank: true if all readers agree, false if only some do.
fn blank(text: &[u8]) -> Option<bool> {
    if text.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')) {
        return Some(true);
    }
    // Most lines start with a brace and need no further check.
    if text.first() == Some(&b'{') {
        return None;
    }
    let text = std::str::from_utf8(text).ok()?;
    let loose =
        |c: char| c.is_whitespace() || c.is_control() || matches!(c, '\u{FEFF}' | '\u{180E}' | '\u{200B}');
    text.chars().all(loose).then_some(false)
}

/// Kinds of numbers in a value.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Numbers {
    /// True if a number may come back in another spelling of the same double.
    pub inexact: bool,
    /// True if an integer is beyond ±(2^53−1), or a number beyond every double.
    pub big: bool,
}

pub(super) fn numbers(value: &Json) -> Numbers {
    let mut found = Numbers::default();
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        match value {
            Json::Number(number) => {
                let integer = number.as_i64().map(i64::unsigned_abs);
                match integer {
                    Some(integer) if integer <= INTEGER_MAX => {}
                    Some(_) => found.big = true,
                    None => {
                        found.inexact = true;
                        found.big |= number.as_f64().is_none() || number.is_integral();
                    }
                }
            }
            Json::Array(items) => pending.extend(items),
            Json::Object(members) => pending.extend(members.iter().map(|(_, value)| value)),
            _ => {}
        }
    }
    found
}

/// Clause that an error in strict JSON breaks.
fn clause_of(error: &DecodeError, text: &[u8]) -> &'static str {
    match error.kind {
        DecodeErrorKind::InvalidUtf8 => "TH-JSON-04",
        DecodeErrorKind::InvalidNumber => "TH-JSON-02",
        DecodeErrorKind::TrailingBytes => "TH-JSON-03",
        DecodeErrorKind::UnexpectedByte { found: b'N' | b'I' | b'+' | b'.', .. } => "TH-JSON-02",
        DecodeErrorKind::UnexpectedByte { found: b'x' | b'X', .. }
            if error.offset > 0 && text.get(error.offset - 1) == Some(&b'0') =>
        {
            "TH-JSON-02"
        }
        DecodeErrorKind::UnexpectedEnd | DecodeErrorKind::UnexpectedByte { .. }
            if text.iter().filter(|byte| matches!(byte, b'[' | b'{')).count() > 1_000 =>
        {
            "TH-JSON-06"
        }
        _ => "TH-JSON-01",
    }
}
