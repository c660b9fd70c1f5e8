//! The rate limit on the virtual clock, compressed lines, and log lines.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use peerproof_reference::json_rpc::RateConfig;
use serde_json::{Value, json};

use super::peer::{Peer, code, request};

fn limited(requests: usize, window_s: u64) -> Peer {
    Peer::with(|config| config.rate_limit = Some(RateConfig { requests, window_s }))
}

#[test]
fn so_many_requests_pass_and_after_the_wait_another() {
    let mut peer = limited(3, 60);
    for n in 1..=3 {
        assert_eq!(peer.count(), n);
        peer.sleep(1_000);
    }
    let reply = peer.call("peerproof.counter", json!({}));
    assert_eq!((code(&reply), &reply["id"]), (-32002, &json!(1)));
    let wait = reply["error"]["data"]["retry_after_ms"].as_u64().unwrap();
    assert_eq!(wait, 57_000);
    peer.sleep(wait - 1);
    assert_eq!(peer.code("peerproof.counter", json!({})), -32002);
    peer.sleep(1);
    assert_eq!(peer.count(), 4);
}

#[test]
fn refused_requests_count_where_that_is_chosen() {
    let mut peer = Peer::with(|config| {
        config.rate_limit = Some(RateConfig { requests: 1, window_s: 10 });
        config.choices.refused_counts = true;
    });
    peer.count();
    peer.sleep(9_000);
    let reply = peer.call("peerproof.counter", json!({}));
    assert_eq!(reply["error"]["data"]["retry_after_ms"], 10_000);
    peer.sleep(10_000);
    assert_eq!(peer.count(), 2);
}

#[test]
fn elements_and_notifications_count_and_malformed_messages_do_not() {
    let mut peer = limited(3, 60);
    code(&peer.line("nonsense"));
    code(&peer.line("{}"));
    let note = r#"{"jsonrpc":"2.0","method":"peerproof.counter"}"#;
    let call = request("peerproof.counter", json!({}));
    let reply = peer.line(&format!("[{note},{call},{note},{note},{call}]"));
    assert_eq!(reply[0]["result"], json!({ "count": 2 }));
    assert_eq!((reply.as_array().unwrap().len(), code(&reply[1])), (2, -32002));
    assert_eq!(peer.exchange(note), Vec::<Value>::new());
    peer.sleep(60_000);
    assert_eq!(peer.count(), 4);
}

fn packed(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn wrapped(packed: &[u8]) -> String {
    json!({ "jsonrpc": "2.0", "encoding": "gzip", "body": STANDARD.encode(packed) }).to_string()
}

fn gzip() -> Peer {
    Peer::with(|config| config.features.gzip = true)
}

#[test]
fn compressed_requests_are_answered_plainly() {
    let mut peer = gzip();
    let call = request("peerproof.counter", json!({}));
    assert_eq!(peer.line(&wrapped(&packed(call.as_bytes())))["result"], json!({ "count": 1 }));
    let batch = format!("[\n{call},\r\n{call}\n]");
    assert_eq!(peer.line(&wrapped(&packed(batch.as_bytes()))).as_array().unwrap().len(), 2);
    let spread = request("peerproof.echo", json!([1, 2])).replace("[1,2]", "[1,\n2]");
    assert_eq!(peer.line(&wrapped(&packed(spread.as_bytes())))["result"], json!([1, 2]));
    // An object with a method is a request, even with other members.
    let request = wrapped(b"").replacen('{', r#"{"method":"peerproof.counter","id":1,"#, 1);
    assert_eq!(peer.line(&request)["result"], json!({ "count": 4 }));
}

#[test]
fn wrappers_that_are_wrong_are_refused() {
    let call = request("peerproof.counter", json!({}));
    let good = packed(call.as_bytes());
    let nested = wrapped(&packed(wrapped(&good).as_bytes()));
    let mut flipped = good.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0x55;
    let trailing = [&good[..], b"x"].concat();
    for (line, expected) in [
        (nested, -32600),
        (wrapped(&good).replace("\"gzip\"", "\"br\""), -32600),
        (wrapped(&good).replace("\"gzip\"", "1"), -32600),
        (wrapped(&good).replace("\"body\"", "\"text\""), -32600),
        (r#"{"jsonrpc":"2.0","encoding":"gzip","body":[]}"#.to_owned(), -32600),
        (wrapped(&flipped), -32700),
        (wrapped(&trailing), -32700),
        (wrapped(&good[..good.len() - 1]), -32700),
        (wrapped(b""), -32700),
        (wrapped(&packed(b"")), -32700),
        (wrapped(&packed(b"{")), -32700),
        (r#"{"jsonrpc":"2.0","encoding":"gzip","body":"*"}"#.to_owned(), -32700),
    ] {
        let mut peer = gzip();
        assert_eq!(code(&peer.line(&line)), expected, "{line}");
        assert_eq!(peer.count(), 1);
    }
    let reply = gzip().line(&format!("[{}]", wrapped(&good)));
    assert_eq!(code(&reply[0]), -32600);
    assert_eq!(code(&Peer::plain().line(&wrapped(&good))), -32600, "not claimed");
}

#[test]
fn the_limit_holds_for_the_inflated_size() {
    let bare = r#"{"jsonrpc":"2.0","method":"peerproof.counter","id":1,"pad":""}"#;
    for (bytes, accepted) in [(1_000_000, true), (1_048_576, true), (1_048_577, false), (200_000_000, false)]
    {
        let mut text = bare.as_bytes()[..bare.len() - 2].to_vec();
        text.resize(bytes - 2, b'x');
        text.extend_from_slice(b"\"}");
        let reply = gzip().line(&wrapped(&packed(&text)));
        if accepted {
            assert_eq!(reply["result"], json!({ "count": 1 }));
        } else {
            assert_eq!(
                (code(&reply), &reply["error"]["data"]["type"]),
                (-32600, &json!("MESSAGE_TOO_LARGE"))
            );
        }
    }
}

#[test]
fn calls_are_logged_as_the_protocol_says() {
    let mut peer = Peer::with(|config| {
        config.logging = true;
        config.started_unix_ms = 1_705_314_600_000 - 1_000_000;
    });
    peer.count();
    peer.code("none", json!({}));
    peer.write((request("peerproof.sleep", json!({ "ms": 25 })) + "\n").as_bytes());
    peer.sleep(25);
    let text = String::from_utf8(std::mem::take(&mut peer.stderr)).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        lines[0],
        json!({
            "timestamp": "2024-01-15T10:30:00.000Z", "level": "INFO", "message": "RPC Request",
            "data": { "method": "peerproof.counter", "id": 1, "duration_ms": 0, "status": "success" }
        })
    );
    assert_eq!((&lines[1]["level"], &lines[1]["data"]["code"]), (&json!("WARN"), &json!(-32601)));
    assert_eq!((lines.len(), &lines[2]["data"]["duration_ms"]), (3, &json!(25)));
}

#[test]
fn notifications_have_their_time_as_well() {
    let mut peer = Peer::with(|config| config.logging = true);
    for timeout_ms in [10, 100] {
        let params = json!({ "ms": 25, "options": { "timeout_ms": timeout_ms } });
        let note = json!({ "jsonrpc": "2.0", "method": "peerproof.sleep", "params": params });
        assert_eq!(peer.exchange(&note.to_string()), Vec::<Value>::new());
    }
    peer.sleep(100);
    let text = String::from_utf8(std::mem::take(&mut peer.stderr)).unwrap();
    let data = |line: &str| serde_json::from_str::<Value>(line).unwrap()["data"].clone();
    let (late, done) = (data(text.lines().next().unwrap()), data(text.lines().nth(1).unwrap()));
    assert_eq!((&late["duration_ms"], &late["code"]), (&json!(10), &json!(-32000)));
    assert_eq!((&done["duration_ms"], &done["status"]), (&json!(25), &json!("success")));
}
