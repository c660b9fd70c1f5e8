//! Checks of the merge of a patch into the inputs, for selectors that show it.

use super::super::super::request::Request;
use super::super::super::selector::expect::Expect;
use super::super::super::selector::talk::{Talk, says};
use super::check;
use peerproof_engine::data::check::Check;

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    vec![shallow(), nulls(), special(), values(), without_patch()]
        .into_iter()
        .map(|check| check.feature("merged_inputs").also_feature("patches"))
        .collect()
}

/// Plays a pick with each of these patches for these inputs.
fn merged(talk: &mut Talk, clause: &str, inputs: &str, patches: &[&str]) {
    for patch in patches {
        let block = format!("<PICK><SID0042><INP>{patch}</INP><END>");
        talk.play(&Request::plain().inputs(inputs), says(block.clone()), Expect::taken(clause, block));
    }
}

fn shallow() -> Check {
    check(
        "merge/shallow",
        "Members of a patch replace whole values, also objects and arrays; the other members stay.",
        &["PD-SELN-07"],
        |talk, _| {
            talk.canary("PD-SELN-07");
            let inputs = r#"{"a":{"x":1,"y":{"z":2}},"b":[1,2,3],"c":"s","d":0}"#;
            let patches = [
                "{}",
                r#"{"e":1}"#,
                r#"{"c":"t"}"#,
                r#"{"a":{"x":9}}"#,
                r#"{"a":{}}"#,
                r#"{"a":1}"#,
                r#"{"b":[9]}"#,
                r#"{"b":[]}"#,
                r#"{"b":{"0":9}}"#,
                r#"{"c":{"x":1}}"#,
                r#"{"d":[],"c":1,"b":"s","a":[{}]}"#,
                r#"{"C":1,"a.x":2,"a/x":3,"a[x]":4}"#,
            ];
            merged(talk, "PD-SELN-07", inputs, &patches);
            merged(talk, "PD-SELN-07", "{}", &["{}", r#"{"k":{"l":1}}"#]);
        },
    )
}

fn nulls() -> Check {
    check(
        "merge/null-is-a-value",
        "A null member of a patch sets the member to null, and does not remove it.",
        &["PD-SELN-08"],
        |talk, _| {
            talk.canary("PD-SELN-08");
            let patches = [
                r#"{"a":null}"#,
                r#"{"new":null}"#,
                r#"{"o":{"x":null}}"#,
                r#"{"n":null,"a":2}"#,
                r#"{"n":0}"#,
            ];
            merged(talk, "PD-SELN-08", r#"{"a":1,"n":null,"o":{"x":1,"y":2}}"#, &patches);
        },
    )
}

fn special() -> Check {
    check(
        "merge/special-names",
        "No name is special in a merge: `__proto__`, `constructor`, `sid`, `inputs` and the empty name are \
         ordinary members.",
        &["PD-SELN-08"],
        |talk, _| {
            talk.canary("PD-SELN-08");
            let patches = [
                r#"{"__proto__":{"x":1}}"#,
                r#"{"__proto__":null}"#,
                r#"{"constructor":{"prototype":{"x":1}}}"#,
                r#"{"sid":"SID0003"}"#,
                r#"{"inputs":{"a":2}}"#,
                r#"{"":1}"#,
                r#"{"kind":"NOOP","raw":"","input_patch_json":"{}","menu":[],"control_mode":"FALLBACK_ONLY"}"#,
                r#"{"toString":1,"hasOwnProperty":2,"length":3,"__class__":4,"$ref":"x","0":5,"a b":6}"#,
            ];
            merged(talk, "PD-SELN-08", r#"{"a":1}"#, &patches);
            let inputs = r#"{"__proto__":{"y":2},"":0,"sid":7,"inputs":[],"constructor":null}"#;
            merged(talk, "PD-SELN-08", inputs, &[r#"{"a":1}"#, r#"{"__proto__":{"x":1},"":{},"inputs":1}"#]);
        },
    )
}

fn values() -> Check {
    check(
        "merge/values",
        "A merge does not change values: big integers, strings, names that differ only in Unicode form.",
        &["PD-SELN-07", "PD-SELN-09"],
        |talk, _| {
            talk.canary("PD-SELN-07");
            let inputs = "{\"n\":[9007199254740991,-9007199254740991,0.5],\"s\":\"\\u0000\\n\\\"é\u{1F600}\u{2028}\",\"\u{E9}\":1,\"a/b\":2}";
            let patches = [
                r#"{"m":9007199254740991}"#,
                "{\"e\u{301}\":2}",
                r#"{"\u00e9":2}"#,
                r#"{"a\/b":3}"#,
                r#"{"t":"\u0000\ud83d\ude00\u2028"}"#,
            ];
            merged(talk, "PD-SELN-07", inputs, &patches);
            // The longest patch for which the merge is promised: 4,096 bytes.
            let longest = format!("{{\"k\":\"{}\"}}", "x".repeat(4_096 - "{\"k\":\"\"}".len()));
            merged(talk, "PD-SELN-07", inputs, &[&longest]);
        },
    )
}

fn without_patch() -> Check {
    check(
        "merge/without-patch",
        "If a Selection of a pick without a patch has `inputs`, they are those of the request.",
        &["PD-SELN-09"],
        |talk, _| {
            talk.canary("PD-SELN-09");
            for inputs in ["{}", r#"{"a":{"x":1},"b":null}"#] {
                merged(talk, "PD-SELN-09", inputs, &[r#"{"c":1}"#, r#"{"a":{"y":2}}"#]);
                let block = "<PICK><SID0042><END>";
                talk.play(&Request::plain().inputs(inputs), says(block), Expect::taken("PD-SELN-09", block));
            }
        },
    )
}
