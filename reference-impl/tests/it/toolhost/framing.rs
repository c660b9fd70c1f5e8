//! Lines, limits, chunks, pipelining, the end of input.

use peerproof_reference::machine::{Action, Event};
use proptest::prelude::*;
use serde_json::json;

use super::peer::{Peer, is_host_error, output, request};

#[test]
fn a_line_at_the_limit_is_answered_and_one_byte_more_is_refused_once() {
    let base = request("ECHO", json!({})).to_string();
    let limit = base.len() + 40;
    let padded = |bytes: usize| {
        let pad = "é".repeat((bytes - base.len() - 9) / 2) + &"x".repeat((bytes - base.len() - 9) % 2);
        let line = format!("{},\"pad\":\"{pad}\"}}", base.strip_suffix('}').unwrap());
        assert_eq!(line.len(), bytes);
        line
    };
    for chunk in [1, 7, 1000] {
        let mut peer = Peer::with(|config| config.limits.stdin_bytes_max = limit);
        let lines = [limit - 1, limit, limit + 1, 2 * limit, limit].map(padded);
        let stream = lines.join("\n") + "\n" + &base + "\n";
        for bytes in stream.as_bytes().chunks(chunk) {
            peer.write(bytes);
        }
        let refused: Vec<_> = peer.replies().iter().map(is_host_error).collect();
        assert_eq!(refused, [false, false, true, true, false, false], "chunks of {chunk}");
    }
}

#[test]
fn an_over_limit_line_is_refused_at_the_crossing() {
    let mut peer = Peer::with(|config| config.limits.stdin_bytes_max = 10);
    peer.write(b"{\"pad\":\"12");
    assert_eq!(peer.replies().len(), 0);
    peer.write(b"3");
    assert!(is_host_error(&peer.replies()[0]));
    peer.write(&[b'x'; 100]);
    peer.close();
    assert_eq!((peer.replies().len(), peer.exit), (0, Some(0)));
}

#[test]
fn a_carriage_return_before_the_newline_is_tolerated() {
    let mut peer = Peer::serve();
    let line = request("ECHO", json!({})).to_string() + "\r";
    assert_eq!(output(&peer.line(&line)), json!({}));
    peer.write(b"\r\n \t\r\n\n");
    assert_eq!(peer.replies().len(), 0);
}

#[test]
fn pipelined_lines_are_one_write_in_order() {
    let mut peer = Peer::serve();
    let lines: String = (0..64).map(|n| request("ECHO", json!({ "n": n })).to_string() + "\n").collect();
    peer.write(lines.as_bytes());
    assert_eq!(peer.writes, 1);
    for (n, reply) in peer.replies().iter().enumerate() {
        assert_eq!(output(reply), json!({ "n": n }));
    }
}

#[test]
fn replies_are_handed_over_in_bounded_batches() {
    let mut peer = Peer::with(|config| config.limits.output_batch_bytes = 1000);
    let lines: String =
        (0..50).map(|_| request("BLOB", json!({ "bytes": 400 })).to_string() + "\n").collect();
    let actions = peer.event(Event::Stdin(lines.as_bytes()));
    assert!(matches!(&actions[..], [Action::Stdout(bytes), Action::WakeAt(_)] if bytes.len() < 2000));
    assert!(!peer.wants_stdin());
    peer.deliver(Event::Wake);
    assert_eq!(peer.replies().len(), 48, "the first two are in the actions above");
    assert!(peer.wants_stdin());
}

#[test]
fn lines_behind_a_sleeping_tool_wait_in_order() {
    let mut peer = Peer::serve();
    let lines: String = [
        request("SLEEP", json!({ "ms": 5000 })),
        request("COUNTER", json!({})),
        request("SLEEP", json!({ "ms": 10 })),
        request("COUNTER", json!({})),
    ]
    .iter()
    .map(|request| request.to_string() + "\n")
    .collect();
    let start = peer.now;
    let actions = peer.event(Event::Stdin(lines.as_bytes()));
    assert_eq!(actions, [Action::WakeAt(start + 5000)]);
    assert!(!peer.wants_stdin());
    assert_eq!(peer.event(Event::StdinEof), []);
    peer.now += 5000;
    peer.deliver(Event::Wake);
    let outputs: Vec<_> = peer.replies().iter().map(output).collect();
    let expected = [json!({"slept_ms":5000}), json!({"count":1}), json!({"slept_ms":10}), json!({"count":2})];
    assert_eq!(outputs, expected);
    assert_eq!(peer.exit, Some(0));
}

#[test]
fn termination_ends_a_session_that_waits() {
    let mut peer = Peer::serve();
    peer.event(Event::Stdin(request("SLEEP", json!({ "ms": 5000 })).to_string().as_bytes()));
    peer.event(Event::Stdin(b"\n"));
    assert_eq!(peer.event(Event::Terminate), [Action::Exit(0)]);
    assert_eq!(peer.event(Event::Wake), []);
}

#[test]
fn the_last_line_without_newline_follows_the_choice() {
    for (choice, complete, cut) in [("process", 1, 1), ("refuse", 1, 1), ("silent", 1, 0)] {
        for (line, replies) in
            [("{\"aid\":\"AID.PEERPROOF.COUNTER.v1\"}", complete), ("{\"aid\":\"AID.PEER", cut)]
        {
            let mut peer = Peer::chosen(&format!("last_line_without_lf={choice}"));
            assert_eq!(peer.count(), 1);
            peer.write(line.as_bytes());
            peer.close();
            let got = peer.replies();
            assert_eq!(got.len(), replies, "{choice} {line}");
            let processed = choice != "refuse" && line.ends_with('}');
            assert_eq!(got.iter().any(|reply| reply["ok"] == true), processed, "{choice} {line}");
            assert_eq!(peer.exit, Some(0));
        }
    }
}

#[test]
fn a_last_line_may_wait_before_the_end() {
    let mut peer = Peer::serve();
    peer.write(request("SLEEP", json!({ "ms": 50 })).to_string().as_bytes());
    peer.close();
    assert_eq!(output(&peer.replies()[0]), json!({ "slept_ms": 50 }));
    assert_eq!(peer.exit, Some(0));
}

#[test]
fn blank_lines_follow_the_choice() {
    let count = request("COUNTER", json!({})).to_string();
    for blank in ["", " ", "\t \r"] {
        let stream = format!("{count}\n{blank}\n{count}\n");
        let run = |choice: &str| {
            let mut peer = Peer::chosen(choice);
            peer.write(stream.as_bytes());
            let ok: Vec<_> = peer.replies().iter().map(|reply| reply["ok"] == true).collect();
            (ok, peer.exit)
        };
        assert_eq!(run("blank_line=ignore"), (vec![true, true], None));
        assert_eq!(run("blank_line=refuse"), (vec![true, false, true], None));
        assert_eq!(run("blank_line=end"), (vec![true], Some(0)));
    }
}

fn conversation() -> impl Strategy<Value = Vec<u8>> {
    let lines = prop_oneof![
        Just(request("ECHO", json!({ "a": "é\u{1F600}" })).to_string()),
        Just(request("COUNTER", json!({})).to_string()),
        Just(request("SLEEP", json!({ "ms": 3 })).to_string()),
        Just(request("NOISE", json!({ "stdout": "x", "stderr": "y" })).to_string()),
        Just("x".repeat(300)),
        Just("\r".to_owned()),
        "[ -~é]{0,20}",
    ];
    (proptest::collection::vec(lines, 0..12), any::<bool>()).prop_map(|(lines, end)| {
        let mut stream = lines.join("\n").into_bytes();
        stream.extend(end.then_some(b'\n'));
        stream
    })
}

proptest! {
    #[test]
    fn chunking_changes_nothing(stream in conversation(), sizes in proptest::collection::vec(1usize..70, 1..6)) {
        let run = |sizes: &[usize]| {
            let mut peer = Peer::with(|config| config.limits.stdin_bytes_max = 200);
            let mut rest = &stream[..];
            for size in sizes.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (chunk, tail) = rest.split_at((*size).min(rest.len()));
                rest = tail;
                peer.write(chunk);
            }
            peer.close();
            (String::from_utf8(peer.stdout).unwrap(), peer.stderr, peer.exit)
        };
        prop_assert_eq!(run(&sizes), run(&[usize::MAX]));
    }

    #[test]
    fn any_bytes_get_json_lines_and_an_orderly_end(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut peer = Peer::serve();
        if !bytes.is_empty() {
            peer.write(&bytes);
        }
        peer.close();
        prop_assert!(peer.replies().iter().all(is_host_error));
        prop_assert_eq!(peer.exit, Some(0));
    }
}
