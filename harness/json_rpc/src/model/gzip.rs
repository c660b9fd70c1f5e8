//! Compressed messages: unwraps lines, and derives the allowed replies if that fails.

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::bufread::GzDecoder;

use super::allowed;
use super::{Allowed, IdRule, LINE_BYTES_MAX, RequestPart, code};
use peerproof_engine::data::json::{Json, TextProperties};

fn refused(clause: &'static str, codes: &'static [i64]) -> RequestPart {
    allowed::unit(None, clause, vec![allowed::error(codes, IdRule::Any)])
}

/// Allowed replies to a corrupt or incomplete gzip stream.
pub(crate) fn corrupt() -> RequestPart {
    refused("RPC-GZIP-03", &[code::PARSE])
}

/// Allowed replies to a message that inflates beyond the size limit.
pub(crate) fn too_large() -> RequestPart {
    refused("RPC-GZIP-02", &[code::REQUEST])
}

/// Allowed replies to a compressed message about which the contract is silent.
pub(crate) fn unspoken() -> RequestPart {
    allowed::unit(None, "RPC-GZIP-03", vec![allowed::reply(IdRule::Any), Allowed::silence()])
}

/// Content of a line that is a wrapper: an object with `encoding` and without `method`. The error holds the allowed
/// replies to a wrapper that cannot be unwrapped.
pub(crate) fn unwrapped(message: &Json, facts: &TextProperties) -> Option<Result<Vec<u8>, RequestPart>> {
    if message.get("method").is_some() || !matches!(message, Json::Object(_)) {
        return None;
    }
    let encoding = message.get("encoding")?;
    let is_plain = message.get("jsonrpc").and_then(Json::as_str) == Some("2.0")
        && encoding.as_str() == Some("gzip")
        && !facts.duplicate_keys;
    let Some(body) = message.get("body").and_then(Json::as_str).filter(|_| is_plain) else {
        return Some(Err(refused("RPC-GZIP-04", &[code::REQUEST, code::PARSE, code::PARAMS])));
    };
    let Ok(packed) = STANDARD.decode(body) else { return Some(Err(corrupt())) };
    let mut text = Vec::new();
    let mut rest = packed.as_slice();
    let limit = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    let read = GzDecoder::new(&mut rest).take(limit).read_to_end(&mut text);
    if text.len() > LINE_BYTES_MAX {
        return Some(Err(too_large()));
    }
    if read.is_err() {
        return Some(Err(corrupt()));
    }
    if !rest.is_empty() {
        // Another gzip member or other bytes follow.
        return Some(Err(unspoken()));
    }
    Some(Ok(text))
}
