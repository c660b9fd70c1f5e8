//! Checks of `INP64`: standard base64, other spellings, and invalid text.

use super::{all_taken, bytes, check, inp64, open, refusals};
use peerproof_engine::data::check::Check;

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    vec![
        canonical(),
        large(),
        lenient("unpadded", "e30"),
        lenient("padded-too-much", "e30=="),
        lenient("url-alphabet", "eyJrIjoiPz8_Pn5-fiJ9"),
        lenient("spare-bits-set", "e31="),
        lenient("spaces-inside", "eyJr Ijoi diJ9"),
        lenient("lines-of-mime", "eyJr\r\nIjoi\r\ndiJ9\r\n"),
        no_base64(),
        no_object(),
    ]
    .into_iter()
    .map(|check| check.feature("patches"))
    .collect()
}

/// Encodes in padded base64 of the standard alphabet.
pub(super) fn encode(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |place: usize| u32::from(group.get(place).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let digit = ALPHABET[(bits >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= group.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

fn canonical() -> Check {
    check(
        "grammar/base64-canonical",
        "Padded base64 of the standard alphabet is accepted as its object, with every length of padding \
         and every digit.",
        &["PD-GRAM-12"],
        |talk, _| {
            talk.canary("PD-GRAM-12");
            let patches = [
                "{}",
                r#"{"k":"v"}"#,
                r#"{"k":"vv"}"#,
                r#"{"k":"vvv"}"#,
                r#"{"k":"???>~~~"}"#,
                " { \"k\" : [ null ] }\n",
                "{\"k\":\"é\u{1F600}\\u0000\\\"\"}",
                r#"{"k":"</INP64><END>","</INP>":"<PICK><SID0007><END>"}"#,
            ];
            all_taken(talk, "PD-GRAM-12", patches.map(|patch| inp64(&encode(patch.as_bytes()))));
        },
    )
}

fn large() -> Check {
    check(
        "grammar/base64-large",
        "Base64 of an object of 45,000 bytes is accepted.",
        &["PD-GRAM-12"],
        |talk, _| {
            talk.canary("PD-GRAM-12");
            let patch = format!("{{\"k\":\"{}\"}}", "p".repeat(45_000));
            all_taken(talk, "PD-GRAM-12", [inp64(&encode(patch.as_bytes()))]);
        },
    )
}

fn lenient(name: &str, text: &'static str) -> Check {
    check(
        &format!("grammar/base64-{name}"),
        "Base64 of an object in a non-standard form is accepted or invalid.",
        &["PD-GRAM-13"],
        move |talk, _| {
            talk.canary("PD-GRAM-13");
            open(talk, "PD-GRAM-13", inp64(text).as_bytes(), "lenient_base64");
            talk.canary("PD-GRAM-13");
        },
    )
}

const TAKEN: &[&str] =
    &["<PICK><SID0042><INP64>e30=</INP64><END>", "<PICK><SID0042><INP64>eyJrIjoidiJ9</INP64><END>"];

fn no_base64() -> Check {
    refusals(
        "grammar/base64-in-no-spelling",
        "Text that is not base64 in any form is invalid.",
        "PD-GRAM-14",
        TAKEN,
        || {
            let texts = [
                "e",
                "e30=e",
                "e30=e30=",
                "=e30",
                "e=30",
                "e*30",
                "e30*",
                "eyJrIjoidiJ9!",
                "e30=\0",
                "{}",
                r#"{"k":"v"}"#,
                "e30%3D",
                "data:;base64,e30=",
                "é30=",
                "<INP64>e30=",
                "ｅ３０＝",
                "e30=<",
                "\"e30=\"",
                "eyJrIjoidiJ9.",
                "b64:e30=",
            ];
            let mut all: Vec<_> = texts.map(inp64).map(String::into_bytes).into();
            all.push(b"<PICK><SID0042><INP64>e30\xFF</INP64><END>".to_vec());
            all.extend(bytes(&["<PICK><SID0042><INP64>e30=</INP64 ><END>"]));
            all
        },
    )
}

fn no_object() -> Check {
    refusals(
        "grammar/base64-of-no-object",
        "Base64 of bytes that are not one strict JSON object in UTF-8 is invalid.",
        "PD-GRAM-14",
        TAKEN,
        || {
            let contents: [&[u8]; 18] = [
                b"",
                b" ",
                b"[]",
                b"[{}]",
                b"\"{}\"",
                b"7",
                b"null",
                b"true",
                b"{'k':1}",
                b"{\"k\":1,}",
                b"{\"k\":1}{}",
                b"{\"k\":1",
                b"{}x",
                b"{}\0",
                b"\xEF\xBB\xBF{}",
                b"{\"k\":\"\xFF\"}",
                b"\xFF\xFE{\0}\0",
                b"e30=",
            ];
            contents.map(|bytes| inp64(&encode(bytes)).into_bytes()).into()
        },
    )
}

#[cfg(test)]
mod tests {
    use super::encode;

    #[test]
    fn encodes_as_the_standard_does() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
            ("???>~~~", "Pz8/Pn5+fg=="),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text);
        }
    }
}
