//! Answers that are streamed.

use super::super::super::client::expect::Allowed;
use super::super::super::client::scenario::Call;
use super::super::super::client::script::{Deed, error, result};
use super::check;
use peerproof_engine::check::Check;

const STREAM: &str = "RPC-CLIENT-21";

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    let mut checks =
        vec![whole("three-chunks", 3), whole("no-chunk", 0), failed(), two(), afterwards(), stray()];
    checks.extend(BROKEN.iter().map(|(name, lines)| broken(name, lines)));
    checks
}

fn start(stream: &str) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"stream_start\",\"params\":{{\"stream_id\":\"{stream}\",\"task_id\":$id }}}}"
    )
}

fn data(stream: &str, sequence: u64) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"stream_data\",\"params\":{{\"stream_id\":\"{stream}\",\"chunk\":\"part {sequence}\",\"sequence\":{sequence}}}}}"
    )
}

fn end(stream: &str, total: u64) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"stream_end\",\"params\":{{\"stream_id\":\"{stream}\",\"total_chunks\":{total}}}}}"
    )
}

fn lines(stream: &str, chunks: u64) -> Vec<String> {
    let mut lines = vec![start(stream)];
    lines.extend((1..=chunks).map(|sequence| data(stream, sequence)));
    lines.push(end(stream, chunks));
    lines
}

fn deeds(lines: &[String]) -> Vec<Deed> {
    lines.iter().map(|line| Deed::line(line)).collect()
}

fn whole(name: &str, chunks: u64) -> Check {
    check(
        &format!("stream/{name}"),
        "A whole stream is told by its number of chunks and stream_ok.",
        &[STREAM],
        move |scene, _| {
            scene.call(Call::new("s"), [Allowed::result("1").streamed(chunks, true)]);
            let mut said = lines("stream_001", chunks);
            said.push(result("1"));
            scene.on("s", deeds(&said));
        },
    )
}

fn failed() -> Check {
    check(
        "stream/then-an-error",
        "A stream that was ended before an error is whole.",
        &[STREAM],
        |scene, _| {
            let object = r#"{"code":-32000,"message":"Execution failed","data":{"type":"EXECUTION_ERROR"}}"#;
            scene.call(Call::new("s"), [Allowed::error(object).streamed(2, true)]);
            let mut said = lines("stream_001", 2);
            said.push(error(object));
            scene.on("s", deeds(&said));
        },
    )
}

fn two() -> Check {
    check("stream/two-at-once", "Streams of two calls are told apart.", &[STREAM], |scene, _| {
        for (name, chunks) in [("s", 3), ("t", 2)] {
            scene.call(Call::new(name), [Allowed::result(&chunks.to_string()).streamed(chunks, true)]);
            let mut said = lines(name, chunks);
            said.push(result(&chunks.to_string()));
            let slowly = deeds(&said).into_iter().zip(0..).map(|(deed, n)| deed.in_ms(30 * n));
            scene.on(name, slowly.collect::<Vec<_>>());
        }
    })
}

fn afterwards() -> Check {
    check(
        "stream/after-the-answer",
        "What is streamed after the answer changes nothing.",
        &[STREAM],
        |scene, _| {
            scene.call(Call::new("s"), [Allowed::result("1").streamed(1, true)]);
            let mut said = lines("stream_001", 1);
            said.extend([result("1"), data("stream_001", 2), end("stream_001", 9)]);
            scene.on("s", deeds(&said));
            scene.call(Call::new("plain").after("s"), [Allowed::result("2").attempts(1)]);
            scene.on("plain", [Deed::line(&data("stream_001", 3)), Deed::line(&result("2")).in_ms(50)]);
        },
    )
}

/// What a broken stream is made of: `s`tart, `1`–`9` data, `e`nd; the total stands behind the end.
const BROKEN: &[(&str, &str)] = &[
    ("gap", "s13e2"),
    ("first-chunk-is-two", "s2e1"),
    ("chunk-twice", "s112e3"),
    ("chunks-out-of-order", "s213e3"),
    ("wrong-total", "s12e3"),
    ("without-end", "s12"),
    ("start-twice", "ss12e2"),
    ("start-again-behind-a-chunk", "s1s2e2"),
];

/// A chunk between a correct end and the response: a stream that is whole all the same, or one that is not.
fn stray() -> Check {
    check(
        "stream/chunk-after-the-end",
        "A stray chunk after a correct end does not take the result away.",
        &[STREAM],
        |scene, _| {
            let whole = |chunks: u64| Allowed::result("1").streamed(chunks, true);
            scene.call(Call::new("s"), [whole(1), whole(2), Allowed::result("1").stream_broken()]);
            scene.on("s", deeds(&lines_of("s1e12")));
        },
    )
}

fn broken(name: &str, form: &'static str) -> Check {
    check(
        &format!("stream/{name}"),
        "A stream that is not whole is told by stream_ok, and the result counts all the same.",
        &[STREAM],
        |scene, _| {
            scene.call(Call::new("s"), [Allowed::result("1").stream_broken()]);
            scene.on("s", deeds(&lines_of(form)));
        },
    )
}

/// The messages of a stream of this form, and a result.
fn lines_of(form: &str) -> Vec<String> {
    let mut said = Vec::new();
    let mut signs = form.chars();
    while let Some(sign) = signs.next() {
        said.push(match sign {
            's' => start("x"),
            'e' => end("x", signs.next().and_then(|total| total.to_digit(10)).unwrap_or_default().into()),
            number => data("x", number.to_digit(10).unwrap_or_default().into()),
        });
    }
    said.push(result("1"));
    said
}
