//! Tests of keys: their life, their number, and the effects of a hit.

use serde_json::{Value, json};

use super::peer::{Peer, artifact, is_host_error, is_tool_error, output, request, with};

fn keyed(key: &str) -> Value {
    with(request("COUNTER", json!({})), json!({ "idempotency_key": key }))
}

fn count(reply: &Value) -> u64 {
    output(reply)["count"].as_u64().unwrap()
}

#[test]
fn a_key_lives_from_its_first_execution_and_does_not_slide() {
    let mut peer = Peer::with(|config| config.limits.idempotency_ttl_ms = 100);
    let first = peer.send(keyed("k"));
    assert_ne!(first["idempotent_hit"], true);
    for _ in 0..9 {
        peer.now += 11;
        let hit = peer.send(keyed("k"));
        assert_eq!((count(&hit), &hit["idempotent_hit"]), (1, &json!(true)));
        assert_eq!(hit["ds_state"]["delta"], true);
    }
    peer.now += 1;
    let again = peer.send(keyed("k"));
    assert_eq!(count(&again), 2);
    assert_ne!(again["idempotent_hit"], true);
    peer.now += 99;
    assert_eq!(count(&peer.send(keyed("k"))), 2);
}

#[test]
fn all_live_keys_are_held_up_to_the_maximum() {
    let mut peer = Peer::with(|config| config.limits.idempotency_entries_max = 4);
    for n in 1..=4 {
        assert_eq!(count(&peer.send(keyed(&n.to_string()))), n);
    }
    for n in 1..=4 {
        assert_eq!(count(&peer.send(keyed(&n.to_string()))), n);
    }
    peer.send(keyed("5"));
    assert_eq!(count(&peer.send(keyed("2"))), 2);
    assert_eq!(count(&peer.send(keyed("1"))), 6, "the oldest made room");
}

#[test]
fn expired_keys_make_room_first() {
    let mut peer = Peer::with(|config| config.limits.idempotency_entries_max = 2);
    peer.send(keyed("a"));
    peer.now += 59_999;
    peer.send(keyed("b"));
    peer.now += 1;
    peer.send(keyed("c"));
    assert_eq!(count(&peer.send(keyed("b"))), 2);
    assert_eq!(count(&peer.send(keyed("c"))), 3);
}

#[test]
fn a_key_belongs_to_its_aid() {
    let mut peer = Peer::serve();
    peer.send(keyed("k"));
    let other = with(request("ECHO", json!({})), json!({ "idempotency_key": "k" }));
    assert!(is_host_error(&peer.send(other)));
    assert_eq!(count(&peer.send(keyed("k"))), 1);
}

#[test]
fn another_input_follows_the_choice_and_presentation_is_no_other_input() {
    let line =
        |input: &str| json!({ "aid": "AID.PEERPROOF.ECHO.v1", "input_json": input, "idempotency_key": "k" });
    let mut peer = Peer::chosen("same_key_other_input=first");
    peer.send(line("{\"a\":1}"));
    assert_eq!(output(&peer.send(line("{\"a\":2}"))), json!({ "a": 1 }));

    let mut peer = Peer::chosen("same_key_other_input=refuse");
    peer.send(line("{\"a\":1,\"b\":2}"));
    assert!(is_host_error(&peer.send(line("{\"a\":2,\"b\":2}"))));
    let hit = peer.send(line("{ \"b\" : 2.0, \"\\u0061\":1e0 }"));
    assert_eq!(hit["idempotent_hit"], true);
}

#[test]
fn the_empty_key_is_no_key_and_keys_are_whole() {
    let mut peer = Peer::serve();
    assert_eq!((count(&peer.send(keyed(""))), count(&peer.send(keyed("")))), (1, 2));
    let long = "x".repeat(100_000);
    for (n, key) in ["a", "a\0", "a\0b", &long, &format!("{long}y"), &format!("{long}z")].iter().enumerate() {
        assert_eq!(count(&peer.send(keyed(key))), n as u64 + 3);
    }
    assert_eq!(count(&peer.send(keyed(&format!("{long}y")))), 7);
}

#[test]
fn host_errors_are_not_cached() {
    let mut peer = Peer::serve();
    for broken in
        [json!({ "input_json": "[]" }), json!({ "aid": "AID.XX" }), json!({ "ds_state": { "slots": 1 } })]
    {
        assert!(is_host_error(&peer.send(with(keyed("k"), broken))));
    }
    let reply = peer.send(keyed("k"));
    assert_eq!(count(&reply), 1);
    assert_ne!(reply["idempotent_hit"], true);
}

#[test]
fn tool_errors_follow_the_choice() {
    let fail = with(request("FAIL", json!({ "message": "m" })), json!({ "idempotency_key": "k" }));
    for (value, hit) in [("true", true), ("false", false)] {
        let mut peer = Peer::chosen(&format!("tool_error_cached={value}"));
        peer.send(fail.clone());
        let again = peer.send(fail.clone());
        assert!(is_tool_error(&again));
        assert_eq!((again["idempotent_hit"] == true, &again["error"]), (hit, &json!("m")));
    }
}

#[test]
fn state_of_a_hit_follows_the_choice() {
    let state = |content: &str| json!({ "ds_state": { "slots": { "0": artifact(content) } } });
    for (value, content) in [("true", "second"), ("false", "first")] {
        let mut peer = Peer::chosen(&format!("hit_applies_state={value}"));
        peer.send(with(keyed("k"), state("first")));
        let hit = peer.send(with(keyed("k"), state("second")));
        assert_eq!(hit["ds_state"], json!({ "delta": true, "slots": {} }));
        assert_eq!(peer.slot(0).as_deref(), Some(content));
    }
}

#[test]
fn a_hit_repeats_the_first_output_byte_for_byte() {
    let input = r#"{"b":[1.0,"\u00e9\n"],"a":"\\"}"#;
    let line = json!({ "aid": "AID.PEERPROOF.ECHO.v1", "input_json": input, "idempotency_key": "k" });
    let mut peer = Peer::serve();
    assert_eq!(peer.send(line.clone())["output_json"], input);
    assert_eq!(peer.send(line)["output_json"], input);
    let blob = with(request("BLOB", json!({ "bytes": 10 })), json!({ "idempotency_key": "b" }));
    assert_eq!(peer.send(blob.clone())["output_json"], peer.send(blob)["output_json"]);
}

#[test]
fn a_waiting_tool_is_cached_from_its_end() {
    let line = with(request("SLEEP", json!({ "ms": 50 })), json!({ "idempotency_key": "k" }));
    let mut peer = Peer::with(|config| config.limits.idempotency_ttl_ms = 100);
    peer.send(line.clone());
    let before = peer.now;
    assert_eq!(peer.send(line)["idempotent_hit"], true);
    assert_eq!(peer.now, before);
}
