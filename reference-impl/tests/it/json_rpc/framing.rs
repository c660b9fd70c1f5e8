//! Lines: sizes at the edges, resynchronisation, chunking, pipelining, the end.

use serde_json::{Value, json};

use super::peer::{Peer, code, request};

/// Counter request of exactly this many bytes.
fn padded(bytes: usize) -> String {
    let bare = r#"{"jsonrpc":"2.0","method":"peerproof.counter","id":1,"pad":""}"#;
    let pad = "x".repeat(bytes - bare.len());
    bare.replace("\"pad\":\"\"", &format!("\"pad\":\"{pad}\""))
}

#[test]
fn sizes_at_the_edges() {
    for bytes in [999_999, 1_000_000, 1_048_575, 1_048_576] {
        let mut peer = Peer::plain();
        assert_eq!(padded(bytes).len(), bytes);
        assert_eq!(peer.line(&padded(bytes))["result"], json!({ "count": 1 }));
    }
    for bytes in [1_048_577, 2_000_000, 5_000_000] {
        let mut peer = Peer::plain();
        let reply = peer.line(&padded(bytes));
        assert_eq!((code(&reply), &reply["id"]), (-32600, &Value::Null));
        assert_eq!(reply["error"]["data"]["type"], "MESSAGE_TOO_LARGE");
        assert_eq!(peer.count(), 1);
    }
}

#[test]
fn an_over_long_line_is_answered_at_the_limit_and_read_on_after_its_end() {
    let mut peer = Peer::plain();
    let block = vec![b'['; 100_000];
    for _ in 0..300 {
        peer.write(&block);
    }
    assert_eq!(code(&peer.messages()[0]), -32600);
    peer.write(b"{\"jsonrpc\":\"2.0\",\"method\":\"peerproof.counter\",\"id\":1}");
    assert_eq!(peer.lines().len(), 0);
    peer.write(b"\n");
    assert_eq!(peer.count(), 1);
}

#[test]
fn a_result_that_is_too_large_is_an_internal_error() {
    let mut peer = Peer::plain();
    let fits = 1_048_576 - r#"{"jsonrpc":"2.0","result":{"data":""},"id":1}"#.len();
    assert!(peer.result("peerproof.blob", json!({ "bytes": fits }))["data"].as_str().unwrap().len() == fits);
    for bytes in [fits + 1, 2_000_000, 1 << 60] {
        assert_eq!(peer.code("peerproof.blob", json!({ "bytes": bytes })), -32603);
    }
}

#[test]
fn an_id_that_leaves_no_room_is_not_echoed() {
    let line = |bytes: usize| {
        let id = "i".repeat(bytes);
        format!(r#"{{"jsonrpc":"2.0","method":"none","id":"{id}"}}"#)
    };
    assert_eq!(Peer::plain().line(&line(1_000_000))["id"].as_str().unwrap().len(), 1_000_000);
    let reply = Peer::plain().line(&line(1_048_500));
    assert_eq!((code(&reply), &reply["id"]), (-32601, &Value::Null));
}

#[test]
fn any_chunking_means_the_same() {
    let stream = format!(
        "{}\r\n\n[1,\"é€😀\"]\n{}\nnull\n[{},{}]\n",
        request("peerproof.echo", json!({ "é": "😀" })),
        request("peerproof.counter", json!({})),
        request("peerproof.counter", json!({})),
        request("peerproof.echo", json!([])),
    );
    let run = |size: usize| {
        let mut peer = Peer::plain();
        stream.as_bytes().chunks(size).for_each(|chunk| peer.write(chunk));
        peer.lines()
    };
    let whole = run(stream.len());
    assert_eq!(whole.len(), 5);
    for size in 1..40 {
        assert_eq!(run(size), whole, "chunks of {size}");
    }
}

#[test]
fn a_thousand_pipelined_requests_are_answered_once_each() {
    let mut peer = Peer::plain();
    let mut stream = String::new();
    for id in 0..1_000 {
        let (method, params) = match id % 4 {
            0 => ("peerproof.sleep", json!({ "ms": id % 7 })),
            1 => ("none", json!({})),
            2 => ("peerproof.blob", json!({ "bytes": 3_000 })),
            _ => ("peerproof.counter", json!({})),
        };
        stream
            .push_str(&json!({ "jsonrpc": "2.0", "method": method, "params": params, "id": id }).to_string());
        stream.push('\n');
    }
    peer.write(stream.as_bytes());
    peer.sleep(10);
    let mut ids: Vec<_> = peer.messages().iter().map(|reply| reply["id"].as_u64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..1_000).collect::<Vec<_>>());
    assert!(peer.write_bytes_max < 300_000, "replies are handed over as they come: {}", peer.write_bytes_max);
    assert!(peer.wants_stdin());
}

#[test]
fn a_full_server_leaves_the_rest_unread_until_something_is_done() {
    let mut peer = Peer::with(|config| config.limits.rpc_pending_max = 3);
    for id in 0..3 {
        assert!(peer.wants_stdin());
        peer.write(format!("{}\n", request("peerproof.sleep", json!({ "ms": 100 + id }))).as_bytes());
    }
    assert!(!peer.wants_stdin());
    peer.sleep(100);
    assert_eq!(peer.messages().len(), 1);
    assert!(peer.wants_stdin());
    peer.close();
    peer.sleep(2);
    assert_eq!((peer.messages().len(), peer.exit), (2, Some(0)));
}

#[test]
fn held_bytes_are_bounded() {
    let mut peer = Peer::with(|config| config.limits.rpc_pending_bytes_max = 10_000);
    let id = "i".repeat(4_000);
    let line = format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"peerproof.sleep\",\"params\":{{\"ms\":50}},\"id\":\"{id}\"}}\n"
    );
    peer.write(line.repeat(10).as_bytes());
    assert!(!peer.wants_stdin());
    // Three calls run at a time.
    for expected in [3, 3, 3, 1] {
        peer.sleep(50);
        assert_eq!(peer.lines().len(), expected);
    }
    assert!(peer.wants_stdin());
}

#[test]
fn what_tasks_and_batches_hold_counts() {
    let task = |prompt: &str| {
        let options = json!({ "stream": true, "pace_ms": 1_000 });
        request("execute_task", json!({ "task_type": "analysis", "prompt": prompt, "options": options }))
    };
    let blob = |bytes: usize| {
        let call = |method: &str, params: Value| -> Value {
            json!({ "jsonrpc": "2.0", "method": method, "params": params, "id": 1 })
        };
        let (blob, sleep) = (json!({ "bytes": bytes }), json!({ "ms": 50 }));
        json!([call("peerproof.blob", blob), call("peerproof.sleep", sleep)]).to_string()
    };
    for (line, wants_more) in
        [(task("analyse"), true), (task(&"x".repeat(10_000)), false), (blob(10), true), (blob(10_000), false)]
    {
        let mut peer = Peer::with(|config| config.limits.rpc_pending_bytes_max = 10_000);
        peer.write(format!("{line}\n").as_bytes());
        assert_eq!(peer.wants_stdin(), wants_more, "{line:.200}");
        peer.sleep(60_000);
        assert!(peer.wants_stdin());
        assert!(!peer.messages().is_empty());
    }
}

#[test]
fn what_tasks_say_at_one_time_is_handed_over_as_it_comes() {
    let mut peer = Peer::with(|config| config.limits.output_batch_bytes = 2_000);
    let options = json!({ "stream": true, "pace_ms": 10 });
    let task = json!({ "task_type": "analysis", "prompt": "analyse", "options": options });
    peer.write((request("execute_task", task) + "\n").repeat(50).as_bytes());
    peer.sleep(1_000);
    let done = peer.messages().iter().filter(|message| message.get("result").is_some()).count();
    assert_eq!(done, 50);
    assert!(peer.write_bytes_max < 10_000, "{}", peer.write_bytes_max);
}

#[test]
fn termination_ends_it() {
    let mut peer = Peer::plain();
    peer.write(format!("{}\n", request("peerproof.sleep", json!({ "ms": 100 }))).as_bytes());
    peer.terminate();
    assert_eq!((peer.exit, peer.lines().len()), (Some(0), 0));
}
