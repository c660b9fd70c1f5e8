//! Test vectors and properties of the whole module.

use proptest::prelude::*;

use super::*;
use crate::data::rng::Rng;

/// Decodes, and checks that validation without a tree gives an equal answer.
fn decode_bytes(bytes: &[u8]) -> Result<Decoded, DecodeError> {
    let decoded = decode(bytes, &DecodeLimits::default());
    let checked = check(bytes, &DecodeLimits::default());
    assert_eq!(checked.as_ref().err(), decoded.as_ref().err(), "{:?}", String::from_utf8_lossy(bytes));
    decoded
}

fn json(text: &str) -> Json {
    decode_bytes(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}")).value
}

/// Texts that are strict JSON, each with the compact text of its value.
#[rustfmt::skip]
const ACCEPTED: &[(&str, &str)] = &[
    ("null", "null"), ("true", "true"), ("false", "false"), (" \t\r\n null \t\r\n ", "null"),
    ("[]", "[]"), ("{}", "{}"), ("[ ]", "[]"), ("{ }", "{}"), ("[\n]", "[]"), ("[[]]", "[[]]"), ("[{}]", "[{}]"),
    ("[[] ,{}]", "[[],{}]"), ("[null, 1, \"1\", {}]", "[null,1,\"1\",{}]"), ("[1\n,1]", "[1,1]"), (" [1]", "[1]"),
    ("{\"a\":[]}", "{\"a\":[]}"), ("{\"\":0}", "{\"\":0}"), ("{\"a\" : \"b\" , \"c\" : null }", "{\"a\":\"b\",\"c\":null}"),
    ("{\"a\":{\"b\":[{\"c\":1}]},\"d\":2}", "{\"a\":{\"b\":[{\"c\":1}]},\"d\":2}"),
    ("{\"a\":1,\"a\":2}", "{\"a\":1,\"a\":2}"), ("{\n\"a\": \"b\"\n}", "{\"a\":\"b\"}"),
    ("0", "0"), ("-0", "-0"), ("-1", "-1"), ("123", "123"), ("0.1", "0.1"), ("-0.0", "-0.0"), ("1e1", "1e1"), ("1E1", "1E1"),
    ("1e+1", "1e+1"), ("1E-1", "1E-1"), ("1.5e+0010", "1.5e+0010"), ("0e1", "0e1"), ("0e+1", "0e+1"), ("20e1", "20e1"),
    ("1e400", "1e400"), ("-1e999999999", "-1e999999999"), ("123123123123123123123123123123", "123123123123123123123123123123"),
    ("[1,-1.0 ,0.5e0]", "[1,-1.0,0.5e0]"),
    ("0.000000000000000000000000000000000000000000000000000000000000000000000000000001",
     "0.000000000000000000000000000000000000000000000000000000000000000000000000000001"),
    ("\"\"", "\"\""), ("\"a\"", "\"a\""), ("\" \"", "\" \""), ("\"\u{7f}\"", "\"\u{7f}\""), ("\"é€😀\"", "\"é€😀\""),
    (r#""\"\\\/\b\f\n\r\t""#, r#""\"\\/\b\f\n\r\t""#), (r#""\u0041\u00e9\u00E9""#, "\"Aéé\""),
    (r#""\u0000\u001f""#, r#""\u0000\u001f""#), (r#""\u0022\u005c""#, r#""\"\\""#), (r#""\\u0041""#, r#""\\u0041""#),
    (r#""\\\"""#, r#""\\\"""#), (r#""\ud83d\ude00""#, "\"😀\""), (r#""\uD834\uDd1e""#, "\"𝄞\""), (r#""\uFFFF\uFDD0""#, "\"\u{ffff}\u{fdd0}\""),
    (r#""\udbff\udfff""#, "\"\u{10ffff}\""), (r#""\u2028\u2029""#, "\"\u{2028}\u{2029}\""), ("\"\u{2028}\u{feff}\"", "\"\u{2028}\u{feff}\""),
    (r#""a/*b*/c//d#e""#, "\"a/*b*/c//d#e\""), (r#""asd ""#, "\"asd \""), ("\"\u{10ffff}\u{1fffe}\"", "\"\u{10ffff}\u{1fffe}\""),
    (r#"{"\u0061":1}"#, "{\"a\":1}"), (r#"{"foo\u0000bar":42}"#, r#"{"foo\u0000bar":42}"#),
    (r#"["\ud800"]"#, "[\"\u{fffd}\"]"), (r#"["\udc00x"]"#, "[\"\u{fffd}x\"]"), (r#"["\ud800\ud800\udc00"]"#, "[\"\u{fffd}\u{10000}\"]"),
    (r#"["\ud800\n"]"#, "[\"\u{fffd}\\n\"]"), (r#"["\ud800\u0041"]"#, "[\"\u{fffd}A\"]"), (r#"["\udc00\ud800"]"#, "[\"\u{fffd}\u{fffd}\"]"),
];

/// Texts that are not strict JSON, each with the offset of the offence and a piece of its description.
#[rustfmt::skip]
const REFUSED: &[(&[u8], usize, &str)] = &[
    (b"", 0, "ends before"), (b" \n", 2, "ends before"),
    (b"\xEF\xBB\xBF", 0, "byte order mark"), (b"\xEF\xBB\xBF{}", 0, "byte order mark"), (b" \xEF\xBB\xBF1", 1, "a value"),
    (b"\xEF\xBB", 0, "not UTF-8"), (b"\xFF\xFE1\0", 0, "not UTF-8"), (b"\xFE\xFF\0[\0]", 0, "not UTF-8"), (b"[\0]\0", 1, "0x00"),
    (b"[", 1, "ends before"), (b"{", 1, "ends before"), (b"]", 0, "a value"), (b"}", 0, "a value"), (b"[[", 2, "ends before"),
    (b"[}", 1, "a value"), (b"{]", 1, "a member name"), (b"[1}", 2, "`,` or `]`"), (b"{\"a\":1]", 6, "`,` or `}`"),
    (b"[1", 2, "ends before"), (b"[1,", 3, "ends before"), (b"[1,]", 3, "a value"), (b"[,1]", 1, "a value"), (b"[,]", 1, "a value"),
    (b"[1,,2]", 3, "a value"), (b"[1 2]", 3, "`,` or `]`"), (b"[\"a\" \"b\"]", 5, "`,` or `]`"), (b"[1:2]", 2, "`,` or `]`"), (b"[1;2]", 2, "`,` or `]`"),
    (b"{\"a\"}", 4, "`:`"), (b"{\"a\",1}", 4, "`:`"), (b"{\"a\":}", 5, "a value"), (b"{\"a\":1,}", 7, "a member name"),
    (b"{,\"a\":1}", 1, "a member name"), (b"{\"a\":1,,\"b\":2}", 7, "a member name"), (b"{\"a\"::1}", 5, "a value"), (b"{\"a\" 1}", 5, "`:`"),
    (b"{a:1}", 1, "a member name"), (b"{1:1}", 1, "a member name"), (b"{null:1}", 1, "a member name"), (b"{'a':1}", 1, "a member name"),
    (b"{\"a\":1 \"b\":2}", 7, "`,` or `}`"), (b"{\"a\":\"b\"", 8, "ends before"), (b"{\"a\"", 4, "ends before"), (b"{\"a\":", 5, "ends before"),
    (b"{\"a\":1}}", 7, "after the value"), (b"[1]]", 3, "after the value"), (b"1 2", 2, "after the value"), (b"{}{}", 2, "after the value"), (b"[]x", 2, "after the value"),
    (b"null,", 4, "after the value"), (b"\"a\"b", 3, "after the value"), (b"{} //", 3, "after the value"), (b"{} \0", 3, "after the value"), (b"1\xEF\xBB\xBF", 1, "after the value"),
    (b"/* */1", 0, "a value"), (b"[1,//\n2]", 3, "a value"), (b"[1/**/]", 2, "`,` or `]`"), (b"#1", 0, "a value"),
    (b"nul", 3, "ends before"), (b"nulL", 3, "null"), (b"True", 0, "a value"), (b"tru ", 3, "true"), (b"nullx", 4, "after the value"),
    (b"undefined", 0, "a value"), (b"NaN", 0, "a value"), (b"nan", 1, "null"), (b"Infinity", 0, "a value"), (b"-Infinity", 1, "number"), (b"-NaN", 1, "number"),
    (b"-", 1, "ends before"), (b"--1", 1, "number"), (b"+1", 0, "a value"), (b"- 1", 1, "number"), (b"01", 1, "number"), (b"-01", 2, "number"), (b"00", 1, "number"),
    (b"[1.]", 3, "number"), (b"1.", 2, "ends before"), (b".5", 0, "a value"), (b"-.5", 1, "number"), (b"1.e1", 2, "number"), (b"[1e]", 3, "number"), (b"1e", 2, "ends before"),
    (b"1e+", 3, "ends before"), (b"[1e+]", 4, "number"), (b"[1e+-1]", 4, "number"), (b"1.2.3", 3, "after the value"), (b"1e1.5", 3, "after the value"), (b"0x1F", 1, "after the value"),
    (b"1_000", 1, "after the value"), (b"1a", 1, "after the value"), (b"1E+x", 3, "number"), (b"[1e0e]", 4, "`,` or `]`"), (b"[-a]", 2, "number"), ("[１]".as_bytes(), 1, "a value"),
    (b"\"", 1, "ends before"), (b"\"a", 2, "ends before"), (b"'a'", 0, "a value"), (b"\"a\\", 3, "ends before"), (b"\"\\\"", 3, "ends before"), (b"`a`", 0, "a value"),
    (b"\"\\x41\"", 1, "backslash"), (b"\"\\a\"", 1, "backslash"), (b"\"\\'\"", 1, "backslash"), (b"\"\\0\"", 1, "backslash"), (b"\"\\v\"", 1, "backslash"),
    (b"\"\\U0041\"", 1, "backslash"), (b"\"\\u004\"", 1, "backslash"), (b"\"\\u00g1\"", 1, "backslash"), (b"\"\\u 041\"", 1, "backslash"), (b"\"\\u+041\"", 1, "backslash"),
    (b"\"\\u{41}\"", 1, "backslash"), (b"\"\\u00", 5, "ends before"), (b"\"\\ud800\\u00\"", 7, "backslash"), (b"\"\\ud800\\x\"", 7, "backslash"), (b"\"\\\n\"", 1, "backslash"),
    ("\"\\é\"".as_bytes(), 1, "backslash"), ("\"\\u００41\"".as_bytes(), 1, "backslash"), (b"\\u0022a\"", 0, "a value"), (b"[\\n]", 1, "a value"),
    (b"\"a\nb\"", 2, "0x0a"), (b"\"a\tb\"", 2, "0x09"), (b"\"\0\"", 1, "0x00"), (b"\"\x1f\"", 1, "0x1f"), (b"\"\r\"", 1, "0x0d"), (b"{\"a\nb\":1}", 3, "0x0a"),
    (b"\"0123456789abcdef0123456789\x01\"", 27, "0x01"), (b"\"0123456789abcdef0123456789\x02", 27, "0x02"), (b"\"\\n0123456789abcdef\x03\\\"", 19, "0x03"),
    (b"\x0b1", 0, "a value"), (b"\x0c1", 0, "0x0c"), (b"\xc2\xa01", 0, "a value"), (b"\xe2\x81\xa01", 0, "a value"), (b"1\x0c", 1, "after the value"), (b"[\x1f]", 1, "0x1f"), (b"\x1e1\n", 0, "0x1e"),
    (b"\"\xff\"", 1, "not UTF-8"), (b"\"\xc3\x28\"", 1, "not UTF-8"), (b"\"\xe9\"", 1, "not UTF-8"), (b"\"\x80\"", 1, "not UTF-8"), (b"\"\xc0\xaf\"", 1, "not UTF-8"), (b"\"\xc1\x81\"", 1, "not UTF-8"),
    (b"\"\xe0\x80\xaf\"", 1, "not UTF-8"), (b"\"\xf0\x80\x80\xaf\"", 1, "not UTF-8"), (b"\"\xed\xa0\x80\"", 1, "not UTF-8"), (b"\"\xed\xa0\xbd\xed\xb8\x80\"", 1, "not UTF-8"),
    (b"\"\xf4\x90\x80\x80\"", 1, "not UTF-8"), (b"\"\xf8\x88\x80\x80\x80\"", 1, "not UTF-8"), (b"\"\xe2\x82", 1, "not UTF-8"), (b"\"a\xf0\x9f\x98\"", 2, "not UTF-8"),
    (b"{} \xff", 3, "not UTF-8"), (b"1\xff", 1, "not UTF-8"), (b"[1,] \xff", 3, "a value"), (b"\xff", 0, "not UTF-8"), (b"\"\\u00\xff\"", 5, "not UTF-8"), (b"\"\\\xe5\"", 2, "not UTF-8"),
    (b"<html>", 0, "a value"), (b"ok", 0, "a value"), (b"[<null>]", 1, "a value"), (b"*", 0, "a value"), (b"{[: \"x\"}", 1, "a member name"), (b"[\"x\", truth]", 9, "true"), (b"\x1b[0m{}", 0, "0x1b"),
];

#[test]
fn accepts_strict_json() {
    for (text, compact) in ACCEPTED {
        assert_eq!(json(text).to_text(), *compact, "{text:?}");
    }
}

#[test]
fn refuses_everything_else_at_the_offending_byte() {
    for (bytes, offset, words) in REFUSED {
        let shown = bytes.escape_ascii();
        let error = decode_bytes(bytes).expect_err(&format!("{shown} is refused"));
        assert_eq!(error.offset, *offset, "{shown}: {error}");
        assert!(error.to_string().contains(words), "{shown}: {error}");
        assert!(error.to_string().starts_with(&format!("byte {offset}: ")), "{error}");
    }
}

#[test]
fn every_proper_prefix_of_a_container_is_refused() {
    let text = r#"{"a\u00e9":[1.5e+3,true,"😀\n",{"b":null}]}"#;
    for end in 0..text.len() {
        assert!(decode_bytes(&text.as_bytes()[..end]).is_err(), "{end}");
    }
}

#[test]
fn facts_tell_what_the_value_does_not_show() {
    let facts = |text: &str| decode_bytes(text.as_bytes()).expect("JSON").facts;
    assert_eq!(facts("1"), TextProperties::default());
    assert_eq!(facts("[{\"a\":[]},[]]").depth, 3);
    assert_eq!(facts("[[[]],[]]").depth, 3);
    let many: Vec<String> = (0..40).map(|at| format!("\"k{at}\":{at}")).collect();
    assert!(!facts(&format!("{{{}}}", many.join(","))).duplicate_keys);
    assert!(facts(&format!("{{{},\"k7\":0}}", many.join(","))).duplicate_keys);
    assert!(facts("[{\"a\":1,\"\\u0061\":2},{}]").duplicate_keys);
    assert!(!facts("[{\"a\":1},{\"a\":1,\"A\":2}]").duplicate_keys);
    for lone in
        [r#""\ud800""#, r#""\udc00""#, r#"{"\ud800":1}"#, r#""\ud800\ud800\udc00""#, r#""\udc00\ud800""#]
    {
        assert!(facts(lone).lone_surrogates, "{lone}");
    }
    assert!(!facts(r#"["\ud83d\ude00", "\ufffd", "�"]"#).lone_surrogates);
}

#[test]
fn limits_are_inclusive() {
    let limits = DecodeLimits { bytes_max: 6, depth_max: 2 };
    assert!(decode(b"[[1] ]", &limits).is_ok());
    let long = decode(b"[[1] ] ", &limits).expect_err("7 bytes");
    assert_eq!((long.offset, long.kind), (6, DecodeErrorKind::TooLong { bytes_max: 6 }));
    let deep = decode(b"[[{}]]", &limits).expect_err("3 levels");
    assert_eq!((deep.offset, deep.kind), (2, DecodeErrorKind::TooDeep { depth_max: 2 }));
    assert!(decode(b"1", &DecodeLimits { bytes_max: 6, depth_max: 0 }).is_ok());
    assert_eq!(long.to_string(), "byte 6: the text is longer than 6 bytes");
}

#[test]
fn deep_values_overflow_no_stack() {
    const LEVELS: usize = 100_000;
    let array = "[".repeat(LEVELS) + &"]".repeat(LEVELS);
    let object = "{\"a\":".repeat(LEVELS) + "1" + &"}".repeat(LEVELS);
    let mixed = "[0,{\"a\":[],\"b\":".repeat(LEVELS / 2) + "{}" + &"}]".repeat(LEVELS / 2);
    for text in [array, object, mixed] {
        let decoded = decode_bytes(text.as_bytes()).expect("deep JSON");
        assert!(decoded.facts.depth >= LEVELS);
        let copy = decoded.value.clone();
        assert!(copy == decoded.value);
        assert!(copy.to_text() == text);
        assert!(format!("{copy:?}") == text);
        drop(copy);
        let mut rng = Rng::new(9);
        for how in Presentation::ALL {
            let presented = json(&present(&decoded.value, how, &mut || rng.next_u64()));
            assert!(how == Presentation::ExtraMembers || presented == decoded.value);
        }
        assert!(decode_bytes(&text.as_bytes()[..text.len() / 2]).is_err());
        assert!(serde_json::to_string(&decoded.value).is_err());
    }
    // Indentation makes the pretty text quadratic in the depth, so it is tried on a shallower value.
    let nested = json(&("[".repeat(2_000) + &"]".repeat(2_000)));
    assert_eq!(json(&nested.to_text_pretty()), nested);
}

#[test]
fn wide_values_survive() {
    let items: Vec<String> = (0..10_000).map(|at| format!("[{at},{{\"k{at}\":{at}}}]")).collect();
    let text = format!("[{}]", items.join(","));
    assert!(json(&text).to_text() == text);
    let members: Vec<String> = (0..10_000).map(|at| format!("\"k{at}\":{{}}")).collect();
    let reversed: Vec<String> = members.iter().rev().cloned().collect();
    assert!(json(&format!("{{{}}}", members.join(","))) == json(&format!("{{{}}}", reversed.join(","))));
}

#[test]
fn equality_is_of_meaning() {
    #[rustfmt::skip]
    let same = [
        ("{\"a\":1,\"b\":[2]}", "{\"b\":[2.0],\"a\":10e-1}"), ("{\"a\":1,\"a\":2}", "{\"a\":2}"), ("{\"a\":{},\"a\":2}", "{\"a\":1,\"a\":2}"),
        ("\"\\u0061\"", "\"a\""), ("[1,{\"x\":[]}]", "[1.0,{\"x\":[]}]"), ("{\"a\":1,\"b\":2,\"a\":3}", "{\"a\":3,\"b\":2}"),
    ];
    for (left, right) in same {
        assert_eq!(json(left), json(right));
    }
    #[rustfmt::skip]
    let different = [
        ("[1,2]", "[2,1]"), ("{\"a\":1}", "{\"a\":1,\"b\":1}"), ("{\"a\":1}", "{\"b\":1}"), ("1", "\"1\""), ("0", "false"), ("null", "[]"), ("[]", "{}"),
        ("{\"a\":1,\"a\":2}", "{\"a\":1}"), ("{\"a\":1,\"a\":1}", "{\"a\":1,\"b\":1}"), ("[[1],[2]]", "[[1],[3]]"), ("[1]", "[1,1]"), ("{\"a\":null}", "{}"),
    ];
    for (left, right) in different {
        assert_ne!(json(left), json(right));
        assert_ne!(json(right), json(left));
    }
    let filler: Vec<String> = (0..20).map(|at| format!("\"k{at}\":{at}")).collect();
    let filler = filler.join(",");
    assert_eq!(json(&format!("{{\"a\":1,{filler},\"a\":2}}")), json(&format!("{{{filler},\"a\":2}}")));
    assert_ne!(json(&format!("{{\"a\":1,{filler}}}")), json(&format!("{{{filler},\"b\":1}}")));
    assert_ne!(json(&format!("{{\"a\":1,{filler}}}")), json(&format!("{{{filler},\"a\":2}}")));
}

#[test]
fn pointers_follow_rfc_6901() {
    let value = json(
        r#"{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"i\\j":5,"k\"l":6," ":7,"m~n":8,"~1":9,"x":{"0":[[4]]},"d":1,"d":2}"#,
    );
    let at = |pointer: &str| value.pointer(pointer).map(Json::to_text);
    assert_eq!(value.pointer(""), Some(&value));
    for (pointer, text) in [
        ("/foo", "[\"bar\",\"baz\"]"),
        ("/foo/0", "\"bar\""),
        ("/", "0"),
        ("/a~1b", "1"),
        ("/c%d", "2"),
        ("/e^f", "3"),
        ("/i\\j", "5"),
        ("/k\"l", "6"),
        ("/ ", "7"),
        ("/m~0n", "8"),
        ("/~01", "9"),
        ("/x/0/0/0", "4"),
        ("/d", "2"),
    ] {
        assert_eq!(at(pointer).as_deref(), Some(text), "{pointer}");
    }
    for pointer in
        ["foo", "/foo/2", "/foo/-", "/foo/00", "/foo/+1", "/foo/", "/foo/0/x", "/m~n", "/m~2n", "/none", "//"]
    {
        assert_eq!(at(pointer), None, "{pointer}");
    }
    let mut value = value;
    *value.pointer_mut("/x/0/0").expect("there") = "new".into();
    assert_eq!(value.pointer("/x").map(Json::to_text).as_deref(), Some("{\"0\":[\"new\"]}"));
}

#[test]
fn objects_can_be_built_and_changed() {
    let mut value = Json::object([
        ("aid", "AID.X".into()),
        ("n", 1.into()),
        ("list", Json::array([true, false])),
        ("none", None::<u64>.into()),
        ("min", i64::MIN.into()),
    ]);
    assert_eq!(
        value.to_text(),
        r#"{"aid":"AID.X","n":1,"list":[true,false],"none":null,"min":-9223372036854775808}"#
    );
    value.set("n", u64::MAX);
    value.set("new", "x");
    assert_eq!(value.get("n").and_then(Json::as_u64), Some(u64::MAX));
    assert_eq!(value.remove("list"), Some(Json::array([true, false])));
    assert_eq!(value.remove("list"), None);
    assert_eq!(value.get("none").map(Json::is_null), Some(true));
    let mut twice = json(r#"{"b":0,"a":1,"c":0,"a":2,"a":3}"#);
    assert_eq!(twice.get("a").and_then(Json::as_i64), Some(3));
    *twice.get_mut("a").expect("there") = 4.into();
    assert_eq!(twice.to_text(), r#"{"b":0,"a":1,"c":0,"a":2,"a":4}"#);
    let mut once = twice.clone();
    once.set("a", "x");
    assert_eq!(once.to_text(), r#"{"b":0,"a":"x","c":0}"#);
    assert_eq!(twice.remove("a").and_then(|last| last.as_u64()), Some(4));
    assert_eq!(twice.to_text(), r#"{"b":0,"c":0}"#);
    assert_eq!(Json::from("s").into_string(), Ok("s".to_owned()));
    assert_eq!(Json::Null.into_object(), Err(Json::Null));
}

#[test]
fn pretty_text_has_one_element_a_line() {
    let value = json(r#"{"a":[1,{"b":[]}],"c":{},"d":"x"}"#);
    let pretty =
        "{\n  \"a\": [\n    1,\n    {\n      \"b\": []\n    }\n  ],\n  \"c\": {},\n  \"d\": \"x\"\n}";
    assert_eq!(value.to_text_pretty(), pretty);
    assert_eq!(json("1").to_text_pretty(), "1");
}

#[test]
fn values_stay_small() {
    assert_eq!((size_of::<Number>(), size_of::<Json>()), (24, 32));
}

#[test]
fn serde_uses_the_natural_form() {
    let value = json(
        r#"{"u":18446744073709551615,"i":-9223372036854775808,"f":1.5,"one":1.0,"s":"é","l":[null,true],"o":{}}"#,
    );
    let text = serde_json::to_string(&value).expect("serializes");
    assert_eq!(
        text,
        r#"{"u":18446744073709551615,"i":-9223372036854775808,"f":1.5,"one":1,"s":"é","l":[null,true],"o":{}}"#
    );
    assert_eq!(serde_json::from_str::<Json>(&text).expect("deserializes"), value);
    assert!(serde_json::to_string(&json("1e999")).is_err());
    assert_eq!(serde_json::to_value(json("1e30")).expect("serializes"), serde_json::json!(1e30));
    let table: Json = toml::from_str("n = 1\nf = 2.0\nlist = [\"a\", true]\n[t]\nx = -3").expect("TOML");
    assert_eq!(table, json(r#"{"n":1,"f":2.0,"list":["a",true],"t":{"x":-3}}"#));
    assert!(toml::from_str::<Json>("n = nan").is_err());
}

/// Numbers in every spelling, short and long.
fn numbers() -> impl Strategy<Value = Json> {
    ("-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,10})?([eE][+-]?[0-9]{1,25})?")
        .prop_map(|text| Number::from_text(&text).expect("the grammar of numbers").into())
}

fn values() -> impl Strategy<Value = Json> {
    let string = || prop_oneof!["[a-c]{0,2}", "\\PC{0,20}", any::<String>()];
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        numbers(),
        string().prop_map(Json::from),
    ];
    leaf.prop_recursive(6, 80, 12, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Json::Array),
            prop::collection::vec((string(), inner), 0..24).prop_map(Json::Object),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn decoding_undoes_writing(value in values()) {
        let text = value.to_text();
        let decoded = json(&text);
        prop_assert_eq!(&decoded, &value);
        // Equality is by meaning; the text shows that spelling, order and duplicates are kept, too.
        prop_assert_eq!(decoded.to_text(), text);
        prop_assert_eq!(json(&value.to_text_pretty()).to_text(), value.to_text());
        prop_assert_eq!(value.clone().to_text(), value.to_text());
    }

    #[test]
    fn presentations_preserve_the_value(value in values(), rng_seed: u64) {
        let mut rng = Rng::new(rng_seed);
        for how in Presentation::ALL {
            let text = present(&value, how, &mut || rng.next_u64());
            prop_assert!(!text.contains(['\n', '\r']), "{}", text);
            let mut presented = json(&text);
            if let Some(members) = presented.as_object_mut() {
                members.retain(|(key, _)| !key.starts_with("x_peerproof_"));
            }
            prop_assert_eq!(&presented, &value, "{:?}: {}", how, text);
        }
    }

    #[test]
    fn agrees_with_serde_json_on_what_is_json(bytes in prop::collection::vec(any::<u8>(), 0..12)) {
        // Excludes lone surrogates and doubles out of range, which serde_json refuses: short random bytes have neither.
        prop_assert_eq!(decode_bytes(&bytes).is_ok(), serde_json::from_slice::<serde_json::Value>(&bytes).is_ok());
    }

    #[test]
    fn agrees_with_serde_json_on_near_json(text in "[\\[\\]{},:\"\\\\ 0-2.eE+\\-ntu\u{1}é]{0,10}") {
        let theirs = serde_json::from_str::<serde_json::Value>(&text);
        let out_of_range = matches!(&theirs, Err(error) if error.to_string().contains("out of range"));
        prop_assert!(out_of_range || json_ok(&text) == theirs.is_ok(), "{}", text);
    }

    #[test]
    fn equality_is_symmetric_and_finds_changes(left in values(), right in values()) {
        prop_assert_eq!(left == right, right == left);
        let wrapped = Json::array([left.clone(), right.clone()]);
        prop_assert_eq!(wrapped == Json::array([right.clone(), left.clone()]), left == right);
    }
}

fn json_ok(text: &str) -> bool {
    decode_bytes(text.as_bytes()).is_ok()
}

#[test]
fn big_numbers_are_those_that_doubles_change() {
    let is_big = |text: &str| Number::from_text(text).unwrap().is_big();
    for text in
        ["9007199254740992", "-9007199254740992", "1e300", "1e400", "-0.5e999", "18446744073709551616"]
    {
        assert!(is_big(text), "{text}");
    }
    for text in [
        "9007199254740991",
        "-9007199254740991",
        "0",
        "-0.0",
        "1.5",
        "1e3",
        "0.1000000000000000055",
        "5e-324",
    ] {
        assert!(!is_big(text), "{text}");
    }
}

#[test]
fn of_members_with_one_name_the_first_is_kept_at_every_depth() {
    let mut value: Json = r#"{"a":[{"b":1,"b":2}],"a":3,"c":4}"#.parse().unwrap();
    value.keep_first();
    assert_eq!(value, r#"{"a":[{"b":1}],"c":4}"#.parse().unwrap());
}

#[test]
fn white_space_is_what_json_calls_so() {
    assert_eq!(trim(b" \t\r\n{ }\n "), b"{ }");
    assert_eq!(trim(b"\x0c{}\x0b"), b"\x0c{}\x0b");
    assert_eq!(trim(b" \n"), b"");
}
