//! Checks of lines of 10 MB and of 64 levels, and beyond.

use super::super::super::super::request::Request;
use super::super::super::super::selector::expect::{Allowed, Expect};
use super::super::super::super::selector::talk::{Talk, looks_and_says, says};
use super::{BLOCK, check, send_taken};
use peerproof_engine::contract::memory::{IDLE, INPUTS, further, piece, sample};
use peerproof_engine::data::check::Check;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::Chunking;

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    vec![
        at_limit("ascii", "x"),
        at_limit("multi-byte", "€"),
        at_limit("escapes", "\\u0041"),
        dribbled(),
        over_limit(),
        memory(),
        levels(),
        deeper(),
        deeper_in_fallback_mode(),
    ]
}

/// Longest line without its line feed, bytes.
const LINE_BYTES_MAX: usize = 10_485_760;

/// The plain request with an unknown member, which pads its line to this many bytes without the line feed.
fn padded(bytes: usize, unit: &str) -> Payload {
    let text = Request::plain().text();
    let head = format!("{},\"pad\":\"", &text[..text.len() - 1]);
    let room = bytes.saturating_sub(head.len() + "\"}".len());
    let rest = "x".repeat(room % unit.len());
    Payload::text(head).repeat(unit, (room / unit.len()) as u64).then(Payload::text(format!("{rest}\"}}\n")))
}

fn at_limit(name: &str, unit: &'static str) -> Check {
    check(
        &format!("lines/at-10-mb-{name}"),
        "A request line of 10,485,760 bytes, without its LF, is served, and so is one of a byte less.",
        &["PD-SEL-07"],
        move |talk, _| {
            talk.canary("PD-SEL-07");
            for bytes in [LINE_BYTES_MAX - 1, LINE_BYTES_MAX] {
                send_taken(talk, "PD-SEL-07", padded(bytes, unit), Chunking::Whole);
                talk.allow_ms(5_000);
            }
            talk.canary("PD-SEL-07");
        },
    )
}

fn dribbled() -> Check {
    check(
        "lines/at-10-mb-dribbled",
        "A request line of 10,485,760 bytes that comes in small pieces is served.",
        &["PD-SEL-07", "PD-SEL-03"],
        |talk, _| {
            talk.canary("PD-SEL-07");
            send_taken(talk, "PD-SEL-07", padded(LINE_BYTES_MAX, "x"), Chunking::Dribble);
            talk.allow_ms(10_000).canary("PD-SEL-07");
        },
    )
}

fn refused() -> Expect {
    Expect::invalid("PD-SEL-08").starts("PD-SEL-08", 0)
}

fn over_limit() -> Check {
    check(
        "lines/over-10-mb",
        "A line of one byte more than 10 MB, or of 20 MB, is INVALID; nothing starts, and the next line is \
         served.",
        &["PD-SEL-08"],
        |talk, _| {
            talk.canary("PD-SEL-08");
            for bytes in [LINE_BYTES_MAX + 1, 2 * LINE_BYTES_MAX] {
                talk.send(padded(bytes, "x"), Chunking::Whole, 1, refused()).allow_ms(5_000);
                talk.canary("PD-SEL-08");
            }
            // Both lines in one write.
            talk.driver(says(BLOCK));
            let both = padded(LINE_BYTES_MAX + 1, "x").then(Request::plain().line());
            let expects =
                [refused().starts("PD-SEL-08", 0), Expect::taken("PD-SEL-08", BLOCK).starts("PD-SEL-08", 1)];
            talk.send_lines(both, Chunking::Whole, 2, &expects).allow_ms(5_000).canary("PD-SEL-08");
        },
    )
}

fn memory() -> Check {
    check(
        "lines/memory-while-refusing-100-mb",
        "Refusing lines of 20 MB and 100 MB takes at most 64 MiB of memory, and no more for the longer one.",
        &["PD-SEL-08"],
        |talk, _| {
            talk.canary("PD-SEL-08");
            talk.act(sample(IDLE));
            for (pieces, label) in INPUTS {
                send_pieces(talk, pieces);
                talk.canary("PD-SEL-08");
                talk.act(sample(label));
            }
        },
    )
    .exclusive()
}

fn send_pieces(talk: &mut Talk, pieces: u32) {
    talk.send(Payload::text("{\"pad\":\"").then(piece()), Chunking::Whole, 0, refused());
    for act in further(pieces, "\"}\n") {
        talk.act(act);
    }
}

/// Inputs that make a request nest this many levels deep. The request and its inputs are two of them.
fn nested(levels: usize, open: &str, close: &str) -> String {
    let inner = levels.saturating_sub(3);
    let (head, tail) = (open.repeat(inner), close.repeat(inner));
    format!("{{\"k\":{head}[]{tail}}}")
}

fn levels() -> Check {
    check(
        "lines/nested-64",
        "A request of up to 64 levels, of arrays or objects, is served, and its driver gets all of it.",
        &["PD-SEL-07"],
        |talk, _| {
            talk.canary("PD-SEL-07");
            for (levels, open, close) in
                [(10, "[", "]"), (63, "[", "]"), (64, "[", "]"), (64, "{\"k\":", "}")]
            {
                let request = Request::plain().inputs(&nested(levels, open, close));
                let expect = Expect::taken("PD-SEL-07", BLOCK).given("PD-SEL-07");
                talk.play(&request, looks_and_says(BLOCK), expect);
            }
        },
    )
}

/// Text of a request with nested inputs. The value itself is not built, because it is too deep.
fn deep_line(levels: usize, open: &str, close: &str, mode: &str) -> Payload {
    let text = Request::plain().inputs("{\"@\":0}").mode(mode).text();
    let inputs = nested(levels, open, close);
    Payload::from_bytes((text.replace("{\"@\":0}", &inputs) + "\n").as_bytes())
}

const DEPTHS: [usize; 7] = [65, 100, 127, 500, 1_000, 10_000, 100_000];

fn deeper() -> Check {
    check(
        "lines/nested-deeper",
        "A request that nests deeper, up to 100,000 levels, is served or refused, and the selector keeps \
         running.",
        &["PD-SEL-01"],
        |talk, _| {
            talk.canary("PD-SEL-01");
            for levels in DEPTHS {
                for (open, close) in [("[", "]"), ("{\"k\":", "}")] {
                    // The selector may start a driver or not. Either way the next script is for the next start.
                    let line = deep_line(levels, open, close, "POLICY_ONLY");
                    talk.send(line, Chunking::Whole, 1, Expect::new("PD-SEL-01", Allowed::Anything));
                    talk.allow_ms(2_000);
                }
            }
            talk.canary("PD-SEL-01");
        },
    )
}

fn deeper_in_fallback_mode() -> Check {
    check(
        "lines/nested-deeper-in-fallback-mode",
        "A request for the internal selector that nests deeper is answered or refused, and the selector \
         keeps running.",
        &["PD-SEL-01"],
        |talk, _| {
            talk.canary("PD-SEL-01");
            for levels in DEPTHS {
                let line = deep_line(levels, "[", "]", "FALLBACK_ONLY");
                let expect = Expect::new("PD-SEL-01", Allowed::Anything).starts("PD-SEL-01", 0);
                talk.send(line, Chunking::Whole, 1, expect);
            }
            talk.canary("PD-SEL-01");
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use peerproof_engine::data::json::{DecodeLimits, decode};
    use peerproof_engine::data::payload::Vars;

    #[test]
    fn lines_have_the_length_that_is_asked_for() {
        for unit in ["x", "€", "\\u0041"] {
            for bytes in [LINE_BYTES_MAX - 1, LINE_BYTES_MAX, LINE_BYTES_MAX + 1] {
                assert_eq!(padded(bytes, unit).len(&Vars::new()), bytes + 1, "{unit}");
            }
        }
    }

    #[test]
    fn requests_have_the_levels_that_are_asked_for() {
        for levels in [10, 64, 1_000] {
            let line = deep_line(levels, "{\"k\":", "}", "POLICY_ONLY").expand(&Vars::new()).unwrap();
            let decoded = decode(line.trim_ascii(), &DecodeLimits::default()).unwrap();
            assert_eq!(decoded.facts.depth, levels);
        }
    }
}
