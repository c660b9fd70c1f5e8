//! Run mode.

use peerproof_reference::machine::{Action, Event};
use peerproof_reference::toolhost::{Config, Mode};
use serde_json::{Value, json};

use super::peer::{Peer, aid, artifact, is_host_error, is_tool_error, output};

fn peer(role: &str, change: impl FnOnce(&mut Config)) -> Peer {
    let mut config = Config::new(Mode::Run { aid: aid(role) });
    change(&mut config);
    Peer::new(config)
}

/// Sends `input` in chunks, closes standard input, and returns the only reply and the exit status.
fn run(mut peer: Peer, input: &[u8], chunk: usize) -> (Value, i32) {
    for bytes in input.chunks(chunk) {
        if peer.exit.is_none() {
            peer.write(bytes);
        }
    }
    if peer.exit.is_none() {
        peer.close();
    }
    let mut replies = peer.replies();
    assert_eq!(replies.len(), 1);
    (replies.remove(0), peer.exit.unwrap())
}

fn once(role: &str, input: &str) -> Value {
    run(peer(role, |_| {}), input.as_bytes(), 1000).0
}

#[test]
fn one_object_gets_one_reply_with_the_full_state() {
    let input = json!({ "input_json": "{\"a\":\"é\"}", "ds_state": { "delta": true, "slots": { "2": artifact("x") } } });
    for chunk in [1, 3, 1000] {
        let (reply, exit) = run(peer("ECHO", |_| {}), format!(" {input}\r\n ").as_bytes(), chunk);
        assert_eq!(output(&reply), json!({ "a": "é" }));
        assert_eq!(reply["ds_state"], json!({ "slots": { "2": artifact("x") } }));
        assert_eq!(exit, 0);
    }
    let reply = once(
        "PUT",
        &json!({ "input_json": json!({ "slot": 0, "artifact": artifact("y") }).to_string() }).to_string(),
    );
    assert_eq!(reply["ds_state"], json!({ "slots": { "0": artifact("y") } }));
}

#[test]
fn only_input_and_state_are_known_members() {
    let input = r#"{"aid":1,"idempotency_key":[],"_lease_token":{},"x":null}"#;
    assert_eq!(output(&once("COUNTER", input)), json!({ "count": 1 }));
    let (reply, _) = run(peer("TIER3", |config| config.lease_enforce = true), b"{}", 9);
    assert_eq!(output(&reply), json!({ "count": 1 }));
}

#[test]
fn malformed_requests_are_refused() {
    for input in [
        "",
        " ",
        "\n",
        "[]",
        "{}{}",
        "{} x",
        "{",
        "{\"input_json\":{}}",
        "{\"ds_state\":[]}",
        "{\"input_json\":\"[]\"}",
    ] {
        assert!(is_host_error(&once("COUNTER", input)), "{input}");
    }
    assert!(is_host_error(&once("NONE", "{}")));
    assert!(is_host_error(&once("COUNTER", "{\"input_json\":\"\\ud8\"}")));
}

#[test]
fn exit_status_after_a_host_error_follows_the_choice() {
    for (value, status) in [("zero", 0), ("nonzero", 1)] {
        let chosen = |role: &str| peer(role, |config| config.choices.set("host_error_exit", value).unwrap());
        assert_eq!(run(chosen("ANY"), b"[]", 9).1, status);
        assert_eq!(run(chosen("NONE"), b"{}", 9).1, status);
        assert_eq!(run(chosen("ANY"), b"{}", 9).1, 0);
        assert_eq!(run(chosen("FAIL"), br#"{"input_json":"{\"message\":\"m\"}"}"#, 99).1, 0);
    }
}

#[test]
fn all_of_standard_input_counts_against_the_limit() {
    let body = "{}".to_owned() + &" ".repeat(98);
    let small = |config: &mut Config| config.limits.stdin_bytes_max = 100;
    for chunk in [1, 99, 1000] {
        assert_eq!(run(peer("COUNTER", small), body.as_bytes(), chunk).0["ok"], true);
        assert!(is_host_error(&run(peer("COUNTER", small), format!("{body}\n").as_bytes(), chunk).0));
    }
    let mut peer = peer("COUNTER", small);
    peer.write(body.as_bytes());
    assert_eq!(peer.exit, None);
    peer.write(b" ");
    assert_eq!((peer.exit, peer.replies().len()), (Some(0), 1), "it does not wait for the rest");
}

#[test]
fn a_state_that_does_not_fit_into_the_reply_is_left_out_of_a_tool_error() {
    let input = json!({ "ds_state": { "slots": { "0": artifact(&"x".repeat(1000)) } } }).to_string();
    let (reply, exit) =
        run(peer("ANY", |config| config.limits.reply_bytes_max = 500), input.as_bytes(), 4096);
    assert!(is_tool_error(&reply) && reply.get("ds_state").is_none());
    assert_eq!(exit, 0);
    let input = json!({ "input_json": "{\"message\":\"m\"}", "ds_state": { "slots": { "0": artifact(&"x".repeat(1000)) } } });
    let (reply, _) =
        run(peer("FAIL", |config| config.limits.reply_bytes_max = 500), input.to_string().as_bytes(), 4096);
    assert_eq!(reply["error"], "m");
}

#[test]
fn a_sleeping_tool_ends_the_run_when_it_is_done_and_termination_ends_it_at_once() {
    let input = br#"{"input_json":"{\"ms\":700}"}"#;
    let (reply, exit) = run(peer("SLEEP", |_| {}), input, 99);
    assert_eq!((output(&reply), exit), (json!({ "slept_ms": 700 }), 0));
    let mut peer = peer("SLEEP", |_| {});
    peer.write(input);
    peer.event(Event::StdinEof);
    assert_eq!(peer.event(Event::Terminate), [Action::Exit(143)]);
}
