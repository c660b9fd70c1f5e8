//! Depth of nesting, and lengths that every server has to take.

use super::super::model::{DEPTH_CERTAIN, depth};
use super::super::talk::{Talk, call, good, quoted};
use peerproof_engine::check::Check;
use peerproof_engine::payload::Payload;
use peerproof_engine::plan::Chunking;

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    let nested = Check::new(
        "json_rpc/stdio/nesting/sixty-four-levels",
        "Params that make a message 64 levels deep (or as deep as the peer says) arrive as they were sent.",
        ["RPC-JSON-08"],
        "command",
        |facts, _| {
            let mut talk = Talk::about(facts, "RPC-JSON-08");
            let echo = talk.method("echo");
            // The message is the first level.
            let levels = depth(facts).max(DEPTH_CERTAIN) - 1;
            let arrays = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
            let objects = format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
            for (params, id) in [(arrays, "1"), (objects, "2")] {
                talk.send(&call(&echo, Some(&params), Some(id)));
            }
            Ok(talk.canary().finish())
        },
    )
    .roles(&["echo"]);
    let deep = |name: &str, title: &str, closed: bool| {
        Check::new(
            format!("json_rpc/stdio/nesting/{name}"),
            title,
            ["RPC-JSON-09"],
            "command",
            move |facts, _| {
                let mut talk = Talk::about(facts, "RPC-JSON-09");
                let head = format!(
                    "{{\"jsonrpc\":\"2.0\",\"method\":{},\"id\":\"deep\",\"params\":",
                    quoted("peerproof.no_such_method")
                );
                let mut payload = Payload::text(head).repeat("[", 100_000);
                if closed {
                    payload = payload.repeat("]", 100_000).then(Payload::text("}"));
                }
                Ok(talk.send_as(payload.then(Payload::text("\n")), Chunking::Whole).canary().finish())
            },
        )
    };
    let long = Check::new(
        "json_rpc/stdio/sizes/id-of-ten-thousand-characters",
        "A string id of 10,000 characters comes back whole.",
        ["RPC-ID-01"],
        "command",
        |facts, _| {
            let mut talk = Talk::about(facts, "RPC-ID-01");
            let id = quoted(&"é".repeat(10_000));
            Ok(talk.send(&good(facts, 1, &id)).canary().finish())
        },
    );
    let large = Check::new(
        "json_rpc/stdio/sizes/half-a-megabyte",
        "Params of 500,000 bytes arrive as they were sent, also where half of them come before the other half.",
        ["RPC-PARAMS-02"],
        "command",
        |facts, _| {
            let mut talk = Talk::about(facts, "RPC-PARAMS-02");
            let echo = talk.method("echo");
            let parts = call(&echo, Some("[\"#\"]"), Some("\"large\""));
            let (head, tail) = parts.split_once('#').unwrap_or_default();
            let payload = |id: &str| {
                Payload::text(head).repeat("0123456789", 50_000).then(Payload::text(format!("{}\n", tail.replace("large", id))))
            };
            talk.send_as(payload("whole"), Chunking::Whole);
            Ok(talk.send_as(payload("cut"), Chunking::Every(250_001)).canary().finish())
        },
    )
    .roles(&["echo"]);
    vec![
        nested,
        deep(
            "hundred-thousand-levels",
            "100,000 levels of nesting are answered or refused, and the server lives on.",
            true,
        ),
        deep(
            "hundred-thousand-open-brackets",
            "100,000 brackets that nothing closes are refused, and the server lives on.",
            false,
        ),
        long,
        large,
    ]
}
