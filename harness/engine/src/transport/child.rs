//! A peer as a child process, spoken to over pipes.
//!
//! Each peer leads a process group of its own. The harness is a subreaper, so that orphans of a peer become its
//! children and are found by the marker variable in their environment. A peer that ended is not reaped before the
//! session is finished: its process id, and with it the group's, can so far belong to nobody else.

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
use crate::budget::Budget;
use crate::plan::{Chunking, KILL_GROUP, Limits};
use crate::process;
use crate::transcript::{Exit, Kind};

/// Size of one read; a pipe holds as much by default.
const READ_BYTES: usize = 64 << 10;

/// How to start a peer.
#[derive(Debug, Clone)]
pub struct ChildSpec {
    /// Program and arguments. A program without a slash is looked for in the `PATH` of `env`; a relative path is
    /// relative to `current_dir`.
    pub argv: Vec<OsString>,
    /// The whole environment, but for the marker, which is added, and `TMPDIR`: `temp_dir` where nothing is said of it here.
    pub env: Vec<(OsString, OsString)>,
    /// Working directory; the harness's own by default.
    pub current_dir: Option<PathBuf>,
    /// A directory that no other peer uses, exists and is empty. What a peer leaves in it is recorded.
    pub temp_dir: PathBuf,
    /// Name and value of an environment variable that no other peer has with this value.
    pub marker: (String, String),
    /// What the operating system caps.
    pub limits: Limits,
    /// Our own binary, for setting `limits` (see [`shim::SHIM_ARGUMENT`]); `sh` does it where this is `None`.
    pub shim: Option<PathBuf>,
    /// Processors that the peer may run on; empty: those of the harness.
    pub cpus: Vec<usize>,
}

impl ChildSpec {
    /// A peer without environment, limits or placement.
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

    /// The path of the program: `posix_spawn` is used only if no search is left to the standard library.
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
            // The shim starts even where the program does not: look first.
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
        // A child inherits the placement of the thread that starts it. A thread that ends then needs no placement back.
        let starter = std::thread::Builder::new().name("starter".to_owned());
        std::thread::scope(|scope| {
            let placed = starter.spawn_scoped(scope, || {
                rustix::thread::sched_setaffinity(None, &cpus)?;
                command.spawn()
            })?;
            placed.join().unwrap_or_else(|_| Err(io::Error::other("the thread that starts it panicked")))
        })
    }
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Why a peer could not be started.
#[derive(Debug)]
pub struct StartError {
    program: String,
    cause: io::Error,
}

impl StartError {
    /// What the operating system said, as a kind: `NotFound`, `PermissionDenied`, …
    pub fn kind(&self) -> io::ErrorKind {
        self.cause.kind()
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.cause.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) {
            let what = "it is no program of this system and has no #! line; put its interpreter before it";
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

/// The end of the peer's process, as it was first seen.
#[derive(Debug, Clone, Copy)]
struct Ended {
    exit: Exit,
    at: Instant,
}

/// A running child process. Dropping it ends it as [`Connection::finish`] does, without a record.
#[derive(Debug)]
pub struct ChildConnection {
    child: Child,
    pid: Pid,
    /// `None` where the kernel has no pidfds; the end of the process is then found by asking.
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
    /// When the last chunk of what is dribbled was written, while the peer has not taken it.
    untaken: Option<Instant>,
    /// It has taken something that was dribbled: it no longer starts.
    has_read: bool,

    stdout: Option<OwnedFd>,
    stdout_closed_at: Option<Instant>,
    buffer: Vec<u8>,
    stderr: Option<OwnedFd>,
    inbox: Inbox,

    ended: Option<Ended>,
    exit_recorded: bool,
    over_budget: bool,
    /// The harness ended it, so that neither its exit nor what it left says anything about it.
    killed: bool,
    /// A step of the plan killed it: it could not clean up.
    kill_sent: bool,
    /// Its descendants when it was killed: dead, it cannot lead to those that left its group and cleared their
    /// environment.
    family: Vec<process::Process>,
    sampled_at: Instant,
    /// Whether its process id may be somebody else's; held while somebody relies on that it is not.
    reaped: Arc<Mutex<bool>>,
    finished: bool,
}

impl ChildConnection {
    /// Starts a peer and records [`Kind::Started`].
    ///
    /// # Errors
    /// The program is missing, not executable, or the operating system refuses to start it.
    pub fn spawn(spec: &ChildSpec, budget: &Budget, log: &mut dyn Log) -> Result<Self, StartError> {
        static SUBREAPER: Once = Once::new();
        SUBREAPER.call_once(|| {
            // Where this is refused, orphans go to init: they are then missed, nothing else.
            let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        });

        let started = Instant::now();
        let argv: Vec<String> = spec.argv.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
        let fail = |cause| StartError { program: argv.first().cloned().unwrap_or_default(), cause };
        let mut child = spec.spawn().map_err(fail)?;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let (Some(pid), (Some(stdin), Some(stdout), Some(stderr))) = (pid, streams) else {
            return Err(fail(io::Error::other("the child came without pipes")));
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
            // From here on `connection` ends the child if something fails.
            rustix::io::ioctl_fionbio(pipe, true).map_err(|error| fail(error.into()))?;
        }
        // On a busy machine it may have done much since then.
        connection.inbox.record(0, Kind::Started { argv }, log);
        Ok(connection)
    }

    /// Takes standard input, output and error out of the connection, for whoever moves bytes faster than a record
    /// allows. The connection stays the guard that ends the peer and its family; it writes and reads no more. `None`
    /// where one of them is closed already.
    pub fn lend_pipes(&mut self) -> Option<[OwnedFd; 3]> {
        Some([self.stdin.take()?, self.stdout.take()?, self.stderr.take()?])
    }

    /// Drains what the peer says and takes note of its end, without waiting.
    pub(super) fn look(&mut self, log: &mut dyn Log) {
        self.look_around(log);
        self.inbox.record_held(log);
    }

    /// What is kept of its standard error so far.
    pub(super) fn stderr_so_far(&self) -> &[u8] {
        self.inbox.stderr_so_far()
    }

    /// Whether the end of the peer is on record.
    pub(super) fn has_ended(&self) -> bool {
        self.exit_recorded || self.ended.is_some() && self.killed
    }

    /// Whether a budget was exceeded and the peer killed.
    pub(super) fn is_over_budget(&self) -> bool {
        self.over_budget
    }

    /// Process ids of the peer and its living descendants, orphaned ones included.
    pub fn family_pids(&self) -> Vec<i32> {
        let root = self.raw_pid();
        let family = process::descendants(root).into_iter().chain(self.orphans());
        let mut pids: Vec<i32> = family.map(|process| process.pid).chain([root]).collect();
        pids.sort_unstable();
        pids.dedup();
        pids
    }

    /// Ends the family from another thread, while this one waits for the peer.
    pub fn killer(&self) -> Killer {
        Killer { pid: self.pid, reaped: Arc::clone(&self.reaped), marker: self.marker.clone() }
    }

    fn raw_pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    fn at_us(&self, at: Instant) -> u64 {
        micros(at.saturating_duration_since(self.started))
    }

    /// Records an event of this moment, behind everything that was read so far.
    fn note(&mut self, kind: Kind, log: &mut dyn Log) {
        self.inbox.record(self.now_us(), kind, log);
    }

    /// Kills the whole process group. The peer is not reaped yet, so the group cannot be somebody else's.
    fn kill_group(&mut self) {
        if self.ended.is_none() {
            self.killed = true;
            self.family = process::descendants(self.raw_pid());
        }
        let _ = rustix::process::kill_process_group(self.pid, Signal::KILL);
    }
}

/// Ends a peer that hangs. It may outlive the connection: once the peer was reaped it kills nothing.
#[derive(Debug, Clone)]
pub struct Killer {
    pid: Pid,
    reaped: Arc<Mutex<bool>>,
    marker: Vec<u8>,
}

impl Killer {
    /// Kills the peer, its group, its descendants and those that left it.
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
        self.note(Kind::Signalled { signal: name.to_owned() }, log);
        // Not reaped before `finish`: the id cannot be somebody else's.
        if name == KILL_GROUP {
            let _ = rustix::process::kill_process_group(self.pid, signal);
            return;
        }
        if signal == Signal::KILL && self.ended.is_none() {
            self.kill_sent = true;
            // It does nothing more while its family is looked for.
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

/// Takes what happens while a dropped connection ends.
struct Unrecorded;

impl Log for Unrecorded {
    fn record(&mut self, _at_us: u64, _kind: Kind) {}
}

impl Drop for ChildConnection {
    fn drop(&mut self) {
        self.end_session(&mut Unrecorded);
    }
}
