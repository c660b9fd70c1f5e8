//! One reply for each request, however the bytes are cut and however many are under way.

use super::super::talk::{Talk, call, good, quoted};
use peerproof_engine::check::Check;
use peerproof_engine::facts::Facts;
use peerproof_engine::payload::Payload;
use peerproof_engine::plan::{Act, Chunking, Plan};

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    vec![
        first_canary(),
        flushed(),
        dribbled(),
        cut_everywhere(),
        several_lines_in_one_write(),
        many_requests(),
        pipelined(),
        carriage_return(),
        blank_line(),
        last_line(
            r"complete",
            "A last line without a line feed is processed, refused or passed over.",
            false,
        ),
        last_line(
            "cut",
            "A last line that is cut in the middle is refused or passed over, never processed.",
            true,
        ),
    ]
}

fn check(
    name: &str,
    title: &str,
    clauses: &[&str],
    plan: impl Fn(&Facts) -> Plan + Send + Sync + 'static,
) -> Check {
    Check::new(
        format!("json_rpc/stdio/{name}"),
        title,
        clauses.iter().copied(),
        "command",
        move |facts, _| Ok(plan(facts)),
    )
}

fn first_canary() -> Check {
    check(
        "canary/plain-request",
        "A plain valid request, and another after it, are answered by one response each.",
        &["RPC-FRAME-01"],
        |facts| {
            let mut talk = Talk::about(facts, "RPC-FRAME-01");
            talk.canary().canary().finish()
        },
    )
}

fn flushed() -> Check {
    check(
        "flush/reply-while-input-is-open",
        "A response comes while standard input stays open and nothing else is written.",
        &["RPC-FRAME-03"],
        |facts| Talk::about(facts, "RPC-FRAME-03").canary().finish(),
    )
}

/// A request with characters of all lengths, to be cut within them.
fn wide(facts: &Facts) -> Payload {
    let echo = super::super::role::role(facts, "echo");
    let text = match echo {
        Some(echo) => call(&echo.method, Some("[\"aé€😀\\u00e9\\ud83d\\ude00\\n\"]"), Some("\"aé€😀\"")),
        None => good(facts, 1, "\"aé€😀\""),
    };
    Payload::text(text + "\n")
}

fn dribbled() -> Check {
    check(
        "chunks/byte-by-byte",
        "A request that is written byte by byte, within characters and escapes too, is answered as a whole one is.",
        &["RPC-FRAME-02"],
        |facts| {
            let mut talk = Talk::about(facts, "RPC-FRAME-02");
            talk.send_as(wide(facts), Chunking::Dribble).canary().finish()
        },
    )
}

fn cut_everywhere() -> Check {
    check(
        "chunks/several-sizes",
        "Requests cut into chunks of 2, 3, 5, 7 and 61 bytes are answered as whole ones are.",
        &["RPC-FRAME-02"],
        |facts| {
            let mut talk = Talk::about(facts, "RPC-FRAME-02");
            for size in [2, 3, 5, 7, 61] {
                talk.send_as(wide(facts), Chunking::Every(size));
            }
            talk.canary().finish()
        },
    )
}

fn several_lines_in_one_write() -> Check {
    check(
        "chunks/lines-in-one-write",
        "Ten requests in one write, with half of an eleventh whose rest follows, are all answered.",
        &["RPC-FRAME-02"],
        |facts| {
            let mut talk = Talk::about(facts, "RPC-FRAME-02");
            let line = |n: u64| good(facts, n, &n.to_string()) + "\n";
            let lines: String = (0..10).map(line).collect();
            // Names of methods may have letters of several bytes.
            let last = line(10).into_bytes();
            let (head, tail) = last.split_at(last.len() / 2);
            let first = Payload::text(lines).then(Payload::from_bytes(head));
            talk.push(first, Chunking::Whole, 10);
            talk.push(Payload::from_bytes(tail), Chunking::Whole, 1);
            talk.canary().finish()
        },
    )
}

fn many_requests() -> Check {
    check(
        "lines/hundred-in-turn",
        "A hundred requests, each written when the one before was answered, are answered by one process.",
        &["RPC-FRAME-01"],
        |facts| {
            let mut talk = Talk::about(facts, "RPC-FRAME-01");
            for n in 0..100 {
                talk.send(&good(facts, n, &n.to_string()));
            }
            talk.canary().finish()
        },
    )
}

fn pipelined() -> Check {
    check(
        "lines/thousand-at-once",
        "A thousand requests that are written before any response is awaited are all answered once.",
        &["RPC-FRAME-04", "RPC-FRAME-01"],
        |facts| {
            let mut talk = Talk::about(facts, "RPC-FRAME-04");
            let text: String = (0..1_000).map(|n| good(facts, n, &quoted(&format!("p{n}"))) + "\n").collect();
            talk.push(Payload::text(text), Chunking::Whole, 1_000);
            talk.canary().finish()
        },
    )
}

fn carriage_return() -> Check {
    check(
        "line-ends/carriage-return",
        "A carriage return before the line feed is tolerated.",
        &["RPC-FRAME-08"],
        |facts| {
            let mut talk = Talk::about(facts, "RPC-FRAME-08");
            talk.push(Payload::text(good(facts, 1, "1") + "\r\n"), Chunking::Whole, 1);
            talk.aim("RPC-FRAME-08").canary().finish()
        },
    )
}

fn blank_line() -> Check {
    check(
        "line-ends/blank-lines",
        "A line of white space is ignored or answered as a parse error; the session goes on.",
        &["RPC-FRAME-06"],
        |facts| {
            let mut talk = Talk::about(facts, "RPC-FRAME-06");
            for blank in ["\n", " \t\n"] {
                talk.push(Payload::text(blank), Chunking::Whole, 0);
                talk.canary();
            }
            talk.finish()
        },
    )
}

fn last_line(name: &str, title: &str, cut: bool) -> Check {
    check(&format!("line-ends/last-line-{name}"), title, &["RPC-FRAME-07"], move |facts| {
        let mut talk = Talk::about(facts, "RPC-FRAME-07");
        talk.canary();
        let mut text = good(facts, 7, "\"last\"");
        if cut {
            text.truncate(text.len() - 1);
        }
        talk.queue(Payload::text(text));
        talk.act(Act::Finish).plan()
    })
}
