//! Checks of the patches that a driver prints.

use super::super::super::block::OUTPUT_BYTES_MAX;
use super::super::super::driver::expect::{Allowed, Expect, PickForm};
use super::super::super::driver::probe::copy_for;
use super::super::super::request::Request;
use super::check;
use peerproof_engine::data::check::Check;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::payload::Payload;

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    vec![strings(), numbers(), words(), no_pick(), encoded(), plain_sizes(), encoded_sizes()]
}

/// A check of the output for these strings in the inputs of a role.
fn holding(
    name: &str,
    title: &str,
    clause: &'static str,
    role: &'static str,
    texts: impl Fn(&Facts) -> Vec<String> + Send + Sync + 'static,
) -> Check {
    let check = check(&format!("output/{name}"), title, &[clause], move |talk| {
        for text in texts(talk.facts()) {
            let value = Json::from(text.as_str()).to_text();
            if let Some(text) = talk.role_with_leaf(role, &value) {
                let expect = Expect::block(clause).narrow().shows(PickForm::of_role(role));
                talk.decide_on(Payload::text(text), expect);
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
        "INP contains one strict JSON object, whatever string the inputs contain.",
        "PD-OUT-08",
        "pick_inp",
        |_| {
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
        "INP contains one strict JSON object or is absent, whatever number the inputs contain.",
        &["PD-OUT-08"],
        |talk| {
            for number in ["0.1", "-0.0", "1e308", "1e400", "-1e400"] {
                if let Some(text) = talk.role_with_leaf("pick_inp", number) {
                    let expect = Expect::block("PD-OUT-08").or(Allowed::Failure).narrow();
                    talk.decide_on(Payload::text(text), expect.shows(PickForm::Inp));
                }
            }
        },
    );
    check.roles(&["pick_inp"]).feature("patches")
}

fn no_pick() -> Check {
    check(
        "output/no-pick",
        "A block that picks nothing is ASK_SUP or NOOP, without a SID and without a patch.",
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
        "Tags of a block in a string of the inputs neither end INP nor begin another part.",
        "PD-OUT-09",
        "pick_inp",
        |_| {
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
        "INP64 is padded base64 of the standard alphabet on one line, whatever it encodes.",
        "PD-OUT-10",
        "pick_inp64",
        |_| {
            // All lengths of padding, the last two characters of the alphabet, and more than one line of MIME.
            let mut texts = owned(&["", "a", "aa", "aaa", "~~~~???>>>", "ÿÿÿÿþþþ¿¿¿", "a\"b\\\n\u{0}", "🦀"]);
            texts.push("long ".repeat(100));
            texts
        },
    )
}

/// Lengths of copied text around the one that makes an output of exactly the limit. They are measured, or else
/// computed for a patch with one short name.
fn lengths(facts: &Facts, role: &str, of_short_name: usize) -> Vec<usize> {
    let most = copy_for(facts, role, OUTPUT_BYTES_MAX).unwrap_or(of_short_name);
    let near = most.saturating_sub(4)..most + 4;
    near.chain([OUTPUT_BYTES_MAX, 2 * OUTPUT_BYTES_MAX]).collect()
}

/// A check of outputs around the size limit.
fn sizes(name: &str, title: &str, role: &'static str, of_short_name: usize) -> Check {
    holding(name, title, "PD-OUT-07", role, move |facts| {
        lengths(facts, role, of_short_name).into_iter().map(|length| "p".repeat(length)).collect()
    })
}

fn plain_sizes() -> Check {
    sizes(
        "inp-at-the-limit",
        "If the patch would be too long for 65,536 bytes of output, the driver prints something shorter.",
        "pick_inp",
        OUTPUT_BYTES_MAX - "<PICK><SID0003><INP>{\"k\":\"\"}</INP><END>\n".len(),
    )
}

fn encoded_sizes() -> Check {
    sizes(
        "inp64-at-the-limit",
        "If the encoded patch would be too long for 65,536 bytes of output, the driver prints something \
         shorter.",
        "pick_inp64",
        // Four characters encode three bytes; the tags use 36 bytes.
        (OUTPUT_BYTES_MAX - 36) / 4 * 3 - "{\"k\":\"\"}".len(),
    )
}
