//! Running peer under measurement.

use std::fmt;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::placement::Placement;
use super::usage::Usage;
use crate::contract::boundary::Boundary;
use crate::data::budget::Budget;
use crate::data::facts::Facts;
use crate::data::plan::{Plan, Session};
use crate::data::transcript::{EventKind, Exit, Secrets};
use crate::drive::fixture::spawn_guard;
use crate::drive::peer::Peer;
use crate::drive::transport::child::{ChildConnection, Killer};
use crate::drive::transport::{Connection as _, Log, Until};

/// Length of the end of standard error that is kept, bytes.
const STDERR_BYTES_KEPT: usize = 2 << 10;
/// Length of standard error quoted in a message, characters.
const STDERR_CHARS_SHOWN: usize = 160;
/// Time allowed for a failing peer to end, so that its exit status can be reported.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Failure of a peer that leaves a figure missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// The peer could not be started as configured.
    CannotStart(String),
    /// The peer ended or closed a pipe.
    Died(String),
    /// The peer did not answer in time.
    Hung(String),
    /// The peer answered wrongly.
    Wrong(String),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::CannotStart(text) | Self::Died(text) | Self::Hung(text) | Self::Wrong(text)) = self;
        f.write_str(text)
    }
}

/// Recorder that discards everything: a benchmark keeps no transcript.
struct NoTranscript;

impl Log for NoTranscript {
    fn record(&mut self, _at_us: u64, _kind: EventKind) {}
}

/// Started peer whose pipes the benchmark reads and writes itself.
pub struct LivePeer {
    connection: ChildConnection,
    /// Standard input; `None` once closed.
    pub stdin: Option<OwnedFd>,
    /// Standard output.
    pub stdout: OwnedFd,
    /// Time just before the start of the process.
    pub started: Instant,
    /// Secrets that messages must not show.
    pub secrets: Secrets,
    boundary: &'static dyn Boundary,
    facts: Facts,
    stderr_end: Arc<Mutex<Vec<u8>>>,
    /// Disconnects when standard error has been read to its end.
    stderr_read: Receiver<()>,
}

impl LivePeer {
    /// Starts one session of `peer` on its processor. `temp_dir` becomes its `TMPDIR`; `interrupted` ends every wait
    /// for it.
    ///
    /// # Errors
    /// Fails if the process cannot be started.
    pub fn start(
        peer: &Peer,
        session: &Session,
        placement: &Placement,
        temp_dir: &Path,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<Self, Trouble> {
        let cannot = Trouble::CannotStart;
        let mut spec = peer.child_spec(session, temp_dir).map_err(|error| cannot(error.into()))?;
        spec.cpus = placement.peer.into_iter().collect();
        // Longer than any run: the watchdog ends a peer that hangs.
        let budget = Budget {
            connection: Duration::from_secs(1 << 30),
            interrupted: Arc::clone(interrupted),
            ..Budget::default()
        };
        let _guard = spawn_guard();
        let started = Instant::now();
        let mut connection = ChildConnection::spawn(&spec, &budget, &mut NoTranscript)
            .map_err(|error| cannot(error.to_string()))?;
        let [stdin, stdout, stderr] =
            connection.lend_pipes().ok_or_else(|| cannot("the child process has no pipes".to_owned()))?;
        let refuse = |error: Errno| cannot(format!("cannot set up its pipes: {error}"));
        rustix::io::ioctl_fionbio(&stdout, false).map_err(refuse)?;
        rustix::io::ioctl_fionbio(&stderr, false).map_err(refuse)?;
        let stderr_end = Arc::new(Mutex::new(Vec::new()));
        let keep = Arc::clone(&stderr_end);
        let (reading, stderr_read) = mpsc::channel();
        // Ends when the last process that holds the pipe ends, at the latest when the connection is finished.
        std::thread::Builder::new()
            .name("stderr".to_owned())
            .spawn(move || {
                drain(&stderr, &keep);
                drop(reading);
            })
            .map_err(|error| cannot(format!("cannot start a thread: {error}")))?;
        Ok(Self {
            connection,
            stdin: Some(stdin),
            stdout,
            started,
            secrets: peer.secrets(),
            boundary: peer.boundary,
            facts: peer.facts.clone(),
            stderr_end,
            stderr_read,
        })
    }

    /// Lines that open the session, see [`bench_opening`](crate::contract::boundary::Benchmark::bench_opening).
    pub fn opening(&self) -> Vec<(Vec<u8>, bool)> {
        self.boundary.bench_opening(&self.facts)
    }

    /// True if `frame` is a message of the peer's own that answers nothing.
    pub(crate) fn is_aside(&self, frame: &[u8]) -> bool {
        self.boundary.unmatched_frame(&self.facts, &Plan::default(), frame).is_some()
    }

    /// Handle with which the watchdog kills the peer.
    pub(crate) fn killer(&self) -> Killer {
        self.connection.killer()
    }

    /// Processor time and memory that the peer's processes have used so far.
    pub fn usage(&self) -> Usage {
        Usage::of(&self.connection.family_pids())
    }

    /// Reason why the peer broke off: its exit and its last line on standard error.
    pub(crate) fn last_words(&mut self) -> Trouble {
        self.stdin = None;
        self.connection.pump(Until::Exited, LAST_WORDS, &mut NoTranscript);
        let how = match self.connection.exit() {
            Some(Exit::Code(code)) => format!("the process ended with status {code}"),
            Some(Exit::Signal(signal)) => format!("the process was ended by signal {signal}"),
            None => "the process closed standard output and keeps running".to_owned(),
        };
        // Its last output may still be in the pipe. Another holder of the pipe is not waited for.
        let _ = self.stderr_read.recv_timeout(LAST_WORDS);
        let kept = self.stderr_end.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::from_utf8_lossy(&kept).into_owned();
        self.secrets.cover_text(&mut text);
        let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let shown: String = line.trim().chars().take(STDERR_CHARS_SHOWN).collect();
        let said = if shown.is_empty() { String::new() } else { format!("; it said: {shown}") };
        Trouble::Died(format!("{how} before it answered{said}"))
    }

    /// Waits until the process has ended. [`LivePeer::end`] reaps it.
    pub(crate) fn wait_for_end(&mut self, patience: Duration) {
        self.connection.pump(Until::Exited, patience, &mut NoTranscript);
    }

    /// Ends the peer in order: closes standard input, waits up to `patience`, then kills the rest of its process tree.
    pub fn end(mut self, patience: Duration) {
        self.stdin = None;
        self.connection.pump(Until::Exited, patience, &mut NoTranscript);
        self.connection.finish(&mut NoTranscript);
    }
}

fn drain(stderr: &OwnedFd, keep: &Mutex<Vec<u8>>) {
    let mut block = [0; 4 << 10];
    loop {
        match rustix::io::read(stderr, &mut block) {
            Ok(0) => return,
            Ok(length) => {
                let mut kept = keep.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(&block[..length]);
                let excess = kept.len().saturating_sub(STDERR_BYTES_KEPT);
                kept.drain(..excess);
            }
            Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}
