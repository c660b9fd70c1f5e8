//! Tests of the `refpeer` binary that need a real process.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::peer::request;
use crate::REFPEER;

/// Starts a peer, with a guard that kills it as hung unless the test ends in time.
fn start(arguments: &[&str]) -> (Child, Sender<()>) {
    let child = Command::new(REFPEER)
        .arg("json-rpc")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = Pid::from_child(&child);
    let (under_way, ended) = channel();
    thread::spawn(move || {
        if ended.recv_timeout(Duration::from_secs(30)) == Err(RecvTimeoutError::Timeout) {
            let _ = kill_process(pid, Signal::KILL);
        }
    });
    (child, under_way)
}

#[test]
fn answers_until_the_end_of_input() {
    let (mut child, _under_way) = start(&[]);
    let mut stdin = child.stdin.take().unwrap();
    let writer = thread::spawn(move || {
        for ms in [300, 0, 100] {
            writeln!(stdin, "{}", request("peerproof.sleep", json!({ "ms": ms }))).unwrap();
        }
        stdin.write_all(request("peerproof.counter", json!({})).as_bytes()).unwrap();
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let replies: Vec<Value> =
        output.stdout.split(|b| *b == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
    assert_eq!(replies.len(), 4);
    assert_eq!(replies[3]["result"], json!({ "slept_ms": 300 }));
    assert_eq!((output.stderr.as_slice(), output.status.code()), (&b""[..], Some(0)));
}

#[test]
fn a_slow_call_is_answered_while_the_input_is_open() {
    let (mut child, _under_way) = start(&[]);
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    writeln!(stdin, "{}", request("peerproof.sleep", json!({ "ms": 200 }))).unwrap();
    writeln!(stdin, "{}", request("peerproof.counter", json!({}))).unwrap();
    assert!(lines.next().unwrap().unwrap().contains("count"));
    assert!(lines.next().unwrap().unwrap().contains("slept_ms"));
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn termination_ends_it_at_rest_and_at_work() {
    for slow in [false, true] {
        let (mut child, _under_way) = start(&[]);
        let mut stdin = child.stdin.take().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        if slow {
            writeln!(stdin, "{}", request("peerproof.sleep", json!({ "ms": 20_000 }))).unwrap();
        }
        writeln!(stdin, "{}", request("peerproof.counter", json!({}))).unwrap();
        stdout.read_line(&mut String::new()).unwrap();
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
        assert_eq!(stdout.read_to_end(&mut Vec::new()).unwrap(), 0);
    }
}

#[test]
fn misuse_is_explained() {
    for arguments in [&["x"][..], &["--without", "speed"], &["--choice", "bom=x"], &["--limit", "x"]] {
        let (child, _under_way) = start(arguments);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert_eq!(output.stderr.iter().filter(|byte| **byte == b'\n').count(), 1);
    }
}
