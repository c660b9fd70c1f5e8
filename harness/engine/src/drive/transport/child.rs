//! Peer as a child process, connected by pipes.
//!
//! Each peer leads a process group of its own. The harness is a subreaper, so that orphans of a peer become its
//! children and are identified by a marker variable in their environment. An ended peer is reaped only when the session
//! finishes: until then its process id and group id cannot be reused.

mod finish;
pub mod guardian;
mod pump;
pub mod shim;
#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal};
use rustix::thread::CpuSet;

use super::inbox::{Inbox, micros};
use super::outbox::Outbox;
use super::{Connection, Log, Pumped, Source, Waiting};
use crate::data::budget::Budget;
use crate::data::plan::{Chunking, KILL_GROUP, Limits};
use crate::data::transcript::{EventKind, Exit};
use crate::drive::process;

/// Size of one read: the default capacity of a pipe.
const READ_BYTES: usize = 64 << 10;

/// Specification of a peer's process.
#[derive(Debug, Clone)]
pub struct ChildSpec {
    /// Program and arguments. A program without a slash is looked up in the `PATH` of `env`; a relative path refers to
    /// `current_dir`.
    pub argv: Vec<OsString>,
    /// Whole environment, except for the added marker and `TMPDIR`, which is `temp_dir` unless set here.
    pub env: Vec<(OsString, OsString)>,
    /// Working directory; `None` for the harness's own.
    pub current_dir: Option<PathBuf>,
    /// Empty existing directory of this peer only. Files left in it are recorded.
    pub temp_dir: PathBuf,
    /// Name and unique value of an environment variable that marks the peer.
    pub marker: (String, String),
    /// Limits set by the operating system.
    pub limits: Limits,
    /// Harness binary that sets `limits` (see [`shim::SHIM_ARGUMENT`]); with `None` `sh` does it.
    pub shim: Option<PathBuf>,
    /// Processors of the peer; empty for those of the harness.
    pub cpus: Vec<usize>,
}

impl ChildSpec {
    /// Specification without environment, limits or placement.
    pub fn new(argv: Vec<OsString>, temp_dir: PathBuf, marker: (String, String)) -> Self {
        Self {
            argv,
            env: Vec::new(),
            current_dir: None,
            temp_dir,
            marker,
            limits: Limits::default(),
            shim: None,
            cpus: Vec::new(),
        }
    }

    /// Path of the program. The standard library uses `posix_spawn` only if it need not search.
    fn program(&self) -> io::Result<PathBuf> {
        let name = self.argv.first().filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the command is empty"))?;
        if name.as_bytes().contains(&b'/') {
            return Ok(PathBuf::from(name));
        }
        let path = self.env.iter().rev().find(|(key, _)| key == "PATH");
        let path = path.map_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"), |(_, value)| value.as_os_str());
        std::env::split_paths(path)
            .map(|folder| folder.join(name))
            .find(|path| is_executable(path))
            .ok_or_else(|| {
                io::Error::new(io::ErrorKind::NotFound, "there is no such program in the peer's PATH")
            })
    }

    fn command(&self) -> io::Result<Command> {
        let program = self.program()?;
        let mut command = if self.limits.is_empty() {
            let mut command = Command::new(&program);
            command.arg0(&self.argv[0]);
            command
        } else {
            // The shim would start even if the program is missing, so look first.
            let seen_from_here = match &self.current_dir {
                Some(folder) => folder.join(&program),
                None => program.clone(),
            };
            if !is_executable(&seen_from_here) {
                let kind = if seen_from_here.exists() {
                    io::ErrorKind::PermissionDenied
                } else {
                    io::ErrorKind::NotFound
                };
                return Err(kind.into());
            }
            shim::command(self.shim.as_deref(), &self.limits, program.as_os_str())
        };
        command.args(&self.argv[1..]).env_clear().env("TMPDIR", &self.temp_dir);
        command.envs(self.env.iter().map(|(key, value)| (key, value))).env(&self.marker.0, &self.marker.1);
        if let Some(folder) = &self.current_dir {
            command.current_dir(folder);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        Ok(command)
    }

    fn spawn(&self) -> io::Result<Child> {
        let mut command = self.command()?;
        if self.cpus.is_empty() {
            return command.spawn();
        }
        let mut cpus = CpuSet::new();
        for &cpu in &self.cpus {
            if cpu >= CpuSet::MAX_CPU {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    format!("there is no processor {cpu}"),
                ));
            }
            cpus.set(cpu);
        }
        // A child inherits the placement of its parent thread. A temporary thread needs no restoring.
        let starter = std::thread::Builder::new().name("starter".to_owned());
        std::thread::scope(|scope| {
            let placed = starter.spawn_scoped(scope, || {
                rustix::thread::sched_setaffinity(None, &cpus)?;
                command.spawn()
            })?;
            placed
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("the thread that starts the process panicked")))
        })
    }
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Reason why a peer could not be started.
#[derive(Debug)]
pub struct StartError {
    program: String,
    cause: io::Error,
}

impl StartError {
    /// Kind of the operating system's error: `NotFound`, `PermissionDenied`, …
    pub fn kind(&self) -> io::ErrorKind {
        self.cause.kind()
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.cause.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) {
            let what = "this system cannot execute it, and it has no #! line; put its interpreter before it";
            return write!(f, "cannot start {}: {what}", self.program);
        }
        write!(f, "cannot start {}: {}", self.program, self.cause)
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

/// End of the peer's process, when first noticed.
#[derive(Debug, Clone, Copy)]
struct ProcessEnd {
    exit: Exit,
    at: Instant,
}

/// Running child process. Dropping it ends the process as [`Connection::finish`] does, without a record.
#[derive(Debug)]
pub struct ChildConnection {
    child: Child,
    pid: Pid,
    /// `None` on kernels without pidfds; the end of the process is then polled.
    pidfd: Option<OwnedFd>,
    started: Instant,
    budget: Budget,
    marker: Vec<u8>,
    temp_dir: PathBuf,

    stdin: Option<OwnedFd>,
    stdin_broken_at: Option<Instant>,
    outbox: Outbox,
    close_requested: bool,
    pace_misses: u32,
    /// Time of the last dribbled chunk, while the peer has not read it.
    untaken: Option<Instant>,
    /// Set once it has read a dribbled chunk: it has started.
    has_read: bool,

    stdout: Option<OwnedFd>,
    stdout_closed_at: Option<Instant>,
    /// Standard output is left unread.
    is_deaf: bool,
    buffer: Vec<u8>,
    stderr: Option<OwnedFd>,
    inbox: Inbox,

    ended: Option<ProcessEnd>,
    exit_recorded: bool,
    over_budget: bool,
    /// Set if the harness ended it, so that its exit and leftovers mean nothing.
    killed: bool,
    /// Set if a step of the plan killed it, so that it could not clean up.
    kill_sent: bool,
    /// Descendants at the time of the kill: afterwards, those that left its group and cleared their environment cannot
    /// be found.
    family: Vec<process::Process>,
    sampled_at: Instant,
    /// True once its process id may be reused. Hold the lock while relying on the opposite.
    reaped: Arc<Mutex<bool>>,
    finished: bool,
}

impl ChildConnection {
    /// Starts a peer and records [`EventKind::Started`].
    ///
    /// # Errors
    /// Fails if the program is missing or not executable, or the operating system refuses.
    pub fn spawn(spec: &ChildSpec, budget: &Budget, log: &mut dyn Log) -> Result<Self, StartError> {
        static SUBREAPER: Once = Once::new();
        SUBREAPER.call_once(|| {
            // If refused, orphans go to init and are missed; nothing else changes.
            let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        });

        let started = Instant::now();
        let argv: Vec<String> = spec.argv.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
        let fail = |cause| StartError { program: argv.first().cloned().unwrap_or_default(), cause };
        let mut child = spec.spawn().map_err(fail)?;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let (Some(pid), (Some(stdin), Some(stdout), Some(stderr))) = (pid, streams) else {
            return Err(fail(io::Error::other("the child process has no pipes")));
        };
        let mut connection = Self {
            pidfd: rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok(),
            child,
            pid,
            started,
            budget: budget.clone(),
            marker: format!("{}={}", spec.marker.0, spec.marker.1).into_bytes(),
            temp_dir: spec.temp_dir.clone(),
            stdin: Some(stdin.into()),
            stdin_broken_at: None,
            outbox: Outbox::default(),
            close_requested: false,
            pace_misses: 0,
            untaken: None,
            has_read: false,
            stdout: Some(stdout.into()),
            stdout_closed_at: None,
            is_deaf: false,
            buffer: vec![0; READ_BYTES],
            stderr: Some(stderr.into()),
            inbox: Inbox::new(budget),
            ended: None,
            exit_recorded: false,
            over_budget: false,
            killed: false,
            kill_sent: false,
            family: Vec::new(),
            sampled_at: started,
            reaped: Arc::default(),
            finished: false,
        };
        for pipe in [&connection.stdin, &connection.stdout, &connection.stderr].into_iter().flatten() {
            // From here on, dropping `connection` ends the child if something fails.
            rustix::io::ioctl_fionbio(pipe, true).map_err(|error| fail(error.into()))?;
        }
        // Record the start at time 0: on a busy machine the peer may have done much since then.
        connection.inbox.record(0, EventKind::Started { argv }, log);
        Ok(connection)
    }

    /// Takes standard input, output and error out of the connection, for a caller that transfers bytes faster than a
    /// recorder permits. The connection still ends the peer and its descendants, but no longer reads or writes. `None`
    /// if one of them is already closed.
    pub(crate) fn lend_pipes(&mut self) -> Option<[OwnedFd; 3]> {
        Some([self.stdin.take()?, self.stdout.take()?, self.stderr.take()?])
    }

    /// Drains the peer's output and notices its end, without blocking.
    pub(super) fn look(&mut self, log: &mut dyn Log) {
        self.look_around(log);
        self.inbox.record_held(log);
    }

    /// Bytes of standard error kept so far.
    pub(super) fn stderr_so_far(&self) -> &[u8] {
        self.inbox.stderr_so_far()
    }

    /// True if the end of the peer was recorded.
    pub(super) fn has_ended(&self) -> bool {
        self.exit_recorded || self.ended.is_some() && self.killed
    }

    /// True if the peer exceeded a budget and was killed.
    pub(super) fn is_over_budget(&self) -> bool {
        self.over_budget
    }

    /// Process ids of the peer and its living descendants, including orphans.
    pub(crate) fn family_pids(&self) -> Vec<i32> {
        let root = self.raw_pid();
        let family = process::descendants(root).into_iter().chain(self.orphans());
        let mut pids: Vec<i32> = family.map(|process| process.pid).chain([root]).collect();
        pids.sort_unstable();
        pids.dedup();
        pids
    }

    /// True if all processes of the peer sleep, and none may wait for a process beside them. `port` is that of a server.
    pub(super) fn sleeps_alone(&self, port: Option<u16>) -> bool {
        let is_alone = |pid: i32| process::sleeps(pid) && !process::may_wait_for_others(pid, port);
        self.family_pids().into_iter().all(is_alone)
    }

    /// Handle that ends the processes from another thread, while this one waits for the peer.
    pub(crate) fn killer(&self) -> Killer {
        Killer { pid: self.pid, reaped: Arc::clone(&self.reaped), marker: self.marker.clone() }
    }

    fn raw_pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    fn at_us(&self, at: Instant) -> u64 {
        micros(at.saturating_duration_since(self.started))
    }

    /// Records an event with the current time, after all output read so far.
    fn note(&mut self, kind: EventKind, log: &mut dyn Log) {
        self.inbox.record(self.now_us(), kind, log);
    }

    /// Kills the process group. The peer is not reaped yet, so its group id cannot be reused.
    fn kill_group(&mut self) {
        if self.ended.is_none() {
            self.killed = true;
            self.family = process::descendants(self.raw_pid());
        }
        let _ = rustix::process::kill_process_group(self.pid, Signal::KILL);
    }
}

/// Handle that ends a hanging peer. It may outlive the connection: once the peer is reaped, it kills nothing.
#[derive(Debug, Clone)]
pub struct Killer {
    pid: Pid,
    reaped: Arc<Mutex<bool>>,
    marker: Vec<u8>,
}

impl Killer {
    /// Kills the peer, its group, its descendants and its orphans.
    pub fn kill(&self) {
        let is_reaped = self.reaped.lock().unwrap_or_else(PoisonError::into_inner);
        if *is_reaped {
            return;
        }
        let mut family = process::descendants(self.pid.as_raw_nonzero().get());
        let _ = rustix::process::kill_process_group(self.pid, Signal::KILL);
        let own = rustix::process::getpid().as_raw_nonzero().get();
        for orphan in process::children(own).into_iter().filter(|pid| process::carries(*pid, &self.marker)) {
            family.extend(process::descendants(orphan));
            family.extend(process::look_at(orphan));
        }
        family.iter().for_each(finish::kill);
    }
}

fn signal_by_name(name: &str) -> Option<Signal> {
    Some(match name {
        "TERM" => Signal::TERM,
        "INT" => Signal::INT,
        "KILL" | KILL_GROUP => Signal::KILL,
        "HUP" => Signal::HUP,
        "QUIT" => Signal::QUIT,
        "STOP" => Signal::STOP,
        "CONT" => Signal::CONT,
        _ => return None,
    })
}

impl Connection for ChildConnection {
    fn queue(&mut self, bytes: Vec<u8>, chunking: Chunking) {
        if self.stdin.is_some() && !self.close_requested {
            self.pace_misses = 0;
            self.outbox.push(bytes, chunking);
        }
    }

    fn write_unread(&mut self, idle: Duration, log: &mut dyn Log) {
        self.write_deaf(idle, log);
        self.inbox.record_held(log);
    }

    fn close_stdin(&mut self) {
        self.close_requested = true;
    }

    fn hang_up(&mut self) {
        self.close_requested = true;
        self.stdout = None;
    }

    fn pump_beside(&mut self, waiting: Waiting<'_>, log: &mut dyn Log) -> Option<Pumped> {
        let pumped = self.pump_until(waiting, log);
        self.inbox.record_held(log);
        pumped
    }

    fn sources(&self) -> Vec<Source<'_>> {
        self.own_sources().into_iter().flatten().collect()
    }

    fn attend(&mut self, log: &mut dyn Log) {
        if !self.over_budget {
            self.write(log);
            self.look(log);
        }
    }

    fn signal(&mut self, name: &str, log: &mut dyn Log) {
        let Some(signal) = signal_by_name(name) else {
            return;
        };
        self.note(EventKind::Signalled { signal: name.to_owned() }, log);
        // It is reaped only in `finish`, so the id cannot be reused.
        if name == KILL_GROUP {
            let _ = rustix::process::kill_process_group(self.pid, signal);
            return;
        }
        if signal == Signal::KILL && self.ended.is_none() {
            self.kill_sent = true;
            // Stop it while its descendants are listed.
            let _ = rustix::process::kill_process(self.pid, Signal::STOP);
            self.family = process::descendants(self.raw_pid());
        }
        let _ = rustix::process::kill_process(self.pid, signal);
    }

    fn memory_hwm_bytes(&mut self) -> Option<u64> {
        self.tree_hwm_bytes()
    }

    fn cpu_time(&self) -> Option<Duration> {
        self.tree_cpu_time()
    }

    fn is_asleep(&self) -> bool {
        self.sleeps_alone(None)
    }

    fn pid(&self) -> Option<i32> {
        Some(self.raw_pid())
    }

    fn exit(&self) -> Option<Exit> {
        self.ended.filter(|_| self.exit_recorded).map(|ended| ended.exit)
    }

    fn is_over(&self) -> bool {
        self.has_ended() && self.orphans().is_empty()
    }

    fn now_us(&self) -> u64 {
        micros(self.started.elapsed())
    }

    fn finish(&mut self, log: &mut dyn Log) {
        self.end_session(log);
    }

    fn into_kept(self: Box<Self>) -> Option<Box<dyn Connection + Send>> {
        Some(self)
    }
}

/// Recorder that discards the events of a dropped connection.
struct DiscardedEvents;

impl Log for DiscardedEvents {
    fn record(&mut self, _at_us: u64, _kind: EventKind) {}
}

impl Drop for ChildConnection {
    fn drop(&mut self) {
        self.end_session(&mut DiscardedEvents);
    }
}
