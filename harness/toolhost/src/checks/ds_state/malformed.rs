//! States that are refused as a whole: slots outside 0..7, malformed Artifacts.

use peerproof_engine::data::check::Check;
use peerproof_engine::data::near_miss::near_misses;
use peerproof_engine::data::plan::Act;

use super::super::super::talk::{LATER_MS, Talk, quoted};
use super::super::super::talk_state::{Artifact, delta, full, note};
use super::{FEATURE, id};

pub(super) fn checks() -> Vec<Check> {
    let mut checks: Vec<Check> = Vec::new();
    for (name, key) in SLOT_KEYS {
        checks.push(hostile(&format!("slot-key-{name}"), SLOTS, move |good, bad| {
            let (good, bad) = (good.text(), bad.text());
            format!("{{\"delta\":true,\"slots\":{{\"0\":{good},{key}:{bad}}}}}")
        }));
    }
    checks.push(hostile("slot-key-eight-in-a-full-state", SLOTS, |good, bad| {
        format!("{{\"slots\":{{\"0\":{},\"8\":{}}}}}", good.text(), bad.text())
    }));
    checks.push(near_misses_of_a_slot());
    for (name, removed) in REMOVED {
        checks.push(hostile(&format!("removed-slots-{name}"), SLOTS, move |good, _| {
            format!("{{\"delta\":true,\"slots\":{{\"0\":{}}},\"removed_slots\":{removed}}}", good.text())
        }));
    }
    for (name, artifact) in ARTIFACTS {
        checks.push(hostile(&format!("artifact-{name}"), ARTIFACT, move |good, _| {
            format!("{{\"delta\":true,\"slots\":{{\"0\":{},\"7\":{artifact}}}}}", good.text())
        }));
    }
    checks.push(hostile("artifact-malformed-before-a-good-one", ARTIFACT, |good, _| {
        format!("{{\"delta\":true,\"slots\":{{\"7\":{{}},\"0\":{}}}}}", good.text())
    }));
    checks.push(hostile("artifact-malformed-in-a-full-state", ARTIFACT, |good, _| {
        format!("{{\"slots\":{{\"0\":{},\"7\":{{}}}}}}", good.text())
    }));
    for (name, slots) in [("an-array", "[]"), ("a-string", "\"x\""), ("a-number", "5")] {
        checks.push(hostile(&format!("slots-that-are-{name}"), ARTIFACT, move |_, _| {
            format!("{{\"delta\":true,\"slots\":{slots},\"removed_slots\":[1]}}")
        }));
    }
    checks.push(refused_and_looked_at_later());
    checks
}

fn refused_and_looked_at_later() -> Check {
    let (clause, title) = SLOTS;
    Check::new(id("slot-key-eight-looked-at-later"), title, [clause], "serve", move |facts, _| {
        let mut talk = Talk::serve(facts);
        let (old, bad) = (note("old"), note("bad"));
        talk.apply(clause, &full(&[(0, &old), (1, &old)]));
        talk.apply_refused(clause, &format!("{{\"slots\":{{\"8\":{}}}}}", bad.text()));
        talk.act(Act::Wait { ms: LATER_MS });
        talk.state_is(clause, &[(0, &old), (1, &old)]);
        Ok(talk.canary().finish().plan())
    })
    .feature(FEATURE)
    .roles(&["any", "get"])
    .waits()
}

/// Clause and sentence of a family of checks.
type Family = (&'static str, &'static str);

const SLOTS: Family =
    ("TH-STATE-07", "A state that names a slot outside 0..7 is refused and changes nothing.");
const ARTIFACT: Family = ("TH-STATE-08", "A state with a malformed Artifact is refused and changes nothing.");

/// Clause of the good delta after a malformed one: it removes a slot.
const TAKEN: &str = "TH-STATE-04";

/// Keys of `slots` that are not slots, as JSON texts.
const SLOT_KEYS: &[(&str, &str)] = &[
    ("eight", "\"8\""),
    ("minus-one", "\"-1\""),
    ("with-leading-zero", "\"07\""),
    ("with-plus", "\"+1\""),
    ("with-leading-space", "\" 1\""),
    ("with-trailing-space", "\"1 \""),
    ("with-fraction", "\"1.0\""),
    ("with-exponent", "\"1e0\""),
    ("in-hexadecimal", "\"0x1\""),
    ("empty", "\"\""),
    ("of-letters", "\"a\""),
    ("that-objects-have", "\"constructor\""),
    ("that-objects-are-made-of", "\"__proto__\""),
    ("with-nul", "\"1\\u0000\""),
    ("in-arabic-digits", "\"\u{661}\""),
    ("beyond-8-bits", "\"257\""),
    ("beyond-32-bits", "\"4294967297\""),
    ("beyond-64-bits", "\"18446744073709551617\""),
];

/// Invalid values of `removed_slots`, as JSON texts.
const REMOVED: &[(&str, &str)] = &[
    ("eight", "[8]"),
    ("minus-one", "[-1]"),
    ("fraction", "[1.5]"),
    ("string", "[\"1\"]"),
    ("boolean", "[true]"),
    ("beyond-8-bits", "[257]"),
    ("beyond-32-bits", "[4294967297]"),
    ("beyond-64-bits", "[18446744073709551617]"),
    ("one-good-and-one-bad", "[1,8]"),
    ("no-array", "1"),
    ("an-object", "{\"1\":true}"),
    ("a-text", "\"1\""),
];

/// Invalid artifacts, as JSON texts.
const ARTIFACTS: &[(&str, &str)] = &[
    ("that-is-a-string", "\"text\""),
    ("that-is-a-number", "5"),
    ("that-is-an-array", "[]"),
    ("that-is-empty", "{}"),
    ("without-type", "{\"provenance\":\"p\",\"content_json\":\"{}\",\"size_bytes\":2}"),
    ("without-provenance", "{\"type\":\"t\",\"content_json\":\"{}\",\"size_bytes\":2}"),
    ("without-content", "{\"type\":\"t\",\"provenance\":\"p\",\"size_bytes\":2}"),
    ("without-size", "{\"type\":\"t\",\"provenance\":\"p\",\"content_json\":\"{}\"}"),
    ("with-number-as-type", "{\"type\":5,\"provenance\":\"p\",\"content_json\":\"{}\",\"size_bytes\":2}"),
    ("with-null-as-type", "{\"type\":null,\"provenance\":\"p\",\"content_json\":\"{}\",\"size_bytes\":2}"),
    (
        "with-array-as-provenance",
        "{\"type\":\"t\",\"provenance\":[],\"content_json\":\"{}\",\"size_bytes\":2}",
    ),
    ("with-object-as-content", "{\"type\":\"t\",\"provenance\":\"p\",\"content_json\":{},\"size_bytes\":2}"),
    ("with-number-as-content", "{\"type\":\"t\",\"provenance\":\"p\",\"content_json\":55,\"size_bytes\":2}"),
    (
        "with-string-as-size",
        "{\"type\":\"t\",\"provenance\":\"p\",\"content_json\":\"{}\",\"size_bytes\":\"2\"}",
    ),
    (
        "with-boolean-as-size",
        "{\"type\":\"t\",\"provenance\":\"p\",\"content_json\":\"7\",\"size_bytes\":true}",
    ),
    ("inside-an-array", "[{\"type\":\"t\",\"provenance\":\"p\",\"content_json\":\"{}\",\"size_bytes\":2}]"),
    (
        "with-content-in-capitals",
        "{\"type\":\"t\",\"provenance\":\"p\",\"CONTENT_JSON\":\"{}\",\"size_bytes\":2}",
    ),
    (
        "with-type-capitalised",
        "{\"Type\":\"t\",\"provenance\":\"p\",\"content_json\":\"{}\",\"size_bytes\":2}",
    ),
];

fn near_misses_of_a_slot() -> Check {
    let (clause, title) = SLOTS;
    Check::new(id("slot-keys-that-are-nearly-right"), title, [clause], "serve", move |facts, _| {
        let mut talk = Talk::serve(facts);
        let (old, bad) = (note("old"), note("bad"));
        talk.apply(clause, &full(&[(7, &old)]));
        for miss in near_misses("7") {
            let state = format!("{{\"delta\":true,\"slots\":{{{}:{}}}}}", quoted(&miss.text), bad.text());
            talk.apply_refused(clause, &state);
        }
        talk.state_is(clause, &[(7, &old)]);
        talk.apply(clause, &delta(&[(7, &bad)], &[]));
        talk.state_is(clause, &[(7, &bad)]);
        Ok(talk.canary().finish().plan())
    })
    .feature(FEATURE)
    .roles(&["any", "get"])
}

/// Creates a check of a hostile state on top of a known one, followed by its accepted twin.
fn hostile(
    name: &str,
    (clause, title): Family,
    state: impl Fn(&Artifact, &Artifact) -> String + Send + Sync + 'static,
) -> Check {
    Check::new(id(name), title, [clause], "serve", move |facts, _| {
        let mut talk = Talk::serve(facts);
        let (old, good, bad) = (note("old"), note("good"), note("bad"));
        talk.apply(clause, &full(&[(0, &old), (1, &old)]));
        talk.apply_refused(clause, &state(&good, &bad));
        talk.state_is(clause, &[(0, &old), (1, &old)]);
        // The good delta has its own clause: a peer that does not remove slots fails here.
        talk.apply(TAKEN, &delta(&[(0, &good), (7, &bad)], &[1]));
        talk.state_is(TAKEN, &[(0, &good), (7, &bad)]);
        Ok(talk.canary().finish().plan())
    })
    .feature(FEATURE)
    .roles(&["any", "get"])
}
