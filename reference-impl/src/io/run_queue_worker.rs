//! The shell of a worker: programs, signals and time.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use std::{env, fs, io, thread};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};
use signal_hook::consts::{SIGCHLD, SIGTERM};
use signal_hook::iterator::Signals;

use super::StartError;
use crate::machine::{Action, ChildExit, Event, Machine, Millis, SpawnFailure};

/// Exit status after an I/O error or a fault of the signal handlers.
const STATUS_STREAMS: i32 = 70;

/// Standard streams of the programs. The default method is correct; mutants override it.
pub(super) trait Streams {
    /// Sets the streams of a program before its start.
    fn give(&self, command: &mut Command) {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    }
}

/// The correct streams: all are `/dev/null`.
pub(super) struct Nothing;

impl Streams for Nothing {}

/// A faulty worker whose programs inherit its standard input.
pub(super) struct OwnStdin;

impl Streams for OwnStdin {
    fn give(&self, command: &mut Command) {
        command.stdin(Stdio::inherit()).stdout(Stdio::null()).stderr(Stdio::null());
    }
}

/// A faulty worker that pipes a program's output and never reads it.
pub(super) struct Unread;

impl Streams for Unread {
    fn give(&self, command: &mut Command) {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    }
}

/// Program to run for a job.
pub(super) enum Program {
    /// A runner, called with the path of the job.
    Runner(PathBuf),
    /// This program as a runner of run_log: its arguments, the folder of its logs, and the toolhost.
    Policy { words: Vec<OsString>, out: PathBuf, peer: PathBuf },
}

impl Program {
    /// The policy driver of the environment. `own` holds the arguments that make this program run a job with it.
    ///
    /// # Errors
    /// One sentence that says that this program does not know its own path.
    pub(super) fn policy(own: &[&str], queue: &Path, peer: Option<&Path>) -> Result<Self, StartError> {
        let program = env::current_exe().map_err(StartError::OwnPath)?;
        let words = own.iter().map(OsString::from);
        let words = [program.into_os_string()].into_iter().chain(words).collect();
        // A job without tools needs no toolhost.
        let peer = peer.unwrap_or(Path::new("/nonexistent")).to_owned();
        Ok(Self::Policy { words, out: queue.join("out"), peer })
    }

    fn start(&self, job: &Path, streams: &dyn Streams) -> io::Result<Child> {
        let mut command = match self {
            Self::Runner(program) => {
                let mut command = Command::new(program);
                command.arg(job);
                streams.give(&mut command);
                command
            }
            Self::Policy { words, out, peer } => {
                fs::create_dir_all(out)?;
                let log = format!("run-{:016x}.ndjson", u64::from_le_bytes(random()));
                let mut command = Command::new(words.first().map_or(OsStr::new(""), OsString::as_os_str));
                command.args(words.get(1..).unwrap_or_default()).arg(out.join(log)).arg(peer);
                streams.give(&mut command);
                // The path need not be Unicode, but arguments must be.
                command.stdin(File::open(job)?);
                command
            }
        };
        command.process_group(0).spawn()
    }

    /// Kills a program. A runner of this program ends its driver first, which has its own process group.
    fn kill(&self, child: &Child) {
        let Some(pid) = pid(child) else { return };
        let _ = match self {
            Self::Runner(_) => kill_process_group(pid, Signal::KILL),
            Self::Policy { .. } => kill_process(pid, Signal::TERM),
        };
    }
}

fn random() -> [u8; 8] {
    super::toolhost::random_seed()[..8].try_into().unwrap_or_default()
}

fn pid(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

struct Shell<'a> {
    machine: Box<dyn Machine + Send>,
    queue: &'a Path,
    program: &'a Program,
    streams: &'a dyn Streams,
    started: Instant,
    wake_at: Option<Millis>,
    child: Option<Child>,
}

/// Runs a worker until it asks to end, and returns its exit status, or 70 if signals cannot be caught. `queue` is an
/// absolute path.
pub(super) fn work(
    machine: Box<dyn Machine + Send>,
    queue: &Path,
    program: &Program,
    streams: &dyn Streams,
) -> i32 {
    let asked = Arc::new(AtomicBool::new(false));
    let registered = signal_hook::flag::register(SIGTERM, Arc::clone(&asked));
    let (Ok(_), Ok(mut signals)) = (registered, Signals::new([SIGTERM, SIGCHLD])) else {
        return STATUS_STREAMS;
    };
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for signal in signals.forever() {
            if sender.send(signal).is_err() {
                return;
            }
        }
    });
    let started = Instant::now();
    let mut shell = Shell { machine, queue, program, streams, started, wake_at: None, child: None };
    let mut actions = Vec::new();
    shell.machine.begin(0, &mut actions);
    let mut status = shell.act(actions);
    while status.is_none() {
        let left = shell.wake_at.map(|at| Duration::from_millis(at.saturating_sub(shell.now())));
        let came = match left {
            Some(left) => receiver.recv_timeout(left),
            None => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        status = match came {
            Ok(SIGTERM) => shell.handle(Event::Terminate),
            Ok(_) => shell.reap(),
            // The signal may still be on its way through the thread above; nothing new must start after it.
            Err(RecvTimeoutError::Timeout) if asked.swap(false, Ordering::SeqCst) => {
                shell.handle(Event::Terminate)
            }
            Err(RecvTimeoutError::Timeout) => {
                shell.wake_at = None;
                shell.handle(Event::Wake)
            }
            Err(RecvTimeoutError::Disconnected) => Some(STATUS_STREAMS),
        };
    }
    status.unwrap_or(STATUS_STREAMS)
}

impl Shell<'_> {
    fn now(&self) -> Millis {
        Millis::try_from(self.started.elapsed().as_millis()).unwrap_or(Millis::MAX)
    }

    fn handle(&mut self, event: Event<'_>) -> Option<i32> {
        let mut actions = Vec::new();
        let now = self.now();
        self.machine.handle(event, now, &mut actions);
        self.act(actions)
    }

    fn act(&mut self, actions: Vec<Action>) -> Option<i32> {
        for action in actions {
            match action {
                Action::Job(place) => {
                    match self.program.start(&self.queue.join(OsStr::from_bytes(&place)), self.streams) {
                        Ok(child) => self.child = Some(child),
                        Err(error) => {
                            let failure = SpawnFailure::Other(error.to_string());
                            return self.handle(Event::ChildSpawnFailed(failure));
                        }
                    }
                }
                Action::Kill => self.child.iter().for_each(|child| self.program.kill(child)),
                Action::WakeAt(at) => self.wake_at = Some(at),
                Action::Stderr(text) => super::complain(String::from_utf8_lossy(&text).trim_end()),
                Action::Exit(status) => return Some(status),
                _ => {}
            }
        }
        None
    }

    /// Kills the remaining process group of an exited program and reports the exit to the machine.
    fn reap(&mut self) -> Option<i32> {
        let pid = self.child.as_ref().and_then(pid)?;
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if let Ok(None) = waitid(WaitId::Pid(pid), options) {
            return None;
        }
        // The child is not reaped yet, so its id still names its own group.
        let _ = kill_process_group(pid, Signal::KILL);
        let exit = match self.child.take()?.wait() {
            Ok(status) => match status.code() {
                Some(code) => ChildExit::Code(code),
                None => ChildExit::Signal(status.signal().unwrap_or_default()),
            },
            Err(_) => ChildExit::Code(STATUS_STREAMS),
        };
        self.handle(Event::ChildExit(exit))
    }
}
