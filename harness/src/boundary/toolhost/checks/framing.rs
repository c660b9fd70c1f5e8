//! Serve mode: one reply a line, in order, however the bytes are cut.

use super::super::expect::{Allowed, Expect, Outcome};
use super::super::role::reference_aid;
use super::super::talk::{Request, Talk};
use crate::check::Check;
use crate::facts::Facts;
use crate::payload::{Payload, Segment};
use crate::plan::{Chunking, Plan};

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    let mut checks = vec![first_canary(), flushed_at_once(), many_requests()];
    checks.extend(chunking());
    checks.extend(pipelining());
    checks.extend(line_ends());
    checks.extend(blank_lines());
    checks.extend(last_lines());
    checks.extend(malformed_lines());
    checks.extend([missing_aid(), unknown_aid()]);
    checks
}

/// A check of serve mode that needs some known good request.
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
            // Two: a peer that ends after the first would fail every other check for this one reason.
            for _ in 0..2 {
                let (request, expect) = if talk.has("any") {
                    talk.good("TH-FRAME-01")
                } else {
                    (Request::aid(&reference_aid("any")).input("{}"), Expect::ok("TH-FRAME-01"))
                };
                // Whether the tool succeeds is a matter of configuration; that a reply comes is not.
                talk.send(request.line(), expect.or(Allowed::of(Outcome::Any))).counts_as_canary();
            }
            Ok(talk.finish().plan())
        },
    )
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
                talk.send(request.line(), expect).counts_as_canary();
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

/// `count` good requests as one payload with what each must be answered.
fn good_lines(talk: &mut Talk<'_>, clause: &str, count: usize) -> (Payload, Vec<Expect>) {
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
            "A request with multi-byte characters and escapes that arrives byte by byte comes back whole.",
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
            "A request whose first part comes with the request before it is answered when the rest has come.",
            &["TH-FRAME-04"],
            move |facts| split(facts, before),
        )
        .roles(&["any", "echo"])
    }));
    checks
}

/// Input with characters of one to four bytes and escapes, as JSON text.
const ODD_INPUT: &str = "{\"s\":\"é漢😀 \\u00e9\\ud83d\\ude00\\n\\\\ end\"}";

/// Where a line is cut: after the bytes that come before this mark and this many more.
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

/// A whole request and the first part of the next in one write; its reply shows that the peer has read both.
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
        check(
            "pipelining/behind-slow-tool",
            "Requests sent behind one whose tool takes its time are answered after it, in order.",
            &["TH-FRAME-02"],
            |facts| {
                let mut talk = Talk::serve(facts);
                let slow = talk.ask("sleep", "{\"ms\":300}").line();
                let (lines, mut expects) = good_lines(&mut talk, "TH-FRAME-02", 5);
                expects.insert(0, Expect::output("TH-FRAME-02", "{\"slept_ms\":300}"));
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
                    expects.extend([Expect::output("TH-FRAME-02", format!("{{\"slept_ms\":{ms}}}")), expect]);
                }
                talk.send_all(lines, Chunking::Whole, expects).allow_ms(240);
                talk.canary().finish().plan()
            },
        )
        .roles(&["any", "sleep"]),
        check(
            "pipelining/beside-failures-and-noise",
            "Tools that fail and tools that print change nothing in the order of the replies.",
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
                    expects.extend([tool_error, Expect::output("TH-FRAME-02", "{}"), expect]);
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
                let count = |n: u32| Expect::output("TH-FRAME-02", format!("{{\"count\":{n}}}"));
                talk.send_all(lines, Chunking::Whole, (1..=50).map(count).collect()).counts_as_canary();
                talk.finish().plan()
            },
        )
        .roles(&["any", "counter"]),
    ]
}

fn line_ends() -> Vec<Check> {
    let crlf = |request: &Request| request.body().then(Payload::text("\r\n"));
    vec![
        check(
            "lines/crlf",
            "A request that ends in CR LF is answered like one that ends in LF.",
            &["TH-FRAME-06"],
            move |facts| {
                let mut talk = Talk::serve(facts);
                let (request, expect) = talk.good("TH-FRAME-06");
                talk.send(crlf(&request), expect);
                talk.canary().finish().plan()
            },
        ),
        check(
            "lines/crlf-pipelined",
            "Requests that end in CR LF in one write are answered in order, each once.",
            &["TH-FRAME-06"],
            move |facts| {
                let mut talk = Talk::serve(facts);
                let (mut lines, mut expects) = (Payload::default(), Vec::new());
                for _ in 0..20 {
                    let (request, expect) = talk.good("TH-FRAME-06");
                    lines = lines.then(crlf(&request));
                    expects.push(expect);
                }
                talk.send_all(lines, Chunking::Whole, expects);
                talk.canary().finish().plan()
            },
        ),
        check(
            "lines/split-between-cr-and-lf",
            "A request whose CR comes before its LF, each in a write of its own, is answered once.",
            &["TH-FRAME-06"],
            |facts| {
                let mut talk = Talk::serve(facts);
                let (first, first_expect) = talk.good("TH-FRAME-06");
                let (second, second_expect) = talk.good("TH-FRAME-06");
                let head = first.line().then(second.body()).then(Payload::text("\r"));
                talk.send(head, first_expect);
                talk.send(Payload::text("\n"), second_expect);
                talk.canary().finish().plan()
            },
        ),
    ]
}

/// What may come of a blank line.
fn blank() -> Expect {
    let shows = |outcome: Outcome, value: &str| Allowed::of(outcome).shows(value);
    Expect::new("TH-FRAME-07", shows(Outcome::Silence, "ignore"))
        .or(shows(Outcome::Refused, "refuse"))
        .or(shows(Outcome::EndsInOrder, "end"))
        .choice("blank_line")
}

fn blank_lines() -> Vec<Check> {
    let one = |name: &str, line: &'static str| {
        check(
            &format!("lines/blank-{name}"),
            "A blank line is ignored, refused, or ends the session in order after every earlier reply.",
            &["TH-FRAME-07"],
            move |facts| {
                let mut talk = Talk::serve(facts);
                let (request, expect) = talk.good("TH-FRAME-07");
                talk.send(request.line(), expect).counts_as_canary();
                talk.send(Payload::text(line), blank());
                talk.canary().finish().plan()
            },
        )
    };
    vec![
        one("empty", "\n"),
        one("white-space", " \t \n"),
        one("carriage-return", "\r\n"),
        check(
            "lines/blank-behind-pipelined-requests",
            "A blank line behind requests in one write loses none of their replies.",
            &["TH-FRAME-07"],
            |facts| {
                let mut talk = Talk::serve(facts);
                talk.canary_for("TH-FRAME-07");
                let (lines, mut expects) = good_lines(&mut talk, "TH-FRAME-07", 20);
                expects.push(blank());
                talk.send_all(lines.then(Payload::text("\n")), Chunking::Whole, expects);
                talk.canary().finish().plan()
            },
        ),
        check(
            "lines/blank-runs-nothing",
            "A blank line runs no tool: the counter shows no gap.",
            &["TH-FRAME-07"],
            |facts| {
                let mut talk = Talk::serve(facts);
                let count = talk.ask("counter", "{}").line();
                let expect = |n: u32| Expect::output("TH-FRAME-07", format!("{{\"count\":{n}}}"));
                talk.send(count.clone(), expect(1)).counts_as_canary();
                talk.send(Payload::text("\n"), blank());
                talk.send(count, expect(2)).counts_as_canary();
                talk.finish().plan()
            },
        )
        .roles(&["any", "counter"]),
    ]
}

/// Whether the configuration pins the last line to `value`.
fn last_line_pinned(facts: &Facts, value: &str) -> bool {
    facts.choices.get("last_line_without_lf").is_some_and(|pinned| pinned == value)
}

fn last_lines() -> Vec<Check> {
    vec![
        check(
            "lines/last-without-line-feed",
            "A complete last line without line feed is processed or refused, with one reply.",
            &["TH-FRAME-08"],
            |facts| {
                let mut talk = Talk::serve(facts);
                talk.canary_for("TH-FRAME-08");
                let (request, mut expect) = talk.good("TH-FRAME-08");
                expect = expect.or(Allowed::of(Outcome::Refused).shows("refuse"));
                expect.allowed[0].choice = Some("process".to_owned());
                // A pinned `silent` speaks of incomplete lines only.
                if !last_line_pinned(facts, "silent") {
                    expect = expect.choice("last_line_without_lf");
                }
                talk.send_as(request.body(), Chunking::Whole, 0, expect);
                talk.finish().plan()
            },
        ),
        check(
            "lines/last-without-line-feed-behind-others",
            "A complete last line without line feed in one write with others is answered once, and they too.",
            &["TH-FRAME-08"],
            |facts| {
                let mut talk = Talk::serve(facts);
                let (lines, mut expects) = good_lines(&mut talk, "TH-FRAME-08", 3);
                let (request, expect) = talk.good("TH-FRAME-08");
                expects.push(expect.or(Allowed::of(Outcome::Refused)));
                talk.send_all(lines.then(request.body()), Chunking::Whole, expects).await_only(3);
                talk.counts_as_canary();
                talk.finish().plan()
            },
        ),
        cut_line("cut-in-name", |body| body.get(..7)),
        cut_line("cut-before-last-byte", |body| body.get(..body.len() - 1)),
        cut_line("cut-after-first-byte", |body| body.get(..1)),
    ]
}

fn cut_line(name: &str, cut: fn(&[u8]) -> Option<&[u8]>) -> Check {
    check(
        &format!("lines/last-{name}"),
        "An incomplete last line is refused or dropped, never processed.",
        &["TH-FRAME-09"],
        move |facts| {
            let mut talk = Talk::serve(facts);
            talk.canary_for("TH-FRAME-09");
            let (request, _) = talk.good("TH-FRAME-09");
            let body = request.body().expand(&Default::default()).unwrap_or_default();
            let part = Payload::from_bytes(cut(&body).unwrap_or_default());
            let shows = |outcome: Outcome, value: &str| Allowed::of(outcome).shows(value);
            // A refusal is what `process` and `refuse` have in common; a pinned `process` speaks of complete lines
            // only.
            let pinned = last_line_pinned(facts, "refuse") || last_line_pinned(facts, "silent");
            let refused = Allowed::of(Outcome::Refused);
            let refused = if pinned { refused.shows("refuse") } else { refused };
            let mut expect = Expect::new("TH-FRAME-09", refused)
                .or(shows(Outcome::Silence, "silent"))
                .reason("half_processed");
            if !last_line_pinned(facts, "process") {
                expect = expect.choice("last_line_without_lf");
            }
            talk.send_as(part, Chunking::Whole, 0, expect);
            talk.finish().plan()
        },
    )
}

fn malformed_lines() -> Vec<Check> {
    vec![
        check(
            "malformed/not-json",
            "A line that is not JSON gets one ok:false reply and the session goes on.",
            &["TH-SERVE-01"],
            |facts| {
                let mut talk = Talk::serve(facts);
                talk.send(Payload::text("this is not json\n"), Expect::refused("TH-SERVE-01"));
                talk.canary().finish().plan()
            },
        ),
        check(
            "malformed/100-lines",
            "100 malformed lines get one ok:false reply each and the session goes on.",
            &["TH-SERVE-01"],
            |facts| {
                let mut talk = Talk::serve(facts);
                let mut lines = Payload::default();
                for n in 0..100 {
                    lines = lines.then(Payload::text(format!("{{\"broken\":{n}\n")));
                }
                let expects = (0..100).map(|_| Expect::refused("TH-SERVE-01")).collect();
                talk.send_all(lines, Chunking::Whole, expects);
                talk.canary().finish().plan()
            },
        ),
        check(
            "malformed/random-bytes",
            "Lines of random bytes get one ok:false reply each and the session goes on.",
            &["TH-SERVE-01"],
            |facts| {
                let mut talk = Talk::serve(facts);
                for line in RANDOM_LINES {
                    let payload = Payload(vec![Segment::Hex((*line).to_owned())]).then(Payload::text("\n"));
                    talk.send(payload, Expect::refused("TH-SERVE-01"));
                    talk.canary();
                }
                talk.finish().plan()
            },
        ),
    ]
}

/// Bytes without a line feed, the last of them looking like a compressed stream and a TLS greeting. None is a line of
/// nothing but what some language trims (a lone NUL, for one), which may be taken for a blank line.
const RANDOM_LINES: &[&str] = &[
    "0041",
    "ff00fe017f80",
    "8b1fc0ffee0bad00",
    "1f8b0800000000000003ab5632000000ffff",
    "16030100a5010000a10303b1c3",
];

fn missing_aid() -> Check {
    check("request/aid-missing", "A request without `aid` is refused.", &["TH-REQ-02"], |facts| {
        let mut talk = Talk::serve(facts);
        talk.send(Request::empty().input("{}").line(), Expect::refused("TH-REQ-02"));
        talk.canary().finish().plan()
    })
}

fn unknown_aid() -> Check {
    check(
        "request/aid-unknown",
        "A request for a tool that does not exist is refused.",
        &["TH-REQ-03"],
        |facts| {
            let mut talk = Talk::serve(facts);
            let request = Request::aid("AID.PEERPROOF.NO_SUCH_TOOL.v1").input("{}");
            talk.send(request.line(), Expect::refused("TH-REQ-03"));
            talk.canary().finish().plan()
        },
    )
}
