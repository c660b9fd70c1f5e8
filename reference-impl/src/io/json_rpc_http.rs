//! `json-rpc --http ADDRESS`: the reference JSON-RPC server as an HTTP server on a loopback address.
//!
//! A thread for each connection, a bounded number of them; one server behind them all. The HTTP is our own so that
//! every byte and every second is bounded, which small server libraries do not do for the head of a request and for
//! clients that say nothing.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::complain;
use crate::http::{HttpCaps, HttpRequest, HttpStep, RequestReader, reason_phrase};
use crate::json_rpc::{
    Channel, Choices, Components, Config, ErrorStatus, Failure, FailureKind, GzipOverHttp, Output,
    OverSizeBody, Server, Ticket, inflate,
};
use crate::machine::Millis;

/// Bytes of the head of a request.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a body that are read to get behind it.
const DISCARD_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Connections at the same time; further ones are told so and closed.
const CONNECTIONS_MAX: usize = 512;
/// Life of a connection on which nothing happens, and longest wait for a client that does not read.
const IDLE: Duration = Duration::from_secs(60);
/// How long bytes of a client are read and dropped before the connection is closed, so that it gets the reply.
const LINGER: Duration = Duration::from_millis(500);
/// Pause while more is under way than is taken at once, and after the system refused to accept.
const PAUSE: Duration = Duration::from_millis(5);
const READ_BYTES: usize = 16 * 1024;

/// Takes the word `--http` and the address behind it out of the arguments.
///
/// # Errors
/// There is no address behind it, or one that others than this machine can reach.
pub fn split_http(arguments: &[String]) -> Result<(Option<SocketAddr>, Vec<String>), String> {
    let mut rest = arguments.to_vec();
    let Some(at) = rest.iter().position(|argument| argument == "--http") else { return Ok((None, rest)) };
    let wrong = "--http needs a loopback address such as 127.0.0.1:8080";
    if at + 1 >= rest.len() {
        return Err(wrong.to_owned());
    }
    let text = rest.remove(at + 1);
    rest.remove(at);
    let address: Option<SocketAddr> = text.parse().ok();
    match address.filter(|address| address.ip().is_loopback()) {
        Some(address) => Ok((Some(address), rest)),
        None => Err(format!("{wrong}, not {text:?}")),
    }
}

/// What answers bodies, whoever carries them.
pub trait Exchanges: Send {
    /// Takes one body; its reply is among the outputs now or after a later [`Exchanges::run`].
    fn receive(&mut self, body: &[u8], ticket: Ticket, now: Millis, out: &mut Vec<Output>);
    /// Answers a body that cannot be handed over.
    fn refuse(&mut self, why: Failure, ticket: Ticket, out: &mut Vec<Output>);
    /// Goes on with what is under way.
    fn run(&mut self, now: Millis, out: &mut Vec<Output>);
    /// When it wants to.
    fn wake_at(&self) -> Option<Millis>;
    /// Nothing more should be handed over.
    fn is_full(&self) -> bool;
}

impl Exchanges for Server {
    fn receive(&mut self, body: &[u8], ticket: Ticket, now: Millis, out: &mut Vec<Output>) {
        Self::receive(self, body, ticket, Channel::Exchange, now, out);
    }

    fn refuse(&mut self, why: Failure, ticket: Ticket, out: &mut Vec<Output>) {
        Self::refuse(self, ticket, why, out);
    }

    fn run(&mut self, now: Millis, out: &mut Vec<Output>) {
        Self::run(self, now, out);
    }

    fn wake_at(&self) -> Option<Millis> {
        Self::wake_at(self)
    }

    fn is_full(&self) -> bool {
        Self::is_full(self)
    }
}

/// A reply of the HTTP side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpReply {
    /// Status code.
    pub status: u16,
    /// The body; JSON where there is one.
    pub body: Vec<u8>,
    /// Another request may follow.
    pub keeps_open: bool,
}

impl HttpReply {
    fn empty(status: u16, keeps_open: bool) -> Self {
        Self { status, body: Vec::new(), keeps_open }
    }
}

/// The seam between HTTP and messages. Every method passes on what it is given.
pub trait Front: Send + Sync {
    /// Sees a request before it is looked at.
    fn request(&self, request: HttpRequest) -> HttpRequest {
        request
    }

    /// Sees a reply before it is sent; `request` is `None` where what came was none.
    fn reply(&self, _request: Option<&HttpRequest>, reply: HttpReply) -> HttpReply {
        reply
    }

    /// Connections that are served at the same time; what comes on top waits where this is true, else it is refused.
    fn connections(&self) -> (usize, bool) {
        (CONNECTIONS_MAX, false)
    }

    /// Is told of a connection that ended within a request.
    fn broken_off(&self) {}

    /// Whether connections end behind a reply that says they go on.
    fn closes_silently(&self) -> bool {
        false
    }
}

/// The correct one.
struct Plain;

impl Front for Plain {}

/// What a call came to: a body or none, and whether it is an error.
type Answer = (Option<Vec<u8>>, bool);

struct State {
    exchanges: Box<dyn Exchanges>,
    tickets: Ticket,
    answers: HashMap<Ticket, Answer>,
    outputs: Vec<Output>,
}

impl State {
    /// Sorts what was said; log lines go to standard error, streams do not exist over HTTP.
    fn sort(&mut self) {
        for output in self.outputs.drain(..) {
            match output {
                Output::Reply { ticket, body, is_error } => {
                    self.answers.insert(ticket, (body, is_error));
                }
                Output::Log(line) => {
                    let _ = std::io::stderr().write_all(&line);
                }
                Output::Notice(_) => {}
            }
        }
    }
}

/// The one server behind all connections.
struct Hub {
    state: Mutex<State>,
    changed: Condvar,
    start: Instant,
    front: Box<dyn Front>,
    caps: HttpCaps,
    message_bytes_max: usize,
    inflates: bool,
    choices: Choices,
    connections: AtomicUsize,
}

/// Serves until the process is ended. Returns the exit status where it cannot: 2 for an address that is taken, else 70.
pub fn serve(address: SocketAddr, config: Config) -> i32 {
    let components = Components::new(&config);
    let exchanges = Box::new(Server::new(config.clone(), components));
    serve_with(address, &config, exchanges, Box::new(Plain))
}

/// As [`serve`], with other parts.
pub fn serve_with(
    address: SocketAddr,
    config: &Config,
    exchanges: Box<dyn Exchanges>,
    front: Box<dyn Front>,
) -> i32 {
    let listener = match TcpListener::bind(address) {
        Ok(listener) => listener,
        Err(error) => {
            complain(&format!("json-rpc: cannot listen on {address}: {error}"));
            return 2;
        }
    };
    if let Ok(address) = listener.local_addr() {
        complain(&format!("json-rpc: listening on http://{address}/"));
    }
    let hub = Arc::new(Hub {
        state: Mutex::new(State { exchanges, tickets: 0, answers: HashMap::new(), outputs: Vec::new() }),
        changed: Condvar::new(),
        start: Instant::now(),
        front,
        caps: HttpCaps {
            head_bytes_max: HEAD_BYTES_MAX,
            body_bytes_max: config.limits.rpc_message_bytes_max,
            discard_bytes_max: DISCARD_BYTES_MAX,
        },
        message_bytes_max: config.limits.rpc_message_bytes_max,
        inflates: config.features.gzip && config.choices.gzip_over_http == GzipOverHttp::Accept,
        choices: config.choices,
        connections: AtomicUsize::new(0),
    });
    let clock = Arc::clone(&hub);
    thread::spawn(move || clock.keep_going());
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            thread::sleep(PAUSE);
            continue;
        };
        let (most, waits) = hub.front.connections();
        while waits && hub.connections.load(Ordering::SeqCst) >= most {
            thread::sleep(PAUSE);
        }
        let is_one_too_many = hub.connections.fetch_add(1, Ordering::SeqCst) >= most;
        let own = Arc::clone(&hub);
        let served = thread::Builder::new().spawn(move || {
            let mut connection = Connection { hub: &own, stream };
            if is_one_too_many {
                if connection.send(&HttpReply::empty(503, false)) {
                    connection.linger();
                }
            } else {
                connection.serve();
            }
            own.connections.fetch_sub(1, Ordering::SeqCst);
        });
        if served.is_err() {
            hub.connections.fetch_sub(1, Ordering::SeqCst);
        }
    }
    70
}

impl Hub {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Millis {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(Millis::MAX)
    }

    /// Lets calls go on whose time has come.
    fn keep_going(&self) {
        let mut state = self.lock();
        loop {
            let now = self.now();
            state = match state.exchanges.wake_at() {
                Some(at) if at <= now => {
                    let State { exchanges, outputs, .. } = &mut *state;
                    exchanges.run(now, outputs);
                    state.sort();
                    self.changed.notify_all();
                    state
                }
                Some(at) => {
                    let wait = Duration::from_millis(at - now);
                    self.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Has one body answered, or refused.
    fn exchange(&self, body: Result<&[u8], Failure>) -> Answer {
        let mut state = self.lock();
        while state.exchanges.is_full() {
            state = self.changed.wait_timeout(state, PAUSE).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.tickets += 1;
        let ticket = state.tickets;
        let State { exchanges, outputs, .. } = &mut *state;
        match body {
            Ok(body) => exchanges.receive(body, ticket, self.now(), outputs),
            Err(why) => exchanges.refuse(why, ticket, outputs),
        }
        state.sort();
        self.changed.notify_all();
        loop {
            if let Some(answer) = state.answers.remove(&ticket) {
                return answer;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The reply to a request.
    fn reply(&self, request: &HttpRequest) -> HttpReply {
        let keeps_open = request.keeps_open;
        if request.method != "POST" {
            return HttpReply::empty(405, keeps_open);
        }
        let content_type = request.content_type.as_deref().unwrap_or("application/json");
        let name = content_type.split(';').next().unwrap_or_default().trim();
        if !name.eq_ignore_ascii_case("application/json") {
            return HttpReply::empty(415, keeps_open);
        }
        let too_large = || {
            let details = format!("a message has at most {} bytes", self.message_bytes_max);
            Failure::new(FailureKind::MessageTooLarge, details)
        };
        let body = request.body.as_deref().ok_or_else(too_large);
        let inflated;
        let body = match request.content_encoding.as_deref() {
            None | Some("identity") => body,
            Some("gzip") if self.inflates => {
                inflated = body.and_then(|body| inflate(body, self.message_bytes_max));
                inflated.as_deref().map_err(Clone::clone)
            }
            Some(_) => return HttpReply::empty(415, keeps_open),
        };
        let is_too_large = matches!(&body, Err(why) if why.kind == FailureKind::MessageTooLarge);
        let reply = self.message(self.exchange(body), keeps_open);
        match self.choices.over_size_body {
            OverSizeBody::Status if is_too_large => HttpReply { status: 413, ..reply },
            _ => reply,
        }
    }

    fn message(&self, (body, is_error): Answer, keeps_open: bool) -> HttpReply {
        let status = match (&body, self.choices.error_status) {
            (None, _) => 204,
            (Some(_), ErrorStatus::BadRequest) if is_error => 400,
            _ => 200,
        };
        HttpReply { status, body: body.unwrap_or_default(), keeps_open }
    }
}

/// One connection.
struct Connection<'a> {
    hub: &'a Hub,
    stream: TcpStream,
}

impl Connection<'_> {
    fn serve(&mut self) {
        let timeouts = [
            self.stream.set_read_timeout(Some(IDLE)),
            self.stream.set_write_timeout(Some(IDLE)),
            self.stream.set_nodelay(true),
        ];
        if timeouts.iter().any(Result::is_err) {
            return;
        }
        let hub = self.hub;
        let mut reader = RequestReader::new(hub.caps);
        let mut buffer = vec![0; READ_BYTES];
        while let Ok(count @ 1..) = self.stream.read(&mut buffer) {
            let mut input = buffer.get(..count).unwrap_or_default();
            while !input.is_empty() {
                let reply = match reader.take(&mut input) {
                    HttpStep::More => continue,
                    HttpStep::Continue => {
                        if self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").is_err() {
                            return;
                        }
                        continue;
                    }
                    HttpStep::Request(request) => {
                        let request = hub.front.request(request);
                        let reply = hub.reply(&request);
                        hub.front.reply(Some(&request), reply)
                    }
                    HttpStep::Bad(status) => hub.front.reply(None, HttpReply::empty(status, false)),
                };
                if !self.send(&reply) {
                    return;
                }
                if !reply.keeps_open || hub.front.closes_silently() {
                    return self.linger();
                }
            }
        }
        if !reader.is_at_rest() {
            hub.front.broken_off();
        }
    }

    fn send(&mut self, reply: &HttpReply) -> bool {
        let HttpReply { status, body, keeps_open } = reply;
        let mut text = format!("HTTP/1.1 {status} {}\r\n", reason_phrase(*status));
        if *status == 405 {
            text.push_str("Allow: POST\r\n");
        }
        if !body.is_empty() {
            text.push_str("Content-Type: application/json\r\n");
        }
        if *status != 204 {
            text.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        if !keeps_open {
            text.push_str("Connection: close\r\n");
        }
        text.push_str("\r\n");
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(body);
        self.stream.write_all(&bytes).is_ok()
    }

    /// Closing with bytes unread would destroy the reply on its way (RFC 9112 §9.6).
    fn linger(&mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
        let end = Instant::now() + LINGER;
        let mut buffer = [0; READ_BYTES];
        while let left @ 1.. = end.saturating_duration_since(Instant::now()).as_millis() {
            let left = Duration::from_millis(u64::try_from(left).unwrap_or(1));
            if self.stream.set_read_timeout(Some(left)).is_err()
                || !matches!(self.stream.read(&mut buffer), Ok(1..))
            {
                return;
            }
        }
    }
}
