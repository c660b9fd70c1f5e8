//! Lines that are not requests, and requests without a tool.

use super::super::super::expect::{Allowed, Expect, Outcome};
use super::super::super::talk::{Request, Talk};
use super::check;
use peerproof_engine::data::check::Check;
use peerproof_engine::data::payload::{Payload, Segment};
use peerproof_engine::data::plan::Chunking;

pub(super) fn checks() -> Vec<Check> {
    let mut checks = lines();
    checks.extend([missing_aid(), unknown_aid()]);
    checks
}

fn lines() -> Vec<Check> {
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
            "malformed/raw-carriage-return",
            "A request with a raw CR in a string is refused, whether or not a CR ends a line.",
            &["TH-SERVE-01"],
            |facts| {
                let mut talk = Talk::serve(facts);
                talk.canary();
                let (request, _) = talk.good("TH-SERVE-01");
                let raw = request.member("x", "\"a\rb\"").line();
                let refused = || Expect::refused("TH-SERVE-01");
                // Readers that treat a lone CR as a line end, as in many languages, see two lines.
                let again = refused().or(Allowed::of(Outcome::Silence));
                talk.send_all(raw, Chunking::Whole, vec![refused(), again]);
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

/// Bytes without a line feed. The last two look like a compressed stream and a TLS greeting. None becomes empty when
/// trimmed in some language (as a lone NUL would), so that none can count as a blank line.
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
