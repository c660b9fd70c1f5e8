//! Tests of the reference MCP server against the contract, in process, in virtual time.

mod calls;
mod choices;
mod client;
mod lifecycle;
mod messages;
mod methods;
mod mutants;
mod process;

use peerproof_reference::mcp::{Config, Revision, machine};
use serde_json::{Value, json};

use super::json_rpc::peer::Peer;

/// Server that has read nothing.
fn fresh(choices: &[&str]) -> Peer {
    let mut config = Config::default();
    for choice in choices {
        let (key, value) = choice.split_once('=').unwrap();
        config.choices.set(key, value).unwrap();
    }
    Peer::of(machine(config))
}

/// `initialize` request for a revision and capabilities of the client.
fn opening(revision: &str, capabilities: &Value) -> String {
    let client = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": revision, "capabilities": capabilities, "clientInfo": client });
    request("open", "initialize", &params)
}

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// Server in a session.
fn open(revision: Revision, choices: &[&str]) -> Peer {
    open_for(revision, choices, &json!({}))
}

/// Server in a session with a client that has these capabilities.
fn open_for(revision: Revision, choices: &[&str], capabilities: &Value) -> Peer {
    let mut peer = fresh(choices);
    let result = &send(&mut peer, &opening(revision.name(), capabilities))[0]["result"];
    assert_eq!(result["protocolVersion"], revision.name());
    assert_eq!(send(&mut peer, INITIALIZED), Vec::<Value>::new());
    peer
}

/// Session at the newest revision.
fn newest() -> Peer {
    open(Revision::V25c, &[])
}

fn request(id: impl Into<Value>, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params }).to_string()
}

/// Sends a line and returns the messages that come without advancing the clock.
fn send(peer: &mut Peer, line: &str) -> Vec<Value> {
    peer.write(format!("{line}\n").as_bytes());
    peer.messages()
}

/// Sends a request and returns its only answer.
fn answer(peer: &mut Peer, method: &str, params: &Value) -> Value {
    let mut messages = send(peer, &request(7, method, params));
    assert_eq!(messages.len(), 1, "{method} {params}: {messages:?}");
    let answer = messages.remove(0);
    assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(7)), "{method}");
    answer
}

fn result(peer: &mut Peer, method: &str, params: Value) -> Value {
    let answer = answer(peer, method, &params);
    assert!(answer["result"].is_object(), "{method} {params}: {answer}");
    answer["result"].clone()
}

fn code(peer: &mut Peer, method: &str, params: Value) -> i64 {
    let answer = answer(peer, method, &params);
    assert!(answer.get("result").is_none(), "{method} {params}: {answer}");
    assert!(answer["error"]["message"].is_string(), "{answer}");
    answer["error"]["code"].as_i64().unwrap()
}

/// Text of the first block of a tool's result.
fn text(peer: &mut Peer, tool: &str, arguments: Value) -> String {
    let result = result(peer, "tools/call", json!({ "name": tool, "arguments": arguments }));
    assert_eq!(result["isError"], false, "{result}");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}
