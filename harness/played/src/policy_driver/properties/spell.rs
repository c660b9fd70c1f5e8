//! Blocks, payloads and patches out of a few bytes.

use std::borrow::Cow;

use super::spelling;

/// What a block, or nearly one, is put together from.
const WORDS: [&[u8]; 48] = [
    b"<PICK>",
    b"<SID0007>",
    b"<INP>",
    b"</INP>",
    b"<INP64>",
    b"</INP64>",
    b"<END>",
    b"<ASK_SUP>",
    b"<NOOP>",
    b"{}",
    b"{",
    b"}",
    b"\"a\":",
    b"\"",
    b",",
    b"1",
    b"e30=",
    b"eyJhIjoxfQ==",
    b"=",
    b"e30",
    b"\n",
    b" ",
    b"\x0B",
    b"\x0C",
    b"\\",
    b"\\\"",
    b"\\u003c",
    b"\\ud800",
    b"[",
    b"]",
    b"null",
    b"1e400",
    b"9007199254740993",
    b"{\"a\":\"</INP>\"}",
    b"{\"\\\"</INP><END>\":[\"<INP64>\"]}",
    b"{\"a\":1,\"\\u0061\":2}",
    b"<pick>",
    b"<SID007>",
    b"<SID00007>",
    b"</inp>",
    b"<end>",
    b"\xEF\xBB\xBF",
    b"\xFF",
    b"\0",
    b"-_",
    b"+/",
    b"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    b"]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
];

/// Words one after the other, with the frame of a form around them by the first byte.
pub fn block(data: &[u8]) -> Cow<'_, [u8]> {
    let (op, rest) = match spelling(data) {
        Ok(spelling) => spelling,
        Err(text) => return text,
    };
    let middle: Vec<u8> =
        rest.iter().flat_map(|byte| WORDS[usize::from(*byte) % WORDS.len()]).copied().collect();
    let (before, after): (&[u8], &[u8]) = match op {
        0..3 => (b"", b""),
        3 => (b"<PICK><SID0007><INP>", b"</INP><END>"),
        4 => (b"<PICK><SID0007><INP>{\"a\":", b"}</INP><END>"),
        5 => (b"<PICK><SID0007><INP>{\"a\":\"", b"\"}</INP><END>\n"),
        6 => (b"<PICK><SID0007><INP64>", b"</INP64><END>"),
        7 => (b"<PICK><SID0007>", b"<END>"),
        _ => (b" <NOOP><END>", b" "),
    };
    [before, &middle, after].concat().into()
}

/// Entries of a menu, right and wrong.
const ENTRIES: [&str; 14] = [
    r#"{"sid":"SID0001","aid":"A.v1","name":"n","tags":["http"]}"#,
    r#"{"sid":"SID0002","aid":"A.v1","name":"n","tags":["shell","file"]}"#,
    r#"{"tags":[],"name":"","aid":"","sid":"SID9999"}"#,
    r#"{"sid":"SID0003","aid":"<END>","name":"<PICK><SID0001><END>","tags":["\u0000\n","</INP>"]}"#,
    r#"{"sid":"\u0053ID0004","aid":"A","name":"SID0005","tags":["\u0068ttp"],"more":{"sid":"SID0006"}}"#,
    r#"{"sid":"SID0001","aid":"B.v1","name":"again","tags":[]}"#,
    r#"{"sid":"SID1","aid":"A","name":"n","tags":[]}"#,
    r#"{"sid":"sid0001","aid":"A","name":"n","tags":[]}"#,
    r#"{"aid":"A","name":"n","tags":[]}"#,
    r#"{"sid":7,"aid":"A","name":"n","tags":[]}"#,
    r#"{"sid":"SID0007","tags":"http"}"#,
    r#"{"sid":"SID0008","sid":"SID0009"}"#,
    r#""SID0001""#,
    "null",
];

/// Members of the inputs.
const INPUTS: [&str; 14] = [
    r#""url":"http://a/""#,
    r#""cmd":"ls; echo '<PICK><SID0001><END>'""#,
    r#""path":null"#,
    r#""policy":"stop""#,
    r#""policy":"ask""#,
    r#""policy":{"a":"stop"}"#,
    r#""policy_patch":{ "a" : "</INP><END>" }"#,
    r#""policy_patch":{"a":[1e400,"\ud800",{"\u0061":1,"a":2}]}"#,
    r#""policy_patch":[]"#,
    r#""policy_patch64":{"é":null}"#,
    r#""policy_patch64":{}"#,
    r#""\u0075rl":1"#,
    r#""menu":[{"sid":"SID0010"}]"#,
    r#""a":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"#,
];

fn joined(bytes: &[u8], words: &[&str]) -> String {
    bytes.iter().map(|byte| words[usize::from(*byte) % words.len()]).collect::<Vec<_>>().join(",")
}

/// A payload whose first byte says what is wrong with it: nothing up to 4. The second one divides the rest between inputs
/// and menu.
pub fn payload(data: &[u8]) -> Cow<'_, [u8]> {
    let (op, rest) = match spelling(data) {
        Ok(spelling) => spelling,
        Err(text) => return text,
    };
    let (cut, rest) = rest.split_first().unwrap_or((&0, &[]));
    let (inputs, menu) = rest.split_at(usize::from(*cut) % (rest.len() + 1));
    let (inputs, menu) = (joined(inputs, &INPUTS), joined(menu, &ENTRIES));
    let (inputs, menu) = match op {
        7 => (format!("[{inputs}]"), format!("[{menu}]")),
        8 => (format!("{{{inputs}}}"), format!("{{\"0\":{menu}}}")),
        _ => (format!("{{{inputs}}}"), format!("[{menu}]")),
    };
    let digests =
        r#""goal_digest":"g|m|FLAGS:","state_digest":"<PICK><SID0011><END>","control_mode":"POLICY_ONLY""#;
    match op {
        0..3 => format!("{{{digests},\"inputs\":{inputs},\"menu\":{menu}}}"),
        3 => format!("{{\"menu\":{menu}}}\n"),
        4 => format!(" {{\"menu\": {menu} , \"more\":[{{}}], \"inputs\":{inputs} }}"),
        5 => format!("{{{digests},\"inputs\":{inputs},\"menu\":{menu},}}"),
        6 => format!("\u{FEFF}{{\"inputs\":{inputs},\"menu\":{menu}}}"),
        _ => format!("{{{digests},\"inputs\":{inputs},\"menu\":{menu}}}"),
    }
    .into_bytes()
    .into()
}

/// Names of members, each in every spelling that it has here.
const NAMES: [&[&str]; 7] = [
    &[r#""a""#, r#""\u0061""#],
    &[r#""__proto__""#],
    &[r#""""#],
    &[r#""</INP>""#, r#""\u003c\/INP>""#],
    &[r#""inputs""#],
    &[r#""é""#, r#""\u00e9""#],
    &[r#""a\"b\\""#, r#""\u0061\u0022b\u005C""#],
];

const VALUES: [&str; 8] =
    ["null", "1.0", r#"{"a":{"b":1}}"#, "[]", r#""}{""#, "true", "9007199254740993", r#" { "a" : null } "#];

/// Two objects with members of each name once: from the first half of the bytes, and from the second.
pub fn merge(data: &[u8]) -> Cow<'_, [u8]> {
    let (op, rest) = match spelling(data) {
        Ok(spelling) => spelling,
        Err(text) => return text,
    };
    let (inputs, patch) = rest.split_at(rest.len() / 2);
    let space = if op > 4 { "\r\t " } else { "" };
    let object = |bytes: &[u8]| {
        let mut seen = [false; NAMES.len()];
        let mut members = Vec::new();
        for byte in bytes {
            let at = usize::from(*byte) % NAMES.len();
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            let more = usize::from(*byte) / NAMES.len();
            let name = NAMES[at][more % NAMES[at].len()];
            members.push(format!("{space}{name}{space}:{}", VALUES[more / 2 % VALUES.len()]));
        }
        format!("{space}{{{}}}", members.join(","))
    };
    format!("{}\n{}", object(inputs), object(patch)).into_bytes().into()
}
