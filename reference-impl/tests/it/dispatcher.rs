//! `refpeer dispatch` with real toolhosts: small shell scripts in a temporary folder.
//!
//! `src/dispatcher/tests.rs` tests the behaviour that depends only on bytes and time. These tests cover pipes,
//! processes and signals.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{REFPEER, runs, write_program};

/// Time far beyond every call here.
const DEADLINE: Duration = Duration::from_secs(30);

/// Reply of a tool with the output `{"n":1}`.
const REPLY: &str =
    r#"{"ok":true,"status":"OK","output_json":"{\"n\":1}","error":"","ds_state":{"slots":{}}}"#;

struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Creates a toolhost that runs `script` in this folder; `$REPLY` is a good reply.
    fn toolhost(&self, script: &str) -> PathBuf {
        let path = self.path("toolhost");
        let folder = self.folder.path().display();
        write_program(&path, &format!("#!/bin/sh\ncd '{folder}'\nREPLY='{REPLY}'\n{script}\n"));
        path
    }

    /// Starts a dispatcher for `peer` with a time limit in seconds.
    fn start(peer: &Path, arguments: &[&str], timeout_s: &str) -> Child {
        Command::new(REFPEER)
            .arg("dispatch")
            .arg(peer)
            .args(arguments)
            .env("MACHINA_TOOLHOST_TIMEOUT", timeout_s)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap()
    }

    /// Waits for the dispatcher to exit, and kills it at the deadline.
    fn finish(dispatcher: Child) -> Output {
        let pid = Pid::from_child(&dispatcher);
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || sender.send(dispatcher.wait_with_output()));
        receiver
            .recv_timeout(DEADLINE)
            .unwrap_or_else(|_| {
                let _ = kill_process(pid, Signal::KILL);
                panic!("the dispatcher did not end");
            })
            .unwrap()
    }

    fn call_with(peer: &Path, arguments: &[&str], timeout_s: &str, call: &str) -> Value {
        let mut dispatcher = Self::start(peer, arguments, timeout_s);
        let mut stdin = dispatcher.stdin.take().unwrap();
        let call = call.to_owned();
        let writer = thread::spawn(move || stdin.write_all(call.as_bytes()));
        let output = Self::finish(dispatcher);
        let _ = writer.join().unwrap();
        assert_eq!(output.status.code(), Some(0));
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            panic!("{error}: {}", String::from_utf8_lossy(&output.stdout));
        })
    }

    fn call(peer: &Path) -> Value {
        Self::call_with(peer, &[], "600", r#"{"aid":"AID.T.v1","inputs":{"k":"v"}}"#)
    }

    /// Process ids in the file `name`, one per line.
    fn pids(&self, name: &str) -> Vec<i32> {
        let text = fs::read_to_string(self.path(name)).unwrap();
        text.lines().map(|line| line.trim().parse().unwrap()).collect()
    }
}

fn assert_error(answer: &Value, kind: &str) {
    assert_eq!(answer["error"], json!(true), "{answer}");
    assert_eq!(answer["type"], json!(kind), "{answer}");
    assert_eq!(answer["aid"], json!("AID.T.v1"), "{answer}");
    assert_ne!(answer["detail"].as_str().unwrap_or_default(), "", "{answer}");
}

#[test]
fn passes_call_and_output_through() {
    let bench = Bench::new();
    let peer = bench.toolhost("printf '%s\\n' \"$@\" >arguments; cat >request; printf '%s\\n' \"$REPLY\"");
    assert_eq!(Bench::call(&peer), json!({"n": 1}));
    assert_eq!(fs::read_to_string(bench.path("arguments")).unwrap(), "--run\ndefault\nAID.T.v1\n");
    let request: Value = serde_json::from_slice(&fs::read(bench.path("request")).unwrap()).unwrap();
    assert_eq!(request, json!({"aid": "AID.T.v1", "input_json": r#"{"k":"v"}"#}));
}

#[test]
fn sends_inputs_by_choice() {
    let bench = Bench::new();
    let peer = bench.toolhost("cat >request; printf '%s' \"$REPLY\"");
    let call = r#"{"aid":"AID.T.v1","inputs":{"k":"é\n"}}"#;
    let arguments = ["--choice", "request_shape=inputs"];
    assert_eq!(Bench::call_with(&peer, &arguments, "600", call), json!({"n": 1}));
    let request: Value = serde_json::from_slice(&fs::read(bench.path("request")).unwrap()).unwrap();
    assert_eq!(request, json!({"aid": "AID.T.v1", "inputs": {"k": "é\n"}}));
}

#[test]
fn feeds_a_megabyte_to_a_toolhost_that_fills_stderr_first() {
    let bench = Bench::new();
    let peer = bench.toolhost("head -c 2000000 /dev/zero >&2; wc -c >count; printf '%s' \"$REPLY\"");
    let call = format!(r#"{{"aid":"AID.T.v1","inputs":{{"k":"{}"}}}}"#, "x".repeat(1_000_000));
    assert_eq!(Bench::call_with(&peer, &[], "600", &call), json!({"n": 1}));
    let count: usize = fs::read_to_string(bench.path("count")).unwrap().trim().parse().unwrap();
    assert!(count >= 1_000_000, "{count}");
}

#[test]
fn needs_no_toolhost_that_reads() {
    let bench = Bench::new();
    let peer = bench.toolhost("exec <&-; printf '%s' \"$REPLY\"");
    let call = format!(r#"{{"aid":"AID.T.v1","inputs":{{"k":"{}"}}}}"#, "x".repeat(1_000_000));
    assert_eq!(Bench::call_with(&peer, &[], "600", &call), json!({"n": 1}));
}

#[test]
fn never_parses_stderr() {
    let bench = Bench::new();
    let peer = bench.toolhost("cat >request; printf '%s' \"$REPLY\" >&2; echo '[]'");
    assert_error(&Bench::call(&peer), "parse_error");
}

#[test]
fn reports_status_and_signal_as_crash() {
    let bench = Bench::new();
    assert_error(&Bench::call(&bench.toolhost("printf '%s' \"$REPLY\"; exit 3")), "crash");
    assert_error(&Bench::call(&bench.toolhost("printf '%s' \"$REPLY\"; kill -9 $$")), "crash");
}

#[test]
fn tells_absent_programs_from_unusable_ones() {
    let bench = Bench::new();
    assert_error(&Bench::call(&bench.path("absent")), "not_found");
    assert_error(&Bench::call(bench.folder.path()), "exception");
    fs::write(bench.path("plain"), "no program").unwrap();
    assert_error(&Bench::call(&bench.path("plain")), "exception");
    let peer = bench.toolhost("");
    fs::write(&peer, "#!/no/such/interpreter\n").unwrap();
    assert_error(&Bench::call(&peer), "exception");
}

#[test]
fn answers_a_malformed_call_itself() {
    let bench = Bench::new();
    let peer = bench.toolhost("touch started; printf '%s' \"$REPLY\"");
    let answer = Bench::call_with(&peer, &[], "600", r#"{"aid":"AID.T.v1","inputs":[]}"#);
    assert_error(&answer, "exception");
    assert!(!bench.path("started").exists());
}

#[test]
fn stops_a_toolhost_that_never_stops_writing() {
    let bench = Bench::new();
    let peer = bench.toolhost("echo $$ >pids; exec yes");
    assert_error(&Bench::call(&peer), "parse_error");
    assert!(bench.pids("pids").into_iter().all(|pid| !runs(pid)));
}

#[test]
fn kills_group_and_deserters_at_timeout() {
    let bench = Bench::new();
    let peer = bench.toolhost(
        "trap '' TERM\n\
         sleep 1000 & echo $! >>pids\n\
         setsid sh -c 'trap \"\" TERM; echo $$ >>pids; sleep 1000 & echo $! >>pids; wait' &\n\
         echo $$ >>pids\n\
         wait",
    );
    let answer = Bench::call_with(&peer, &[], "2", r#"{"aid":"AID.T.v1","inputs":{}}"#);
    assert_error(&answer, "timeout");
    let pids = bench.pids("pids");
    assert_eq!(pids.len(), 4, "setsid (util-linux) is needed");
    assert!(pids.iter().all(|&pid| !runs(pid)), "{pids:?}");
}

#[test]
fn gives_up_on_a_toolhost_that_only_closed_its_output() {
    let bench = Bench::new();
    let peer = bench.toolhost("printf '%s' \"$REPLY\"; exec >&- 2>&- sleep 1000");
    let answer = Bench::call_with(&peer, &[], "0.2", r#"{"aid":"AID.T.v1","inputs":{}}"#);
    assert_error(&answer, "timeout");
}

#[test]
fn descendant_holding_the_pipes_delays_nothing_and_dies() {
    let bench = Bench::new();
    let peer = bench.toolhost(
        "cat >request\n\
         sleep 1000 & echo $! >>pids\n\
         setsid sleep 1000 & echo $! >>pids\n\
         printf '%s\\n' \"$REPLY\"",
    );
    // With a limit of 600 s and a deadline of 30 s, only a call that is not held up returns in time.
    assert_eq!(Bench::call(&peer), json!({"n": 1}));
    let pids = bench.pids("pids");
    assert!(pids.len() == 2 && pids.iter().all(|&pid| !runs(pid)), "{pids:?}");
}

#[test]
fn descendant_that_lets_go_of_the_pipes_dies_too() {
    let bench = Bench::new();
    let peer = bench.toolhost(
        "cat >request\n\
         setsid sleep 1000 >/dev/null 2>&1 </dev/null & echo $! >>pids\n\
         printf '%s\\n' \"$REPLY\"",
    );
    assert_eq!(Bench::call(&peer), json!({"n": 1}));
    assert!(bench.pids("pids").into_iter().all(|pid| !runs(pid)));
}

#[test]
fn sigterm_takes_the_toolhost_along() {
    let bench = Bench::new();
    let peer = bench.toolhost("trap '' TERM; sleep 1000 & echo $$ >pids; echo $! >>pids; : >ready; wait");
    let mut dispatcher = Bench::start(&peer, &[], "600");
    dispatcher.stdin.take().unwrap().write_all(br#"{"aid":"AID.T.v1"}"#).unwrap();
    let started = Instant::now();
    while !bench.path("ready").exists() {
        assert!(started.elapsed() < DEADLINE, "the toolhost did not start");
        thread::sleep(Duration::from_millis(5));
    }
    kill_process(Pid::from_child(&dispatcher), Signal::TERM).unwrap();
    let output = Bench::finish(dispatcher);
    assert_eq!(output.status.code(), Some(143));
    assert!(output.stdout.is_empty());
    assert!(bench.pids("pids").into_iter().all(|pid| !runs(pid)));
}

#[test]
fn sigterm_ends_a_dispatcher_that_waits_for_its_call() {
    let mut dispatcher = Bench::start(Path::new("/nonexistent"), &[], "600");
    // The first bytes have no answer, but their acceptance shows that the process has started.
    dispatcher.stdin.as_mut().unwrap().write_all(&vec![b' '; 1_000_000]).unwrap();
    let stdin = dispatcher.stdin.take();
    kill_process(Pid::from_child(&dispatcher), Signal::TERM).unwrap();
    let output = Bench::finish(dispatcher);
    drop(stdin);
    assert!(!output.status.success());
}
