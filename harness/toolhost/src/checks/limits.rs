//! Sizes: 10 MB in, 1 MB out, resynchronisation, memory.
//!
//! Large inputs are recipes; the harness expands one request at a time.

use std::collections::BTreeMap;

use peerproof_engine::data::check::Check;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Act, Chunking};
use peerproof_engine::data::sizes::Fill;

use super::super::expect::{Allowed, Expect, Outcome};
use super::super::talk::{Request, Talk, refused};

mod memory;
mod overlong;
mod replies;

/// `MAX_STDIN_BYTES` (`ipc` §7): all of standard input in run mode, a line without its LF in serve mode.
const INPUT_BYTES_MAX: usize = 10 << 20;

pub(super) fn checks() -> Vec<Check> {
    let mut checks = edges();
    checks.extend(overlong::checks());
    checks.extend(replies::checks());
    checks.extend(memory::checks());
    checks
}

/// Request with a padding member, which the peer ignores, of exactly `bytes` bytes.
fn padded(request: &Request, bytes: usize, fill: Fill) -> Payload {
    request.padded_with(fill.unit(), bytes)
}

/// Edge of the limit: bytes, name, and true if it is within the limit.
const EDGES: [(usize, &str, bool); 4] = [
    (INPUT_BYTES_MAX - 1, "one-byte-below-limit", true),
    (INPUT_BYTES_MAX, "at-limit", true),
    (INPUT_BYTES_MAX + 1, "one-byte-over-limit", false),
    (INPUT_BYTES_MAX * 2, "twice-the-limit", false),
];

fn edges() -> Vec<Check> {
    let mut checks = Vec::new();
    for (bytes, edge, within) in EDGES {
        for (fill, fill_name) in Fill::ALL {
            let size = Size { bytes, fill, within, chunking: Chunking::Whole };
            let name = format!("{edge}-{fill_name}");
            checks.push(run_edge(&name, size));
            checks.push(serve_edge(&name, size));
            // Chunk boundaries matter if a buffer is exactly full or just overflows.
            if matches!(bytes, INPUT_BYTES_MAX) || bytes == INPUT_BYTES_MAX + 1 {
                let size = Size { chunking: Chunking::Dribble, ..size };
                checks.push(run_edge(&format!("{name}-dribbled"), size));
                checks.push(serve_edge(&format!("{name}-dribbled"), size));
            }
        }
    }
    checks.push(run_white_space("white-space-at-limit", INPUT_BYTES_MAX, true));
    checks.push(run_white_space("white-space-one-byte-over-limit", INPUT_BYTES_MAX + 1, false));
    checks.push(serve_white_space("white-space-at-limit", INPUT_BYTES_MAX, true));
    checks.push(serve_white_space("white-space-one-byte-over-limit", INPUT_BYTES_MAX + 1, false));
    checks.push(crlf_near_limit());
    checks.push(full_line_after_full_line());
    checks.push(long_input());
    checks
}

/// The limit is one on lines; what is in them has none of its own.
fn long_input() -> Check {
    const CLAUSE: &str = "TH-LIMIT-03";
    Check::new(
        "toolhost/serve/limits/input-of-9-mb",
        "A line whose `input_json` has 9,000,000 bytes, nearly all white space, is accepted.",
        [CLAUSE],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let input = Payload::text("\"{").repeat(" ", 9_000_000).then(Payload::text("}\""));
            let request = Request::aid(&talk.role("counter").aid).payload("input_json", input);
            talk.send(request.line(), Expect::count(CLAUSE, 1));
            Ok(talk.canary().finish().plan())
        },
    )
    .roles(&["any", "counter"])
}

#[derive(Clone, Copy)]
struct Size {
    bytes: usize,
    fill: Fill,
    within: bool,
    chunking: Chunking,
}

fn title(what: &str, size: usize, within: bool) -> String {
    let outcome = if within { "is accepted" } else { "is refused and runs nothing" };
    format!("{what} of {size} bytes {outcome}.")
}

fn run_edge(name: &str, size: Size) -> Check {
    let clause = if size.within { "TH-LIMIT-01" } else { "TH-LIMIT-02" };
    let clauses = if size.chunking == Chunking::Whole { vec![clause] } else { vec![clause, "TH-FRAME-04"] };
    Check::new(
        format!("toolhost/run/limits/{name}"),
        title("Standard input", size.bytes, size.within),
        clauses,
        "run",
        move |facts, _| {
            let mut talk = Talk::runs(facts);
            let (aid, request, expect) = talk.good_run_request(clause);
            let expect = if size.within { expect } else { run_refusal(clause) };
            run_once(&mut talk, &aid, padded(&request, size.bytes, size.fill), size.chunking, expect);
            Ok(talk.run_canary().plan())
        },
    )
    .roles(&["any"])
}

fn run_refusal(clause: &str) -> Expect {
    Expect::refused(clause).reason("ran_oversized_input")
}

fn run_once(talk: &mut Talk<'_>, aid: &str, body: Payload, chunking: Chunking, expect: Expect) {
    talk.add_session("run", &[("aid", aid)], &[]);
    talk.send_as(body, chunking, 0, expect);
    talk.act(Act::Finish);
}

/// Expects exactly one refusal. That it is exactly one has a clause of lower weight than that nothing runs.
fn line_refusal() -> Expect {
    Expect::refused("TH-LIMIT-05").once("TH-LIMIT-04").reason("ran_oversized_input")
}

const OVERLONG_LINE: [&str; 2] = ["TH-LIMIT-05", "TH-LIMIT-04"];

fn serve_edge(name: &str, size: Size) -> Check {
    let mut clauses = if size.within { vec!["TH-LIMIT-03"] } else { OVERLONG_LINE.to_vec() };
    if size.chunking != Chunking::Whole {
        clauses.push("TH-FRAME-04");
    }
    Check::new(
        format!("toolhost/serve/limits/{name}"),
        title("A line", size.bytes, size.within),
        clauses,
        "serve",
        move |facts, _| {
            let mut talk = Talk::serve(facts);
            let (request, expect) = talk.good("TH-LIMIT-03");
            let line = padded(&request, size.bytes, size.fill).then(Payload::text("\n"));
            if size.within {
                talk.send_as(line, size.chunking, 1, expect);
            } else {
                // The harness does not wait here: a peer that answers nothing would cost the time of a large reply.
                talk.send_as(line, size.chunking, 0, line_refusal());
            }
            Ok(talk.canary().finish().plan())
        },
    )
    .roles(&["any"])
}

/// Request with white space up to `bytes` bytes, half before the object and half after it.
fn in_white_space(request: &Request, bytes: usize) -> Payload {
    let spaces = bytes.saturating_sub(request.body().len(&BTreeMap::new()));
    Payload::default()
        .repeat(" ", (spaces / 2) as u64)
        .then(request.body())
        .repeat(" ", (spaces - spaces / 2) as u64)
}

fn run_white_space(name: &str, bytes: usize, within: bool) -> Check {
    let clause = if within { "TH-LIMIT-01" } else { "TH-LIMIT-02" };
    Check::new(
        format!("toolhost/run/limits/{name}"),
        title("Standard input, mostly white space around the object,", bytes, within),
        [clause],
        "run",
        move |facts, _| {
            let mut talk = Talk::runs(facts);
            let (aid, request, expect) = talk.good_run_request(clause);
            let expect = if within { expect } else { run_refusal(clause) };
            run_once(&mut talk, &aid, in_white_space(&request, bytes), Chunking::Whole, expect);
            Ok(talk.run_canary().plan())
        },
    )
    .roles(&["any"])
}

fn serve_white_space(name: &str, bytes: usize, within: bool) -> Check {
    let clauses = if within { vec!["TH-LIMIT-03"] } else { OVERLONG_LINE.to_vec() };
    Check::new(
        format!("toolhost/serve/limits/{name}"),
        title("A line, mostly white space around the object,", bytes, within),
        clauses,
        "serve",
        move |facts, _| {
            let mut talk = Talk::serve(facts);
            let (request, expect) = talk.good("TH-LIMIT-03");
            let line = in_white_space(&request, bytes).then(Payload::text("\n"));
            if within {
                talk.send(line, expect);
            } else {
                talk.send_as(line, Chunking::Whole, 0, line_refusal());
            }
            Ok(talk.canary().finish().plan())
        },
    )
    .roles(&["any"])
}

fn crlf_near_limit() -> Check {
    Check::new(
        "toolhost/serve/limits/crlf-near-limit",
        "CRLF lines whose CR is within 2 bytes of the limit are answered or refused, and the session goes \
         on.",
        ["TH-LIMIT-03", "TH-LIMIT-04"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            for bytes in [INPUT_BYTES_MAX - 1, INPUT_BYTES_MAX] {
                let (request, expect) = talk.good("TH-LIMIT-03");
                let line = padded(&request, bytes, Fill::Ascii).then(Payload::text("\r\n"));
                talk.send_as(line, Chunking::Whole, 0, expect.or(refused()).once("TH-LIMIT-04"));
                talk.canary();
            }
            Ok(talk.finish().plan())
        },
    )
    .roles(&["any"])
}

fn full_line_after_full_line() -> Check {
    Check::new(
        "toolhost/serve/limits/three-lines-at-limit",
        "Three lines at the limit in a row are all accepted: the limit applies to each line by itself.",
        ["TH-LIMIT-03"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            for (fill, _) in Fill::ALL {
                let (request, expect) = talk.good("TH-LIMIT-03");
                let line = padded(&request, INPUT_BYTES_MAX, fill).then(Payload::text("\n"));
                talk.send_as(line, Chunking::Whole, 0, expect);
            }
            Ok(talk.canary().finish().plan())
        },
    )
    .roles(&["any"])
}

/// Expects the whole result or a TOOL_ERROR; never a truncated, altered or missing one.
fn whole_or_tool_error(clause: &str, whole: Allowed) -> Expect {
    Expect::new(clause, whole).or(Allowed::of(Outcome::ToolError))
}

#[cfg(test)]
mod tests {
    use super::*;
    use peerproof_engine::data::payload::Vars;

    #[test]
    fn padding_reaches_every_size_to_the_byte() {
        let sizes = [100, 101, 102, 103, 107, 108, 109, 111, 113, INPUT_BYTES_MAX, INPUT_BYTES_MAX + 1];
        let request = Request::aid("AID.A").input("{}");
        // Run mode also asks a tool without input with `{}`: the padding is then the only member.
        for request in [&request, &Request::empty()] {
            for (fill, bytes) in Fill::ALL.into_iter().flat_map(|(fill, _)| sizes.map(|bytes| (fill, bytes)))
            {
                let line = padded(request, bytes, fill).expand(&Vars::new()).unwrap();
                assert_eq!(line.len(), bytes);
                assert!(
                    peerproof_engine::data::json::decode(
                        &line,
                        &peerproof_engine::data::json::DecodeLimits::default()
                    )
                    .is_ok()
                );
            }
        }
        let request = request.padded_to(101).expand(&Vars::new()).unwrap();
        assert_eq!(request.len(), 101);
        let spaced = in_white_space(&Request::aid("AID.A").input("{}"), 1_001).expand(&Vars::new()).unwrap();
        assert_eq!(spaced.len(), 1_001);
    }

    #[test]
    fn plans_stay_small() {
        let facts = super::super::super::full_facts::facts(peerproof_engine::data::clause::Side::Provider);
        for check in checks() {
            let plan = (check.planner)(&facts, &mut peerproof_engine::data::rng::Rng::new(1)).unwrap();
            let stored = serde_json::to_string(&plan).unwrap().len();
            assert!(stored < 64 << 10, "{} is {stored} bytes", check.id);
        }
    }
}
