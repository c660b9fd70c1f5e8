//! Tests of the codec: hand-picked texts, comparison with serde_json, and round trips.

use peerproof_reference::json::{
    BigNumbers, DuplicateKeys, ErrorKind, Kind, LoneSurrogates, Policy, Scanner, Traits, Value,
    unescape_document, write_canonical, write_str, write_value,
};
use proptest::prelude::*;

fn scan_error(text: &[u8]) -> Option<(ErrorKind, usize)> {
    Scanner::new(64).scan(text).err().map(|error| (error.kind, error.at))
}

fn parse(text: &str) -> Value {
    Value::parse(text.as_bytes(), 64, &Policy::default()).unwrap()
}

fn written(value: &Value) -> String {
    let mut out = Vec::new();
    write_value(&mut out, value);
    String::from_utf8(out).unwrap()
}

#[test]
fn accepts_rfc_8259() {
    for text in [
        "null",
        " true ",
        "\tfalse\r\n",
        "0",
        "-0",
        "-0.0e-0",
        "1E+2",
        "12.50",
        "\"\"",
        "[]",
        "{}",
        "[ 1 , 2 ]",
        "{ \"a\" : { } , \"b\" : [ [ ] ] }",
        "\"\u{7f}\u{e9}\u{1F600}\"",
        r#""\u0000\"\\\/\b\f\n\r\t""#,
        r#""\ud800""#,
    ] {
        assert_eq!(scan_error(text.as_bytes()), None, "{text}");
        parse(text);
    }
}

#[test]
fn refuses_what_is_not_json_and_says_where() {
    use ErrorKind::*;
    for (text, kind, at) in [
        (&b""[..], Eof, 0),
        (b"  ", Eof, 2),
        (b"nul", Eof, 3),
        (b"nulL", Value, 3),
        (b"'a'", Value, 0),
        (b"NaN", Value, 0),
        (b"-Infinity", Number, 1),
        (b"+1", Value, 0),
        (b"01", Number, 1),
        (b"-", Eof, 1),
        (b"1.", Eof, 2),
        (b"1.e2", Number, 2),
        (b"1e", Eof, 2),
        (b".5", Value, 0),
        (b"1 2", Trailing, 2),
        (b"{}x", Trailing, 2),
        (b"{} {}", Trailing, 3),
        (b"[1,]", Value, 3),
        (b"[1 2]", Comma, 3),
        (b"[1", Eof, 2),
        (b"{a:1}", Key, 1),
        (b"{\"a\" 1}", Colon, 5),
        (b"{\"a\":1,}", Key, 7),
        (b"{,}", Key, 1),
        (b"{\"a\"}", Colon, 4),
        (b"[}", Value, 1),
        (b"{]", Key, 1),
        (b"[1}", Comma, 2),
        (b"\"a\nb\"", Control, 2),
        (b"\"a\0b\"", Control, 2),
        (b"\"\\x\"", Escape, 2),
        (b"\"\\u12g4\"", Escape, 5),
        (b"\"\\u12", Eof, 5),
        (b"\"\\", Eof, 2),
        (b"\"abc", Eof, 4),
        (b"/**/1", Value, 0),
        (b"1//", Trailing, 1),
        (b"\xff", Utf8, 0),
        (b"\"\xed\xa0\x80\"", Utf8, 1),
        (b"\"\xc0\x80\"", Utf8, 1),
        (b"\xef\xbb\xbf{}", Value, 0),
        (b"{\"a\":1}\0", Trailing, 7),
        (b"\x0c1", Value, 0),
    ] {
        assert_eq!(scan_error(text), Some((kind, at)), "{}", text.escape_ascii());
        let error = peerproof_reference::json::Value::parse(text, 64, &Policy::default()).unwrap_err();
        assert_eq!((error.kind, error.at), (kind, at), "{}", text.escape_ascii());
    }
}

#[test]
fn finds_specials_at_every_distance() {
    for len in 0..300 {
        let plain = "é".repeat(len / 2) + &"x".repeat(len % 2);
        for (special, expected) in
            [("\u{1}", Some(ErrorKind::Control)), ("\\q", Some(ErrorKind::Escape)), ("\\n", None)]
        {
            let text = format!("\"{plain}{special}{plain}\"");
            assert_eq!(scan_error(text.as_bytes()).map(|e| e.0), expected, "{len}");
        }
        let value = format!("{plain}\n{plain}\"{plain}");
        let mut out = Vec::new();
        write_str(&mut out, &value);
        let value_again = Value::parse(&out, 64, &Policy::default()).unwrap();
        assert_eq!(value_again.as_str(), Some(value.as_str()));
    }
}

#[test]
fn depth_is_inclusive() {
    let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    assert_eq!(scan_error(nested(64).as_bytes()), None);
    assert_eq!(scan_error(nested(65).as_bytes()), Some((ErrorKind::Depth, 64)));
    assert_eq!(scan_error("[".repeat(10_000_000).as_bytes()), Some((ErrorKind::Depth, 64)));
    assert!(Value::parse(nested(100_000).as_bytes(), usize::MAX, &Policy::default()).is_err());
}

#[test]
fn gives_top_level_members_as_spans() {
    let text = br#" {"a":"x\ny","b":[{"c":1}],"\u0061":{},"d":-1.5e3,"e":null,"f":true} "#;
    let mut scanner = Scanner::new(8);
    let scanned = scanner.scan(text).unwrap();
    assert_eq!(scanned.kind(), Kind::Object);
    let members: Vec<_> =
        scanned.members().map(|(key, value)| (key.text().to_string(), value.kind(), value.text())).collect();
    assert_eq!(
        members,
        [
            ("a".to_owned(), Kind::String, r#""x\ny""#),
            ("b".to_owned(), Kind::Array, r#"[{"c":1}]"#),
            ("a".to_owned(), Kind::Object, "{}"),
            ("d".to_owned(), Kind::Number, "-1.5e3"),
            ("e".to_owned(), Kind::Null, "null"),
            ("f".to_owned(), Kind::Bool(true), "true"),
        ]
    );
    let first = scanned.members().next().unwrap().1.as_str().unwrap();
    assert_eq!(first.raw(), r"x\ny");
    assert_eq!(first.text(), "x\ny");
    assert_eq!(scanner.scan(b"[1,\"x\"]").unwrap().members().count(), 0);
}

#[test]
fn sees_where_implementations_differ() {
    let mut scanner = Scanner::new(8);
    let mut traits = |text: &str| {
        let traits = scanner.scan(text.as_bytes()).unwrap().traits();
        (traits.duplicate_keys, traits.lone_surrogates, traits.big_numbers)
    };
    assert_eq!(traits(r#"{"a":{"a":1},"b":{"a":2}}"#), (false, false, false));
    assert_eq!(traits(r#"[{"a":{"b":1,"b":1}}]"#), (true, false, false));
    assert_eq!(traits(r#"{"\u0061":1}"#), (true, false, false));
    assert_eq!(traits(r#"{"abcdefgh1":1,"abcdefgh2":2}"#), (false, false, false));
    assert_eq!(traits(r#"{"abcdefgh1":1,"abcdefgh1":2}"#), (true, false, false));
    assert_eq!(traits(r#"["\udc00"]"#), (false, true, false));
    assert_eq!(traits(r#"{"\ud800":1}"#), (true, true, false));
    assert_eq!(traits("[9007199254740992]"), (false, false, true));
    assert_eq!(traits("[1e999]"), (false, false, true));
    let many = |last: usize| {
        let names: Vec<_> = (0..100).chain([last]).map(|n| format!("\"k{n}\":{n}")).collect();
        format!("{{{}}}", names.join(","))
    };
    assert_eq!(traits(&many(100)), (false, false, false));
    assert_eq!(traits(&many(50)), (true, false, false));
}

#[test]
fn policies_decide_what_the_contract_leaves_open() {
    let with = |text: &str, policy: &Policy| Value::parse(text.as_bytes(), 8, policy).map(|v| written(&v));
    let twice = r#"{"a":1,"b":2,"\u0061":3}"#;
    let keys = |duplicate_keys| Policy { duplicate_keys, ..Policy::default() };
    assert_eq!(with(twice, &keys(DuplicateKeys::Last)).unwrap(), r#"{"a":3,"b":2}"#);
    assert_eq!(with(twice, &keys(DuplicateKeys::First)).unwrap(), r#"{"a":1,"b":2}"#);
    assert_eq!(with(twice, &keys(DuplicateKeys::Refuse)).unwrap_err().kind, ErrorKind::DuplicateKey);

    let lone = |lone_surrogates| Policy { lone_surrogates, ..Policy::default() };
    assert_eq!(with(r#""\uD800x""#, &lone(LoneSurrogates::Echo)).unwrap(), r#""\ud800x""#);
    assert_eq!(with(r#""\uD800x""#, &lone(LoneSurrogates::Replace)).unwrap(), "\"\u{FFFD}x\"");
    assert_eq!(
        with(r#""\uD800x""#, &lone(LoneSurrogates::Refuse)).unwrap_err().kind,
        ErrorKind::LoneSurrogate
    );

    let big = |big_numbers| Policy { big_numbers, ..Policy::default() };
    assert_eq!(with("[9007199254740993]", &big(BigNumbers::Exact)).unwrap(), "[9007199254740993]");
    assert_eq!(with("[9007199254740993,7]", &big(BigNumbers::Round)).unwrap(), "[9.007199254740992e15,7]");
    assert_eq!(with("[1e400]", &big(BigNumbers::Refuse)).unwrap_err().kind, ErrorKind::BigNumber);
}

#[test]
fn canonical_form_forgets_presentation() {
    let canonical = |text: &str| {
        let mut out = Vec::new();
        write_canonical(&mut out, &parse(text));
        out
    };
    assert_eq!(canonical(r#"{"b":[1,-0],"a":"x"}"#), canonical(r#"{ "\u0061" : "x", "b":[1.0, 0e5]}"#));
    assert_ne!(canonical("1"), canonical("-1"));
    assert_ne!(canonical("10"), canonical("1"));
}

fn arbitrary_value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>()
            .prop_map(|f| serde_json::Number::from_f64(f).map_or(serde_json::Value::Null, Into::into)),
        any::<String>().prop_map(Into::into),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..8).prop_map(Into::into),
            proptest::collection::btree_map(any::<String>(), inner, 0..24)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn decode_then_encode_is_identity(value in arbitrary_value()) {
        let text = serde_json::to_string(&value).unwrap();
        prop_assert_eq!(written(&parse(&text)), text);
    }

    #[test]
    fn agrees_with_serde_json_on_damaged_texts(
        value in arbitrary_value(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), prop_oneof![
            any::<u8>(), proptest::sample::select(&b"\"\\{}[]:,eE.+-0159tfn u\n\x00\xff\xc3"[..]),
        ]), 0..4),
    ) {
        let mut text = serde_json::to_vec(&value).unwrap();
        for (index, byte) in damage {
            let at = index.index(text.len());
            text[at] = byte;
        }
        let theirs: Result<serde::de::IgnoredAny, _> = serde_json::from_slice(&text);
        let ours = Scanner::new(64).scan(&text).map(|s| s.kind());
        // serde_json's `IgnoredAny` is lax only about the encoding inside ignored strings.
        let utf8 = std::str::from_utf8(&text).is_ok();
        prop_assert_eq!(ours.is_ok(), theirs.is_ok() && utf8, "{}", text.escape_ascii());
        prop_assert_eq!(Value::parse(&text, 64, &Policy::default()).is_ok(), ours.is_ok());
    }

    #[test]
    fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let _ = Scanner::new(8).scan(&bytes);
        let _ = Value::parse(&bytes, 8, &Policy::default());
    }
}

/// Kind and traits that the scanner found for the document in member `d`.
fn document_in(text: &[u8]) -> Option<(Kind, Traits)> {
    let mut scanner = Scanner::new(16).with_document("d");
    let scanned = scanner.scan(text).ok()?;
    let member = scanned.members().find(|(name, _)| name.is("d"))?;
    member.1.document().map(|document| (document.kind, document.traits))
}

/// Kind and traits of the document in member `d`, scanned after unescaping.
fn unescaped_in(text: &[u8]) -> Option<(Kind, Traits)> {
    let mut scanner = Scanner::new(16);
    let scanned = scanner.scan(text).ok()?;
    let string = scanned.members().find(|(name, _)| name.is("d"))?.1.as_str()?;
    let mut document = Vec::new();
    unescape_document(string, &mut document);
    let scanned = scanner.scan(&document).ok()?;
    Some((scanned.kind(), scanned.traits()))
}

fn in_string(document: &str) -> String {
    let mut text = b"{\"a\":\"{}\",\"d\":".to_vec();
    write_str(&mut text, document);
    text.extend_from_slice(b",\"e\":1}");
    String::from_utf8(text).unwrap()
}

#[test]
fn reads_a_document_through_the_escapes_of_its_string() {
    for document in [
        "{}",
        "[]",
        " { } ",
        "{\n\t\"a\" : [ 1, -2.5e3 , true ,null,\"x\"]\r\n}",
        "\"\"",
        "1",
        "\"é😀\"",
        r#""\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00""#,
        r#"{"a":"\ud800","a":1e999}"#,
        r#"{"a\"b":{"\\":1},"c/d":"/"}"#,
        &format!("{}{}", "[".repeat(16), "]".repeat(16)),
    ] {
        let text = in_string(document);
        assert!(document_in(text.as_bytes()).is_some(), "{document}");
        assert_eq!(document_in(text.as_bytes()), unescaped_in(text.as_bytes()), "{document}");
    }
    for document in [
        "",
        " ",
        "{",
        "}",
        "{}x",
        "{'a':1}",
        "[1,]",
        "\"\n\"",
        "\"\\x\"",
        "\"\\\n\"",
        "\"\\u12\"",
        "{\"a\":1}}",
        "01",
        "\"\\",
        "\\\"\\\"",
        "\u{1}",
        &format!("{}{}", "[".repeat(17), "]".repeat(17)),
    ] {
        assert_eq!(document_in(in_string(document).as_bytes()), None, "{document:?}");
    }
    // A document of another kind, in another place, or under an escaped name is not scanned.
    for text in [
        r#"{"d":{"d":"{}"}}"#,
        r#"{"d":["{}"]}"#,
        r#"{"e":{"d":"{}"},"f":"{}"}"#,
        r#"{"\u0064":"{}"}"#,
        r#"["d","{}"]"#,
    ] {
        let found = document_in(text.as_bytes());
        assert_eq!(found, None, "{text}");
    }
}

proptest! {
    #[test]
    fn both_ways_to_a_document_agree(
        value in arbitrary_value(),
        pretty in any::<bool>(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), proptest::sample::select(&b"\"\\{}[]:,e.-019tn/u "[..])), 0..4),
    ) {
        let document = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        let mut text = in_string(&document).into_bytes();
        for (index, byte) in damage {
            let at = index.index(text.len());
            text[at] = byte;
        }
        if let Some(found) = document_in(&text) {
            prop_assert_eq!(Some(found), unescaped_in(&text), "{}", text.escape_ascii());
        }
    }
}
