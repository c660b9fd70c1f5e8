//! Replies up to 1 MB and beyond: delivered whole if they fit in any spelling, TOOL_ERROR if they cannot fit.

use peerproof_engine::data::check::Check;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Act, Chunking};

use super::super::super::expect::{Allowed, Expect, Match, Outcome};
use super::super::super::probe::REPLY_FRAME;
use super::super::super::relation::Relation;
use super::super::super::talk::{Request, Talk};
use super::whole_or_tool_error;

/// Largest reply with its newline in bytes, `_TOOLHOST_MAX_OUTPUT` (`ipc` §7).
const REPLY_BYTES_MAX: u64 = 1 << 20;

/// Size in bytes of this reply with its newline, without the data:
/// `{"ok":true,"status":"OK","output_json":"{\"data\":\"…\"}","error":"","ds_state":{"delta":true,"slots":{}}}`.
const FRAME_BYTES: u64 = 106;

/// Additional time: a slow peer may build the whole result before it finds that it is too large.
fn time_for_result_ms(bytes: u64) -> u64 {
    bytes / 256
}

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![
        serve_blobs_that_fit(),
        serve_blobs_near_limit(),
        large_reply_behind_small_ones(),
        long_quotations(),
    ];
    for bytes in [REPLY_BYTES_MAX, 2 * REPLY_BYTES_MAX, 10 * REPLY_BYTES_MAX] {
        checks.push(serve_blob_over_limit(bytes));
        checks.push(run_blob_over_limit(bytes));
    }
    checks.push(run_blob("fits", 28_000, Fits::Surely));
    checks.push(run_blob("below-limit", 1_000_000, Fits::Perhaps));
    for shape in SHAPES {
        checks.push(echo_that_fits(shape));
    }
    for shape in SHAPES {
        checks.push(large_echo(shape));
    }
    checks
}

fn blob(bytes: u64) -> Allowed {
    Allowed::of(Outcome::Ok).output_member("/data", Match::Text(Payload::default().repeat("x", bytes)))
}

fn tool_error(clause: &str) -> Expect {
    Expect::new(clause, Allowed::of(Outcome::ToolError))
}

fn serve_blobs_that_fit() -> Check {
    Check::new(
        "toolhost/serve/limits/results-that-always-fit",
        "Results of up to 28,000 bytes, which fit however they are escaped, are delivered completely.",
        ["TH-LIMIT-08"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            for bytes in [0_u64, 1, 1_023, 4_096, 16_384, 28_000] {
                let request = talk.ask("blob", &format!("{{\"bytes\":{bytes}}}"));
                let expect = Expect::new("TH-LIMIT-08", blob(bytes));
                talk.send(request.line(), expect);
            }
            Ok(talk.canary().finish().plan())
        },
    )
    .roles(&["any", "blob"])
}

fn serve_blobs_near_limit() -> Check {
    Check::new(
        "toolhost/serve/limits/results-near-reply-limit",
        "Results whose reply may fit in 1,048,576 bytes are delivered completely or become TOOL_ERROR.",
        ["TH-LIMIT-07"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let sizes = [60_000, 170_000, 900_000, 1_000_000];
            // The rest of a reply may depend on the size of its result. One of these results is slightly over the
            // limit.
            let edge = (0..8).map(|step| REPLY_BYTES_MAX - 16 - step * 32);
            // The last result that fits, and one byte more. The rest of the reply is that of this peer's small
            // results, or else the members of the contract's example without white space.
            let frame = facts.limits.get(REPLY_FRAME).copied().unwrap_or(FRAME_BYTES);
            let filled = REPLY_BYTES_MAX.saturating_sub(frame);
            for bytes in sizes.into_iter().chain(edge).chain([filled, filled + 1]) {
                let request = talk.ask("blob", &format!("{{\"bytes\":{bytes}}}"));
                talk.send(request.line(), whole_or_tool_error("TH-LIMIT-07", blob(bytes)));
            }
            Ok(talk.canary().finish().plan())
        },
    )
    .roles(&["any", "blob"])
}

/// Creates a check of requests before a large result. Its own fit is the peer's choice, but must not affect them.
fn large_reply_behind_small_ones() -> Check {
    Check::new(
        "toolhost/serve/limits/large-result-behind-small-ones",
        "A result near the limit that is delivered alone is also delivered after 64 small ones in the same \
         write.",
        ["TH-FRAME-04"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let bytes = REPLY_BYTES_MAX - 4_096;
            let large = talk.ask("blob", &format!("{{\"bytes\":{bytes}}}")).line();
            talk.send(large.clone(), whole_or_tool_error("TH-FRAME-04", blob(bytes)));
            let of = talk.at();
            let (mut lines, mut expects) = (Payload::default(), Vec::new());
            for _ in 0..64 {
                let (small, expect) = talk.good("TH-FRAME-04");
                lines = lines.then(small.line());
                expects.push(expect);
            }
            expects.push(whole_or_tool_error("TH-FRAME-04", blob(bytes)));
            talk.send_all(lines.then(large).merged(), Chunking::Whole, expects);
            let step = talk.at();
            talk.relate(Relation::SucceedsLike { clause: "TH-FRAME-04".into(), step, of });
            Ok(talk.canary().finish().plan())
        },
    )
    .roles(&["any", "blob"])
}

/// Creates a check of long quotations of the request or the tool's message, which do not fit completely.
fn long_quotations() -> Check {
    const CLAUSE: &str = "TH-LIMIT-07";
    Check::new(
        "toolhost/serve/limits/errors-about-2-mb",
        "An error about an aid, an input or a message of 2 MB is a reply of at most 1,048,576 bytes like any other.",
        [CLAUSE],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let long = |before: &str, after: &str| {
                Payload::text(format!("\"{before}")).repeat("x", 2 * REPLY_BYTES_MAX).then(Payload::text(after))
            };
            let aid = Request::empty().payload("aid", long("AID.PEERPROOF.", "\"")).input("{}");
            talk.send(aid.line(), Expect::refused(CLAUSE));
            let input = Request::aid(&talk.role("any").aid).payload("input_json", long("", "\""));
            talk.send(input.line(), Expect::refused(CLAUSE));
            if talk.has("fail") {
                let input = long("{\\\"message\\\":\\\"", "\\\"}\"");
                let fail = Request::aid(&talk.role("fail").aid).payload("input_json", input);
                talk.send(fail.line(), tool_error(CLAUSE));
            }
            Ok(talk.canary().finish().plan())
        },
    )
    .roles(&["any"])
}

fn serve_blob_over_limit(bytes: u64) -> Check {
    Check::new(
        format!("toolhost/serve/limits/result-of-{bytes}-bytes"),
        "A result that cannot fit in a reply becomes TOOL_ERROR, once, and the session goes on.",
        ["TH-LIMIT-07"],
        "serve",
        move |facts, _| {
            let mut talk = Talk::serve(facts);
            let request = talk.ask("blob", &format!("{{\"bytes\":{bytes}}}"));
            talk.send(
                request.line(),
                tool_error("TH-LIMIT-07").once("TH-LIMIT-07").reason("reply_too_large"),
            );
            talk.allow_ms(time_for_result_ms(bytes));
            Ok(talk.canary().finish().plan())
        },
    )
    .roles(&["any", "blob"])
}

fn run_blob_over_limit(bytes: u64) -> Check {
    Check::new(
        format!("toolhost/run/limits/result-of-{bytes}-bytes"),
        "A result that cannot fit in a reply becomes TOOL_ERROR.",
        ["TH-LIMIT-07"],
        "run",
        move |facts, _| {
            let mut talk = Talk::runs(facts);
            let aid = talk.role("blob").aid;
            let body = Request::empty().input(&format!("{{\"bytes\":{bytes}}}")).body();
            talk.run(&aid, body, &[], tool_error("TH-LIMIT-07").reason("reply_too_large"));
            talk.allow_ms(time_for_result_ms(bytes));
            Ok(talk.run_canary().plan())
        },
    )
    .roles(&["any", "blob"])
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fits {
    Surely,
    Perhaps,
}

fn run_blob(name: &str, bytes: u64, fits: Fits) -> Check {
    let clause = if fits == Fits::Surely { "TH-LIMIT-08" } else { "TH-LIMIT-07" };
    Check::new(
        format!("toolhost/run/limits/result-{name}"),
        format!("A result of {bytes} bytes is delivered completely if its reply fits."),
        [clause],
        "run",
        move |facts, _| {
            let mut talk = Talk::runs(facts);
            let aid = talk.role("blob").aid;
            let body = Request::empty().input(&format!("{{\"bytes\":{bytes}}}")).body();
            let expect = match fits {
                Fits::Surely => Expect::new(clause, blob(bytes)),
                Fits::Perhaps => whole_or_tool_error(clause, blob(bytes)),
            };
            talk.run(&aid, body, &[], expect);
            Ok(talk.run_canary().plan())
        },
    )
    .roles(&["any", "blob"])
}

/// Echoed object: a unit of its text as the tool's input, the unit within the string `input_json`, the repetitions for
/// a reply that always fits, and those for about 1 MB.
struct Shape {
    name: &'static str,
    open: &'static str,
    unit: &'static str,
    close: &'static str,
    fits: u64,
    large: u64,
}

const SHAPES: &[Shape] = &[
    Shape { name: "long-string", open: "{\"s\":\"", unit: "x", close: "\"}", fits: 28_000, large: 1_000_000 },
    Shape {
        name: "two-byte-text", open: "{\"s\":\"", unit: "é", close: "\"}", fits: 28_000, large: 500_000
    },
    Shape {
        name: "four-byte-text",
        open: "{\"s\":\"",
        unit: "😀",
        close: "\"}",
        fits: 14_000,
        large: 250_000,
    },
    Shape {
        name: "escapes",
        open: "{\"s\":\"",
        unit: "\\\"\\\\\\n\\u0001",
        close: "\"}",
        fits: 7_000,
        large: 55_000,
    },
    Shape {
        name: "many-records",
        open: "{\"records\":[{}",
        unit: ",{\"id\":7,\"on\":true,\"at\":[1,null]}",
        close: "]}",
        fits: 800,
        large: 25_000,
    },
];

impl Shape {
    fn text(&self, times: u64) -> Payload {
        Payload::text(self.open).repeat(self.unit, times).then(Payload::text(self.close))
    }

    /// The text inside a JSON string.
    fn quoted(&self, times: u64) -> Payload {
        let inner = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        Payload::text(format!("\"{}", inner(self.open)))
            .repeat(inner(self.unit), times)
            .then(Payload::text(format!("{}\"", inner(self.close))))
    }

    fn request(&self, aid: &str, times: u64) -> Request {
        Request::aid(aid).payload("input_json", self.quoted(times))
    }
}

fn echo_that_fits(shape: &'static Shape) -> Check {
    Check::new(
        format!("toolhost/serve/limits/echo-that-fits-{}", shape.name),
        "An echo whose reply fits however it is escaped comes back complete, for a request in one write \
         and in pieces.",
        ["TH-LIMIT-08"],
        "serve",
        move |facts, _| {
            let mut talk = Talk::serve(facts);
            let request = shape.request(&talk.role("echo").aid, shape.fits);
            for chunking in [Chunking::Whole, Chunking::Dribble] {
                let expect = Expect::new("TH-LIMIT-08", Allowed::large_output(shape.text(shape.fits)));
                talk.send_as(request.line(), chunking, 1, expect);
            }
            Ok(talk.canary().finish().plan())
        },
    )
    .roles(&["echo"])
}

fn large_echo(shape: &'static Shape) -> Check {
    Check::new(
        format!("toolhost/serve/limits/echo-of-1-mb-{}", shape.name),
        "An echo of about 1,000,000 bytes comes back complete or becomes TOOL_ERROR; it is never cut or \
         altered.",
        ["TH-LIMIT-07"],
        "serve",
        move |facts, _| {
            let mut talk = Talk::serve(facts);
            let request = shape.request(&talk.role("echo").aid, shape.large);
            talk.send(
                request.line(),
                whole_or_tool_error("TH-LIMIT-07", Allowed::large_output(shape.text(shape.large))),
            );
            talk.canary();
            talk.act(Act::Finish);
            Ok(talk.plan())
        },
    )
    .roles(&["echo"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use peerproof_engine::data::json::{DecodeLimits, decode};
    use peerproof_engine::data::payload::Vars;

    #[test]
    fn shapes_are_json_and_quote_themselves() {
        for shape in SHAPES {
            let text = shape.text(3).expand(&Vars::new()).unwrap();
            assert!(decode(&text, &DecodeLimits::default()).is_ok(), "{}", shape.name);
            let quoted = shape.quoted(3).expand(&Vars::new()).unwrap();
            let inner = decode(&quoted, &DecodeLimits::default()).unwrap().value;
            assert_eq!(inner.as_str().unwrap().as_bytes(), text, "{}", shape.name);
        }
    }

    /// A code unit of a doubly escaped string takes at most 36 bytes. Outside strings a singly escaped one takes 6,
    /// and at most three times that with white space.
    #[test]
    fn what_surely_fits_does() {
        for shape in SHAPES {
            let text = String::from_utf8(shape.text(shape.fits).expand(&Vars::new()).unwrap()).unwrap();
            let value = decode(text.as_bytes(), &DecodeLimits::default()).unwrap().value;
            let units = value
                .get("s")
                .and_then(peerproof_engine::data::json::Json::as_str)
                .map(|s| s.encode_utf16().count());
            let worst = units.map_or(text.len() * 36, |units| units * 36);
            assert!(worst + 2_000 < REPLY_BYTES_MAX as usize, "{}: {worst}", shape.name);
        }
    }
}
