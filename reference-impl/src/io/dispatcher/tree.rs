//! Finds and kills the descendants of a child.
//!
//! Killing the process group is one call, but a descendant may have left the group (`setsid`). The dispatcher is a
//! child subreaper: orphaned descendants become its own children and stay visible in `/proc`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, kill_process, kill_process_group, waitid,
    waitpid,
};

/// Longest time for a kill before the answer is given anyway. It is within the second that the contract allows
/// (`contract` §1 Dispatcher, "the process group is gone 1 s later").
const KILL_TIME_MAX: Duration = Duration::from_millis(900);

/// Pause between two scans if no child reports its end meanwhile.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Scans of the own children between two scans of the whole process table.
const QUICK_ROUNDS_MAX: usize = 100;

/// One row of the process table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    pid: i32,
    parent: i32,
    zombie: bool,
}

/// Children that this process had before it started a toolhost, left by a program that became this one with `exec`.
/// They and their descendants are never killed.
#[derive(Debug, Default)]
pub(in crate::io) struct Bystanders(BTreeSet<i32>);

impl Bystanders {
    /// Reads the current children from the process table.
    pub(super) fn now() -> Self {
        let own = getpid().as_raw_nonzero().get();
        if !has_children() {
            return Self::default();
        }
        Self(
            process_table()
                .iter()
                .filter(|process| process.parent == own)
                .map(|process| process.pid)
                .collect(),
        )
    }
}

/// Kills the group of `child` and every descendant of this process except `bystanders`, and reaps them. Returns when
/// all are gone, or after [`KILL_TIME_MAX`]. `wait` waits for the end of any child, at most the given time.
pub(in crate::io) fn kill_all(child: &mut Child, bystanders: &Bystanders, mut wait: impl FnMut(Duration)) {
    let deadline = Instant::now() + KILL_TIME_MAX;
    let own = getpid();
    // The child is not reaped yet (exits are observed with NOWAIT), so its id still names its own group.
    if let Some(group) = pid_of(child) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    loop {
        let leader_gone = !matches!(child.try_wait(), Ok(None));
        if leader_gone && !has_children() {
            return;
        }
        let table = process_table();
        let found = descendants(&table, own.as_raw_nonzero().get(), &bystanders.0);
        for process in &found {
            end(process.pid, child);
        }
        // A process that was found dead may have forked since the scan began, so only an empty scan is the last. Even
        // that one counts only if every other child is a bystander.
        let nobody_left = found.is_empty() && (table.is_empty() || !bystanders.0.is_empty());
        if (leader_gone && nobody_left) || Instant::now() >= deadline {
            return;
        }
        if !outrun(child, bystanders) && found.iter().any(|process| !process.zombie) {
            wait(LOOK_AGAIN);
        }
    }
}

/// Kills the own children as fast as they can be listed. A process that forks and exits repeatedly is always a child
/// of this process, but gone before a scan of the whole process table is over. Returns true if none was left.
fn outrun(child: &Child, bystanders: &Bystanders) -> bool {
    for _ in 0..QUICK_ROUNDS_MAX {
        let children = own_children();
        let mut strangers = children.iter().filter(|pid| !bystanders.0.contains(pid)).peekable();
        if strangers.peek().is_none() {
            return true;
        }
        strangers.for_each(|pid| end(*pid, child));
    }
    false
}

/// Kills a process. Reaps it once it is dead, if it is a child other than `leader`.
fn end(pid: i32, leader: &Child) {
    let Some(pid) = Pid::from_raw(pid) else { return };
    let _ = kill_process(pid, Signal::KILL);
    if Some(pid) != pid_of(leader) {
        let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    }
}

/// Ids of the own children, from one read of `/proc`; empty if the kernel does not list them.
fn own_children() -> Vec<i32> {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return Vec::new() };
    let lists = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// Process id of a child as [`Pid`].
pub(super) fn pid_of(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

/// True if this process has any child, including adopted ones and zombies. Much cheaper than the process table.
fn has_children() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::All, options), Err(Errno::CHILD))
}

/// All processes in `/proc`; empty if it is not mounted.
fn process_table() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            entry.file_name().to_str()?.parse::<i32>().ok()?;
            parse_stat(&fs::read(entry.path().join("stat")).ok()?)
        })
        .collect()
}

/// Reads id, state and parent of a `/proc/PID/stat` line. The name in parentheses may itself contain parentheses.
fn parse_stat(stat: &[u8]) -> Option<Process> {
    let open = memchr::memchr(b'(', stat)?;
    let close = memchr::memrchr(b')', stat)?;
    let pid = std::str::from_utf8(&stat[..open]).ok()?.trim().parse().ok()?;
    let mut rest = std::str::from_utf8(stat.get(close + 1..)?).ok()?.split_ascii_whitespace();
    let zombie = matches!(rest.next()?, "Z" | "X");
    Some(Process { pid, parent: rest.next()?.parse().ok()?, zombie })
}

/// Processes below `root`, without the subtrees of `except`.
fn descendants(table: &[Process], root: i32, except: &BTreeSet<i32>) -> Vec<Process> {
    let mut children: BTreeMap<i32, Vec<Process>> = BTreeMap::new();
    for process in table {
        children.entry(process.parent).or_default().push(*process);
    }
    let mut found = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        // Entries are removed as they are visited, so that an id reused during the scan cannot make a cycle.
        for process in children.remove(&parent).unwrap_or_default() {
            if !except.contains(&process.pid) {
                parents.push(process.pid);
                found.push(process);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, parent: i32) -> Process {
        Process { pid, parent, zombie: false }
    }

    #[test]
    fn reads_a_name_with_parentheses_and_spaces() {
        assert_eq!(
            parse_stat(b"42 (a) S (b) R 7 42 42 0 -1\n"),
            Some(Process { pid: 42, parent: 7, zombie: false })
        );
        assert_eq!(parse_stat(b"43 (sh) Z 42 1\n"), Some(Process { pid: 43, parent: 42, zombie: true }));
        assert_eq!(parse_stat(b"44 (sh"), None);
    }

    #[test]
    fn finds_grandchildren_but_no_bystanders() {
        let table = [process(2, 1), process(3, 2), process(4, 1), process(5, 4), process(6, 9)];
        let pids = |found: Vec<Process>| {
            let mut pids: Vec<i32> = found.iter().map(|process| process.pid).collect();
            pids.sort_unstable();
            pids
        };
        assert_eq!(pids(descendants(&table, 1, &BTreeSet::new())), [2, 3, 4, 5]);
        assert_eq!(pids(descendants(&table, 1, &BTreeSet::from([4]))), [2, 3]);
    }

    #[test]
    fn survives_a_table_with_a_cycle() {
        let table = [process(2, 1), process(3, 2), process(2, 3)];
        assert_eq!(descendants(&table, 1, &BTreeSet::new()).len(), 3);
    }

    #[test]
    fn sees_this_process_in_the_table() {
        let own = getpid().as_raw_nonzero().get();
        assert!(process_table().iter().any(|process| process.pid == own && !process.zombie));
    }
}
