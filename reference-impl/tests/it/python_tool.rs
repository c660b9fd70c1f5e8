//! Tests of the reference runner (requests and outcomes), and of the runtime with a container.

use std::fs;

use peerproof_reference::io::python_runtime::run_python_runtime;
use peerproof_reference::json::{Policy, Value};
use peerproof_reference::machine::{Action, ChildExit, Event, Machine};
use peerproof_reference::python_tool::service::{HANDSHAKE, Service, Step};
use peerproof_reference::python_tool::{Config, Order, machine};

use super::write_program;

const PLAIN: &str = r#"{"protocol_version":1,"tool":"t","entry":"tools.a:b","payload":{"x":1}}"#;

/// Exit status and output of a runner whose tool's process wrote `heard` and then exited.
fn said(config: Config, request: &str, heard: &[u8], exit: ChildExit) -> (i32, Value) {
    let mut runner = machine(config);
    let mut actions = Vec::new();
    runner.handle(Event::Stdin(request.as_bytes()), 0, &mut actions);
    runner.handle(Event::StdinEof, 0, &mut actions);
    if matches!(actions.last(), Some(Action::Spawn { .. })) {
        actions.clear();
        runner.handle(Event::ChildStdout(heard), 1, &mut actions);
        runner.handle(Event::ChildExit(exit), 2, &mut actions);
    }
    let out: Vec<u8> = actions
        .iter()
        .filter_map(|action| match action {
            Action::Stdout(bytes) => Some(bytes.clone()),
            _ => None,
        })
        .flatten()
        .collect();
    let status = actions.iter().find_map(|action| match action {
        Action::Exit(status) => Some(*status),
        _ => None,
    });
    let reply = Value::parse(&out, 100, &Policy::default());
    (status.unwrap(), reply.unwrap_or(Value::Null))
}

fn framed(outcome: &str) -> Vec<u8> {
    format!("{}\n{outcome}", outcome.len()).into_bytes()
}

#[test]
fn an_outcome_becomes_a_reply() {
    let heard = framed(r#"{"ok":true,"result":{"a":[1.50,null]}}"#);
    let (status, reply) = said(Config::default(), PLAIN, &heard, ChildExit::Code(0));
    assert_eq!((status, reply.get("ok").and_then(Value::as_bool)), (0, Some(true)));
    assert!(reply.get("result").unwrap().get("a").is_some());
    let heard = framed(r#"{"ok":false,"error":{"type":"ValueError","message":"m"}}"#);
    let (status, reply) = said(Config::default(), PLAIN, &heard, ChildExit::Code(0));
    assert_eq!((status, reply.get("ok").and_then(Value::as_bool)), (0, Some(false)));
}

#[test]
fn half_an_outcome_is_none() {
    let mut heard = framed(r#"{"ok":true,"result":{}}"#);
    heard.pop();
    for exit in [ChildExit::Code(0), ChildExit::Signal(9)] {
        let (status, reply) = said(Config::default(), PLAIN, &heard, exit);
        assert_eq!((status, reply.get("ok").and_then(Value::as_bool)), (0, Some(false)));
        let mut config = Config::default();
        config.choices.set("tool_exit", "crash").unwrap();
        assert_eq!(said(config, PLAIN, &heard, exit), (1, Value::Null));
    }
}

#[test]
fn refusals_are_replies_or_a_status() {
    let (status, reply) = said(Config::default(), "{}", b"", ChildExit::Code(0));
    assert_eq!((status, reply.get("ok").and_then(Value::as_bool)), (1, Some(false)));
    let mut config = Config::default();
    config.choices.set("refusal", "crash").unwrap();
    assert_eq!(said(config, "{}", b"", ChildExit::Code(0)), (1, Value::Null));
}

#[test]
fn an_order_has_the_guarantees_that_are_true() {
    let request = PLAIN.replace(
        "\"payload\"",
        r#""capability_context":{"guarantees":{"no_network":true,"no_env_read":false,"no_x":false}},"payload""#,
    );
    let order = Order::read(request.as_bytes(), &Config::default()).unwrap();
    assert_eq!(order.guarantees, ["no_network"]);
    let text = String::from_utf8(order.text(&Config::default())).unwrap();
    assert!(
        text.contains("\"guarantees\":[\"no_network\"]") && text.contains("\"payload\":{\"x\":1}"),
        "{text}"
    );
    let unknown = request.replace("\"no_x\":false", "\"no_x\":true");
    assert!(Order::read(unknown.as_bytes(), &Config::default()).is_err());
}

fn posted(service: &mut Service, path: &str, body: &str) -> Step {
    service.receive(path, Some(body.as_bytes()))
}

fn reply(step: Step) -> (u16, Value) {
    let Step::Reply((status, body)) = step else { return (0, Value::Null) };
    (status, Value::parse(&body, 100, &Policy::default()).unwrap_or(Value::Null))
}

#[test]
fn a_handshake_binds_later_calls_of_the_tool() {
    let mut service = Service::new(Config::default());
    let call = |name: &str| {
        PLAIN.replace(
            "\"tool\":\"t\"",
            &format!("\"tool_name\":\"{name}\",\"capability_context\":7,\"timeout_ms\":5"),
        )
    };
    let request = |step: Step| match step {
        Step::Run { request, timeout_ms: 5 } => String::from_utf8(request).unwrap(),
        step => panic!("{step:?}"),
    };
    let before = request(posted(&mut service, "/", &call("t")));
    assert!(Order::read(before.as_bytes(), &Config::default()).unwrap().guarantees.is_empty());
    let asks =
        r#"{"protocol_version":1,"tool_name":"t","required_guarantees":{"no_network":true,"no_x":false}}"#;
    let (status, said) = reply(posted(&mut service, HANDSHAKE, asks));
    assert_eq!((status, said.get("enforcement").and_then(Value::as_str)), (200, Some("enforced")));
    let bound = request(posted(&mut service, "/any", &call("t")));
    assert_eq!(Order::read(bound.as_bytes(), &Config::default()).unwrap().guarantees, ["no_network"]);
    assert_eq!(request(posted(&mut service, "/", &call("u"))), before.replace("\"t\"", "\"u\""));
}

#[test]
fn what_is_wrong_is_refused_by_a_status() {
    let mut service = Service::new(Config::default());
    let call = PLAIN.replace("\"tool\"", "\"tool_name\"");
    let with = |member: &str| call.replace("\"payload\"", &format!("{member},\"payload\""));
    for wrong in
        ["x", "[]", &with("\"kind\":\"node\""), &with("\"timeout_ms\":0"), &with("\"timeout_ms\":true")]
    {
        assert_eq!(reply(posted(&mut service, "/", wrong)).0, 400, "{wrong}");
    }
    assert_eq!(reply(service.receive("/", None)).0, 413);
    let shaken = r#"{"protocol_version":2,"tool_name":"t","required_guarantees":{}}"#;
    assert_eq!(reply(posted(&mut service, HANDSHAKE, shaken)).0, 400);
    let mut without = Service::new(Config { has_handshake: false, ..Config::default() });
    assert_eq!(reply(posted(&mut without, HANDSHAKE, &shaken.replace('2', "1"))).0, 404);
}

#[test]
fn a_container_is_run_by_any_docker_compatible_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let stand_in = "#!/bin/sh\nprintf '%s\\n' \"$@\" >\"$0.args\"\ncat >\"$0.stdin\"\n\
                    [ \"$5\" = fail ] && exit 125\nprintf '{\"ok\":true,\"result\":{\"image\":\"%s\"}}' \"$4\"\n";
    write_program(file("docker").as_ref(), stand_in);
    let call = |name: &str, program: &str, argv: &str| {
        format!(
            r#"{{"ref":"{name}","runner":"container","tool":"t","entry":"a:b","payload":{{"x":1}},"container_runtime":"{}","image":"tools:1","command":{argv}}}"#,
            file(program)
        )
    };
    for (name, program, argv, outcome) in [
        ("runs", "docker", r#"["python3","-m","a b"]"#, "result"),
        ("fails", "docker", r#"["fail"]"#, "crash"),
        ("is-missing", "podman", r#"["python3"]"#, "unavailable"),
    ] {
        fs::write(file("scenario"), format!(r#"{{"calls":[{}]}}"#, call(name, program, argv))).unwrap();
        assert_eq!(run_python_runtime(&[file("scenario"), file(name)], None, None), 0);
        let line = Value::parse(&fs::read(file(name)).unwrap(), 100, &Policy::default()).unwrap();
        assert_eq!(line.get("outcome").and_then(Value::as_str), Some(outcome), "{name}");
        let trace = |member: &str| line.get("trace").and_then(|trace| trace.get(member)?.as_str());
        assert_eq!((trace("runner"), trace("image")), (Some("container"), Some("tools:1")));
        if name == "runs" {
            let image = line.get("result").and_then(|result| result.get("image")?.as_str());
            assert_eq!(image, Some("tools:1"));
            let args = fs::read_to_string(file("docker.args")).unwrap();
            assert!(args.starts_with("run\n") && args.ends_with("\ntools:1\npython3\n-m\na b\n"), "{args}");
            let request = fs::read_to_string(file("docker.stdin")).unwrap();
            assert!(request.contains(r#""entry":"a:b","payload":{"x":1}"#), "{request}");
        }
    }
}
