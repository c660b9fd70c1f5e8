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

/// What a signature says that it is.
const CONTEXT: &[u8] = b"JSONRPC-HMAC-SHA256-V1\n";

/// Characters of a nonce.
const NONCE_CHARS_MAX: usize = 64;

/// Levels of nesting of a message; it was checked before.
const NESTING_MAX: usize = 1024;

/// The key that messages are signed with.
#[derive(Clone, PartialEq, Eq)]
pub struct AuthConfig {
    /// The secret that both sides share.
    pub key: Vec<u8>,
    /// Its name. A client says it; a server accepts no other where a message names one, and any where this is `None`.
    pub key_id: Option<String>,
}

impl std::fmt::Debug for AuthConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthConfig").field("key_id", &self.key_id).finish_non_exhaustive()
    }
}

/// Remembers the nonces of messages that were accepted.
pub trait NonceStore: Send {
    /// True when the nonce was remembered less than its life ago.
    fn is_known(&mut self, nonce: &str, now: Millis) -> bool;

    /// Remembers a nonce that is not known; false when there is no room.
    fn remember(&mut self, nonce: &str, now: Millis) -> bool;
}

/// The correct memory of nonces: forgets each after its life, never a live one.
#[derive(Debug)]
pub struct MemoryNonces {
    entries_max: usize,
    ttl_ms: u64,
    live: HashSet<Box<str>>,
    by_age: VecDeque<(Millis, Box<str>)>,
}

impl MemoryNonces {
    /// A memory for `entries_max` nonces, each for `ttl_ms`.
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

/// Checks whether a message was signed by whom it should be. It remembers nothing.
pub trait Verifier: Send {
    /// The nonce of `message`, a JSON object that has a canonical form, at `unix_s` seconds since 1970; `None` where the
    /// signature is missing, malformed, wrong or stale.
    fn verify(&self, message: &[u8], unix_s: u64) -> Option<String>;
}

/// The correct verifier.
#[derive(Debug)]
pub struct HmacVerifier {
    config: AuthConfig,
    skew_s: u64,
}

impl HmacVerifier {
    /// A verifier with this key.
    pub fn new(config: AuthConfig, limits: &Limits) -> Self {
        Self { config, skew_s: limits.rpc_clock_skew_s }
    }
}

impl Verifier for HmacVerifier {
    fn verify(&self, message: &[u8], unix_s: u64) -> Option<String> {
        let message = Value::parse(message, NESTING_MAX, &Policy::default()).ok()?;
        let auth = message.get("auth")?;
        let Value::Number(timestamp) = auth.get("timestamp")? else { return None };
        // However it is spelled: the spelling is no part of the canonical text.
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
        // Only one base64 text stands for a signature: padded, without bits beyond its end.
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

/// The signature of a message, which is a JSON object, with or without one in it: what a client puts into
/// `auth.signature`.
///
/// # Errors
/// The message is not JSON.
pub fn signature(key: &[u8], message: &[u8]) -> Result<String, crate::json::Error> {
    let message = Value::parse(message, NESTING_MAX, &Policy::default())?;
    // A key of any length will do for HMAC.
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
