//! Signatures of messages, implemented from the contract alone: HMAC-SHA256 over the canonical form of RFC 8785.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use peerproof_engine::data::json::{Json, Number};

/// Domain separator in front of the signed text.
const CONTEXT: &[u8] = b"JSONRPC-HMAC-SHA256-V1\n";

/// Depth beyond which messages are not signed, levels.
pub(crate) const DEPTH_MAX: usize = 200;

/// Signature of a message, over its canonical form without `auth.signature`.
pub fn signature(key: &[u8], message: &Json) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(mac(key, message))
}

/// Bytes of the signature.
pub(crate) fn mac(key: &[u8], message: &Json) -> Vec<u8> {
    // HMAC accepts keys of any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return Vec::new() };
    mac.update(CONTEXT);
    mac.update(canonical(&unsigned(message)).as_bytes());
    mac.finalize().into_bytes().to_vec()
}

/// A message without `auth.signature`.
fn unsigned(message: &Json) -> Json {
    let Json::Object(members) = message else { return message.clone() };
    let without = |value: &Json| match value {
        Json::Object(auth) => {
            Json::Object(auth.iter().filter(|(name, _)| name != "signature").cloned().collect())
        }
        other => other.clone(),
    };
    let member = |(name, value): &(String, Json)| {
        (name.clone(), if name == "auth" { without(value) } else { value.clone() })
    };
    Json::Object(members.iter().map(member).collect())
}

/// The canonical form of a value (RFC 8785 §3.2).
pub fn canonical(value: &Json) -> String {
    let mut out = String::new();
    write(&mut out, value);
    out
}

fn write(out: &mut String, value: &Json) {
    match value {
        Json::Null => out.push_str("null"),
        Json::Bool(true) => out.push_str("true"),
        Json::Bool(false) => out.push_str("false"),
        Json::Number(number) => out.push_str(&ecmascript(number.as_f64().unwrap_or(f64::MAX))),
        Json::String(text) => write_string(out, text),
        Json::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(out, item);
            }
            out.push(']');
        }
        Json::Object(members) => {
            let mut sorted: Vec<(Vec<u16>, &str, &Json)> = members
                .iter()
                .map(|(name, value)| (name.encode_utf16().collect(), name.as_str(), value))
                .collect();
            sorted.sort_by(|a, b| a.0.cmp(&b.0));
            out.push('{');
            for (at, (_, name, value)) in sorted.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_string(out, name);
                out.push(':');
                write(out, value);
            }
            out.push('}');
        }
    }
}

fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// A double as ECMAScript's `Number::toString` writes it (RFC 8785 §3.2.2.3).
fn ecmascript(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let size = value.abs();
    let sign = if value < 0.0 { "-" } else { "" };
    let shortest = format!("{size:e}");
    let places = shortest.split('e').next().map_or(0, |digits| digits.len().saturating_sub(2));
    // Equally short digits, rounded half to even, which is what ECMAScript chooses between two equally near
    // numbers.
    let nearest = format!("{size:.places$e}");
    let text = if nearest.parse::<f64>() == Ok(size) { nearest } else { shortest };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    let digits = match digits.trim_end_matches('0') {
        "" => "0",
        trimmed => trimmed,
    };
    // Notation of ECMA-262: the value is digits × 10^(n − k).
    let k = i64::try_from(digits.len()).unwrap_or(i64::MAX);
    let n = exponent.parse::<i64>().unwrap_or_default() + 1;
    let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or_default());
    let body = if k <= n && n <= 21 {
        format!("{digits}{}", zeros(n - k))
    } else if 0 < n && n <= 21 {
        let (whole, fraction) = digits.split_at(usize::try_from(n).unwrap_or_default());
        format!("{whole}.{fraction}")
    } else if -6 < n && n <= 0 {
        format!("0.{}{digits}", zeros(-n))
    } else {
        let sign = if n > 0 { '+' } else { '-' };
        let power = (n - 1).abs();
        match digits.split_at(1) {
            (first, "") => format!("{first}e{sign}{power}"),
            (first, rest) => format!("{first}.{rest}e{sign}{power}"),
        }
    };
    format!("{sign}{body}")
}

/// Verdict about the numbers of a value: can they be signed?
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signable {
    /// The value has one canonical form.
    Yes,
    /// The contract is silent: a large number with a fraction or an exponent.
    Open,
    /// The value has an integer that a double may not hold.
    No,
}

/// Judges the numbers of a value.
pub(crate) fn signable(value: &Json) -> Signable {
    match value {
        Json::Number(number) => of_number(number),
        Json::Array(items) => items.iter().map(signable).max().unwrap_or(Signable::Yes),
        Json::Object(members) => {
            members.iter().map(|(_, value)| signable(value)).max().unwrap_or(Signable::Yes)
        }
        _ => Signable::Yes,
    }
}

fn of_number(number: &Number) -> Signable {
    let is_safe = number.is_safe();
    match (number.text().contains(['.', 'e', 'E']), number.as_f64()) {
        (false, _) if is_safe => Signable::Yes,
        (false, _) => Signable::No,
        (true, None) => Signable::Open,
        (true, Some(float)) if float.abs() <= 9_007_199_254_740_991.0 => Signable::Yes,
        (true, Some(_)) => Signable::Open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        text.parse().unwrap()
    }

    #[test]
    fn the_vectors_of_the_contract_hold() {
        for (message, wanted) in [
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"validate_code","params":{"code":"x","language":"javascript","rules":[]},"auth":{"timestamp":1634567890}}"#,
                "o0XzQhHnpvzL/z4CrnvMovs27JTBi9adMUcOz0qMAYw=",
            ),
            (
                r#"{"jsonrpc":"2.0","id":"context_001","method":"update_context","params":{"action":"add","context_type":"state","data":{"b":2,"a":[1,-1,0],"é":"😀/"}},"auth":{"timestamp":1634567890,"nonce":"n-1","key_id":"k1"}}"#,
                "ofnBRrCA94raWuAlOWo0GYJc179H2nFiAEqLp5mLXqo=",
            ),
        ] {
            assert_eq!(signature(b"test-key", &json(message)), wanted);
            let signed = message.replace("\"timestamp\"", "\"signature\":\"any\",\"timestamp\"");
            assert_eq!(signature(b"test-key", &json(&signed)), wanted);
        }
    }

    /// Samples of RFC 8785, appendix B.
    #[test]
    fn numbers_are_written_as_ecmascript_does() {
        for (bits, text) in [
            (0x8000_0000_0000_0000_u64, "0"),
            (0x0000_0000_0000_0001, "5e-324"),
            (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
            (0x4340_0000_0000_0000, "9007199254740992"),
            (0x4430_0000_0000_0000, "295147905179352830000"),
            (0x444b_1ae4_d6e2_ef50, "1e+21"),
            (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
            (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
            (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
            (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
        ] {
            assert_eq!(ecmascript(f64::from_bits(bits)), text, "{bits:x}");
        }
    }
}
