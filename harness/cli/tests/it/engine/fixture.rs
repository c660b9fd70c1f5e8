//! Tests of fixtures with real processes: actors as seen by the peer that starts them.

mod carried_out;
mod limits;
mod sights;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{ActorStep, Fixture, ListenerSettings, PathKind};
use peerproof_engine::data::transcript::{EventKind, Exit};
use peerproof_engine::drive::fixture::actor::{ACTOR_ARGUMENT, Scenario};
use peerproof_engine::drive::fixture::{Fixtures, spawn_guard};
use rustix::process::{Pid, Signal, getsid, kill_process, kill_process_group};
use tempfile::TempDir;

use crate::start::{actor_exe, binary};

/// Longer than any test.
const LONG_MS: u64 = 50_000;

fn start(fixtures: &[Fixture]) -> (TempDir, Fixtures) {
    let dir = tempfile::tempdir().unwrap();
    let exe = actor_exe();
    let fixtures = Fixtures::start(fixtures, &dir.path().join("it's a dir"), &exe).unwrap();
    (dir, fixtures)
}

fn actor(script: Vec<ActorStep>) -> (TempDir, Fixtures) {
    start(&[Fixture::Actor { name: "tool".to_owned(), script, later: Vec::new() }])
}

fn spawn(fixtures: &Fixtures, args: &[&str]) -> Child {
    let mut command = Command::new(&fixtures.vars()["tool.path"]);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    guarded(&mut command).unwrap()
}

fn guarded(command: &mut Command) -> std::io::Result<Child> {
    let _guard = spawn_guard();
    command.spawn()
}

fn stdout(text: &str) -> ActorStep {
    ActorStep::Stdout(Payload::text(text))
}

/// Waits until the actor has written `text`, which shows that all earlier steps are done.
fn expect_stdout(child: &mut Child, text: &str) {
    let mut bytes = vec![0; text.len()];
    child.stdout.as_mut().unwrap().read_exact(&mut bytes).unwrap();
    assert_eq!(bytes, text.as_bytes());
}

fn rest_of_stdout(child: &mut Child) -> Vec<u8> {
    let mut bytes = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

fn roles(fixtures: &mut Fixtures) -> Vec<String> {
    let alive = fixtures.probe_actor("tool", "now").unwrap();
    alive
        .into_iter()
        .map(|kind| match kind {
            EventKind::ActorAlive { actor, label, role } => {
                assert_eq!((actor.as_str(), label.as_str()), ("tool", "now"));
                role
            }
            other => panic!("{other:?}"),
        })
        .collect()
}

fn received(fixtures: &mut Fixtures) -> Vec<Vec<u8>> {
    let happened = fixtures.observe().unwrap();
    happened
        .into_iter()
        .filter_map(|kind| match kind {
            EventKind::ActorReceived { bytes, .. } => Some(bytes.0),
            _ => None,
        })
        .collect()
}

#[test]
fn answers_a_request_while_its_input_stays_open() {
    let out = Payload::text("{\"x\":\"").repeat("é", 100_000).then(Payload::text("\"}\n"));
    let (_dir, mut fixtures) = actor(vec![
        ActorStep::ReadRequest,
        ActorStep::Stdout(out.clone()),
        ActorStep::Stderr(Payload::text("log")),
        ActorStep::Exit(3),
    ]);
    let mut child = spawn(&fixtures, &["--run", "a b", "", "$HOME"]);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"{\"aid\":\"}\",").unwrap();
    stdin.write_all(b"\"n\":{}}\n").unwrap();
    assert_eq!(rest_of_stdout(&mut child), out.expand(&fixtures.vars()).unwrap());
    let id = pid(&child).as_raw_nonzero().get();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(output.stderr, b"log");
    drop(stdin);
    let happened = fixtures.observe().unwrap();
    let [
        EventKind::ActorStarted { actor, argv, pid },
        EventKind::ActorReceived { bytes, .. },
        EventKind::ActorWrote { bytes: wrote, whole: true, .. },
        EventKind::ActorEnded { exit: Exit::Code(3), .. },
    ] = &happened[..]
    else {
        panic!("{happened:?}");
    };
    assert_eq!(*wrote, out);
    assert_eq!((actor.as_str(), *pid), ("tool", id), "the launcher becomes the actor");
    assert_eq!(argv, &["--run", "a b", "", "$HOME"]);
    assert_eq!(bytes.0, b"{\"aid\":\"}\",\"n\":{}}");
    assert_eq!(fixtures.observe().unwrap(), []);
    assert!(roles(&mut fixtures).is_empty());
}

#[test]
fn a_second_request_is_what_follows_the_first() {
    let (_dir, mut fixtures) =
        actor(vec![ActorStep::ReadRequest, ActorStep::ReadRequest, ActorStep::ReadRequest]);
    let mut child = spawn(&fixtures, &[]);
    child.stdin.take().unwrap().write_all(b"{}{\"a\":1}\ntail").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(received(&mut fixtures), [&b"{}"[..], b"{\"a\":1}", b"\ntail"]);
}

#[test]
fn what_follows_a_request_is_recorded_unasked() {
    for (input, expected) in [(&b"{} END"[..], &[&b"{}"[..], b" END"][..]), (b"{} \r\n\t", &[b"{}"])] {
        let (_dir, mut fixtures) = actor(vec![ActorStep::ReadRequest]);
        let mut child = spawn(&fixtures, &[]);
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input).unwrap();
        assert!(child.wait().unwrap().success(), "it does not wait for more");
        assert_eq!(received(&mut fixtures), expected);
    }
}

#[test]
fn reads_a_large_request_and_stops_at_the_limit() {
    let (_dir, mut fixtures) = actor(vec![ActorStep::ReadRequest, stdout("r"), ActorStep::ReadRequest]);
    let mut child = spawn(&fixtures, &[]);
    let mut stdin = child.stdin.take().unwrap();
    let mut request = b"{\"x\":\"".to_vec();
    request.resize(16 << 20, b'x');
    stdin.write_all(&request).unwrap();
    expect_stdout(&mut child, "r");
    stdin.write_all(b"\"}").unwrap();
    drop(stdin);
    assert!(child.wait().unwrap().success());
    assert!(received(&mut fixtures) == [request, b"\"}".to_vec()]);
}

#[test]
fn floods_to_its_bound_or_until_nobody_reads() {
    let flood =
        |bytes_max| vec![ActorStep::Flood { unit: "abc\n".to_owned(), bytes_max }, ActorStep::Exit(5)];
    let (_dir, fixtures) = actor(flood(1_000_001));
    let mut child = spawn(&fixtures, &[]);
    let bytes = rest_of_stdout(&mut child);
    assert_eq!(bytes.len(), 1_000_001);
    assert_eq!(&bytes[999_992..], b"abc\nabc\na");
    assert_eq!(child.wait().unwrap().code(), Some(5));

    let (_dir, fixtures) = actor(flood(u64::MAX));
    let mut child = spawn(&fixtures, &[]);
    expect_stdout(&mut child, "abc\nabc\n");
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(5), "a broken pipe must not kill it");
}

#[test]
fn closes_its_output_and_lives_on() {
    let (_dir, mut fixtures) =
        actor(vec![stdout("x"), ActorStep::CloseStdout, stdout("y"), ActorStep::Sleep { ms: LONG_MS }]);
    let mut child = spawn(&fixtures, &[]);
    assert_eq!(rest_of_stdout(&mut child), b"x");
    assert_eq!(roles(&mut fixtures), ["self"]);
    fixtures.stop();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
}

#[test]
fn sleeps_and_ends_in_order() {
    let (_dir, fixtures) = actor(vec![ActorStep::Sleep { ms: 1 }, stdout("done")]);
    let mut child = spawn(&fixtures, &[]);
    assert_eq!(rest_of_stdout(&mut child), b"done");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn holders_keep_the_pipes_after_the_actor_has_ended() {
    let holder = |leave_group| ActorStep::ForkHolder { ms: LONG_MS, leave_group };
    let (_dir, mut fixtures) = actor(vec![holder(false), holder(true), stdout("r")]);
    let mut child = spawn(&fixtures, &[]);
    let group = pid(&child);
    expect_stdout(&mut child, "r");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(roles(&mut fixtures), ["child", "left_group"]);
    kill_process_group(group, Signal::TERM).unwrap();
    // The end of the first holder has no visible event, but the group is empty at last.
    while kill_process_group(group, Signal::TERM).is_ok() && roles(&mut fixtures).len() == 2 {
        std::thread::yield_now();
    }
    assert_eq!(roles(&mut fixtures), ["left_group"]);
    fixtures.stop();
    // The end of the output shows that no process holds it.
    assert_eq!(rest_of_stdout(&mut child), b"");
}

#[test]
fn a_holder_that_leaves_has_a_session_of_its_own_and_ends_by_itself() {
    let (dir, fixtures) = actor(vec![
        ActorStep::ForkHolder { ms: LONG_MS, leave_group: true },
        stdout("r"),
        ActorStep::ReadRequest,
    ]);
    let mut child = spawn(&fixtures, &[]);
    expect_stdout(&mut child, "r");
    let record = fs::read_to_string(dir.path().join("it's a dir/tool.scenario.log")).unwrap();
    let line = record.lines().find(|line| line.contains("\"holder\"")).expect("the holder is recorded first");
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    let holder = Pid::from_raw(line["process"]["pid"].as_i64().unwrap().try_into().unwrap()).unwrap();
    assert_eq!(getsid(Some(holder)), Ok(holder));
    drop(fixtures);
    child.wait().unwrap();

    let (_dir, mut fixtures) = actor(vec![ActorStep::ForkHolder { ms: 1, leave_group: true }]);
    let mut child = spawn(&fixtures, &[]);
    assert_eq!(rest_of_stdout(&mut child), b"", "the holder closes the pipe when its time is over");
    child.wait().unwrap();
    while !roles(&mut fixtures).is_empty() {
        std::thread::yield_now();
    }
}

#[test]
fn ignores_sigterm_only_when_told() {
    for (told, code, signal) in [(true, Some(7), None), (false, None, Some(15))] {
        let mut script = vec![stdout("r"), ActorStep::ReadRequest, ActorStep::Exit(7)];
        if told {
            script.insert(0, ActorStep::IgnoreTerm);
        }
        let (_dir, fixtures) = actor(script);
        let mut child = spawn(&fixtures, &[]);
        expect_stdout(&mut child, "r");
        kill_process(pid(&child), Signal::TERM).unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // The actor that is not told may have ended already.
        let _ = stdin.write_all(b"{}");
        let status = if told { child.wait().unwrap() } else { wait_with(&mut child, stdin) };
        assert_eq!((status.code(), status.signal()), (code, signal), "told: {told}");
    }
}

/// Waits for the child while `open` stays open.
fn wait_with(child: &mut Child, open: impl Sized) -> std::process::ExitStatus {
    let status = child.wait().unwrap();
    drop(open);
    status
}

#[test]
fn dies_by_the_signal_it_is_told() {
    for signal in [9, 11, 6, 15] {
        let (_dir, fixtures) = actor(vec![ActorStep::IgnoreTerm, stdout("r"), ActorStep::Die(signal)]);
        let mut child = spawn(&fixtures, &[]);
        assert_eq!(rest_of_stdout(&mut child), b"r");
        assert_eq!(child.wait().unwrap().signal(), Some(signal));
    }
}

#[test]
fn a_signal_that_does_not_kill_is_a_fault_of_the_plan() {
    let (_dir, mut fixtures) = actor(vec![ActorStep::Die(17)]);
    assert_eq!(spawn(&fixtures, &[]).wait().unwrap().code(), Some(127));
    assert!(fixtures.observe().unwrap_err().to_string().contains("signal 17"));
}

#[test]
fn no_actor_outlives_its_bound() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = dir.path().join("x.scenario.json");
    let script = vec![ActorStep::IgnoreTerm, ActorStep::Sleep { ms: LONG_MS }];
    fs::write(
        &scenario,
        serde_json::to_vec(&Scenario { life_ms_max: 20, script, later: Vec::new() }).unwrap(),
    )
    .unwrap();
    File::create(dir.path().join("x.scenario.log")).unwrap();
    let mut command = Command::new(binary());
    command.arg(ACTOR_ARGUMENT).arg(&scenario);
    assert_eq!(guarded(&mut command).unwrap().wait().unwrap().signal(), Some(9));
}

#[test]
fn an_actor_that_comes_too_late_ends_at_once() {
    let (dir, fixtures) = actor(vec![ActorStep::Sleep { ms: LONG_MS }]);
    let path = fixtures.vars()["tool.path"].clone();
    fixtures.stop();
    assert!(dir.path().exists());
    assert_eq!(guarded(&mut Command::new(path)).unwrap().wait().unwrap().code(), Some(127));
}

#[test]
fn paths_are_what_they_are_called() {
    let path = |name: &str, what| Fixture::Path { name: name.to_owned(), what };
    let (_dir, fixtures) = start(&[
        path("missing", PathKind::Missing),
        path("folder", PathKind::Directory),
        path("data", PathKind::NotExecutable),
    ]);
    let vars = fixtures.vars();
    assert!(!Path::new(&vars["missing.path"]).exists());
    assert!(Path::new(&vars["folder.path"]).is_dir());
    let refused = guarded(&mut Command::new(&vars["data.path"])).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied);
}

#[test]
fn fixtures_lie_in_folders_and_links_lead_where_they_are_told() {
    let link = |name: &str, to: &str| Fixture::Path {
        name: name.to_owned(),
        what: PathKind::Link { to: to.to_owned() },
    };
    let file = |name: &str, mode| {
        let content = Payload::text("#!/bin/sh\necho \"").var("folder").then(Payload::text("\"\n"));
        Fixture::File { name: name.to_owned(), content, mode, kept: false }
    };
    let (_dir, mut fixtures) = start(&[
        Fixture::Actor { name: "p/q/tool".to_owned(), script: vec![stdout("t")], later: Vec::new() },
        file("p/program", Some(0o755)),
        file("p/data", Some(0o600)),
        file("plain", None),
        link("bin/there", "{{p/program.path}}"),
        link("bin/near", "../p/data"),
        link("bin/dangling", "nothing/here"),
        Fixture::Path { name: "p".to_owned(), what: PathKind::Directory },
    ]);
    let vars = fixtures.vars();
    let folder = Path::new(&vars["folder"]);
    assert_eq!(Path::new(&vars["p/q/tool.path"]), folder.join("p/q/tool"));
    let run = |name: &str| guarded_output(&mut Command::new(&vars[&format!("{name}.path")]));
    assert_eq!(run("p/q/tool"), b"t");
    assert_eq!(run("bin/there"), format!("{}\n", vars["folder"]).as_bytes());
    let mode =
        |name: &str| fs::metadata(&vars[&format!("{name}.path")]).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode("p/program"), mode("p/data")), (0o755, 0o600));
    assert_eq!(mode("bin/near"), 0o600);
    assert_eq!(fs::read_link(&vars["bin/dangling.path"]).unwrap(), Path::new("nothing/here"));
    let started =
        |kind: &EventKind| matches!(kind, EventKind::ActorStarted { actor, .. } if actor == "p/q/tool");
    assert!(fixtures.observe().unwrap().iter().any(started));
}

fn guarded_output(command: &mut Command) -> Vec<u8> {
    guarded(command.stdout(Stdio::piped())).unwrap().wait_with_output().unwrap().stdout
}

#[test]
fn later_starts_do_what_is_said_of_them() {
    let say = |text: &str| vec![stdout(text)];
    let later = vec![say("two"), say("three")];
    for (later, expected) in [(later, ["one", "two", "three", "three"]), (Vec::new(), ["one"; 4])] {
        let (_dir, fixtures) =
            start(&[Fixture::Actor { name: "tool".to_owned(), script: say("one"), later }]);
        for expected in expected {
            let mut command = Command::new(&fixtures.vars()["tool.path"]);
            assert_eq!(guarded_output(command.env_clear()), expected.as_bytes());
        }
    }
}

#[test]
fn the_file_of_the_last_start_is_seen_while_it_stays() {
    let (dir, mut fixtures) = actor(Vec::new());
    let mut stays = |args: &[&str], path: &Path| {
        let mut command = Command::new(&fixtures.vars()["tool.path"]);
        assert!(guarded(command.args(args).current_dir(dir.path())).unwrap().wait().unwrap().success());
        let probe = |fixtures: &mut Fixtures| fixtures.probe_actor("tool", "end").unwrap();
        let found = probe(&mut fixtures);
        fs::remove_file(path).unwrap();
        assert_eq!(probe(&mut fixtures), []);
        fs::write(path, "").unwrap();
        found
    };
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    for path in [&first, &second] {
        fs::write(path, "").unwrap();
    }
    let there = |path: &Path| {
        let path = path.to_str().unwrap().to_owned();
        vec![EventKind::ActorFileStays { actor: "tool".to_owned(), label: "end".to_owned(), path }]
    };
    assert_eq!(stays(&["-x", first.to_str().unwrap()], &first), there(&first));
    assert_eq!(stays(&["second"], &second), there(&second), "relative to where it ran");
    assert_eq!(stays(&[first.to_str().unwrap(), "AID.X"], &first), [], "the last argument counts");
    assert_eq!(stays(&["it's a dir"], &first), [], "a folder is no file");
    assert_eq!(stays(&[], &first), []);
}

#[test]
fn events_of_listeners_and_actors_come_in_order() {
    let listener = |name: &str, location: Option<&str>| Fixture::Listener {
        name: name.to_owned(),
        status: if location.is_some() { 302 } else { 200 },
        location: location.map(str::to_owned),
        body: Payload::text("at ").var("z.address"),
        manner: ListenerSettings::default(),
    };
    let tool = Fixture::Actor {
        name: "tool".to_owned(),
        script: vec![ActorStep::Stdout(Payload::default().var("a.port"))],
        later: Vec::new(),
    };
    let (_dir, mut fixtures) =
        start(&[tool, listener("a", Some("http://x:{{z.port}}/y")), listener("z", None)]);
    let vars = fixtures.vars();
    let get = |name: &str| {
        let mut stream = TcpStream::connect(&vars[&format!("{name}.address")]).unwrap();
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply
    };
    assert!(get("z").ends_with(&format!("\r\n\r\nat {}", vars["z.address"])));
    let mut child = spawn(&fixtures, &[]);
    assert_eq!(rest_of_stdout(&mut child), vars["a.port"].as_bytes());
    child.wait().unwrap();
    assert!(get("a").contains(&format!("\r\nLocation: http://x:{}/y\r\n", vars["z.port"])));
    let silent = TcpStream::connect(&vars["z.address"]).unwrap();
    silent.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let happened: Vec<String> = fixtures
        .observe()
        .unwrap()
        .into_iter()
        .filter_map(|kind| match kind {
            EventKind::ListenerHit { listener, head, .. } => Some(format!("{listener} {}", head.0.len())),
            EventKind::ActorStarted { actor, .. } => Some(actor),
            _ => None,
        })
        .collect();
    assert_eq!(happened, ["z 18", "tool", "a 18", "z 0"]);
    fixtures.stop();
    // Closed or reset. Connecting again proves nothing, because a newly forked process may hold the port.
    assert!(is_closed((&silent).read(&mut [0])));
}

fn is_closed(read: std::io::Result<usize>) -> bool {
    match read {
        Ok(bytes) => bytes == 0,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

#[test]
fn refuses_what_cannot_work() {
    let exe = actor_exe();
    let dir = tempfile::tempdir().unwrap();
    let refused = |fixture| Fixtures::start(&[fixture], dir.path(), &exe).unwrap_err().to_string();
    let script = vec![ActorStep::Stdout(Payload::default().var("b.port"))];
    assert!(
        refused(Fixture::Actor { name: "a".to_owned(), script, later: Vec::new() }).contains("\"b.port\"")
    );
    fs::write(dir.path().join("c"), "").unwrap();
    assert!(
        refused(Fixture::Path { name: "c".to_owned(), what: PathKind::Missing }).contains("exists already")
    );
    let mut none = Fixtures::start(&[], dir.path(), &exe).unwrap();
    assert!(none.probe_actor("a", "x").unwrap_err().to_string().contains("\"a\""));
}
