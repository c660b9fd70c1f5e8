//! Batches beyond the examples of the specification.

use serde_json::{Value, json};

use super::peer::{Peer, code};

fn call(method: &str, params: Value, id: u64) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params, "id": id })
}

#[test]
fn one_element_stays_an_array() {
    let reply = Peer::plain().line(&json!([call("peerproof.echo", json!([1]), 1)]).to_string());
    assert_eq!(reply, json!([{ "jsonrpc": "2.0", "result": [1], "id": 1 }]));
}

#[test]
fn elements_fail_one_by_one() {
    let mut peer = Peer::plain();
    let batch = json!([
        call("peerproof.counter", json!({}), 1),
        { "jsonrpc": "2.0", "method": "peerproof.counter" },
        [call("peerproof.counter", json!({}), 2)],
        [],
        null,
        call("none", json!({}), 3),
        { "jsonrpc": "2.0", "method": "none" },
        { "jsonrpc": "2.0", "method": "peerproof.counter", "params": 5, "id": 4 },
        call("peerproof.counter", json!({}), 1),
    ]);
    let reply = peer.line(&batch.to_string());
    let seen: Vec<_> =
        reply.as_array().unwrap().iter().map(|r| (r["error"]["code"].clone(), r["id"].clone())).collect();
    assert_eq!(
        json!(seen),
        json!([
            [null, 1],
            [-32600, null],
            [-32600, null],
            [-32600, null],
            [-32601, 3],
            [-32600, 4],
            [null, 1]
        ])
    );
    assert_eq!(peer.count(), 4);
}

#[test]
fn slow_elements_hold_up_their_own_batch_alone() {
    let mut peer = Peer::plain();
    let batch = json!([
        call("peerproof.sleep", json!({ "ms": 100 }), 1),
        call("peerproof.echo", json!({}), 2),
        call("peerproof.sleep", json!({ "ms": 50 }), 3),
        { "jsonrpc": "2.0", "method": "peerproof.sleep", "params": { "ms": 900 } },
        call("peerproof.sleep", json!({ "ms": 500, "options": { "timeout_ms": 70 } }), 4),
    ]);
    assert_eq!(peer.exchange(&batch.to_string()), Vec::<Value>::new());
    assert_eq!(peer.count(), 1);
    peer.sleep(99);
    assert_eq!(peer.lines().len(), 0);
    peer.sleep(1);
    let replies = peer.messages();
    assert_eq!(replies.len(), 1);
    let mut ids: Vec<_> = replies[0].as_array().unwrap().iter().map(|r| r["id"].as_u64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3, 4]);
    peer.sleep(10_000);
    assert_eq!(peer.lines().len(), 0);
}

#[test]
fn large_batches_work_up_to_the_limit() {
    let mut peer = Peer::plain();
    let of = |count: usize| format!("[{}]", vec!["1"; count].join(","));
    let reply = peer.line(&of(10_000));
    assert_eq!(reply.as_array().unwrap().len(), 10_000);
    let reply = peer.line(&of(10_001));
    assert_eq!((code(&reply), &reply["id"]), (-32600, &Value::Null));
}

#[test]
fn a_batch_reply_keeps_within_a_message() {
    let mut peer = Peer::plain();
    let calls: Vec<_> = (0..10).map(|id| call("peerproof.blob", json!({ "bytes": 300_000 }), id)).collect();
    peer.write(format!("{}\n", json!(calls)).as_bytes());
    assert!(peer.stdout.len() <= (1 << 20) + 1, "{}", peer.stdout.len());
    let reply = peer.messages().remove(0);
    let replies = reply.as_array().unwrap();
    let ids: Vec<_> = replies.iter().map(|reply| reply["id"].as_u64().unwrap()).collect();
    assert_eq!(ids, (0..10).collect::<Vec<_>>());
    let results = replies.iter().filter(|reply| reply.get("result").is_some()).count();
    assert_eq!(results, 3);
    assert!(replies.iter().filter(|reply| reply.get("error").is_some()).all(|reply| code(reply) == -32603));
}

#[test]
fn without_batches_an_array_is_refused_once() {
    let mut peer = Peer::with(|config| config.features.batch = false);
    let batch = json!([call("peerproof.counter", json!({}), 1), call("peerproof.counter", json!({}), 2)]);
    let reply = peer.line(&batch.to_string());
    assert_eq!((code(&reply), &reply["id"]), (-32600, &Value::Null));
    assert_eq!(peer.count(), 1);
}
