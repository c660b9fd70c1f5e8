//! Sizes: what a line may have, what becomes of one that has more, what that costs, and how large results are.
//!
//! Whatever is large here is a recipe; the harness expands one line at a time.

use super::super::model::{LINE_BYTES_CERTAIN, LINE_BYTES_MAX};
use super::super::role::role;
use super::super::talk::{Talk, call, good, quoted};
use peerproof_engine::check::{Check, Untestable};
use peerproof_engine::facts::Facts;
use peerproof_engine::memory::{IDLE, INPUTS, further, piece, sample};
use peerproof_engine::payload::Payload;
use peerproof_engine::plan::Chunking;
use peerproof_engine::sizes::{Fill, padded};

/// How far checks stay from both limits, bytes: a carriage return more or less is no matter.
const CLEAR_BYTES: usize = 2;
const ACCEPTED: usize = LINE_BYTES_CERTAIN - CLEAR_BYTES;
const REFUSED: usize = LINE_BYTES_MAX + CLEAR_BYTES;
/// Time for a slow peer to read so much, or to make so much, ms.
const LARGE_MS: u64 = 10_000;

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    let mut checks = edges();
    checks.extend([between(), in_a_row(), carriage_returns(), white_space()]);
    checks.extend([
        no_json(),
        requests_inside(),
        in_one_write(),
        runs_nothing(),
        unended(),
        error_type(),
        memory(),
    ]);
    checks.extend([blobs_that_fit(), blobs_near_limit(), blobs_over_limit(), blobs_in_batch(), large_echo()]);
    checks
}

fn check(
    name: &str,
    title: &str,
    clauses: &[&str],
    plan: impl Fn(&Facts) -> Result<peerproof_engine::plan::Plan, Untestable> + Send + Sync + 'static,
) -> Check {
    let id = format!("json_rpc/stdio/sizes/{name}");
    Check::new(id, title, clauses.iter().copied(), "command", move |facts, _| plan(facts))
}

/// A request that is certainly answered, with a member of padding so that it has exactly `bytes` bytes.
fn request(facts: &Facts, id: &str, fill: Fill, bytes: usize) -> Payload {
    padded(Payload::text(good(facts, 0, &quoted(id))), fill.unit(), bytes)
}

fn line(body: Payload) -> Payload {
    body.then(Payload::text("\n"))
}

const TOO_LONG: [&str; 2] = ["RPC-SIZE-02", "RPC-SIZE-03"];

fn edges() -> Vec<Check> {
    let sizes = [
        (ACCEPTED, "two-bytes-below-one-megabyte", true),
        (REFUSED, "two-bytes-over-limit", false),
        (LINE_BYTES_MAX * 2, "twice-the-limit", false),
    ];
    let mut checks = Vec::new();
    for (bytes, edge, within) in sizes {
        for (fill, fill_name) in Fill::ALL {
            checks.push(edge_check(
                &format!("{edge}-{fill_name}"),
                bytes,
                within,
                vec![fill],
                Chunking::Whole,
            ));
        }
        if bytes <= REFUSED {
            let fills = Fill::ALL.map(|(fill, _)| fill).into();
            checks.push(edge_check(&format!("{edge}-dribbled"), bytes, within, fills, Chunking::Dribble));
        }
    }
    checks
}

fn edge_check(name: &str, bytes: usize, within: bool, fills: Vec<Fill>, chunking: Chunking) -> Check {
    let (clauses, outcome) = match within {
        true => (vec!["RPC-SIZE-01"], "is accepted"),
        false => (TOO_LONG.to_vec(), "is refused once, and the next line is answered"),
    };
    let first = clauses[0];
    check(name, &format!("A line of {bytes} bytes {outcome}."), &clauses, move |facts| {
        let mut talk = Talk::about(facts, first);
        for (at, fill) in fills.iter().enumerate() {
            talk.send_as(line(request(facts, &format!("edge-{at}"), *fill, bytes)), chunking);
            talk.canary();
        }
        Ok(talk.finish())
    })
}

fn between() -> Check {
    check(
        "between-both-limits",
        "Lines between 1,000,000 and 1,048,576 bytes are answered or refused, and the session goes on.",
        &["RPC-SIZE-03"],
        |facts| {
            let mut talk = Talk::about(facts, "RPC-SIZE-03");
            for bytes in [LINE_BYTES_CERTAIN + 1_000, 1_024_000, LINE_BYTES_MAX - 1_000] {
                talk.send_as(line(request(facts, &bytes.to_string(), Fill::Ascii, bytes)), Chunking::Whole);
                talk.canary();
            }
            Ok(talk.finish())
        },
    )
}

fn in_a_row() -> Check {
    check(
        "three-full-lines-in-a-row",
        "Three lines of almost 1,000,000 bytes in a row are all accepted: what one took is given back for the next.",
        &["RPC-SIZE-01"],
        |facts| {
            let mut talk = Talk::about(facts, "RPC-SIZE-01");
            for (fill, name) in Fill::ALL {
                talk.queue(line(request(facts, name, fill, ACCEPTED)));
            }
            Ok(talk.canary().allow_ms(LARGE_MS).finish())
        },
    )
}

fn carriage_returns() -> Check {
    check(
        "carriage-return-near-limits",
        "A carriage return before the line feed does not count, neither where a line just fits nor where it does not.",
        &["RPC-SIZE-01", "RPC-SIZE-02"],
        |facts| {
            let mut talk = Talk::about(facts, "RPC-SIZE-01");
            let ended = |body: Payload| body.then(Payload::text("\r\n"));
            talk.send_as(ended(request(facts, "fits", Fill::Ascii, ACCEPTED)), Chunking::Whole).canary();
            talk.aim("RPC-SIZE-02");
            talk.send_as(ended(request(facts, "does-not", Fill::Ascii, REFUSED)), Chunking::Whole).canary();
            Ok(talk.finish())
        },
    )
}

fn white_space() -> Check {
    check(
        "white-space-counts",
        "A line that is mostly white space around a message is measured like any other.",
        &["RPC-SIZE-01", "RPC-SIZE-02"],
        |facts| {
            let mut talk = Talk::about(facts, "RPC-SIZE-01");
            for (bytes, clause) in [(ACCEPTED, "RPC-SIZE-01"), (REFUSED, "RPC-SIZE-02")] {
                let body = good(facts, 0, &quoted(&bytes.to_string()));
                let spaces = (bytes - body.len()) as u64;
                let spaced = Payload::default().repeat(" ", spaces / 2).then(Payload::text(body));
                talk.aim(clause);
                talk.send_as(line(spaced.repeat(" ", spaces - spaces / 2)), Chunking::Whole).canary();
            }
            Ok(talk.finish())
        },
    )
}

fn no_json() -> Check {
    check(
        "no-json-over-limit",
        "A line over the limit is refused for its size whatever it holds, once, also where it is no JSON.",
        &TOO_LONG,
        |facts| {
            let mut talk = Talk::about(facts, "RPC-SIZE-02");
            let bytes = 2 * LINE_BYTES_MAX as u64;
            let fills = [
                Payload::default().repeat("x", bytes),
                Payload::default().repeat("{", bytes),
                Payload::text("\"").repeat("\\\"", bytes / 2),
                Payload(vec![peerproof_engine::payload::Segment::Hex("ff".to_owned())])
                    .repeat("\u{fffd}", bytes / 3),
            ];
            for body in fills {
                talk.send_as(line(body), Chunking::Whole).canary();
            }
            Ok(talk.finish())
        },
    )
}

/// Whoever takes the rest of a line for another runs what stands in it.
fn requests_inside() -> Check {
    check(
        "requests-inside-over-limit",
        "Requests that stand within a line over the limit, anywhere, are not answered.",
        &["RPC-SIZE-03", "RPC-SIZE-02"],
        |facts| {
            let mut talk = Talk::about(facts, "RPC-SIZE-03");
            let inside = good(facts, 0, "\"inside\"");
            let behind_spaces = Payload::default()
                .repeat(" ", LINE_BYTES_MAX as u64 + 100)
                .then(Payload::text(inside.clone()));
            let many =
                Payload::default().repeat(inside.clone() + " ", 2 * (LINE_BYTES_MAX / inside.len()) as u64);
            for body in [behind_spaces, many] {
                talk.send_as(line(body), Chunking::Whole).canary();
            }
            Ok(talk.finish())
        },
    )
}

fn in_one_write() -> Check {
    check(
        "over-limit-between-others-in-one-write",
        "Requests in the same write before and behind a line over the limit are answered.",
        &["RPC-SIZE-03", "RPC-SIZE-02"],
        |facts| {
            let mut talk = Talk::about(facts, "RPC-SIZE-03");
            let all = line(Payload::text(good(facts, 1, "\"before\"")))
                .then(line(request(facts, "long", Fill::MultiByte, REFUSED)))
                .then(line(Payload::text(good(facts, 2, "\"behind\""))));
            talk.send_as(all, Chunking::Whole);
            Ok(talk.canary().finish())
        },
    )
}

fn runs_nothing() -> Check {
    check(
        "over-limit-runs-nothing",
        "A call and a notification over the limit are not carried out.",
        &["RPC-SIZE-02"],
        |facts| {
            let mut talk = Talk::about(facts, "RPC-SIZE-02");
            let method = talk.method("counter");
            for id in [Some("\"long\""), None] {
                let body = Payload::text(call(&method, Some("{}"), id));
                talk.send_as(line(padded(body, "x", REFUSED)), Chunking::Whole).canary();
            }
            talk.send(&call(&method, Some("{}"), Some("\"first\"")));
            Ok(talk.canary().finish())
        },
    )
    .roles(&["counter"])
}

fn unended() -> Check {
    check(
        "over-limit-at-end-of-input",
        "Input ends within a line over the limit: it is refused or passed over, and the process exits with 0.",
        &["RPC-SIZE-02"],
        |facts| {
            let mut talk = Talk::about(facts, "RPC-SIZE-02");
            talk.canary();
            talk.queue(request(facts, "cut", Fill::Ascii, REFUSED));
            Ok(talk.finish())
        },
    )
}

fn error_type() -> Check {
    check(
        "error-type-over-limit",
        "The error that refuses a line for its length has data.type MESSAGE_TOO_LARGE.",
        &["RPC-SIZE-06"],
        |facts| {
            let mut talk = Talk::about(facts, "RPC-SIZE-06");
            talk.send_as(line(request(facts, "long", Fill::Ascii, REFUSED)), Chunking::Whole);
            Ok(talk.canary().finish())
        },
    )
    .ambient()
}

fn memory() -> Check {
    check(
        "memory-while-refusing-100-mb",
        "Refusing lines of 20 MB and 100 MB takes at most 64 MiB of memory, and the longer one no more.",
        &["RPC-SIZE-04", "RPC-SIZE-02", "RPC-SIZE-03"],
        |facts| {
            let mut talk = Talk::about(facts, "RPC-SIZE-02");
            talk.canary();
            talk.act(sample(IDLE));
            for (pieces, label) in INPUTS {
                talk.push(Payload::text("{\"pad\":\"").then(piece()), Chunking::Whole, 0);
                for act in further(pieces, "\"}\n") {
                    talk.act(act).allow_ms(LARGE_MS);
                }
                talk.canary().allow_ms(LARGE_MS);
                talk.act(sample(label));
            }
            Ok(talk.finish())
        },
    )
    .exclusive()
}

/// A call for a result of so many bytes.
fn blob(facts: &Facts, bytes: u64, id: &str) -> Result<String, Untestable> {
    let role = role(facts, "blob").ok_or("the role `blob` is not mapped")?;
    Ok(call(&role.method, Some(&role.filled("bytes", bytes)?.to_string()), Some(id)))
}

fn blobs(name: &str, title: &str, sizes: Vec<u64>) -> Check {
    check(name, title, &["RPC-SIZE-05"], move |facts| {
        let mut talk = Talk::about(facts, "RPC-SIZE-05");
        for bytes in &sizes {
            talk.send(&blob(facts, *bytes, &bytes.to_string())?).allow_ms(LARGE_MS);
        }
        Ok(talk.canary().finish())
    })
    .roles(&["blob"])
}

fn blobs_that_fit() -> Check {
    let sizes = vec![0, 1, 1_023, 4_096, 30_000, 80_000];
    blobs(
        "results-that-always-fit",
        "Results of up to 80,000 bytes, which fit however they are spelled, are delivered whole.",
        sizes,
    )
}

fn blobs_near_limit() -> Check {
    // The frame around a result differs from peer to peer: one of these is over the limit by little.
    let edge = (0..8).map(|step| LINE_BYTES_MAX as u64 - 16 - step * 24);
    blobs(
        "results-near-limit",
        "Results that may fit are delivered whole, in a message of at most 1,048,576 bytes, or become -32603.",
        [500_000, 999_000].into_iter().chain(edge).collect(),
    )
}

fn blobs_over_limit() -> Check {
    let limit = LINE_BYTES_MAX as u64;
    blobs(
        "results-over-limit",
        "Results that cannot fit become -32603, once each, and the session goes on.",
        vec![limit, 2 * limit, 10 * limit],
    )
}

fn blobs_in_batch() -> Check {
    check(
        "results-of-a-batch-over-limit",
        "Where the results of a batch do not fit together some give way; every id is answered once, in a message that fits.",
        &["RPC-SIZE-05"],
        |facts| {
            let mut talk = Talk::about(facts, "RPC-SIZE-05");
            let mut elements = vec![good(facts, 1, "\"small\"")];
            for id in ["1", "2", "3"] {
                elements.push(blob(facts, 500_000, id)?);
            }
            talk.send(&format!("[{}]", elements.join(","))).allow_ms(LARGE_MS);
            Ok(talk.canary().finish())
        },
    )
    .roles(&["blob"])
    .feature("batch")
}

fn large_echo() -> Check {
    check(
        "echo-of-one-megabyte",
        "Params of almost 1,000,000 bytes come back whole or become -32603; they are never cut or altered.",
        &["RPC-SIZE-05"],
        |facts| {
            let mut talk = Talk::about(facts, "RPC-SIZE-05");
            let echo = talk.method("echo");
            let frame = call(&echo, Some("[\"#\"]"), Some("0"));
            let (head, tail) = frame.split_once('#').unwrap_or_default();
            for (at, unit) in ["x", "é€😀", "\\\"\\\\\\n\\u0001"].into_iter().enumerate() {
                let tail = tail.replace("\"id\":0", &format!("\"id\":{at}"));
                let times = (ACCEPTED - frame.len()) / unit.len();
                let body = Payload::text(head).repeat(unit, times as u64).then(Payload::text(tail));
                talk.send_as(line(body), Chunking::Whole).allow_ms(LARGE_MS);
            }
            Ok(talk.canary().finish())
        },
    )
    .roles(&["echo"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use peerproof_engine::payload::Vars;

    #[test]
    fn plans_stay_small_and_lines_have_their_sizes() {
        let facts = super::super::super::usual::facts(peerproof_engine::clause::Side::Provider);
        for check in checks() {
            let plan = (check.planner)(&facts, &mut peerproof_engine::rng::Rng::new(1)).unwrap();
            let stored = serde_json::to_string(&plan).unwrap().len();
            assert!(stored < 64 << 10, "{} is {stored} bytes", check.id);
        }
        for (fill, _) in Fill::ALL {
            assert_eq!(request(&facts, "1", fill, ACCEPTED).len(&Vars::new()), ACCEPTED);
        }
    }
}
