//! Recorder: starts two peers, relays every byte between them unchanged, and records the conversation with its order
//! and times.
//!
//! One thread per direction blocks in reading and writing, so that neither waits for the other. A bounded channel
//! carries the events to the thread that writes the file. The relay does not interpret the bytes, except to find
//! secrets that must not be stored.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;

use crate::data::blame::{HarnessFault, Misconfigured, Unprepared};
use crate::data::facts::Facts;
use crate::data::plan::{Plan, Session};
use crate::data::transcript::{Awaited, EventKind, Exit, Transcript};

mod errors;
mod relay;
mod running;
mod store;

use errors::ErrorStreams;
use relay::{RelayEvent, RelayEventKind, RelaySender, RelaySide};
use running::{Running, start, watch};
pub use store::{Hidden, Store};

/// Maximum number of events in the channel; each holds one read.
const CHANNEL_MAX: usize = 256;
/// Interval for looking whether the user interrupts.
const TICK: Duration = Duration::from_millis(50);
/// Time to read standard error after the peers have ended, because a descendant may hold it open.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// Time for each peer to end after the user interrupts, and again before it is killed.
const INTERRUPT_GRACE: Duration = Duration::from_millis(300);
/// Time between SIGTERM and SIGKILL.
const TERM_GRACE: Duration = Duration::from_secs(2);

/// One of the two peers.
#[derive(Debug, Clone)]
pub struct RecordedPeer {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Environment variables on top of the recorder's own.
    pub env: Vec<(String, String)>,
}

/// Settings of a recording.
pub struct RecordSettings {
    /// Name of the boundary between the peers.
    pub boundary: &'static str,
    /// Facts about the server.
    pub facts: Facts,
    /// Command of the boundary that the server implements.
    pub command: String,
    /// Values of its placeholders.
    pub placeholders: BTreeMap<String, String>,
    /// Environment variables of the server to which the boundary gives a meaning.
    pub variables: Vec<(String, String)>,
    /// Client; `None` if it is at the other end of the recorder's own standard streams.
    pub client: Option<RecordedPeer>,
    /// Server.
    pub server: RecordedPeer,
    /// The recorder's standard output, for a client at its other end.
    pub stdout: File,
    /// Destination of the peers' standard error.
    pub stderr: File,
    /// Time for the server to end, and for the client after SIGTERM.
    pub grace: Duration,
    /// Secrets that are relayed but not stored.
    pub hidden: Hidden,
    /// Maximum size of the file, bytes.
    pub bytes_max: u64,
}

/// Result of a recording.
#[derive(Debug, Default)]
pub struct Recorded {
    /// Exit of the client; `None` if it is not ours or was killed.
    pub client: Option<Exit>,
    /// Exit of the server; `None` if it was killed.
    pub server: Option<Exit>,
    /// Number of bytes from the client.
    pub sent_bytes: u64,
    /// Number of bytes from the server.
    pub received_bytes: u64,
    /// Number of line feeds from each.
    pub lines: (u64, u64),
    /// Reason why the file is incomplete.
    pub stopped: Option<String>,
    /// Set if the file could not be written.
    pub is_broken: bool,
    /// Set if the user interrupted.
    pub interrupted: bool,
    /// Peers that did not end and were killed.
    pub killed: Vec<&'static str>,
    /// Duration of the recording.
    pub elapsed: Duration,
}

/// Records until both peers have ended or `interrupted` is set.
///
/// # Errors
/// Names the reason, by blame: the file cannot be created, or a peer cannot be started.
pub fn record(
    settings: RecordSettings,
    file: File,
    interrupted: &AtomicBool,
) -> Result<Recorded, Unprepared> {
    let transcript = header(&settings);
    let store = Store::begin(file, &transcript, settings.hidden, settings.bytes_max)
        .map_err(|error| HarnessFault::from(format!("the transcript cannot be written: {error}")))?;
    let begun = Instant::now();
    let mut server =
        start(&settings.server, begun).map_err(|error| cannot_start("server", &settings.server, &error))?;
    let mut client = match &settings.client {
        None => None,
        Some(side) => Some(start(side, begun).map_err(|error| {
            server.signal(Signal::KILL);
            let _ = server.child.wait();
            cannot_start("client", side, &error)
        })?),
    };
    let (to, from) = sync_channel(CHANNEL_MAX);
    let teller = RelaySender { begun, to };
    let mut store = store;
    // Signatures depend on the time of day.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let at_us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(0);
    store.push(at_us, EventKind::Clock { unix_ms: u64::try_from(since.as_millis()).unwrap_or(0) });
    store.push(server.at_us, EventKind::Started { argv: settings.server.argv.clone() });
    if let (Some(client), Some(side)) = (&client, &settings.client) {
        store.push(client.at_us, EventKind::ClientStarted { argv: side.argv.clone() });
    }
    let (from_client, to_client) = match &mut client {
        Some(client) => client.pipes()?,
        None => (own_stdin()?, settings.stdout),
    };
    let (from_server, to_server) = server.pipes()?;
    for (running, whose) in [(Some(&mut server), RelaySide::Server), (client.as_mut(), RelaySide::Client)] {
        if let Some(errors) = running.and_then(Running::errors) {
            let clone = teller.clone();
            let own = settings.stderr.try_clone().ok();
            std::thread::spawn(move || errors::pass_on(errors, own, whose, &clone));
        }
    }
    let clone = teller.clone();
    std::thread::spawn(move || relay::forth(from_client, to_server, &clone));
    let clone = teller.clone();
    std::thread::spawn(move || relay::back(from_server, to_client, &clone));
    watch(server.pid, teller.clone(), RelayEventKind::ServerExited);
    if let Some(client) = &client {
        watch(client.pid, teller.clone(), RelayEventKind::ClientExited);
    }
    drop(teller);
    let mut recorder = Recorder {
        from,
        store,
        begun,
        client,
        server,
        grace: settings.grace,
        steps: 0,
        client_done: false,
        server_done: false,
        with_client: Patience::default(),
        with_server: Patience::default(),
        with_errors: Patience::default(),
        said: ErrorStreams::default(),
        recorded: Recorded::default(),
    };
    recorder.run(interrupted);
    Ok(recorder.finish())
}

fn header(settings: &RecordSettings) -> Transcript {
    let session = Session {
        command: settings.command.clone(),
        placeholders: settings.placeholders.clone(),
        env: settings.variables.iter().cloned().collect(),
        ..Session::default()
    };
    let plan = Plan { sessions: vec![session], by_model: true, recorded: true, ..Plan::default() };
    Transcript {
        boundary: settings.boundary.to_owned(),
        check: "recorded".to_owned(),
        facts: Arc::new(settings.facts.clone()),
        plan: Arc::new(plan),
        timeout_scale: 1.0,
        events: Vec::new(),
    }
}

fn own_stdin() -> Result<File, HarnessFault> {
    let own = io::stdin().as_fd().try_clone_to_owned();
    Ok(File::from(own.map_err(|error| format!("cannot read standard input: {error}"))?))
}

fn cannot_start(what: &str, side: &RecordedPeer, error: &io::Error) -> Misconfigured {
    format!("cannot start the {what} {}: {error}", side.argv.first().map_or("", String::as_str)).into()
}

/// Deadline of a peer.
#[derive(Debug, Default)]
struct Patience {
    until: Option<Instant>,
    /// Number of times it passed: first the peer is asked to end, then killed, then given up.
    lost: u32,
}

impl Patience {
    /// Starts the deadline unless it runs or has passed.
    fn begin(&mut self, time: Duration) {
        if self.until.is_none() && self.lost == 0 {
            self.until = Some(Instant::now() + time);
        }
    }

    /// Brings a running deadline forward.
    fn hurry(&mut self, time: Duration) {
        let soon = Instant::now() + time;
        self.until = self.until.map(|until| until.min(soon));
    }

    /// Restarts a running deadline unless it has passed.
    fn renew(&mut self, time: Duration) {
        if self.until.is_some() && self.lost == 0 {
            self.until = Some(Instant::now() + time);
        }
    }

    /// Number of times it has passed, if it passes now. The next one is after `again`.
    fn is_lost(&mut self, again: Duration) -> Option<u32> {
        self.until.filter(|until| Instant::now() >= *until)?;
        self.lost += 1;
        self.until = Some(Instant::now() + again);
        Some(self.lost)
    }
}

struct Recorder {
    from: Receiver<RelayEvent>,
    store: Store,
    begun: Instant,
    client: Option<Running>,
    server: Running,
    grace: Duration,
    steps: usize,
    client_done: bool,
    server_done: bool,
    with_client: Patience,
    with_server: Patience,
    /// Deadline for the standard error of peers that have ended.
    with_errors: Patience,
    said: ErrorStreams,
    recorded: Recorded,
}

impl Recorder {
    fn run(&mut self, interrupted: &AtomicBool) {
        loop {
            match self.from.try_recv() {
                Ok(seen) => {
                    self.take(seen);
                    continue;
                }
                // Flush while idle, so that the record is safe.
                Err(_) => self.store.flush(),
            }
            let again = if self.recorded.interrupted { INTERRUPT_GRACE } else { TERM_GRACE };
            if self.is_over() {
                self.with_errors.begin(LAST_WORDS);
                if self.said.is_whole(self.client.is_some()) || self.with_errors.is_lost(again).is_some() {
                    return;
                }
            }
            match self.from.recv_timeout(TICK) {
                Ok(seen) => self.take(seen),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if interrupted.load(Ordering::Relaxed) && !self.recorded.interrupted {
                self.interrupt();
            }
            let client_lasts = self.client.as_ref().is_some_and(|client| !client.exited || !self.client_done);
            if client_lasts && let Some(times) = self.with_client.is_lost(again) {
                self.press_client(times);
            }
            let server_lasts = !self.server.exited || !self.server_done;
            if server_lasts && let Some(times) = self.with_server.is_lost(again) {
                self.press_server(times);
            }
        }
    }

    /// True if everything has ended. Our own client may run as long as it likes, with or without a server.
    fn is_over(&self) -> bool {
        let client_over = self.client.as_ref().is_none_or(|client| client.exited && self.client_done);
        self.server.exited && self.server_done && client_over
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn take(&mut self, seen: RelayEvent) {
        let RelayEvent { at_us, what } = seen;
        match what {
            RelayEventKind::Sent(bytes) => {
                self.recorded.sent_bytes += bytes.len() as u64;
                self.recorded.lines.0 += memchr::memchr_iter(b'\n', &bytes).count() as u64;
                let kind = EventKind::Sent { step: self.steps, payload: relay::payload(&bytes) };
                self.steps += 1;
                self.store.push(at_us, kind);
            }
            // A server that has exited did not see the end of its input.
            RelayEventKind::Kind(EventKind::StdinClosed) if self.server.exited => {}
            RelayEventKind::Kind(kind) => {
                if let EventKind::Received { bytes } = &kind {
                    self.recorded.received_bytes += bytes.0.len() as u64;
                    self.recorded.lines.1 += memchr::memchr_iter(b'\n', &bytes.0).count() as u64;
                    // Each answer restarts the server's time.
                    self.with_server.renew(self.grace);
                }
                self.store.push(at_us, kind);
            }
            RelayEventKind::Errors(whose, bytes) => self.said.take(whose, &bytes),
            RelayEventKind::ErrorsDone(whose) => self.said.done(whose),
            RelayEventKind::ClientDone => {
                self.client_done = true;
                self.with_server.begin(self.grace);
            }
            RelayEventKind::ServerDone => self.server_done = true,
            RelayEventKind::ClientExited(exit) => {
                if let Some(client) = &mut self.client {
                    client.exited = true;
                }
                if !self.recorded.killed.contains(&"client") {
                    self.recorded.client = Some(exit);
                    self.store.push(at_us, EventKind::ClientExited { exit });
                }
                // A descendant may hold its output open.
                self.with_client.begin(self.grace);
                self.with_server.begin(self.grace);
            }
            RelayEventKind::ServerExited(exit) => {
                self.server.exited = true;
                if !self.recorded.killed.contains(&"server") {
                    self.recorded.server = Some(exit);
                    self.store.push(at_us, EventKind::Exited { exit });
                }
                self.with_server.begin(self.grace);
            }
        }
    }

    /// Handles an interrupt: asks the client to end, or the server if the client is not ours.
    fn interrupt(&mut self) {
        self.recorded.interrupted = true;
        self.grace = self.grace.min(INTERRUPT_GRACE);
        for patience in [&mut self.with_client, &mut self.with_server] {
            patience.hurry(self.grace);
        }
        match &self.client {
            Some(client) if !client.exited => {
                client.signal(Signal::TERM);
                self.with_client.begin(self.grace);
            }
            _ => {
                self.store.push(self.now_us(), EventKind::Signalled { signal: "TERM".to_owned() });
                self.server.signal(Signal::TERM);
                self.with_server.begin(self.grace);
            }
        }
    }

    /// Kills a client that did not end, or whose output is held open.
    fn press_client(&mut self, times: u32) {
        let Some(client) = &mut self.client else { return };
        if times == 1 && !client.exited {
            self.recorded.killed.push("client");
        }
        client.signal(Signal::KILL);
        if times > 1 {
            client.exited = true;
            self.client_done = true;
        }
    }

    /// Presses a server that did not end, or whose output is held open.
    fn press_server(&mut self, times: u32) {
        if times == 1 && !self.server.exited {
            let waited_ms = u64::try_from(self.grace.as_millis()).unwrap_or(u64::MAX);
            let now_us = self.now_us();
            if !self.recorded.interrupted {
                // Hurried by an interrupt, it had less time than it is owed.
                self.store.push(
                    now_us,
                    EventKind::DeadlinePassed { awaited: Awaited::Exit, waited_ms, slept: false },
                );
            }
            self.store.push(now_us, EventKind::Killed);
            self.recorded.killed.push("server");
        }
        self.server.signal(if times == 1 { Signal::TERM } else { Signal::KILL });
        if times > 2 {
            self.server.exited = true;
            self.server_done = true;
        }
    }

    fn finish(mut self) -> Recorded {
        let now_us = self.now_us();
        for kind in std::mem::take(&mut self.said).kinds() {
            self.store.push(now_us, kind);
        }
        self.store.close();
        self.server.reap();
        self.client.iter_mut().for_each(Running::reap);
        self.recorded.stopped = self.store.stopped().map(str::to_owned);
        self.recorded.is_broken = self.store.is_broken();
        self.recorded.elapsed = self.begun.elapsed();
        self.recorded
    }
}
