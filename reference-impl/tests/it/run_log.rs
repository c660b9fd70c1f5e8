//! Tests of `refpeer run-log` as a process: a run with its own driver and toolhost, and its replay.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::{REFPEER, write_program};

/// A toolhost in shell. It records each start, and changes only slot 0 of the state.
const TOOLHOST: &str = r#"#!/bin/sh
echo "$*" >> "$(dirname "$0")/starts"
cat > /dev/null
case "$3" in
  AID.HANG) sleep 60 ;;
  AID.SET) printf '%s' '{"ok":true,"status":"OK","output_json":"{\"set\":1}","error":"","ds_state":{"slots":{"0":{"type":"text","provenance":"tool","content_json":"{\"a\":1}","size_bytes":7}}}}' ;;
  *) exit 3 ;;
esac
"#;

const DRIVER: &str = r#"#!/bin/sh
here="$(dirname "$0")"
echo x >> "$here/drives"
case "$(wc -l < "$here/drives" | tr -d ' ')" in
  1) echo '<PICK><SID0001><INP>{"k":2}</INP><END>' ;;
  2) echo '<PICK><SID0002><END>' ;;
  *) echo '<NOOP><END>' ;;
esac
"#;

const REQUEST: &str = r#"{"goal_id":"g","inputs":{"k":1},"control_mode":"POLICY_ONLY","tools":[
    {"aid":"AID.SET","name":"set","tags":[],"deterministic":true},
    {"aid":"AID.FAILS","name":"fails","tags":[],"deterministic":true}]}"#;

struct Scene(tempfile::TempDir);

impl Scene {
    fn new() -> Self {
        let scene = Self(tempfile::tempdir().unwrap());
        write_program(&scene.path("peer"), TOOLHOST);
        for (name, text) in [("driver.sh", DRIVER), ("request", REQUEST)] {
            fs::write(scene.path(name), text).unwrap();
        }
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, words: &[&str]) -> Output {
        let mut command = Command::new(REFPEER);
        command.arg("run-log").args(words).current_dir(self.0.path());
        command.env("MACHINA_POLICY_CMD", format!("sh {}", self.path("driver.sh").display()));
        command.env("MACHINA_POLICY_ALLOWED_SCRIPT_ROOT", self.0.path());
        command.env("MACHINA_POLICY_TIMEOUT_MS", "60000").env("MACHINA_TOOLHOST_TIMEOUT", "40");
        command.env("TMPDIR", self.0.path()).output().unwrap()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn lines(path: &Path) -> usize {
    fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

fn replayed(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8(output.stdout.clone()).unwrap())
}

#[test]
fn a_run_replays() {
    let scene = Scene::new();
    let ran = scene.run(&["runner", "request", "log", "peer"]);
    assert_eq!((ran.status.code(), &*ran.stdout), (Some(0), &b""[..]), "{ran:?}");
    let log = fs::read_to_string(scene.path("log")).unwrap();
    for event in ["run_started", "inputs_patched", "tool_ok", "tool_error", "run_finished"] {
        assert_eq!(log.matches(&format!("\"event\":\"{event}\"")).count(), 1, "{event}: {log}");
    }
    assert!(log.contains("41c17a4799aafdb5b340f2cf844b3c6ba5214d379238b585c9c739d4954b8902"));
    assert_eq!((lines(&scene.path("drives")), lines(&scene.path("starts"))), (3, 2));

    let names = scene.names();
    assert_eq!(
        replayed(&scene.run(&["replayer", "log", "peer"])),
        (Some(0), "REPLAY_STRICT OK\n".to_owned())
    );
    assert_eq!((lines(&scene.path("drives")), lines(&scene.path("starts"))), (3, 3));
    assert_eq!((fs::read_to_string(scene.path("log")).unwrap(), scene.names()), (log.clone(), names));

    let broken = log.replacen("\\\"set\\\":1", "\\\"set\\\":2", 1);
    assert_ne!(log, broken);
    fs::write(scene.path("broken"), broken).unwrap();
    let (status, said) = replayed(&scene.run(&["replayer", "broken", "peer"]));
    assert_eq!(status, Some(1));
    assert!(said.starts_with("REPLAY_STRICT FAIL line 4: "), "{said}");

    // The log exists already and stays unchanged.
    assert_eq!(scene.run(&["runner", "request", "log", "peer"]).status.code(), Some(70));
    assert_eq!(fs::read_to_string(scene.path("log")).unwrap(), log);
}

#[test]
fn a_run_that_is_killed_leaves_every_step_before() {
    let scene = Scene::new();
    fs::write(scene.path("driver.sh"), DRIVER.replace("2) echo", "2) kill -9 $PPID; echo")).unwrap();
    assert_eq!(scene.run(&["runner", "request", "log", "peer"]).status.signal(), Some(9));
    let log = fs::read_to_string(scene.path("log")).unwrap();
    assert!(
        log.ends_with("}\n") && log.lines().count() == 4 && log.contains("\"event\":\"tool_ok\""),
        "{log}"
    );
    let (status, said) = replayed(&scene.run(&["replayer", "log", "peer"]));
    assert!(status == Some(1) && said.starts_with("REPLAY_STRICT FAIL line 5: "), "{said}");
}

#[test]
fn what_cannot_be_read_is_no_log() {
    let scene = Scene::new();
    fs::write(scene.path("empty"), "").unwrap();
    for (words, status) in [
        (&["replayer", "nothing", "peer"][..], 2),
        (&["replayer", ".", "peer"][..], 2),
        (&["replayer", "empty", "peer"][..], 1),
        (&["replayer", "empty"][..], 2),
        (&["replayer"][..], 2),
        (&["replayer", "empty", "peer", "--choice", "two_runs=all"][..], 2),
        (&["runner", "nothing", "log", "peer"][..], 2),
        (&["runner", "empty", "log", "peer"][..], 2),
        (&["runner", "request", "no/folder/log", "peer"][..], 70),
        (&["else", "empty", "peer"][..], 2),
    ] {
        let output = scene.run(words);
        assert_eq!(output.status.code(), Some(status), "{words:?}");
        assert!(!String::from_utf8_lossy(&output.stdout).contains("REPLAY_STRICT OK"));
    }
    assert!(!scene.path("log").exists());
    assert_eq!((lines(&scene.path("drives")), lines(&scene.path("starts"))), (0, 0));
}

#[test]
fn a_toolhost_that_is_missing_fails_the_replay() {
    let scene = Scene::new();
    assert_eq!(scene.run(&["runner", "request", "log", "peer"]).status.code(), Some(0));
    for peer in ["gone", "request-folder"] {
        let (status, said) = replayed(&scene.run(&["replayer", "log", peer]));
        assert!(status == Some(1) && said.starts_with("REPLAY_STRICT FAIL line 4: "), "{said}");
    }
}
