//! Artifacts, stored and read back.

use peerproof_engine::data::check::Check;
use peerproof_engine::data::payload::Payload;

use super::super::super::expect::{Allowed, Expect, Match, Outcome};
use super::super::super::talk::Talk;
use super::super::super::talk_state::{Artifact, full, got, put_input};
use super::{FEATURE, id};

const CONTENT: &str = "TH-STATE-11";

pub(super) fn checks() -> Vec<Check> {
    let mut checks: Vec<Check> = CONTENTS.iter().map(|(name, content)| comes_back(name, content)).collect();
    checks.push(large_content());
    checks.push(labels());
    checks.push(long_labels());
    checks.push(escaped_content());
    checks.push(sizes());
    checks
}

/// Contents: any string is allowed.
const CONTENTS: &[(&str, &str)] = &[
    ("that-is-not-json", "not json {"),
    ("that-is-empty", ""),
    ("with-quotes-and-backslashes", "\"\\\"\\\\/\" \\n \\u0041"),
    ("with-control-characters", "a\tb\nc\rd\u{8}e\u{c}f\u{1f}g\u{7f}h"),
    ("with-nul", "before\0after"),
    ("in-many-scripts", "naïve – Ωmega – 漢字 – \u{1F600}\u{10FFFF}"),
    ("with-line-separators", "a\u{2028}b\u{2029}c\u{85}d\u{feff}e"),
    ("with-entities-and-paths", "&lt;b&gt; &amp;amp; &#39; ..\\..\\x ../%2e%2e%2fx"),
    ("that-looks-like-a-number", "1.0"),
    ("that-looks-like-null", "null"),
    ("with-white-space-around", " \t{} \r\n "),
];

fn comes_back(name: &str, content: &'static str) -> Check {
    Check::new(
        id(&format!("content-{name}")),
        "A content_json of any text is stored and comes back unchanged with its size in bytes.",
        [CONTENT],
        "serve",
        move |facts, _| {
            let mut talk = Talk::serve(facts);
            let artifact = Artifact::new(content);
            talk.apply(CONTENT, &full(&[(4, &artifact)]));
            talk.get_is(CONTENT, 4, Some(&artifact));
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "get"])
}

fn large_content() -> Check {
    Check::new(
        id("content-of-300-kilobytes"),
        "A content_json of 300,000 bytes is stored and comes back unchanged, or is too large for a reply \
         after escaping.",
        [CONTENT],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            large_member(&mut talk, "content_json", 300_000);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "get"])
}

fn long_labels() -> Check {
    Check::new(
        id("type-and-provenance-of-64-kilobytes"),
        "`type` and `provenance` of 4 and 64 KiB come back unchanged; 64 KiB may be too large for a reply.",
        [CONTENT],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            for (member, bytes) in
                ["type", "provenance"].into_iter().flat_map(|name| [(name, 4 << 10), (name, 64 << 10)])
            {
                large_member(&mut talk, member, bytes);
            }
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "get"])
}

/// Stores and reads an artifact with a text of this many bytes.
fn large_member(talk: &mut Talk<'_>, member: &str, bytes: u64) {
    /// Size up to which a reply always fits, in any escaping.
    const FITS_BYTES_MAX: u64 = 28_000;
    let text = Payload::text("<").repeat("0123456789", (bytes - 2) / 10);
    let text = text.repeat("x", (bytes - 2) % 10).then(Payload::text(">"));
    let size = if member == "content_json" { bytes } else { 2 };
    let mut artifact = Payload::text(format!("{{\"size_bytes\":{size}"));
    for (name, short) in [("type", "t"), ("provenance", "p"), ("content_json", "{}")] {
        let value = if name == member { text.clone() } else { Payload::text(short) };
        artifact =
            artifact.then(Payload::text(format!(",\"{name}\":\""))).then(value).then(Payload::text("\""));
    }
    let state = Payload::text("{\"slots\":{\"3\":").then(artifact).then(Payload::text("}}}")).merged();
    let (request, expect) = talk.good(CONTENT);
    talk.send(request.payload("ds_state", state).line(), expect);
    let whole = Allowed::of(Outcome::Ok)
        .output_member(&format!("/artifact/{member}"), Match::Text(text))
        .output_member("/artifact/size_bytes", Match::Equals(size.to_string()));
    let mut expect = Expect::new(CONTENT, whole);
    if bytes > FITS_BYTES_MAX {
        expect = expect.or(Allowed::of(Outcome::ToolError));
    }
    talk.get(3, expect);
}

/// `type` and `provenance` of Artifacts.
const LABELS: &[(&str, &str)] = &[
    ("", ""),
    ("a\0b", "漢字\u{1F600}"),
    ("\"quoted\"", "line\nbreak\\"),
    (" blanks ", "\tblanks \r\n"),
    ("&lt;a&gt;/../b", "..\\c%2fd &amp;"),
];

fn labels() -> Check {
    Check::new(
        id("type-and-provenance-of-any-text"),
        "`type` and `provenance` are any text and come back unchanged.",
        [CONTENT],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            for (slot, (kind, provenance)) in LABELS.iter().enumerate() {
                let artifact = Artifact {
                    kind: (*kind).to_owned(),
                    provenance: (*provenance).to_owned(),
                    content_json: "{}".to_owned(),
                };
                talk.apply(CONTENT, &full(&[(slot as u8, &artifact)]));
                talk.get_is(CONTENT, slot as u8, Some(&artifact));
            }
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "get"])
}

fn escaped_content() -> Check {
    Check::new(
        id("content-written-with-escapes"),
        "The size of a content_json with escapes is the size of the decoded text.",
        ["TH-STATE-11"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let artifact = Artifact::new("é\u{1F600}\"/");
            let escaped = "{\"type\":\"peerproof.note\",\"provenance\":\"peerproof\",\
                           \"content_json\":\"\\u00e9\\ud83d\\ude00\\u0022\\/\",\"size_bytes\":8}";
            talk.apply("TH-STATE-11", &format!("{{\"slots\":{{\"0\":{escaped}}}}}"));
            talk.get_is("TH-STATE-11", 0, Some(&artifact));
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "get"])
}

fn sizes() -> Check {
    Check::new(
        id("size-of-multi-byte-content"),
        "Every size_bytes that the peer emits is the number of UTF-8 bytes of its content_json.",
        ["TH-STATE-10"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            for (slot, content) in [(0, "é"), (1, "漢字"), (2, "\u{1F600}"), (3, "\"\\\n\0")] {
                let artifact = Artifact::new(content);
                let request = talk.ask("put", &put_input(slot, &artifact));
                talk.send(request.line(), Expect::ok("TH-STATE-10"));
                talk.get(slot, Expect::new("TH-STATE-10", got(Some(&artifact))).reason("wrong_size_bytes"));
            }
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["put", "get"])
    .ambient()
}
