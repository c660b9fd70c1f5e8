//! Tests of every value of every choice that shows on lines.

use serde_json::{Value, json};

use super::peer::{Peer, code};

fn line(members: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"peerproof.counter",{members}}}"#)
}

/// Reply to a line under a choice, if any, and the number of executions.
fn reply(choice: &str, line: &str) -> (Option<Value>, u64) {
    let mut peer = Peer::chosen(choice);
    let mut replies = peer.exchange(line);
    assert!(replies.len() <= 1);
    (replies.pop(), peer.count() - 1)
}

fn refused(choice: &str, line: &str) -> i64 {
    let (reply, executed) = reply(choice, line);
    assert_eq!(executed, 0);
    code(&reply.unwrap())
}

fn echoed(choice: &str, params: &str) -> Option<String> {
    let reply = Peer::chosen(choice)
        .raw(&format!(r#"{{"jsonrpc":"2.0","method":"peerproof.echo","params":{params},"id":1}}"#));
    let result = reply.strip_prefix(r#"{"jsonrpc":"2.0","result":"#)?;
    Some(result.strip_suffix(",\"id\":1}").unwrap().to_owned())
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn duplicate_keys() {
    let params = r#"{"a":1,"b":{"c":1,"\u0063":2},"a":2}"#;
    assert_eq!(echoed("duplicate_keys=last", params), some(r#"{"a":2,"b":{"c":2}}"#));
    assert_eq!(echoed("duplicate_keys=first", params), some(r#"{"a":1,"b":{"c":1}}"#));
    assert_eq!(echoed("duplicate_keys=refuse", params), None);
    let near = r#"{"a":1,"b":{"a":1},"\u0063":2}"#;
    assert_eq!(echoed("duplicate_keys=refuse", near), some(near.replace("\\u0063", "c").as_str()));
    assert_eq!(reply("duplicate_keys=first", &line(r#""id":1,"id":2"#)).0.unwrap()["id"], 1);
    assert_eq!(reply("duplicate_keys=last", &line(r#""id":1,"id":2"#)).0.unwrap()["id"], 2);
    assert_eq!(refused("duplicate_keys=refuse", &line(r#""id":1,"id":2"#)), -32700);
}

#[test]
fn lone_surrogates() {
    let params = r#"{"a":"\ud800x"}"#;
    assert_eq!(echoed("lone_surrogates=echo", params), some(params));
    assert_eq!(echoed("lone_surrogates=replace", params), some("{\"a\":\"\u{fffd}x\"}"));
    assert_eq!(echoed("lone_surrogates=refuse", params), None);
    assert_eq!(echoed("lone_surrogates=refuse", r#"["\ud83d\ude00"]"#), some(r#"["\ud83d\ude00"]"#));
}

#[test]
fn big_integers() {
    let params = r#"[9007199254740993,9007199254740991,0.1]"#;
    assert_eq!(echoed("big_integers=exact", params), some(params));
    assert_eq!(echoed("big_integers=round", params), some("[9.007199254740992e15,9007199254740991,0.1]"));
    assert_eq!(echoed("big_integers=refuse", params), None);
    assert_eq!(echoed("big_integers=refuse", "[9007199254740991]"), some("[9007199254740991]"));
    assert_eq!(echoed("big_integers=exact", "[1e400]"), some("[1e400]"));
    assert_eq!(echoed("big_integers=round", "[1e400]"), None);
    assert_eq!(echoed("big_integers=refuse", "[1e400]"), None);
}

#[test]
fn blank_lines() {
    for blank in ["", " \t ", "\r"] {
        assert_eq!(reply("blank_line=ignore", blank), (None, 0));
        assert_eq!(refused("blank_line=refuse", blank), -32700);
    }
}

#[test]
fn the_last_line() {
    let ends = |choice: &str, rest: &str| {
        let mut peer = Peer::chosen(choice);
        peer.write(rest.as_bytes());
        peer.close();
        assert_eq!(peer.exit, Some(0));
        peer.messages()
    };
    let whole = line("\"id\":1");
    let cut = &whole[..whole.len() - 1];
    assert_eq!(ends("last_line_without_lf=process", &whole)[0]["result"], json!({ "count": 1 }));
    assert_eq!(ends("last_line_without_lf=silent", &whole)[0]["result"], json!({ "count": 1 }));
    assert_eq!(code(&ends("last_line_without_lf=refuse", &whole)[0]), -32700);
    assert_eq!(code(&ends("last_line_without_lf=process", cut)[0]), -32700);
    assert_eq!(code(&ends("last_line_without_lf=refuse", cut)[0]), -32700);
    assert_eq!(ends("last_line_without_lf=silent", cut), Vec::<Value>::new());
    assert_eq!(ends("last_line_without_lf=refuse", " "), Vec::<Value>::new());
}

#[test]
fn null_ids() {
    let (answer, executed) = reply("null_id=answer", &line("\"id\":null"));
    assert_eq!((answer.unwrap()["id"].clone(), executed), (Value::Null, 1));
    assert_eq!(reply("null_id=silent", &line("\"id\":null")), (None, 1));
    assert_eq!(refused("null_id=refuse", &line("\"id\":null")), -32600);
}

#[test]
fn fractional_ids() {
    for id in ["1.5", "1.0", "1e0"] {
        let (answer, executed) = reply("fractional_id=echo", &line(&format!("\"id\":{id}")));
        assert_eq!(executed, 1);
        assert_eq!(answer.unwrap()["id"].as_f64(), id.parse().ok());
        assert_eq!(refused("fractional_id=refuse", &line(&format!("\"id\":{id}"))), -32600);
    }
    assert_eq!(reply("fractional_id=refuse", &line("\"id\":10")).1, 1);
}

#[test]
fn params_of_another_type() {
    assert_eq!(reply("params_null=absent", &line("\"params\":null,\"id\":1")).1, 1);
    assert_eq!(refused("params_null=refuse", &line("\"params\":null,\"id\":1")), -32600);
    for params in ["1", "\"x\"", "true", "false"] {
        let members = format!("\"params\":{params}");
        assert_eq!(refused("params_scalar=-32600", &line(&members)), -32600);
        assert_eq!(reply("params_scalar=-32602", &line(&members)), (None, 0));
        let members = format!("{members},\"id\":1");
        assert_eq!(refused("params_scalar=-32600", &line(&members)), -32600);
        assert_eq!(refused("params_scalar=-32602", &line(&members)), -32602);
    }
}

#[test]
fn reserved_methods() {
    let line = r#"{"jsonrpc":"2.0","method":"rpc.discover","id":1}"#;
    assert_eq!(refused("rpc_prefix=-32600", line), -32600);
    assert_eq!(refused("rpc_prefix=-32601", line), -32601);
    let answer = reply("rpc_prefix=answer", line).0.unwrap();
    assert!(answer["result"]["methods"].as_array().unwrap().contains(&json!("execute_task")));
}

#[test]
fn responses() {
    for line in [
        r#"{"jsonrpc":"2.0","result":1,"id":1}"#,
        r#"{"jsonrpc":"2.0","error":{"code":1,"message":"x"},"id":null}"#,
    ] {
        assert_eq!(refused("response_to_server=refuse", line), -32600);
        assert_eq!(reply("response_to_server=silent", line), (None, 0));
        assert_eq!(reply("response_to_server=silent", &format!("[{line}]")), (None, 0));
    }
}
