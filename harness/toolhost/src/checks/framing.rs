//! Serve mode: one reply per line, in order, independent of chunk boundaries.

mod ends;
mod malformed;

use super::super::expect::{Allowed, Expect, Outcome};
use super::super::role::reference_aid;
use super::super::talk::{Request, Talk};
use peerproof_engine::data::check::Check;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::finding::CANARY_FAILED;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Act, Chunking, Plan};

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![first_canary(), flushed_at_once(), many_requests()];
    checks.extend(chunking());
    checks.extend(pipelining());
    checks.extend(ends::checks());
    checks.extend(malformed::checks());
    checks
}

/// Creates a check of serve mode that needs a known good request.
fn check(
    name: &str,
    title: &str,
    clauses: &[&str],
    plan: impl Fn(&Facts) -> Plan + Send + Sync + 'static,
) -> Check {
    let id = format!("toolhost/serve/{name}");
    Check::new(id, title, clauses.iter().copied(), "serve", move |facts, _| Ok(plan(facts))).roles(&["any"])
}

fn first_canary() -> Check {
    Check::new(
        "toolhost/serve/canary/plain-request",
        "A plain valid request, and another after it, are answered by one line each.",
        ["TH-FRAME-01"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            // There are two requests: a peer that exits after the first would fail every other check for this one
            // reason.
            for _ in 0..2 {
                let (request, expect) = if talk.has("any") {
                    talk.good("TH-FRAME-01")
                } else {
                    (Request::aid(&reference_aid("any")).input("{}"), Expect::ok("TH-FRAME-01"))
                };
                // The success of the tool depends on the configuration; a reply must come in any case.
                let expect = expect.or(Allowed::of(Outcome::Any)).reason(CANARY_FAILED);
                talk.send(request.line(), expect).counts_as_canary();
            }
            Ok(talk.finish().plan())
        },
    )
    .first_canary()
}

fn flushed_at_once() -> Check {
    check(
        "flush/reply-while-input-is-open",
        "A reply can be read while standard input stays open and nothing more is sent.",
        &["TH-FRAME-03"],
        |facts| {
            let mut talk = Talk::serve(facts);
            for _ in 0..2 {
                let (request, expect) = talk.good("TH-FRAME-03");
                // The request gets its full time. A reply that comes only after more input is too late.
                talk.send(request.line(), expect).counts_as_canary().allow_ms(1);
            }
            talk.finish().plan()
        },
    )
}

fn many_requests() -> Check {
    check(
        "requests/300-one-by-one",
        "One process answers 300 requests one after the other.",
        &["TH-FRAME-01"],
        |facts| {
            let mut talk = Talk::serve(facts);
            for _ in 0..300 {
                talk.canary_for("TH-FRAME-01");
            }
            talk.finish().plan()
        },
    )
}

/// Payload of `count` good requests, with their expected answers.
pub(super) fn good_lines(talk: &mut Talk<'_>, clause: &str, count: usize) -> (Payload, Vec<Expect>) {
    let mut lines = Payload::default();
    let mut expects = Vec::new();
    for _ in 0..count {
        let (request, expect) = talk.good(clause);
        lines = lines.then(request.line());
        expects.push(expect);
    }
    (lines, expects)
}

fn chunking() -> Vec<Check> {
    let mut checks = vec![
        check(
            "chunking/pause-inside-a-line",
            "A line whose second half comes 2 s after the first is one request.",
            &["TH-FRAME-04"],
            |facts| {
                let mut talk = Talk::serve(facts);
                talk.canary_for("TH-FRAME-04");
                let (request, expect) = talk.good("TH-FRAME-04");
                let head = Payload::text("{\"paused\":[true,");
                talk.act(Act::Send { payload: head, chunking: Chunking::Whole, await_frames: 0 });
                talk.act(Act::Wait { ms: 2_000 });
                let rest = Payload::text("false],").then(request.tail());
                talk.send(rest, expect);
                talk.canary().finish().plan()
            },
        )
        .waits(),
        check(
            "chunking/two-requests-in-one-write",
            "Two requests that arrive in one write are answered by two lines, in order.",
            &["TH-FRAME-04"],
            |facts| {
                let mut talk = Talk::serve(facts);
                let (lines, expects) = good_lines(&mut talk, "TH-FRAME-04", 2);
                talk.send_all(lines, Chunking::Whole, expects);
                talk.canary().finish().plan()
            },
        ),
        check(
            "chunking/byte-by-byte",
            "A request that arrives byte by byte is answered like any other.",
            &["TH-FRAME-04"],
            |facts| {
                let mut talk = Talk::serve(facts);
                let (request, expect) = talk.good("TH-FRAME-04");
                talk.send_as(request.line(), Chunking::Dribble, 1, expect);
                talk.canary().finish().plan()
            },
        ),
        check(
            "chunking/multi-byte-text-byte-by-byte",
            "A request with multi-byte characters and escapes that arrives byte by byte comes back \
             unchanged.",
            &["TH-FRAME-04"],
            |facts| {
                let mut talk = Talk::serve(facts);
                let line = talk.ask("echo", ODD_INPUT).line();
                talk.send_as(line, Chunking::Dribble, 1, Expect::output("TH-FRAME-04", ODD_INPUT));
                talk.canary().finish().plan()
            },
        )
        .roles(&["any", "echo"]),
        check(
            "chunking/200-requests-in-61-byte-chunks",
            "200 requests that arrive in chunks of 61 bytes are answered in order, each once.",
            &["TH-FRAME-04", "TH-FRAME-02"],
            |facts| {
                let mut talk = Talk::serve(facts);
                let (lines, expects) = good_lines(&mut talk, "TH-FRAME-04", 200);
                talk.send_all(lines, Chunking::Every(61), expects);
                talk.canary().finish().plan()
            },
        ),
        check(
            "chunking/long-line-in-4093-byte-chunks",
            "A line of 300,000 bytes that arrives in chunks of 4,093 bytes is answered.",
            &["TH-FRAME-04"],
            |facts| {
                let mut talk = Talk::serve(facts);
                let (request, expect) = talk.good("TH-FRAME-04");
                let line = request.padded_to(300_000).then(Payload::text("\n"));
                talk.send_as(line, Chunking::Every(4093), 1, expect);
                talk.canary().finish().plan()
            },
        ),
    ];
    checks.extend(SPLITS.iter().map(|(name, before)| {
        check(
            &format!("chunking/split-{name}"),
            "A request whose first part comes with the request before it is answered after the rest has \
             come.",
            &["TH-FRAME-04"],
            move |facts| split(facts, before),
        )
        .roles(&["any", "echo"])
    }));
    checks
}

/// Input with characters of one to four bytes and escapes, as JSON text.
const ODD_INPUT: &str = "{\"s\":\"é漢😀 \\u00e9\\ud83d\\ude00\\n\\\\ end\"}";

/// Positions at which a line is cut: this many bytes after the first occurrence of the mark.
const SPLITS: &[(&str, (&str, usize))] = &[
    ("inside-two-byte-character", ("é", 1)),
    ("inside-three-byte-character", ("漢", 2)),
    ("inside-four-byte-character", ("😀", 2)),
    ("inside-unicode-escape", ("\\\\u00e9", 5)),
    ("between-surrogate-escapes", ("\\\\ud83d", 7)),
    ("after-backslash", ("\\\\n", 2)),
    ("after-first-byte", ("{", 1)),
    ("before-line-feed", ("\n", 0)),
];

/// Plan that writes a request and the first part of the next one together. The reply shows that the peer has read
/// both.
fn split(facts: &Facts, (mark, more): &(&str, usize)) -> Plan {
    let mut talk = Talk::serve(facts);
    let (request, expect) = talk.good("TH-FRAME-04");
    let bytes = talk.ask("echo", ODD_INPUT).line().expand(&Default::default()).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let at = text.find(mark).unwrap_or(0) + more;
    let (head, tail) = bytes.split_at(at);
    talk.send(request.line().then(Payload::from_bytes(head)), expect);
    talk.send(Payload::from_bytes(tail), Expect::output("TH-FRAME-04", ODD_INPUT));
    talk.canary().finish().plan()
}

fn pipelining() -> Vec<Check> {
    let mut checks = pipelined_plain_requests();
    checks.extend(pipelined_tools());
    checks
}

fn pipelined_plain_requests() -> Vec<Check> {
    vec![
        check(
            "pipelining/200-requests-in-one-write",
            "200 requests in one write are answered in order, each once.",
            &["TH-FRAME-02", "TH-FRAME-01"],
            |facts| {
                let mut talk = Talk::serve(facts);
                let (lines, expects) = good_lines(&mut talk, "TH-FRAME-02", 200);
                talk.send_all(lines, Chunking::Whole, expects);
                talk.canary().finish().plan()
            },
        ),
        check(
            "pipelining/good-and-bad-in-turn",
            "Good and malformed lines in one write are answered in order, each once.",
            &["TH-FRAME-02", "TH-SERVE-01"],
            |facts| {
                let mut talk = Talk::serve(facts);
                let (mut lines, mut expects) = (Payload::default(), Vec::new());
                for bad in
                    ["{", "]", "nul", "{\"aid\":1}", "{}", "\"x\"", "{\"aid\":\"", "[[[[", "1 2", "{,}"]
                {
                    let (request, expect) = talk.good("TH-FRAME-02");
                    lines = lines.then(request.line()).then(Payload::text(format!("{bad}\n")));
                    expects.extend([expect, Expect::refused("TH-SERVE-01")]);
                }
                talk.send_all(lines, Chunking::Whole, expects);
                talk.canary().finish().plan()
            },
        ),
    ]
}

/// Requests behind and between those whose tools are slow, fail, print or count.
fn pipelined_tools() -> Vec<Check> {
    vec![
        check(
            "pipelining/behind-slow-tool",
            "Requests sent after one with a slow tool are answered after it, in order.",
            &["TH-FRAME-02"],
            |facts| {
                let mut talk = Talk::serve(facts);
                let slow = talk.ask("sleep", "{\"ms\":300}").line();
                let (lines, mut expects) = good_lines(&mut talk, "TH-FRAME-02", 5);
                expects.insert(0, Expect::holding("TH-FRAME-02", "{\"slept_ms\":300}"));
                let bad = Payload::text("not json\n");
                expects.insert(1, Expect::refused("TH-FRAME-02"));
                talk.send_all(slow.then(bad).then(lines), Chunking::Whole, expects).allow_ms(300);
                talk.canary().finish().plan()
            },
        )
        .roles(&["any", "sleep"]),
        check(
            "pipelining/between-slow-tools",
            "Quick requests between slow ones do not overtake them.",
            &["TH-FRAME-02"],
            |facts| {
                let mut talk = Talk::serve(facts);
                let (mut lines, mut expects) = (Payload::default(), Vec::new());
                for ms in [120, 80, 40] {
                    let (request, expect) = talk.good("TH-FRAME-02");
                    let input = format!("{{\"ms\":{ms}}}");
                    lines = lines.then(talk.ask("sleep", &input).line()).then(request.line());
                    expects
                        .extend([Expect::holding("TH-FRAME-02", &format!("{{\"slept_ms\":{ms}}}")), expect]);
                }
                talk.send_all(lines, Chunking::Whole, expects).allow_ms(240);
                talk.canary().finish().plan()
            },
        )
        .roles(&["any", "sleep"]),
        check(
            "pipelining/beside-failures-and-noise",
            "Tools that fail and tools that print do not change the order of the replies.",
            &["TH-FRAME-02"],
            |facts| {
                let mut talk = Talk::serve(facts);
                let (mut lines, mut expects) = (Payload::default(), Vec::new());
                for _ in 0..5 {
                    let (request, expect) = talk.good("TH-FRAME-02");
                    let noise = talk.ask("noise", "{\"stdout\":\"noise\\n\",\"stderr\":\"noise\\n\"}");
                    let fail = talk.ask("fail", "{\"message\":\"no luck\"}");
                    lines = lines.then(fail.line()).then(noise.line()).then(request.line());
                    let tool_error = Expect::new("TH-FRAME-02", Allowed::of(Outcome::ToolError));
                    expects.extend([tool_error, Expect::ok("TH-FRAME-02"), expect]);
                }
                talk.send_all(lines, Chunking::Whole, expects);
                talk.canary().finish().plan()
            },
        )
        .roles(&["any", "noise", "fail"]),
        check(
            "pipelining/counter-in-order",
            "Pipelined requests run in the order of their lines, each once.",
            &["TH-FRAME-02", "TH-FRAME-01"],
            |facts| {
                let mut talk = Talk::serve(facts);
                let line = talk.ask("counter", "{}").line();
                let mut lines = Payload::default();
                for _ in 0..50 {
                    lines = lines.then(line.clone());
                }
                let count = |n: u64| Expect::count("TH-FRAME-02", n);
                talk.send_all(lines, Chunking::Whole, (1..=50).map(count).collect()).counts_as_canary();
                talk.finish().plan()
            },
        )
        .roles(&["any", "counter"]),
    ]
}
