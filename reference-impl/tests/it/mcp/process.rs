//! The server as a process.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use super::super::REFPEER;
use super::{opening, request};
use serde_json::{Value, json};

#[test]
fn it_serves_and_ends_with_its_input() {
    let mut child = Command::new(REFPEER)
        .args(["mcp", "server", "--newest", "2025-06-18", "--without", "prompts"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let sleep = request(2, "tools/call", &json!({ "name": "sleep", "arguments": { "ms": 20 } }));
    write!(input, "{}\n{sleep}\n", opening("2025-11-25", &json!({}))).unwrap();
    drop(input);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let messages: Vec<Value> = lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    assert_eq!(messages[0]["result"]["protocolVersion"], "2025-06-18");
    assert!(messages[0]["result"]["capabilities"].get("prompts").is_none());
    assert_eq!(messages[1]["result"]["content"][0]["text"], "slept 20 ms");
    assert!(child.wait().unwrap().success());
}

#[test]
fn arguments_that_make_no_sense_are_refused() {
    for arguments in
        [&["mcp"][..], &["mcp", "server", "--newest", "2026"], &["mcp", "server", "--choice", "a=b"]]
    {
        assert_eq!(Command::new(REFPEER).args(arguments).output().unwrap().status.code(), Some(2));
    }
}
