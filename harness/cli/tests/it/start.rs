//! The tested binary, and starting of processes: parallel engine tests write scripts that no other process may inherit
//! while open.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::sync::LazyLock;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use assert_cmd::assert::Assert;
use peerproof_engine::drive::fixture::{ActorExe, spawn_guard};
use rustix::process::{Pid, Signal, kill_process};

/// Path of the binary: from `PEERPROOF_BINARY`, relative to the workspace, or that of this build.
pub(crate) fn binary() -> &'static str {
    static BINARY: LazyLock<String> = LazyLock::new(|| {
        let Ok(given) = std::env::var("PEERPROOF_BINARY") else {
            return env!("CARGO_BIN_EXE_peerproof").to_owned();
        };
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(&given);
        let path = path.canonicalize().unwrap_or_else(|error| panic!("PEERPROOF_BINARY is {given}: {error}"));
        path.into_os_string().into_string().unwrap()
    });
    &BINARY
}

/// The binary as a player of actors.
pub(crate) fn actor_exe() -> ActorExe {
    ActorExe::new(binary())
}

/// The binary, started in `folder` with two minutes to end.
pub(crate) fn peerproof(folder: &Path) -> Command {
    let mut command = Command::new(binary());
    command.current_dir(folder);
    command
}

/// Starts a process.
pub(crate) fn start(command: &mut std::process::Command) -> Child {
    let _guard = spawn_guard();
    command.spawn().unwrap()
}

/// Process that runs to its end, with pipes for its standard streams. It is killed after a time limit, which no
/// expected exit status matches.
pub(crate) struct Command {
    inner: std::process::Command,
    stdin: Vec<u8>,
    time_max: Duration,
}

impl Command {
    /// Program with a limit of two minutes and no input.
    pub(crate) fn new(program: impl AsRef<OsStr>) -> Self {
        let inner = std::process::Command::new(program);
        Self { inner, stdin: Vec::new(), time_max: Duration::from_secs(120) }
    }

    /// Adds an argument.
    pub(crate) fn arg(&mut self, argument: impl AsRef<OsStr>) -> &mut Self {
        self.inner.arg(argument);
        self
    }

    /// Adds arguments.
    pub(crate) fn args(&mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> &mut Self {
        self.inner.args(arguments);
        self
    }

    /// Sets a variable.
    pub(crate) fn env(&mut self, name: &str, value: impl AsRef<OsStr>) -> &mut Self {
        self.inner.env(name, value);
        self
    }

    /// Removes a variable.
    pub(crate) fn env_remove(&mut self, name: &str) -> &mut Self {
        self.inner.env_remove(name);
        self
    }

    /// Sets the working folder.
    pub(crate) fn current_dir(&mut self, folder: impl AsRef<Path>) -> &mut Self {
        self.inner.current_dir(folder);
        self
    }

    /// Sets the time limit.
    pub(crate) fn timeout(&mut self, time_max: Duration) -> &mut Self {
        self.time_max = time_max;
        self
    }

    /// Sets the input.
    pub(crate) fn write_stdin(&mut self, bytes: impl Into<Vec<u8>>) -> &mut Self {
        self.stdin = bytes.into();
        self
    }

    /// Runs it; returns its exit and whole output.
    pub(crate) fn output(&mut self) -> Output {
        use std::io::Write as _;

        let command = self.inner.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = start(command);
        let (pid, mut stdin) = (Pid::from_child(&child), child.stdin.take().unwrap());
        let (ended, end) = channel::<()>();
        let time_max = self.time_max;
        thread::scope(|scope| {
            // It may end before it has read everything.
            scope.spawn(|| drop(stdin.write_all(&self.stdin).map(|()| stdin)));
            scope.spawn(move || {
                if end.recv_timeout(time_max) == Err(RecvTimeoutError::Timeout) {
                    let _ = kill_process(pid, Signal::KILL);
                }
            });
            let output = child.wait_with_output().unwrap();
            drop(ended);
            output
        })
    }

    /// Runs it for assertions.
    pub(crate) fn assert(&mut self) -> Assert {
        Assert::new(self.output()).append_context("command", format!("{:?}", self.inner))
    }
}
