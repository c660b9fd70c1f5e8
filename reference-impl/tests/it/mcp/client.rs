//! Requests of the server.

use peerproof_reference::mcp::Revision;
use serde_json::{Value, json};

use super::super::json_rpc::peer::Peer;
use super::{INITIALIZED, fresh, open_for, opening, request, result, send};

fn ask(peer: &mut Peer) -> Vec<Value> {
    send(peer, &request(1, "tools/call", &json!({ "name": "ask" })))
}

#[test]
fn nothing_is_asked_that_was_not_declared() {
    let mut peer = open_for(Revision::V25c, &[], &json!({}));
    assert_eq!(ask(&mut peer)[0]["result"]["content"][0]["text"], "asked: ");
    let mut peer = open_for(Revision::V25c, &[], &json!({ "elicitation": { "url": {} } }));
    assert_eq!(ask(&mut peer)[0]["result"]["content"][0]["text"], "asked: ");
    let mut peer = open_for(Revision::V25a, &[], &json!({ "elicitation": {} }));
    assert_eq!(ask(&mut peer)[0]["result"]["content"][0]["text"], "asked: ");
}

#[test]
fn nothing_is_asked_before_the_session_is_open() {
    let mut peer = fresh(&[]);
    send(&mut peer, &opening("2025-11-25", &json!({ "roots": {} })));
    assert!(ask(&mut peer)[0].get("result").is_some());
    send(&mut peer, INITIALIZED);
    assert_eq!(ask(&mut peer)[0]["method"], "roots/list");
}

#[test]
fn answers_refusals_and_silence_are_told() {
    let all = json!({ "roots": {}, "sampling": {}, "elicitation": {} });
    let mut peer = open_for(Revision::V25c, &[], &all);
    let roots = ask(&mut peer).remove(0);
    assert_eq!(roots["method"], "roots/list");
    let sampling = send(
        &mut peer,
        &json!({ "jsonrpc": "2.0", "id": roots["id"], "result": { "roots": [] } }).to_string(),
    );
    assert_eq!(sampling[0]["method"], "sampling/createMessage");
    assert!(sampling[0]["params"]["messages"].is_array() && sampling[0]["params"]["maxTokens"].is_i64());
    assert_ne!(sampling[0]["id"], roots["id"]);
    let error =
        json!({ "jsonrpc": "2.0", "id": sampling[0]["id"], "error": { "code": -32601, "message": "no" } });
    let form = send(&mut peer, &error.to_string());
    assert_eq!(
        (&form[0]["method"], &form[0]["params"]["mode"]),
        (&json!("elicitation/create"), &json!("form"))
    );
    assert_eq!(form[0]["params"]["requestedSchema"]["properties"]["name"]["type"], "string");
    assert_eq!(result(&mut peer, "ping", json!({})), json!({}));
    peer.sleep(2_000);
    assert_eq!(peer.messages()[0]["result"]["content"][0]["text"], "asked: result, error, no answer");
    assert_eq!(
        send(&mut peer, &json!({ "jsonrpc": "2.0", "id": form[0]["id"], "result": {} }).to_string()),
        Vec::<Value>::new()
    );
}

#[test]
fn a_cancelled_call_takes_its_question_back() {
    let mut peer = open_for(Revision::V25c, &[], &json!({ "roots": {} }));
    let roots = ask(&mut peer).remove(0);
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let messages = send(&mut peer, cancel);
    assert_eq!(
        (&messages[0]["method"], &messages[0]["params"]["requestId"]),
        (&json!("notifications/cancelled"), &roots["id"])
    );
    peer.sleep(5_000);
    assert_eq!(peer.messages(), Vec::<Value>::new());
}
