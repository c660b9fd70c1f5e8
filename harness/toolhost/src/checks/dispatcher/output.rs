//! Standard output of the toolhost that is not a reply. It must never be repaired into a success.

use peerproof_engine::data::check::Check;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::ActorStep;

use super::super::super::dispatcher::call::{Call, Reply, answering};
use super::super::super::dispatcher::expect::{Allowed, Expect};
use super::{check, refused};

const CLAUSE: &str = "TH-DISP-18";

/// Output instead of a reply: name, title, and the bytes made from the text of a good reply.
type Broken = (&'static str, &'static str, fn(String) -> Payload);

const BROKEN: &[Broken] = &[
    ("empty", "Empty output", |_| Payload::default()),
    ("white-space", "Only white space", |_| Payload::text(" \t\r\n\n")),
    ("text", "A line of text", |_| Payload::text("Segmentation fault (core dumped)\n")),
    ("array", "A reply inside an array", |reply| Payload::text(format!("[{reply}]"))),
    ("string", "A reply as a JSON string", |reply| {
        Payload::text(peerproof_engine::data::json::Json::from(reply).to_text())
    }),
    ("number", "A number", |_| Payload::text("42\n")),
    ("null", "The value null", |_| Payload::text("null\n")),
    ("cut-before-the-last-brace", "A reply without its last brace", |reply| {
        Payload::text(&reply[..reply.len() - 1])
    }),
    ("cut-in-the-middle", "Half a reply", |reply| Payload::text(&reply[..reply.len() / 2])),
    ("brace-too-many", "A brace after the reply", |reply| Payload::text(reply + "}")),
    ("text-after-it", "A word after the reply", |reply| Payload::text(reply + "\ndone\n")),
    ("nul-after-it", "A NUL byte after the reply", |reply| Payload::text(reply + "\0")),
    ("text-before-it", "A banner before the reply", |reply| {
        Payload::text(format!("toolhost 1.0\n{reply}\n"))
    }),
    ("two-replies", "Two replies on two lines", |reply| Payload::text(format!("{reply}\n{reply}\n"))),
    ("trailing-comma", "A reply with a trailing comma", |reply| {
        Payload::text(format!("{},}}", &reply[..reply.len() - 1]))
    }),
    ("single-quotes", "A reply with a name in single quotes", |reply| {
        Payload::text(reply.replacen("\"status\"", "'status'", 1))
    }),
    ("comment", "A reply with a comment", |reply| Payload::text(reply.replacen(',', ",/* so */", 1))),
    ("nan", "A reply with NaN in an unknown member", |reply| with_member(&reply, "NaN")),
    ("leading-zero", "A reply with a number that has a leading zero", |reply| with_member(&reply, "01")),
    ("raw-control-character", "A reply with a raw control character in a string", |reply| {
        with_member(&reply, "\"a\u{1}b\"")
    }),
    ("invalid-utf-8", "A reply with a byte that is not UTF-8 in a string", |reply| invalid(&reply, "ff")),
    ("encoded-surrogate", "A reply with a surrogate in UTF-8", |reply| invalid(&reply, "eda080")),
    ("cut-utf-8", "A reply with half a character in a string", |reply| invalid(&reply, "e6bc")),
];

/// `reply` with one more member.
fn with_member(reply: &str, value: &str) -> Payload {
    Payload::text(format!("{},\"x_note\":{value}}}", &reply[..reply.len() - 1]))
}

/// `reply` with one more member, a string with these bytes.
fn invalid(reply: &str, hex: &str) -> Payload {
    use peerproof_engine::data::payload::Segment;
    let head = format!("{},\"x_note\":\"", &reply[..reply.len() - 1]);
    Payload(vec![Segment::Text(head), Segment::Hex(hex.to_owned()), Segment::Text("\"}".to_owned())])
}

pub(super) fn checks() -> Vec<Check> {
    let mut checks: Vec<Check> = BROKEN
        .iter()
        .map(|(name, what, bytes)| {
            let title = format!("{what} on stdout with exit 0 gives parse_error.");
            let reply = |output: &str| bytes(Reply::ok(output).text());
            refused(&format!("stdout/{name}"), &title, CLAUSE, reply, &["parse_error"])
        })
        .collect();
    checks.extend([text_after_it_later(), strange_but_good(), names_in_capitals(), byte_order_mark()]);
    checks
}

fn text_after_it_later() -> Check {
    check(
        "stdout/text-after-it-later",
        "A word 200 ms after the reply and its line feed, with exit 0, gives parse_error.",
        &[CLAUSE],
        |talk, _| {
            let reply = Reply::ok(&talk.output()).text() + "\n";
            let mut script = answering(Payload::text(reply));
            script.extend([ActorStep::Sleep { ms: 200 }, ActorStep::Stdout(Payload::text("done\n"))]);
            talk.call(&Call::plain(), script, Expect::error(CLAUSE, &["parse_error"]));
        },
    )
}

fn strange_but_good() -> Check {
    check(
        "stdout/members-of-no-meaning",
        "A reply with additional members of every kind, including escapes and multi-byte characters, is a \
         success.",
        &["TH-DISP-09"],
        |talk, _| {
            let values =
                ["0", "-0.1e-2", "\"\\u0001 é漢😀 \\ud83d\\ude00 // ' NaN\"", "null", "[{},[]]", "true"];
            for value in values {
                let output = talk.output();
                let reply = with_member(&Reply::ok(&output).text(), value);
                let expect = Expect::output("TH-DISP-09", output);
                talk.call(&Call::plain(), answering(reply), expect).counts_as_canary();
            }
        },
    )
}

fn names_in_capitals() -> Check {
    check(
        "stdout/members-in-capitals",
        "Members with the names of reply members in capitals have no meaning: the reply is a success.",
        &["TH-DISP-09"],
        |talk, _| {
            let output = talk.output();
            let reply = Reply::ok(&output)
                .with("OK", false)
                .with("Status", "TOOL_ERROR")
                .with("OUTPUT_JSON", "{\"answer\":0}")
                .with("Error", "not mine");
            let expect = Expect::output("TH-DISP-09", output);
            talk.call(&Call::plain(), answering(reply.payload()), expect).counts_as_canary();
        },
    )
}

fn byte_order_mark() -> Check {
    check(
        "stdout/byte-order-mark",
        "A byte order mark before the reply is ignored or gives parse_error.",
        &[CLAUSE],
        |talk, _| {
            let output = talk.output();
            let reply = Payload::text(format!("\u{feff}{}", Reply::ok(&output).text()));
            let expect = Expect::error(CLAUSE, &["parse_error"])
                .or(Allowed::output(output))
                .choice("bom", &["refuse", "ignore"]);
            talk.call(&Call::plain(), answering(reply), expect);
        },
    )
}
