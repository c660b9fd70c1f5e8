//! Rules about the signatures of a client's messages.

use super::Session;
use crate::client::scenario::Auth;
use crate::signature::signature;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::transcript::{EventKind, Transcript};

/// Plausible timestamps in seconds since 1970; milliseconds lie far beyond.
const SECONDS: std::ops::RangeInclusive<u64> = 1_600_000_000..=4_102_444_800;

/// Tolerated difference between a timestamp and the time of day, s: servers accept 300, and the message needs time
/// to arrive.
const SKEW_S: u64 = 330;

/// Longest nonce, characters.
const NONCE_CHARS_MAX: usize = 64;

impl Session<'_> {
    /// Judges the signature of every message.
    pub(super) fn signatures(&mut self) {
        let known = self.known;
        let Some(auth) = &known.scenario.auth else { return };
        let mut nonces: Vec<&str> = Vec::new();
        let clock = clock(self.transcript);
        for (_, line, messages) in known.talk.of_client() {
            // The client may have signed at any time between its start and now.
            let time = clock.map(|(begun_us, begun_s)| {
                let now_s = begun_s + line.at_us.saturating_sub(begun_us) / 1_000_000;
                begun_s.saturating_sub(SKEW_S)..=now_s + SKEW_S
            });
            for message in messages.iter().filter(|message| message.get("method").is_some()) {
                if let Err((reason, expected)) = fault(auth, message, time.as_ref(), &mut nonces) {
                    return self.add("RPC-CLIENT-24", reason, expected, line.text.clone());
                }
            }
        }
    }
}

/// A time of the conversation in microseconds, and its time of day in seconds since 1970.
fn clock(transcript: &Transcript) -> Option<(u64, u64)> {
    transcript.events.iter().find_map(|event| match event.kind {
        EventKind::Clock { unix_ms } => Some((event.at_us, unix_ms / 1_000)),
        _ => None,
    })
}

/// Checks the signature of `message`, sent at a `time` of day. The error is a reason code and the expectation.
fn fault<'m>(
    auth: &Auth,
    message: &'m Json,
    time: Option<&std::ops::RangeInclusive<u64>>,
    nonces: &mut Vec<&'m str>,
) -> Result<(), (&'static str, &'static str)> {
    let member = |name: &str| message.get("auth").and_then(|auth| auth.get(name));
    let given = member("signature").and_then(Json::as_str).ok_or(("not_signed", "`auth.signature`"))?;
    let timestamp = member("timestamp").and_then(Json::as_u64);
    if !timestamp.is_some_and(|seconds| SECONDS.contains(&seconds)) {
        return Err(("bad_timestamp", "`auth.timestamp` in seconds since 1970"));
    }
    if timestamp.zip(time).is_some_and(|(seconds, time)| !time.contains(&seconds)) {
        return Err((
            "stale_timestamp",
            "`auth.timestamp` within 300 s of the time at which a server reads it",
        ));
    }
    let nonce = member("nonce").and_then(Json::as_str).ok_or(("no_nonce", "`auth.nonce`"))?;
    if nonce.is_empty() || nonce.chars().count() > NONCE_CHARS_MAX {
        return Err(("bad_nonce", "`auth.nonce` of 1 to 64 characters"));
    }
    if nonces.contains(&nonce) {
        return Err(("nonce_again", "a nonce that no earlier message had"));
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
