//! Streams of tasks.

use serde_json::{Value, json};

use super::peer::{Peer, check, code};

fn task(id: &Value, options: Value) -> String {
    let params = json!({ "task_type": "code_generation", "prompt": "Add two numbers", "options": options });
    json!({ "jsonrpc": "2.0", "method": "execute_task", "params": params, "id": id }).to_string() + "\n"
}

/// Chunks of the only stream among `messages`, whose grammar is checked, and the messages after its end.
fn stream(messages: &[Value], task_id: &Value) -> (Vec<String>, Vec<Value>) {
    messages.iter().for_each(check);
    let start = &messages[0];
    assert_eq!((&start["method"], &start["params"]["task_id"]), (&json!("stream_start"), task_id));
    let stream_id = &start["params"]["stream_id"];
    let mut chunks = Vec::new();
    for (at, message) in messages.iter().enumerate().skip(1) {
        assert_eq!(&message["params"]["stream_id"], stream_id);
        match message["method"].as_str().unwrap() {
            "stream_data" => {
                chunks.push(message["params"]["chunk"].as_str().unwrap().to_owned());
                assert_eq!(message["params"]["sequence"], chunks.len());
            }
            "stream_end" => {
                assert_eq!(message["params"]["total_chunks"], chunks.len());
                return (chunks, messages[at + 1..].to_vec());
            }
            other => panic!("{other}"),
        }
    }
    panic!("the stream has no end: {messages:?}");
}

#[test]
fn a_stream_says_what_the_result_says() {
    for id in [json!("task_001"), json!(7)] {
        let mut peer = Peer::plain();
        peer.write(task(&id, json!({ "stream": true, "language": "rust" })).as_bytes());
        let (chunks, rest) = stream(&peer.messages(), &id);
        assert!(chunks.len() > 2);
        assert_eq!(rest.len(), 1);
        assert_eq!((&rest[0]["id"], &rest[0]["result"]["status"]), (&id, &json!("success")));
        assert_eq!(rest[0]["result"]["output"]["code"], chunks.concat());
        peer.sleep(100_000);
        assert_eq!(peer.lines().len(), 0);
    }
}

#[test]
fn streams_of_two_tasks_interleave() {
    let mut peer = Peer::plain();
    let ask = |id: u64| task(&json!(id), json!({ "stream": true, "pace_ms": 10 }));
    peer.write((ask(1) + &ask(2)).as_bytes());
    peer.sleep(1_000);
    let messages = peer.messages();
    let of: Vec<_> = messages.iter().filter_map(|m| m["params"]["stream_id"].as_str()).collect();
    assert!(of.windows(3).any(|w| w[0] != w[1] && w[0] == w[2]), "{of:?}");
    for id in [1, 2] {
        let stream_id = messages
            .iter()
            .find(|message| message["params"]["task_id"] == id)
            .map(|message| message["params"]["stream_id"].clone())
            .unwrap();
        let own: Vec<_> = messages
            .iter()
            .filter(|message| message["params"]["stream_id"] == stream_id || message["id"] == id)
            .cloned()
            .collect();
        assert_eq!(stream(&own, &json!(id)).1.len(), 1);
    }
}

#[test]
fn a_timeout_ends_the_stream_first() {
    let mut peer = Peer::plain();
    peer.write(task(&json!(1), json!({ "stream": true, "pace_ms": 100, "timeout_ms": 150 })).as_bytes());
    peer.sleep(150);
    let (chunks, rest) = stream(&peer.messages(), &json!(1));
    assert_eq!(chunks.len(), 2);
    assert_eq!((rest.len(), code(&rest[0])), (1, -32000));
    peer.sleep(10_000);
    assert_eq!(peer.lines().len(), 0);
}

#[test]
fn refused_tasks_and_others_have_no_stream() {
    let mut peer = Peer::plain();
    let asked = task(&json!(1), json!({ "stream": true }));
    for line in [
        asked.replace("code_generation", "code"),
        asked.replace("true", "false"),
        format!("[{}]\n", asked.trim()),
    ] {
        peer.write(line.as_bytes());
        let messages = peer.messages();
        assert_eq!(messages.len(), 1, "{line}");
        assert!(messages[0].get("method").is_none());
    }
    peer.write(asked.replace(",\"id\":1", "").replace("\"id\":1,", "").as_bytes());
    assert_eq!(peer.lines().len(), 0, "a notification streams nothing");
    let mut peer = Peer::with(|config| config.features.streaming = false);
    peer.write(asked.as_bytes());
    assert_eq!(peer.messages().len(), 1);
}

#[test]
fn the_end_of_input_lets_streams_finish() {
    let mut peer = Peer::plain();
    peer.write(task(&json!(1), json!({ "stream": true })).as_bytes());
    peer.write(task(&json!(2), json!({ "stream": true, "pace_ms": 60_000 })).as_bytes());
    let first = peer.messages();
    peer.close();
    let messages = [first, peer.messages()].concat();
    assert_eq!(peer.exit, Some(0));
    let ends = messages.iter().filter(|message| message["method"] == "stream_end").count();
    assert_eq!(ends, 2);
    let replies: Vec<_> = messages.iter().filter(|message| message.get("id").is_some()).collect();
    assert_eq!(replies.len(), 2);
    assert_eq!(code(replies[1]), -32001);
}
