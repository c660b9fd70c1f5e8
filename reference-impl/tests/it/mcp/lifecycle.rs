//! Tests of the opening, and of messages before it.

use peerproof_reference::mcp::Revision;
use serde_json::{Value, json};

use super::{INITIALIZED, answer, code, fresh, open, opening, request, result, send};

#[test]
fn every_revision_is_spoken() {
    for revision in Revision::ALL {
        let mut peer = fresh(&[]);
        let opened = &send(&mut peer, &opening(revision.name(), &json!({})))[0]["result"];
        assert_eq!(opened["protocolVersion"], revision.name());
        assert!(opened["serverInfo"]["name"].is_string() && opened["serverInfo"]["version"].is_string());
        let capabilities = opened["capabilities"].as_object().unwrap();
        assert!(capabilities.values().all(Value::is_object));
        assert_eq!(capabilities.contains_key("completions"), revision >= Revision::V25a);
        assert_eq!(opened["serverInfo"].get("title").is_some(), revision >= Revision::V25b);
        assert_eq!(result(&mut peer, "ping", json!({})), json!({}));
    }
}

#[test]
fn an_unknown_version_gets_the_newest() {
    let mut peer = fresh(&[]);
    let opened = send(&mut peer, &opening("1999-01-01", &json!({})));
    assert_eq!(opened[0]["result"]["protocolVersion"], "2025-11-25");
}

#[test]
fn requests_before_the_opening_are_refused_but_ping() {
    let mut peer = fresh(&[]);
    assert_eq!(result(&mut peer, "ping", json!({})), json!({}));
    assert_eq!(code(&mut peer, "tools/list", json!({})), -32600);
    assert_eq!(code(&mut peer, "server/discover", json!({ "_meta": {} })), -32601);
    assert!(send(&mut peer, &opening("2025-06-18", &json!({})))[0].get("result").is_some());
    result(&mut peer, "tools/list", json!({}));
}

#[test]
fn initialize_needs_params_and_happens_once() {
    let mut peer = fresh(&[]);
    let bare = r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#;
    assert_eq!(send(&mut peer, bare)[0]["error"]["code"], -32602);
    assert_eq!(code(&mut peer, "initialize", json!({ "protocolVersion": 1 })), -32602);
    let mut peer = open(Revision::V24, &[]);
    let second = answer(&mut peer, "initialize", &json!({ "protocolVersion": "2024-11-05" }));
    assert_eq!(second["error"]["code"], -32600);
}

#[test]
fn a_request_behind_initialized_is_served() {
    let mut peer = fresh(&[]);
    send(&mut peer, &opening("2025-11-25", &json!({ "experimental": { "x": {} }, "new": { "y": 1 } })));
    let lines = format!("{INITIALIZED}\n{}", request(2, "ping", &json!({})));
    assert_eq!(send(&mut peer, &lines)[0]["id"], 2);
}
