//! Every mutant does something that the correct peer does not.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::*;
use crate::http::HttpRequest;
use crate::mutant::assert_sound;
use crate::run_queue::genesis::{self, Workshop};
use crate::run_queue::mutants::{self, Mutant};
use crate::run_queue::{Adapter, ENQUEUE_AID, EnqueueTool};
use crate::toolhost::{Components, Mode, ToolTable, machine_with};

#[test]
fn tables_are_sound_and_long() {
    let mut all = 0;
    for role in ["worker", "http", "enqueue", "genesis"] {
        let table: Vec<Mutant> = mutants::of(role).copied().collect();
        assert_sound(&table, "QUE-");
        assert!(table.iter().all(|mutant| mutants::find(role, mutant.id).is_some()));
        all += table.len();
    }
    assert!(all >= 40, "{all}");
    assert!(mutants::find("worker", "http-late").is_none());
}

/// A job that is nested so many levels beside its own.
fn nested(levels: usize) -> String {
    format!("{{\"goal_id\":\"g\",\"d\":{}{}}}", "[".repeat(levels), "]".repeat(levels))
}

/// A job whose text is easily changed on its way, and whose `request_id` is a path.
fn exact() -> String {
    "{\"goal_id\":\"g\",\"request_id\":\"a/b\",\"x\":[\"e\u{301}\",0.30000000000000004,\"\\ud800\"]}"
        .to_owned()
}

/// What can be seen of a worker: starts, files, folders, and how it ended.
fn seen(make: &dyn Fn(&World, Who, Config) -> AtWork) -> Vec<String> {
    let mut seen = Vec::new();
    let mut note = |what: &str, world: &World, workers: &[&AtWork]| {
        let files: Vec<_> = ["inbox", "processing", "done", "failed", "tmp"].map(|it| world.below(it)).into();
        let folders: Vec<_> = world.files().folders.keys().cloned().collect();
        let told: Vec<_> =
            workers.iter().map(|it| (&it.starts, &it.running, it.exit, it.wake_at, it.killed)).collect();
        seen.push(format!("{what}: {files:?} {folders:?} {told:?}"));
    };
    // All that jobs can be.
    let world = World::default();
    let texts = [
        job(1),
        "{\"goal_id\":\"g\",\"exit\":3}".to_owned(),
        String::new(),
        "{".to_owned(),
        "[1]".to_owned(),
        "{}".to_owned(),
        "{\"goal_id\":\"\"}".to_owned(),
        "{\"goal_id\":1}".to_owned(),
        "{\"goal_id\":\"g\",\"inputs\":1}".to_owned(),
        "{\"goal_id\":\"g\"} x".to_owned(),
        "{\"goal_id\":\"g\",\"other\":1}".to_owned(),
        nested(30),
        nested(200),
        "{\"goal_id\":\"g\",\"inputs\":null}".to_owned(),
    ];
    for (number, text) in texts.iter().enumerate() {
        world.put(&format!("inbox/{number:02}.json"), text);
    }
    for (name, text) in [
        ("a b.json", job(2)),
        ("l\nf.json", job(3)),
        ("é.json", job(4)),
        ("x.json.part", job(5)),
        ("x.txt", job(6)),
        ("y.json\n", job(10)),
    ] {
        world.put(&format!("inbox/{name}"), &text);
    }
    world.files().files.insert(b"inbox/u.json".to_vec(), b"{\"goal_id\":\"\xFF\"}".to_vec());
    world.files().files.insert(b"inbox/v.json".to_vec(), b"{\"goal_id\":\"\xED\xA0\x80\"}".to_vec());
    world.files().odd.insert(b"inbox/fifo.json".to_vec(), Kind::Other);
    world.put("done/00.json", "old");
    world.put("done/earlier.json", &job(9));
    world.put("failed/01.json", "old");
    world.put("failed/02.reason.txt", "old");
    world.put("processing/worker-x/dead.json", &job(7));
    world.put("processing/hand.json", &job(8));
    let mut worker = make(&world, 1, Config { attempts: 2, ..once() });
    for _ in 0..60 {
        note("jobs", &world, &[&worker]);
        if worker.step() {
            note("running", &world, &[&worker]);
            worker.end_program();
        } else {
            worker.wait();
        }
    }
    // Large ones, of which the place is enough.
    let large = World::default();
    large.put("inbox/2.json", &format!("{{\"goal_id\":\"g\",\"d\":\"{}\"}}", "x".repeat(2 << 20)));
    large.put("inbox/11.json", &format!("{{\"goal_id\":\"g\",\"d\":\"{}\"}}", "x".repeat(11 << 20)));
    make(&large, 1, once()).drain();
    let places = large.files().files.keys().cloned().collect::<Vec<_>>();
    // Without an end, with a full disk, and with one that has nothing.
    let world = World::default();
    world.put("inbox/a.json", &job(1));
    world.files().full = Some("done");
    let mut worker = make(&world, 1, Config::default());
    worker.drain();
    note("full", &world, &[&worker]);
    // Several, and SIGTERM.
    for sigterm in ["finish", "return"] {
        for (jobs, killed) in [(0, 0), (3, 0), (3, 9)] {
            let world = World::default();
            (1..=jobs).for_each(|number| world.put(&format!("inbox/{number}.json"), &job(number)));
            let mut config = Config::default();
            config.choices.set("sigterm", sigterm).unwrap();
            let (mut one, two) = (make(&world, 1, config.clone()), make(&world, 2, config));
            note("two", &world, &[&one, &two]);
            if killed == 9 && one.running.take().is_some() {
                one.tell(Event::ChildExit(ChildExit::Signal(9)));
            }
            one.step();
            one.tell(Event::Terminate);
            note("asked", &world, &[&one, &two]);
            one.end_program();
            one.step();
            note("ended", &world, &[&one, &two]);
        }
    }
    seen.push(format!("{places:?}"));
    seen
}

#[test]
fn each_mutant_of_the_worker_shows() {
    let right = seen(&AtWork::new);
    assert_eq!(right, seen(&AtWork::new));
    let mut silent = BTreeSet::new();
    let is_inside = |it: &&Mutant| it.carrier_fault().is_none() && it.shell_fault().is_none();
    for mutant in mutants::of("worker").filter(is_inside) {
        // These show in memory, and in time, alone.
        if ["job-holds-large", "job-spins-at-special"].contains(&mutant.id) {
            continue;
        }
        let mutated = seen(&|world, who, config| {
            let config = Config { seed: who as u64, ..config };
            AtWork::with(world, who, mutants::worker(mutant, config, world.parts(who)))
        });
        if mutated == right {
            silent.insert(mutant.id);
        }
    }
    assert!(silent.is_empty(), "{silent:?}");
}

/// What lies in the queue, and what was done to get it there.
fn stored(world: &World) -> String {
    let files: Vec<_> = ["inbox", "done", "tmp"].map(|folder| world.below(folder)).into();
    let operations = std::mem::take(&mut world.files().done);
    let moves =
        operations.into_iter().filter(|(_, op)| matches!(op, Op::Write(..) | Op::Move(..) | Op::Replace(..)));
    format!("{files:?} {:?}", moves.collect::<Vec<_>>())
}

fn seen_of_adapter(mutant: Option<&Mutant>) -> Vec<String> {
    let mut seen = Vec::new();
    for token in [None, Some("Secret1")] {
        let world = World::default();
        let mut config = Config { token: token.map(str::to_owned), ..Config::default() };
        let mut parts = world.parts(1);
        if let Some(mutant) = mutant {
            mutants::change(mutant, &mut config, &mut parts);
        }
        seen.push(parts.ways.is_near(IpAddr::from([0; 16])).to_string());
        let mut adapter = Adapter::new(config, parts);
        let mut ask = |header: Option<&str>, body: &str| {
            let request = HttpRequest {
                method: "POST".to_owned(),
                target: "/enqueue".to_owned(),
                authorization: header.map(str::to_owned),
                body: Some(body.as_bytes().to_vec()),
                ..HttpRequest::default()
            };
            let (status, body) = adapter.answer(&request);
            seen.push(format!("{status} {} {}", String::from_utf8_lossy(&body), stored(&world)));
        };
        let header = token.map(|token| format!("Bearer {token}"));
        for body in [
            &job(1),
            &job(1),
            &nested(30),
            &exact(),
            "{\"inputs\":{}}",
            "{\"goal_id\":\"g\",\"inputs\":null}",
            "{\"goal_id\":\"g\"} x",
            "[]",
        ] {
            ask(header.as_deref(), body);
        }
        for header in [
            None,
            Some("Bearer Secre"),
            Some("Bearer Secret12"),
            Some("Bearer secret1"),
            Some("Bearer "),
            Some("BearerSecret1"),
        ] {
            ask(header, &job(2));
        }
        world.files().room = Some(10);
        ask(header.as_deref(), &job(3));
    }
    seen
}

fn seen_of_tool(mutant: Option<&Mutant>) -> Vec<String> {
    [None, Some(10)].into_iter().flat_map(|room| seen_of_tool_with(mutant, room)).collect()
}

/// The same where so many bytes can be written to a file.
fn seen_of_tool_with(mutant: Option<&Mutant>, room: Option<usize>) -> Vec<String> {
    let world = World::default();
    world.files().room = room;
    let (mut config, mut parts) = (Config::default(), world.parts(1));
    if let Some(mutant) = mutant {
        mutants::change(mutant, &mut config, &mut parts);
    }
    let mut tools = ToolTable::default();
    tools.add(ENQUEUE_AID, 0, EnqueueTool::new(config, parts));
    let calls = [
        "{}",
        "{\"request_json\":1}",
        "{\"request_json\":{\"goal_id\":\"g\",\"x\":1}}",
        "{\"request_json\":\"{\\\"goal_id\\\":\\\"g\\\"}\"}",
        "{\"request_json\":\"x\"}",
        "{\"request_json\":{}}",
        "{\"request_json\":{\"goal_id\":\"g\",\"inputs\":null}}",
        &format!("{{\"request_json\":{}}}", nested(30)),
        &format!("{{\"request_json\":{}}}", exact()),
    ];
    let calls = calls.map(|input| (ENQUEUE_AID, input.to_owned()));
    replies(tools, &calls).into_iter().chain([stored(&world)]).collect()
}

/// What a toolhost in serve mode answers.
fn replies(tools: ToolTable, calls: &[(&str, String)]) -> Vec<String> {
    let config = crate::toolhost::Config::new(Mode::Serve);
    let mut machine = machine_with(config.clone(), Components { tools, ..Components::new(&config) });
    let mut actions = Vec::new();
    for (aid, input) in calls {
        let mut line = format!("{{\"aid\":\"{aid}\",\"input_json\":").into_bytes();
        crate::json::write_str(&mut line, input);
        line.extend_from_slice(b"}\n");
        machine.handle(Event::Stdin(&line), 0, &mut actions);
    }
    actions.into_iter().map(|action| format!("{action:?}")).collect()
}

/// Texts are programs: one with `bad` is none, and one with `dies` dies when it is called.
struct Texts(World);

impl Workshop for Texts {
    fn compile(&mut self, source: &[u8], program: &[u8]) -> Result<(), String> {
        let mut files = self.0.files();
        let text = files.files.get(source).cloned().unwrap_or_default();
        if text.starts_with(b"bad") {
            return Err("it is bad".to_owned());
        }
        files.files.insert(program.to_vec(), text);
        Ok(())
    }

    fn run(&mut self, program: &[u8], arguments: &[&str], _stdin: Vec<u8>) -> Result<Vec<u8>, String> {
        let text = self.0.files().files.get(program).cloned().unwrap_or_default();
        match String::from_utf8_lossy(&text).as_ref() {
            "text" => Err("it is no program".to_owned()),
            _ if arguments == ["--list"] => Ok(b"AID.X\n".to_vec()),
            "dies" => Err("it died".to_owned()),
            text => Ok(format!(
                "{{\"ok\":true,\"status\":\"OK\",\"output_json\":\"[{}]\",\"error\":\"\",\"ds_state\":{{\"slots\":{{}}}}}}",
                text.len()
            )
            .into_bytes()),
        }
    }
}

fn seen_of_genesis(mutant: Option<&Mutant>) -> Vec<String> {
    let world = World::default();
    world.put("runtime_plugins/text", "text");
    world.put("elsewhere/p", "elsewhere");
    world.files().odd.insert(b"runtime_genesis/src/link".to_vec(), Kind::Link);
    let (mut config, mut parts) = (Config::default(), world.parts(1));
    parts.bench = Box::new(Texts(world.clone()));
    if let Some(mutant) = mutant {
        mutants::change(mutant, &mut config, &mut parts);
    }
    let mut tools = ToolTable::default();
    genesis::add(&mut tools, &config, parts, None);
    let write = |path: &str, text: &str| {
        (genesis::WRITE_AID, format!("{{\"path\":\"{path}\",\"content\":\"{text}\"}}"))
    };
    let compile = |path: &str, name: &str| {
        (genesis::COMPILE_AID, format!("{{\"path\":\"{path}\",\"name\":\"{name}\"}}"))
    };
    let load = |name: &str| (genesis::LOAD_AID, format!("{{\"name\":\"{name}\"}}"));
    let call = ("AID.X", "{}".to_owned());
    let calls = [
        call.clone(),
        write("../a.c", "x"),
        write("/a.c", "x"),
        write("a.c\\u0000b", "x"),
        write("link", "x"),
        (genesis::WRITE_AID, "{\"path\":\"n.c\"}".to_owned()),
        write("p.c", "one"),
        compile("p.c", "p"),
        load("p"),
        call.clone(),
        write("p.c", "another"),
        compile("p.c", "p"),
        call.clone(),
        write("p.c", "bad"),
        compile("p.c", "p"),
        compile("m.c", "m"),
        load("m"),
        load("text"),
        load("../elsewhere/p"),
        write("t.c", "text"),
        compile("t.c", "t"),
        load("t"),
        write("p.c", "dies"),
        compile("p.c", "p"),
        load("p"),
        call,
    ];
    let seen = replies(tools, &calls);
    let files: Vec<_> = world.files().files.keys().map(|place| place.escape_ascii().to_string()).collect();
    seen.into_iter().chain(files).collect()
}

/// What is seen of a tool or an adapter.
type Seen = fn(Option<&Mutant>) -> Vec<String>;

#[test]
fn each_mutant_of_those_who_write_shows() {
    // These show at the server around the adapter.
    let around = ["http-large", "enq-no-state", "enq-late"];
    let roles: [(&str, Seen); 3] =
        [("http", seen_of_adapter), ("enqueue", seen_of_tool), ("genesis", seen_of_genesis)];
    let mut silent = Vec::new();
    for (role, seen) in roles {
        let right = seen(None);
        assert!(right == seen(None));
        let is_inside = |mutant: &&Mutant| {
            mutant.carrier_fault().is_none() && mutant.shell_fault().is_none() && mutant.wrapping().is_none()
        };
        let inside = mutants::of(role).filter(|mutant| is_inside(mutant) && !around.contains(&mutant.id));
        silent.extend(inside.filter(|mutant| seen(Some(mutant)) == right).map(|mutant| mutant.id));
    }
    assert!(silent.is_empty(), "{silent:?}");
}
