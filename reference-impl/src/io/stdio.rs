//! Runs a machine that speaks on standard input and output: blocking, one system call for each read and each write.

use std::io::Write as _;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{io, process, thread};

use signal_hook::consts::SIGTERM;
use signal_hook::iterator::Signals;

use super::fetch::{self, FetchOrder};
use crate::machine::{Action, Event, Fetched, Machine, Millis};

/// Bytes of one read; what a pipe holds.
const BLOCK_BYTES: usize = 64 * 1024;

/// Exit status when a stream of this process itself fails.
const STATUS_STREAMS: i32 = 70;

/// After SIGTERM, the time until the process ends even though nobody reads its replies.
const TERMINATION_MS: u64 = 1_500;

/// Exit status when SIGTERM could not be obeyed in order.
const STATUS_TERMINATED: i32 = 128 + SIGTERM;

/// What interrupts a wait.
enum Notice {
    Terminate,
    Fetched(Result<Fetched, String>),
}

/// The machine and what it asked for; locked by the reading thread but for the time it sits in `read`.
struct Shell {
    machine: Box<dyn Machine + Send>,
    start: Instant,
    actions: Vec<Action>,
    wake_at: Option<Millis>,
    notices: Sender<Notice>,
}

impl Shell {
    fn now(&self) -> Millis {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(Millis::MAX)
    }

    /// Hands one event over and does what the machine asks; the exit status when it asks to end.
    fn handle(&mut self, event: Event<'_>) -> Option<i32> {
        let now = self.now();
        self.machine.handle(event, now, &mut self.actions);
        let mut actions = std::mem::take(&mut self.actions);
        let status = actions.drain(..).find_map(|action| self.act(action));
        self.actions = actions;
        status
    }

    fn act(&mut self, action: Action) -> Option<i32> {
        match action {
            Action::Stdout(bytes) => match write_all(&bytes) {
                Ok(()) => None,
                // Nobody reads any more; there is nothing left to do.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Some(0),
                Err(_) => Some(STATUS_STREAMS),
            },
            Action::Stderr(bytes) => {
                let _ = io::stderr().write_all(&bytes);
                None
            }
            Action::WakeAt(time) => {
                self.wake_at = Some(time);
                None
            }
            Action::Fetch { host, port, path, host_header, body_bytes_max, timeout_ms } => {
                let notices = self.notices.clone();
                let order = FetchOrder { host, port, path, host_header, body_bytes_max, timeout_ms };
                thread::spawn(move || notices.send(Notice::Fetched(fetch::fetch(&order))));
                None
            }
            Action::Exit(status) => Some(status),
            Action::Abort => process::abort(),
            // Only the dispatcher has a child, and a shell of its own.
            Action::Spawn { .. } | Action::Kill => None,
        }
    }

    /// Waits until the machine's time has come or something else happens; the exit status when it asks to end.
    fn wait(&mut self, notices: &Receiver<Notice>) -> Option<i32> {
        let notice = match self.wake_at {
            Some(time) => {
                let left = Duration::from_millis(time.saturating_sub(self.now()));
                if left.is_zero() { Err(RecvTimeoutError::Timeout) } else { notices.recv_timeout(left) }
            }
            None => notices.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match notice {
            Ok(Notice::Terminate) => self.handle(Event::Terminate),
            Ok(Notice::Fetched(reply)) => self.handle(Event::Fetched(reply)),
            Err(RecvTimeoutError::Timeout) => {
                self.wake_at = None;
                self.handle(Event::Wake)
            }
            Err(RecvTimeoutError::Disconnected) => Some(STATUS_STREAMS),
        }
    }
}

fn lock(shell: &Mutex<Shell>) -> MutexGuard<'_, Shell> {
    shell.lock().unwrap_or_else(PoisonError::into_inner)
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
/// On SIGTERM the machine is told, and what it then asks for is done, as soon as it is not in the middle of an event;
/// the process exits from within when standard input is being read at that moment.
pub fn run_machine(machine: Box<dyn Machine + Send>) -> i32 {
    let (sender, notices) = channel();
    let shell =
        Shell { machine, start: Instant::now(), actions: Vec::new(), wake_at: None, notices: sender.clone() };
    let shell = Arc::new(Mutex::new(shell));
    if let Ok(signals) = Signals::new([SIGTERM]) {
        let shell = Arc::clone(&shell);
        thread::spawn(move || obey(signals, &sender, &shell));
    }
    let mut block = vec![0; BLOCK_BYTES];
    let mut guard = lock(&shell);
    loop {
        let status = if guard.machine.wants_stdin() {
            drop(guard);
            let read = rustix::io::read(io::stdin(), &mut block);
            guard = lock(&shell);
            match read {
                Ok(0) => guard.handle(Event::StdinEof),
                Ok(bytes) => guard.handle(Event::Stdin(block.get(..bytes).unwrap_or_default())),
                Err(rustix::io::Errno::INTR) => None,
                Err(_) => Some(STATUS_STREAMS),
            }
        } else {
            guard.wait(&notices)
        };
        if let Some(status) = status {
            return status;
        }
    }
}

/// Waits for SIGTERM and ends the process in order.
fn obey(mut signals: Signals, notices: &Sender<Notice>, shell: &Mutex<Shell>) {
    if signals.forever().next().is_none() {
        return;
    }
    thread::spawn(|| {
        thread::sleep(Duration::from_millis(TERMINATION_MS));
        process::exit(STATUS_TERMINATED);
    });
    // Whichever comes first: the reading thread waits for notices, or lets go of the machine in order to read.
    let _ = notices.send(Notice::Terminate);
    // `None`: the reading thread obeyed the notice and is ending, or the deadline above decides.
    if let Some(status) = lock(shell).handle(Event::Terminate) {
        process::exit(status);
    }
}
