//! Signed messages: which of them a server has to accept, which to refuse, judged from what was really written.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use super::super::seal::DEPTH_MAX;
use super::super::signature::{Signable, mac, signable, signature};
use super::allowed;
use super::value::has_noncharacters;
use super::{Allowed, Codes, IdRule, Unit, What, code, rate};
use peerproof_engine::face::Outcome;
use peerproof_engine::facts::Facts;
use peerproof_engine::finding::{Finding, Repair};
use peerproof_engine::json::{self, Json};

/// Code of what is not signed as it has to be.
pub const UNAUTHORIZED: i64 = -32003;

/// How far a timestamp may be from the server's clock, seconds.
const SKEW_S: i64 = 300;
/// The time between writing and reading, seconds.
const ON_THE_WAY_S: i64 = 1;
/// How long a nonce is remembered, milliseconds.
const NONCE_LIFE_MS: u64 = 600_000;
/// What a server may keep nonces too short or too long by, milliseconds: its clock, and how often it looks.
const NONCE_EARLY_MS: u64 = 2_000;
const NONCE_LATE_MS: u64 = 60_000;
/// Characters of a nonce.
const NONCE_CHARS_MAX: usize = 64;

/// The key that a server is configured with, where it claims signatures.
pub fn key(facts: &Facts) -> Option<&str> {
    facts.features.get("auth")?.get("key").and_then(Value::as_str)
}

/// The name of the key, where it has one.
pub fn key_id(facts: &Facts) -> Option<&str> {
    facts.features.get("auth")?.get("key_id").and_then(Value::as_str)
}

/// What is to be said of a message's signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// It has to be accepted.
    Good,
    /// It has to be refused; the clause that says so.
    Bad(&'static str),
    /// The contract leaves it open, or it depends on what happened at the same time.
    Open,
}

/// How a nonce was used.
#[derive(Debug, Clone, Copy)]
struct Use {
    /// The line that used it first.
    line: usize,
    /// When that was, milliseconds since 1970.
    first_ms: Option<u64>,
    /// When it came last, accepted or not.
    last_ms: Option<u64>,
    /// It was accepted for certain.
    is_certain: bool,
}

/// What the harness knows of the signature of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// The right one, before it is spelled.
    pub mac: Vec<u8>,
    /// The one that it came with.
    pub given: String,
    /// The nonce, where another element of its batch has it as well and either may be accepted.
    pub twin: Option<String>,
}

/// What a server with signatures has seen so far.
#[derive(Debug, Default)]
pub struct Gate {
    key: Option<String>,
    key_id: Option<String>,
    /// Time of day at which the message was written, milliseconds since 1970.
    unix_ms: Option<u64>,
    /// How each nonce was used.
    nonces: HashMap<String, Use>,
    line: usize,
    /// Requests that pass in a fresh process, where their rate is limited.
    requests_max: Option<u64>,
    /// Requests that came to be counted, or may have.
    requests: u64,
    /// Requests on connections beside the first: nobody knows what they come before.
    pub beside: u64,
    /// The message is an element of a batch.
    in_batch: bool,
    /// Nonces that more than one element of the batch has.
    twins: BTreeSet<String>,
}

impl Gate {
    /// That of a server which has seen nothing.
    pub fn of(facts: &Facts) -> Self {
        Self {
            key: key(facts).map(str::to_owned),
            key_id: key_id(facts).map(str::to_owned),
            requests_max: rate::limit(facts).map(|limit| limit.requests),
            ..Self::default()
        }
    }

    /// The next line was written at this time of day.
    pub fn next_line(&mut self, unix_ms: Option<u64>) {
        self.unix_ms = unix_ms;
        self.line += 1;
    }

    /// The messages of this line follow.
    pub fn begin(&mut self, line: &Json) {
        self.twins.clear();
        self.in_batch = matches!(line, Json::Array(_));
        let mut seen = BTreeSet::new();
        for element in line.as_array().filter(|_| self.key.is_some()).unwrap_or_default() {
            let nonce = element.pointer("/auth/nonce").and_then(Json::as_str);
            if let Some(nonce) = nonce.filter(|nonce| !seen.insert((*nonce).to_owned())) {
                self.twins.insert(nonce.to_owned());
            }
        }
    }

    /// A message that cannot be signed, where messages are; `facts` are those of its text.
    pub fn unsignable(&mut self, message: &Json, facts: &json::Facts) -> Option<Unit> {
        self.key.as_ref()?;
        let is_open = facts.depth > DEPTH_MAX || has_noncharacters(message);
        let numbers = if is_open { Signable::Open } else { signable(message) };
        let doubtful = facts.duplicate_keys || facts.lone_surrogates;
        if !doubtful && numbers == Signable::Yes {
            return None;
        }
        let id = message.get("id").filter(|id| matches!(id, Json::String(_) | Json::Number(_))).cloned();
        // One that is not signed at all may be refused for that; and what is doubtful may be in another element.
        let signed = message.pointer("/auth/signature").is_some();
        let certain = signed && (numbers == Signable::No || doubtful && !self.in_batch);
        let refused = allowed::error(&[code::REQUEST, code::PARSE], IdRule::OwnOrNull);
        let mut unit = allowed::unit(id, "RPC-AUTH-07", vec![refused]);
        if message.get("id").is_none_or(Json::is_null) {
            unit.allowed.push(Allowed::silence());
        }
        if !certain {
            unit.allowed.push(allowed::error(&[UNAUTHORIZED], IdRule::OwnOrNull));
        }
        if facts.depth > DEPTH_MAX || !certain && (self.in_batch || numbers == Signable::Open) {
            // It may have passed, and count for the rate.
            self.requests += 1;
            unit.allowed.extend([allowed::reply(IdRule::Any), Allowed::silence()]);
            unit.extra.counts = (0, 1);
        }
        Some(unit)
    }

    /// Puts what stands between the shape of a message and its method into what it may be answered with: its signature
    /// and the rate.
    pub fn apply(&mut self, message: &Json, unit: &mut Unit) {
        let id = if unit.extra.id.is_some() { IdRule::Own } else { IdRule::Null };
        if let Some(key) = self.key.clone() {
            let verdict = self.verdict(message, &key);
            signed(message, unit, verdict, id);
            let text = |name: &str| message.get("auth")?.get(name)?.as_str().map(str::to_owned);
            let twin = text("nonce").filter(|nonce| verdict == Verdict::Open && self.twins.contains(nonce));
            if twin.is_some() || matches!(verdict, Verdict::Bad(_)) {
                let mac = mac(key.as_bytes(), message);
                unit.extra.sealed =
                    Some(Box::new(Sealed { mac, given: text("signature").unwrap_or_default(), twin }));
            }
            if matches!(verdict, Verdict::Bad(_)) {
                return;
            }
        }
        let Some(requests_max) = self.requests_max else { return };
        self.requests += 1;
        if self.requests.saturating_add(self.beside) > requests_max {
            let is_notification = message.get("id").is_none();
            unit.allowed.push(match is_notification {
                true => Allowed::silence(),
                false => allowed::error(&[rate::LIMITED], id),
            });
            unit.extra.counts.0 = 0;
        }
    }

    fn verdict(&mut self, message: &Json, key: &str) -> Verdict {
        let Some(auth) = message.get("auth").filter(|auth| matches!(auth, Json::Object(_))) else {
            return Verdict::Bad("RPC-AUTH-01");
        };
        let Some(given) = auth.get("signature").and_then(Json::as_str) else {
            return Verdict::Bad("RPC-AUTH-01");
        };
        let mut certain = true;
        if given != signature(key.as_bytes(), message) {
            use base64::Engine as _;
            let engine = base64::engine::GeneralPurpose::new(
                &base64::alphabet::STANDARD,
                base64::engine::GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
            );
            // A signature is padded standard base64: any other spelling is wrong but for bits that belong to no byte.
            if engine.decode(given).ok() != Some(mac(key.as_bytes(), message)) {
                return Verdict::Bad("RPC-AUTH-01");
            }
            certain = false;
        }
        let Some(timestamp) = auth.get("timestamp").and_then(Json::as_i64) else {
            return Verdict::Bad("RPC-AUTH-01");
        };
        let Some(nonce) = auth.get("nonce").and_then(Json::as_str) else {
            return Verdict::Bad("RPC-AUTH-03");
        };
        if nonce.is_empty() || nonce.chars().count() > NONCE_CHARS_MAX {
            return Verdict::Bad("RPC-AUTH-03");
        }
        match self.unix_ms.and_then(|unix_ms| i64::try_from(unix_ms / 1_000).ok()) {
            None => certain = false,
            Some(now) => {
                let ahead = timestamp.saturating_sub(now);
                if !(-SKEW_S..=SKEW_S + ON_THE_WAY_S).contains(&ahead) {
                    return Verdict::Bad("RPC-AUTH-02");
                }
                certain &= (ON_THE_WAY_S - SKEW_S..=SKEW_S).contains(&ahead);
            }
        }
        match auth.get("key_id") {
            None => {}
            Some(Json::String(id)) => certain &= self.key_id.as_ref() == Some(id),
            Some(_) => certain = false,
        }
        // Of two elements of a batch either may come first.
        certain &= !self.twins.contains(nonce);
        let now = self.unix_ms;
        let age_ms = |since: Option<u64>| now?.checked_sub(since?);
        match self.nonces.get_mut(nonce) {
            Some(used) if age_ms(used.last_ms).is_none_or(|age| age <= NONCE_LIFE_MS + NONCE_LATE_MS) => {
                used.last_ms = now;
                if used.line == self.line {
                    certain = false;
                } else if used.is_certain
                    && age_ms(used.first_ms).is_none_or(|age| age < NONCE_LIFE_MS - NONCE_EARLY_MS)
                {
                    return Verdict::Bad("RPC-AUTH-03");
                } else {
                    certain = false;
                    *used = Use { line: self.line, first_ms: now, last_ms: now, is_certain: false };
                }
            }
            // It was never used, or is forgotten.
            _ => {
                let used = Use { line: self.line, first_ms: now, last_ms: now, is_certain: certain };
                self.nonces.insert(nonce.to_owned(), used);
            }
        }
        if certain { Verdict::Good } else { Verdict::Open }
    }
}

/// Puts the verdict about a signature into what its message may be answered with.
fn signed(message: &Json, unit: &mut Unit, verdict: Verdict, id: IdRule) {
    let unauthorized = allowed::error(&[UNAUTHORIZED], id);
    let is_notification = message.get("id").is_none();
    match verdict {
        Verdict::Good => {}
        Verdict::Open => {
            if is_notification {
                unit.allowed.push(Allowed::silence());
            } else {
                unit.allowed.push(unauthorized);
            }
            unit.extra.counts.0 = 0;
        }
        Verdict::Bad(clause) => {
            // The shape of a request is looked at before.
            let of_shape = |allowed: &Allowed| match &allowed.outcome {
                Outcome::Silence => true,
                Outcome::Answer(way) => {
                    matches!(way.what, What::Error(Codes::Of(codes)) if codes.contains(&code::REQUEST))
                }
            };
            unit.allowed.retain(of_shape);
            unit.allowed.iter_mut().for_each(|allowed| allowed.shows = None);
            unit.choice = None;
            if !is_notification {
                unit.allowed.push(unauthorized);
            }
            unit.clause = if is_notification { "RPC-AUTH-05" } else { clause };
            unit.extra.counts = (0, 0);
        }
    }
}

/// The error that a response says to a message that is not signed as it has to be.
pub fn refusal(response: &Json) -> Option<&Json> {
    let error = response.get("error")?;
    (error.get("code").and_then(Json::as_i64) == Some(UNAUTHORIZED)).then_some(error)
}

/// Letters of a spelled signature that no text has by chance.
const TELLING_CHARS: usize = 10;

/// A refusal from which the right signature, or its beginning, can be read.
pub fn leak(sealed: &Sealed, response: &Json) -> Option<Finding> {
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};
    let text = refusal(response)?.to_text();
    let hex: String = sealed.mac.iter().map(|byte| format!("{byte:02x}")).collect();
    let begins = |spelled: &str| spelled[..spelled.len().min(TELLING_CHARS)].to_owned();
    let (standard, safe) = (begins(&STANDARD.encode(&sealed.mac)), begins(&URL_SAFE.encode(&sealed.mac)));
    // What was sent is no secret to whoever sent it.
    let told = |spelled: &String| text.contains(spelled.as_str()) && !sealed.given.contains(spelled.as_str());
    let shown = [standard, safe].iter().any(told) || text.to_ascii_lowercase().contains(&begins(&hex));
    shown.then(|| {
        let expected = "an error from which nothing of the right signature can be read";
        Finding::new(
            "RPC-AUTH-12",
            "signature_told",
            expected,
            peerproof_engine::payload::shorten(&text, 200),
        )
    })
}

/// What is wrong with an error that says that a message is not signed as it has to be.
pub fn violation(response: &Json) -> Option<Finding> {
    let code = response.pointer("/error/code").and_then(Json::as_i64)?;
    let kind = response.pointer("/error/data/type").and_then(Json::as_str);
    (code == UNAUTHORIZED && kind != Some("AUTH")).then(|| {
        let got = peerproof_engine::payload::shorten(&response.to_text(), 200).into_owned();
        Finding::new("RPC-AUTH-01", "data_type", "error -32003 with `data.type` \"AUTH\"", got)
            .repaired_by(Repair::set("/error/data/type", "\"AUTH\""))
    })
}
