//! Listens to two live peers: starts them, stands between them, passes on every byte as it came, and writes down what
//! was said, in which order and when.
//!
//! One thread for each direction blocks in reading and writing, so that nothing waits for a turn; a bounded channel
//! brings what they saw to the one that writes the file. Nobody looks into the bytes, but for the secrets that are not
//! to be stored.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;

use crate::blame::{HarnessFault, Misconfigured, Unprepared};
use crate::facts::Facts;
use crate::plan::{Plan, Session};
use crate::transcript::{Awaited, Exit, Kind, Transcript};

mod errors;
mod relay;
mod running;
mod store;

use errors::Said;
use relay::{Seen, Teller, What, Whose};
use running::{Running, start, watch};
pub use store::{Hidden, Store};

/// Messages under way to the file; each holds one read.
const CHANNEL_MAX: usize = 256;
/// How often it is looked whether the user wants an end.
const TICK: Duration = Duration::from_millis(50);
/// How long standard error of peers that have ended is still read: a descendant may hold it open.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How long each peer may take to end once the user asked for it, and then until it is forced.
const INTERRUPT_GRACE: Duration = Duration::from_millis(300);
/// Time between the request to end and the end by force.
const TERM_GRACE: Duration = Duration::from_secs(2);

/// One of the two.
#[derive(Debug, Clone)]
pub struct Side {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Variables beside those that the recorder itself has.
    pub env: Vec<(String, String)>,
}

/// What is to be recorded.
pub struct Settings {
    /// Boundary between the two.
    pub boundary: &'static str,
    /// What is known of the server.
    pub facts: Facts,
    /// Command of the boundary that the server plays.
    pub command: String,
    /// What stood in the places of its placeholders.
    pub placeholders: BTreeMap<String, String>,
    /// Variables of the server that the boundary gives a meaning.
    pub variables: Vec<(String, String)>,
    /// Who asks; `None`: whoever is at the other end of the recorder's own standard streams.
    pub client: Option<Side>,
    /// Who answers.
    pub server: Side,
    /// Where the recorder's own standard output is, for a client at its other end.
    pub stdout: File,
    /// Where what the peers write to standard error is passed on to.
    pub stderr: File,
    /// How long the server, and after a request to end the client, may take to end.
    pub grace: Duration,
    /// What is said and not stored.
    pub hidden: Hidden,
    /// Largest size of the file.
    pub bytes_max: u64,
}

/// How a recording went.
#[derive(Debug, Default)]
pub struct Recorded {
    /// How the client ended; none where it is not ours, or was killed.
    pub client: Option<Exit>,
    /// How the server ended; none where it was killed.
    pub server: Option<Exit>,
    /// Bytes of the client's.
    pub sent_bytes: u64,
    /// Bytes of the server's.
    pub received_bytes: u64,
    /// Line feeds among each.
    pub lines: (u64, u64),
    /// Why not everything is in the file.
    pub stopped: Option<String>,
    /// The file could not be written.
    pub is_broken: bool,
    /// The user asked for an end.
    pub interrupted: bool,
    /// Peers that did not end and were killed.
    pub killed: Vec<&'static str>,
    /// How long it took.
    pub elapsed: Duration,
}

/// Records until both peers have ended; `interrupted` asks for an end.
///
/// # Errors
/// Why nothing can be recorded, by whose doing: the file cannot be begun, or a peer cannot be started.
pub fn record(settings: Settings, file: File, interrupted: &AtomicBool) -> Result<Recorded, Unprepared> {
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
    let teller = Teller { begun, to };
    let mut store = store;
    // Signatures are judged by the time of day.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let at_us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(0);
    store.push(at_us, Kind::Clock { unix_ms: u64::try_from(since.as_millis()).unwrap_or(0) });
    store.push(server.at_us, Kind::Started { argv: settings.server.argv.clone() });
    if let (Some(client), Some(side)) = (&client, &settings.client) {
        store.push(client.at_us, Kind::ClientStarted { argv: side.argv.clone() });
    }
    let (from_client, to_client) = match &mut client {
        Some(client) => client.pipes()?,
        None => (own_stdin()?, settings.stdout),
    };
    let (from_server, to_server) = server.pipes()?;
    for (running, whose) in [(Some(&mut server), Whose::Server), (client.as_mut(), Whose::Client)] {
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
    watch(server.pid, teller.clone(), What::ServerExited);
    if let Some(client) = &client {
        watch(client.pid, teller.clone(), What::ClientExited);
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
        said: Said::default(),
        recorded: Recorded::default(),
    };
    recorder.run(interrupted);
    Ok(recorder.finish())
}

fn header(settings: &Settings) -> Transcript {
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

fn cannot_start(what: &str, side: &Side, error: &io::Error) -> Misconfigured {
    format!("cannot start the {what} {}: {error}", side.argv.first().map_or("", String::as_str)).into()
}

/// How long somebody may still take to end.
#[derive(Debug, Default)]
struct Patience {
    until: Option<Instant>,
    /// Times that it was over: first somebody is asked to end, then forced, then given up.
    lost: u32,
}

impl Patience {
    /// Begins to run, unless it does.
    fn begin(&mut self, time: Duration) {
        if self.until.is_none() && self.lost == 0 {
            self.until = Some(Instant::now() + time);
        }
    }

    /// Is over soon, if it runs.
    fn hurry(&mut self, time: Duration) {
        let soon = Instant::now() + time;
        self.until = self.until.map(|until| until.min(soon));
    }

    /// Runs from now on again, unless it was lost already.
    fn renew(&mut self, time: Duration) {
        if self.until.is_some() && self.lost == 0 {
            self.until = Some(Instant::now() + time);
        }
    }

    /// Whether it is over just now; how often it was. The next time it is over after `again`.
    fn is_lost(&mut self, again: Duration) -> Option<u32> {
        self.until.filter(|until| Instant::now() >= *until)?;
        self.lost += 1;
        self.until = Some(Instant::now() + again);
        Some(self.lost)
    }
}

struct Recorder {
    from: Receiver<Seen>,
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
    /// For the last words of peers that have ended.
    with_errors: Patience,
    said: Said,
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
                // What is written down is safe before anybody waits.
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

    /// A client of our own may do what it likes for as long as it likes, with or without a server.
    fn is_over(&self) -> bool {
        let client_over = self.client.as_ref().is_none_or(|client| client.exited && self.client_done);
        self.server.exited && self.server_done && client_over
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn take(&mut self, seen: Seen) {
        let Seen { at_us, what } = seen;
        match what {
            What::Sent(bytes) => {
                self.recorded.sent_bytes += bytes.len() as u64;
                self.recorded.lines.0 += memchr::memchr_iter(b'\n', &bytes).count() as u64;
                let kind = Kind::Sent { step: self.steps, payload: relay::payload(&bytes) };
                self.steps += 1;
                self.store.push(at_us, kind);
            }
            // A server that is gone saw no end of its input.
            What::Kind(Kind::StdinClosed) if self.server.exited => {}
            What::Kind(kind) => {
                if let Kind::Received { bytes } = &kind {
                    self.recorded.received_bytes += bytes.0.len() as u64;
                    self.recorded.lines.1 += memchr::memchr_iter(b'\n', &bytes.0).count() as u64;
                    // Who still answers has its time from the last answer on.
                    self.with_server.renew(self.grace);
                }
                self.store.push(at_us, kind);
            }
            What::Errors(whose, bytes) => self.said.take(whose, &bytes),
            What::ErrorsDone(whose) => self.said.done(whose),
            What::ClientDone => {
                self.client_done = true;
                self.with_server.begin(self.grace);
            }
            What::ServerDone => self.server_done = true,
            What::ClientExited(exit) => {
                if let Some(client) = &mut self.client {
                    client.exited = true;
                }
                if !self.recorded.killed.contains(&"client") {
                    self.recorded.client = Some(exit);
                    self.store.push(at_us, Kind::ClientExited { exit });
                }
                // Something that it started may hold its output open.
                self.with_client.begin(self.grace);
                self.with_server.begin(self.grace);
            }
            What::ServerExited(exit) => {
                self.server.exited = true;
                if !self.recorded.killed.contains(&"server") {
                    self.recorded.server = Some(exit);
                    self.store.push(at_us, Kind::Exited { exit });
                }
                self.with_server.begin(self.grace);
            }
        }
    }

    /// The user wants an end: the client is asked for it, or the server where the client is not ours.
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
                self.store.push(self.now_us(), Kind::Signalled { signal: "TERM".to_owned() });
                self.server.signal(Signal::TERM);
                self.with_server.begin(self.grace);
            }
        }
    }

    /// The client did not end, or something holds its output open.
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

    /// The server did not end, or something holds its output open.
    fn press_server(&mut self, times: u32) {
        if times == 1 && !self.server.exited {
            let waited_ms = u64::try_from(self.grace.as_millis()).unwrap_or(u64::MAX);
            let now_us = self.now_us();
            if !self.recorded.interrupted {
                // In the hurry of an interrupt it had less time than anybody may ask for.
                self.store.push(now_us, Kind::DeadlinePassed { awaited: Awaited::Exit, waited_ms });
            }
            self.store.push(now_us, Kind::Killed);
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
