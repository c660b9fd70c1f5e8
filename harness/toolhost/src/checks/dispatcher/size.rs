//! The limit on the toolhost's standard output: 1,048,576 bytes, inclusive.

use peerproof_engine::data::check::Check;
use peerproof_engine::data::payload::{Payload, Segment};
use peerproof_engine::data::plan::{Act, ActorStep};

use super::super::super::dispatcher::call::{Call, REPLY_BYTES_MAX, Reply, Talk, answering};
use super::super::super::dispatcher::expect::{Allowed, CallExpect, Expect};
use super::check;

const ACCEPTED: &str = "TH-DISP-19";
const REFUSED: &str = "TH-DISP-20";
const BOUNDED: &str = "TH-DISP-21";

/// Content of a large reply: name, unit, title.
const FILLINGS: [(&str, &str, &str); 3] = [
    ("ascii", "x", "ASCII"),
    ("multi-byte", "漢", "multi-byte characters"),
    ("escapes", "\\u0041", "escapes"),
];

pub(super) fn checks() -> Vec<Check> {
    let mut checks = Vec::new();
    for (name, unit, what) in FILLINGS {
        checks.push(check(
            &format!("size/at-limit-{name}"),
            &format!("A reply of exactly 1,048,576 bytes, filled with {what}, is a success."),
            &[ACCEPTED],
            move |talk, _| fits(talk, ACCEPTED, REPLY_BYTES_MAX, unit),
        ));
        checks.push(check(
            &format!("size/one-byte-over-limit-{name}"),
            &format!("A valid reply of 1,048,577 bytes, filled with {what}, gives parse_error."),
            &[REFUSED],
            move |talk, _| over(talk, REPLY_BYTES_MAX + 1, unit),
        ));
    }
    checks.extend([
        check(
            "size/one-byte-below-limit",
            "A reply of 1,048,575 bytes is a success.",
            &[ACCEPTED],
            |talk, _| fits(talk, ACCEPTED, REPLY_BYTES_MAX - 1, "x"),
        ),
        check("size/twice-the-limit", "A valid reply of 2 MiB gives parse_error.", &[REFUSED], |talk, _| {
            over(talk, 2 * REPLY_BYTES_MAX, "x")
        }),
        large_output(),
        small_writes(),
        white_space_over(),
        flood(),
    ]);
    checks
}

fn fits(talk: &mut Talk, clause: &str, bytes: usize, unit: &str) {
    let output = talk.output();
    let script = answering(Reply::ok(&output).padded_to(bytes, unit));
    talk.call(&Call::plain(), script, Expect::output(clause, output)).counts_as_canary();
}

fn over(talk: &mut Talk, bytes: usize, unit: &str) {
    let output = talk.output();
    let script = answering(Reply::ok(&output).padded_to(bytes, unit));
    talk.call(&Call::plain(), script, Expect::error(REFUSED, &["parse_error"]));
}

fn large_output() -> Check {
    check(
        "size/output-of-a-megabyte",
        "A reply at the size limit, with a long output, is printed completely.",
        &[ACCEPTED],
        |talk, _| {
            let text = Reply::ok("\"@\"").text();
            let (head, tail) = text.split_once('@').unwrap_or((&text, ""));
            let times = (REPLY_BYTES_MAX - head.len() - tail.len()) as u64;
            let reply = Payload::text(head).repeat("x", times).then(Payload::text(tail));
            let output = Payload::text("\"").repeat("x", times).then(Payload::text("\""));
            let expect = Expect::new(ACCEPTED, Allowed::Output(output));
            talk.call(&Call::plain(), answering(reply), expect).counts_as_canary();
        },
    )
}

/// Splits a run of ASCII into writes of 61 bytes at both ends and 4,093 bytes between.
fn in_small_writes(payload: Payload) -> Payload {
    const EDGE: u64 = 4_096;
    let mut pieces = Vec::new();
    for segment in payload.0 {
        match segment {
            Segment::Repeat { unit, times } if unit.len() == 1 && times > 2 * EDGE => {
                let mut left = times;
                while left > 0 {
                    let size = if left <= EDGE || times - left < EDGE { 61 } else { 4_093 };
                    let now = left.min(size);
                    pieces.push(Segment::Repeat { unit: unit.clone(), times: now });
                    left -= now;
                }
            }
            other => pieces.push(other),
        }
    }
    Payload(pieces)
}

fn small_writes() -> Check {
    check(
        "size/at-limit-in-small-writes",
        "A reply of exactly 1,048,576 bytes in small writes is a success; one byte more gives parse_error.",
        &[ACCEPTED, REFUSED],
        |talk, _| {
            let output = talk.output();
            let over = in_small_writes(Reply::ok(&output).padded_to(REPLY_BYTES_MAX + 1, "x"));
            let call = Call::plain().allow_ms(1_000);
            talk.call(&call, answering(over), Expect::error(REFUSED, &["parse_error"]));
            let output = talk.output();
            let fitting = in_small_writes(Reply::ok(&output).padded_to(REPLY_BYTES_MAX, "x"));
            talk.call(&call, answering(fitting), Expect::output(ACCEPTED, output)).counts_as_canary();
        },
    )
}

fn white_space_over() -> Check {
    check(
        "size/over-limit-by-white-space",
        "A small reply followed by so much white space that stdout is over the limit gives parse_error.",
        &[REFUSED],
        |talk, _| {
            for (bytes, clause) in [(REPLY_BYTES_MAX + 1, REFUSED), (REPLY_BYTES_MAX, ACCEPTED)] {
                let output = talk.output();
                let text = Reply::ok(&output).text();
                let spaces = (bytes - text.len()) as u64;
                let script = answering(Payload::text(text).repeat(" ", spaces));
                if clause == REFUSED {
                    talk.call(&Call::plain(), script, Expect::error(REFUSED, &["parse_error"]));
                } else {
                    talk.call(&Call::plain(), script, Expect::output(REFUSED, output)).counts_as_canary();
                }
            }
        },
    )
}

/// Amount of output in bytes far above the memory of a bounded reader.
const FLOOD_BYTES: u64 = 256 << 20;

fn flood() -> Check {
    check(
        "size/endless-output",
        "If a toolhost writes without end, memory stays bounded, the call fails, and the toolhost is gone.",
        &[BOUNDED],
        |talk, _| {
            let output = talk.output();
            let script = vec![
                ActorStep::ReadRequest,
                ActorStep::Stdout(Reply::ok(&output).payload()),
                ActorStep::Sleep { ms: 400 },
            ];
            let path = talk.toolhost(script);
            let call = Call::plain();
            let session = talk.begin(&call, &path, Expect::output(BOUNDED, output));
            for _ in 0..3 {
                talk.act(session, Act::Wait { ms: 100 });
                talk.act(session, Act::SampleMemory { label: "small".to_owned() });
            }
            talk.result(session, &call).finish(session).counts_as_canary();

            let call = Call::plain().timeout_s(3);
            let path = talk.toolhost(vec![
                ActorStep::ReadRequest,
                ActorStep::Flood { unit: "{\"ok\":true,".to_owned(), bytes_max: FLOOD_BYTES },
                ActorStep::Sleep { ms: 60_000 },
            ]);
            let expect = CallExpect::from(Expect::error(BOUNDED, &["parse_error", "timeout"]))
                .memory(BOUNDED, "small", "flood", 64 << 20)
                .gone(BOUNDED, "end", &["self"]);
            let session = talk.begin(&call, &path, expect);
            for _ in 0..6 {
                talk.act(session, Act::Wait { ms: 400 });
                talk.act(session, Act::SampleMemory { label: "flood".to_owned() });
            }
            talk.result(session, &call);
            talk.canary(BOUNDED).probe(session, "end").finish(session);
        },
    )
    .exclusive()
}
