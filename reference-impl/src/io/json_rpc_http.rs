//! `json-rpc --http ADDRESS`: the reference JSON-RPC server behind the HTTP server of `http_server.rs`.

use std::collections::HashMap;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::http_server::{self, Front, HttpReply, Plain, Service};
use crate::http::HttpRequest;
use crate::json_rpc::{
    Channel, Choices, Components, Config, ErrorStatus, Failure, FailureKind, GzipOverHttp, Output,
    OverSizeBody, Server, Ticket, inflate,
};
use crate::machine::Millis;

/// Pause while the number of calls is at its limit.
const PAUSE: Duration = Duration::from_millis(5);

/// Handler of bodies, independent of their transport.
pub(crate) trait Exchanges: Send {
    /// Takes one body. Its reply is among the outputs now or after a later [`Exchanges::run`].
    fn receive(&mut self, body: &[u8], ticket: Ticket, now: Millis, out: &mut Vec<Output>);
    /// Refuses a body that cannot be passed on.
    fn refuse(&mut self, why: Failure, ticket: Ticket, out: &mut Vec<Output>);
    /// Continues the running calls.
    fn run(&mut self, now: Millis, out: &mut Vec<Output>);
    /// Time of the next [`Exchanges::run`], if any.
    fn wake_at(&self) -> Option<Millis>;
    /// True if no more bodies should be passed on.
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

/// Result of a call: its body, if any, and true if it is an error.
type Answer = (Option<Vec<u8>>, bool);

struct State {
    exchanges: Box<dyn Exchanges>,
    tickets: Ticket,
    answers: HashMap<Ticket, Answer>,
    outputs: Vec<Output>,
}

impl State {
    /// Distributes the outputs. Log lines go to standard error; streams do not exist over HTTP.
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

/// The server behind all connections.
struct Hub {
    state: Mutex<State>,
    changed: Condvar,
    start: Instant,
    message_bytes_max: usize,
    inflates: bool,
    choices: Choices,
}

/// Serves until the process is terminated. Returns the exit status if it cannot: 2 for an address in use, else 70.
pub(crate) fn serve(address: SocketAddr, config: Config) -> i32 {
    let components = Components::new(&config);
    let exchanges = Box::new(Server::new(config.clone(), components));
    serve_with(address, &config, exchanges, Box::new(Plain))
}

/// [`serve`] with other parts.
pub(crate) fn serve_with(
    address: SocketAddr,
    config: &Config,
    exchanges: Box<dyn Exchanges>,
    front: Box<dyn Front>,
) -> i32 {
    let hub = Arc::new(Hub {
        state: Mutex::new(State { exchanges, tickets: 0, answers: HashMap::new(), outputs: Vec::new() }),
        changed: Condvar::new(),
        start: Instant::now(),
        message_bytes_max: config.limits.rpc_message_bytes_max,
        inflates: config.features.gzip && config.choices.gzip_over_http == GzipOverHttp::Accept,
        choices: config.choices,
    });
    let clock = Arc::clone(&hub);
    thread::spawn(move || clock.keep_going());
    http_server::serve("json-rpc", address, config.limits.rpc_message_bytes_max, Box::new(hub), front)
}

impl Hub {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Millis {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(Millis::MAX)
    }

    /// Continues calls whose time has come.
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

    /// Gets the answer to one body, or to a refusal.
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

    fn message(&self, (body, is_error): Answer, keeps_open: bool) -> HttpReply {
        let status = match (&body, self.choices.error_status) {
            (None, _) => 204,
            (Some(_), ErrorStatus::BadRequest) if is_error => 400,
            _ => 200,
        };
        HttpReply::json(status, body.unwrap_or_default(), keeps_open)
    }
}

impl Service for Arc<Hub> {
    fn respond(&self, request: &HttpRequest) -> HttpReply {
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
}
