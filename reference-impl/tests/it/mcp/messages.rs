//! Tests of lines, ids and invalid messages.

use peerproof_reference::mcp::Revision;
use serde_json::{Value, json};

use super::{newest, open, request, send, text};

#[test]
fn ids_come_back_as_they_were() {
    let mut peer = newest();
    for id in [
        json!(""),
        json!("x".repeat(200)),
        json!("\u{2028}"),
        json!(0),
        json!(-1),
        json!(9007199254740991_i64),
    ] {
        assert_eq!(send(&mut peer, &request(id.clone(), "ping", &json!({})))[0]["id"], id);
    }
}

#[test]
fn what_is_no_message_is_refused_and_the_next_one_served() {
    let mut peer = newest();
    let deep = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
    let long = "x".repeat(2_000_000);
    for (line, code, id) in [
        ("{", -32700, json!(null)),
        ("nonsense", -32700, json!(null)),
        (&deep, -32600, json!(null)),
        (&long, -32600, json!(null)),
        ("1", -32600, json!(null)),
        ("[]", -32600, json!(null)),
        ("{}", -32600, json!(null)),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600, json!(null)),
        (r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, -32600, json!(null)),
        (r#"{"jsonrpc":"2.0","id":3}"#, -32600, json!(3)),
        (r#"{"jsonrpc":"2.0","id":3,"method":4}"#, -32600, json!(3)),
        (r#"{"jsonrpc":"1.0","id":3,"method":"ping"}"#, -32600, json!(3)),
        (r#"{"id":"a","method":"ping"}"#, -32600, json!("a")),
        (r#"{"jsonrpc":"2.0","id":3,"method":"ping","params":[]}"#, -32600, json!(3)),
        (r#"{"jsonrpc":"2.0","id":3,"method":"ping","params":1}"#, -32600, json!(3)),
        (r#"{"jsonrpc":"2.0","id":3,"method":"none"}"#, -32601, json!(3)),
        (r#"{"jsonrpc":"2.0","id":3,"method":"none","params":{}}"#, -32601, json!(3)),
    ] {
        let messages = send(&mut peer, line);
        assert_eq!(messages.len(), 1, "{line:.80}: {messages:?}");
        assert_eq!((&messages[0]["error"]["code"], &messages[0]["id"]), (&json!(code), &id), "{line:.80}");
        assert_eq!(send(&mut peer, &request(9, "ping", &json!({})))[0]["result"], json!({}));
    }
    peer.write(b"\"\xff\"\n");
    assert_eq!(peer.messages()[0]["error"]["code"], -32700);
}

#[test]
fn what_needs_no_answer_gets_none() {
    let mut peer = newest();
    for line in [
        r#"{"jsonrpc":"2.0","method":"notifications/unknown"}"#,
        r#"{"jsonrpc":"2.0","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","method":"tools/list","params":[]}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
        " ",
    ] {
        assert_eq!(send(&mut peer, line), Vec::<Value>::new(), "{line}");
    }
}

#[test]
fn unknown_members_do_no_harm() {
    let mut peer = newest();
    for line in [
        r#"{"jsonrpc":"2.0","id":7,"method":"ping","more":1}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":null}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{"_meta":{"x/y":1,"progressToken":"t"},"z":2}}"#,
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\r",
    ] {
        assert_eq!(send(&mut peer, line)[0]["result"], json!({}), "{line}");
    }
}

#[test]
fn texts_of_any_length_and_shape_come_back() {
    let mut peer = newest();
    let deep = format!("{}{}", "[".repeat(60), "]".repeat(60));
    for sent in ["", "\u{2028}\u{2029}\u{85}\u{feff}", "\u{0}\n\r\"\\", "日本語 𝄞", &"x".repeat(1_000_000)]
    {
        assert_eq!(text(&mut peer, "echo", json!({ "text": sent })), *sent);
    }
    let deep: Value = serde_json::from_str(&deep).unwrap();
    assert_eq!(text(&mut peer, "echo", json!({ "text": "a", "deep": deep })), "a");
}

#[test]
fn batches_belong_to_one_revision() {
    let ping = |id: i64| request(id, "ping", &json!({}));
    let batch = |parts: &[String]| format!("[{}]", parts.join(","));
    let mut peer = open(Revision::V25a, &[]);
    let replies = send(&mut peer, &batch(&[ping(1)]));
    assert_eq!(replies, [json!([{ "jsonrpc": "2.0", "id": 1, "result": {} }])]);
    let note = r#"{"jsonrpc":"2.0","method":"notifications/x"}"#.to_owned();
    assert_eq!(send(&mut peer, &batch(&[note.clone(), note.clone()])), Vec::<Value>::new());
    let sleep = request(2, "tools/call", &json!({ "name": "sleep", "arguments": { "ms": 50 } }));
    assert_eq!(send(&mut peer, &batch(&[sleep, note, ping(3), "1".to_owned()])), Vec::<Value>::new());
    peer.sleep(50);
    assert_eq!(peer.messages()[0].as_array().unwrap().len(), 3);
    for revision in [Revision::V24, Revision::V25b, Revision::V25c] {
        let replies = send(&mut open(revision, &[]), &batch(&[ping(1)]));
        assert_eq!((&replies[0]["error"]["code"], &replies[0]["id"]), (&json!(-32600), &json!(null)));
    }
}

#[test]
fn chunks_and_ends_of_input_change_nothing() {
    let mut peer = newest();
    for byte in request(1, "tools/call", &json!({ "name": "echo", "arguments": { "text": "é𝄞" } })).bytes()
    {
        peer.write(&[byte]);
    }
    peer.write(b"\n");
    assert_eq!(peer.messages()[0]["result"]["content"][0]["text"], "é𝄞");
    peer.write(br#"{"jsonrpc":"2.0","id":1,"#);
    peer.close();
    assert_eq!(peer.messages()[0]["error"]["code"], -32700);
    assert_eq!(peer.exit, Some(0));
}
