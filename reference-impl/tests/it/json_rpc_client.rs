//! Tests of the JSON-RPC client as a machine with a virtual clock.

use peerproof_reference::json_rpc::{AuthConfig, HmacVerifier, Verifier};
use peerproof_reference::json_rpc_client::{Choices, Config, Scenario, machine};
use peerproof_reference::limits::Limits;
use peerproof_reference::machine::{Action, Event, Machine, Millis};
use serde_json::{Value, json};

/// A client under test with its output so far.
struct Driven {
    client: Box<dyn Machine + Send>,
    now: Millis,
    wake: Option<Millis>,
    sent: Vec<Value>,
    results: Vec<Value>,
    exit: Option<i32>,
}

impl Driven {
    fn new(scenario: &Value) -> Self {
        Self::with(scenario, Choices::default(), Limits::default())
    }

    fn with(scenario: &Value, choices: Choices, limits: Limits) -> Self {
        let scenario = Scenario::parse(scenario.to_string().as_bytes()).unwrap();
        let client =
            machine(Config { scenario, choices, limits, rng_seed: 5, started_unix_ms: 1_634_567_890_000 });
        let mut driven =
            Self { client, now: 0, wake: None, sent: Vec::new(), results: Vec::new(), exit: None };
        let mut actions = Vec::new();
        driven.client.begin(0, &mut actions);
        driven.act(actions);
        driven
    }

    fn act(&mut self, actions: Vec<Action>) {
        self.wake = None;
        for action in actions {
            assert_eq!(self.exit, None, "nothing happens after the end");
            let lines = |bytes: &[u8]| {
                assert!(bytes.ends_with(b"\n"));
                let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
                lines.map(|line| serde_json::from_slice(line).unwrap()).collect::<Vec<Value>>()
            };
            match action {
                Action::Stdout(bytes) => self.sent.extend(lines(&bytes)),
                Action::Append(bytes) => self.results.extend(lines(&bytes)),
                Action::WakeAt(at) => self.wake = Some(at),
                Action::Exit(status) => self.exit = Some(status),
                other => panic!("{other:?}"),
            }
        }
    }

    fn event(&mut self, event: Event<'_>) {
        let mut actions = Vec::new();
        self.client.handle(event, self.now, &mut actions);
        self.act(actions);
    }

    fn says(&mut self, line: &Value) {
        self.event(Event::Stdin(format!("{line}\n").as_bytes()));
    }

    /// Advances the clock to the client's next timer.
    fn wakes(&mut self) -> Millis {
        self.now = self.wake.unwrap();
        self.event(Event::Wake);
        self.now
    }

    fn last_id(&self) -> Value {
        self.sent.last().unwrap()["id"].clone()
    }

    /// Outcomes by ref.
    fn outcomes(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        self.results.iter().map(|line| (text(&line["ref"]), text(&line["outcome"]))).collect()
    }
}

fn call(name: &str) -> Value {
    json!({"ref": name, "method": "m", "timeout_ms": 1_000})
}

fn one(extra: Value) -> Value {
    let mut call = call("a");
    call.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    json!({"calls": [call]})
}

fn failure(id: &Value, code: i64, data: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "x", "data": data}})
}

#[test]
fn a_call_ends_by_its_answer() {
    let mut client = Driven::new(&one(json!({"params": [1]})));
    assert_eq!(client.sent, [json!({"jsonrpc": "2.0", "method": "m", "params": [1], "id": 1})]);
    client.now = 7;
    client.says(&json!({"jsonrpc": "2.0", "id": 1, "result": {"b": false}}));
    assert_eq!(
        client.results,
        [json!({"ref": "a", "outcome": "result", "attempts": 1, "elapsed_ms": 7, "result": {"b": false}})]
    );
    assert_eq!(client.exit, Some(0));
}

#[test]
fn no_calls_are_done_at_once() {
    assert_eq!(Driven::new(&json!({"calls": []})).exit, Some(0));
}

#[test]
fn the_time_is_that_of_all_attempts() {
    let mut client = Driven::new(&one(json!({"retry": {"max_attempts": 99, "base_ms": 100}})));
    let mut attempts = 1;
    while client.exit.is_none() {
        let id = client.last_id();
        client.says(&failure(&id, -32001, Value::Null));
        if client.exit.is_none() {
            client.wakes();
            attempts += 1;
            assert!(client.sent.len() == attempts && attempts < 99);
        }
    }
    assert!(client.now < 1_000 && attempts > 2, "{attempts} until {}", client.now);
    assert_eq!(client.results[0]["outcome"], "error");

    let mut choices = Choices::default();
    choices.set("retry_past_timeout", "timeout").unwrap();
    let scenario = one(json!({"retry": {"max_attempts": 2, "base_ms": 5_000}}));
    let mut client = Driven::with(&scenario, choices, Limits::default());
    client.says(&failure(&json!(1), -32001, Value::Null));
    assert_eq!(client.wakes(), 1_000);
    assert_eq!((client.results[0]["outcome"].as_str(), client.exit), (Some("timeout"), Some(0)));
}

#[test]
fn a_timeout_is_final_and_a_late_answer_is_late() {
    let scenario = json!({"calls": [call("a"), {"ref": "b", "method": "m", "timeout_ms": 5_000}]});
    let mut client = Driven::new(&scenario);
    assert_eq!(client.wakes(), 1_000);
    client.says(&json!({"jsonrpc": "2.0", "id": 1, "result": 1}));
    assert_eq!(client.outcomes(), [("a".to_owned(), "timeout".to_owned())]);
    // This response lay in the pipe until the deadline had passed.
    client.now = 5_000;
    client.says(&json!({"jsonrpc": "2.0", "id": 2, "result": 1}));
    assert_eq!(client.outcomes()[1].1, "timeout");
    assert_eq!(client.exit, Some(0));
}

#[test]
fn only_transient_errors_are_tried_again() {
    let cases = [
        (-32001, Value::Null, true),
        (-32002, json!({"retry_after_ms": 3}), true),
        (-32000, json!({"type": "TIMEOUT"}), true),
        (-32000, json!({"type": "EXECUTION_ERROR"}), false),
        (-32000, Value::Null, false),
        (-32003, Value::Null, false),
        (-32603, json!({"type": "TIMEOUT"}), false),
    ];
    for (code, data, again) in cases {
        let mut client = Driven::new(&one(json!({"retry": {"max_attempts": 2, "base_ms": 100}})));
        client.says(&failure(&json!(1), code, data.clone()));
        assert_eq!(client.exit.is_none(), again, "{code} {data}");
        if again {
            assert!((50..=150).contains(&client.wakes()), "{code}: {}", client.now);
            assert_eq!(client.last_id(), json!(2));
            client.says(&failure(&json!(2), code, data));
            assert_eq!((client.exit, client.results[0]["attempts"].as_u64()), (Some(0), Some(2)));
        }
    }
}

#[test]
fn the_server_says_when() {
    let mut client = Driven::new(&one(json!({"retry": {"max_attempts": 2, "base_ms": 10}})));
    client.says(&failure(&json!(1), -32002, json!({"retry_after_ms": 400})));
    assert_eq!(client.wakes(), 400);
}

#[test]
fn batches_and_order_are_those_of_the_scenario() {
    let mut first = call("a");
    first["batch"] = json!("x");
    let mut second = call("b");
    (second["batch"], second["notify"]) = (json!("x"), json!(true));
    let mut third = call("c");
    third["after"] = json!(["a", "b"]);
    let mut client = Driven::new(&json!({"calls": [first, third, second]}));
    let batch = json!([{"jsonrpc": "2.0", "method": "m", "id": 1}, {"jsonrpc": "2.0", "method": "m"}]);
    assert_eq!(client.sent, [batch]);
    assert_eq!(client.outcomes(), [("b".to_owned(), "sent".to_owned())]);
    client.says(&json!([{"jsonrpc": "2.0", "id": 1, "result": 0}]));
    assert_eq!(client.last_id(), json!(2));
}

#[test]
fn noise_changes_nothing_and_chunks_mean_the_same() {
    let mut client = Driven::new(&one(json!({})));
    for noise in
        ["\n", "x\n", "[]\n", "{}\n", "{\"id\":1}x\n", "{\"id\":\"1\",\"result\":2}\n", "\u{1}\n", "7\n"]
    {
        client.event(Event::Stdin(noise.as_bytes()));
    }
    assert_eq!((client.exit, client.results.len()), (None, 0));
    for byte in "{\"jsonrpc\":\"2.0\",\"id\":1.0,\"result\":\"é\"}\n".as_bytes() {
        client.event(Event::Stdin(&[*byte]));
    }
    assert_eq!((client.exit, &client.results[0]["result"]), (Some(0), &json!("é")));
}

#[test]
fn what_is_no_response_is_invalid() {
    for line in [
        json!({"jsonrpc": "2.0", "id": 1}),
        json!({"jsonrpc": "2.0", "id": 1, "result": 1, "error": {"code": 1, "message": "x"}}),
        json!({"jsonrpc": "2.0", "id": 1, "error": "x"}),
        json!({"jsonrpc": "2.0", "id": 1, "error": {"message": "x"}}),
        json!({"jsonrpc": "2.0", "id": 1, "error": {"code": 1.5, "message": "x"}}),
        json!({"jsonrpc": "2.0", "id": 1, "error": {"code": 1}}),
        json!({"id": 1, "result": 1}),
    ] {
        let mut client = Driven::new(&one(json!({})));
        client.says(&line);
        assert_eq!(client.outcomes()[0].1, "invalid", "{line}");
    }
}

#[test]
fn an_error_for_nobody_ends_the_only_call_that_waits() {
    let nobody = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "x"}});
    let mut client = Driven::new(&one(json!({})));
    client.says(&nobody);
    assert_eq!(client.outcomes()[0].1, "error");
    let mut client = Driven::new(&json!({"calls": [call("a"), call("b")]}));
    client.says(&nobody);
    assert_eq!(client.results.len(), 0);
    let mut choices = Choices::default();
    choices.set("null_id_error", "ignore").unwrap();
    let mut client = Driven::with(&one(json!({})), choices, Limits::default());
    client.says(&nobody);
    assert_eq!(client.results.len(), 0);
}

#[test]
fn requests_from_the_server_are_dropped_or_refused() {
    let request = json!({"jsonrpc": "2.0", "id": "s", "method": "ask"});
    let mut client = Driven::new(&one(json!({})));
    client.says(&request);
    assert_eq!(client.sent.len(), 1);
    let mut choices = Choices::default();
    choices.set("server_requests", "answer").unwrap();
    let mut client = Driven::with(&one(json!({})), choices, Limits::default());
    client.says(&request);
    assert_eq!((&client.last_id(), &client.sent[1]["error"]["code"]), (&json!("s"), &json!(-32601)));
    client.says(&json!({"jsonrpc": "2.0", "method": "tell"}));
    assert_eq!(client.sent.len(), 2);
}

#[test]
fn sizes_are_kept() {
    let limits = Limits { rpc_message_bytes_max: 60, ..Limits::default() };
    let mut client =
        Driven::with(&one(json!({"params": ["x".repeat(60)]})), Choices::default(), limits.clone());
    assert_eq!((client.sent.len(), client.exit), (0, Some(0)));
    assert_eq!(client.results[0]["outcome"], "too_large");
    client = Driven::with(&one(json!({})), Choices::default(), limits.clone());
    client.event(Event::Stdin(&[b'x'; 61]));
    assert_eq!(client.outcomes()[0].1, "too_large");
}

#[test]
fn a_gone_server_ends_everything() {
    let mut later = call("b");
    later["after"] = json!(["a"]);
    let mut client = Driven::new(&json!({"calls": [call("a"), later, call("c")]}));
    client.event(Event::Stdin(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":1}"));
    client.event(Event::StdinEof);
    let ends = [("c", "result"), ("a", "disconnected"), ("b", "disconnected")];
    assert_eq!(client.outcomes(), ends.map(|(name, end)| (name.to_owned(), end.to_owned())));
    assert_eq!(client.exit, Some(0));
}

#[test]
fn streams_are_counted() {
    let tell = |method: &str, params: Value| json!({"jsonrpc": "2.0", "method": method, "params": params});
    let told_after = |starts: usize, sequences: &[u64], total: u64| {
        let mut client = Driven::new(&one(json!({})));
        for _ in 0..starts {
            client.says(&tell("stream_start", json!({"stream_id": "s", "task_id": 1})));
        }
        for sequence in sequences {
            client.says(&tell("stream_data", json!({"stream_id": "s", "sequence": sequence, "chunk": "x"})));
            client.says(&tell("stream_data", json!({"stream_id": "t", "sequence": 1, "chunk": "x"})));
        }
        client.says(&tell("stream_end", json!({"stream_id": "s", "total_chunks": total})));
        // Data after the end of the stream is ignored.
        client.says(&tell("stream_data", json!({"stream_id": "s", "sequence": total + 1, "chunk": "x"})));
        client.says(&json!({"jsonrpc": "2.0", "id": 1, "result": 1}));
        (client.results[0]["chunks"].as_u64().unwrap(), client.results[0]["stream_ok"].as_bool().unwrap())
    };
    assert_eq!(told_after(2, &[1], 1), (1, false));
    let told = |sequences: &[u64], total: u64| told_after(1, sequences, total);
    assert_eq!(told(&[1, 2, 3], 3), (3, true));
    assert_eq!(told(&[], 0), (0, true));
    assert_eq!(told(&[1, 3], 2), (1, false));
    assert_eq!(told(&[2, 1, 3], 3), (1, false));
    assert_eq!(told(&[1, 2], 3), (2, false));
}

#[test]
fn sigterm_ends_it() {
    let mut client = Driven::new(&one(json!({})));
    client.event(Event::Terminate);
    assert_eq!(client.exit, Some(143));
}

#[test]
fn signed_requests_are_those_that_a_server_accepts() {
    let key = "a shared secret";
    let calls = json!([
        { "ref": "a", "method": "peerproof.counter", "params": {}, "timeout_ms": 1_000 },
        { "ref": "b", "method": "peerproof.echo", "params": ["é", 1.5], "timeout_ms": 1_000 }
    ]);
    for key_id in [None, Some("k1")] {
        let driven = Driven::new(&json!({ "auth": { "key": key, "key_id": key_id }, "calls": calls }));
        let config = AuthConfig { key: key.into(), key_id: key_id.map(str::to_owned) };
        let verifier = HmacVerifier::new(config, &Limits::default());
        let sent = driven.sent.iter().map(Value::to_string);
        // The client's clock started at this second.
        let nonces: Vec<_> =
            sent.map(|text| verifier.verify(text.as_bytes(), 1_634_567_890).unwrap()).collect();
        assert!(nonces.len() == 2 && nonces[0] != nonces[1], "{nonces:?}");
        let auth = driven.sent[0]["auth"].as_object().unwrap();
        assert_eq!(auth["timestamp"], 1_634_567_890);
        assert_eq!(auth.get("key_id"), key_id.map(Value::from).as_ref());
    }
}
