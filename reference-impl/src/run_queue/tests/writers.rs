//! Tests of the tool and the adapter.

use super::*;
use crate::http::HttpRequest;
use crate::json::{Policy, Value};
use crate::run_queue::choices::SameRequestId;
use crate::run_queue::{Adapter, ENQUEUE_AID, EnqueueTool};
use crate::toolhost::{Components, Mode, ToolTable, machine_with};

fn host(world: &World, config: Config, mode: Mode, input: &str) -> String {
    let toolhost = crate::toolhost::Config::new(mode);
    let mut tools = ToolTable::default();
    tools.add(ENQUEUE_AID, 0, EnqueueTool::new(config, world.parts(1)));
    let parts = Components { tools, ..Components::new(&toolhost) };
    let mut machine = machine_with(toolhost, parts);
    let mut actions = Vec::new();
    machine.handle(Event::Stdin(input.as_bytes()), 0, &mut actions);
    machine.handle(Event::StdinEof, 0, &mut actions);
    let out = actions.into_iter().filter_map(|action| match action {
        Action::Stdout(bytes) => Some(String::from_utf8(bytes).unwrap()),
        _ => None,
    });
    out.collect()
}

fn run(world: &World, input_json: &str) -> String {
    let mut request = b"{\"input_json\":".to_vec();
    crate::json::write_str(&mut request, input_json);
    request.push(b'}');
    let mode = Mode::Run { aid: ENQUEUE_AID.to_owned() };
    host(world, Config::default(), mode, std::str::from_utf8(&request).unwrap())
}

#[test]
fn the_tool_puts_objects_and_strings_that_hold_one() {
    let world = World::default();
    let reply =
        run(&world, "{\"request_json\":{\"goal_id\":\"g\",\"x\":[1.0,\"\\u00e9\"]},\"path\":\"../x\"}");
    assert!(reply.contains("\"ok\":true") && reply.contains("queued"), "{reply}");
    let reply = Value::parse(reply.as_bytes(), 64, &Policy::default()).unwrap();
    let output = reply.get("output_json").and_then(Value::as_str).unwrap();
    let [(name, text)] = &world.below("inbox")[..] else { panic!() };
    assert_eq!(output, format!("{{\"queued\":\"{name}\"}}"));
    assert_eq!(text, "{\"goal_id\":\"g\",\"x\":[1.0,\"é\"]}");
    let world = World::default();
    assert!(run(&world, "{\"request_json\":\"{\\\"goal_id\\\":\\\"h\\\"}\"}").contains("\"ok\":true"));
    assert_eq!(world.below("inbox")[0].1, "{\"goal_id\":\"h\"}");
    assert!(world.names("tmp").is_empty());
}

#[test]
fn the_tool_refuses_what_is_no_job() {
    for input in [
        "{}",
        "{\"request_json\":null}",
        "{\"request_json\":1}",
        "{\"request_json\":[]}",
        "{\"request_json\":\"{\"}",
        "{\"request_json\":\"[]\"}",
        "{\"request_json\":{}}",
        "{\"request_json\":{\"goal_id\":\"\"}}",
        "{\"request_json\":{\"goal_id\":\"g\",\"inputs\":1}}",
    ] {
        let world = World::default();
        let reply = run(&world, input);
        assert!(reply.contains("\"ok\":false") && world.files().files.is_empty(), "{input}: {reply}");
    }
}

#[test]
fn a_request_id_makes_one_job_or_two() {
    for (choice, jobs) in [(SameRequestId::One, 1), (SameRequestId::Two, 2)] {
        let world = World::default();
        let mut config = Config::default();
        config.choices.same_request_id = choice;
        let line = format!(
            "{{\"aid\":\"{ENQUEUE_AID}\",\"input_json\":\"{{\\\"request_json\\\":{{\\\"goal_id\\\":\\\"g\\\",\\\"request_id\\\":\\\"r\\\"}}}}\"}}\n"
        );
        let replies = host(&world, config.clone(), Mode::Serve, &line.repeat(2));
        assert_eq!((replies.matches("\"ok\":true").count(), world.names("inbox").len()), (2, jobs));
        AtWork::new(&world, 7, once()).drain();
        let mut later = config.clone();
        later.seed = 5;
        host(&world, later, Mode::Serve, &line);
        assert_eq!(world.names("inbox").len(), jobs - 1);
    }
}

fn post(body: &str) -> HttpRequest {
    HttpRequest {
        method: "POST".to_owned(),
        target: "/enqueue".to_owned(),
        body: Some(body.as_bytes().to_vec()),
        ..HttpRequest::default()
    }
}

#[test]
fn the_adapter_answers_by_status() {
    let world = World::default();
    let mut adapter = Adapter::new(Config::default(), world.parts(1));
    let mut status = |request: HttpRequest| adapter.answer(&request).0;
    assert_eq!([status(post(&job(1))), status(post(&job(1)))], [202, 202]);
    assert_eq!(world.names("inbox").len(), 2);
    assert_eq!(status(HttpRequest { target: "/enqueue?x".to_owned(), ..post(&job(2)) }), 202);
    assert_eq!(status(HttpRequest { content_type: Some("text/plain".to_owned()), ..post(&job(2)) }), 202);
    assert_eq!(status(HttpRequest { target: "/".to_owned(), ..post(&job(2)) }), 404);
    assert_eq!(status(HttpRequest { method: "GET".to_owned(), ..post(&job(2)) }), 405);
    assert_eq!(status(HttpRequest { body: None, ..post("") }), 413);
    for text in ["", "[]", "{}", "{\"goal_id\":\"g\"} {}"] {
        assert_eq!(status(post(text)), 400, "{text}");
    }
    let health =
        HttpRequest { method: "GET".to_owned(), target: "/health".to_owned(), ..HttpRequest::default() };
    assert_eq!(status(health), 200);
    assert_eq!(world.names("inbox").len(), 4);
    world.files().room = Some(3);
    assert_eq!((adapter.answer(&post(&job(3))).0, world.names("inbox").len()), (500, 4));
    world.files().room = None;
    assert_eq!((adapter.answer(&post(&job(3))).0, world.names("inbox").len()), (202, 5));
}

/// A file system that cannot flush names.
struct Unsure(Box<dyn Disk>);

impl Disk for Unsure {
    fn act(&mut self, op: Op) -> Result<OpResult, Fault> {
        match op {
            Op::Sync(_) => Err(Fault::Other("an error".to_owned())),
            op => self.0.act(op),
        }
    }
}

#[test]
fn a_job_that_is_in_the_inbox_is_not_refused() {
    let world = World::default();
    let mut parts = world.parts(1);
    parts.disk = Box::new(Unsure(parts.disk));
    assert_eq!(Adapter::new(Config::default(), parts).answer(&post(&job(1))).0, 202);
    assert_eq!(world.names("inbox").len(), 1);
}

#[test]
fn the_adapter_wants_its_token_whole() {
    for health in ["200", "401"] {
        let world = World::default();
        let mut config = Config { token: Some("Secret1".to_owned()), ..Config::default() };
        config.choices.set("health_without_token", health).unwrap();
        let mut adapter = Adapter::new(config, world.parts(1));
        let bearing = |header: &str| HttpRequest { authorization: Some(header.to_owned()), ..post(&job(1)) };
        for header in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer Secret",
            "Bearer ecret1",
            "Bearer secret1",
            "Bearer Secret12",
            "Basic Secret1",
            "Secret1",
        ] {
            let (status, body) = adapter.answer(&bearing(header));
            assert_eq!((status, world.files().files.len()), (401, 0), "{header}");
            assert!(memchr::memmem::find(&body, b"Secret1").is_none());
        }
        assert_eq!(adapter.answer(&post(&job(1))).0, 401);
        assert_eq!(adapter.answer(&bearing("Bearer Secret1")).0, 202);
        let get = |request| HttpRequest { method: "GET".to_owned(), target: "/health".to_owned(), ..request };
        assert_eq!(adapter.answer(&get(post(""))).0.to_string(), health);
        assert_eq!(adapter.answer(&get(bearing("Bearer Secret1"))).0, 200);
    }
}

#[test]
fn the_adapter_refuses_what_is_chosen() {
    let chunked = || HttpRequest { is_chunked: true, ..post(&job(1)) };
    let typed = || HttpRequest { content_type: Some("text/plain".to_owned()), ..post(&job(1)) };
    let queried = || HttpRequest { target: "/enqueue?a".to_owned(), ..post(&job(1)) };
    for (key, request, status) in
        [("chunked", chunked(), 501), ("content_type_other", typed(), 415), ("query_string", queried(), 404)]
    {
        let world = World::default();
        let mut config = Config::default();
        config.choices.set(key, "refuse").unwrap();
        assert_eq!(Adapter::new(config, world.parts(1)).answer(&request).0, status);
        assert_eq!(Adapter::new(Config::default(), world.parts(1)).answer(&request).0, 202);
    }
}
