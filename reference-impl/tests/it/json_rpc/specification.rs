//! The examples of section 7 of the JSON-RPC 2.0 specification, with methods like theirs.

use peerproof_reference::json_rpc::{Answer, Call, Config, Failure, World};
use serde_json::{Value, json};

use super::peer::Peer;

fn parsed(call: &Call<'_>) -> Result<Value, Failure> {
    Ok(serde_json::from_str(call.params.text()?.unwrap_or("null")).unwrap())
}

fn subtract(call: &Call<'_>, _: &mut World) -> Answer {
    let difference = parsed(call).map(|params| {
        let of = |at: usize, name: &str| params.get(at).or(params.get(name)).unwrap().as_i64().unwrap();
        (of(0, "minuend") - of(1, "subtrahend")).to_string().into()
    });
    difference.into()
}

fn sum(call: &Call<'_>, _: &mut World) -> Answer {
    let sum = parsed(call).map(|params| {
        let sum: i64 = params.as_array().unwrap().iter().map(|n| n.as_i64().unwrap()).sum();
        sum.to_string().into()
    });
    sum.into()
}

fn get_data(_: &Call<'_>, _: &mut World) -> Answer {
    Ok("[\"hello\",5]".into()).into()
}

fn nothing(_: &Call<'_>, _: &mut World) -> Answer {
    Ok("null".into()).into()
}

fn peer() -> Peer {
    Peer::new(Config::default(), |components| {
        components.methods.set("subtract", subtract);
        components.methods.set("sum", sum);
        components.methods.set("get_data", get_data);
        for name in ["update", "notify_hello", "notify_sum"] {
            components.methods.set(name, nothing);
        }
    })
}

/// Reply without the parts that the specification leaves free.
fn bare(mut reply: Value) -> Value {
    if let Some(replies) = reply.as_array_mut() {
        return replies.drain(..).map(bare).collect();
    }
    if let Some(error) = reply["error"].as_object_mut() {
        error.remove("data");
    }
    if let Some(object) = reply.as_object_mut().filter(|object| object["error"].is_null()) {
        object.remove("error");
    }
    reply
}

fn error(code: i64, message: &str, id: Value) -> Value {
    json!({ "jsonrpc": "2.0", "error": { "code": code, "message": message }, "id": id })
}

#[test]
fn single_requests() {
    for (request, result, id) in [
        (r#"{"jsonrpc": "2.0", "method": "subtract", "params": [42, 23], "id": 1}"#, 19, 1),
        (r#"{"jsonrpc": "2.0", "method": "subtract", "params": [23, 42], "id": 2}"#, -19, 2),
        (
            r#"{"jsonrpc": "2.0", "method": "subtract", "params": {"subtrahend": 23, "minuend": 42}, "id": 3}"#,
            19,
            3,
        ),
        (
            r#"{"jsonrpc": "2.0", "method": "subtract", "params": {"minuend": 42, "subtrahend": 23}, "id": 4}"#,
            19,
            4,
        ),
    ] {
        assert_eq!(peer().line(request), json!({ "jsonrpc": "2.0", "result": result, "id": id }));
    }
}

#[test]
fn notifications_are_silent() {
    for request in [
        r#"{"jsonrpc": "2.0", "method": "update", "params": [1,2,3,4,5]}"#,
        r#"{"jsonrpc": "2.0", "method": "foobar"}"#,
    ] {
        assert_eq!(peer().exchange(request), Vec::<Value>::new());
    }
}

#[test]
fn faulty_requests() {
    let invalid = || error(-32600, "Invalid Request", Value::Null);
    for (request, expected) in [
        (
            r#"{"jsonrpc": "2.0", "method": "foobar", "id": "1"}"#,
            error(-32601, "Method not found", json!("1")),
        ),
        (
            r#"{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]"#,
            error(-32700, "Parse error", Value::Null),
        ),
        (r#"{"jsonrpc": "2.0", "method": 1, "params": "bar"}"#, invalid()),
        (
            r#"[{"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},{"jsonrpc": "2.0", "method"]"#,
            error(-32700, "Parse error", Value::Null),
        ),
        ("[]", invalid()),
        ("[1]", json!([invalid()])),
        ("[1,2,3]", json!([invalid(), invalid(), invalid()])),
    ] {
        assert_eq!(bare(peer().line(request)), expected, "{request}");
    }
}

#[test]
fn a_batch() {
    let batch = r#"[{"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},
        {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]},
        {"jsonrpc": "2.0", "method": "subtract", "params": [42,23], "id": "2"},
        {"foo": "boo"},
        {"jsonrpc": "2.0", "method": "foo.get", "params": {"name": "myself"}, "id": "5"},
        {"jsonrpc": "2.0", "method": "get_data", "id": "9"}]"#;
    let reply = bare(peer().line(&batch.replace('\n', " ")));
    assert_eq!(
        reply,
        json!([
            { "jsonrpc": "2.0", "result": 7, "id": "1" },
            { "jsonrpc": "2.0", "result": 19, "id": "2" },
            error(-32600, "Invalid Request", Value::Null),
            error(-32601, "Method not found", json!("5")),
            { "jsonrpc": "2.0", "result": ["hello", 5], "id": "9" },
        ])
    );
}

#[test]
fn a_batch_of_notifications_is_silent() {
    let batch = r#"[{"jsonrpc": "2.0", "method": "notify_sum", "params": [1,2,4]},
        {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]}]"#;
    assert_eq!(peer().exchange(&batch.replace('\n', " ")), Vec::<Value>::new());
}
