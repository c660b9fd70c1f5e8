//! Tests of DSState: full states, deltas, refusals, and the state after a failed tool.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::peer::{Peer, artifact, is_host_error, is_tool_error, output, request, with};

fn any(state: Value) -> Value {
    with(request("ANY", json!({})), json!({ "ds_state": state }))
}

#[test]
fn a_delta_changes_what_it_names_and_a_full_state_replaces_all() {
    let mut peer = Peer::serve();
    peer.send(any(json!({ "slots": { "0": artifact("a"), "1": artifact("b") } })));
    peer.send(any(json!({ "delta": true, "slots": { "1": artifact("é") }, "removed_slots": [0, 5] })));
    assert_eq!((peer.slot(0), peer.slot(1).as_deref()), (None, Some("é")));
    peer.send(any(json!({ "delta": true })));
    assert_eq!(peer.slot(1).as_deref(), Some("é"));
    peer.send(any(json!({ "delta": false, "slots": { "7": artifact("") } })));
    assert_eq!((peer.slot(1), peer.slot(7).as_deref()), (None, Some("")));
    peer.send(any(json!({})));
    assert_eq!(peer.slot(7), None);
}

#[test]
fn malformed_states_are_refused_whole() {
    let without = |member: &str| {
        let mut artifact = artifact("a");
        artifact.as_object_mut().unwrap().remove(member);
        json!({ "slots": { "0": artifact } })
    };
    let changed = |member: &str, value: Value| json!({ "slots": { "0": with(artifact("a"), json!({ member: value })) } });
    let slots = |slot: &str| json!({ "slots": { "1": artifact("new"), slot: artifact("a") } });
    let mut peer = Peer::serve();
    peer.send(any(json!({ "slots": { "1": artifact("old") } })));
    for state in [
        slots("8"),
        slots("-1"),
        slots("00"),
        slots("1.0"),
        slots(""),
        slots("x"),
        slots(" 1"),
        slots("0\0"),
        json!({ "slots": [] }),
        json!({ "slots": null }),
        json!({ "slots": { "0": null } }),
        json!({ "slots": { "0": "x" } }),
        without("type"),
        without("provenance"),
        without("content_json"),
        without("size_bytes"),
        changed("type", json!(1)),
        changed("provenance", json!(null)),
        changed("content_json", json!({})),
        changed("size_bytes", json!("1")),
        changed("size_bytes", json!(1.5)),
        changed("size_bytes", json!(2)),
        changed("size_bytes", json!(-1)),
        json!({ "delta": 1 }),
        json!({ "delta": true, "removed_slots": 1 }),
        json!({ "delta": true, "removed_slots": [8] }),
        json!({ "delta": true, "removed_slots": ["1"] }),
        json!({ "delta": true, "slots": { "1": artifact("new") }, "removed_slots": [1] }),
    ] {
        assert!(
            is_host_error(&peer.send(with(any(state.clone()), json!({ "idempotency_key": "k" })))),
            "{state}"
        );
    }
    assert_eq!(peer.slot(1).as_deref(), Some("old"));
}

#[test]
fn a_wrong_size_is_corrected_where_chosen() {
    let wrong = with(artifact("é"), json!({ "size_bytes": 1 }));
    let mut peer = Peer::chosen("size_bytes_wrong=correct");
    peer.send(any(json!({ "slots": { "0": wrong } })));
    assert_eq!(output(&peer.call("GET", json!({ "slot": 0 })))["artifact"], artifact("é"));
    let reply = peer.call("PUT", json!({ "slot": 1, "artifact": wrong }));
    assert_eq!(reply["ds_state"]["slots"]["1"], artifact("é"));
    let mut peer = Peer::serve();
    assert!(is_tool_error(&peer.call("PUT", json!({ "slot": 1, "artifact": wrong }))));
    assert_eq!(peer.slot(1), None);
}

#[test]
fn replies_tell_what_the_tool_changed() {
    let mut peer = Peer::serve();
    let reply = peer.call("PUT", json!({ "slot": 3, "artifact": artifact("a") }));
    assert_eq!(reply["ds_state"], json!({ "delta": true, "slots": { "3": artifact("a") } }));
    let reply = peer.call("REMOVE", json!({ "slot": 3 }));
    assert_eq!(reply["ds_state"], json!({ "delta": true, "slots": {}, "removed_slots": [3] }));
    let reply = peer.call("ANY", json!({}));
    assert_eq!(reply["ds_state"], json!({ "delta": true, "slots": {} }));
}

#[test]
fn after_a_tool_error_the_requests_own_state_stays() {
    let mut peer = Peer::serve();
    let fail = request("FAIL", json!({ "message": "m" }));
    let reply = peer.send(with(fail, json!({ "ds_state": { "slots": { "0": artifact("a") } } })));
    assert!(is_tool_error(&reply));
    assert_eq!(peer.slot(0).as_deref(), Some("a"));
}

#[test]
fn writes_of_a_failed_tool_follow_the_choice() {
    // A write whose reply does not fit counts as a tool that wrote and failed.
    for (value, kept) in [("true", true), ("false", false)] {
        let mut peer = Peer::with(|config| {
            config.choices.set("tool_error_keeps_writes", value).unwrap();
            config.limits.reply_bytes_max = 600;
        });
        peer.call("PUT", json!({ "slot": 0, "artifact": artifact("old") }));
        let reply = peer.call("PUT", json!({ "slot": 0, "artifact": artifact(&"x".repeat(600)) }));
        assert!(is_tool_error(&reply));
        assert!(reply.to_string().len() < 600);
        let reply = peer.call("GET", json!({ "slot": 0 }));
        assert_eq!(is_tool_error(&reply), kept, "{reply}");
    }
}

#[test]
fn artifacts_keep_any_string() {
    let mut peer = Peer::serve();
    let line = r#"{"aid":"AID.PEERPROOF.ANY.v1","ds_state":{"slots":{"0":{"type":"","provenance":"\u0000","content_json":"\ud800","size_bytes":3}}}}"#;
    assert_eq!(peer.line(line)["ok"], true);
    peer.write((request("GET", json!({ "slot": 0 })).to_string() + "\n").as_bytes());
    assert!(String::from_utf8_lossy(&peer.stdout).contains(r"\\ud800"));
}

proptest! {
    #[test]
    fn full_states_and_deltas_lead_to_the_same_replies(
        steps in proptest::collection::vec((0usize..8, proptest::option::of("[a-zé\"]{0,4}")), 1..20),
    ) {
        let mut slots = serde_json::Map::new();
        let mut by_delta = Peer::serve();
        let mut by_full = Peer::serve();
        for (slot, content) in steps {
            let delta = match &content {
                Some(content) => json!({ "delta": true, "slots": { slot.to_string(): artifact(content) } }),
                None => json!({ "delta": true, "removed_slots": [slot] }),
            };
            match content {
                Some(content) => slots.insert(slot.to_string(), artifact(&content)),
                None => slots.remove(&slot.to_string()),
            };
            by_delta.send(any(delta));
            by_full.send(any(json!({ "slots": slots })));
            for slot in 0..8 {
                let expected = slots.get(&slot.to_string()).map(|a| a["content_json"].as_str().unwrap().to_owned());
                prop_assert_eq!(by_delta.slot(slot), expected.clone());
                prop_assert_eq!(by_full.slot(slot), expected);
            }
        }
    }
}
