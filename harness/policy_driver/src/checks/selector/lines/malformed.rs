//! Checks of lines that are not requests.

use super::super::super::super::request::{FALLBACK_ONLY, Request};
use super::super::super::super::selector::expect::{Allowed, Expect};
use super::super::super::super::selector::talk::says;
use super::{BLOCK, check, json, send_invalid, send_taken};
use peerproof_engine::data::check::Check;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::Chunking;

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    vec![
        no_object(),
        nearly_json(),
        raw_carriage_return(),
        no_utf8(),
        wrong_types(),
        wrong_mode_type(),
        in_fallback_mode(),
        white_space_of_others(),
        beside_others(),
    ]
}

const CLAUSE: &str = "PD-SEL-05";

/// Text of a valid line; the malformed ones differ from it in one place.
fn served() -> String {
    Request::plain().text()
}

fn no_object() -> Check {
    check(
        "lines/no-object",
        "A line that is not JSON, or not an object, is INVALID; nothing starts, and the next line is served.",
        &[CLAUSE],
        |talk, _| {
            talk.canary(CLAUSE);
            let text = served();
            let lines = [
                "x".to_owned(),
                "POLICY_ONLY".to_owned(),
                "{".to_owned(),
                "}".to_owned(),
                "[]".to_owned(),
                format!("[{text}]"),
                "\"{}\"".to_owned(),
                "null".to_owned(),
                "7".to_owned(),
                text[..text.len() - 1].to_owned(),
                text[1..].to_owned(),
                text[..text.len() / 2].to_owned(),
                "<NOOP><END>".to_owned(),
            ];
            for line in lines {
                send_invalid(talk, CLAUSE, Payload::text(line + "\n"));
            }
            send_taken(talk, CLAUSE, Payload::text(text + "\n"), Chunking::Whole);
            talk.canary(CLAUSE);
        },
    )
}

fn nearly_json() -> Check {
    check(
        "lines/nearly-json",
        "A request in JSON that is nearly strict is INVALID; nothing starts, and the next line is served.",
        &[CLAUSE],
        |talk, _| {
            talk.canary(CLAUSE);
            let text = served();
            let close = text.len() - 1;
            let inside = |member: &str| format!("{},{member}}}", &text[..close]);
            let lines = [
                format!("{text}x"),
                format!("{text}{text}"),
                format!("{text}\0"),
                format!("{text},"),
                format!("{text}}}"),
                format!("{}}}", inside("")),
                inside(""),
                inside("\"x\":NaN"),
                inside("\"x\":-Infinity"),
                inside("\"x\":01"),
                inside("\"x\":+1"),
                inside("\"x\":.5"),
                inside("\"x\":1."),
                inside("\"x\":True"),
                inside("'x':1"),
                inside("x:1"),
                inside("\"x\":\"a\tb\""),
                inside("\"x\":\"\u{1}\""),
                inside("\"x\":\"\\x41\""),
                inside("\"x\":\"\\u12\""),
                inside("\"x\":[1,]"),
                inside("\"x\":1 \"y\":2"),
                inside("/**/\"x\":1"),
                format!("{text}//"),
            ];
            for line in lines {
                send_invalid(talk, CLAUSE, Payload::text(line + "\n"));
            }
            send_taken(talk, CLAUSE, Payload::text(inside("\"x\":1") + "\n"), Chunking::Whole);
            talk.canary(CLAUSE);
        },
    )
}

fn raw_carriage_return() -> Check {
    check(
        "lines/raw-carriage-return",
        "A request with a raw CR in a string is INVALID and starts nothing, whether or not a CR ends a line.",
        &[CLAUSE],
        |talk, _| {
            talk.canary(CLAUSE);
            let raw = |request: Request| Payload::text(request.text().replace('@', "\r") + "\n");
            let invalid = || Expect::invalid(CLAUSE).starts(CLAUSE, 0);
            for name in ["goal_digest", "state_digest", "x"] {
                let line = raw(Request::plain().with(name, "a@b"));
                // Some line readers treat a lone CR as a line end and see two lines.
                talk.send_lines(line, Chunking::Whole, 1, &[invalid(), invalid().or(Allowed::Nothing)]);
            }
            talk.canary(CLAUSE);
        },
    )
}

fn no_utf8() -> Check {
    check(
        "lines/no-utf8",
        "A request with bytes that are not UTF-8 is INVALID; nothing starts, and the next line is served.",
        &[CLAUSE],
        |talk, _| {
            talk.canary(CLAUSE);
            let line = |bytes: &[u8]| {
                let text = Request::plain().with("goal_digest", "@").text();
                let at = text.find('@').unwrap_or(0);
                let (head, tail) = (&text.as_bytes()[..at], &text.as_bytes()[at + 1..]);
                Payload::from_bytes(&[head, bytes, tail, b"\n"].concat())
            };
            let broken: [&[u8]; 6] =
                [b"\xFF", b"\xC3", b"\xC0\x80", b"\xED\xA0\x80", b"\xF4\x90\x80\x80", b"\x80"];
            for bytes in broken {
                send_invalid(talk, CLAUSE, line(bytes));
            }
            send_taken(talk, CLAUSE, line("é\u{1F600}\u{FFFD}".as_bytes()), Chunking::Whole);
            talk.canary(CLAUSE);
        },
    )
}

fn wrong_types() -> Check {
    check(
        "lines/wrong-types",
        "A request with a member of another type is INVALID; nothing starts, and the next line is served.",
        &[CLAUSE],
        |talk, _| {
            talk.canary(CLAUSE);
            let members = [
                ("inputs", "[]"),
                ("inputs", "\"{}\""),
                ("inputs", "7"),
                ("inputs", "true"),
                ("menu", r#"{"SID0042":{"sid":"SID0042"}}"#),
                ("menu", "\"SID0042\""),
                ("menu", "7"),
                ("menu", r#"["SID0042"]"#),
                ("menu", "[42]"),
                ("menu", r#"[[{"sid":"SID0042"}]]"#),
                ("goal_digest", "7"),
                ("goal_digest", "{}"),
                ("state_digest", "[\"x\"]"),
                ("state_digest", "false"),
            ];
            for (name, value) in members {
                send_invalid(talk, CLAUSE, Request::plain().with(name, json(value)).line());
            }
            send_taken(
                talk,
                CLAUSE,
                Request::plain().with("goal_digest", "").inputs("{}").line(),
                Chunking::Whole,
            );
            talk.canary(CLAUSE);
        },
    )
}

/// A mode of the wrong type is also an unknown mode, so the fallback is allowed as well.
fn wrong_mode_type() -> Check {
    check(
        "lines/mode-of-another-type",
        "A control mode that is not a string is answered by the fallback or by INVALID; nothing starts.",
        &[CLAUSE],
        |talk, _| {
            talk.canary(CLAUSE);
            let modes = ["7", "true", r#"["POLICY_ONLY"]"#, r#"{"POLICY_ONLY":true}"#];
            for mode in modes {
                let expect = Expect::invalid(CLAUSE).or(Allowed::Fallback).starts(CLAUSE, 0);
                talk.ask(&Request::plain().with("control_mode", json(mode)), expect);
            }
            talk.canary(CLAUSE);
        },
    )
}

fn in_fallback_mode() -> Check {
    check(
        "lines/malformed-in-fallback-mode",
        "A malformed line is also INVALID if it asks for the internal selector.",
        &[CLAUSE],
        |talk, _| {
            talk.canary(CLAUSE);
            let request = Request::plain().mode(FALLBACK_ONLY);
            let text = request.text();
            send_invalid(talk, CLAUSE, Payload::text(format!("{text}x\n")));
            send_invalid(talk, CLAUSE, request.clone().with("menu", json("7")).line());
            send_invalid(talk, CLAUSE, request.clone().with("inputs", json("[]")).line());
            talk.send(request.line(), Chunking::Whole, 1, super::internal(CLAUSE).starts(CLAUSE, 0));
            talk.canary(CLAUSE);
        },
    )
}

fn white_space_of_others() -> Check {
    check(
        "lines/white-space-of-others",
        "Vertical tab, form feed and other white space that JSON does not allow makes a request malformed, \
         and does not end a line.",
        &[CLAUSE],
        |talk, _| {
            talk.canary(CLAUSE);
            let text = served();
            for space in ["\u{b}", "\u{c}", "\u{1c}", "\u{85}", "\u{a0}", "\u{2028}", "\u{2029}", "\u{3000}"]
            {
                let inside = text.replacen(',', &format!(",{space}"), 1);
                for line in [inside, format!("{text}{space}{text}")] {
                    send_invalid(talk, CLAUSE, Payload::text(line + "\n"));
                }
            }
            talk.canary(CLAUSE);
        },
    )
}

fn beside_others() -> Check {
    check(
        "lines/malformed-beside-others-in-one-write",
        "Of five lines in one write, the two malformed ones are INVALID, and the others are served in order.",
        &[CLAUSE],
        |talk, _| {
            talk.canary(CLAUSE);
            let text = served();
            let wrong = Request::plain().with("menu", json("7")).text();
            let lines = ["{\"control_mode\":", &text, &wrong, &text, &text].map(|line| format!("{line}\n"));
            let taken = || Expect::taken(CLAUSE, BLOCK);
            for _ in 0..3 {
                talk.driver(says(BLOCK));
            }
            let last = taken().starts(CLAUSE, 3);
            let expects = [Expect::invalid(CLAUSE), taken(), Expect::invalid(CLAUSE), taken(), last];
            talk.send_lines(Payload::text(lines.concat()), Chunking::Whole, 5, &expects);
            talk.canary(CLAUSE);
        },
    )
}
