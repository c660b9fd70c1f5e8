//! Building blocks of blocks, payloads and patches.
#![cfg_attr(not(any(test, feature = "arbitrary")), allow(dead_code, reason = "only `arbitrary` makes these"))]

use std::borrow::Cow;

use peerproof_engine::data::json::Json;

use crate::input::{Choice, Edit, Member, Pieces, ShortList, Text, Value};

/// Words from which blocks and near-blocks are made.
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

/// Block made of words, one per byte. A first byte below 9 selects a surrounding form, so that a fuzzer that starts
/// from stored blocks reaches forms and not only syntax. Other data is used as it is.
pub(super) fn block(data: &[u8]) -> Cow<'_, [u8]> {
    let [op @ 0..9, rest @ ..] = data else { return Cow::Borrowed(data) };
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

/// Entries of a menu, valid and invalid.
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

/// Payload, valid or partly invalid.
#[derive(Clone, Debug)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub struct Payload {
    form: Form,
    inputs: ShortList<Input, 8>,
    menu: ShortList<Entry, 12>,
    edit: Option<Edit>,
    /// Division of the bytes written to the driver.
    pub pieces: Pieces,
}

/// Form of a payload.
#[derive(Clone, Debug)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
enum Form {
    Usual,
    MenuAlone,
    Spaced,
    CommaMore,
    Marked,
    InputsList,
    MenuObject,
}

#[derive(Clone, Debug)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
enum Input {
    Known(Choice),
    /// Patch, in one of the two ways to send it.
    Patch(bool, Value),
    Other(Text, Value),
}

#[derive(Clone, Debug)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
enum Entry {
    Known(Choice),
    Usual { number: u8, aid: Text, name: Text, tags: ShortList<Text, 3> },
    Other(Value),
}

impl Input {
    fn text(&self) -> String {
        let member = |name: &str, value: &Value| format!("{}:{}", quoted(name), value.json().to_text());
        match self {
            Input::Known(choice) => choice.of(&INPUTS).to_owned(),
            Input::Patch(false, value) => member("policy_patch", value),
            Input::Patch(true, value) => member("policy_patch64", value),
            Input::Other(name, value) => member(&name.text(), value),
        }
    }
}

impl Entry {
    fn text(&self) -> String {
        match self {
            Entry::Known(choice) => choice.of(&ENTRIES).to_owned(),
            Entry::Usual { number, aid, name, tags } => Json::object([
                ("sid", Json::from(format!("SID{number:04}"))),
                ("aid", Json::from(aid.text())),
                ("name", Json::from(name.text())),
                ("tags", Json::array(tags.iter().map(|tag| Json::from(tag.text())).collect::<Vec<_>>())),
            ])
            .to_text(),
            Entry::Other(value) => value.json().to_text(),
        }
    }
}

impl Payload {
    /// Bytes for the driver.
    pub fn text(&self) -> Vec<u8> {
        const DIGESTS: &str = r#""goal_digest":"g|m|FLAGS:","state_digest":"<PICK><SID0011><END>","control_mode":"POLICY_ONLY""#;
        let inputs = self.inputs.iter().map(Input::text).collect::<Vec<_>>().join(",");
        let menu = self.menu.iter().map(Entry::text).collect::<Vec<_>>().join(",");
        let text = match self.form {
            Form::Usual => format!("{{{DIGESTS},\"inputs\":{{{inputs}}},\"menu\":[{menu}]}}"),
            Form::MenuAlone => format!("{{\"menu\":[{menu}]}}\n"),
            Form::Spaced => format!(" {{\"menu\": [{menu}] , \"more\":[{{}}], \"inputs\":{{{inputs}}} }}"),
            Form::CommaMore => format!("{{{DIGESTS},\"inputs\":{{{inputs}}},\"menu\":[{menu}],}}"),
            Form::Marked => format!("\u{FEFF}{{\"inputs\":{{{inputs}}},\"menu\":[{menu}]}}"),
            Form::InputsList => format!("{{{DIGESTS},\"inputs\":[{inputs}],\"menu\":[{menu}]}}"),
            Form::MenuObject => format!("{{{DIGESTS},\"inputs\":{{{inputs}}},\"menu\":{{\"0\":[{menu}]}}}}"),
        };
        let mut text = text.into_bytes();
        self.edit.iter().for_each(|edit| edit.apply(&mut text));
        text
    }
}

/// Names of members, each with its spellings here.
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

/// Inputs and patch of a selection, one per line.
#[derive(Clone, Debug)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub struct Merge {
    inputs: ShortList<(Name, Member), 8>,
    patch: ShortList<(Name, Member), 8>,
    spaced: bool,
    edit: Option<Edit>,
}

/// Name of a member in one of its spellings.
#[derive(Clone, Debug)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
enum Name {
    Known(Choice, Choice),
    Other(Text),
}

impl Merge {
    /// Two objects; a name is unique in each unless another has the same text.
    pub fn text(&self) -> Vec<u8> {
        let space = if self.spaced { "\r\t " } else { "" };
        let object = |members: &[(Name, Member)]| {
            let members = members.iter().map(|(name, value)| {
                let name = match name {
                    Name::Known(name, spelling) => spelling.of(name.of(&NAMES)).to_owned(),
                    Name::Other(text) => quoted(&text.text()),
                };
                format!("{space}{name}{space}:{}", value.text(&VALUES))
            });
            format!("{space}{{{}}}", members.collect::<Vec<_>>().join(","))
        };
        let mut text = format!("{}\n{}", object(&self.inputs), object(&self.patch)).into_bytes();
        self.edit.iter().for_each(|edit| edit.apply(&mut text));
        text
    }
}

fn quoted(text: &str) -> String {
    Json::from(text).to_text()
}
