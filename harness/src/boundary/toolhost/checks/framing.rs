//! Serve mode: one reply a line, in order, however the bytes are cut.

use crate::check::Check;
use crate::payload::Payload;
use crate::plan::Chunking;

use super::super::expect::{Allowed, Expect, Outcome};
use super::super::role::reference_aid;
use super::super::talk::{Request, Talk};

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    vec![first_canary(), two_in_one_write(), dribbled(), malformed_line(), missing_aid(), unknown_aid()]
}

fn first_canary() -> Check {
    Check::new(
        "toolhost/serve/canary/plain-request",
        "A plain valid request is answered by one line.",
        ["TH-FRAME-01"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let (request, expect) = if talk.has("any") {
                talk.good("TH-FRAME-01")
            } else {
                (Request::aid(&reference_aid("any")).input("{}"), Expect::ok("TH-FRAME-01"))
            };
            // Whether the tool succeeds is a matter of configuration; that a reply comes is not.
            talk.send(request.line(), expect.or(Allowed::of(Outcome::Any)));
            Ok(talk.counts_as_canary().finish().plan())
        },
    )
}

fn two_in_one_write() -> Check {
    Check::new(
        "toolhost/serve/chunking/two-requests-in-one-write",
        "Two requests that arrive in one write are answered by two lines, in order.",
        ["TH-FRAME-04"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let (first, first_expect) = talk.good("TH-FRAME-04");
            let (second, second_expect) = talk.good("TH-FRAME-04");
            let both = first.line().then(second.line());
            talk.send_all(both, Chunking::Whole, vec![first_expect, second_expect]);
            Ok(talk.canary().finish().plan())
        },
    )
    .roles(&["any"])
}

fn dribbled() -> Check {
    Check::new(
        "toolhost/serve/chunking/byte-by-byte",
        "A request that arrives byte by byte is answered like any other.",
        ["TH-FRAME-04"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let (request, expect) = talk.good("TH-FRAME-04");
            talk.send_as(request.line(), Chunking::Dribble, 1, expect);
            Ok(talk.canary().finish().plan())
        },
    )
    .roles(&["any"])
}

fn malformed_line() -> Check {
    Check::new(
        "toolhost/serve/malformed/not-json",
        "A line that is not JSON gets one ok:false reply and the session goes on.",
        ["TH-SERVE-01"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            talk.send(Payload::text("this is not json\n"), Expect::refused("TH-SERVE-01"));
            Ok(talk.canary().finish().plan())
        },
    )
    .roles(&["any"])
}

fn missing_aid() -> Check {
    Check::new(
        "toolhost/serve/request/aid-missing",
        "A request without `aid` is refused.",
        ["TH-REQ-02"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            talk.send(Request::empty().input("{}").line(), Expect::refused("TH-REQ-02"));
            Ok(talk.canary().finish().plan())
        },
    )
    .roles(&["any"])
}

fn unknown_aid() -> Check {
    Check::new(
        "toolhost/serve/request/aid-unknown",
        "A request for a tool that does not exist is refused.",
        ["TH-REQ-03"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let request = Request::aid("AID.PEERPROOF.NO_SUCH_TOOL.v1").input("{}");
            talk.send(request.line(), Expect::refused("TH-REQ-03"));
            Ok(talk.canary().finish().plan())
        },
    )
    .roles(&["any"])
}
