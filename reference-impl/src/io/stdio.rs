//! Runs a machine on standard input and output. It blocks, with one system call per read and write. It starts no
//! second thread before one is needed, because two threads make every system call slower.

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
use crate::machine::{Action, Event, FetchError, Fetched, Machine, Millis};

/// Bytes per read, the capacity of a pipe.
const BLOCK_BYTES: usize = 64 * 1024;

/// Size in bytes up to which a pipe takes a write whole or not at all (`PIPE_BUF`).
const ATOMIC_BYTES: usize = 4096;

/// Exit status after an I/O error on the standard streams.
const STATUS_STREAMS: i32 = 70;

/// Time between SIGTERM and a forced exit in ms, if a client does not read its replies.
const TERMINATION_MS: u64 = 1_500;

/// Exit status of a forced exit after SIGTERM.
const STATUS_TERMINATED: i32 = 128 + SIGTERM;

/// Handler of SIGTERM that needs no thread.
struct Termination {
    /// True while nothing is in progress: the signal then ends the process at once.
    at_rest: Arc<AtomicBool>,
    /// Copy of `at_rest` for cheap reads.
    resting: bool,
    /// True once the signal came while something was in progress.
    asked: Arc<AtomicBool>,
    watched: bool,
}

impl Termination {
    /// Installs the handlers. `status` is the exit status if the signal comes while nothing is in progress. If signals
    /// cannot be caught, SIGTERM keeps its default effect.
    fn install(status: i32) -> Self {
        let (at_rest, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let _ = flag::register_conditional_shutdown(SIGTERM, status, Arc::clone(&at_rest));
        let _ = flag::register(SIGTERM, Arc::clone(&asked));
        Self { at_rest, resting: false, asked, watched: false }
    }

    /// Marks that nothing is in progress. Returns true if the process was asked to end in the meantime.
    fn rest(&mut self) -> bool {
        if !std::mem::replace(&mut self.resting, true) {
            // This comes before the read of `asked`: a signal between the two then ends the process.
            self.at_rest.store(true, SeqCst);
        }
        self.asked.load(SeqCst)
    }

    /// Marks that something is in progress, so that SIGTERM waits for it.
    fn work(&mut self) {
        self.resting = false;
        self.at_rest.store(false, Release);
    }

    /// Called before a write that may block. From now on a thread makes sure that SIGTERM does not wait forever for a
    /// reader.
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

/// Result of a fetch.
type Notice = Result<Fetched, FetchError>;

/// The machine, and the timers and fetches it has asked for.
struct Shell {
    machine: Box<dyn Machine + Send>,
    start: Instant,
    actions: Vec<Action>,
    wake_at: Option<Millis>,
    notices: (Sender<Notice>, Receiver<Notice>),
    termination: Termination,
    /// File to which results are appended. Only consumers have one; they go on when the other side stops reading.
    results: Option<File>,
}

impl Shell {
    fn now(&self) -> Millis {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(Millis::MAX)
    }

    /// Passes one event to the machine and carries out its actions. Returns the exit status if the machine ends.
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
                // A write that is whole or not at all need not be guarded against SIGTERM.
                if bytes.len() > ATOMIC_BYTES || self.termination.rest() {
                    self.termination.watch();
                }
                match write_all(&bytes) {
                    Ok(()) => None,
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe && self.results.is_some() => {
                        self.handle(Event::StdinEof)
                    }
                    // The reader is gone, so there is nothing left to do.
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
            // Only the dispatcher, the selector and the worker have children, and their own shells.
            Action::Spawn { .. } | Action::Drive(_) | Action::Job(_) | Action::Kill => None,
        }
    }

    /// Reads available input, or waits for the machine's timer or a fetch. Returns the exit status if the machine
    /// ends.
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

    /// Waits for input or for `time`. Returns true if input came first.
    fn is_readable_before(&self, time: Millis) -> bool {
        loop {
            let left = Duration::from_millis(time.saturating_sub(self.now()));
            let timeout = Timespec::try_from(left).ok();
            let stdin = io::stdin();
            let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
            match poll(&mut polled, timeout.as_ref()) {
                Ok(0) if self.now() >= time => return false,
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                // An error of the stream shows in the next read.
                Ok(_) | Err(_) => return true,
            }
        }
    }
}

/// Writes to standard output without the buffer of the standard library, which would search for line ends.
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

/// Runs `machine` on the standard streams of this process until it ends. Returns its exit status, or 70 after an I/O
/// error.
///
/// If SIGTERM comes while the machine is working, it is reported to the machine afterwards. If nothing is in progress,
/// SIGTERM ends the process at once with `status_at_rest`, the machine's own status in that case.
pub fn run_machine(machine: Box<dyn Machine + Send>, status_at_rest: i32) -> i32 {
    run(machine, status_at_rest, None)
}

/// [`run_machine`] for a consumer: the machine speaks first and appends to `results`. If the other side stops reading,
/// the machine sees the end of its input.
pub(crate) fn run_asking(machine: Box<dyn Machine + Send>, status_at_rest: i32, results: File) -> i32 {
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
