//! What the contract leaves open for JSON and members: every value of every choice.

use serde_json::json;

use crate::peer::{Peer, aid, is_host_error, output, request};

fn echoed(choice: &str, input: &str) -> Option<String> {
    let mut peer = Peer::chosen(choice);
    let reply = peer.send(json!({ "aid": aid("ECHO"), "input_json": input }));
    (!is_host_error(&reply)).then(|| reply["output_json"].as_str().unwrap().to_owned())
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn duplicate_keys() {
    let inner = r#"{"a":1,"b":{"c":1,"\u0063":2},"a":2}"#;
    assert_eq!(echoed("duplicate_keys=last", inner), some(r#"{"a":2,"b":{"c":2}}"#));
    assert_eq!(echoed("duplicate_keys=first", inner), some(r#"{"a":1,"b":{"c":1}}"#));
    assert_eq!(echoed("duplicate_keys=refuse", inner), None);
    let near = r#"{"a":1,"b":{"a":1},"\u0063":2}"#;
    assert_eq!(echoed("duplicate_keys=refuse", near), some(r#"{"a":1,"b":{"a":1},"c":2}"#));

    let outer = format!(r#"{{"aid":"{}","aid":"{}"}}"#, aid("ANY"), aid("COUNTER"));
    let run = |choice: &str| Peer::chosen(choice).line(&outer);
    assert_eq!(output(&run("duplicate_keys=last")), json!({ "count": 1 }));
    assert_eq!(output(&run("duplicate_keys=first")), json!({}));
    assert!(is_host_error(&run("duplicate_keys=refuse")));
}

#[test]
fn lone_surrogates() {
    let inner = r#"{"a":"\ud800x","\udc00":1}"#;
    assert_eq!(echoed("lone_surrogates=echo", inner), some(inner));
    assert_eq!(echoed("lone_surrogates=replace", inner), some("{\"a\":\"\u{FFFD}x\",\"\u{FFFD}\":1}"));
    assert_eq!(echoed("lone_surrogates=refuse", inner), None);
    assert_eq!(echoed("lone_surrogates=refuse", r#"{"a":"\ud83d\ude00"}"#), some(r#"{"a":"\ud83d\ude00"}"#));

    // The same, escaped in the request itself: the reply's bytes say what became of it.
    let line = format!(r#"{{"aid":"{}","input_json":"{{\"a\":\"\ud800\"}}"}}"#, aid("ECHO"));
    for (value, expected) in [("echo", "\\\\ud800"), ("replace", "\u{FFFD}"), ("refuse", "lone surrogate")] {
        let mut peer = Peer::chosen(&format!("lone_surrogates={value}"));
        peer.write(format!("{line}\n").as_bytes());
        let text = String::from_utf8(peer.stdout).unwrap();
        assert!(text.contains(expected), "{value}: {text}");
    }
}

#[test]
fn big_integers() {
    let inner = r#"{"a":9007199254740993,"b":9007199254740991,"c":1e400}"#;
    assert_eq!(echoed("big_integers=exact", inner), some(inner));
    let rounded = echoed("big_integers=round", inner).unwrap();
    assert_eq!(rounded, r#"{"a":9.007199254740992e15,"b":9007199254740991,"c":1.7976931348623157e308}"#);
    assert_eq!(echoed("big_integers=refuse", inner), None);
    assert_eq!(echoed("big_integers=refuse", r#"{"b":9007199254740991}"#), some(r#"{"b":9007199254740991}"#));
}

#[test]
fn byte_order_mark() {
    let line = format!("\u{feff}{}", request("COUNTER", json!({})));
    for _ in 0..2 {
        assert_eq!(Peer::chosen("bom=ignore").line(&line)["ok"], true);
        assert!(is_host_error(&Peer::chosen("bom=refuse").line(&line)));
    }
}

#[test]
fn null_members() {
    let line = format!(
        r#"{{"aid":"{}","input_json":null,"ds_state":null,"idempotency_key":null,"_lease_token":null}}"#,
        aid("COUNTER")
    );
    assert_eq!(output(&Peer::chosen("null_member=absent").line(&line)), json!({ "count": 1 }));
    for member in ["input_json", "ds_state", "idempotency_key", "_lease_token"] {
        let line = format!(r#"{{"aid":"{}","{member}":null}}"#, aid("COUNTER"));
        let mut peer = Peer::chosen("null_member=refuse");
        assert!(is_host_error(&peer.line(&line)), "{member}");
        assert_eq!(peer.count(), 1);
    }
    assert!(is_host_error(&Peer::chosen("null_member=absent").line(r#"{"aid":null}"#)));
}

#[test]
fn inputs_member() {
    let alone = json!({ "aid": aid("ECHO"), "inputs": { "a": 1 } });
    let beside = json!({ "aid": aid("ECHO"), "inputs": { "a": 1 }, "input_json": "{\"b\":2}" });
    assert_eq!(output(&Peer::chosen("inputs_member=ignore").send(alone.clone())), json!({}));
    assert!(is_host_error(&Peer::chosen("inputs_member=refuse").send(alone)));
    assert_eq!(output(&Peer::chosen("inputs_member=refuse").send(beside)), json!({ "b": 2 }));
}
