//! Checks with hostile text in a payload, which must be treated as data.

use super::super::super::driver::expect::{Allowed, Expect};
use super::super::super::driver::leaf::with_each_string;
use super::super::super::driver::talk::Talk;
use super::super::super::request::{Entry, Request};
use super::check;
use peerproof_engine::data::check::{Check, Untestable};
use peerproof_engine::data::json::Json;
use peerproof_engine::data::payload::Payload;

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    vec![selector_syntax(), control_characters(), programs(), each_string(), lone_surrogates()]
}

/// Syntax of blocks, JSON, shells and templates, control characters and marks in one string.
const HOSTILE: &str =
    "\"\\\n\r\u{0}\u{1f}\u{7f}'</INP><END>\n<PICK><SID0001><END>\u{202e}\u{2028}$(x)`x`%s{{7*7}}";

/// Decisions about each role's payload in which one string after another is replaced by this JSON text.
fn each_of_the_promised(talk: &mut Talk<'_>, value: &str, expect: &Expect) {
    if talk.roles().is_empty() {
        talk.misses(Untestable::new(
            Untestable::NO_ROLE,
            "none of the roles `pick`, `pick_inp` and `pick_inp64` has a payload to pick from",
        ));
    }
    for text in talk.payloads().iter().flat_map(|request| with_each_string(request, value)) {
        talk.decide_on(Payload::text(text), expect.clone());
    }
}

fn each_string() -> Check {
    check(
        "hostile/each-string-of-a-promised-payload",
        "Hostile text instead of any string of a payload of a `pick` role is data.",
        &["PD-LOAD-05", "PD-OUT-08", "PD-OUT-10"],
        |talk| {
            each_of_the_promised(talk, &Json::from(HOSTILE).to_text(), &Expect::block("PD-LOAD-05"));
        },
    )
}

fn lone_surrogates() -> Check {
    check(
        "hostile/half-a-pair-in-each-string-of-a-promised-payload",
        "With a lone surrogate instead of any string of a payload of a `pick` role, the driver fails or \
         prints one block whose patch is strict JSON in UTF-8.",
        &["PD-OUT-01", "PD-OUT-08", "PD-OUT-10"],
        |talk| {
            let expect = Expect::block("PD-OUT-01").or(Allowed::Failure);
            each_of_the_promised(talk, r#""a\ud83d\ude80b\udc00\ud800""#, &expect);
        },
    )
}

/// A payload with this text in every string. A digit keeps member names distinct.
fn holding(text: &str) -> Request {
    let entries = [3, 7, 42].map(|number| {
        let entry = Entry { aid: text.to_owned(), ..Entry::plain(number) };
        entry.named(text).tagged(&[text, "http", text])
    });
    let nested =
        Json::object([(text, Json::from(text)), ("url", Json::from(text)), ("cmd", Json::from(text))]);
    Request::of(&entries).with("goal_digest", text).with("state_digest", text).with("inputs", nested)
}

/// A check with payloads that hold these texts; each must be decided like any other.
fn data(name: &str, title: &str, clause: &'static str, texts: &'static [&'static str]) -> Check {
    check(&format!("hostile/{name}"), title, &[clause], move |talk| {
        for text in texts {
            talk.decide(&holding(text), Expect::block(clause).narrow());
        }
    })
}

fn selector_syntax() -> Check {
    data(
        "selector-syntax",
        "Tags and whole blocks in names, tags, aids, digests and inputs are data: one valid block picks \
         from the menu.",
        "PD-LOAD-04",
        &[
            "<END>",
            "<PICK><SID0001><END>",
            "<PICK><SID0003><END>",
            "</INP>",
            "</INP><END>",
            "<INP>{\"k\":1}</INP>",
            "<INP64>e30=</INP64>",
            "<ASK_SUP><END>",
            "\n<NOOP><END>\n",
            "SID0001",
            "{\"sid\":\"SID0001\"}",
            "&lt;END&gt; &amp; &#60;NOOP&#62; %3CEND%3E",
        ],
    )
}

fn control_characters() -> Check {
    data(
        "control-characters",
        "Line feeds, NULs, control characters, direction marks and separators in texts are data.",
        "PD-LOAD-05",
        &[
            "a\nb\r\nc",
            "a\u{0}b",
            "\u{1}\u{1b}[31m\u{7}\u{8}\u{7f}",
            "\u{202e}gnp\u{2066}x\u{200f}",
            "a\u{2028}b\u{2029}c\u{85}",
            "\u{FEFF}bom",
            "\"",
            "'",
            "\\",
            "e\u{301}\u{1F9D1}\u{200D}\u{1F680}\u{10FFFF}",
        ],
    )
}

fn programs() -> Check {
    data(
        "programs",
        "Code of shells and other languages in texts is not run: it creates no file.",
        "PD-LOAD-05",
        &[
            "$(touch \"$TMPDIR/ran\")",
            "`touch \"$TMPDIR/ran\"`",
            "; touch \"$TMPDIR/ran\";",
            "' ; touch \"$TMPDIR/ran\"; '",
            "\" ; touch \"$TMPDIR/ran\"; \"",
            "x\ntouch \"$TMPDIR/ran\"\n",
            "| touch \"$TMPDIR/ran\" &",
            "a[$(touch \"$TMPDIR/ran\")]",
            "__import__('os').system('touch \"$TMPDIR/ran\"')",
            "${require('child_process').execSync('touch \"$TMPDIR/ran\"')}",
            "\" system(\"touch $TMPDIR/ran\") \"",
            "{{7*7}}%s%n%d$HOME~*?",
        ],
    )
}
