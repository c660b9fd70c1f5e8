//! Signatures of what a client sends.

use super::Session;
use crate::client::scenario::Auth;
use crate::signature::signature;
use peerproof_engine::json::Json;

/// Seconds since 1970 that a clock of our time shows; milliseconds lie far beyond.
const SECONDS: std::ops::RangeInclusive<u64> = 1_600_000_000..=4_102_444_800;

/// Characters of a nonce.
const NONCE_CHARS_MAX: usize = 64;

impl Session<'_> {
    /// Judges the signature of every message, each by itself.
    pub(super) fn signatures(&mut self) {
        let known = self.known;
        let Some(auth) = &known.scenario.auth else { return };
        let mut nonces: Vec<&str> = Vec::new();
        for (_, line, messages) in known.talk.of_client() {
            for message in messages.iter().filter(|message| message.get("method").is_some()) {
                if let Err((reason, expected)) = fault(auth, message, &mut nonces) {
                    return self.add("RPC-CLIENT-24", reason, expected, line.text.clone());
                }
            }
        }
    }
}

/// What is wrong with the signature of `message`: reason code and what is expected.
fn fault<'m>(
    auth: &Auth,
    message: &'m Json,
    nonces: &mut Vec<&'m str>,
) -> Result<(), (&'static str, &'static str)> {
    let member = |name: &str| message.get("auth").and_then(|auth| auth.get(name));
    let given = member("signature").and_then(Json::as_str).ok_or(("not_signed", "`auth.signature`"))?;
    let timestamp = member("timestamp").and_then(Json::as_u64);
    if !timestamp.is_some_and(|seconds| SECONDS.contains(&seconds)) {
        return Err(("bad_timestamp", "`auth.timestamp` in seconds since 1970"));
    }
    let nonce = member("nonce").and_then(Json::as_str).ok_or(("no_nonce", "`auth.nonce`"))?;
    if nonce.is_empty() || nonce.chars().count() > NONCE_CHARS_MAX {
        return Err(("bad_nonce", "`auth.nonce` of 1 to 64 characters"));
    }
    if nonces.contains(&nonce) {
        return Err(("nonce_again", "a nonce that no message had before"));
    }
    nonces.push(nonce);
    let named = member("key_id");
    if named.is_some() && named.and_then(Json::as_str) != auth.key_id.as_deref() {
        return Err(("other_key_id", "the `key_id` of the scenario, or none"));
    }
    if given != signature(auth.key.as_bytes(), message) {
        return Err(("wrong_signature", "the HMAC-SHA256 of the message's canonical form, in base64"));
    }
    Ok(())
}
