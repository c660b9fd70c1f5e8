//! Signed messages: derives from the written bytes which of them a server must accept or refuse.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use super::super::signature::{DEPTH_MAX, Signable, mac, signable, signature};
use super::allowed::{self, Sealed};
use super::value::has_noncharacters;
use super::{Allowed, AnswerKind, Codes, IdRule, RequestPart, code, rate};
use peerproof_engine::contract::face::Outcome;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::finding::{Finding, Repair};
use peerproof_engine::data::json::{self, Json};

/// Error code for a missing or wrong signature.
pub(crate) const UNAUTHORIZED: i64 = -32003;

/// Largest allowed distance of a timestamp from the server's clock, s.
const SKEW_S: i64 = 300;
/// Tolerance for the time between writing and reading, s.
const ON_THE_WAY_S: i64 = 1;
/// Time for which a nonce must be remembered, ms.
const NONCE_LIFE_MS: u64 = 600_000;
/// Tolerance for the clock of a server and the interval of its clean-up: how much too early or too late it may
/// forget a nonce, ms.
const NONCE_EARLY_MS: u64 = 2_000;
const NONCE_LATE_MS: u64 = 60_000;
/// Longest nonce, characters.
const NONCE_CHARS_MAX: usize = 64;

/// Key of a server that claims `auth`.
pub(crate) fn key(facts: &Facts) -> Option<&str> {
    facts.features.get("auth")?.get("key").and_then(Value::as_str)
}

/// Name of the key, if it has one.
pub(crate) fn key_id(facts: &Facts) -> Option<&str> {
    facts.features.get("auth")?.get("key_id").and_then(Value::as_str)
}

/// Verdict about the signature of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// The server must accept it.
    Good,
    /// The server must refuse it, by this clause.
    Bad(&'static str),
    /// The contract leaves it open, or it depends on concurrent messages.
    Open,
}

/// Uses of one nonce.
#[derive(Debug, Clone, Copy)]
struct Use {
    /// Line of the first use.
    line: usize,
    /// Time of the first use, ms since 1970.
    first_ms: Option<u64>,
    /// Time of the last use, accepted or not, ms since 1970.
    last_ms: Option<u64>,
    /// True if the first use was certainly accepted.
    is_certain: bool,
}

/// State of a server that checks signatures and limits the rate.
#[derive(Debug, Default)]
pub struct Gate {
    key: Option<String>,
    key_id: Option<String>,
    /// Time of day at which the message was written, ms since 1970.
    unix_ms: Option<u64>,
    /// Uses of each nonce.
    nonces: HashMap<String, Use>,
    line: usize,
    /// Requests that pass in a fresh process, if the rate is limited.
    requests_max: Option<u64>,
    /// Requests that count for the rate, or may count.
    requests: u64,
    /// Requests on further connections. Their order relative to the first connection is unknown.
    pub beside: u64,
    /// True if the message is an element of a batch.
    in_batch: bool,
    /// Nonces that occur in several elements of the batch.
    twins: BTreeSet<String>,
}

impl Gate {
    /// The state of a fresh server.
    pub fn of(facts: &Facts) -> Self {
        Self {
            key: key(facts).map(str::to_owned),
            key_id: key_id(facts).map(str::to_owned),
            requests_max: rate::limit(facts).map(|limit| limit.requests),
            ..Self::default()
        }
    }

    /// Begins a line that was written at this time of day, ms since 1970.
    pub(crate) fn next_line(&mut self, unix_ms: Option<u64>) {
        self.unix_ms = unix_ms;
        self.line += 1;
    }

    /// Prepares for the messages of this line.
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

    /// Allowed replies to a message that cannot be signed, if messages must be signed. `facts` are those of its
    /// text.
    pub(crate) fn unsignable(&mut self, message: &Json, facts: &json::TextProperties) -> Option<RequestPart> {
        self.key.as_ref()?;
        let is_open = facts.depth > DEPTH_MAX || has_noncharacters(message);
        let numbers = if is_open { Signable::Open } else { signable(message) };
        let doubtful = facts.duplicate_keys || facts.lone_surrogates;
        if !doubtful && numbers == Signable::Yes {
            return None;
        }
        let id = message.get("id").filter(|id| matches!(id, Json::String(_) | Json::Number(_))).cloned();
        // An unsigned message may be refused for that. In a batch the fault may be in another element.
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
            // The message may have been accepted, and then counts for the rate.
            self.requests += 1;
            unit.allowed.extend([allowed::reply(IdRule::Any), Allowed::silence()]);
            unit.extra.counts = (0, 1);
        }
        Some(unit)
    }

    /// Adds the effects of the signature and of the rate limit to the allowed replies. Servers check both after the
    /// shape of a message and before its method.
    pub fn apply(&mut self, message: &Json, unit: &mut RequestPart) {
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
            // Only padded standard base64 is right. Unused trailing bits may differ.
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
        // Either of two elements of a batch may be processed first.
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
            // The nonce is new, or forgotten.
            _ => {
                let used = Use { line: self.line, first_ms: now, last_ms: now, is_certain: certain };
                self.nonces.insert(nonce.to_owned(), used);
            }
        }
        if certain { Verdict::Good } else { Verdict::Open }
    }
}

/// Applies the verdict about a signature to the allowed replies.
fn signed(message: &Json, unit: &mut RequestPart, verdict: Verdict, id: IdRule) {
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
            // Servers check the shape of a request first.
            let of_shape = |allowed: &Allowed| match &allowed.outcome {
                Outcome::Silence => true,
                Outcome::Answer(way) => {
                    matches!(way.what, AnswerKind::Error(Codes::Of(codes)) if codes.contains(&code::REQUEST))
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

/// The error of a response that refuses a signature.
pub(crate) fn refusal(response: &Json) -> Option<&Json> {
    let error = response.get("error")?;
    (error.get("code").and_then(Json::as_i64) == Some(UNAUTHORIZED)).then_some(error)
}

/// Length at which a prefix of an encoded signature cannot occur by chance, characters.
const TELLING_CHARS: usize = 10;

/// Finding about a refusal that reveals the right signature or its beginning.
pub(crate) fn leak(sealed: &Sealed, response: &Json) -> Option<Finding> {
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};
    let text = refusal(response)?.to_text();
    let hex: String = sealed.mac.iter().map(|byte| format!("{byte:02x}")).collect();
    let begins = |spelled: &str| spelled[..spelled.len().min(TELLING_CHARS)].to_owned();
    let (standard, safe) = (begins(&STANDARD.encode(&sealed.mac)), begins(&URL_SAFE.encode(&sealed.mac)));
    // The signature that the client sent itself is not a leak.
    let told = |spelled: &String| text.contains(spelled.as_str()) && !sealed.given.contains(spelled.as_str());
    let shown = [standard, safe].iter().any(told) || text.to_ascii_lowercase().contains(&begins(&hex));
    shown.then(|| {
        let expected = "an error that contains no part of the correct signature";
        Finding::new(
            "RPC-AUTH-12",
            "signature_told",
            expected,
            peerproof_engine::data::payload::shorten(&text, 200),
        )
    })
}

/// Finding about a refused signature without `data.type` "AUTH".
pub(crate) fn violation(response: &Json) -> Option<Finding> {
    let code = response.pointer("/error/code").and_then(Json::as_i64)?;
    let kind = response.pointer("/error/data/type").and_then(Json::as_str);
    (code == UNAUTHORIZED && kind != Some("AUTH")).then(|| {
        let got = peerproof_engine::data::payload::shorten(&response.to_text(), 200).into_owned();
        Finding::new("RPC-AUTH-01", "data_type", "error -32003 with `data.type` \"AUTH\"", got)
            .repaired_by(Repair::set("/error/data/type", "\"AUTH\""))
    })
}
