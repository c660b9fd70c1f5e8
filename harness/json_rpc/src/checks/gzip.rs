//! Compressed messages: each case as a line that wraps one, and as a body with `Content-Encoding: gzip`.
//!
//! The words that begin with `@` are those of [`super::super::seal`].

use base64::Engine as _;

use super::super::server::MEMORY;
use super::super::talk::{Talk, call, good, quoted};
use peerproof_engine::carriage::{Carriage, Framing, HTTP};
use peerproof_engine::check::Check;
use peerproof_engine::facts::Facts;
use peerproof_engine::memory::{IDLE, INPUTS, PIECE_BYTES, sample};
use peerproof_engine::packing::Packing;
use peerproof_engine::payload::Payload;
use peerproof_engine::plan::Chunking;

/// Time for a slow peer to inflate so much, ms.
const LARGE_MS: u64 = 10_000;

/// How a compressed message travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// A line that wraps it.
    Line,
    /// The body of a POST.
    Body,
}

impl Way {
    fn command(self) -> &'static str {
        match self {
            Self::Line => "command",
            Self::Body => HTTP,
        }
    }

    /// Sends a text in a compressed form and waits for what has to come.
    fn send(self, talk: &mut Talk<'_>, text: &str, packing: Packing) {
        match self {
            // Known by its word only, so that it is not counted in what is due.
            Self::Line => {
                let line = wrapper(&word(packing, text)) + "\n";
                talk.push(Payload::text(line), Chunking::Whole, 1);
            }
            Self::Body => {
                let body = Payload::text(format!("{text}\n"));
                talk.carry(body, Chunking::Whole, Carriage::post().gzip(packing));
            }
        }
    }
}

type Case = fn(&mut Talk<'_>, &Facts, Way);

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    let check = |way: Way, name: &str, title: &str, clause: &'static str, send: Case| {
        let mode = if way == Way::Line { "stdio" } else { "http" };
        let id = format!("json_rpc/{mode}/gzip/{name}");
        let check = Check::new(id, title, [clause], way.command(), move |facts, _| {
            let mut talk = Talk::about(facts, clause).over(way.command());
            talk.canary();
            send(&mut talk, facts, way);
            Ok(talk.canary().finish())
        });
        let check = check.feature("gzip");
        if way == Way::Body { check.on_process() } else { check }
    };
    let mut checks = Vec::new();
    for way in [Way::Line, Way::Body] {
        checks.extend([
            check(
                way,
                "requests",
                "Compressed requests are answered as plain ones are, by plain responses.",
                "RPC-GZIP-01",
                requests,
            ),
            check(way, "batch", "A compressed batch is answered by an array.", "RPC-GZIP-01", batch)
                .also_feature("batch"),
            check(
                way,
                "half-a-megabyte",
                "A compressed request of 500,000 bytes is answered, for limits count what it inflates to.",
                "RPC-GZIP-01",
                |talk, facts, way| {
                    let text = good(facts, 1, "1");
                    way.send(talk, &text, Packing::PaddedTo(500_000));
                    way.send(talk, &text.replacen('{', &format!("{{\"pad\":\"{}\",", "é".repeat(9_000)), 1), Packing::Whole);
                },
            ),
            check(
                way,
                "inflated-size",
                "Compressed messages that inflate to 1,048,578 bytes, to twice that and to 8 MiB are refused with -32600.",
                "RPC-GZIP-02",
                |talk, facts, way| {
                    for (n, bytes) in [1_048_578, 2_097_152, 8 << 20].into_iter().enumerate() {
                        let text = good(facts, 1, &quoted(&format!("large{n}")));
                        way.send(talk, &text, Packing::PaddedTo(bytes));
                        talk.canary();
                    }
                },
            ),
            check(
                way,
                "corrupt",
                "Compressed data that is cut, changed, no gzip, or wraps no JSON is answered -32700.",
                "RPC-GZIP-03",
                |talk, facts, way| {
                    for packing in [Packing::WrongSum, Packing::NoSum, Packing::Cut, Packing::Not] {
                        way.send(talk, &good(facts, 1, &quoted(&packing.word())), packing);
                        talk.canary();
                    }
                    way.send(talk, "{\"jsonrpc\":", Packing::Whole);
                },
            ),
            bomb(way),
        ]);
    }
    checks.push(undeclared());
    checks.extend([
        check(
            Way::Line,
            "no-base64",
            "A wrapped body that is no base64, empty, or the head of a gzip stream is answered -32700.",
            "RPC-GZIP-03",
            |talk, _, _| {
                for body in ["\"no base64!\"", "\"bm8gZ3ppcA==\"", "\"\"", "\"H4sIAAAAAAAA\""] {
                    talk.send(&wrapper(body)).canary();
                }
            },
        ),
        check(
            Way::Line,
            "nested",
            "A compressed message within a compressed message is refused with -32600.",
            "RPC-GZIP-04",
            |talk, facts, _| {
                talk.send(&wrapped(&wrapped(&good(facts, 1, "\"inner\""))));
            },
        ),
        check(
            Way::Line,
            "in-a-batch",
            "A compressed message within a batch is refused with -32600, and its neighbour is answered.",
            "RPC-GZIP-04",
            |talk, facts, _| {
                talk.send(&format!("[{},{}]", wrapped(&good(facts, 1, "1")), good(facts, 2, "2")));
            },
        )
        .also_feature("batch"),
        check(
            Way::Line,
            "shapes",
            "A wrapper without a body, or with another encoding, is refused.",
            "RPC-GZIP-04",
            |talk, facts, _| {
                let body = word(Packing::Whole, &good(facts, 1, "1"));
                talk.send("{\"jsonrpc\":\"2.0\",\"encoding\":\"gzip\"}");
                talk.send(&format!("{{\"jsonrpc\":\"2.0\",\"encoding\":\"br\",\"body\":{body}}}"));
                talk.send("{\"jsonrpc\":\"2.0\",\"encoding\":\"gzip\",\"body\":[1]}");
                talk.send(&call("x", None, Some("\"plain\"")));
            },
        ),
        check(
            Way::Body,
            "content-encoding",
            "A body with `Content-Encoding: gzip` is accepted, or answered 415.",
            "RPC-GZIP-06",
            |talk, facts, way| way.send(talk, &good(facts, 1, "1"), Packing::Whole),
        ),
    ]);
    checks
}

/// A compressed message for a server that does not say that it takes any.
fn undeclared() -> Check {
    Check::new(
        "json_rpc/stdio/gzip/undeclared",
        "A server that does not declare compression refuses a compressed message with -32600.",
        ["RPC-GZIP-07"],
        "command",
        |facts, _| {
            if facts.claims("gzip") {
                return Err("declared: this server says that it takes compressed messages".to_owned());
            }
            let mut talk = Talk::about(facts, "RPC-GZIP-07");
            let packed = Packing::Whole.pack(good(facts, 1, "\"packed\"").as_bytes());
            let body = packed.map_err(|error| error.to_string())?;
            let body = base64::engine::general_purpose::STANDARD.encode(body);
            Ok(talk.canary().send(&wrapper(&quoted(&body))).canary().finish())
        },
    )
}

fn requests(talk: &mut Talk<'_>, facts: &Facts, way: Way) {
    for id in ["1", "\"é😀\""] {
        way.send(talk, &good(facts, 1, id), Packing::Whole);
    }
    match way {
        Way::Line => {
            talk.send(&format!(
                " {{ \"body\" : {} , \"encoding\":\"gzip\",\"jsonrpc\":\"2.0\",\"more\":1}}",
                word(Packing::Whole, &good(facts, 2, "2"))
            ));
        }
        Way::Body => {
            let how = Carriage::post().gzip(Packing::Whole).framing(Framing::Chunked(7));
            talk.carry(Payload::text(good(facts, 2, "2") + "\n"), Chunking::Whole, how);
        }
    }
}

fn batch(talk: &mut Talk<'_>, facts: &Facts, way: Way) {
    let batch = format!("[{},{}]", good(facts, 1, "1"), good(facts, 2, "\"2\""));
    way.send(talk, &batch, Packing::Whole);
}

/// Data of little that inflates to much.
fn bomb(way: Way) -> Check {
    let mode = if way == Way::Line { "stdio" } else { "http" };
    Check::new(
        format!("json_rpc/{mode}/gzip/memory-while-refusing-100-mb"),
        "Refusing what inflates to 20 MB and to 100 MB takes at most 64 MiB of memory, and the larger no more.",
        ["RPC-GZIP-05", "RPC-GZIP-02"],
        way.command(),
        move |facts, _| {
            let mut talk = Talk::about(facts, "RPC-GZIP-02").over(way.command());
            talk.canary();
            talk.act(sample(IDLE));
            for (pieces, label) in INPUTS {
                let text = good(facts, 1, &quoted(label));
                way.send(&mut talk, &text, Packing::PaddedTo(u64::from(pieces) * PIECE_BYTES));
                talk.allow_ms(LARGE_MS).canary().allow_ms(LARGE_MS);
                talk.act(sample(label));
            }
            let mut plan = talk.finish();
            plan.expect = serde_json::json!({ MEMORY: "RPC-GZIP-05" });
            Ok(plan)
        },
    )
    .feature("gzip")
    .exclusive()
}

/// A word that stands for a compressed form of a text, as a JSON string.
fn word(packing: Packing, text: &str) -> String {
    quoted(&format!("@gzip{}:{text}", packing.word()))
}

fn wrapper(body: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"encoding\":\"gzip\",\"body\":{body}}}")
}

/// A compressed message.
fn wrapped(text: &str) -> String {
    wrapper(&word(Packing::Whole, text))
}
