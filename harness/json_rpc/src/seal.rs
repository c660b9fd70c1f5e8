//! Fills in timestamps, nonces and signatures at the moment of writing.
//!
//! If a server claims `auth`, each message without `auth` gets one when it is written, so that every conversation
//! works. Checks about signatures write an `auth` of their own, with these placeholders:
//!
//! | | |
//! |---|---|
//! | `"@now"`, `"@now-299"`, `"@now+302"` | seconds since 1970, as a number |
//! | `"@now-text"` | the time as a string |
//! | `"@nonce"` | a fresh nonce |
//! | `"@nonce:NAME"` | the nonce of this name in this conversation |
//! | `"@nonce-longest:NAME"`, `"@nonce-shortest:NAME"` | named nonces of 64 characters and of one |
//! | `"@nonce-near:KIND:NAME"` | a near miss of that nonce ([`near_misses`]) |
//! | `"@signature"` | the signature of the surrounding message |
//! | `"@signature-near:KIND"` | a near miss of the signature; the signature itself if this kind does not exist |
//! | `"@signature-of:TEXT"` | the signature of another message |
//! | `"@signature-by:KEY"` | the signature of the surrounding message by another key |
//! | `"@gzip:TEXT"` | the text, signed if necessary, compressed and in base64 |
//! | `"@gzip-padded-to-N:TEXT"`, … | other forms of [`Packing`] |
//! | `"auth":"@absent",` | no `auth` at all |

use base64::Engine as _;
use sha2::{Digest as _, Sha256};

use super::model::auth::{key, key_id};
use super::signature::{DEPTH_MAX, Signable, signable, signature};
use super::talk::quoted;
use peerproof_engine::contract::boundary::WriteContext;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::json::{self, DecodeLimits, Json, string_end};
use peerproof_engine::data::near_miss::near_misses;
use peerproof_engine::data::packing::Packing;

/// Placeholder of an absent `auth`.
pub(crate) const ABSENT: &str = "\"auth\":\"@absent\",";

/// First of some 16,000 one-character nonces. A conversation chooses among them by its unique word, because a
/// server may remember nonces of earlier conversations.
const SIGNS_FROM: u32 = 0x4e00;

/// Fills in the placeholders of `bytes` at this moment. `None` if the server needs no change.
pub(crate) fn seal(facts: &Facts, bytes: &[u8], moment: &WriteContext) -> Option<Vec<u8>> {
    let key = key(facts);
    if key.is_none() && !facts.claims("gzip") {
        return None;
    }
    let mut out = Vec::with_capacity(bytes.len() + 256);
    let mut sealer = Sealer { key: key.map(str::as_bytes), key_id: key_id(facts), moment, nonces: 0 };
    let lines = bytes.split_inclusive(|byte| *byte == b'\n' && !moment.is_one_body);
    for line in lines {
        let end = line.strip_suffix(b"\n").unwrap_or(line);
        match std::str::from_utf8(end).ok().and_then(|text| sealer.line(text)) {
            Some(text) => out.extend_from_slice(text.as_bytes()),
            None => out.extend_from_slice(end),
        }
        out.extend_from_slice(&line[end.len()..]);
    }
    Some(out)
}

struct Sealer<'a> {
    /// `None` if messages are not signed.
    key: Option<&'a [u8]>,
    key_id: Option<&'a str>,
    moment: &'a WriteContext,
    nonces: usize,
}

impl Sealer<'_> {
    fn line(&mut self, text: &str) -> Option<String> {
        let text = self.moments(text);
        let text = if text.contains("\"@gzip") { self.packed(&text) } else { text };
        let Ok(decoded) = json::decode(text.as_bytes(), &DecodeLimits::default()) else {
            // A line that is cut off on purpose cannot be decoded.
            return text.contains(ABSENT).then(|| text.replace(ABSENT, ""));
        };
        if decoded.facts.depth > DEPTH_MAX {
            return None;
        }
        match &decoded.value {
            message @ Json::Object(_) => self.message(&text, message),
            Json::Array(items) => {
                let mut out = String::with_capacity(text.len() + items.len() * 160);
                let mut at = 0;
                for (range, item) in elements(&text).into_iter().zip(items) {
                    out.push_str(&text[at..range.start]);
                    let element = &text[range.clone()];
                    out.push_str(&self.message(element, item).unwrap_or_else(|| element.to_owned()));
                    at = range.end;
                }
                out.push_str(&text[at..]);
                Some(out)
            }
            _ => Some(text),
        }
    }

    /// Adds the signature to a message.
    fn message(&mut self, text: &str, message: &Json) -> Option<String> {
        let Json::Object(members) = message else { return None };
        let is_wrapper = message.get("encoding").is_some() && message.get("method").is_none();
        if message.get("auth").and_then(Json::as_str) == Some("@absent") {
            let member = ABSENT.trim_end_matches(',');
            let without = if text.contains(ABSENT) { ABSENT } else { member };
            return Some(text.replacen(without, "", 1));
        }
        let Some(key) = self.key.filter(|_| !is_wrapper) else { return Some(text.to_owned()) };
        if signable(message) == Signable::No {
            return Some(text.to_owned());
        }
        let Some(auth) = message.get("auth") else {
            let key_id = self.key_id.map(|id| format!("\"key_id\":{},", quoted(id))).unwrap_or_default();
            let auth = format!(
                "{{{key_id}\"timestamp\":{},\"nonce\":{},\"signature\":\"@signature\"}}",
                self.moment.unix_ms / 1_000,
                quoted(&self.fresh())
            );
            let open = text.find('{')? + 1;
            let comma = if members.is_empty() { "" } else { "," };
            let text = format!("{}\"auth\":{auth}{comma}{}", &text[..open], &text[open..]);
            let message: Json = text.parse().ok()?;
            return self.message(&text, &message);
        };
        let word = auth.get("signature").and_then(Json::as_str).filter(|word| word.starts_with("@signature"));
        let Some(word) = word else { return Some(text.to_owned()) };
        let signed = if let Some(other) = word.strip_prefix("@signature-of:") {
            signature(key, &self.moments(other).parse().ok()?)
        } else if let Some(kind) = word.strip_prefix("@signature-near:") {
            near_miss(kind, signature(key, message))
        } else if let Some(key) = word.strip_prefix("@signature-by:") {
            signature(key.as_bytes(), message)
        } else {
            signature(key, message)
        };
        Some(strings(text, &mut |content| (content == word).then(|| quoted(&signed))))
    }

    /// Replaces placeholders of compressed texts.
    fn packed(&mut self, text: &str) -> String {
        strings(text, &mut |content| {
            let (form, inner) = content.strip_prefix("@gzip")?.split_once(':')?;
            let packing = Packing::of_word(form)?;
            let bytes = self.line(inner).unwrap_or_else(|| inner.to_owned()).into_bytes();
            let packed = packing.pack(&bytes).ok()?;
            Some(quoted(&base64::engine::general_purpose::STANDARD.encode(packed)))
        })
    }

    fn fresh(&mut self) -> String {
        self.nonces += 1;
        format!("{}-{}-{}", self.moment.run, self.moment.step, self.nonces)
    }

    /// Replaces placeholders of times and nonces.
    fn moments(&mut self, text: &str) -> String {
        if !text.contains("\"@") {
            return text.to_owned();
        }
        strings(text, &mut |content| {
            if let Some(offset) = content.strip_prefix("@now") {
                let now = i64::try_from(self.moment.unix_ms / 1_000).ok()?;
                return match offset {
                    "" => Some(now.to_string()),
                    "-text" => Some(quoted(&now.to_string())),
                    offset => Some((now + offset.parse::<i64>().ok()?).to_string()),
                };
            }
            if let Some((kind, name)) = content.strip_prefix("@nonce-near:").and_then(|it| it.split_once(':'))
            {
                return Some(quoted(&near_miss(kind, format!("{}-{name}", self.moment.run))));
            }
            if let Some((length, name)) = content.strip_prefix("@nonce-").and_then(|it| it.split_once(':')) {
                let digest = Sha256::digest(format!("{}-{name}", self.moment.run));
                return match length {
                    "longest" => {
                        Some(quoted(&digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>()))
                    }
                    "shortest" => {
                        char::from_u32(SIGNS_FROM + u32::from(digest[0]) * 64 + u32::from(digest[1]) % 64)
                            .map(|sign| quoted(&sign.to_string()))
                    }
                    _ => None,
                };
            }
            match content.strip_prefix("@nonce")? {
                "" => Some(quoted(&self.fresh())),
                name => Some(quoted(&format!("{}-{}", self.moment.run, name.strip_prefix(':')?))),
            }
        })
    }
}

/// The near miss of this kind, or the text itself if there is none.
fn near_miss(kind: &str, right: String) -> String {
    let miss = near_misses(&right).into_iter().find(|miss| miss.kind == kind);
    miss.map_or(right, |miss| miss.text)
}

/// Replaces every JSON string of a text whose content `replace` knows.
fn strings(text: &str, replace: &mut dyn FnMut(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('"') {
        out.push_str(&rest[..at]);
        let end = string_end(rest.as_bytes(), at + 1);
        let literal = &rest[at..end];
        // Only placeholders begin with `@`; other strings are not decoded.
        let content = literal.starts_with("\"@").then(|| literal.parse::<Json>().ok()).flatten();
        match content.as_ref().and_then(Json::as_str).and_then(&mut *replace) {
            Some(text) => out.push_str(&text),
            None => out.push_str(literal),
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

/// Positions of the elements of an array in its text, which is valid JSON.
pub(super) fn elements(text: &str) -> Vec<std::ops::Range<usize>> {
    let bytes = text.as_bytes();
    let (mut found, mut depth, mut start, mut at) = (Vec::new(), 0_usize, 0, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = string_end(bytes, at + 1);
                continue;
            }
            b'[' | b'{' => {
                depth += 1;
                if depth == 1 {
                    start = at + 1;
                }
            }
            b']' | b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 && !text[start..at].trim().is_empty() {
                    found.push(start..at);
                }
            }
            b',' if depth == 1 => {
                found.push(start..at);
                start = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use peerproof_engine::data::clause::Side;

    fn sealed(text: &str) -> String {
        sealed_as(text, false)
    }

    fn sealed_as(text: &str, is_one_body: bool) -> String {
        let mut facts = Facts::new(Side::Provider);
        facts.features.insert("auth".to_owned(), serde_json::json!({ "key": "k" }));
        let moment = WriteContext { unix_ms: 1_000_500, run: "r".to_owned(), step: 3, is_one_body };
        String::from_utf8(seal(&facts, text.as_bytes(), &moment).unwrap()).unwrap()
    }

    fn is_signed(message: &Json) -> bool {
        let signed = signature(b"k", message);
        message.pointer("/auth/signature").and_then(Json::as_str) == Some(&signed)
    }

    #[test]
    fn every_message_is_signed_by_itself() {
        let text = sealed(" {\"id\":1}\n[{\"id\":\"],{\"}, 1 ,{ }]\n{\"cut\":");
        let lines: Vec<&str> = text.lines().collect();
        assert!(is_signed(&lines[0].parse().unwrap()), "{text}");
        let batch: Json = lines[1].parse().unwrap();
        let items = batch.as_array().unwrap();
        assert!(is_signed(&items[0]) && is_signed(&items[2]) && items.len() == 3, "{text}");
        assert_ne!(items[0].pointer("/auth/nonce"), items[2].pointer("/auth/nonce"));
        assert_eq!(lines[2], "{\"cut\":");
    }

    #[test]
    fn one_body_is_signed_as_a_whole() {
        let text = sealed_as("{\r\n \"id\":\n1}\n\n", true);
        assert!(is_signed(&text.parse().unwrap()) && text.ends_with("1}\n\n"), "{text}");
    }

    #[test]
    fn words_stand_for_the_moment() {
        let text = sealed(
            "{\"auth\":\"@absent\",\"id\":1}\n{\"auth\" : {\"timestamp\":\"@now-299\",\"nonce\":\"@nonce:a\",\"signature\":\"@signature\"},\"x\":\"\\u0041\"}\n",
        );
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "{\"id\":1}");
        assert!(
            lines[1].contains("\"timestamp\":701,\"nonce\":\"r-a\"") && lines[1].contains("\\u0041"),
            "{text}"
        );
        assert!(is_signed(&lines[1].parse().unwrap()));
    }

    #[test]
    fn the_time_can_be_a_string() {
        let text = sealed("{\"auth\":{\"timestamp\":\"@now-text\",\"signature\":\"@signature\"}}");
        assert!(text.contains("\"timestamp\":\"1000\"") && is_signed(&text.parse().unwrap()), "{text}");
    }

    #[test]
    fn nearly_right_signatures_and_nonces_can_be_written() {
        let of = |signature: &str| {
            let auth = format!(r#"{{"nonce":"@nonce-near:blank-behind:a","signature":"{signature}"}}"#);
            sealed(&format!("{{\"auth\":{auth}}}")).parse::<Json>().unwrap()
        };
        assert_eq!(of("@signature").pointer("/auth/nonce").and_then(Json::as_str), Some("r-a "));
        assert!(is_signed(&of("@signature")) && !is_signed(&of("@signature-near:shorter-by-one")));
    }

    #[test]
    fn nonces_can_be_as_long_and_as_short_as_may_be() {
        for (word, chars) in [("longest", 64), ("shortest", 1)] {
            let text = sealed(&format!(
                "{{\"auth\":{{\"nonce\":\"@nonce-{word}:a\",\"signature\":\"@signature\"}}}}"
            ));
            let message: Json = text.parse().unwrap();
            let nonce = message.pointer("/auth/nonce").and_then(Json::as_str).unwrap();
            assert_eq!(nonce.chars().count(), chars, "{text}");
            assert!(is_signed(&message), "{text}");
        }
    }

    #[test]
    fn another_message_can_be_signed() {
        let other = r#"{"id":1,"auth":{"timestamp":"@now","nonce":"@nonce:a"}}"#;
        let text = sealed(&format!(
            "{{\"id\":2,\"auth\":{{\"timestamp\":\"@now\",\"nonce\":\"@nonce:a\",\"signature\":{}}}}}\n",
            quoted(&format!("@signature-of:{other}"))
        ));
        let message: Json = text.parse().unwrap();
        assert!(!is_signed(&message), "{text}");
        let wanted = signature(b"k", &r#"{"id":1,"auth":{"timestamp":1000,"nonce":"r-a"}}"#.parse().unwrap());
        assert_eq!(message.pointer("/auth/signature").and_then(Json::as_str), Some(wanted.as_str()));
    }
}
