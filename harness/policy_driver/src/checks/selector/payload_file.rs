//! Checks of the payload file: its content, its permissions and its lifetime.

use super::super::super::request::{Entry, Request};
use super::super::super::selector::expect::Expect;
use super::super::super::selector::talk::{TIMEOUT, looks_and_says, says};
use super::check;
use peerproof_engine::data::check::Check;
use peerproof_engine::data::plan::{ActorStep, Sight};

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    vec![
        content(),
        values(),
        menu(),
        large_menu(),
        owner_only(),
        gone(),
        gone_after_failures(),
        complete(),
        largest(),
        own(),
        not_patched(),
    ]
}

const BLOCK: &str = "<PICK><SID0042><END>";

fn content() -> Check {
    check(
        "payload/five-members",
        "The last argument of a driver names a file of one strict JSON object with the five members of its request.",
        &["PD-FILE-01", "PD-FILE-02"],
        |talk, _| {
            talk.canary("PD-FILE-01");
            talk.play(&Request::plain(), looks_and_says(BLOCK), Expect::taken("PD-FILE-01", BLOCK));
            let bare = Request::of(&[]).inputs("{}").with("goal_digest", "").with("state_digest", "");
            talk.play(&bare, looks_and_says("<NOOP><END>"), Expect::taken("PD-FILE-01", "<NOOP><END>"));
        },
    )
}

fn values() -> Check {
    check(
        "payload/values",
        "The members of the payload have the values of the request, nested ones too.",
        &["PD-FILE-02", "PD-FILE-01"],
        |talk, _| {
            talk.canary("PD-FILE-02");
            let inputs = [
                r#"{"a":{"b":[1,[],{},null,true,false,"s"]},"":{"":""}}"#,
                r#"{"menu":[],"control_mode":"FALLBACK_ONLY","goal_digest":1,"inputs":{"inputs":{}}}"#,
                "{\"k\":\"\\u0000\\n\\\"\\\\é\u{1F600}\u{2028}\",\"n\":[9007199254740991,-9007199254740991,0.5,1e2]}",
                r#"{"z":1,"a":2,"m":3,"__proto__":{"x":1},"k":"<END>$(id)`id`%s{0}","~":["~","~/x","~root"]}"#,
            ];
            for inputs in inputs {
                let request = Request::plain()
                    .inputs(inputs)
                    .with("goal_digest", "g\"\\\n\u{0}é\u{1F600}")
                    .with("state_digest", " s\t ");
                talk.play(&request, looks_and_says(BLOCK), Expect::taken("PD-FILE-02", BLOCK));
            }
        },
    )
}

fn menu() -> Check {
    check(
        "payload/menu",
        "The menu of the payload has the entries of the request in their order, with SID, AID, name and tags.",
        &["PD-FILE-02"],
        |talk, _| {
            talk.canary("PD-FILE-02");
            let entries = [
                Entry::plain(9_999).named("z").tagged(&["b", "a", "b"]),
                Entry::plain(42).named("").tagged(&[]),
                Entry::plain(0).named("<END>\n\"\\ é\u{1F600}\u{0}").tagged(&["", "<PICK>", "\u{202E}"]),
                Entry::plain(7).named("z").tagged(&["b", "a", "b"]),
            ];
            let reversed: Vec<Entry> = entries.iter().rev().cloned().collect();
            for request in [Request::of(&entries), Request::of(&reversed), Request::of(&entries[1..2])] {
                talk.play(&request, looks_and_says(BLOCK), Expect::taken("PD-FILE-02", BLOCK));
            }
        },
    )
}

fn large_menu() -> Check {
    check(
        "payload/menu-of-10000",
        "A menu of all 10,000 SIDs reaches the driver, and its last entry can be picked.",
        &["PD-FILE-02", "PD-GRAM-07"],
        |talk, _| {
            talk.canary("PD-FILE-02");
            let entries: Vec<Entry> = (0..10_000).map(Entry::plain).collect();
            let block = "<PICK><SID9999><END>";
            talk.play(&Request::of(&entries), looks_and_says(block), Expect::taken("PD-FILE-02", block));
            talk.allow_ms(3_000).canary("PD-FILE-02");
        },
    )
}

fn owner_only() -> Check {
    check(
        "payload/owner-only",
        "The payload file, or its folder, can be read by its owner only.",
        &["PD-FILE-03"],
        |talk, _| {
            talk.canary("PD-FILE-03");
            talk.play(&Request::plain(), looks_and_says(BLOCK), Expect::taken("PD-FILE-03", BLOCK));
        },
    )
    .ambient()
}

fn gone() -> Check {
    check(
        "payload/gone-after-success",
        "The payload file is gone once the Selection of a block is printed, and no other file is left.",
        &["PD-FILE-04"],
        |talk, _| {
            talk.canary("PD-FILE-04").probe_after(0);
            for block in ["<NOOP><END>", "<ASK_SUP><END>", BLOCK] {
                talk.play(&Request::plain(), says(block), Expect::taken("PD-FILE-04", block)).probe_after(0);
            }
        },
    )
}

fn gone_after_failures() -> Check {
    check(
        "payload/gone-after-failures",
        "The payload file is also gone after failures: status, signal, empty, invalid and endless output.",
        &["PD-FILE-04"],
        |talk, _| {
            talk.canary("PD-FILE-04");
            let flood = ActorStep::Flood { unit: "<NOOP><END>".to_owned(), bytes_max: 1 << 20 };
            let turns = [
                vec![ActorStep::Exit(1)],
                [says(BLOCK), vec![ActorStep::Exit(7)]].concat(),
                vec![ActorStep::Die(9)],
                Vec::new(),
                says("<pick>"),
                says("<PICK><SID9999><END>"),
                vec![flood],
            ];
            for turn in turns {
                talk.play(&Request::plain(), turn, Expect::fallback("PD-FILE-04")).probe_after(0);
            }
            talk.canary("PD-FILE-04").probe_after(0);
        },
    )
}

fn complete() -> Check {
    check(
        "payload/complete-at-the-start",
        "A payload of 4 MB is complete when its driver reads it at once, and when it reads it a moment \
         later.",
        &["PD-FILE-05"],
        |talk, _| {
            talk.canary("PD-FILE-05");
            let inputs = format!("{{\"k\":\"{}\",\"end\":true}}", "payload ".repeat(500_000));
            let request = Request::plain().inputs(&inputs);
            let expect = || Expect::taken("PD-FILE-05", BLOCK).given("PD-FILE-05");
            talk.play(&request, looks_and_says(BLOCK), expect()).allow_ms(3_000);
            let later = [vec![ActorStep::Sleep { ms: 200 }], looks_and_says(BLOCK)].concat();
            talk.play(&request, later, expect()).allow_ms(3_000);
            // The driver looks at its payload twice.
            let twice = [vec![ActorStep::Look(Sight::Payload)], looks_and_says(BLOCK)].concat();
            talk.play(&Request::plain(), twice, expect());
        },
    )
}

fn largest() -> Check {
    check(
        "payload/of-10-mb",
        "The inputs of a request line of nearly 10 MB reach the driver completely.",
        &["PD-FILE-02", "PD-SEL-07"],
        |talk, _| {
            // Time and resource limits for a driver that reports its payload.
            talk.env(TIMEOUT, "30000").env("MACHINA_POLICY_RLIMIT_FSIZE_MB", "100");
            talk.env("MACHINA_POLICY_RLIMIT_CPU_SEC", "30");
            talk.canary("PD-FILE-02");
            let inputs = format!("{{\"k\":\"{}\",\"end\":true}}", "payload ".repeat(1_300_000));
            let expect = Expect::taken("PD-FILE-02", BLOCK).given("PD-FILE-02");
            talk.play(&Request::plain().inputs(&inputs), looks_and_says(BLOCK), expect).allow_ms(10_000);
        },
    )
}

fn own() -> Check {
    check(
        "payload/own-for-each-start",
        "Each driver finds its own request in its payload, also a shorter one after a longer one and after \
         failures.",
        &["PD-FILE-05"],
        |talk, _| {
            talk.canary("PD-FILE-05");
            for (n, fill) in [0, 5_000, 10, 0, 200_000, 1].into_iter().enumerate() {
                let request =
                    Request::plain().inputs(&format!("{{\"n\":{n},\"k\":\"{}\"}}", "k".repeat(fill)));
                let given = |expect: Expect| expect.given("PD-FILE-05");
                if n % 2 == 1 {
                    let turn = [looks_and_says(BLOCK), vec![ActorStep::Exit(1)]].concat();
                    talk.play(&request, turn, given(Expect::fallback("PD-FILE-05")));
                } else {
                    talk.play(&request, looks_and_says(BLOCK), given(Expect::taken("PD-FILE-05", BLOCK)));
                }
            }
        },
    )
}

fn not_patched() -> Check {
    check(
        "payload/inputs-behind-a-patch",
        "A driver gets the inputs of its own request, whatever the patches of earlier picks.",
        &["PD-FILE-02"],
        |talk, _| {
            talk.canary("PD-FILE-02");
            let request = Request::plain().inputs(r#"{"k":1,"n":{"a":1}}"#);
            let patched = "<PICK><SID0042><INP>{\"k\":2,\"n\":null,\"x\":3}</INP><END>";
            for block in [patched, BLOCK, patched, BLOCK] {
                let expect = Expect::taken("PD-FILE-02", block).given("PD-FILE-02");
                talk.play(&request, looks_and_says(block), expect);
            }
        },
    )
    .feature("patches")
}
