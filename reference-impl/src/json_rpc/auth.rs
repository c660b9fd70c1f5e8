//! Signed messages (RPC Security "HMAC-SHA256 signature", contract §7 "Auth").

use std::collections::{HashSet, VecDeque};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::jcs::write_jcs;
use crate::json::{Policy, Value};
use crate::limits::Limits;
use crate::machine::Millis;

/// Domain separator at the start of each signed text.
const CONTEXT: &[u8] = b"JSONRPC-HMAC-SHA256-V1\n";

/// Longest nonce in characters.
const NONCE_CHARS_MAX: usize = 64;

/// Levels of nesting for parsing; the message was checked before.
const NESTING_MAX: usize = 1024;

/// Key for signing messages.
#[derive(Clone, PartialEq, Eq)]
pub struct AuthConfig {
    /// Secret shared by both sides.
    pub key: Vec<u8>,
    /// Name of the key. A client sends it. A server refuses messages that name another key; `None` accepts any name.
    pub key_id: Option<String>,
}

impl std::fmt::Debug for AuthConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthConfig").field("key_id", &self.key_id).finish_non_exhaustive()
    }
}

/// Memory for the nonces of accepted messages.
pub trait NonceStore: Send {
    /// True if the nonce was remembered and has not expired.
    fn is_known(&mut self, nonce: &str, now: Millis) -> bool;

    /// Remembers an unknown nonce. Returns false if there is no room.
    fn remember(&mut self, nonce: &str, now: Millis) -> bool;
}

/// The correct memory: it forgets each nonce when it expires, and never earlier.
#[derive(Debug)]
pub struct MemoryNonces {
    entries_max: usize,
    ttl_ms: u64,
    live: HashSet<Box<str>>,
    by_age: VecDeque<(Millis, Box<str>)>,
}

impl MemoryNonces {
    /// Creates a memory for `entries_max` nonces, each for `ttl_ms`.
    pub fn new(entries_max: usize, ttl_ms: u64) -> Self {
        Self { entries_max, ttl_ms, live: HashSet::new(), by_age: VecDeque::new() }
    }

    fn forget(&mut self, now: Millis) {
        while let Some((at, nonce)) = self.by_age.front()
            && now.saturating_sub(*at) >= self.ttl_ms
        {
            self.live.remove(nonce);
            self.by_age.pop_front();
        }
    }
}

impl NonceStore for MemoryNonces {
    fn is_known(&mut self, nonce: &str, now: Millis) -> bool {
        self.forget(now);
        self.live.contains(nonce)
    }

    fn remember(&mut self, nonce: &str, now: Millis) -> bool {
        self.forget(now);
        if self.live.len() >= self.entries_max {
            return false;
        }
        self.live.insert(nonce.into());
        self.by_age.push_back((now, nonce.into()));
        true
    }
}

/// Verifier of signatures. It has no memory.
pub trait Verifier: Send {
    /// Returns the nonce of `message`, a JSON object with a canonical form, at `unix_s` seconds since 1970. Returns
    /// `None` if the signature is missing, malformed, wrong or stale.
    fn verify(&self, message: &[u8], unix_s: u64) -> Option<String>;
}

/// The correct verifier.
#[derive(Debug)]
pub struct HmacVerifier {
    config: AuthConfig,
    skew_s: u64,
}

impl HmacVerifier {
    /// Creates a verifier with this key.
    pub fn new(config: AuthConfig, limits: &Limits) -> Self {
        Self { config, skew_s: limits.rpc_clock_skew_s }
    }
}

impl Verifier for HmacVerifier {
    fn verify(&self, message: &[u8], unix_s: u64) -> Option<String> {
        let message = Value::parse(message, NESTING_MAX, &Policy::default()).ok()?;
        let auth = message.get("auth")?;
        let Value::Number(timestamp) = auth.get("timestamp")? else { return None };
        // Any spelling is accepted, because it is not part of the canonical text.
        let timestamp = u64::try_from(timestamp.as_i64()?).ok()?;
        let nonce = auth.get("nonce")?.as_str()?;
        if nonce.is_empty() || nonce.chars().count() > NONCE_CHARS_MAX {
            return None;
        }
        let key_id = match auth.get("key_id") {
            None => None,
            Some(key_id) => Some(key_id.as_str()?),
        };
        if let (Some(known), Some(named)) = (self.config.key_id.as_deref(), key_id)
            && known != named
        {
            return None;
        }
        // Each signature has exactly one base64 text: padded, without excess bits.
        let signature = STANDARD.decode(auth.get("signature")?.as_str()?).ok()?;
        let mac = mac(&self.config.key, &message)?;
        mac.verify_slice(&signature).ok()?;
        (timestamp.abs_diff(unix_s) <= self.skew_s).then(|| nonce.to_owned())
    }
}

fn mac(key: &[u8], message: &Value) -> Option<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
    mac.update(CONTEXT);
    let mut text = Vec::new();
    write_jcs(&mut text, &without_signature(message));
    mac.update(&text);
    Some(mac)
}

fn without_signature(message: &Value) -> Value {
    let Value::Object(members) = message else { return message.clone() };
    let strip = |value: &Value| match value {
        Value::Object(members) => {
            Value::Object(members.iter().filter(|(name, _)| name != "signature").cloned().collect())
        }
        other => other.clone(),
    };
    let member = |(name, value): &(crate::json::Text, Value)| {
        (name.clone(), if name == "auth" { strip(value) } else { value.clone() })
    };
    Value::Object(members.iter().map(member).collect())
}

/// Signature of a message, a JSON object with or without a signature in it. A client sends it as `auth.signature`.
///
/// # Errors
/// Fails if the message is not JSON.
pub fn signature(key: &[u8], message: &[u8]) -> Result<String, crate::json::Error> {
    let message = Value::parse(message, NESTING_MAX, &Policy::default())?;
    // HMAC accepts a key of any length.
    Ok(mac(key, &message).map(|mac| STANDARD.encode(mac.finalize().into_bytes())).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonces_live_their_time_and_full_memories_forget_nothing() {
        let mut nonces = MemoryNonces::new(2, 100);
        assert!(nonces.remember("a", 0) && nonces.remember("b", 50));
        assert!(!nonces.remember("c", 99));
        assert!(nonces.is_known("a", 99) && !nonces.is_known("a", 100));
        assert!(nonces.is_known("b", 149) && nonces.remember("c", 149));
        assert!(!nonces.is_known("b", 150));
    }
    #[test]
    fn a_key_is_not_shown() {
        let shown = format!("{:?}", AuthConfig { key: b"secret".to_vec(), key_id: Some("k1".into()) });
        assert_eq!(shown, "AuthConfig { key_id: Some(\"k1\"), .. }");
    }
}
