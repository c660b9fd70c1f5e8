//! Workloads of a benchmark for toolhosts, and the check of their replies.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::role::role;
use super::talk::{Request, Talk, quoted};
use peerproof_engine::contract::boundary::workload::{ReplyVerifier, Shape, Workload};
use peerproof_engine::data::blame::Misconfigured;
use peerproof_engine::data::clause::Side;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::plan::{Plan, Session};

/// Clause for the exchanges that measure the harness itself.
const CLAUSE: &str = "TH-FRAME-01";

/// Part of a request that grows with its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fill {
    /// One long string that the echo returns.
    Text,
    /// Many records that the echo returns.
    Records,
    /// An unknown member, so that the reply is short.
    Padding,
}

struct Size {
    name: &'static str,
    meaning: &'static str,
    bytes: usize,
    variants: usize,
    fill: Fill,
}

const fn size(name: &'static str, bytes: usize, variants: usize, fill: Fill, meaning: &'static str) -> Size {
    Size { name, meaning, bytes, variants, fill }
}

/// Sizes for serve mode. Replies may have 1 MiB, so the largest echoes stay below it.
const SERVE: &[Size] = &[
    size("64B", 64, 8, Fill::Text, "smallest requests"),
    size("1KiB", 1 << 10, 4, Fill::Text, "a string of 1 KiB, echoed"),
    size("64KiB", 64 << 10, 2, Fill::Text, "a string of 64 KiB, echoed"),
    size("1MB-string", 1_000_000, 2, Fill::Text, "one string of 1,000,000 bytes, echoed"),
    size("1MB-records", 1_000_000, 2, Fill::Records, "records of 1,000,000 bytes in all, echoed"),
    size("1MiB-padded", 1 << 20, 2, Fill::Padding, "1 MiB with a member that is ignored, short replies"),
];

const RUN: &[Size] = &[
    size("64B", 64, 1, Fill::Text, "one process a request"),
    size(
        "10MiB-padded",
        10 << 20,
        1,
        Fill::Padding,
        "10 MiB with a member that is ignored, one process a request",
    ),
];

/// Shapes of load by size: the smallest requests, those that fit into a pipe many times, and all others.
fn shapes(command: &str, bytes: usize) -> Vec<Shape> {
    let (ping_pong, some, many) = (Shape::Window(1), Shape::Window(16), Shape::Window(64));
    match (command, bytes) {
        ("run", _) => vec![ping_pong],
        (_, 64) => {
            let open = [50, 80, 95].map(Shape::Open);
            [Shape::StartUp, ping_pong, some, many].into_iter().chain(open).chain([Shape::Soak]).collect()
        }
        (_, 1_024) => vec![ping_pong, some, many],
        _ => vec![ping_pong],
    }
}

/// Benchmark workloads for a provider with these facts.
///
/// # Errors
/// Fails if the peer is a dispatcher, or no tool is known to succeed.
pub(crate) fn workloads(facts: &Facts) -> Result<Vec<Workload>, Misconfigured> {
    if facts.side == Side::Consumer {
        return Err("only toolhosts are benchmarked: a dispatcher takes as long as what it starts".into());
    }
    let (echo, any) = (role(facts, "echo"), role(facts, "any"));
    let Some(tool) = echo.as_ref().or(any.as_ref()) else {
        return Err(
            "no tool is known to succeed: name one with --aid AID --input JSON, or map the role `echo` or \
                    `any` in the configuration"
                .into(),
        );
    };
    let input = if echo.is_some() { None } else { Some(input_of(tool.input.as_ref())) };
    let mut workloads = Vec::new();
    for (command, sizes) in [("serve", SERVE), ("run", RUN)] {
        if !facts.commands.contains(command) {
            continue;
        }
        for size in sizes {
            // Without an echo the reply is short, whatever the request.
            if input.is_some() && size.fill == Fill::Records {
                continue;
            }
            workloads.push(workload(command, size, &tool.aid, input.as_deref()));
        }
    }
    Ok(workloads)
}

fn input_of(configured: Option<&serde_json::Value>) -> String {
    configured.map_or_else(|| "{}".to_owned(), ToString::to_string)
}

/// Creates a workload. `input` is that of a tool without an echo.
fn workload(command: &str, size: &Size, aid: &str, input: Option<&str>) -> Workload {
    let line_feed = usize::from(command == "serve");
    let body = |variant: usize| -> (String, Option<Json>) {
        let bytes = size.bytes - line_feed;
        match (input, size.fill) {
            (Some(input), _) => (padded(&Request::aid(aid).input(input), bytes), None),
            (None, Fill::Padding) => {
                let input = format!("{{\"n\":{variant}}}");
                (padded(&Request::aid(aid).input(&input), bytes), parse(&input))
            }
            (None, Fill::Text) => {
                filled(aid, bytes, &|fill| format!("{{\"n\":\"{variant}{}\"}}", "x".repeat(fill)))
            }
            (None, Fill::Records) => filled(aid, bytes, &|fill| records(variant, fill)),
        }
    };
    let mut requests = Vec::new();
    let mut outputs = Vec::new();
    for variant in 0..size.variants {
        let (mut text, output) = body(variant);
        if line_feed > 0 {
            text.push('\n');
        }
        requests.push(text.into_bytes());
        outputs.push(output);
    }
    let placeholders = if command == "run" { vec![("aid".to_owned(), aid.to_owned())] } else { Vec::new() };
    Workload {
        name: format!("{command}/{}", size.name),
        meaning: size.meaning.to_owned(),
        session: Session {
            command: command.to_owned(),
            placeholders: placeholders.into_iter().collect(),
            ..Session::default()
        },
        requests,
        files: Vec::new(),
        one_shot: command == "run",
        echoes: input.is_none() && size.fill != Fill::Padding,
        shapes: shapes(command, size.bytes),
        judge: judge(outputs),
    }
}

/// Request padded to `bytes` bytes. A longer one stays unchanged.
fn padded(request: &Request, bytes: usize) -> String {
    let bare = request.body().expand(&BTreeMap::new()).unwrap_or_default();
    let room = "\"pad\":\"\",".len();
    let text = if bare.len() + room <= bytes {
        request.padded_to(bytes).expand(&BTreeMap::new()).unwrap_or_default()
    } else {
        bare
    };
    String::from_utf8(text).unwrap_or_default()
}

/// Echo request of `bytes` bytes (or the smallest possible), and its expected output. `input` creates an object of
/// about the requested length that ends in a string of letters.
fn filled(aid: &str, bytes: usize, input: &dyn Fn(usize) -> String) -> (String, Option<Json>) {
    let text = |input: &str| {
        let aid = quoted(aid);
        format!("{{\"aid\":{aid},\"input_json\":{}}}", quoted(input))
    };
    let least = text(&input(0)).len();
    let mut fill = bytes.saturating_sub(least);
    let mut made = input(fill);
    // Quotes grow when they are escaped: the excess is removed, and letters fill the gap.
    while fill > 0 && text(&made).len() > bytes {
        fill = fill.saturating_sub(text(&made).len() - bytes);
        made = input(fill);
    }
    let gap = bytes.saturating_sub(text(&made).len());
    made.insert_str(made.len() - "\"}".len(), &"x".repeat(gap));
    (text(&made), parse(&made))
}

/// Object of many records, with padding to about `bytes` bytes.
fn records(variant: usize, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 128);
    text.push_str("{\"records\":[");
    let mut id = variant;
    let mut next = String::new();
    loop {
        next.clear();
        if id > variant {
            next.push(',');
        }
        next.push_str(&format!(
            "{{\"id\":{id},\"name\":\"record {id}\",\"score\":{}.5,\"tags\":[true,null]}}",
            id % 97
        ));
        if text.len() + next.len() > bytes {
            break;
        }
        text.push_str(&next);
        id += 1;
    }
    let fill = bytes.saturating_sub(text.len());
    text.push_str("],\"fill\":\"");
    text.push_str(&"x".repeat(fill));
    text.push_str("\"}");
    text
}

fn parse(text: &str) -> Option<Json> {
    json::decode(text.as_bytes(), &DecodeLimits::default()).ok().map(|decoded| decoded.value)
}

/// Judges a reply: it must be a success with the expected output, if that is known.
fn judge(outputs: Vec<Option<Json>>) -> ReplyVerifier {
    Arc::new(move |variant, reply| {
        let shown = || String::from_utf8_lossy(&reply[..reply.len().min(120)]).into_owned();
        let decoded = json::decode(reply, &DecodeLimits::default())
            .map_err(|error| format!("the reply is not JSON ({error}): {}", shown()))?;
        let member = |name: &str| decoded.value.get(name);
        if member("ok").and_then(Json::as_bool) != Some(true) {
            return Err(format!("the reply is not a success: {}", shown()));
        }
        let Some(Some(expected)) = outputs.get(variant) else { return Ok(()) };
        let output = member("output_json").and_then(Json::as_str).and_then(parse);
        if output.as_ref() == Some(expected) {
            Ok(())
        } else {
            Err(format!("the reply is not the echo of its request: {}", shown()))
        }
    })
}

/// Conversation of this many plain requests with a serve process.
pub(crate) fn small_exchanges(facts: &Facts, exchanges: usize) -> Option<Plan> {
    let known = role(facts, "echo").or_else(|| role(facts, "any"));
    if !facts.commands.contains("serve") || known.is_none() {
        return None;
    }
    let mut talk = Talk::serve(facts);
    for _ in 0..exchanges {
        let (request, expect) = talk.good(CLAUSE);
        talk.send(request.line(), expect);
    }
    talk.finish();
    Some(talk.plan())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::full_facts;

    #[test]
    fn requests_have_their_sizes_and_differ() {
        let workloads = workloads(&full_facts::facts(Side::Provider)).unwrap();
        assert_eq!(workloads.len(), SERVE.len() + RUN.len());
        for (workload, size) in workloads.iter().zip(SERVE.iter().chain(RUN)) {
            let lengths: Vec<usize> = workload.requests.iter().map(Vec::len).collect();
            assert!(lengths.iter().all(|length| *length == size.bytes), "{}: {lengths:?}", workload.name);
            let mut different = workload.requests.clone();
            different.sort();
            different.dedup();
            assert_eq!(different.len(), size.variants, "{}", workload.name);
            let lines = workload.requests[0].iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(lines, usize::from(!workload.one_shot), "{}", workload.name);
        }
    }

    #[test]
    fn a_peer_with_one_tool_gets_padded_requests() {
        let mut facts = Facts::new(Side::Provider);
        facts.commands.insert("serve".to_owned());
        assert!(workloads(&facts).unwrap_err().to_string().contains("--aid"));
        facts.roles.insert("any".to_owned(), serde_json::json!({ "aid": "A", "input": { "q": 1 } }));
        let workloads = workloads(&facts).unwrap();
        assert_eq!(workloads.len(), SERVE.len() - 1);
        for workload in &workloads {
            assert!(!workload.echoes);
            assert_eq!(workload.request_bytes(), workload.requests[0].len());
            assert!(String::from_utf8_lossy(&workload.requests[0]).contains(r#""input_json":"{\"q\":1}""#));
        }
        facts.side = Side::Consumer;
        assert!(super::workloads(&facts).is_err());
    }

    #[test]
    fn only_the_echo_of_the_same_request_is_right() {
        let judge = judge(vec![parse("{\"n\":1}"), None]);
        let reply = |ok: &str, output: &str| format!("{{\"ok\":{ok},\"output_json\":{}}}", quoted(output));
        judge(0, reply("true", "{ \"n\" : 1.0 }").as_bytes()).unwrap();
        judge(1, reply("true", "{}").as_bytes()).unwrap();
        for wrong in
            [reply("true", "{\"n\":2}"), reply("false", "{\"n\":1}"), "{}".to_owned(), "x".to_owned()]
        {
            assert!(judge(0, wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn small_exchanges_are_a_plan() {
        let facts = full_facts::facts(Side::Provider);
        let plan = small_exchanges(&facts, 10).unwrap();
        assert_eq!(plan.steps.len(), 11);
        assert!(small_exchanges(&Facts::new(Side::Provider), 10).is_none());
    }
}
