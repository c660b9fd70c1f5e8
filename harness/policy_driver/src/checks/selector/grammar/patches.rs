//! Checks of `INP`: its end, and valid and invalid content.

use super::super::super::super::request::Request;
use super::super::super::super::selector::expect::{Allowed, Expect};
use super::super::super::super::selector::talk::says;
use super::{all_taken, bytes, check, inp, inp64, refusals};
use peerproof_engine::data::check::Check;

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    vec![
        ends_outside_strings(),
        ends_early(),
        white_space_inside(),
        space_that_is_none(),
        no_object(),
        no_strict_json(),
        bytes_no_json(),
        too_many(),
        misspelt(),
        out_of_place(),
        open_json("member-twice", r#"{"k":1,"k":2}"#),
        open_json("lone-surrogate", r#"{"k":"\ud800"}"#),
        open_json("number-beyond-a-double", r#"{"k":1e400}"#),
        open_depth("nested-65", 65),
        open_depth("nested-30000", 30_000),
        levels(),
    ]
    .into_iter()
    .map(|check| check.feature("patches"))
    .collect()
}

fn ends_outside_strings() -> Check {
    check(
        "grammar/tags-in-strings",
        "Strings and names of a patch that contain `</INP>`, `<INP64>`, `<END>`, quotes or whole blocks \
         stay unchanged.",
        &["PD-GRAM-08"],
        |talk, _| {
            talk.canary("PD-GRAM-08");
            let patches = [
                r#"{"k":"</INP>"}"#,
                r#"{"k":"</INP><END>"}"#,
                r#"{"</INP><END>":1}"#,
                r#"{"k":"<END>"}"#,
                r#"{"k":"<INP>{}</INP>"}"#,
                r#"{"k":"<INP64>e30=</INP64>"}"#,
                r#"{"k":"<PICK><SID0007><END>"}"#,
                r#"{"k":"<PICK><SID0007><INP>{}</INP><END>","l":"<NOOP><END>"}"#,
                r#"{"k":"\"</INP>"}"#,
                r#"{"k":"\\","l":"</INP><END>"}"#,
                r#"{"k":"\\\"</INP><END>\\"}"#,
                r#"{"k":"\u0022</INP><END>"}"#,
                r#"{"k":"\u003c/INP\u003e</INP>"}"#,
                r#"{"k":["</INP>",{"l":"</INP>"}],"m":"a < b > c"}"#,
            ];
            all_taken(talk, "PD-GRAM-08", patches.map(inp));
        },
    )
}

fn ends_early() -> Check {
    refusals(
        "grammar/end-outside-strings",
        "`</INP>` outside a string ends the patch: what follows it must be `<END>`.",
        "PD-GRAM-08",
        &[r#"<PICK><SID0042><INP>{"k":"</INP><END>"}</INP><END>"#],
        || {
            [
                r#"{"k":1}</INP><END>"#,
                r#"{"k":1</INP>}"#,
                r#"{"k":1}</INP>{"k":1}"#,
                r#"{"k":"x"}</INP>,"l":1}"#,
                r#"{"k":"</INP>"}</INP>"#,
                r#"{"k":"x\"}</INP><END>"#,
                r#"</INP><END>{}"#,
            ]
            .map(inp)
            .map(String::into_bytes)
            .into()
        },
    )
}

fn white_space_inside() -> Check {
    check(
        "grammar/white-space-in-patch",
        "White space of JSON around and inside the object of a patch is allowed, and `{}` is a patch.",
        &["PD-GRAM-09"],
        |talk, _| {
            talk.canary("PD-GRAM-09");
            let patches = [
                "{}",
                " {} ",
                "\n{\n}\n",
                "\t\r\n { \"k\" :\t1 ,\r\n\"l\":[ ] } \n\r\t",
                " {\"k\":\"a  b\"}",
            ];
            all_taken(talk, "PD-GRAM-09", patches.map(inp));
        },
    )
}

fn space_that_is_none() -> Check {
    refusals(
        "grammar/marks-in-patch",
        "A byte order mark, a wide space, VT, FF or NUL around the object of a patch does not count as \
         white space.",
        "PD-GRAM-10",
        &["<PICK><SID0042><INP> {} </INP><END>"],
        || {
            [
                "\u{FEFF}{}",
                "{}\u{FEFF}",
                "\u{A0}{}",
                "{}\u{2003}",
                "\u{B}{}",
                "{}\u{C}",
                "\0{}",
                "{}\0",
                "{\u{A0}}",
                "{\u{1C}}",
            ]
            .map(inp)
            .map(String::into_bytes)
            .into()
        },
    )
}

fn no_object() -> Check {
    refusals(
        "grammar/patch-no-object",
        "A patch that is an array, a string, a number, null, a boolean or empty is invalid.",
        "PD-GRAM-10",
        &["<PICK><SID0042><INP>{}</INP><END>", r#"<PICK><SID0042><INP>{"k":[]}</INP><END>"#],
        || {
            [
                "[]",
                "[{}]",
                r#"["k","v"]"#,
                r#"[["k","v"]]"#,
                r#""{}""#,
                r#""k""#,
                "0",
                "1.5",
                "null",
                "true",
                "false",
                "",
                " ",
            ]
            .map(inp)
            .map(String::into_bytes)
            .into()
        },
    )
}

fn no_strict_json() -> Check {
    refusals(
        "grammar/patch-no-strict-json",
        "A patch in JSON that is nearly strict is invalid.",
        "PD-GRAM-10",
        &[
            r#"<PICK><SID0042><INP>{"k":1}</INP><END>"#,
            "<PICK><SID0042><INP>{\"k\":\"\u{7F}\\t\"}</INP><END>",
        ],
        || {
            [
                "{'k':1}",
                "{k:1}",
                r#"{"k":1,}"#,
                r#"{"k":[1,]}"#,
                r#"{,"k":1}"#,
                r#"{"k":1 "l":2}"#,
                r#"{"k"}"#,
                r#"{"k":}"#,
                r#"{"k"::1}"#,
                r#"{"k":1}//"#,
                r#"/**/{"k":1}"#,
                r#"{"k":1}{"l":2}"#,
                r#"{"k":1} x"#,
                r#"{"k":1}}"#,
                r#"{"k":1"#,
                r#"{"k":NaN}"#,
                r#"{"k":Infinity}"#,
                r#"{"k":-Infinity}"#,
                r#"{"k":01}"#,
                r#"{"k":-01}"#,
                r#"{"k":+1}"#,
                r#"{"k":.5}"#,
                r#"{"k":1.}"#,
                r#"{"k":1e}"#,
                r#"{"k":0x10}"#,
                r#"{"k":1_000}"#,
                r#"{"k":True}"#,
                r#"{"k":None}"#,
                r#"{"k":undefined}"#,
                r#"{"k":"\x41"}"#,
                r#"{"k":"\u00"}"#,
                r#"{"k":"\'"}"#,
                "{\"k\":\"a\tb\"}",
                "{\"k\":\"a\nb\"}",
                "{\"k\":\"a\0b\"}",
                "{\"k\":\"a\u{1F}b\"}",
            ]
            .map(inp)
            .map(String::into_bytes)
            .into()
        },
    )
}

fn bytes_no_json() -> Check {
    refusals(
        "grammar/patch-no-utf8",
        "A patch with a string that is not UTF-8 is invalid.",
        "PD-GRAM-10",
        &["<PICK><SID0042><INP>{\"k\":\"é\u{1F600}\u{FFFD}\"}</INP><END>"],
        || {
            let broken: [&[u8]; 7] =
                [b"\xFF", b"\xC3", b"\xC0\x80", b"\xED\xA0\x80", b"\xF4\x90\x80\x80", b"\x80", b"\xE2\x82"];
            let block = |bytes: &[u8]| {
                [b"<PICK><SID0042><INP>{\"k\":\"".as_slice(), bytes, b"\"}</INP><END>"].concat()
            };
            broken.map(block).into()
        },
    )
}

fn too_many() -> Check {
    refusals(
        "grammar/two-patches",
        "Both patches, the same patch twice, and an unclosed patch are invalid.",
        "PD-GRAM-11",
        &["<PICK><SID0042><INP>{}</INP><END>", "<PICK><SID0042><INP64>e30=</INP64><END>"],
        || {
            bytes(&[
                "<PICK><SID0042><INP>{}</INP><INP64>e30=</INP64><END>",
                "<PICK><SID0042><INP64>e30=</INP64><INP>{}</INP><END>",
                "<PICK><SID0042><INP>{}</INP><INP>{}</INP><END>",
                "<PICK><SID0042><INP64>e30=</INP64><INP64>e30=</INP64><END>",
                "<PICK><SID0042><INP><INP>{}</INP></INP><END>",
                "<PICK><SID0042><INP>{}<END>",
                "<PICK><SID0042><INP>{}</INP>",
                "<PICK><SID0042><INP>{}",
                "<PICK><SID0042><INP>{\"k\":\"</INP><END>",
                "<PICK><SID0042><INP64>e30=<END>",
                "<PICK><SID0042><INP64>e30=</INP64>",
                "<PICK><SID0042><INP>{}</INP64><END>",
                "<PICK><SID0042><INP64>e30=</INP><END>",
                "<PICK><SID0042><INP>{}</INP> <END>",
                "<PICK><SID0042> <INP>{}</INP><END>",
                "<PICK><SID0042>{}<END>",
                "<PICK><SID0042></INP><END>",
            ])
        },
    )
}

fn misspelt() -> Check {
    refusals(
        "grammar/patch-misspelt",
        "A patch whose tags are in lower case, contain spaces, are empty or do not match is invalid.",
        "PD-GRAM-06",
        &["<PICK><SID0042><INP>{}</INP><END>", "<PICK><SID0042><INP64>e30=</INP64><END>"],
        || {
            bytes(&[
                "<PICK><SID0042><INP>{}</inp><END>",
                "<PICK><SID0042><inp>{}</inp><END>",
                "<PICK><SID0042><inp>{}</INP><END>",
                "<PICK><SID0042><inp64>e30=</inp64><END>",
                "<PICK><SID0042><INP >{}</INP><END>",
                "<PICK><SID0042><INP>{}</INP ><END>",
                "<PICK><SID0042><INP>{}< /INP><END>",
                "<PICK><SID0042><INP/><END>",
                "<PICK><SID0042><INP>{}<INP><END>",
                "<PICK><SID0042><INPUT>{}</INPUT><END>",
                "<PICK><SID0042><INP>{}</INP64><END>",
                "<PICK><SID0042><INP64>e30=</INP><END>",
            ])
        },
    )
}

fn out_of_place() -> Check {
    refusals(
        "grammar/patch-out-of-place",
        "A patch in ASK_SUP or NOOP, before the SID or after the end is invalid.",
        "PD-GRAM-11",
        &["<ASK_SUP><END>", "<NOOP><END>", "<PICK><SID0042><INP>{}</INP><END>"],
        || {
            bytes(&[
                "<ASK_SUP><INP>{}</INP><END>",
                "<ASK_SUP><INP64>e30=</INP64><END>",
                "<NOOP><INP>{}</INP><END>",
                "<NOOP><INP64>e30=</INP64><END>",
                "<INP>{}</INP><END>",
                "<INP>{}</INP><PICK><SID0042><END>",
                "<PICK><INP>{}</INP><SID0042><END>",
                "<PICK><INP>{}</INP><END>",
                "<PICK><SID0042><END><INP>{}</INP>",
                "<NOOP><END><INP64>e30=</INP64>",
            ])
        },
    )
}

/// The contract leaves the value of such a patch open; the Selection must be strict JSON.
fn open_json(name: &str, patch: &'static str) -> Check {
    check(
        &format!("grammar/patch-{name}"),
        "A patch whose meaning JSON leaves open is accepted or invalid, and the Selection is strict JSON.",
        &["PD-GRAM-15"],
        move |talk, _| {
            talk.canary("PD-GRAM-15");
            talk.play(&Request::plain(), says(inp(patch)), Expect::new("PD-GRAM-15", Allowed::Anything));
            talk.canary("PD-GRAM-15");
        },
    )
}

/// An object with this many levels.
fn nested(levels: usize) -> String {
    let arrays = levels.saturating_sub(1);
    format!("{{\"k\":{}{}}}", "[".repeat(arrays), "]".repeat(arrays))
}

fn open_depth(name: &str, levels: usize) -> Check {
    check(
        &format!("grammar/patch-{name}"),
        "A patch of more than 64 levels is accepted or invalid, and the selector keeps running.",
        &["PD-GRAM-15"],
        move |talk, _| {
            talk.canary("PD-GRAM-15");
            let output = inp(&nested(levels));
            let expect = Expect::taken("PD-GRAM-15", output.clone()).or(Allowed::Fallback);
            talk.play(&Request::plain(), says(output), expect);
            talk.canary("PD-GRAM-15");
        },
    )
}

fn levels() -> Check {
    check(
        "grammar/patch-nested-64",
        "A patch of up to 64 levels, of arrays, of objects, and in INP64, is accepted.",
        &["PD-GRAM-16"],
        |talk, _| {
            talk.canary("PD-GRAM-16");
            let objects = format!("{}{{}}{}", "{\"k\":".repeat(63), "}".repeat(63));
            all_taken(
                talk,
                "PD-GRAM-16",
                [inp(&nested(2)), inp(&nested(63)), inp(&nested(64)), inp(&objects)],
            );
            all_taken(talk, "PD-GRAM-16", [inp64(&super::base64::encode(nested(64).as_bytes()))]);
        },
    )
}
