//! Ids, shapes and the order of checks.

use serde_json::{Value, json};

use super::peer::{Peer, code};

fn with_id(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"peerproof.echo","params":{{}},"id":{id}}}"#)
}

#[test]
fn ids_come_back_as_they_were_spelled() {
    for id in [
        "0",
        "-0",
        "9007199254740991",
        "123456789012345678901234567890",
        "1.50",
        "1E400",
        "\"\"",
        r#""\u0031\ud800""#,
        r#""é\n\"""#,
        "null",
    ] {
        let reply = Peer::plain().raw(&with_id(id));
        assert!(reply.ends_with(&format!("\"id\":{id}}}")), "{id}: {reply}");
        assert!(reply.contains("\"result\""), "{reply}");
    }
    for id in ["true", "false", "[]", "[1]", "{}"] {
        let reply = Peer::plain().line(&with_id(id));
        assert_eq!((code(&reply), &reply["id"]), (-32600, &Value::Null), "{id}");
    }
}

#[test]
fn shapes_that_are_no_request() {
    let readable = [
        r#"{"method":"peerproof.echo","id":7}"#,
        r#"{"jsonrpc":"1.0","method":"peerproof.echo","id":7}"#,
        r#"{"jsonrpc":2.0,"method":"peerproof.echo","id":7}"#,
        r#"{"jsonrpc":"2.0","id":7}"#,
        r#"{"jsonrpc":"2.0","method":null,"id":7}"#,
        r#"{"jsonrpc":"2.0","method":["peerproof.echo"],"id":7}"#,
        r#"{"jsonrpc":"2.0","method":"peerproof.echo","params":1,"id":7}"#,
        r#"{"jsonrpc":"2.0","result":1,"id":7}"#,
        r#"{"jsonrpc":"2.0","encoding":"gzip","body":"","id":7}"#,
    ];
    for line in readable {
        let reply = Peer::plain().line(line);
        assert_eq!((code(&reply), &reply["id"]), (-32600, &json!(7)), "{line}");
        let reply = Peer::plain().line(&line.replace(",\"id\":7", ""));
        assert_eq!((code(&reply), &reply["id"]), (-32600, &Value::Null), "{line}");
    }
    for line in ["1", "\"x\"", "null", "true", "{}"] {
        let reply = Peer::plain().line(line);
        assert_eq!((code(&reply), &reply["id"]), (-32600, &Value::Null), "{line}");
    }
}

#[test]
fn malformed_json_of_every_kind() {
    for line in [
        "{",
        "{'a':1}",
        "{\"a\":1,}",
        "[1,]",
        "NaN",
        "[Infinity]",
        "[01]",
        "[1.]",
        "[\"\t\"]",
        "{} {}",
        "// x",
        "[\"\\x\"]",
        "\u{feff}{}",
        "nul",
        "\u{0}",
    ] {
        let mut peer = Peer::plain();
        let reply = peer.line(line);
        assert_eq!((code(&reply), &reply["id"]), (-32700, &Value::Null), "{line:?}");
        assert_eq!(peer.count(), 1);
    }
    let mut peer = Peer::plain();
    peer.write(b"{\"jsonrpc\":\"2.0\",\"method\":\"peerproof.counter\",\"id\":\"\xff\"}\n");
    assert_eq!(code(&peer.messages()[0]), -32700);
    assert_eq!(peer.count(), 1);
}

#[test]
fn members_may_be_more_and_differently_written() {
    let line = r#" { "x" : [1] , "\u0069d" : 5 , "params" : { "a" : 1 } , "m\u0065thod":"peerproof.\u0065cho", "jsonrpc":"2\u002e0" } "#;
    assert_eq!(Peer::plain().line(line)["result"], json!({ "a": 1 }));
    assert_eq!(Peer::plain().line(line)["id"], 5);
    let reply = Peer::plain().line(&line.replace("\"params\"", "\"result\":1,\"params\""));
    assert_eq!(reply["result"], json!({ "a": 1 }));
}

#[test]
fn methods_are_matched_whole() {
    for method in ["", "peerproof", "peerproof.echo ", "Peerproof.echo", "rpc.x", "\\ud800"] {
        let line = format!(r#"{{"jsonrpc":"2.0","method":"{method}","id":1}}"#);
        assert_eq!(code(&Peer::plain().line(&line)), -32601, "{method}");
    }
}

#[test]
fn errors_of_notifications_are_silent_from_the_method_on() {
    let mut peer = Peer::plain();
    for line in [
        r#"{"jsonrpc":"2.0","method":"none"}"#,
        r#"{"jsonrpc":"2.0","method":"rpc.none"}"#,
        r#"{"jsonrpc":"2.0","method":"peerproof.named","params":[1,2]}"#,
        r#"{"jsonrpc":"2.0","method":"peerproof.fail"}"#,
        r#"{"jsonrpc":"2.0","method":"peerproof.counter"}"#,
        r#"{"jsonrpc":"2.0","method":"peerproof.sleep","params":{"ms":5}}"#,
    ] {
        assert_eq!(peer.exchange(line), Vec::<Value>::new(), "{line}");
    }
    peer.sleep(10);
    assert_eq!(peer.lines(), Vec::<String>::new());
    assert_eq!(peer.count(), 2);
}

#[test]
fn refused_requests_do_nothing() {
    let mut peer = Peer::plain();
    for line in [
        r#"{"jsonrpc":"2.0","method":"peerproof.counter","params":1,"id":1}"#,
        r#"{"jsonrpc":"2.0","method":"peerproof.counter","id":true}"#,
        r#"{"method":"peerproof.counter","id":1}"#,
        r#"{"jsonrpc":"2.0","method":"peerproof.counter","id":1"#,
    ] {
        code(&peer.line(line));
    }
    assert_eq!(peer.count(), 1);
}

#[test]
fn nesting_is_bounded() {
    let nested = |levels: usize| {
        let params = "[".repeat(levels - 1) + &"]".repeat(levels - 1);
        format!(r#"{{"jsonrpc":"2.0","method":"peerproof.echo","params":{params},"id":1}}"#)
    };
    for levels in [64, 128] {
        assert!(Peer::plain().raw(&nested(levels)).contains("\"result\":[["));
    }
    for levels in [129, 1_000, 100_000] {
        let mut peer = Peer::plain();
        let reply = peer.line(&nested(levels));
        assert_eq!((code(&reply), &reply["id"]), (-32600, &Value::Null));
        assert_eq!(peer.count(), 1);
    }
}
