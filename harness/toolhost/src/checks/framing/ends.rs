//! Line ends: CR before LF, blank lines, a last line without LF.

use super::super::super::expect::{Allowed, Expect, Outcome};
use super::super::super::talk::{Request, Talk};
use super::{check, good_lines};
use peerproof_engine::data::check::Check;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::Chunking;

pub(super) fn checks() -> Vec<Check> {
    let mut checks = line_ends();
    checks.extend(blank_lines());
    checks.extend(last_lines());
    checks
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

/// Allowed outcomes of a blank line.
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
            "A blank line after requests in one write loses none of their replies.",
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
                let expect = |n: u32| Expect::count("TH-FRAME-07", u64::from(n));
                talk.send(count.clone(), expect(1)).counts_as_canary();
                talk.send(Payload::text("\n"), blank());
                talk.send(count, expect(2)).counts_as_canary();
                talk.finish().plan()
            },
        )
        .roles(&["any", "counter"]),
    ]
}

/// True if the configuration pins the treatment of a last line to `value`.
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
                // A pinned `silent` applies to incomplete lines only.
                if !last_line_pinned(facts, "silent") {
                    expect = expect.choice("last_line_without_lf");
                }
                talk.send_as(request.body(), Chunking::Whole, 0, expect);
                talk.finish().plan()
            },
        ),
        check(
            "lines/last-without-line-feed-behind-others",
            "A complete last line without line feed, in one write with other lines, is answered once, and \
             so are the others.",
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
            // A refusal is allowed by both `process` and `refuse`, and both may apply to complete lines only.
            let refused = Allowed::of(Outcome::Refused);
            let is_pinned = last_line_pinned(facts, "silent");
            let refused = if is_pinned { refused.shows("refuse") } else { refused };
            let mut expect = Expect::new("TH-FRAME-09", refused)
                .or(shows(Outcome::Silence, "silent"))
                .reason("half_processed");
            if is_pinned || !facts.choices.contains_key("last_line_without_lf") {
                expect = expect.choice("last_line_without_lf");
            }
            talk.send_as(part, Chunking::Whole, 0, expect);
            talk.finish().plan()
        },
    )
}
