//! Runs a machine that speaks on standard input and output: blocking, one system call for each read and each write, and
//! no second thread until one is needed, for a process with two pays for it in every system call.

use std::fs::File;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Release, SeqCst};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use std::{io, process, thread};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::SIGTERM;
use signal_hook::flag;
use signal_hook::iterator::Signals;

use super::fetch::{self, FetchOrder};
use crate::machine::{Action, Event, Fetched, Machine, Millis};

/// Bytes of one read; what a pipe holds.
const BLOCK_BYTES: usize = 64 * 1024;

/// Bytes that a pipe takes all at once or not at all (`PIPE_BUF`).
const ATOMIC_BYTES: usize = 4096;

/// Exit status when a stream of this process itself fails.
const STATUS_STREAMS: i32 = 70;

/// After SIGTERM, the time until the process ends even though nobody reads its replies.
const TERMINATION_MS: u64 = 1_500;

/// Exit status when SIGTERM could not be obeyed in order.
const STATUS_TERMINATED: i32 = 128 + SIGTERM;

/// SIGTERM, obeyed without a thread that waits for it.
struct Termination {
    /// Nothing is under way: the signal ends the process there and then.
    at_rest: Arc<AtomicBool>,
    /// What `at_rest` says, read without cost.
    resting: bool,
    /// The signal came while something was.
    asked: Arc<AtomicBool>,
    watched: bool,
}

impl Termination {
    /// `status` is what the process exits with where the signal finds it at rest. Where signals cannot be caught, SIGTERM
    /// keeps its default effect.
    fn install(status: i32) -> Self {
        let (at_rest, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let _ = flag::register_conditional_shutdown(SIGTERM, status, Arc::clone(&at_rest));
        let _ = flag::register(SIGTERM, Arc::clone(&asked));
        Self { at_rest, resting: false, asked, watched: false }
    }

    /// Nothing is under way any more; true when the process was asked to end while something was.
    fn rest(&mut self) -> bool {
        if !std::mem::replace(&mut self.resting, true) {
            // Before the look at `asked`: a signal that comes between the two ends the process.
            self.at_rest.store(true, SeqCst);
        }
        self.asked.load(SeqCst)
    }

    /// Something is under way, and SIGTERM waits for it.
    fn work(&mut self) {
        self.resting = false;
        self.at_rest.store(false, Release);
    }

    /// Before a write that may be interrupted half-way: from now on a thread sees to it that SIGTERM does not wait for
    /// ever for a reader.
    fn watch(&mut self) {
        self.work();
        if std::mem::replace(&mut self.watched, true) {
            return;
        }
        let Ok(mut signals) = Signals::new([SIGTERM]) else { return };
        let asked = Arc::clone(&self.asked);
        thread::spawn(move || {
            if asked.load(SeqCst) || signals.forever().next().is_some() {
                thread::sleep(Duration::from_millis(TERMINATION_MS));
                process::exit(STATUS_TERMINATED);
            }
        });
    }
}

/// The answer to a fetch.
type Notice = Result<Fetched, String>;

/// The machine and what it asked for.
struct Shell {
    machine: Box<dyn Machine + Send>,
    start: Instant,
    actions: Vec<Action>,
    wake_at: Option<Millis>,
    notices: (Sender<Notice>, Receiver<Notice>),
    termination: Termination,
    /// Where results are appended; a peer that has such a file asks, and outlives one that answers.
    results: Option<File>,
}

impl Shell {
    fn now(&self) -> Millis {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(Millis::MAX)
    }

    /// Hands one event over and does what the machine asks; the exit status when it asks to end.
    fn handle(&mut self, event: Event<'_>) -> Option<i32> {
        let now = self.now();
        self.machine.handle(event, now, &mut self.actions);
        self.act_all()
    }

    fn act_all(&mut self) -> Option<i32> {
        let mut actions = std::mem::take(&mut self.actions);
        let status = actions.drain(..).find_map(|action| self.act(action));
        self.actions = actions;
        status
    }

    fn act(&mut self, action: Action) -> Option<i32> {
        match action {
            Action::Stdout(bytes) => {
                // What is written whole or not at all need not wait for a reader once SIGTERM comes.
                if bytes.len() > ATOMIC_BYTES || self.termination.rest() {
                    self.termination.watch();
                }
                match write_all(&bytes) {
                    Ok(()) => None,
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe && self.results.is_some() => {
                        self.handle(Event::StdinEof)
                    }
                    // Nobody reads any more; there is nothing left to do.
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Some(0),
                    Err(_) => Some(STATUS_STREAMS),
                }
            }
            Action::Stderr(bytes) => {
                self.termination.watch();
                let _ = io::stderr().write_all(&bytes);
                None
            }
            Action::WakeAt(time) => {
                self.wake_at = Some(time);
                None
            }
            Action::Fetch { host, port, path, host_header, body_bytes_max, timeout_ms } => {
                let notices = self.notices.0.clone();
                let order = FetchOrder { host, port, path, host_header, body_bytes_max, timeout_ms };
                thread::spawn(move || notices.send(fetch::fetch(&order)));
                None
            }
            Action::Post(order) => {
                let notices = self.notices.0.clone();
                thread::spawn(move || notices.send(fetch::post(&order)));
                None
            }
            Action::Append(bytes) => match &mut self.results {
                Some(file) => file.write_all(&bytes).is_err().then_some(STATUS_STREAMS),
                None => Some(STATUS_STREAMS),
            },
            Action::Exit(status) => Some(status),
            Action::Abort => process::abort(),
            // Only the dispatcher, the selector and the worker have a child, and a shell of their own.
            Action::Spawn { .. } | Action::Drive(_) | Action::Job(_) | Action::Kill => None,
        }
    }

    /// Reads what is there, or waits until the machine's time has come or something is fetched; the exit status when the
    /// machine asks to end.
    fn step(&mut self, block: &mut [u8]) -> Option<i32> {
        if self.termination.rest() {
            self.termination.work();
            return self.handle(Event::Terminate);
        }
        if self.machine.wants_stdin() {
            if let Some(time) = self.wake_at
                && !self.is_readable_before(time)
            {
                return self.wake();
            }
            let read = rustix::io::read(io::stdin(), &mut *block);
            self.termination.work();
            return match read {
                Ok(0) => self.handle(Event::StdinEof),
                Ok(bytes) => self.handle(Event::Stdin(block.get(..bytes).unwrap_or_default())),
                Err(rustix::io::Errno::INTR) => None,
                Err(_) => Some(STATUS_STREAMS),
            };
        }
        let notice = match self.wake_at {
            Some(time) => {
                let left = Duration::from_millis(time.saturating_sub(self.now()));
                let timeout = Err(RecvTimeoutError::Timeout);
                if left.is_zero() { timeout } else { self.notices.1.recv_timeout(left) }
            }
            None => self.notices.1.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        self.termination.work();
        match notice {
            Ok(reply) => self.handle(Event::Fetched(reply)),
            Err(RecvTimeoutError::Timeout) => self.wake(),
            Err(RecvTimeoutError::Disconnected) => Some(STATUS_STREAMS),
        }
    }

    fn wake(&mut self) -> Option<i32> {
        self.termination.work();
        self.wake_at = None;
        self.handle(Event::Wake)
    }

    /// Waits until something can be read, which comes first, or `time` has come.
    fn is_readable_before(&self, time: Millis) -> bool {
        loop {
            let left = Duration::from_millis(time.saturating_sub(self.now()));
            let timeout = Timespec::try_from(left).ok();
            let stdin = io::stdin();
            let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
            match poll(&mut polled, timeout.as_ref()) {
                Ok(0) if self.now() >= time => return false,
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                // What is wrong with the stream shows when it is read.
                Ok(_) | Err(_) => return true,
            }
        }
    }
}

/// Writes to standard output past the buffer of the standard library, which would look for line ends.
fn write_all(mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(io::stdout(), bytes) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Runs `machine` on the standard streams of this process until it asks to end; returns its exit status, or 70 when a
/// stream fails.
///
/// SIGTERM that comes while the machine is at work is told to it afterwards. One that comes while nothing is under way
/// ends the process at once with `status_at_rest`, which is what the machine would say then.
pub fn run_machine(machine: Box<dyn Machine + Send>, status_at_rest: i32) -> i32 {
    run(machine, status_at_rest, None)
}

/// Runs a machine that asks instead of answering, as [`run_machine`] does: it speaks first, appends to `results`, and is
/// told that its input has ended when nobody reads what it writes.
pub fn run_asking(machine: Box<dyn Machine + Send>, status_at_rest: i32, results: File) -> i32 {
    run(machine, status_at_rest, Some(results))
}

fn run(machine: Box<dyn Machine + Send>, status_at_rest: i32, results: Option<File>) -> i32 {
    let mut shell = Shell {
        machine,
        start: Instant::now(),
        actions: Vec::new(),
        wake_at: None,
        notices: channel(),
        termination: Termination::install(status_at_rest),
        results,
    };
    let mut block = vec![0; BLOCK_BYTES];
    let now = shell.now();
    shell.machine.begin(now, &mut shell.actions);
    if let Some(status) = shell.act_all() {
        return status;
    }
    loop {
        if let Some(status) = shell.step(&mut block) {
            return status;
        }
    }
}
