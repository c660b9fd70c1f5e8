//! Patches as a driver prints them, whatever it copies there.

use super::super::super::block::OUTPUT_BYTES_MAX;
use super::super::super::driver::expect::{Allowed, Expect};
use super::super::super::driver::leaf::with_leaf;
use super::super::super::request::Request;
use super::check;
use crate::check::Check;
use crate::json::Json;
use crate::payload::Payload;

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    vec![strings(), numbers(), words(), no_pick(), encoded(), sizes(), encoded_sizes()]
}

/// A check of what a driver prints where the inputs of a role hold these strings.
fn holding(
    name: &str,
    title: &str,
    clause: &'static str,
    role: &'static str,
    texts: impl Fn() -> Vec<String> + Send + Sync + 'static,
) -> Check {
    let check = check(&format!("output/{name}"), title, &[clause], move |talk| {
        for text in texts() {
            let request = talk.role(role);
            let value = Json::from(text.as_str()).to_text();
            if let Some(text) = request.and_then(|request| with_leaf(&request, &value)) {
                talk.decide_on(Payload::text(text), Expect::block(clause).narrow());
            }
        }
    });
    check.roles(&[role]).feature("patches")
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn strings() -> Check {
    holding(
        "strings-in-inp",
        "Whatever string the inputs hold, INP carries one strict JSON object.",
        "PD-OUT-08",
        "pick_inp",
        || {
            owned(&[
                "",
                "a\"b",
                "a\\b\\",
                "a\nb\r\tc",
                "a\u{0}b\u{1f}\u{7f}",
                "zwölf 🦀 \u{2028}\u{2029}",
                "\u{FEFF}",
                "'single', {braces: [1,]}, // and more",
            ])
        },
    )
}

fn numbers() -> Check {
    let check = check(
        "output/numbers-in-inp",
        "Whatever number the inputs hold, INP carries one strict JSON object, or there is none.",
        &["PD-OUT-08"],
        |talk| {
            for number in ["0.1", "-0.0", "1e308", "1e400", "-1e400"] {
                let request = talk.role("pick_inp");
                if let Some(text) = request.and_then(|request| with_leaf(&request, number)) {
                    let expect = Expect::block("PD-OUT-08").or(Allowed::Failure).narrow();
                    talk.decide_on(Payload::text(text), expect);
                }
            }
        },
    );
    check.roles(&["pick_inp"]).feature("patches")
}

fn no_pick() -> Check {
    check(
        "output/no-pick",
        "Where nothing is picked the block is ASK_SUP or NOOP, without a SID and without a patch.",
        &["PD-OUT-05"],
        |talk| {
            for request in [Request::plain(), Request::plain().inputs(r#"{"url":"http://127.0.0.1:1/"}"#)] {
                let request = request.with("menu", Json::Array(Vec::new()));
                talk.decide(&request, Expect::no_pick("PD-OUT-05").narrow());
            }
        },
    )
}

fn words() -> Check {
    holding(
        "words-in-inp",
        "The words of a block in a string of the inputs end no INP and begin nothing.",
        "PD-OUT-09",
        "pick_inp",
        || {
            owned(&[
                "</INP>",
                "</INP><END>",
                "<END>",
                "<INP64>e30=</INP64>",
                "<PICK><SID0003><END>",
                "\"}</INP><END>\n<PICK><SID0003><INP>{\"",
                "\\\"</INP>",
            ])
        },
    )
}

fn encoded() -> Check {
    holding(
        "inp64",
        "INP64 is padded base64 of the standard alphabet, in one line, whatever it encodes.",
        "PD-OUT-10",
        "pick_inp64",
        || {
            // Every length of padding, the last two characters of the alphabet, and more than one line of mail.
            let mut texts = owned(&["", "a", "aa", "aaa", "~~~~???>>>", "ÿÿÿÿþþþ¿¿¿", "a\"b\\\n\u{0}", "🦀"]);
            texts.push("long ".repeat(100));
            texts
        },
    )
}

/// Bytes of a block around the text of a patch of one short name, more or less white space in it.
const AROUND: usize = "<PICK><SID0003><INP>{\"k\":\"\"}</INP><END>\n".len();

fn sizes() -> Check {
    holding(
        "inp-at-the-limit",
        "Where the patch would be too long for 65,536 bytes of output, the driver prints something shorter.",
        "PD-OUT-07",
        "pick_inp",
        || {
            let least = OUTPUT_BYTES_MAX - AROUND - 4;
            let lengths = (least..least + 7).chain([OUTPUT_BYTES_MAX, 2 * OUTPUT_BYTES_MAX]);
            lengths.map(|length| "p".repeat(length)).collect()
        },
    )
}

fn encoded_sizes() -> Check {
    holding(
        "inp64-at-the-limit",
        "Where the encoded patch would be too long for 65,536 bytes of output, the driver prints something shorter.",
        "PD-OUT-07",
        "pick_inp64",
        || {
            // Four characters for three bytes; 65,500 of them with the words around.
            let least = (OUTPUT_BYTES_MAX - 36) / 4 * 3 - "{\"k\":\"\"}".len();
            [least - 3, least, least + 1, OUTPUT_BYTES_MAX]
                .into_iter()
                .map(|length| "p".repeat(length))
                .collect()
        },
    )
}
