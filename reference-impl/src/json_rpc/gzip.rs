//! Compressed messages on lines (RPC Performance "Compression", contract §7 "Compression").

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::MultiGzDecoder;

use super::reply::{Failure, FailureKind};
use crate::json::{Kind, Raw, Scanned};

/// Compressed body of a wrapper, an object with `encoding` and without `method`. `None` for any other line.
pub(super) fn wrapped<'t>(scanned: &Scanned<'_, 't>) -> Option<Result<Raw<'t>, Failure>> {
    if scanned.kind() != Kind::Object {
        return None;
    }
    let (mut encoding, mut body, mut jsonrpc) = (None, None, None);
    for (name, value) in scanned.members() {
        match name.bytes().as_ref() {
            b"encoding" => encoding = Some(value),
            b"body" => body = Some(value),
            b"jsonrpc" => jsonrpc = Some(value),
            b"method" => return None,
            _ => {}
        }
    }
    let encoding = encoding?;
    let is =
        |value: Option<Raw<'_>>, text: &str| value.and_then(Raw::as_str).is_some_and(|value| value.is(text));
    let refuse = |why: &str| Some(Err(Failure::invalid_request(why)));
    if !is(jsonrpc, "2.0") {
        return refuse("jsonrpc is not \"2.0\"");
    }
    if !is(Some(encoding), "gzip") {
        return refuse("the encoding is not gzip");
    }
    match body {
        Some(body) if body.kind() == Kind::String => Some(Ok(body)),
        _ => refuse("body is no string"),
    }
}

/// Inflates a wrapped body, to at most `bytes_max` bytes.
///
/// # Errors
/// Fails if the body is corrupt or too large.
pub(super) fn unwrapped(body: Raw<'_>, bytes_max: usize) -> Result<Vec<u8>, Failure> {
    let base64 = body.as_str().map(|text| text.bytes()).unwrap_or_default();
    let corrupt = |why: &str| Failure::new(FailureKind::ParseError, why);
    let packed = STANDARD.decode(base64).map_err(|_| corrupt("body is no base64"))?;
    inflate(&packed, bytes_max)
}

/// Inflates a gzip stream to at most `bytes_max` bytes.
///
/// # Errors
/// Fails if the stream is corrupt or too large.
pub(crate) fn inflate(packed: &[u8], bytes_max: usize) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
    let read = MultiGzDecoder::new(packed).take(limit).read_to_end(&mut text);
    if read.is_err() {
        return Err(Failure::new(FailureKind::ParseError, "the gzip data is corrupt"));
    }
    if text.len() > bytes_max {
        let details = format!("a message has at most {bytes_max} bytes");
        return Err(Failure::new(FailureKind::MessageTooLarge, details));
    }
    Ok(text)
}
