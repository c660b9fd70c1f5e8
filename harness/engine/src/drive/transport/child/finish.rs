//! End of a session: no process of the peer outlives it.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions};

use super::ChildConnection;
use super::pump::DRAIN_GRACE;
use crate::data::transcript::EventKind;
use crate::drive::process::{self, Process};
use crate::drive::transport::{Connection, Log, Until, Waiting};

/// Time for descendants to end after the peer's own end, before they count as leaked.
const LEAK_GRACE: Duration = Duration::from_millis(100);
/// Time for a killed process to end.
const KILL_GRACE: Duration = Duration::from_secs(2);
/// Maximum number of rounds of killing, because a process may fork between listing and killing.
const KILL_ROUNDS_MAX: usize = 16;
/// Maximum number of leaks, and of leftover files, that are recorded.
const RECORDED_MAX: usize = 16;
/// Maximum number of directory entries inspected below the temporary directory.
const ENTRIES_MAX: usize = 4_096;

impl ChildConnection {
    pub(super) fn end_session(&mut self, log: &mut dyn Log) {
        if std::mem::replace(&mut self.finished, true) {
            return;
        }
        let now = Instant::now();
        self.look_for_exit(now);
        self.read_stderr();
        self.read_stdout(now, log);
        if self.ended.is_some() && !self.exit_recorded {
            self.pump_until(Waiting::of(Until::Exited, DRAIN_GRACE), log);
        }
        let by_itself = self.exit_recorded && !self.killed && !self.kill_sent;
        if self.ended.is_none() {
            if !self.killed {
                self.note(EventKind::Killed, log);
            }
            self.kill_group();
            self.wait_for_end();
        }
        let family = std::mem::take(&mut self.family);
        self.end_family(by_itself, family, log);
        self.inbox.record_held(log);
        self.read_stderr();
        self.inbox.record_stderr(self.now_us(), log);
        if by_itself {
            for path in files_left(&self.temp_dir) {
                self.note(EventKind::LeftFile { path }, log);
            }
        }
        if self.ended.is_some() {
            // The process is dead already and only reaped here. From now on its id may be reused.
            let mut is_reaped = self.reaped.lock().unwrap_or_else(PoisonError::into_inner);
            *is_reaped = true;
            let _ = self.child.wait();
        }
        (self.stdin, self.stdout, self.stderr) = (None, None, None);
    }

    /// Waits until the killed peer is dead; gives up if the kernel cannot end it.
    fn wait_for_end(&mut self) {
        let end = Instant::now() + KILL_GRACE;
        loop {
            let now = Instant::now();
            self.look_for_exit(now);
            if self.ended.is_some() || now >= end {
                return;
            }
            match &self.pidfd {
                Some(pidfd) => wait_for_any(std::slice::from_ref(pidfd), end - now),
                None => wait_for_any(&[], Duration::from_millis(1)),
            }
        }
    }

    /// Ends the descendants of the dead peer and records those that it left behind.
    fn end_family(&mut self, by_itself: bool, mut known: Vec<Process>, log: &mut dyn Log) {
        let mut leaks_recorded = 0;
        for round in 0..KILL_ROUNDS_MAX {
            let mut living = self.living(&known);
            if round == 0 && by_itself && !living.is_empty() {
                wait_for_all(&living, LEAK_GRACE);
                living = self.living(&living);
            }
            if living.is_empty() {
                return;
            }
            for process in living.iter().filter(|process| by_itself && !known.contains(process)) {
                if leaks_recorded < RECORDED_MAX {
                    leaks_recorded += 1;
                    let command = process.command.clone();
                    self.note(EventKind::LeakedProcess { pid: process.pid, command }, log);
                }
            }
            let _ = rustix::process::kill_process_group(self.pid, Signal::KILL);
            end_all(&living);
            for process in living {
                if let Some(pid) = Pid::from_raw(process.pid) {
                    // Its ancestors up to the peer are dead, so the harness has adopted it and must reap it.
                    let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
                }
                if !known.contains(&process) {
                    known.push(process);
                }
            }
        }
    }

    fn living(&self, known: &[Process]) -> Vec<Process> {
        let mut living: Vec<Process> =
            known.iter().filter(|process| process.still_lives()).cloned().collect();
        for orphan in self.orphans() {
            if !living.iter().any(|process| process.pid == orphan.pid) {
                living.push(orphan);
            }
        }
        living
    }

    /// Living orphans of the peer, now children of the harness, with their descendants.
    pub(super) fn orphans(&self) -> Vec<Process> {
        let own = own_pid();
        let mut ourselves = None;
        let mut found: Vec<Process> = Vec::new();
        // A list read while another child ends may be incomplete, so read twice.
        let mut pids = process::children(own);
        pids.extend(process::children(own));
        pids.sort_unstable();
        pids.dedup();
        for pid in pids.into_iter().filter(|&pid| pid != self.raw_pid()) {
            let Some(process) = process::look_at(pid) else { continue };
            if process.is_dead() {
                // Our own children stay in our session, in our group or as leader of their own. Another dead child, or
                // one in this peer's group, was adopted, and must be reaped here.
                let ourselves = ourselves.get_or_insert_with(|| process::look_at(own)).as_ref();
                let is_adopted = process.group == self.raw_pid()
                    || ourselves.is_some_and(|ourselves| {
                        ourselves.session != process.session
                            || (ourselves.group != process.group && process.pid != process.group)
                    });
                if let Some(id) = Pid::from_raw(pid).filter(|_| is_adopted) {
                    let _ = rustix::process::waitpid(Some(id), WaitOptions::NOHANG);
                }
            } else if process.group == self.raw_pid() || process::carries(pid, &self.marker) {
                found.extend(process::descendants(pid));
                found.push(process);
            }
        }
        found
    }
}

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// Handle for exactly this process, if it is alive.
fn handle(process: &Process) -> Option<OwnedFd> {
    let pidfd = rustix::process::pidfd_open(Pid::from_raw(process.pid)?, PidfdFlags::empty()).ok()?;
    // Only from here on the id cannot be reused.
    process.still_lives().then_some(pidfd)
}

/// Kills exactly these processes and waits for their end.
pub(super) fn end_all(processes: &[Process]) {
    processes.iter().for_each(kill);
    wait_for_all(processes, KILL_GRACE);
}

pub(super) fn kill(process: &Process) {
    if let Some(pidfd) = handle(process) {
        let _ = rustix::process::pidfd_send_signal(pidfd, Signal::KILL);
    } else if let Some(pid) = Pid::from_raw(process.pid).filter(|_| process.still_lives()) {
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
}

/// Waits until all have ended or `patience` is over.
fn wait_for_all(processes: &[Process], patience: Duration) {
    let end = Instant::now() + patience;
    for process in processes {
        let left = end.saturating_duration_since(Instant::now());
        if let Some(pidfd) = handle(process) {
            wait_for_any(std::slice::from_ref(&pidfd), left);
        } else if process.still_lives() {
            // This kernel has no pidfds: just let the time pass.
            wait_for_any(&[], left);
        }
    }
}

fn wait_for_any(handles: &[OwnedFd], patience: Duration) {
    let mut set: Vec<PollFd<'_>> =
        handles.iter().map(|fd| PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN)).collect();
    let timeout = Timespec::try_from(patience).ok();
    // After a signal the caller looks again.
    let _ = rustix::event::poll(&mut set, timeout.as_ref());
}

/// Leftover files and empty directories below `root`: sorted relative paths, within a limit.
fn files_left(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![root.to_path_buf()];
    let mut looked_at = 0;
    while let Some(folder) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        let mut is_empty = true;
        for entry in entries.flatten() {
            is_empty = false;
            looked_at += 1;
            if looked_at > ENTRIES_MAX {
                break;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(entry.path());
            } else {
                found.push(entry.path());
            }
        }
        if is_empty && folder != root {
            found.push(folder);
        }
    }
    found.sort();
    found.truncate(RECORDED_MAX);
    found
        .iter()
        .filter_map(|path| Some(path.strip_prefix(root).ok()?.to_string_lossy().into_owned()))
        .collect()
}
