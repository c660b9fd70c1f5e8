//! Members, types, tools and replies.

use serde_json::{Value, json};

use super::peer::{Peer, aid, is_host_error, is_tool_error, output, request, with};

#[test]
fn wrong_types_are_refused_and_run_nothing() {
    let count = || request("COUNTER", json!({}));
    let wrong: Vec<Value> = vec![
        json!([]),
        json!("x"),
        json!(1),
        json!(null),
        json!({}),
        json!({ "aid": "" }),
        json!({ "aid": 1 }),
        json!({ "aid": ["x"] }),
        json!({ "aid": null }),
        with(count(), json!({ "input_json": {} })),
        with(count(), json!({ "input_json": 1 })),
        with(count(), json!({ "ds_state": [] })),
        with(count(), json!({ "ds_state": "{}" })),
        with(count(), json!({ "ds_state": true })),
        with(count(), json!({ "idempotency_key": 1 })),
        with(count(), json!({ "_lease_token": {} })),
    ];
    let mut peer = Peer::serve();
    for request in wrong {
        assert!(is_host_error(&peer.send(request.clone())), "{request}");
    }
    assert_eq!(peer.count(), 1);
}

#[test]
fn malformed_lines_are_refused_and_the_session_goes_on() {
    let mut peer = Peer::serve();
    let good = request("COUNTER", json!({})).to_string();
    for line in
        ["{", "nope", "{'aid':1}", "[1,]", "{\"aid\":\"x\"}}", &format!("{good}{good}"), "\u{feff}\u{feff}{}"]
    {
        assert!(is_host_error(&peer.line(line)), "{line}");
    }
    for bytes in [&b"{\"aid\":\"\xff\"}\n"[..], b"{\"aid\":\"a\0b\"}\n", b"\xc3\n"] {
        peer.write(bytes);
        assert!(peer.replies().iter().all(is_host_error));
    }
    assert_eq!(peer.count(), 1);
}

#[test]
fn input_must_be_the_text_of_an_object() {
    let mut peer = Peer::serve();
    for text in ["", " ", "1", "[]", "null", "\"{}\"", "{", "{}{}", "{'a':1}", "{\"a\":01}", "NaN"] {
        let request = json!({ "aid": aid("COUNTER"), "input_json": text });
        assert!(is_host_error(&peer.send(request)), "{text}");
    }
    assert_eq!(output(&peer.send(json!({ "aid": aid("COUNTER") }))), json!({ "count": 1 }));
    assert_eq!(output(&peer.send(json!({ "aid": aid("ECHO") }))), json!({}));
    assert_eq!(output(&peer.send(json!({ "aid": aid("ECHO"), "input_json": " {} \n" }))), json!({}));
}

#[test]
fn nesting_counts_in_each_text_by_itself() {
    let nested = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1));
    let mut peer = Peer::with(|config| config.limits.nesting_max = 64);
    let send = |peer: &mut Peer, inner: usize, outer: usize| {
        let input = serde_json::to_string(&nested(inner)).unwrap();
        let pad = &nested(outer)[1..];
        peer.line(&format!("{{\"aid\":\"{}\",\"input_json\":{input},{pad}", aid("ECHO")))
    };
    assert_eq!(send(&mut peer, 64, 64)["ok"], true);
    assert!(is_host_error(&send(&mut peer, 65, 64)));
    assert!(is_host_error(&send(&mut peer, 64, 65)));
    assert!(is_host_error(&send(&mut peer, 100_000, 2)));
    assert!(is_host_error(&send(&mut peer, 2, 100_000)));
    assert_eq!(send(&mut peer, 64, 64)["ok"], true);
}

#[test]
fn unknown_members_and_presentation_do_not_matter() {
    let mut peer = Peer::serve();
    let line = r#" { "\u0061id" : "AID.PEERPROOF.ECH\u004f.v1" , "x":{"aid":1}, "input\u005fjson":"\u007b\"a\":\u0031}" } "#;
    assert_eq!(output(&peer.line(line)), json!({ "a": 1 }));
}

#[test]
fn a_nul_is_data() {
    let mut peer = Peer::serve();
    assert!(is_host_error(&peer.send(json!({ "aid": format!("{}\0", aid("COUNTER")) }))));
    assert_eq!(peer.count(), 1);
    assert_eq!(
        output(&peer.call("ECHO", json!({ "a": "x\0y", "\0": "\0" }))),
        json!({ "a": "x\0y", "\0": "\0" })
    );
}

#[test]
fn an_unknown_aid_of_any_length_gets_a_short_error() {
    let mut peer = Peer::with(|config| config.limits.reply_bytes_max = 1000);
    for aid in ["AID.XX".to_owned(), "é".repeat(100_000), "x".repeat(100_000)] {
        let reply = peer.send(json!({ "aid": aid }));
        assert!(is_host_error(&reply) && reply.to_string().len() < 1000);
    }
    assert!(is_host_error(&peer.line(r#"{"aid":"\ud800"}"#)));
}

#[test]
fn echo_gives_back_any_object_exactly() {
    let mut peer = Peer::serve();
    for text in [
        r#"{}"#,
        r#"{"a":9007199254740991,"b":-9007199254740991,"c":123456789012345678901234567890,"d":1e400}"#,
        r#"{"z":1,"a":2}"#,
        r#"{"a":"\ud800","b":"\u0000\u001f\"\\\/"}"#,
        r#"{ "a" : [ true , null ] }"#,
    ] {
        let reply = peer.send(json!({ "aid": aid("ECHO"), "input_json": text }));
        assert_eq!(reply["output_json"], text);
        assert_eq!((&reply["error"], &reply["status"]), (&json!(""), &json!("OK")));
    }
}

#[test]
fn tools_answer_as_the_table_says() {
    let mut peer = Peer::serve();
    assert_eq!(output(&peer.call("ANY", json!({}))), json!({}));
    assert_eq!((peer.count(), peer.count()), (1, 2));
    assert_eq!(output(&peer.call("BLOB", json!({ "bytes": 3 }))), json!({ "data": "xxx" }));
    assert_eq!(output(&peer.call("BLOB", json!({ "bytes": 0.0 }))), json!({ "data": "" }));
    assert_eq!(output(&peer.call("SLEEP", json!({ "ms": 2e1 }))), json!({ "slept_ms": 20 }));
    assert_eq!(output(&peer.call("TIER3", json!({}))), json!({ "count": 1 }), "leases are not enforced");
    let reply = peer.call("FAIL", json!({ "message": "boo \0 é" }));
    assert!(is_tool_error(&reply));
    assert_eq!(reply["error"], "boo \0 é");
    assert!(is_tool_error(&peer.call("FAIL", json!({ "message": "" }))), "an error is never empty");
    assert!(is_tool_error(&peer.call("CRASH", json!({}))));
    let reply = peer.call("NOISE", json!({ "stdout": "{\"ok\":true}\n", "stderr": "err" }));
    assert_eq!(output(&reply), json!({}));
    assert_eq!(peer.stderr, b"{\"ok\":true}\nerr");
    for (role, input) in [
        ("PUT", json!({})),
        ("GET", json!({ "slot": 8 })),
        ("GET", json!({ "slot": -1 })),
        ("REMOVE", json!({ "slot": "1" })),
        ("FAIL", json!({})),
        ("SLEEP", json!({ "ms": -1 })),
        ("SLEEP", json!({ "ms": 1e300 })),
        ("BLOB", json!({ "bytes": "3" })),
        ("BLOB", json!({ "bytes": 1e15 })),
        ("NOISE", json!({ "stdout": 1 })),
        ("HTTP_GET", json!({ "url": 1 })),
    ] {
        assert!(is_tool_error(&peer.call(role, input.clone())), "{role} {input}");
    }
}

#[test]
fn abort_ends_the_process_after_earlier_replies() {
    let mut peer = Peer::chosen("crash_kind=abort");
    let lines = format!(
        "{}\n{}\n{}\n",
        request("ANY", json!({})),
        request("CRASH", json!({})),
        request("ANY", json!({}))
    );
    peer.write(lines.as_bytes());
    assert!(peer.aborted);
    assert_eq!(peer.replies().len(), 1);
}

#[test]
fn a_reply_at_the_limit_is_sent_and_one_byte_more_is_a_tool_error() {
    let mut peer = Peer::serve();
    let overhead = {
        peer.call("BLOB", json!({ "bytes": 0 }));
        peer.write((request("BLOB", json!({ "bytes": 0 })).to_string() + "\n").as_bytes());
        peer.stdout.len()
    };
    let mut peer = Peer::with(|config| config.limits.reply_bytes_max = 400);
    let fits = 400 - overhead;
    assert_eq!(output(&peer.call("BLOB", json!({ "bytes": fits })))["data"].as_str().unwrap().len(), fits);
    assert!(is_tool_error(&peer.call("BLOB", json!({ "bytes": fits + 1 }))));
    assert!(is_tool_error(&peer.call("ECHO", json!({ "a": "x".repeat(10_000) }))));
    assert!(is_tool_error(&peer.call("FAIL", json!({ "message": "x".repeat(10_000) }))));
    for members in [json!({ "idempotency_key": "k" }), json!({ "idempotency_key": "k" })] {
        peer.write(
            (with(request("BLOB", json!({ "bytes": fits - 23 })), members).to_string() + "\n").as_bytes(),
        );
        assert!(peer.stdout.len() <= 400 && peer.stdout.starts_with(b"{\"ok\":true"));
        peer.stdout.clear();
    }
}
