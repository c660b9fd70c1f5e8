//! Calls of tools: arguments, results, progress, cancellation.

use peerproof_reference::mcp::Revision;
use serde_json::{Value, json};

use super::{code, newest, open, request, result, send, text};

fn call(id: i64, tool: &str, arguments: Value) -> String {
    request(id, "tools/call", &json!({ "name": tool, "arguments": arguments }))
}

#[test]
fn each_tool_does_what_it_says() {
    let mut peer = newest();
    assert_eq!(text(&mut peer, "echo", json!({ "text": "a" })), "a");
    assert_eq!(text(&mut peer, "blob", json!({ "bytes": 3 })), r#"{"data":"xxx"}"#);
    assert_eq!(text(&mut peer, "counter", json!({})), r#"{"count":1}"#);
    for params in [json!({ "name": "noargs" }), json!({ "name": "noargs", "arguments": null })] {
        assert_eq!(result(&mut peer, "tools/call", params)["isError"], false);
    }
    let failed = result(&mut peer, "tools/call", json!({ "name": "fail" }));
    assert_eq!(failed["isError"], true);
}

#[test]
fn structured_content_comes_with_its_text() {
    for revision in Revision::ALL {
        let mut peer = open(revision, &[]);
        let params = json!({ "name": "measure", "arguments": { "text": "é b" } });
        let result = result(&mut peer, "tools/call", params);
        let measured = json!({ "characters": 3, "words": 2 });
        let shown: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(shown, measured);
        let structured = (revision >= Revision::V25b).then_some(&measured);
        assert_eq!(result.get("structuredContent"), structured);
    }
}

#[test]
fn blocks_are_those_of_the_revision() {
    for (revision, kinds) in Revision::ALL.into_iter().zip([
        &["text", "image", "resource"][..],
        &["text", "image", "audio", "resource"],
        &["text", "image", "audio", "resource_link", "resource"],
        &["text", "image", "audio", "resource_link", "resource"],
    ]) {
        let result = result(&mut open(revision, &[]), "tools/call", json!({ "name": "media" }));
        let blocks = result["content"].as_array().unwrap().clone();
        assert_eq!(blocks.iter().map(|block| block["type"].as_str().unwrap()).collect::<Vec<_>>(), kinds);
    }
}

#[test]
fn wrong_arguments_are_no_success() {
    let mut peer = newest();
    for (tool, arguments) in [
        ("echo", json!({})),
        ("echo", json!({ "text": 1 })),
        ("echo", json!({ "text": "a", "times": 4 })),
        ("echo", json!({ "text": "a", "tone": "soft" })),
        ("echo", json!({ "text": "a", "kind": "blob" })),
        ("sleep", json!({ "ms": -1 })),
        ("measure", json!({ "text": null })),
    ] {
        let params = json!({ "name": tool, "arguments": arguments });
        assert_eq!(result(&mut peer, "tools/call", params)["isError"], true, "{tool} {arguments}");
    }
    for params in [
        json!({}),
        json!({ "name": 1 }),
        json!({ "name": "none" }),
        json!({ "name": "echo", "arguments": ["a"] }),
        json!({ "name": "echo", "arguments": "a" }),
    ] {
        assert_eq!(code(&mut peer, "tools/call", params), -32602);
    }
}

#[test]
fn slow_calls_hold_up_nothing_and_keep_their_texts() {
    let mut peer = newest();
    let lines = [
        call(1, "sleep", json!({ "ms": 50, "text": "a" })),
        call(2, "sleep", json!({ "ms": 20, "text": "b" })),
    ];
    assert_eq!(send(&mut peer, &lines.join("\n")), Vec::<Value>::new());
    assert_eq!(result(&mut peer, "ping", json!({})), json!({}));
    peer.sleep(50);
    let texts: Vec<_> = peer
        .messages()
        .iter()
        .map(|m| (m["id"].clone(), m["result"]["content"][0]["text"].clone()))
        .collect();
    assert_eq!(texts, [(json!(2), json!("b")), (json!(1), json!("a"))]);
}

#[test]
fn progress_grows_and_ends_before_the_answer() {
    let mut peer = newest();
    for token in [json!("t"), json!(0), json!(7)] {
        let meta = json!({ "progressToken": token });
        let params = json!({ "name": "sleep", "arguments": { "ms": 10 }, "_meta": meta });
        let mut messages = send(&mut peer, &request(1, "tools/call", &params));
        peer.sleep(10);
        messages.extend(peer.messages());
        assert_eq!(messages.len(), 5);
        for (message, progress) in messages.iter().zip(1..5) {
            assert_eq!(
                message["params"],
                json!({ "progressToken": token, "progress": progress, "total": 4 })
            );
        }
        peer.sleep(1_000);
        assert_eq!(peer.messages(), Vec::<Value>::new());
    }
    let params = json!({ "name": "sleep", "arguments": { "ms": 10 }, "_meta": { "progressToken": [1] } });
    assert_eq!(send(&mut peer, &request(1, "tools/call", &params)), Vec::<Value>::new());
}

#[test]
fn a_cancelled_call_is_not_answered() {
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    for (choices, answers) in [(&[][..], 0), (&["mcp_cancelled=result"], 1)] {
        let mut peer = open(Revision::V25c, choices);
        send(&mut peer, &call(1, "sleep", json!({ "ms": 100 })));
        assert_eq!(send(&mut peer, cancel), Vec::<Value>::new());
        peer.sleep(1_000);
        assert_eq!(peer.messages().len(), answers);
        assert_eq!(send(&mut peer, cancel), Vec::<Value>::new());
        result(&mut peer, "ping", json!({}));
    }
}

#[test]
fn calls_under_way_at_the_end_of_input_are_finished_or_dropped() {
    for (choices, ms, answers) in [(&[][..], 500, 1), (&[], 50_000, 0), (&["mcp_eof_pending=drop"], 500, 0)] {
        let mut peer = open(Revision::V25c, choices);
        send(&mut peer, &call(1, "sleep", json!({ "ms": ms })));
        peer.close();
        peer.sleep(1_000);
        assert_eq!((peer.messages().len(), peer.exit), (answers, Some(0)));
    }
}
