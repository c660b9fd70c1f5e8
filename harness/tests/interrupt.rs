//! What is left of a run that is interrupted or killed: its peers end, and what was measured is kept.

#![allow(clippy::unwrap_used, reason = "clippy takes helpers of an integration test for library code")]

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

const BINARY: &str = env!("CARGO_BIN_EXE_peerproof");
/// Only a run that hangs meets it.
const LONG: Duration = Duration::from_secs(60);

fn start(folder: &Path, args: &[&str]) -> Child {
    let mut command = Command::new(BINARY);
    command.current_dir(folder).args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// The process id in `file`, once somebody has written it.
fn pid_in(file: &Path) -> Pid {
    let deadline = Instant::now() + LONG;
    loop {
        let text = fs::read_to_string(file).unwrap_or_default();
        if let Some(pid) = text.strip_suffix('\n').and_then(|pid| Pid::from_raw(pid.parse().ok()?)) {
            return pid;
        }
        assert!(Instant::now() < deadline, "nobody wrote {}", file.display());
        std::thread::yield_now();
    }
}

fn handle(pid: Pid) -> OwnedFd {
    pidfd_open(pid, PidfdFlags::empty()).unwrap()
}

/// Whether the process ends within a time that only one that hangs needs.
fn ends(handle: &OwnedFd) -> bool {
    let patience = Timespec::try_from(LONG).unwrap();
    poll(&mut [PollFd::new(handle, PollFlags::IN)], Some(&patience)).unwrap() == 1
}

/// Hangs, and has a child in a session of its own; both tell their ids.
const HANGS: &str = "setsid sh -c 'echo $$ > child; exec sleep 1000' & echo $$ > peer; exec sleep 1000";

#[test]
fn peers_of_a_killed_harness_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut harness = start(folder.path(), &["check", "toolhost", "--", "sh", "-c", HANGS]);
    let peers = ["peer", "child"].map(|name| handle(pid_in(&folder.path().join(name))));
    harness.kill().unwrap();
    harness.wait().unwrap();
    for peer in &peers {
        assert!(ends(peer), "a peer outlives its harness");
    }
}

#[test]
fn peers_end_at_a_second_interrupt() {
    let folder = tempfile::tempdir().unwrap();
    let mut harness = start(folder.path(), &["check", "toolhost", "--", "sh", "-c", HANGS]);
    let peers = ["peer", "child"].map(|name| handle(pid_in(&folder.path().join(name))));
    for _ in 0..2 {
        let _ = kill_process(Pid::from_child(&harness), Signal::INT);
    }
    assert_eq!(harness.wait().unwrap().code(), Some(130));
    for peer in &peers {
        assert!(ends(peer), "a peer outlives its harness");
    }
}
