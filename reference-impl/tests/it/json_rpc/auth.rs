//! Tests of signed messages with a virtual clock.

use peerproof_reference::json_rpc::{AuthConfig, RateConfig, signature};
use serde_json::{Value, json};

use super::peer::{Peer, code};

const KEY: &[u8] = b"test-key";
const UNIX_S: u64 = 1_634_567_890;

fn peer_with(key_id: Option<&str>, change: impl FnOnce(&mut peerproof_reference::json_rpc::Config)) -> Peer {
    let mut peer = Peer::with(|config| {
        config.auth = Some(AuthConfig { key: KEY.to_vec(), key_id: key_id.map(str::to_owned) });
        // The peer's clock is at UNIX_S when the test begins.
        config.started_unix_ms = UNIX_S * 1_000 - 1_000_000;
        change(config);
    });
    assert_eq!(peer.now, 1_000_000);
    peer.sleep(0);
    peer
}

fn peer() -> Peer {
    peer_with(None, |_| {})
}

/// Adds a signature to a message.
fn sign(mut message: Value) -> Value {
    let signature = signature(KEY, message.to_string().as_bytes()).unwrap();
    message["auth"]["signature"] = json!(signature);
    message
}

fn message(timestamp: u64, nonce: &str) -> Value {
    json!({
        "jsonrpc": "2.0", "method": "peerproof.counter", "params": {}, "id": 7,
        "auth": { "timestamp": timestamp, "nonce": nonce }
    })
}

fn count(reply: &Value) -> Option<u64> {
    reply["result"]["count"].as_u64()
}

fn refused(peer: &mut Peer, line: &str) {
    let reply = peer.line(line);
    assert_eq!((code(&reply), &reply["id"]), (-32003, &json!(7)), "{line}");
    assert_eq!(reply["error"]["data"]["type"], "AUTH");
}

#[test]
fn signatures_of_the_contract() {
    for (message, expected) in [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"validate_code","params":{"code":"x","language":"javascript","rules":[]},"auth":{"timestamp":1634567890}}"#,
            "o0XzQhHnpvzL/z4CrnvMovs27JTBi9adMUcOz0qMAYw=",
        ),
        (
            r#"{"jsonrpc":"2.0","id":"context_001","method":"update_context","params":{"action":"add","context_type":"state","data":{"b":2,"a":[1,-1,0],"é":"😀/"}},"auth":{"timestamp":1634567890,"nonce":"n-1","key_id":"k1"}}"#,
            "ofnBRrCA94raWuAlOWo0GYJc179H2nFiAEqLp5mLXqo=",
        ),
    ] {
        assert_eq!(signature(KEY, message.as_bytes()).unwrap(), expected);
        let signed = message.replace("\"timestamp\"", "\"signature\":\"x\",\"timestamp\"");
        assert_eq!(signature(KEY, signed.as_bytes()).unwrap(), expected, "without what it says of itself");
    }
}

#[test]
fn signed_messages_pass_and_others_do_not() {
    let mut peer = peer();
    assert_eq!(count(&peer.line(&sign(message(UNIX_S, "n1")).to_string())), Some(1));
    let good = sign(message(UNIX_S, "n2"));
    let mut bad = vec![{
        let mut unsigned = good.clone();
        unsigned.as_object_mut().unwrap().remove("auth");
        unsigned
    }];
    for (member, value) in [
        ("signature", json!("")),
        ("signature", json!(null)),
        ("signature", json!(7)),
        ("signature", json!(good["auth"]["signature"].as_str().unwrap().trim_end_matches('='))),
        ("signature", json!("o0XzQhHnpvzL/z4CrnvMovs27JTBi9adMUcOz0qMAYw=")),
        ("timestamp", json!(UNIX_S + 1)),
        ("nonce", json!("n3")),
        ("key_id", json!("k")),
        ("extra", json!(1)),
    ] {
        let mut changed = good.clone();
        changed["auth"][member] = value;
        bad.push(changed);
    }
    for (member, value) in [("params", json!([])), ("params", json!({ "a": 1 })), ("extra", json!(null))] {
        let mut changed = good.clone();
        changed[member] = value;
        bad.push(changed);
    }
    for auth in [json!({}), json!(null), json!([]), json!("x")] {
        let mut changed = good.clone();
        changed["auth"] = auth;
        bad.push(changed);
    }
    for resigned in [
        json!({ "timestamp": UNIX_S }),
        json!({ "timestamp": UNIX_S, "nonce": "" }),
        json!({ "timestamp": UNIX_S, "nonce": "n".repeat(65) }),
        json!({ "timestamp": UNIX_S, "nonce": 1 }),
        json!({ "timestamp": UNIX_S.to_string(), "nonce": "m" }),
        json!({ "timestamp": UNIX_S as f64 + 0.5, "nonce": "m" }),
        json!({ "timestamp": UNIX_S, "nonce": "m", "key_id": 1 }),
    ] {
        let mut changed = message(UNIX_S, "");
        changed["auth"] = resigned;
        bad.push(sign(changed));
    }
    for message in bad {
        refused(&mut peer, &message.to_string());
    }
    assert_eq!(
        count(&peer.line(&good.to_string())),
        Some(2),
        "nothing above was executed or burned the nonce"
    );
    refused(&mut peer, &good.to_string());
    assert_eq!(count(&peer.line(&sign(message(UNIX_S, &"é".repeat(64))).to_string())), Some(3));
}

#[test]
fn spelling_is_no_part_of_a_signature() {
    let signed = sign(message(UNIX_S, "n1"))["auth"]["signature"].as_str().unwrap().to_owned();
    let escaped = signed.replace('/', "\\/");
    for line in [
        format!(
            r#"{{"auth":{{"signature":"{escaped}","nonce":"\u006e1","timestamp":{UNIX_S}.0}}, "id" : 7 ,"params":{{ }},"m\u0065thod":"peerproof.counter","jsonrpc":"2.0"}}"#
        ),
        format!(
            r#"{{"jsonrpc":"2.0","method":"peerproof.counter","params":{{}},"id":7,"auth":{{"timestamp":1.634567890e9,"nonce":"n1","signature":"{signed}"}}}}"#
        ),
    ] {
        assert_eq!(count(&peer().line(&line)), Some(1), "{line}");
    }
}

#[test]
fn timestamps_are_fresh_within_300_seconds() {
    for (timestamp, fresh) in
        [(UNIX_S - 301, false), (UNIX_S - 300, true), (UNIX_S + 300, true), (UNIX_S + 301, false), (0, false)]
    {
        let reply = peer().line(&sign(message(timestamp, "n")).to_string());
        assert_eq!(count(&reply).is_some(), fresh, "{timestamp}");
    }
}

#[test]
fn nonces_are_remembered_for_ten_minutes() {
    let mut peer = peer();
    assert!(count(&peer.line(&sign(message(UNIX_S, "n")).to_string())).is_some());
    peer.sleep(599_999);
    refused(&mut peer, &sign(message(UNIX_S + 600, "n")).to_string());
    peer.sleep(1);
    assert!(count(&peer.line(&sign(message(UNIX_S + 600, "n")).to_string())).is_some());
}

#[test]
fn a_known_key_id_is_asked_for() {
    let mut peer = peer_with(Some("k1"), |_| {});
    for (key_id, passes) in [(json!("k1"), true), (json!("k2"), false)] {
        let mut message = message(UNIX_S, "n");
        message["auth"]["key_id"] = key_id;
        let line = sign(message).to_string();
        if passes { assert!(count(&peer.line(&line)).is_some()) } else { refused(&mut peer, &line) }
    }
}

#[test]
fn notifications_and_batches_are_signed_one_by_one() {
    let mut peer = peer();
    let without_id = |mut message: Value| {
        message.as_object_mut().unwrap().remove("id");
        message
    };
    let unsigned = without_id(message(UNIX_S, "a"));
    assert_eq!(peer.exchange(&unsigned.to_string()), Vec::<Value>::new());
    assert_eq!(peer.exchange(&sign(unsigned).to_string()), Vec::<Value>::new());
    let batch = json!([sign(message(UNIX_S, "b")), message(UNIX_S, "c"), sign(message(UNIX_S, "b"))]);
    let reply = peer.line(&batch.to_string());
    assert_eq!(count(&reply[0]), Some(2));
    assert_eq!((code(&reply[1]), code(&reply[2])), (-32003, -32003));
}

#[test]
fn what_has_no_canonical_form_cannot_be_signed() {
    let good = sign(message(UNIX_S, "n")).to_string();
    for odd in [r#""x":1,"x":2"#, r#""x":"\ud800""#, r#""x":9007199254740993"#, r#""x":1e400"#] {
        let line = good.replacen('{', &format!("{{{odd},"), 1);
        let reply = peer().line(&line);
        assert_eq!(code(&reply), -32600, "{odd}");
        let reply = peer().line(&format!("[{line},{good}]"));
        assert_eq!(code(&reply[0]), -32600, "{odd}");
        assert!(count(&reply[1]).is_some(), "the other element is well");
    }
}

#[test]
fn a_refusal_by_rate_burns_the_nonce_or_not() {
    for burns in [false, true] {
        let mut peer = peer_with(None, |config| {
            config.rate_limit = Some(RateConfig { requests: 1, window_s: 10 });
            config.choices.refusal_burns_nonce = burns;
        });
        // An unsigned request does not count.
        refused(&mut peer, &message(UNIX_S, "x").to_string());
        assert_eq!(count(&peer.line(&sign(message(UNIX_S, "a")).to_string())), Some(1));
        let second = sign(message(UNIX_S, "b")).to_string();
        assert_eq!(code(&peer.line(&second)), -32002);
        peer.sleep(10_000);
        let reply = peer.line(&second);
        assert_eq!(count(&reply).is_some(), !burns, "{reply}");
    }
}
