//! Tests of written, compiled and loaded tools.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout};

use super::*;

const C: &str = include_str!("../../../src/run_queue/sample.c");
const RUST: &str = include_str!("../../../src/run_queue/sample.rs.txt");

struct Session {
    _process: Running,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Session {
    fn new(queue: &Queue, more: &[&str]) -> Self {
        let words = [&["genesis", "--serve", "plugin", "--root", "root"], more].concat();
        let mut command = queue.command(&words);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { _process: Running(child), input, output }
    }

    fn call(&mut self, aid: &str, input: &serde_json::Value) -> serde_json::Value {
        let aid = if aid.contains('.') { aid.to_owned() } else { format!("AID.GENESIS.{aid}.v1") };
        let request = serde_json::json!({ "aid": aid, "input_json": input.to_string() });
        writeln!(self.input, "{request}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn ok(&mut self, aid: &str, input: serde_json::Value) -> bool {
        let reply = self.call(aid, &input);
        assert!(reply["ok"] == true || !reply["error"].as_str().unwrap().is_empty(), "{reply}");
        reply["ok"] == true
    }
}

#[test]
fn what_is_written_is_what_runs() {
    use serde_json::json;
    for (compiler, path, text) in [("cc", "sample.c", C), ("rustc", "sub/sample.rs", RUST)] {
        let queue = Queue::new();
        let mut session = Session::new(&queue, &[]);
        let aid = "AID.GENESIS.SAMPLE.v1";
        for nonce in ["first", "second"] {
            let content = text.replace("@NONCE@", nonce);
            assert!(session.ok("WRITE_FILE", json!({ "path": path, "content": content })));
            assert_eq!(
                fs::read_to_string(queue.path("root/runtime_genesis/src").join(path)).unwrap(),
                content
            );
            if nonce == "first" {
                assert!(!session.ok("LOAD", json!({ "name": "made" })));
                assert!(!session.ok(aid, json!({})));
            }
            assert!(session.ok("COMPILE", json!({ "path": path, "name": "made" })), "{compiler}");
            assert!(session.ok("LOAD", json!({ "name": "made" })));
            let reply = session.call(aid, &json!({ "k": 1 }));
            let slot = &reply["ds_state"]["slots"]["0"]["content_json"];
            assert!(slot.as_str().is_some_and(|text| text.contains(nonce)), "{reply}");
        }
        // A text that does not compile leaves the previous program.
        assert!(session.ok("WRITE_FILE", json!({ "path": path, "content": "no program" })));
        assert!(!session.ok("COMPILE", json!({ "path": path, "name": "made" })));
        assert!(!session.ok("COMPILE", json!({ "path": path, "name": "other" })));
        assert!(!session.ok("LOAD", json!({ "name": "other" })));
        assert!(session.ok(aid, json!({})));
        let entries = |folder: &str| fs::read_dir(queue.path(folder)).unwrap().count();
        assert_eq!((entries("root/runtime_genesis"), entries("root/runtime_plugins")), (3, 1));
        assert_eq!(entries("."), 3, "the queue, the runner and the root");
    }
}

#[test]
fn paths_and_names_lead_nowhere_else() {
    use serde_json::json;
    let queue = Queue::new();
    fs::create_dir_all(queue.path("root/runtime_genesis/src/folder")).unwrap();
    fs::create_dir_all(queue.path("root/runtime_plugins")).unwrap();
    fs::write(queue.path("root/runtime_plugins/text"), "no program").unwrap();
    std::os::unix::fs::symlink(queue.path("q"), queue.path("root/runtime_genesis/src/link")).unwrap();
    let mut session = Session::new(&queue, &[]);
    for path in [
        "",
        ".",
        "/x.c",
        "../x.c",
        "a/../../x.c",
        "link/x.c",
        "link",
        "folder",
        "a/",
        "x\0.c",
        "folder/../../x.c",
    ] {
        assert!(!session.ok("WRITE_FILE", json!({ "path": path, "content": "x" })), "{path:?}");
        assert!(!session.ok("COMPILE", json!({ "path": path, "name": "x" })), "{path:?}");
    }
    assert!(!session.ok("WRITE_FILE", json!({ "path": "a.c" })));
    assert!(!session.ok("WRITE_FILE", json!({ "path": "a.c", "content": 1 })));
    assert_eq!(fs::read_dir(queue.path("root/runtime_genesis/src")).unwrap().count(), 2);
    assert!(queue.names("inbox").is_empty() && fs::read_dir(queue.path("q")).unwrap().count() == 1);
    for path in ["-o x.c", "@x.c", ";x.c", "$(touch y).c", "%2e%2e.c", "a\\b.c"] {
        assert!(
            session.ok("WRITE_FILE", json!({ "path": path, "content": "int main(void) { return 3; }" })),
            "{path}"
        );
        session.ok("COMPILE", json!({ "path": path, "name": "odd" }));
    }
    for name in ["", "../text", "a/b", "missing", "text", "odd"] {
        assert!(!session.ok("LOAD", json!({ "name": name })), "{name}");
    }
    assert!(!queue.path("y").exists());
    // These are a file that was not compiled, and a link in place of the folder.
    let script = queue.path("root/runtime_plugins/script");
    write_program(&script, "#!/bin/sh\necho AID.SCRIPT\n");
    assert!(!session.ok("LOAD", json!({ "name": "script" })));
    fs::rename(queue.path("root/runtime_plugins"), queue.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink(queue.path("elsewhere"), queue.path("root/runtime_plugins")).unwrap();
    let before = fs::read_dir(queue.path("elsewhere")).unwrap().count();
    assert!(!session.ok("COMPILE", json!({ "path": "a\\b.c", "name": "linked" })));
    assert!(!session.ok("LOAD", json!({ "name": "script" })));
    assert_eq!(fs::read_dir(queue.path("elsewhere")).unwrap().count(), before);
    let mut strict =
        Session::new(&queue, &["--choice", "write_overwrite=refuse", "--choice", "write_subfolder=refuse"]);
    assert!(!strict.ok("WRITE_FILE", json!({ "path": "@x.c", "content": "" })));
    assert!(!strict.ok("WRITE_FILE", json!({ "path": "folder/x.c", "content": "" })));
    let mut loose = Session::new(&queue, &["--choice", "write_dotdot_inside=accept"]);
    assert!(loose.ok("WRITE_FILE", json!({ "path": "folder/../new.c", "content": "" })));
    assert!(queue.path("root/runtime_genesis/src/new.c").exists());
}

#[test]
fn a_driver_makes_a_tool_in_a_run_that_replays() {
    // The program `python3` may be a script that starts Python.
    let python = Command::new("python3").args(["-c", "import sys; print(sys.executable, end='')"]).output();
    let python = String::from_utf8(python.expect("python3 is needed").stdout).unwrap();
    let queue = Queue::new();
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let example = own.join("examples/genesis");
    write_program(&queue.path("toolhost"), &fs::read_to_string(example.join("toolhost")).unwrap());
    for file in ["driver.py", "request.json"] {
        fs::copy(example.join(file), queue.path(file)).unwrap();
    }
    for file in ["sample.c", "sample.rs.txt"] {
        fs::copy(own.join("src/run_queue").join(file), queue.path(file)).unwrap();
    }
    let folder = Path::new(REFPEER).parent().unwrap().display().to_string();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap());
    let run = |words: &[&str]| {
        let mut command = Command::new(REFPEER);
        command.arg("run-log").args(words).arg("./toolhost").current_dir(queue.path("")).env("PATH", &path);
        command.env("MACHINA_POLICY_CMD", format!("{python} {}", queue.path("driver.py").display()));
        command.env("MACHINA_POLICY_ALLOWED_SCRIPT_ROOT", queue.path(""));
        command.env("MACHINA_POLICY_TIMEOUT_MS", "60000").env("MACHINA_TOOLHOST_TIMEOUT", "60");
        command.output().unwrap()
    };
    let ran = run(&["runner", "request.json", "log"]);
    let log = fs::read_to_string(queue.path("log")).unwrap_or_default();
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    assert_eq!(log.matches("\"event\":\"tool_ok\"").count(), 4, "{log}");
    assert!(log.contains("writtenbyadriver") && log.contains("\"path\":\"/slots/0\""), "{log}");
    let replayed = run(&["replayer", "log"]);
    assert_eq!(replayed.stdout, b"REPLAY_STRICT OK\n", "{replayed:?}");
}
