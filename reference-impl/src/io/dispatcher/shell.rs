//! The shell of the dispatcher and of the selector: one poll loop over non-blocking pipes, so that writing never blocks
//! reading.
//!
//! It knows only how to start, feed, drain and kill a child. The [`Machine`] decides what to do, and when.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio, read};
use rustix::process::{WaitId, WaitIdOptions, getpid, set_child_subreaper, waitid};
use signal_hook::consts::SIGCHLD;

use super::handling::{Careful, Handling};
use super::tree::{Bystanders, pid_of};
use crate::io::payload_file::PayloadFile;
use crate::machine::{Action, ChildExit, DriveOrder, Event, FetchError, Machine, Millis, SpawnFailure};

/// Bytes per read.
const READ_BYTES: usize = 64 * 1024;

/// Reads of the child's last output after its exit. They take more than a pipe holds, and end even if a descendant
/// goes on writing.
const LAST_READS_MAX: usize = 32;

/// Settings for the start of policy drivers.
pub(in crate::io) struct Launcher {
    /// Program and first arguments of the shim that sets resource limits. The limits, the driver's program, its
    /// `argv[0]` and its arguments follow.
    pub(in crate::io) shim: Vec<String>,
    /// Complete environment of a driver.
    pub(in crate::io) variables: Vec<(String, String)>,
    /// Folder for payloads.
    pub(in crate::io) temp_dir: String,
    /// Behaviour towards drivers.
    pub(in crate::io) handling: Box<dyn Handling>,
    /// True to start each child in its own process group; otherwise it stays in this one.
    pub(in crate::io) own_group: bool,
    /// File that [`Action::Append`] creates and writes. It must not exist before.
    pub(in crate::io) appended: Option<PathBuf>,
}

impl Launcher {
    /// Launcher of a machine that starts no drivers and appends to no file.
    pub(in crate::io) fn without_drivers(handling: Box<dyn Handling>) -> Self {
        let (shim, variables, temp_dir) = (Vec::new(), Vec::new(), String::new());
        Self { shim, variables, temp_dir, handling, own_group: true, appended: None }
    }
}

/// Runs a machine on the standard streams of this process and returns its exit status.
///
/// # Errors
/// An I/O error on the standard streams, or a fault of the signal handlers. A running child is killed first.
pub fn run_machine(machine: &mut dyn Machine) -> io::Result<i32> {
    run_with_launcher(machine, Launcher::without_drivers(Box::new(Careful)))
}

/// [`run_machine`] for a machine that starts policy drivers.
///
/// # Errors
/// As for [`run_machine`].
pub(in crate::io) fn run_with_launcher(machine: &mut dyn Machine, launcher: Launcher) -> io::Result<i32> {
    // Fails only on kernels without this call. Descendants that left the group then escape.
    let _ = set_child_subreaper(Some(getpid()));
    let mut shell = Shell::new(launcher)?;
    let result = shell.run(machine);
    if result.is_err() {
        shell.kill();
    }
    result
}

/// A running child with this process' ends of its pipes.
struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    stdin_rest: Vec<u8>,
    stdin_written: usize,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    exit_reported: bool,
    bystanders: Bystanders,
    /// Payload file, removed after the child is killed.
    payload: Option<PayloadFile>,
}

/// Event that poll reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ready {
    Stdin,
    Terminate,
    ChildEnded,
    ChildStdin,
    ChildStdout,
    ChildStderr,
}

struct Shell {
    launcher: Launcher,
    started: Instant,
    /// True while SIGTERM has its default effect, because there is nothing to clean up.
    childless: Arc<AtomicBool>,
    terminate: UnixStream,
    child_ended: UnixStream,
    stdin_open: bool,
    wake: Option<Millis>,
    running: Option<Running>,
    buffer: Vec<u8>,
    /// Open file of [`Launcher::appended`], after the first append.
    appended: Option<File>,
}

impl Shell {
    fn new(launcher: Launcher) -> io::Result<Self> {
        let childless = Arc::new(AtomicBool::new(true));
        let (terminate, terminate_end) = UnixStream::pair()?;
        for &signal in launcher.handling.signals() {
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&childless))?;
            signal_hook::low_level::pipe::register(signal, terminate_end.try_clone()?)?;
        }
        let (child_ended, child_ended_end) = UnixStream::pair()?;
        signal_hook::low_level::pipe::register(SIGCHLD, child_ended_end)?;
        for stream in [&terminate, &child_ended] {
            stream.set_nonblocking(true)?;
        }
        Ok(Self {
            launcher,
            started: Instant::now(),
            childless,
            terminate,
            child_ended,
            stdin_open: true,
            wake: None,
            running: None,
            buffer: vec![0; READ_BYTES],
            appended: None,
        })
    }

    fn now(&self) -> Millis {
        Millis::try_from(self.started.elapsed().as_millis()).unwrap_or(Millis::MAX)
    }

    fn run(&mut self, machine: &mut dyn Machine) -> io::Result<i32> {
        loop {
            for ready in self.wait(machine.wants_stdin())? {
                if let Some(status) = self.serve(machine, ready)? {
                    return Ok(status);
                }
            }
            if self.wake.is_some_and(|at| at <= self.now()) {
                self.wake = None;
                if let Some(status) = self.tell(machine, Event::Wake)? {
                    return Ok(status);
                }
            }
        }
    }

    /// Waits for an event or the time to wake.
    fn wait(&self, wants_stdin: bool) -> io::Result<Vec<Ready>> {
        let stdin = io::stdin();
        let mut watched: Vec<(Ready, BorrowedFd<'_>, PollFlags)> = vec![
            (Ready::Terminate, self.terminate.as_fd(), PollFlags::IN),
            (Ready::ChildEnded, self.child_ended.as_fd(), PollFlags::IN),
        ];
        if self.stdin_open && wants_stdin {
            watched.push((Ready::Stdin, stdin.as_fd(), PollFlags::IN));
        }
        if let Some(running) = &self.running {
            if let Some(fd) = &running.stdin {
                watched.push((Ready::ChildStdin, fd.as_fd(), PollFlags::OUT));
            }
            if let Some(fd) = &running.stdout {
                watched.push((Ready::ChildStdout, fd.as_fd(), PollFlags::IN));
            }
            if let Some(fd) = &running.stderr {
                watched.push((Ready::ChildStderr, fd.as_fd(), PollFlags::IN));
            }
        }
        let mut fds: Vec<PollFd<'_>> =
            watched.iter().map(|(_, fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)).collect();
        let timeout = self.wake.map(|at| timespec(Duration::from_millis(at.saturating_sub(self.now()))));
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        }
        let ready = watched.iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty());
        Ok(ready.map(|((ready, ..), _)| *ready).collect())
    }

    /// Serves one event. Returns a status if the run ends.
    fn serve(&mut self, machine: &mut dyn Machine, ready: Ready) -> io::Result<Option<i32>> {
        match ready {
            Ready::Terminate => {
                drain(&self.terminate);
                self.tell(machine, Event::Terminate)
            }
            Ready::ChildEnded => {
                drain(&self.child_ended);
                self.report_exit(machine)
            }
            Ready::Stdin => self.pass_stdin(machine),
            Ready::ChildStdin => {
                self.feed();
                Ok(None)
            }
            Ready::ChildStdout => self.pass_stdout(machine).map(|(status, _)| status),
            Ready::ChildStderr => {
                if let Some(running) = &mut self.running
                    && let Some(stderr) = &running.stderr
                    && let Ok(Some(0)) | Err(_) = retry(|| read(stderr, &mut self.buffer[..]))
                {
                    running.stderr = None;
                }
                Ok(None)
            }
        }
    }

    /// Passes one read of this process' input to the machine. A read error counts as the end of the input, so that the
    /// call is judged by the bytes that arrived.
    fn pass_stdin(&mut self, machine: &mut dyn Machine) -> io::Result<Option<i32>> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let status = match retry(|| read(io::stdin(), &mut buffer[..])) {
            Ok(None) => Ok(None),
            Ok(Some(0)) | Err(_) => {
                self.stdin_open = false;
                self.tell(machine, Event::StdinEof)
            }
            Ok(Some(count)) => self.tell(machine, Event::Stdin(&buffer[..count])),
        };
        self.buffer = buffer;
        status
    }

    /// Writes as much of the request as the child takes. A child that closed its input or died is no error here; its
    /// exit decides.
    fn feed(&mut self) {
        let Some(running) = &mut self.running else { return };
        let Some(stdin) = &running.stdin else { return };
        match retry(|| rustix::io::write(stdin, &running.stdin_rest[running.stdin_written..])) {
            Ok(Some(count)) => running.stdin_written += count,
            Ok(None) => return,
            Err(_) => running.stdin_written = running.stdin_rest.len(),
        }
        if running.stdin_written == running.stdin_rest.len() {
            running.stdin = None;
            running.stdin_rest = Vec::new();
        }
    }

    /// Passes one read of the child's output to the machine. The flag is true if more output may be ready.
    fn pass_stdout(&mut self, machine: &mut dyn Machine) -> io::Result<(Option<i32>, bool)> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let count = match &self.running {
            Some(Running { stdout: Some(stdout), .. }) => retry(|| read(stdout, &mut buffer[..])),
            _ => Ok(None),
        };
        let (status, more) = match count {
            Ok(None) => (Ok(None), false),
            Ok(Some(0)) | Err(_) => {
                if let Some(running) = &mut self.running {
                    running.stdout = None;
                }
                (self.tell(machine, Event::ChildStdoutEof), false)
            }
            Ok(Some(count)) => (self.tell(machine, Event::ChildStdout(&buffer[..count])), true),
        };
        self.buffer = buffer;
        Ok((status?, more))
    }

    /// Passes the child's exit to the machine, once, after its remaining output.
    fn report_exit(&mut self, machine: &mut dyn Machine) -> io::Result<Option<i32>> {
        let Some(running) = self.running.as_mut().filter(|running| !running.exit_reported) else {
            return Ok(None);
        };
        let Some(exit) = exit_of(running) else { return Ok(None) };
        running.exit_reported = true;
        running.stdin = None;
        for _ in 0..LAST_READS_MAX {
            let (status, more) = self.pass_stdout(machine)?;
            // The machine may have killed this child, and another may run by now.
            let is_there = self.running.as_ref().is_some_and(|running| running.exit_reported);
            if status.is_some() || !is_there {
                return Ok(status);
            }
            if !more {
                break;
            }
        }
        self.tell(machine, Event::ChildExit(exit))
    }

    /// Delivers one event and carries out the machine's actions.
    fn tell(&mut self, machine: &mut dyn Machine, event: Event<'_>) -> io::Result<Option<i32>> {
        let mut actions = Vec::new();
        let mut next = Some(event);
        while let Some(event) = next.take() {
            machine.handle(event, self.now(), &mut actions);
            for action in actions.drain(..) {
                match action {
                    Action::Stdout(bytes) => write_all(io::stdout().as_fd(), &bytes)?,
                    Action::Stderr(bytes) => write_all(io::stderr().as_fd(), &bytes)?,
                    Action::WakeAt(at) => self.wake = Some(self.wake.map_or(at, |wake| wake.min(at))),
                    Action::Spawn { argv, stdin } => {
                        next = self.spawn(&argv, stdin).err().map(Event::ChildSpawnFailed);
                    }
                    Action::Drive(order) => next = self.drive(*order).err().map(Event::ChildSpawnFailed),
                    Action::Kill => self.kill(),
                    Action::Append(bytes) => self.append(&bytes)?,
                    Action::Exit(status) => return Ok(Some(status)),
                    Action::Abort => std::process::abort(),
                    // A worker has its own shell.
                    Action::Job(_) => {}
                    // This shell has no network. The machine learns that at once instead of waiting forever.
                    Action::Fetch { .. } | Action::Post(_) => {
                        next = Some(Event::Fetched(Err(FetchError("this shell has no network".to_owned()))));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Appends to the file of [`Launcher::appended`], if configured.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(path) = &self.launcher.appended else { return Ok(()) };
        let file = match &self.appended {
            Some(file) => file,
            None => self.appended.insert(OpenOptions::new().append(true).create_new(true).open(path)?),
        };
        write_all(file.as_fd(), bytes)
    }

    fn spawn(&mut self, argv: &[String], stdin: Vec<u8>) -> Result<(), SpawnFailure> {
        let Some((program, arguments)) = argv.split_first() else {
            return Err(SpawnFailure::Other("no program given".to_owned()));
        };
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped());
        self.start(command, program, stdin, None)
    }

    /// Starts a policy driver through the shim that sets its resource limits.
    fn drive(&mut self, order: DriveOrder) -> Result<(), SpawnFailure> {
        let DriveOrder { program, argv, payload, resources } = order;
        let Some((shim, arguments)) = self.launcher.shim.split_first() else {
            return Err(SpawnFailure::Other("there is no shim".to_owned()));
        };
        let mut command = Command::new(shim);
        command.args(arguments).arg(resources.encode()).arg(&program);
        command.env_clear().envs(self.launcher.variables.iter().map(|(name, value)| (name, value)));
        // From here on the machine receives SIGTERM, so that the payload file is removed.
        self.childless.store(false, Ordering::SeqCst);
        let handling = &self.launcher.handling;
        let payload = handling.write(&self.launcher.temp_dir, &payload).map_err(|error| {
            self.childless.store(true, Ordering::SeqCst);
            SpawnFailure::Other(format!("cannot write the payload: {error}"))
        })?;
        command.args(handling.arguments(argv, payload.path())).stdin(handling.stdin(payload.path()));
        self.start(command, &program, Vec::new(), Some(payload))
    }

    /// Starts a child with piped output. `stdin` is its input if that is piped too.
    fn start(
        &mut self,
        mut command: Command,
        program: &str,
        stdin: Vec<u8>,
        payload: Option<PayloadFile>,
    ) -> Result<(), SpawnFailure> {
        let bystanders = Bystanders::now();
        self.childless.store(false, Ordering::SeqCst);
        if self.launcher.own_group {
            command.process_group(0);
        }
        let spawned = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = match spawned {
            Ok(child) => child,
            Err(error) => {
                drop(payload);
                self.childless.store(true, Ordering::SeqCst);
                return Err(spawn_failure(program, &error));
            }
        };
        let running = Running {
            stdin: child.stdin.take(),
            stdin_rest: stdin,
            stdin_written: 0,
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            child,
            exit_reported: false,
            bystanders,
            payload,
        };
        let pipes = [
            running.stdin.as_ref().map(AsFd::as_fd),
            running.stdout.as_ref().map(AsFd::as_fd),
            running.stderr.as_ref().map(AsFd::as_fd),
        ];
        let unblocked = pipes.into_iter().flatten().try_for_each(|fd| ioctl_fionbio(fd, true));
        self.running = Some(running);
        unblocked.map_err(|error| SpawnFailure::Other(error.to_string()))
    }

    /// Kills the child and its descendants and drops its pipes. No effect without a child.
    fn kill(&mut self) {
        let Some(mut running) = self.running.take() else { return };
        let child_ended = &self.child_ended;
        let handling = &self.launcher.handling;
        handling.kill(&mut running.child, &running.bystanders, &mut |time_max| {
            let mut fds = [PollFd::new(child_ended, PollFlags::IN)];
            let _ = poll(&mut fds, Some(&timespec(time_max)));
            drain(child_ended);
        });
        if let Some(payload) = running.payload.take() {
            self.launcher.handling.remove(payload);
        }
        self.childless.store(true, Ordering::SeqCst);
    }
}

/// Exit of the child, if it has exited. The child stays unreaped so that its id keeps naming its group.
fn exit_of(running: &Running) -> Option<ChildExit> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let status = waitid(WaitId::Pid(pid_of(&running.child)?), options).ok()??;
    status.exit_status().map(ChildExit::Code).or_else(|| status.terminating_signal().map(ChildExit::Signal))
}

/// Classifies a failed start. `NotFound` means a missing program, `NotRunnable` a program without permission to run. A
/// script with a missing interpreter is neither.
fn spawn_failure(program: &str, error: &io::Error) -> SpawnFailure {
    let text = format!("{program}: {error}");
    let absent = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    if absent && !(program.contains('/') && Path::new(program).exists()) {
        SpawnFailure::NotFound(text)
    } else if error.kind() == io::ErrorKind::PermissionDenied {
        SpawnFailure::NotRunnable(text)
    } else {
        SpawnFailure::Other(text)
    }
}

/// Repeats a call that a signal interrupted. Returns `None` if it would block.
fn retry(mut call: impl FnMut() -> Result<usize, Errno>) -> Result<Option<usize>, Errno> {
    loop {
        match call() {
            Ok(count) => return Ok(Some(count)),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
}

/// Empties a self-pipe. One look at the children serves any number of signals.
fn drain(mut stream: &UnixStream) {
    let mut bytes = [0; 64];
    while matches!(io::Read::read(&mut stream, &mut bytes), Ok(count) if count > 0) {}
}

/// Writes all of `bytes`, waiting if the stream is non-blocking.
fn write_all(fd: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match retry(|| rustix::io::write(fd, bytes))? {
            Some(count) => bytes = &bytes[count..],
            None => {
                let _ = poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::OUT)], None);
            }
        }
    }
    Ok(())
}

fn timespec(duration: Duration) -> Timespec {
    // Longer timeouts than the kernel accepts are cut; the loop then polls again.
    let seconds = duration.as_secs().min(3600);
    Timespec { tv_sec: i64::try_from(seconds).unwrap_or(3600), tv_nsec: duration.subsec_nanos().into() }
}

#[cfg(test)]
mod tests {
    use rustix::process::Pid;

    use super::*;

    /// A handling that kills only the child itself, because other children of this process belong to other tests.
    struct ChildOnly;

    impl Handling for ChildOnly {
        fn kill(&self, child: &mut Child, _: &Bystanders, _: &mut dyn FnMut(Duration)) {
            let _ = child.kill().and_then(|()| child.wait());
        }

        fn signals(&self) -> &'static [i32] {
            &[]
        }
    }

    /// A machine that kills its first child after the word `more`, and then starts `cat` to copy a line.
    #[derive(Default)]
    struct Impatient {
        wrote: Vec<u8>,
        exits: Vec<ChildExit>,
    }

    const FIRST: &str = "echo $$; read go; printf more; exit 7";

    impl Machine for Impatient {
        fn handle(&mut self, event: Event<'_>, _now: Millis, actions: &mut Vec<Action>) {
            let spawn = |argv: &[&str], stdin: &[u8]| Action::Spawn {
                argv: argv.iter().map(|word| (*word).to_owned()).collect(),
                stdin: stdin.to_vec(),
            };
            match event {
                Event::Wake => actions.push(spawn(&["/bin/sh", "-c", FIRST], b"go\n")),
                Event::ChildStdout(bytes) => {
                    self.wrote.extend(bytes);
                    let wrote = String::from_utf8_lossy(&self.wrote).into_owned();
                    if wrote.ends_with("more") {
                        actions.push(Action::Kill);
                        actions.push(spawn(&["/bin/cat"], b" of another\n"));
                    } else if let Some(pid) = wrote.strip_suffix('\n').filter(|_| !wrote.contains("more")) {
                        dies(pid);
                    }
                }
                Event::ChildExit(exit) => {
                    self.exits.push(exit);
                    actions.push(Action::Exit(0));
                }
                _ => {}
            }
        }

        fn wants_stdin(&self) -> bool {
            false
        }
    }

    /// Waits until the child of this id is dead, and leaves it unreaped for the shell.
    fn dies(pid: &str) {
        let pid = Pid::from_raw(pid.parse().unwrap()).unwrap();
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
    }

    #[test]
    fn the_end_of_a_child_is_not_that_of_the_one_in_its_place() {
        let mut shell = Shell::new(Launcher::without_drivers(Box::new(ChildOnly))).unwrap();
        shell.wake = Some(0);
        let mut machine = Impatient::default();
        assert_eq!(shell.run(&mut machine).unwrap(), 0);
        shell.kill();
        let wrote = String::from_utf8(machine.wrote).unwrap();
        assert!(wrote.ends_with("more of another\n"), "{wrote:?}");
        assert_eq!(machine.exits, [ChildExit::Code(0)]);
    }
}
