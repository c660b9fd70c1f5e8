//! Artifacts as they are stored and come back.

use peerproof_engine::check::Check;
use peerproof_engine::payload::Payload;

use super::super::super::expect::{Allowed, Expect, Match, Outcome};
use super::super::super::talk::Talk;
use super::super::super::talk_state::{Artifact, full, got, put_input};
use super::{FEATURE, id};

const CONTENT: &str = "TH-STATE-11";

/// The checks of this part.
pub fn checks() -> Vec<Check> {
    let mut checks: Vec<Check> = CONTENTS.iter().map(|(name, content)| comes_back(name, content)).collect();
    checks.push(large_content());
    checks.push(labels());
    checks.push(escaped_content());
    checks.push(sizes());
    checks
}

/// Contents that are any string at all.
const CONTENTS: &[(&str, &str)] = &[
    ("that-is-not-json", "not json {"),
    ("that-is-empty", ""),
    ("with-quotes-and-backslashes", "\"\\\"\\\\/\" \\n \\u0041"),
    ("with-control-characters", "a\tb\nc\rd\u{8}e\u{c}f\u{1f}g\u{7f}h"),
    ("with-nul", "before\0after"),
    ("in-many-scripts", "naïve – Ωmega – 漢字 – \u{1F600}\u{10FFFF}"),
    ("with-line-separators", "a\u{2028}b\u{2029}c\u{85}d\u{feff}e"),
    ("that-looks-like-a-number", "1.0"),
    ("that-looks-like-null", "null"),
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
        "A content_json of 300,000 bytes is stored and comes back unchanged, or is too large a result as it is escaped.",
        [CONTENT],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let content = Payload::text("<").repeat("0123456789", 29_999).then(Payload::text("12345678>"));
            let state = Payload::text(
                "{\"slots\":{\"3\":{\"type\":\"t\",\"provenance\":\"p\",\"size_bytes\":300000,\"content_json\":\"",
            )
            .then(content.clone())
            .then(Payload::text("\"}}}"));
            let (request, expect) = talk.good(CONTENT);
            talk.send(request.payload("ds_state", state).line(), expect);
            let expected = Allowed::of(Outcome::Ok)
                .output_member("/artifact/content_json", Match::Text(content))
                .output_member("/artifact/size_bytes", Match::Equals("300000".to_owned()));
            talk.get(3, Expect::new(CONTENT, expected).or(Allowed::of(Outcome::ToolError)));
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "get"])
}

fn labels() -> Check {
    Check::new(
        id("type-and-provenance-of-any-text"),
        "`type` and `provenance` are any text and come back unchanged.",
        [CONTENT],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            for (slot, (kind, provenance)) in
                [("", ""), ("a\0b", "漢字\u{1F600}"), ("\"quoted\"", "line\nbreak\\")].into_iter().enumerate()
            {
                let artifact = Artifact {
                    kind: kind.to_owned(),
                    provenance: provenance.to_owned(),
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
        "The size of a content_json written with escapes is that of the text it stands for.",
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
