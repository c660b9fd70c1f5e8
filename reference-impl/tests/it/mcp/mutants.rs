//! Each mutant differs from the reference, and still opens a session.

use peerproof_reference::machine::{Action, Event, Machine};
use peerproof_reference::mcp::{Config, Revision, machine, mutants};
use serde_json::{Value, json};

use super::{INITIALIZED, opening, request};

/// Step of a conversation.
enum Act {
    Write(Vec<u8>),
    Sleep(u64),
    Close,
}

/// Actions of a machine in a conversation, as text.
fn play(mut machine: Box<dyn Machine + Send>, acts: &[Act]) -> Vec<String> {
    let (mut told, mut told_at, mut wake_at, mut now, mut has_ended) =
        (Vec::<String>::new(), None, None, 0, false);
    for act in acts {
        let (event, until) = match act {
            Act::Write(bytes) => (Some(Event::Stdin(bytes)), now),
            Act::Close => (Some(Event::StdinEof), now),
            Act::Sleep(ms) => (None, now + ms),
        };
        let mut next = event;
        loop {
            let event = match (next.take(), wake_at) {
                (Some(event), _) => event,
                (None, Some(at)) if at <= until => {
                    now = now.max(at);
                    wake_at = None;
                    Event::Wake
                }
                (None, _) => break,
            };
            if has_ended {
                return told;
            }
            let mut actions = Vec::new();
            machine.handle(event, now, &mut actions);
            for action in actions {
                match action {
                    Action::WakeAt(at) => wake_at = Some(at),
                    Action::Stdout(bytes) => match told.last_mut().filter(|_| told_at == Some(now)) {
                        // Chunk boundaries of the output do not matter.
                        Some(last) => *last += &String::from_utf8_lossy(&bytes),
                        None => {
                            told_at = Some(now);
                            told.push(format!("{now} {}", String::from_utf8_lossy(&bytes)));
                        }
                    },
                    action => {
                        has_ended = true;
                        told.push(format!("{now} {action:?}"));
                    }
                }
            }
        }
        now = until;
    }
    told
}

fn lines(lines: &[&str]) -> Act {
    Act::Write(lines.iter().flat_map(|line| [line.as_bytes(), b"\n"].concat()).collect())
}

fn call(id: i64, tool: &str, arguments: Value) -> String {
    let meta = json!({ "progressToken": id });
    request(id, "tools/call", &json!({ "name": tool, "arguments": arguments, "_meta": meta }))
}

/// Conversations that together show every fault.
fn conversations() -> Vec<Vec<Act>> {
    let all = json!({ "roots": {}, "sampling": {}, "elicitation": {} });
    let discover = request(1, "server/discover", &json!({ "_meta": {} }));
    let ping = request(2, "ping", &json!({}));
    let list = request(3, "tools/list", &json!({}));
    let mut conversations = vec![
        vec![lines(&[&ping]), lines(&[&list]), Act::Close],
        vec![lines(&[&discover]), lines(&[&opening("2025-11-25", &all)]), lines(&[&ping]), Act::Close],
        vec![lines(&[r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#]), Act::Close],
        vec![lines(&[&opening("1999-01-01", &all)]), Act::Close],
        vec![lines(&[&opening("2025-11-25", &json!({ "experimental": {} }))]), Act::Close],
        vec![lines(&[&opening("2025-11-25", &json!({ "holograms": {} }))]), Act::Close],
        vec![
            lines(&[&opening("2025-11-25", &all)]),
            lines(&[&list]),
            lines(&[INITIALIZED, &list]),
            Act::Close,
        ],
        vec![Act::Close],
    ];
    for revision in Revision::ALL {
        let opened = || vec![lines(&[&opening(revision.name(), &all), &ping]), lines(&[INITIALIZED])];
        let session =
            |acts: Vec<Act>| opened().into_iter().chain(acts).chain([Act::Close]).collect::<Vec<_>>();
        conversations.extend(many(&ping).into_iter().map(session));
    }
    conversations
}

/// Conversations in an open session.
fn many(ping: &str) -> Vec<Vec<Act>> {
    let by = |method: &str, params: Value| request("x", method, &params);
    let list = by("tools/list", json!({}));
    let mut many: Vec<Vec<Act>> = Vec::new();
    let single = [odd_lines(ping, &list), requests()].concat();
    many.extend(single.iter().map(|line| vec![lines(&[line]), lines(&[&list])]));
    many.push(vec![lines(&["nonsense", ping])]);
    many.push(vec![lines(&[ping; 50])]);
    many.push(vec![lines(&[
        &by("logging/setLevel", json!({ "level": "error" })),
        &call(1, "log", json!({})),
    ])]);
    let (a, b) = (
        call(1, "sleep", json!({ "ms": 50, "text": "a" })),
        call(2, "sleep", json!({ "ms": 20, "text": "b" })),
    );
    many.push(vec![lines(&[&a, &b]), Act::Sleep(100)]);
    many.extend(tasks());
    let mut named =
        json!({ "name": "sleep", "arguments": { "ms": 50 }, "_meta": { "progressToken": "token" } });
    many.push(vec![lines(&[&by("tools/call", named.clone())]), Act::Sleep(100)]);
    named.as_object_mut().unwrap().remove("_meta");
    many.push(vec![lines(&[&by("tools/call", named)]), lines(&[ping]), Act::Sleep(100)]);
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    many.push(vec![lines(&[&a]), lines(&[cancel]), Act::Sleep(100), lines(&[ping])]);
    let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#;
    let result = r#"{"jsonrpc":"2.0","id":2,"result":{}}"#;
    let ask = call(1, "ask", json!({}));
    many.push(vec![
        lines(&[&ask]),
        lines(&[ping]),
        lines(&[error]),
        lines(&[result]),
        Act::Sleep(9_000),
        lines(&[ping]),
    ]);
    let chunks = call(1, "echo", json!({ "text": "é" })) + "\n";
    many.push(chunks.bytes().map(|byte| Act::Write(vec![byte])).collect());
    many.push(vec![Act::Write(b"{\"jsonrpc\":".to_vec())]);
    many
}

/// Lines of odd form.
fn odd_lines(ping: &str, list: &str) -> Vec<String> {
    let deep = "[".repeat(50_000) + &"]".repeat(50_000);
    let level_40 = request(
        1,
        "ping",
        &serde_json::from_str(&format!("{{\"a\":{}{}}}", "[".repeat(40), "]".repeat(40))).unwrap(),
    );
    let long = call(4, "echo", json!({ "text": "x".repeat(100_000) }));
    let long_id = request("i".repeat(200), "ping", &json!({}));
    [
        "nonsense",
        "1",
        "{}",
        &deep,
        &long,
        &level_40,
        &long_id,
        &format!("{ping}\r"),
        &format!("[{ping}]"),
        &format!("[{ping},{list}]"),
        r#"{"jsonrpc":"2.0","id":"","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":-5,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":9007199254740991,"method":"ping"}"#,
        "{\"jsonrpc\":\"2.0\",\"id\":\"a\u{2028}b\u{2029}c\u{85}d\u{feff}e\",\"method\":\"ping\"}",
        r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":[],"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"none"}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"none","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"ping","more":1}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":4}"#,
        r#"{"id":3,"method":"ping"}"#,
        r#"{"jsonrpc":"1.0","id":3,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"ping","params":[]}"#,
        r#"{"jsonrpc":"2.0","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","method":"ping","params":[]}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/strange"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"prompts/list"}"#,
    ]
    .map(str::to_owned)
    .to_vec()
}

/// Requests of every method, with right and wrong params.
fn requests() -> Vec<String> {
    let by = |method: &str, params: Value| request("x", method, &params);
    let greet = json!({ "type": "ref/prompt", "name": "greet" });
    let none = json!({ "type": "ref/prompt", "name": "none" });
    let name = json!({ "name": "name", "value": "" });
    vec![
        by("initialize", json!({ "protocolVersion": "2025-06-18" })),
        by("ping", json!({ "_meta": { "progressToken": 1 } })),
        by("ping", json!({ "strange": 1 })),
        by("tools/list", json!({ "cursor": "none" })),
        by("tools/list", json!({ "cursor": "tools:4" })),
        by("tools/list", json!({ "cursor": "tools:8" })),
        by("resources/list", json!({})),
        by("resources/templates/list", json!({})),
        by("prompts/list", json!({})),
        by("resources/read", json!({ "uri": "peerproof:///readme" })),
        by("resources/read", json!({ "uri": "peerproof:///pixel.png" })),
        by("resources/read", json!({ "uri": "peerproof:///none" })),
        by("resources/read", json!({})),
        by("resources/subscribe", json!({ "uri": "peerproof:///counter" })),
        by("resources/unsubscribe", json!({ "uri": "peerproof:///counter" })),
        by("prompts/get", json!({ "name": "plain" })),
        by("prompts/get", json!({ "name": "none" })),
        by("prompts/get", json!({ "name": "greet" })),
        by("logging/setLevel", json!({ "level": "notice" })),
        by("logging/setLevel", json!({ "level": "loud" })),
        by("completion/complete", json!({ "ref": greet, "argument": name })),
        by("completion/complete", json!({ "ref": none, "argument": name })),
        by("tools/call", json!({})),
        by("tools/call", json!({ "name": "noargs" })),
        by("tools/call", json!({ "name": "noargs", "arguments": {} })),
        by("tools/call", json!({ "name": "noargs", "arguments": [] })),
        by("tools/call", json!({ "name": "noargs", "task": {} })),
        by("tools/call", json!({ "name": "none" })),
        call(1, "echo", json!({ "text": "é" })),
        call(1, "echo", json!({})),
        call(1, "echo", json!({ "text": 1 })),
        call(1, "echo", json!({ "text": "a", "times": 7 })),
        call(1, "echo", json!({ "text": "a", "tone": "soft" })),
        call(1, "media", json!({})),
        call(1, "measure", json!({ "text": "a b" })),
        call(1, "log", json!({})),
    ]
}

/// Conversations with a task: started, polled, awaited, cancelled, and polled again.
fn tasks() -> Vec<Vec<Act>> {
    let begin = |ms: u64| {
        let arguments = json!({ "ms": ms, "text": "a" });
        let params = json!({ "name": "sleep", "arguments": arguments, "task": { "ttl": 60_000 } });
        request(1, "tools/call", &params)
    };
    let of = |method: &str, id: &str| request(5, method, &json!({ "taskId": id }));
    let asked = ["tasks/get", "tasks/result", "tasks/cancel", "tasks/get"].map(|method| of(method, "task-0"));
    let waits = || Act::Sleep(200);
    vec![
        vec![
            lines(&[&begin(50)]),
            lines(&[&asked[0]]),
            lines(&[&asked[1]]),
            waits(),
            lines(&[&asked[2]]),
            lines(&[&asked[3]]),
        ],
        vec![lines(&[&begin(50)]), waits(), lines(&[&asked[0]]), lines(&[&asked[0]]), lines(&[&asked[1]])],
        vec![lines(&[&begin(50)]), lines(&[&asked[2]]), lines(&[&asked[0]]), waits(), lines(&[&asked[0]])],
        vec![lines(&[&of("tasks/get", "none"), &of("tasks/result", "none"), &of("tasks/cancel", "none")])],
        vec![lines(&[&call(1, "job", json!({}))]), waits()],
    ]
}

#[test]
fn each_mutant_differs() {
    let conversations = conversations();
    let right: Vec<_> = conversations.iter().map(|acts| play(machine(Config::default()), acts)).collect();
    let mut alike = Vec::new();
    for mutant in mutants::all().iter().filter(|mutant| mutant.shell_fault().is_none()) {
        let differs = |(acts, right): (&Vec<Act>, &Vec<String>)| {
            play(mutant.machine(Config::default()), acts) != *right
        };
        if !conversations.iter().zip(&right).any(differs) {
            alike.push(mutant.id);
        }
    }
    assert_eq!(alike, Vec::<&str>::new());
}

/// A mutant that breaks everything proves nothing.
#[test]
fn each_mutant_opens_a_session() {
    for mutant in mutants::all() {
        let acts = [
            lines(&[&opening("2025-11-25", &json!({}))]),
            lines(&[INITIALIZED]),
            lines(&[&request(1, "tools/list", &json!({}))]),
            lines(&[r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#]),
            Act::Sleep(5_000),
        ];
        let told = play(mutant.machine(Config::default()), &acts).concat().replace("\n  ", "");
        let ponged = if mutant.id == "has-no-ping" { "\"id\":2,\"error\"" } else { "\"id\":2,\"result\"" };
        for part in ["\"id\":\"open\",\"result\"", "\"id\":1,\"result\"", ponged] {
            assert!(told.contains(part), "{}: {told}", mutant.id);
        }
    }
}
