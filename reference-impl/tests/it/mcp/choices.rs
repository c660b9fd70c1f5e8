//! Tests that every choice has an effect.

use peerproof_reference::mcp::{Choices, Revision};
use serde_json::{Value, json};

use super::{code, fresh, open, opening, request, result, send};

#[test]
fn every_listed_value_can_be_set_and_read_back() {
    for (key, values) in Choices::ALL {
        for value in *values {
            let mut choices = Choices::default();
            choices.set(key, value).unwrap();
            assert_eq!(choices.get(key), Some(*value), "{key}");
        }
    }
}

#[test]
fn choices_of_the_opening() {
    let unknown = opening("1999-01-01", &json!({}));
    let refused = &send(&mut fresh(&["mcp_unknown_version=error"]), &unknown)[0]["error"];
    assert_eq!((&refused["code"], &refused["data"]["requested"]), (&json!(-32602), &json!("1999-01-01")));
    assert_eq!(refused["data"]["supported"].as_array().unwrap().len(), 4);
    result(&mut fresh(&["mcp_early_request=serve"]), "tools/list", json!({}));
    let list = request(1, "tools/list", &json!({}));
    assert_eq!(send(&mut fresh(&["mcp_early_request=silent"]), &list), Vec::<Value>::new());
    let mut peer = open(Revision::V25c, &["mcp_second_initialize=result"]);
    let again = &send(&mut peer, &opening("2024-11-05", &json!({})))[0];
    assert_eq!(again["result"]["protocolVersion"], "2024-11-05");
}

#[test]
fn choices_of_messages() {
    let chosen = |choice: &str, line: &str| send(&mut open(Revision::V25c, &[choice]), line);
    let ping = r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#;
    assert_eq!(chosen("fractional_id=echo", ping)[0]["id"], 1.5);
    assert_eq!(chosen("fractional_id=refuse", ping)[0]["error"]["code"], -32600);
    assert_eq!(chosen("fractional_id=silent", ping), Vec::<Value>::new());
    let response = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    assert_eq!(chosen("response_to_server=refuse", response)[0]["error"]["code"], -32600);
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#;
    assert_eq!(chosen("mcp_batch=answer", batch)[0][0]["id"], 1);
    assert_eq!(chosen("mcp_batch=silent", batch), Vec::<Value>::new());
    assert_eq!(chosen("blank_line=refuse", "")[0]["error"]["code"], -32700);
    let mut peer = open(Revision::V25c, &["utf8_invalid=replace"]);
    peer.write(b"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ping\"}\n");
    assert_eq!(peer.messages()[0]["id"], "\u{fffd}");
}

#[test]
fn choices_of_methods() {
    let chosen = |choice: &str| open(Revision::V25b, &[choice]);
    result(&mut chosen("mcp_bad_cursor=ignore"), "tools/list", json!({ "cursor": "x" }));
    let wrong = json!({ "name": "echo", "arguments": {} });
    assert_eq!(code(&mut chosen("mcp_invalid_args=error"), "tools/call", wrong.clone()), -32602);
    assert_eq!(result(&mut chosen("mcp_invalid_args=is_error"), "tools/call", wrong)["isError"], true);
    let unknown = json!({ "uri": "peerproof:///none" });
    assert_eq!(code(&mut chosen("mcp_resource_unknown=-32602"), "resources/read", unknown), -32602);
}
