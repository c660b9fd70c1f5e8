//! Guardian: small process that outlives a killed harness and ends its peers.
//!
//! A harness that ends normally has already ended its peers. One that is killed, or exits at a second Ctrl-C, has not.
//! The guardian is the harness binary, started with a hidden argument; its standard input is a pipe whose other end
//! only the harness holds. The pipe closes when the harness is gone, whatever the reason. The guardian then kills every
//! process with the mark of this harness, the groups that these processes lead, and all their descendants.
//!
//! It costs one process per run and nothing per peer. Without the harness binary there is no guardian: peers then end
//! with their input, or never. It misses processes that cleared their environment, left their group and outlived their
//! parent.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::finish;
use crate::drive::process;

/// First argument that makes the harness binary act as the guardian, see [`main`].
pub const GUARDIAN_ARGUMENT: &str = "__end-what-outlives";

/// Environment variable that marks the peers of a harness and their descendants.
const MARK: &str = "PEERPROOF_PEER";
/// Pause between two searches: during exec a program briefly has no environment.
const PAUSE: Duration = Duration::from_millis(20);
/// Number of consecutive empty searches after which the guardian stops.
const EMPTY_LOOKS: u32 = 2;
/// Maximum number of searches, so that a fork bomb does not keep the guardian forever.
const LOOKS_MAX: u32 = 64;

/// Name and value of a mark that is unique among the peers of all harnesses.
pub(crate) fn mark() -> (String, String) {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    (MARK.to_owned(), format!("{}-{count}", std::process::id()))
}

/// Starts the guardian of this process, once. `exe` is the harness binary, or one whose `main` passes the arguments
/// after [`GUARDIAN_ARGUMENT`] to [`main`].
pub fn start(exe: &Path) {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let guarded = format!("{MARK}={}-", std::process::id());
        let mut command = Command::new(exe);
        // It holds none of our streams and does not receive a Ctrl-C for our group. Its environment is not a peer's,
        // and not empty, because empty ones are inspected twice.
        command.arg(GUARDIAN_ARGUMENT).arg(guarded).env_clear().env("PEERPROOF_GUARDIAN", "1");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        command.current_dir("/");
        let _guard = crate::drive::fixture::spawn_guard();
        // Without it, peers are only less protected.
        if let Ok(guardian) = command.spawn() {
            // Neither waited for nor closed: the end of this process closes the pipe.
            std::mem::forget(guardian);
        }
    });
}

/// Waits for the end of standard input, then ends all processes with the mark in the first of `args`. Returns the exit
/// status.
pub fn main(args: impl IntoIterator<Item = OsString>) -> i32 {
    let Some(mark) = args.into_iter().next().filter(|mark| is_mark(mark)) else { return 2 };
    let mut byte = [0];
    let mut stdin = std::io::stdin();
    while !matches!(stdin.read(&mut byte), Ok(0)) {}
    let mut empty = 0;
    for _ in 0..LOOKS_MAX {
        let living = marked(mark.as_encoded_bytes());
        finish::end_all(&living);
        empty = if living.is_empty() { empty + 1 } else { 0 };
        if empty == EMPTY_LOOKS {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    0
}

/// True for a complete mark; a shorter text might match other processes.
fn is_mark(mark: &OsStr) -> bool {
    let pid = mark.to_str().and_then(|mark| mark.strip_prefix(MARK)?.strip_prefix('=')?.strip_suffix('-'));
    pid.is_some_and(|pid| pid.parse::<u32>().is_ok())
}

/// Living processes whose mark begins with `mark`, processes in groups that they lead, and all descendants.
fn marked(mark: &[u8]) -> Vec<process::Process> {
    let all = process::all();
    let mut pids: BTreeSet<i32> = all
        .iter()
        .filter(|process| process::carries_now(process.pid, mark))
        .map(|process| process.pid)
        .collect();
    let leaders = pids.clone();
    pids.extend(all.iter().filter(|process| leaders.contains(&process.group)).map(|process| process.pid));
    loop {
        let children = all.iter().filter(|process| pids.contains(&process.parent));
        let before = pids.len();
        let children: Vec<i32> = children.map(|process| process.pid).collect();
        pids.extend(children);
        if pids.len() == before {
            break;
        }
    }
    all.into_iter().filter(|process| pids.contains(&process.pid)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_names_one_harness() {
        for good in ["PEERPROOF_PEER=1-", "PEERPROOF_PEER=4194304-"] {
            assert!(is_mark(OsStr::new(good)), "{good}");
        }
        for bad in ["", "PEERPROOF_PEER=", "PEERPROOF_PEER=-", "PEERPROOF_PEER=1", "PATH=1-"] {
            assert!(!is_mark(OsStr::new(bad)), "{bad}");
        }
    }

    #[test]
    fn what_a_marked_process_leads_or_started_is_found_and_nothing_else() {
        let script = "env -i /bin/sleep 1000 & exec /bin/sleep 1000";
        let mut peer = Command::new("/bin/sh")
            .args(["-c", script])
            .env("PEERPROOF_TEST_MARK", "7-1")
            .process_group(0)
            .spawn()
            .unwrap();
        let pid = i32::try_from(peer.id()).unwrap();
        // Until both have become `sleep`, one may have no environment yet.
        let found = loop {
            let found = marked(b"PEERPROOF_TEST_MARK=7-");
            if found.len() == 2 && found.iter().all(|process| process.command == "sleep") {
                break found;
            }
            std::thread::yield_now();
        };
        assert!(found.iter().any(|process| process.pid == pid));
        assert!(marked(b"PEERPROOF_TEST_MARK=8-").is_empty());
        finish::end_all(&found);
        peer.wait().unwrap();
        assert!(marked(b"PEERPROOF_TEST_MARK=7-").is_empty());
    }
}
