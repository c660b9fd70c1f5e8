//! The printed result of a success, for every presentation of the reply.

use peerproof_engine::data::check::Check;
use peerproof_engine::data::json::{Json, Presentation};
use peerproof_engine::data::payload::{Payload, Segment};
use peerproof_engine::data::plan::ActorStep;

use super::super::super::dispatcher::call::{Call, Reply, answering};
use super::super::super::dispatcher::expect::{Allowed, Expect, Reveals};
use super::{check, succeeds};

/// Outputs that must be printed unchanged.
const OUTPUTS: &[(&str, &str, &str)] = &[
    ("array", "An output that is an array is printed as an array.", "[1,\"two\",[],{}]"),
    ("string", "An output that is a string is printed as a string.", "\"plain text\""),
    ("text-of-json", "An output that is a string with the text of JSON stays a string.", r#""{\"a\":1}""#),
    ("empty-string", "An output that is the empty string is printed as the empty string.", "\"\""),
    ("number", "An output that is a number is printed as a number.", "-12.5"),
    ("zero", "The output 0 is a result like any other.", "0"),
    ("false", "The output false is a result like any other.", "false"),
    ("null", "The output null is a result like any other.", "null"),
    ("empty-object", "The output {} is a result like any other.", "{}"),
    ("with-white-space", "White space around an output does not matter.", " \t\r\n { \"a\" : [ 1 , 2 ] }\n"),
    (
        "integers-at-the-edge-of-exact",
        "Integers up to 2^53-1 are printed with their exact value.",
        "[9007199254740991,-9007199254740991,4503599627370497]",
    ),
    (
        "unicode-and-escapes",
        "Every character of an output is printed unchanged, including NUL and surrogate pairs in escapes.",
        "{\"é漢😀\u{2028}\":\"\\u0000\\u001f\\\"\\\\\\/\\ud83d\\ude00 e\u{301}\u{fffd}\",\"z\":\"kept\"}",
    ),
    (
        "entities-and-paths",
        "Entities, markup, path separators and percent signs of an output are printed unchanged.",
        r#"{"a":"&lt;b&gt; &amp;amp; &#39; <i>&quot;</i>","..\\..\\x":"../%2e%2e%2f..%2fx","c":[[[[[[[["&lt;\/"]]]]]]]]}"#,
    ),
    (
        "separators",
        "Characters that some parsers read as line ends are printed inside their strings.",
        "{\"a\u{85}b\":\"c\u{2028}d\u{2029}e\u{85}f\",\"g\":\"\\u000b\\u000c\\u001c\\u001e\"}",
    ),
    (
        "names-that-differ-in-case",
        "Names that differ only in case are printed as different names.",
        r#"{"a":1,"A":2,"b":{"Id":3,"ID":4,"id":5}}"#,
    ),
    (
        "looks-like-an-error-reply",
        "An output that looks like a failed reply is a result like any other.",
        r#"{"ok":false,"status":"TOOL_ERROR","error":"not mine"}"#,
    ),
];

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![printed_as()];
    checks.extend(OUTPUTS.iter().map(|(name, title, output)| {
        check(&format!("result/output-{name}"), title, &["TH-DISP-08"], |talk, _| {
            let script = answering(Reply::ok(output).payload());
            let expect = Expect::output("TH-DISP-08", *output);
            talk.call(&Call::plain(), script, expect).counts_as_canary();
        })
    }));
    checks.extend(Presentation::ALL.map(presented));
    checks.extend([pretty(), no_newline(), surrounded(), nested(), split_characters()]);
    checks.extend([duplicate_names(), large_integers(), huge_number(), lone_surrogate()]);
    checks.extend(INTEGERS.map(integer_of_64_bits));
    checks.extend([pause("inside-it", 1), pause("before-the-end", 2), every_member()]);
    checks.extend([in_slow_pieces(), nested_far("reply", false), nested_far("output", true)]);
    checks
}

fn printed_as() -> Check {
    check(
        "result/printed-as",
        "A success is printed as the JSON value of the output, or as a string with its text.",
        &["TH-DISP-06"],
        |talk, _| {
            let output = talk.output();
            let expect = Expect::output("TH-DISP-06", &output).reveals(Reveals::PrintedAs);
            let script = answering(Reply::ok(&output).payload());
            talk.call(&Call::plain(), script, expect).counts_as_canary();
        },
    )
}

fn presented(how: Presentation) -> Check {
    check(
        &format!("reply/{}", how.name()),
        "A reply in another spelling of the same value is understood.",
        &["TH-DISP-09"],
        move |talk, rng| {
            let output = talk.output();
            let reply = Reply::ok(&output).presented(how, rng);
            let expect = Expect::output("TH-DISP-09", output);
            talk.call(&Call::plain(), answering(Payload::text(reply)), expect).counts_as_canary();
        },
    )
}

fn pretty() -> Check {
    check("reply/over-many-lines", "A reply over many lines is understood.", &["TH-DISP-09"], |talk, _| {
        succeeds(talk, &Call::plain(), "TH-DISP-09", |reply| {
            answering(Payload::text(reply.0.to_text_pretty().replace('\n', "\r\n")))
        });
    })
}

fn no_newline() -> Check {
    check(
        "reply/one-line-feed-after-it",
        "A reply is understood with a line feed at its end and without.",
        &["TH-DISP-09"],
        |talk, _| {
            succeeds(talk, &Call::plain(), "TH-DISP-09", |reply| {
                answering(Payload::text(reply.text() + "\n"))
            });
        },
    )
}

fn surrounded() -> Check {
    check(
        "reply/white-space-around-it",
        "White space before and after a reply is ignored.",
        &["TH-DISP-09"],
        |talk, _| {
            succeeds(talk, &Call::plain(), "TH-DISP-09", |reply| {
                answering(Payload::text(format!("\r\n \t{}\r\n\n \t\n", reply.text())))
            });
        },
    )
}

fn nested() -> Check {
    check(
        "reply/output-nested-64-levels",
        "An output nested 64 levels is printed completely.",
        &["TH-DISP-09"],
        |talk, _| {
            let output = format!("{}\"deep\"{}", "[".repeat(64), "]".repeat(64));
            let script = answering(Reply::ok(&output).payload());
            talk.call(&Call::plain(), script, Expect::output("TH-DISP-09", &output)).counts_as_canary();
        },
    )
}

/// Writes of single bytes, with a pause before every byte that continues a character.
fn paused_inside_characters(text: &str) -> Vec<ActorStep> {
    let mut script = Vec::new();
    let mut piece = String::new();
    let mut flush = |piece: &mut String| {
        script.push(ActorStep::Stdout(Payload(vec![Segment::Hex(std::mem::take(piece))])));
    };
    for byte in text.bytes() {
        if byte & 0xc0 == 0x80 {
            flush(&mut piece);
        }
        piece.push_str(&format!("{byte:02x}"));
    }
    flush(&mut piece);
    script.into_iter().flat_map(|step| [step, ActorStep::Sleep { ms: 20 }]).collect()
}

fn split_characters() -> Check {
    check(
        "reply/split-inside-characters",
        "A reply with pauses inside multi-byte characters is understood.",
        &["TH-DISP-09"],
        |talk, _| {
            let output = "{\"text\":\"é漢😀\"}";
            let mut script = vec![ActorStep::ReadRequest];
            script.extend(paused_inside_characters(&Reply::ok(output).text()));
            talk.call(&Call::plain(), script, Expect::output("TH-DISP-09", output)).counts_as_canary();
        },
    )
}

fn in_slow_pieces() -> Check {
    check(
        "reply/in-pieces-over-half-a-second",
        "The dispatcher waits for a reply that comes in pieces over half a second.",
        &["TH-DISP-09"],
        |talk, _| {
            succeeds(talk, &Call::plain(), "TH-DISP-09", |reply| {
                let text = reply.text();
                let mut script = vec![ActorStep::ReadRequest];
                for piece in text.as_bytes().chunks(text.len().div_ceil(5)) {
                    script.push(ActorStep::Sleep { ms: 100 });
                    script.push(ActorStep::Stdout(Payload::from_bytes(piece)));
                }
                script.push(ActorStep::Stdout(Payload::text("\n")));
                script
            });
        },
    )
}

/// Creates a check for an output with several allowed results. The printed result must be strict JSON in any case.
fn left_open(name: &str, title: &str, output: &'static str, expect: fn(Expect) -> Expect) -> Check {
    let clauses = ["TH-DISP-07", "TH-DISP-08"];
    check(&format!("result/output-{name}"), title, &clauses, move |talk, _| {
        let expect = expect(Expect::output("TH-DISP-08", output));
        talk.call(&Call::plain(), answering(Reply::ok(output).payload()), expect);
    })
}

fn duplicate_names() -> Check {
    left_open(
        "duplicate-names",
        "If two members of an output have the same name, the last or the first counts, or the output is \
         refused.",
        r#"{"a":1,"a":2}"#,
        |last| {
            let refused = Allowed::error(&["parse_error", "exception"]);
            last.or(Allowed::output(r#"{"a":1}"#))
                .or(refused)
                .choice("duplicate_keys", &["last", "first", "refuse"])
        },
    )
}

fn large_integers() -> Check {
    left_open(
        "integer-beyond-exact",
        "An integer beyond 2^53-1 in an output is exact, rounded to a double, or refused.",
        "[9007199254740993]",
        |exact| {
            let refused = Allowed::error(&["parse_error", "exception"]);
            let rounded = Allowed::output("[9007199254740992]");
            exact.or(rounded).or(refused).choice("big_integers", &["exact", "round", "refuse"])
        },
    )
}

/// Integers around 64 bits: name, exact spelling, and the spellings of the nearest double.
const INTEGERS: [(&str, [&str; 4]); 3] = [
    (
        "two-to-63",
        [
            "[9223372036854775808]",
            "[9.223372036854775808e18]",
            "[9223372036854776000]",
            "[9223372036854775800]",
        ],
    ),
    (
        "minus-two-to-63-minus-1",
        [
            "[-9223372036854775809]",
            "[-9223372036854775808]",
            "[-9223372036854776000]",
            "[-9223372036854775800]",
        ],
    ),
    (
        "two-to-64",
        [
            "[18446744073709551616]",
            "[1.8446744073709551616e19]",
            "[18446744073709552000]",
            "[18446744073709551600]",
        ],
    ),
];

fn integer_of_64_bits((name, [exact, rounded @ ..]): (&str, [&'static str; 4])) -> Check {
    let title = "An integer around 64 bits in an output is exact, the nearest double, or refused; never another number.";
    check(&format!("result/output-integer-{name}"), title, &["TH-DISP-08"], move |talk, _| {
        let refused = Allowed::error(&["parse_error", "exception"]);
        let expect = rounded
            .into_iter()
            .fold(Expect::output("TH-DISP-08", exact), |expect, rounded| expect.or(Allowed::output(rounded)));
        talk.call(&Call::plain(), answering(Reply::ok(exact).payload()), expect.or(refused));
    })
}

/// Creates a check with a toolhost that pauses for 2 s in the middle of its reply, or between its reply and its end.
fn pause(name: &str, part: usize) -> Check {
    let title = "The dispatcher waits for a toolhost that pauses for 2 s in or after its reply, before the \
        timeout.";
    check(&format!("reply/pause-of-2-s-{name}"), title, &["TH-DISP-09"], move |talk, _| {
        succeeds(talk, &Call::plain().allow_ms(2_000), "TH-DISP-09", |reply| {
            let text = reply.text() + "\n";
            let (head, tail) = text.split_at(text.len() * part / 2);
            let mut script = answering(Payload::text(head));
            script.push(ActorStep::Sleep { ms: 2_000 });
            if !tail.is_empty() {
                script.push(ActorStep::Stdout(Payload::text(tail)));
            }
            script
        });
    })
    .waits()
}

fn every_member() -> Check {
    check(
        "reply/every-member",
        "A reply with every member, including `idempotent_hit` and a delta with removals, is a success.",
        &["TH-DISP-09"],
        |talk, _| {
            succeeds(talk, &Call::plain(), "TH-DISP-09", |reply| {
                let delta = "{\"delta\":true,\"slots\":{},\"removed_slots\":[7,1]}";
                let delta: Json = delta.parse().unwrap_or_default();
                answering(reply.with("idempotent_hit", true).with("ds_state", delta).payload())
            });
        },
    )
}

fn huge_number() -> Check {
    left_open(
        "number-beyond-a-double",
        "With a number beyond a double in an output, the dispatcher still prints strict JSON.",
        "[1e400]",
        |exact| exact.or(Allowed::Anything),
    )
}

fn lone_surrogate() -> Check {
    left_open(
        "lone-surrogate",
        "With a lone surrogate escape in an output, the dispatcher still prints strict JSON.",
        r#"{"a":"x\ud800y"}"#,
        |same| same.or(Allowed::Anything),
    )
}

/// Number of brackets far above every required nesting.
const FAR: u64 = 100_000;

fn nested_far(place: &str, in_output: bool) -> Check {
    let clause = "TH-DISP-34";
    check(
        &format!("reply/{place}-nested-100000-levels"),
        "A reply with 100,000 brackets ends in a result or an error object, not in a crash or a hang.",
        &[clause],
        move |talk, _| {
            let output = talk.output();
            let (reply, result) = if in_output {
                let deep = Payload::default().repeat("[", FAR).repeat("]", FAR);
                let text = Reply::ok("@").text();
                let (head, tail) = text.split_once('@').unwrap_or((&text, ""));
                (Payload::text(head).then(deep.clone()).then(Payload::text(tail)), deep)
            } else {
                let text = Reply::ok(&output).text();
                let head = format!("{},\"deep\":", &text[..text.len() - 1]);
                let reply = Payload::text(head).repeat("[", FAR).repeat("]", FAR).then(Payload::text("}"));
                (reply, Payload::text(output))
            };
            let expect = Expect::error(clause, &[]).or(Allowed::Output(result));
            talk.call(&Call::plain(), answering(reply), expect);
        },
    )
}
