//! Tests of slow calls, timeouts and the end of input, with a virtual clock.

use serde_json::json;

use super::peer::{Peer, code, request};

fn slow(ms: u64, timeout_ms: u64) -> String {
    request("peerproof.sleep", json!({ "ms": ms, "options": { "timeout_ms": timeout_ms } })) + "\n"
}

#[test]
fn a_slow_call_holds_up_nothing() {
    let mut peer = Peer::plain();
    peer.write(slow(1_000, 5_000).as_bytes());
    assert_eq!(peer.count(), 1);
    peer.sleep(999);
    assert_eq!(peer.lines().len(), 0);
    peer.sleep(1);
    assert_eq!(peer.messages()[0]["result"], json!({ "slept_ms": 1_000 }));
}

#[test]
fn without_concurrency_calls_queue_in_order() {
    let mut peer = Peer::with(|config| config.features.concurrent = false);
    let counter = request("peerproof.counter", json!({}));
    peer.write(format!("{}{counter}\n{}{counter}\n", slow(100, 5_000), slow(50, 5_000)).as_bytes());
    assert_eq!(peer.lines().len(), 0);
    assert!(!peer.wants_stdin());
    peer.sleep(100);
    assert_eq!(peer.lines().len(), 2);
    peer.close();
    peer.sleep(50);
    assert_eq!((peer.lines().len(), peer.exit), (2, Some(0)));
}

#[test]
fn a_call_that_takes_too_long_is_answered_once() {
    let mut peer = Peer::plain();
    peer.write(slow(500, 200).as_bytes());
    peer.sleep(199);
    assert_eq!(peer.lines().len(), 0);
    peer.sleep(1);
    let reply = peer.messages().remove(0);
    assert_eq!((code(&reply), reply["error"]["data"]["type"].as_str()), (-32000, Some("TIMEOUT")));
    peer.sleep(10_000);
    assert_eq!(peer.lines().len(), 0);
    peer.write(slow(200, 200).as_bytes());
    peer.sleep(200);
    assert!(peer.messages()[0].get("result").is_some(), "done in time");
}

#[test]
fn a_late_wake_does_not_turn_a_timeout_into_a_result() {
    let mut peer = Peer::plain();
    peer.write(slow(300, 200).as_bytes());
    peer.now += 1_000;
    assert_eq!(code(&peer.exchange("")[0]), -32000);
}

#[test]
fn the_default_is_thirty_seconds() {
    let mut peer = Peer::plain();
    peer.write((request("peerproof.sleep", json!({ "ms": 40_000 })) + "\n").as_bytes());
    peer.sleep(29_999);
    assert_eq!(peer.lines().len(), 0);
    peer.sleep(1);
    assert_eq!(code(&peer.messages()[0]), -32000);
}

#[test]
fn timeouts_out_of_range_are_refused() {
    for timeout in [json!(0), json!(-1), json!(600_001), json!(1.5), json!("1"), json!([])] {
        let params = json!({ "ms": 0, "options": { "timeout_ms": timeout } });
        assert_eq!(Peer::plain().code("peerproof.sleep", params), -32602);
    }
    for timeout in [json!(1), json!(600_000), json!(null), json!(1e3)] {
        let params = json!({ "ms": 0, "options": { "timeout_ms": timeout } });
        assert_eq!(Peer::plain().result("peerproof.sleep", params), json!({ "slept_ms": 0 }));
    }
}

#[test]
fn sleep_is_bounded() {
    let mut peer = Peer::with(|config| config.limits.sleep_ms_max = 50);
    assert_eq!(peer.code("peerproof.sleep", json!({ "ms": 51 })), -32602);
    peer.write(slow(50, 1_000).as_bytes());
    peer.sleep(50);
    assert_eq!(peer.messages()[0]["result"], json!({ "slept_ms": 50 }));
}

#[test]
fn at_the_end_short_work_is_finished_and_long_work_is_refused() {
    let mut peer = Peer::plain();
    for (ms, timeout_ms) in [(900, 5_000), (1_000, 5_000), (1_001, 5_000), (60_000, 300), (60_000, 30_000)] {
        peer.write(slow(ms, timeout_ms).as_bytes());
    }
    peer.close();
    let refused: Vec<_> = peer.messages().iter().map(code).collect();
    assert_eq!(refused, [-32001, -32001]);
    peer.sleep(899);
    assert_eq!(peer.messages().iter().map(code).collect::<Vec<_>>(), [-32000]);
    assert_eq!(peer.exit, None);
    peer.sleep(200);
    assert_eq!((peer.messages().len(), peer.exit), (2, Some(0)));
}

#[test]
fn paced_work_takes_its_time_and_is_finished_at_the_end_where_that_is_soon() {
    let task = |pace_ms: u64| {
        let options = json!({ "pace_ms": pace_ms });
        request("execute_task", json!({ "task_type": "analysis", "prompt": "x", "options": options })) + "\n"
    };
    let mut peer = Peer::plain();
    peer.write(task(10).as_bytes());
    assert_eq!(peer.lines().len(), 0);
    peer.write(task(10_000).as_bytes());
    peer.close();
    assert_eq!(peer.messages().iter().map(code).collect::<Vec<_>>(), [-32001]);
    peer.sleep(1_000);
    let done = peer.messages().remove(0);
    let took_ms = done["result"]["metadata"]["execution_time_ms"].as_u64().unwrap();
    assert!(took_ms > 0 && took_ms.is_multiple_of(10), "{done}");
    assert_eq!(peer.exit, Some(0));
}
