//! Checks of the members of a Selection: kind, SID, patch and raw.

use super::super::super::request::{Entry, Request};
use super::super::super::selector::expect::Expect;
use super::super::super::selector::talk::{ALLOWED_EXE, COMMAND, DRIVER, TIMEOUT, Talk, says};
use super::check;
use peerproof_engine::data::check::Check;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::ActorStep;

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    vec![
        kinds(),
        patch_numbers(),
        patch_strings(),
        patch_shapes(),
        patch_large(),
        no_patch(),
        raw(),
        raw_with_patch(),
        fallback_is_of_the_request(),
        fallback_without_a_start(),
        fallback_after_a_timeout(),
        fallback_is_no_block(),
    ]
}

/// Plays a pick with each of these patches. The Selection must hold an equal one.
fn patches(talk: &mut Talk, clause: &str, patches: &[&str]) {
    for patch in patches {
        let block = format!("<PICK><SID0042><INP>{patch}</INP><END>");
        talk.play(&Request::plain(), says(block.clone()), Expect::taken(clause, block));
    }
}

fn kinds() -> Check {
    check(
        "selections/kind-and-sid",
        "`kind` is that of the block, and only PICK has a `sid`, whatever came before.",
        &["PD-SELN-01", "PD-SELN-02"],
        |talk, _| {
            talk.canary("PD-SELN-01");
            for block in ["<NOOP><END>", "<PICK><SID0007><END>", "<ASK_SUP><END>", "<PICK><SID0003><END>"] {
                talk.play(&Request::plain(), says(block), Expect::taken("PD-SELN-02", block));
            }
            let one = Request::of(&[Entry::plain(0)]);
            let block = "<PICK><SID0000><END>";
            talk.play(&one, says(block), Expect::taken("PD-SELN-02", block));
        },
    )
}

fn patch_numbers() -> Check {
    check(
        "selections/patch-numbers",
        "Numbers of a patch, up to ±(2^53−1), appear in the Selection with their value.",
        &["PD-SELN-03", "PD-SEL-17"],
        |talk, _| {
            talk.canary("PD-SELN-03");
            let all = [
                r#"{"k":9007199254740991}"#,
                r#"{"k":-9007199254740991,"l":[9007199254740990]}"#,
                r#"{"k":[0,1,-1,255,65536,2147483647,2147483648,-2147483649,4294967296,1000000000000]}"#,
                r#"{"k":[0.5,-1.25,1e3,25e-1,1.0,1E+2]}"#,
            ];
            patches(talk, "PD-SEL-17", &all);
        },
    )
    .feature("patches")
}

fn patch_strings() -> Check {
    check(
        "selections/patch-strings",
        "Strings and names of a patch appear in the Selection unchanged: escapes, control characters, line \
         ends, all planes of Unicode.",
        &["PD-SELN-03", "PD-SEL-17", "PD-SEL-04"],
        |talk, _| {
            talk.canary("PD-SELN-03");
            let all = [
                r#"{"k":"a\"b\\c\/d\b\f\n\r\te"}"#,
                r#"{"k":"\u0000\u001f\u007f"}"#,
                r#"{"k":"\u00e9\ud83d\ude00\uffff"}"#,
                "{\"k\":\"é\u{1F600}\u{202E}\u{2028}\u{2029}\u{85}\u{FEFF}\u{FFFD}\u{7F}\u{10FFFF}\"}",
                // Composed and decomposed characters are different names.
                "{\"\u{E9}\":1,\"e\u{301}\":2}",
                r#"{"":"","k\n\"\u0000":1}"#,
                r#"{"k":"\\ud800 \\n \\\\ \\\""}"#,
                r#"{"k":"null","l":"1","m":"true","n":"{}"}"#,
                r#"{"k":"&amp;&lt;&#60;&quot; %3C%2F+%20 =3D \\u003c \\/ ..\\..\\x ../../x","&gt;":1}"#,
            ];
            patches(talk, "PD-SEL-17", &all);
            // A name as base64.
            let block = "<PICK><SID0042><INP64>eyJrIjoiw6nwn5iAIn0=</INP64><END>";
            talk.play(&Request::plain(), says(block), Expect::taken("PD-SEL-17", block));
        },
    )
    .feature("patches")
}

fn patch_shapes() -> Check {
    check(
        "selections/patch-shapes",
        "`input_patch_json` contains the whole object: null, nested, empty and special members, in any \
         layout.",
        &["PD-SELN-03"],
        |talk, _| {
            talk.canary("PD-SELN-03");
            let all = [
                "{}",
                r#"{"k":null}"#,
                r#"{"k":{"l":{"m":[[],{},[null,false,true]]}},"n":[]}"#,
                r#"{"__proto__":{"x":1},"constructor":2,"toString":3}"#,
                r#"{"kind":"NOOP","sid":"SID0003","raw":"","input_patch_json":"{}","inputs":{}}"#,
                "{ \"b\" : 1 ,\n\t\"a\" : [ 2 , 3 ]\r\n}",
            ];
            patches(talk, "PD-SELN-03", &all);
        },
    )
    .feature("patches")
}

fn patch_large() -> Check {
    check(
        "selections/patch-large",
        "A patch of 65,000 bytes of text, and one of 5,000 members, appear completely in the Selection.",
        &["PD-SELN-03", "PD-SELN-04"],
        |talk, _| {
            talk.canary("PD-SELN-03");
            let members: Vec<String> = (0..5_000).map(|n| format!("\"k{n}\":{n}")).collect();
            let all = [
                format!("{{\"k\":\"{}\"}}", "é\"".replace('"', "\\\"").repeat(16_000)),
                format!("{{{}}}", members.join(",")),
            ];
            for patch in &all {
                patches(talk, "PD-SELN-03", &[patch]);
            }
        },
    )
    .feature("patches")
}

fn no_patch() -> Check {
    check(
        "selections/no-patch-left-over",
        "The Selection of a pick without a patch has none, also directly after a pick with a patch.",
        &["PD-SELN-03"],
        |talk, _| {
            talk.canary("PD-SELN-03");
            patches(talk, "PD-SELN-03", &[r#"{"k":1}"#]);
            for block in ["<PICK><SID0042><END>", "<ASK_SUP><END>", "<NOOP><END>"] {
                talk.play(&Request::plain(), says(block), Expect::taken("PD-SELN-03", block));
            }
        },
    )
    .feature("patches")
}

fn raw() -> Check {
    check(
        "selections/raw",
        "`raw` contains the accepted block, whatever white space was around it.",
        &["PD-SELN-04"],
        |talk, _| {
            talk.canary("PD-SELN-04");
            for block in ["<ASK_SUP><END>", "<NOOP><END>", "<PICK><SID0007><END>"] {
                let output = format!("\n {block}\t\r\n");
                talk.play(&Request::plain(), says(output.clone()), Expect::taken("PD-SELN-04", output));
            }
        },
    )
}

fn raw_with_patch() -> Check {
    check(
        "selections/raw-with-patch",
        "`raw` contains the block with its patch as it was written: line ends, escapes, characters.",
        &["PD-SELN-04"],
        |talk, _| {
            talk.canary("PD-SELN-04");
            let all = [
                "\n{\r\n\t\"k\" : 1\n}\n",
                r#"{"k":"\u0041\/\n"}"#,
                "{\"k\":\"é\u{1F600}\u{2028}\u{7F}\"}",
                r#"{"b":1,"a":1.0}"#,
            ];
            patches(talk, "PD-SELN-04", &all);
            let block = "<PICK><SID0042><INP64>eyJrIjoidiJ9</INP64><END>";
            talk.play(&Request::plain(), says(block), Expect::taken("PD-SELN-04", block));
        },
    )
    .feature("patches")
}

fn fallback_is_of_the_request() -> Check {
    check(
        "selections/fallback-of-its-request",
        "After a failure the Selection is the one that FALLBACK_ONLY gives for the same line, whatever \
         other lines gave.",
        &["PD-SELN-05"],
        |talk, _| {
            talk.canary("PD-SELN-05");
            let menus: [&[u32]; 5] = [&[3, 7, 42], &[42, 7, 3], &[9], &[], &[5, 1, 2]];
            for menu in menus {
                let entries: Vec<Entry> = menu.iter().copied().map(Entry::plain).collect();
                let request = Request::of(&entries);
                talk.play(&request, says("no block"), Expect::fallback("PD-SELN-05"));
                talk.play(&request, Vec::new(), Expect::fallback("PD-SELN-05"));
                // The pick of the failed driver must not influence the fallback.
                let sid = entries.get(entries.len() / 2).map_or("SID0000", |entry| entry.sid.as_str());
                let turn = [says(format!("<PICK><{sid}><END>")), vec![ActorStep::Exit(1)]].concat();
                talk.play(&request, turn, Expect::fallback("PD-SELN-05"));
            }
            talk.canary("PD-SELN-05");
        },
    )
}

fn fallback_without_a_start() -> Check {
    check(
        "selections/fallback-without-a-start",
        "If the program of the policy does not exist, the Selection is the one that FALLBACK_ONLY gives \
         for the same line.",
        &["PD-SELN-05"],
        |talk, _| {
            let program = "peerproof-no-such-program";
            talk.env(ALLOWED_EXE, program).env(COMMAND, &format!("{program} {{{{{DRIVER}.path}}}}"));
            for request in [Request::plain(), Request::of(&[Entry::plain(9)]), Request::of(&[])] {
                talk.ask(&request, Expect::fallback("PD-SELN-05").starts("PD-SELN-05", 0));
            }
        },
    )
    .vouched()
}

fn fallback_after_a_timeout() -> Check {
    check(
        "selections/fallback-after-a-timeout",
        "After a driver that hangs after its block, the Selection is the one that FALLBACK_ONLY gives for \
         the same line.",
        &["PD-SELN-05"],
        |talk, _| {
            talk.env(TIMEOUT, "1200");
            let turn = [says("<PICK><SID0042><END>"), vec![ActorStep::Sleep { ms: 20_000 }]].concat();
            talk.play(&Request::plain(), turn, Expect::fallback("PD-SELN-05")).allow_ms(1_200);
        },
    )
    .waits()
    .vouched()
}

fn fallback_is_no_block() -> Check {
    check(
        "selections/raw-of-a-fallback",
        "`raw` of a fallback is not a valid block, even if the driver printed one, on stdout or stderr, \
         before it failed.",
        &["PD-SELN-06"],
        |talk, _| {
            talk.canary("PD-SELN-06");
            let fails = |block: &str| [says(block), vec![ActorStep::Exit(3)]].concat();
            for block in ["<PICK><SID0042><END>", "<NOOP><END>", "<ASK_SUP><END>\n"] {
                talk.play(&Request::plain(), fails(block), Expect::fallback("PD-SELN-06"));
            }
            let told = ActorStep::Stderr(Payload::text("<PICK><SID0042><END>"));
            talk.play(&Request::plain(), vec![told, ActorStep::Exit(3)], Expect::fallback("PD-SELN-06"));
            for output in ["", "\n", "x", "<PICK><SID9999><END>"] {
                talk.play(&Request::plain(), says(output), Expect::fallback("PD-SELN-06"));
            }
            talk.canary("PD-SELN-06");
        },
    )
}
