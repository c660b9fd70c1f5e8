//! Checks of choices: blank lines, repeated members, surrogates, big integers.

use super::super::super::super::request::Request;
use super::super::super::super::selector::expect::{Allowed, Expect};
use super::super::super::super::selector::talk::{looks_and_says, says};
use super::{BLOCK, check};
use peerproof_engine::data::check::Check;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::Chunking;

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    vec![
        blank("empty-line", "\n"),
        blank_behind(),
        blank("line-of-spaces", "  \n"),
        inputs(
            "member-twice",
            "PD-SEL-14",
            r#"{"k":1,"k":2}"#,
            "duplicate_keys",
            &[("{\"k\":2}", "last"), ("{\"k\":1}", "first")],
        ),
        inputs(
            "lone-surrogate",
            "PD-SEL-15",
            r#"{"k":"\ud800"}"#,
            "lone_surrogates",
            &[(r#"{"k":"\ud800"}"#, "echo"), (r#"{"k":"\ufffd"}"#, "replace")],
        ),
        inputs(
            "big-integer",
            "PD-SEL-16",
            r#"{"k":9007199254740993}"#,
            "big_integers",
            &[(r#"{"k":9007199254740993}"#, "exact"), (r#"{"k":9007199254740992}"#, "round")],
        ),
        inputs(
            "integer-beyond-64-bits",
            "PD-SEL-16",
            r#"{"k":18446744073709551617}"#,
            "big_integers",
            &[
                (r#"{"k":18446744073709551617}"#, "exact"),
                (r#"{"k":18446744073709551616}"#, "round"),
                // The shortest text with the same nearest double.
                (r#"{"k":18446744073709552000}"#, "round"),
            ],
        ),
    ]
}

fn blank(name: &str, line: &'static str) -> Check {
    check(
        &format!("lines/{name}"),
        "A blank line is ignored or INVALID; nothing starts, and the next line is served.",
        &["PD-SEL-06"],
        move |talk, _| {
            talk.canary("PD-SEL-06");
            let expect = Expect::new("PD-SEL-06", Allowed::Nothing).or(Allowed::Invalid);
            let expect = expect.choice("blank_line", &["ignore", "refuse"]);
            talk.send(Payload::text(line), Chunking::Whole, 0, expect);
            talk.canary("PD-SEL-06");
        },
    )
}

fn blank_behind() -> Check {
    check(
        "lines/empty-line-in-one-write",
        "An empty line in the same write as the request before it is ignored or INVALID.",
        &["PD-SEL-06"],
        |talk, _| {
            talk.canary("PD-SEL-06");
            let blank = Expect::new("PD-SEL-06", Allowed::Nothing).or(Allowed::Invalid);
            let expects =
                [Expect::taken("PD-SEL-06", BLOCK), blank.choice("blank_line", &["ignore", "refuse"])];
            talk.driver(says(BLOCK));
            let lines = Payload::text(Request::plain().text() + "\n\n");
            talk.send_lines(lines, Chunking::Whole, 1, &expects).canary("PD-SEL-06");
        },
    )
}

/// Sends inputs that peers read in different ways. The payload shows the choice, or the request is INVALID.
fn inputs(
    name: &str,
    clause: &'static str,
    text: &'static str,
    key: &'static str,
    given: &'static [(&'static str, &'static str)],
) -> Check {
    check(
        &format!("lines/inputs-{name}"),
        "Inputs whose meaning JSON leaves open reach the payload in one of the allowed ways, or the \
         request is INVALID.",
        &[clause],
        move |talk, _| {
            talk.canary(clause);
            let request = Request::plain().inputs("{\"@\":0}").text().replace("{\"@\":0}", text);
            let expect = Expect::taken(clause, BLOCK).or(Allowed::Invalid).given_inputs(clause, given);
            talk.driver(looks_and_says(BLOCK));
            talk.send(Payload::text(request + "\n"), Chunking::Whole, 1, expect.choice(key, &["", "refuse"]));
        },
    )
}
