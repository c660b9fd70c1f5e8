//! Tests of `refpeer run-queue` as processes: workers that are killed, an adapter over sockets, and compiled tools.

mod genesis;
mod http;
mod worker;

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{REFPEER, runs, write_program};

/// A queue with a runner. The runner records each start, waits at the gate of its job, if any, and exits as the job
/// says.
struct Queue(tempfile::TempDir);

const RUNNER: &str = r#"#!/bin/sh
here="$(dirname "$0")"
text="$(cat "$1")"
printf '%s %s\n' "$$" "$text" >> "$here/starts"
yes loud 2>&1 | head -c 200000
case "$text" in *gate*) cat "$here/gate" ;; esac
case "$text" in *fails*) exit 3 ;; esac
"#;

impl Queue {
    fn new() -> Self {
        let queue = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(queue.path("q/inbox")).unwrap();
        write_program(&queue.path("runner"), RUNNER);
        queue
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn put(&self, name: impl AsRef<OsStr>, text: &str) {
        fs::write(self.path("q/inbox").join(name.as_ref()), text).unwrap();
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(REFPEER);
        command.arg("run_queue").args(words).current_dir(self.0.path()).stdin(Stdio::null());
        command.env("TMPDIR", self.0.path()).stderr(Stdio::null());
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// Command that cannot write a single byte to a file.
    fn without_room(&self, words: &[&str]) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -f 0 && exec \"$0\" run_queue \"$@\"", REFPEER]).args(words);
        command.current_dir(self.0.path()).stdin(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn once(&self) -> Option<i32> {
        self.run(&["worker", "q", "--once", "--runner", "runner"]).status.code()
    }

    fn start(&self, words: &[&str]) -> Running {
        Running(self.command(words).stdout(Stdio::null()).spawn().unwrap())
    }

    /// Names of the files below a folder of the queue.
    fn names(&self, folder: &str) -> Vec<String> {
        let mut names = Vec::new();
        let mut open = vec![self.path("q").join(folder)];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                if entry.file_type().is_ok_and(|it| it.is_dir()) {
                    open.push(entry.path());
                } else {
                    names.push(entry.file_name().to_string_lossy().into_owned());
                }
            }
        }
        names.sort();
        names
    }

    /// Texts of the started jobs, in order.
    fn starts(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("starts")).unwrap_or_default();
        text.lines().filter_map(|line| Some(line.split_once(' ')?.1.to_owned())).collect()
    }

    /// Ids of the started processes.
    fn pids(&self) -> Vec<i32> {
        let text = fs::read_to_string(self.path("starts")).unwrap_or_default();
        text.lines().filter_map(|line| line.split_once(' ')?.0.parse().ok()).collect()
    }
}

/// A process that is killed at the end of the test.
struct Running(Child);

impl Running {
    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.0.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until a condition is true.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < end, "never: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

fn job(number: usize) -> String {
    format!("{{\"goal_id\":\"g\",\"number\":{number}}}")
}
