//! HTTP: the checks of lines carried over HTTP, and those that only HTTP has.
//!
//! Which checks are carried over follows from the clauses: one whose clauses all have the mode `http` means the same
//! there. What is about lines, their ends and their cuts, or about standard streams, has no such mode; some checks of
//! clauses that have it are about lines all the same, and named here. Calls that run beside each other do so on
//! connections of their own.

use std::collections::BTreeSet;

use super::super::talk::{Talk, UNKNOWN_METHOD, call, good, quoted};
use peerproof_engine::carriage::{Carriage, Framing, HTTP};
use peerproof_engine::check::Check;
use peerproof_engine::clause::ClauseId;
use peerproof_engine::facts::Facts;
use peerproof_engine::payload::Payload;
use peerproof_engine::plan::{Act, Chunking, Plan, Step};

/// The mode of clauses that hold over HTTP.
const MODE: &str = "http";

/// Checks that are about lines, though their clauses hold over HTTP: how a line ends, and what else a write holds.
const OF_LINES: [&str; 3] = [
    "json_rpc/stdio/sizes/carriage-return-near-limits",
    "json_rpc/stdio/sizes/over-limit-at-end-of-input",
    "json_rpc/stdio/sizes/over-limit-between-others-in-one-write",
];

/// Those of `checks`, which are about lines, that mean the same over HTTP.
pub fn carried(checks: &[Check]) -> Vec<Check> {
    let clauses = super::super::boundary().clauses();
    let over_http: BTreeSet<&ClauseId> =
        clauses.iter().filter(|clause| clause.modes.iter().any(|mode| mode == MODE)).map(|c| &c.id).collect();
    let means_the_same = |check: &&Check| {
        // There are no streams over HTTP, and compressed messages have checks that know both ways.
        let of_lines = matches!(check.feature.as_deref(), Some("streaming" | "gzip"))
            || OF_LINES.contains(&check.id.as_str());
        check.command == "command"
            && !of_lines
            && check.clauses.iter().all(|clause| over_http.contains(clause))
    };
    checks.iter().filter(means_the_same).map(carry).collect()
}

fn carry(check: &Check) -> Check {
    let planner = check.planner.clone();
    let beside = check.feature.as_deref() == Some("concurrent");
    let mut check = check.clone();
    check.id = check.id.replacen("/stdio/", "/http/", 1);
    check.command = HTTP.to_owned();
    check.needs_process = true;
    check.planner = std::sync::Arc::new(move |facts, rng| {
        let mut plan = planner(facts, rng)?;
        plan.sessions.iter_mut().for_each(|session| session.command = HTTP.to_owned());
        if beside {
            // What is not waited for goes where a connection is open already, so that it comes first.
            let is_left = |step: &Step| matches!(step.act, Act::Send { await_frames: 0, .. });
            let behind = plan.steps.iter_mut().skip_while(|step| !is_left(step)).skip(1);
            for (step, number) in behind.zip(1..) {
                step.http = Some(Carriage::post().on(number));
            }
        }
        Ok(plan)
    });
    check
}

/// The checks of HTTP itself.
pub fn checks() -> Vec<Check> {
    vec![
        check(
            "status/results",
            "A result, and an array of them, come with status 200.",
            &["RPC-HTTP-01"],
            |facts| {
                let mut talk = about(facts, "RPC-HTTP-01");
                talk.send(&good(facts, 1, "1"));
                if facts.claims("batch") {
                    talk.send(&format!("[{},{}]", good(facts, 2, "2"), good(facts, 3, "\"3\"")));
                }
                talk.canary().finish()
            },
        ),
        check(
            "status/errors",
            "Errors of every sort come with status 200 or 400.",
            &["RPC-HTTP-02"],
            |facts| {
                let mut talk = about(facts, "RPC-HTTP-02");
                talk.send("{\"jsonrpc\":");
                talk.send("1");
                talk.send(&call(UNKNOWN_METHOD, None, Some("1")));
                talk.canary().finish()
            },
        ),
        check(
            "status/notifications",
            "Where nothing is answered, the status is 200, 202 or 204 and the body is empty.",
            &["RPC-HTTP-03"],
            |facts| {
                let mut talk = about(facts, "RPC-HTTP-03");
                talk.send(&call(UNKNOWN_METHOD, Some("{}"), None)).canary();
                if facts.claims("batch") {
                    talk.send(&format!("[{0},{0}]", call(UNKNOWN_METHOD, Some("[1]"), None))).canary();
                }
                talk.finish()
            },
        ),
        check(
            "sizes/over-the-limit",
            "A body of 1,100,000 bytes is answered 413, or 200 with -32600, and the server goes on.",
            &["RPC-HTTP-04"],
            |facts| {
                let mut talk = about(facts, "RPC-HTTP-04");
                let body = || padded(facts, 1_100_000);
                talk.send_as(body(), Chunking::Whole).canary();
                talk.carry(body(), Chunking::Whole, Carriage::post().framing(Framing::Chunked(60_000)));
                talk.canary().finish()
            },
        ),
        check(
            "sizes/form-of-refusal",
            "A body of 1,100,000 bytes is refused by the status 413, or by the error -32600 with status 200.",
            &["RPC-HTTP-11"],
            |facts| {
                let mut talk = about(facts, "RPC-HTTP-11");
                talk.send_as(padded(facts, 1_100_000), Chunking::Whole);
                talk.canary().finish()
            },
        ),
        check(
            "sizes/within-the-limit",
            "A body of 999,990 bytes is answered, by its length as well as in chunks.",
            &["RPC-HTTP-04", "RPC-HTTP-07"],
            |facts| {
                let mut talk = about(facts, "RPC-HTTP-04");
                let body = || padded(facts, 999_990);
                talk.send_as(body(), Chunking::Whole);
                talk.carry(body(), Chunking::Whole, Carriage::post().framing(Framing::Chunked(60_000)));
                talk.canary().finish()
            },
        ),
        check(
            "methods/not-post",
            "GET, PUT and DELETE are answered 405 or 404, and the server goes on.",
            &["RPC-HTTP-05"],
            |facts| {
                let mut talk = about(facts, "RPC-HTTP-05");
                // Without bodies: whether a server reads those of what it refuses is between it and HTTP.
                for method in ["GET", "PUT", "DELETE"] {
                    let carriage = Carriage::post().content_type(None).method(method);
                    talk.carry(Payload::text("\n"), Chunking::Whole, carriage).canary();
                }
                talk.finish()
            },
        ),
        check(
            "content-types/not-json",
            "A message that is called text or octets is answered 415, or as JSON.",
            &["RPC-HTTP-06"],
            |facts| {
                let mut talk = about(facts, "RPC-HTTP-06");
                for name in ["text/plain", "application/octet-stream", "text/xml"] {
                    let body = Payload::text(good(facts, 1, &quoted(name)) + "\n");
                    talk.carry(body, Chunking::Whole, Carriage::post().content_type(Some(name))).canary();
                }
                talk.finish()
            },
        ),
        check(
            "content-types/with-charset",
            "A message whose content type is JSON with a charset, or in capitals, is answered.",
            &["RPC-HTTP-06"],
            |facts| {
                let mut talk = about(facts, "RPC-HTTP-06");
                for name in ["application/json; charset=utf-8", "Application/JSON"] {
                    let body = Payload::text(good(facts, 1, &quoted(name)) + "\n");
                    talk.carry(body, Chunking::Whole, Carriage::post().content_type(Some(name)));
                }
                talk.canary().finish()
            },
        ),
        check(
            "bodies/in-chunks",
            "A body in chunks of 1, 7 and 1,000 bytes is answered as one with a length is.",
            &["RPC-HTTP-07"],
            |facts| {
                let mut talk = about(facts, "RPC-HTTP-07");
                for size in [1, 7, 1_000] {
                    let body = Payload::text(good(facts, 1, &size.to_string()) + "\n");
                    talk.carry(body, Chunking::Whole, Carriage::post().framing(Framing::Chunked(size)));
                }
                talk.canary().finish()
            },
        ),
        check(
            "bodies/chunk-extensions-and-trailers",
            "Extensions behind the sizes of chunks, and a trailer behind the last, change nothing.",
            &["RPC-HTTP-07"],
            |facts| {
                let mut talk = about(facts, "RPC-HTTP-07");
                for size in [7, 1_000] {
                    let body = Payload::text(good(facts, 1, &size.to_string()) + "\n");
                    let how = Carriage::post().framing(Framing::ExtendedChunks(size));
                    talk.carry(body, Chunking::Whole, how);
                }
                talk.canary().finish()
            },
        ),
        check(
            "bodies/cut-into-writes",
            "A request that is written byte by byte, or in pieces of 7 and 61 bytes, is answered as a whole one is.",
            &["RPC-HTTP-07"],
            |facts| {
                let mut talk = about(facts, "RPC-HTTP-07");
                for (at, chunking) in
                    [Chunking::Dribble, Chunking::Every(7), Chunking::Every(61)].into_iter().enumerate()
                {
                    let body = |id: usize| Payload::text(good(facts, 1, &id.to_string()) + "\n");
                    talk.carry(body(at), chunking, Carriage::post());
                    talk.carry(body(at + 10), chunking, Carriage::post().framing(Framing::Chunked(20)));
                }
                talk.canary().finish()
            },
        ),
        check(
            "bodies/over-several-lines",
            "A message with line feeds between its tokens is answered.",
            &["RPC-HTTP-07"],
            |facts| {
                let mut talk = about(facts, "RPC-HTTP-07");
                let text = good(facts, 1, "1").replacen('{', "{\r\n  ", 1).replacen(",\"", ",\n  \"", 1);
                talk.carry(Payload::text(text + "\n\n"), Chunking::Whole, Carriage::post());
                talk.canary().finish()
            },
        ),
        check(
            "connections/kept",
            "Ten requests, a notification and an error go over one connection, which stays open.",
            &["RPC-HTTP-08"],
            |facts| {
                let mut talk = about(facts, "RPC-HTTP-08");
                for n in 0..10 {
                    talk.send(&good(facts, n, &n.to_string()));
                }
                talk.send(&call(UNKNOWN_METHOD, None, None));
                talk.send(&call(UNKNOWN_METHOD, None, Some("\"none\"")));
                talk.canary().finish()
            },
        ),
        check(
            "connections/hundred",
            "A hundred connections that are open at the same time are all served, twice.",
            &["RPC-HTTP-09"],
            |facts| {
                let mut talk = about(facts, "RPC-HTTP-09");
                for round in 0..2 {
                    for n in 1..=100_u32 {
                        let id = quoted(&format!("{round}-{n}"));
                        let body = Payload::text(good(facts, u64::from(n), &id) + "\n");
                        // The last one waits for all of them.
                        let awaited = if n == 100 { 100 } else { 0 };
                        talk.carry_and_await(body, Chunking::Whole, Carriage::post().on(n), awaited);
                    }
                }
                talk.canary().finish()
            },
        ),
        check(
            "connections/beside-silent-ones",
            "Connections that say nothing, or only half of a request, hold up nobody else.",
            &["RPC-HTTP-09"],
            |facts| {
                let mut talk = about(facts, "RPC-HTTP-09");
                for (n, text) in ["P", "POST / HTTP/1.1\r\nHost: a\r\nContent-Le", HALF].iter().enumerate() {
                    let how = Carriage::post().framing(Framing::Held).on(n as u32 + 1);
                    talk.carry_and_await(Payload::text(*text), Chunking::Whole, how, 0);
                }
                // On a connection that was there before, and on one that comes after.
                talk.canary();
                talk.carry(
                    Payload::text(good(facts, 1, "\"new\"") + "\n"),
                    Chunking::Whole,
                    Carriage::post().on(9),
                );
                talk.canary().finish()
            },
        ),
        check(
            "auth/nonce-repeated-on-another-connection",
            "A nonce is accepted once, whichever connection it comes on.",
            &["RPC-AUTH-03"],
            |facts| {
                let mut talk = about(facts, "RPC-AUTH-03");
                talk.canary();
                for n in 1..=3 {
                    let auth =
                        r#""auth":{"timestamp":"@now","nonce":"@nonce:once","signature":"@signature"},"#;
                    let text = call(UNKNOWN_METHOD, Some("{}"), Some(&n.to_string()));
                    let body = Payload::text(text.replacen('{', &format!("{{{auth}"), 1) + "\n");
                    talk.carry(body, Chunking::Whole, Carriage::post().on(n)).canary();
                }
                talk.finish()
            },
        )
        .feature("auth"),
        check(
            "connections/cut",
            "Connections that are closed within a head, within a body and at once leave the server as it was.",
            &["RPC-HTTP-10"],
            |facts| {
                let mut talk = about(facts, "RPC-HTTP-10");
                for text in ["P", "POST / HTTP/1.1\r\nHost: a\r\nContent-Le", HALF, CHUNK] {
                    let how = Carriage::post().framing(Framing::Cut).on(1);
                    talk.carry_and_await(Payload::text(text), Chunking::Whole, how, 0).canary();
                }
                closing_canary(talk)
            },
        ),
        check(
            "connections/no-http",
            "What is no HTTP at all, or has lengths that mean nothing, leaves the server as it was.",
            &["RPC-HTTP-10"],
            |facts| {
                let mut talk = about(facts, "RPC-HTTP-10");
                let odd = [
                    "{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"id\":1}\n".to_owned(),
                    "\u{16}\u{3}\u{1}\u{0}\u{0}\r\n\r\n".to_owned(),
                    "POST / HTTP/9.9\r\nHost: a\r\n\r\n".to_owned(),
                    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n".to_owned(),
                    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999\r\n\r\n{}"
                        .to_owned(),
                    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n".to_owned(),
                    format!("POST / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(20_000)),
                ];
                for (n, text) in odd.into_iter().enumerate() {
                    let how = Carriage::post().framing(Framing::Held).on(n as u32 + 1);
                    // The connection goes on being open: whoever waits for more of it must not hold up others.
                    talk.carry_and_await(Payload::text(text), Chunking::Whole, how, 0);
                    talk.canary();
                }
                closing_canary(talk)
            },
        ),
    ]
}

/// Connections have no order among them: a canary may overtake what was sent on another one, however long before. The
/// last one comes when a server has had time for all of them.
fn closing_canary(mut talk: Talk<'_>) -> Plan {
    talk.act(Act::Wait { ms: OVERTAKEN_MS }).canary().finish()
}

/// Time for a server to look at what came on its other connections.
const OVERTAKEN_MS: u64 = 500;

/// Half of a request that announces a hundred bytes.
const HALF: &str = "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"jsonrpc\":";

/// A request whose second chunk never comes.
const CHUNK: &str = "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"jso\r\n";

fn check(
    name: &str,
    title: &str,
    clauses: &[&str],
    plan: impl Fn(&Facts) -> Plan + Send + Sync + 'static,
) -> Check {
    let id = format!("json_rpc/http/{name}");
    Check::new(id, title, clauses.iter().copied(), HTTP, move |facts, _| Ok(plan(facts))).on_process()
}

fn about<'a>(facts: &'a Facts, clause: &str) -> Talk<'a> {
    Talk::about(facts, clause).over(HTTP)
}

/// A good request made as long as this by a member that nobody knows.
fn padded(facts: &Facts, bytes: u64) -> Payload {
    let text = good(facts, 1, "\"large\"");
    let head = text.strip_suffix('}').unwrap_or(&text).to_owned() + ",\"pad\":\"";
    let rest = bytes.saturating_sub(head.len() as u64 + 2);
    Payload::text(head).repeat("x", rest).then(Payload::text("\"}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_to_lines_is_there() {
        let checks = super::super::all();
        for id in OF_LINES {
            assert!(checks.iter().any(|check| check.id == id), "{id} is no check");
            let carried = id.replacen("/stdio/", "/http/", 1);
            assert!(!checks.iter().any(|check| check.id == carried), "{carried}");
        }
    }
}
