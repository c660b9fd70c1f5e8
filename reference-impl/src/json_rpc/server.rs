//! The server: takes one body, returns one body or none, and emits stream messages in between.

mod under_way;

use std::collections::HashMap;

use memchr::memchr;

use super::choices::RpcPrefix;
use super::decode;
use super::exchange::{BatchReply, Exchange, Ticket as TicketOf};
use super::job::{Job, Jobs, ReplyTo};
use super::method::{Answer, Call, Outcome, Task, World};
use super::reply::{self, Failure, FailureKind, NULL};
use super::request::{self, Refusal, Request};
use super::{Components, Config, gzip, log};
use crate::json::{Kind, Scanner, Traits, write_str};
use crate::machine::Millis;

/// Id of a body. It comes back with the reply.
pub type Ticket = TicketOf;

/// Kind of transport of a body, if it affects the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// Both sides send messages at any time, one per line; streams are possible.
    Duplex,
    /// Each body has its own reply (HTTP); there are no streams.
    Exchange,
}

/// Output of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Answer to a body. Each body gets exactly one.
    Reply {
        /// Ticket of the body.
        ticket: Ticket,
        /// Body of the reply; `None` if there is nothing to answer.
        body: Option<Vec<u8>>,
        /// True for a single error.
        is_error: bool,
    },
    /// Message on the server's own initiative, a part of a stream.
    Notice(Vec<u8>),
    /// A log line with its LF.
    Log(Vec<u8>),
}

impl Output {
    fn len(&self) -> usize {
        match self {
            Self::Reply { body, .. } => body.as_ref().map_or(0, Vec::len),
            Self::Notice(text) | Self::Log(text) => text.len(),
        }
    }
}

/// State of a server, independent of its transport. Time is a parameter, and [`Server::wake_at`] gives the time of the
/// next [`Server::run`].
pub struct Server {
    config: Config,
    components: Components,
    world: World,
    scanner: Scanner,
    jobs: Jobs,
    exchanges: HashMap<u64, Exchange>,
    exchange_last: u64,
    /// Size of unfinished batch replies in bytes.
    batch_bytes: usize,
    stream_last: u64,
}

/// Origin of a body.
#[derive(Debug, Clone, Copy)]
struct Origin {
    ticket: Ticket,
    channel: Channel,
    /// True if the body was wrapped in another.
    nested: bool,
}

/// Immediate result of a call.
enum Called {
    Done(Outcome),
    Later { task: Box<dyn Task>, timeout_ms: u64, streams: bool },
}

impl Server {
    /// Creates a server that has received nothing.
    pub fn new(config: Config, components: Components) -> Self {
        Self {
            scanner: Scanner::new(config.limits.nesting_max),
            config,
            components,
            world: World::default(),
            jobs: Jobs::default(),
            exchanges: HashMap::new(),
            exchange_last: 0,
            batch_bytes: 0,
            stream_last: 0,
        }
    }

    /// Configuration of the server.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Takes one body: a request or a batch. Its reply is among the outputs, now or after a later [`Server::run`].
    pub fn receive(
        &mut self,
        body: &[u8],
        ticket: Ticket,
        channel: Channel,
        now: Millis,
        out: &mut Vec<Output>,
    ) {
        if body.len() > self.config.limits.rpc_message_bytes_max {
            return self.refuse_too_large(ticket, out);
        }
        self.read(body, None, Origin { ticket, channel, nested: false }, now, out);
    }

    /// Refuses a body over the size limit.
    pub(crate) fn refuse_too_large(&self, ticket: Ticket, out: &mut Vec<Output>) {
        let bytes_max = self.config.limits.rpc_message_bytes_max;
        let details = format!("a message has at most {bytes_max} bytes");
        self.refuse(ticket, Failure::new(FailureKind::MessageTooLarge, details), out);
    }

    /// Refuses a body that cannot be read.
    pub fn refuse(&self, ticket: Ticket, failure: Failure, out: &mut Vec<Output>) {
        self.reply(ticket, NULL, Err(failure), out);
    }

    fn reply(&self, ticket: Ticket, id: &str, outcome: Outcome, out: &mut Vec<Output>) {
        let is_error = outcome.is_err();
        let body = reply::response(id, outcome, self.config.limits.rpc_message_bytes_max);
        out.push(Output::Reply { ticket, body: Some(body), is_error });
    }

    /// Handles a text. `original` is the text as it was sent, if `text` is a rewritten form.
    fn read(
        &mut self,
        text: &[u8],
        original: Option<&[u8]>,
        origin: Origin,
        now: Millis,
        out: &mut Vec<Output>,
    ) {
        let Origin { ticket, channel, nested } = origin;
        let Config { choices, features, limits, .. } = &self.config;
        let (choices, features, nesting_max) = (*choices, *features, limits.nesting_max);
        let scanned = match self.scanner.scan(text) {
            Ok(scanned) => scanned,
            Err(error) => return self.refuse(ticket, decode::refusal(error), out),
        };
        let traits = scanned.traits();
        // A line holds no line feed.
        let is_line = channel == Channel::Duplex && !nested;
        let breaks = || !is_line && memchr(b'\n', text).is_some();
        if original.is_none() && (decode::needs_rewriting(traits, &choices) || breaks()) {
            return match decode::rewritten(text, traits, nesting_max, &choices) {
                Ok(rewritten) => self.read(&rewritten, Some(text), origin, now, out),
                Err(failure) => self.refuse(ticket, failure, out),
            };
        }
        // The canonical form matters only if messages are signed.
        let suspect =
            self.components.verifier.is_some() && (original.is_some() || traits != Traits::default());
        let suspect = suspect.then_some(original.unwrap_or(text));
        if scanned.kind() == Kind::Array {
            if !features.batch {
                return self.refuse(ticket, Failure::invalid_request("batches are not supported"), out);
            }
            return self.batch(text, suspect, ticket, now, out);
        }
        if features.gzip
            && !nested
            && channel == Channel::Duplex
            && let Some(wrapped) = gzip::wrapped(&scanned)
        {
            let bytes_max = self.config.limits.rpc_message_bytes_max;
            return match wrapped.and_then(|body| gzip::unwrapped(body, bytes_max)) {
                Ok(body) => self.read(&body, None, Origin { nested: true, ..origin }, now, out),
                Err(failure) => self.refuse(ticket, failure, out),
            };
        }
        let request = request::read(&scanned, &choices);
        let request = signable(request, suspect.is_some_and(|text| decode::is_ambiguous(text, nesting_max)));
        self.single(request, origin, now, out);
    }

    fn single(
        &mut self,
        request: Result<Request<'_>, Refusal<'_>>,
        origin: Origin,
        now: Millis,
        out: &mut Vec<Output>,
    ) {
        let Origin { ticket, channel, .. } = origin;
        let request = match request {
            Ok(request) => request,
            Err(Refusal::Answer(failure, id)) => {
                return self.reply(ticket, id.unwrap_or(NULL), Err(failure), out);
            }
            Err(Refusal::Silent) => {
                return out.push(Output::Reply { ticket, body: None, is_error: false });
            }
        };
        let room = self.config.limits.rpc_message_bytes_max;
        let called = self.call(&request, room, now, out);
        let label = self.label(&request, now);
        let Some(id) = request.id else {
            out.push(Output::Reply { ticket, body: None, is_error: false });
            if let Called::Later { task, timeout_ms, .. } = called {
                self.jobs.add(Job { reply_to: None, deadline: now + timeout_ms, task, stream: None, label });
            }
            return;
        };
        match called {
            Called::Done(outcome) => self.reply(ticket, id, outcome, out),
            Called::Later { task, timeout_ms, streams } => {
                let exchange = self.open(Exchange { ticket, waiting: 1, batch: None });
                let streams = streams && channel == Channel::Duplex && self.config.features.streaming;
                let stream = streams.then(|| self.start_stream(id, out));
                let reply_to = Some(ReplyTo { exchange, id: id.into() });
                self.jobs.add(Job { reply_to, deadline: now + timeout_ms, task, stream, label });
            }
        }
    }

    /// Handles a batch. `suspect` is the text as it was sent, if some of its elements may lack a canonical form.
    fn batch(
        &mut self,
        text: &[u8],
        suspect: Option<&[u8]>,
        ticket: Ticket,
        now: Millis,
        out: &mut Vec<Output>,
    ) {
        let Config { choices, limits, .. } = &self.config;
        let (choices, bytes_max, elements_max) =
            (*choices, limits.rpc_message_bytes_max, limits.rpc_batch_elements_max);
        let nesting_max = limits.nesting_max;
        let elements = decode::elements(text);
        if elements.is_empty() {
            return self.refuse(ticket, Failure::invalid_request("the batch is empty"), out);
        }
        if elements.len() > elements_max {
            let details = format!("a batch has at most {elements_max} elements");
            return self.refuse(ticket, Failure::invalid_request(details), out);
        }
        let suspects = suspect.map(decode::elements).unwrap_or_default();
        let mut requests = Vec::with_capacity(elements.len());
        let mut batch = BatchReply::new(bytes_max);
        for (at, element) in elements.into_iter().enumerate() {
            let request = match self.scanner.scan(element) {
                Ok(scanned) => request::read(&scanned, &choices),
                // The whole text was scanned before, so an element cannot fail.
                Err(error) => Err(Refusal::Answer(decode::refusal(error), None)),
            };
            let ambiguous = suspects.get(at).is_some_and(|text| decode::is_ambiguous(text, nesting_max));
            let request = signable(request, ambiguous);
            match &request {
                Ok(Request { id, .. }) => id.iter().for_each(|id| batch.expect(id)),
                Err(Refusal::Answer(_, id)) => batch.expect(id.unwrap_or(NULL)),
                Err(Refusal::Silent) => {}
            }
            requests.push(request);
        }
        let exchange = self.open(Exchange { ticket, waiting: 0, batch: None });
        let mut waiting = 0;
        for request in requests {
            let request = match request {
                Ok(request) => request,
                Err(Refusal::Answer(failure, id)) => {
                    batch.answer(id.unwrap_or(NULL), Err(failure));
                    continue;
                }
                Err(Refusal::Silent) => continue,
            };
            let room = request.id.map_or(bytes_max, |id| batch.room(id));
            match (self.call(&request, room, now, out), request.id) {
                (Called::Done(outcome), Some(id)) => batch.answer(id, outcome),
                (Called::Done(_), None) => {}
                (Called::Later { task, timeout_ms, .. }, id) => {
                    waiting += usize::from(id.is_some());
                    let reply_to = id.map(|id| ReplyTo { exchange, id: id.into() });
                    let label = self.label(&request, now);
                    self.jobs.add(Job { reply_to, deadline: now + timeout_ms, task, stream: None, label });
                }
            }
        }
        self.batch_bytes += batch.held_bytes();
        if let Some(open) = self.exchanges.get_mut(&exchange) {
            open.waiting = waiting;
            open.batch = Some(batch);
        }
        self.close_if_done(exchange, out);
    }

    fn open(&mut self, exchange: Exchange) -> u64 {
        self.exchange_last += 1;
        self.exchanges.insert(self.exchange_last, exchange);
        self.exchange_last
    }

    /// Handles a well-formed request up to its outcome. `room` is the largest result in bytes.
    fn call(&mut self, request: &Request<'_>, room: usize, now: Millis, out: &mut Vec<Output>) -> Called {
        let called = match self.admit(request, now) {
            Ok(()) => self.execute(request, room, now),
            Err(failure) => Called::Done(Err(failure)),
        };
        if let (true, Called::Done(outcome)) = (self.config.logging, &called) {
            self.log(&request.method, request.id, (now, now), outcome, out);
        }
        called
    }

    /// Checks signature and rate.
    fn admit(&mut self, request: &Request<'_>, now: Millis) -> Result<(), Failure> {
        let Components { verifier, nonces, limiter, .. } = &mut self.components;
        let mut nonce = None;
        if let Some(verifier) = verifier {
            let unix_s = self.config.started_unix_ms.saturating_add(now) / 1_000;
            let verified = verifier.verify(request.text.as_bytes(), unix_s);
            nonce = verified.filter(|nonce| !nonces.is_known(nonce, now));
            if nonce.is_none() {
                // All faults get one text, so that it helps nobody to guess.
                return Err(Failure::new(FailureKind::Unauthorized, "no valid signature"));
            }
        }
        let passed = limiter.as_mut().map_or(Ok(()), |limiter| limiter.pass(now));
        if let Some(nonce) = nonce
            && (passed.is_ok() || self.config.choices.refusal_burns_nonce)
            && !nonces.remember(&nonce, now)
        {
            return Err(Failure::new(FailureKind::Unavailable, "no room for another nonce"));
        }
        passed.map_err(|wait_ms| Failure {
            retry_after_ms: Some(wait_ms),
            ..Failure::new(FailureKind::RateLimited, "too many requests")
        })
    }

    fn execute(&mut self, request: &Request<'_>, room: usize, now: Millis) -> Called {
        let rpc_prefix = self.config.choices.rpc_prefix;
        let methods = &mut self.components.methods;
        if request.method.starts_with(b"rpc.") && rpc_prefix != RpcPrefix::MethodNotFound {
            return Called::Done(match rpc_prefix {
                RpcPrefix::Answer => Ok(names(methods.names()).into()),
                _ => Err(Failure::invalid_request("names that begin with rpc. are reserved")),
            });
        }
        let Some(method) = methods.get(&request.method) else {
            return Called::Done(Err(Failure::new(FailureKind::MethodNotFound, "no method has this name")));
        };
        let call = Call { params: request.params, now, limits: &self.config.limits, result_bytes_max: room };
        // Params of a wrong type are invalid for every method.
        if let Err(failure) = call.params.text() {
            return Called::Done(Err(failure));
        }
        match method.call(&call, &mut self.world) {
            Answer::Done(outcome) => Called::Done(outcome),
            Answer::Later { task, timeout_ms, streams } => Called::Later { task, timeout_ms, streams },
        }
    }

    fn label(&self, request: &Request<'_>, now: Millis) -> Option<(Box<[u8]>, Millis)> {
        self.config.logging.then(|| (request.method.as_ref().into(), now))
    }

    fn log(
        &self,
        method: &[u8],
        id: Option<&str>,
        (from, to): (Millis, Millis),
        outcome: &Outcome,
        out: &mut Vec<Output>,
    ) {
        let code = outcome.as_ref().err().map(|failure| failure.kind.code());
        let entry = log::Entry { method, id, duration_ms: to.saturating_sub(from), code };
        out.push(Output::Log(log::line(&entry, self.config.started_unix_ms.saturating_add(to))));
    }

    /// Time of the next step without input. A time in the past means at once.
    pub fn wake_at(&self) -> Option<Millis> {
        self.jobs.next_at()
    }

    /// True if no call is in progress.
    pub(crate) fn is_idle(&self) -> bool {
        self.jobs.len() == 0
    }

    /// True if no further body should be passed on until a call finishes. Without concurrency, one call in progress is
    /// enough.
    pub fn is_full(&self) -> bool {
        let limits = &self.config.limits;
        let pending_max = if self.config.features.concurrent { limits.rpc_pending_max } else { 1 };
        self.jobs.len() >= pending_max
            || self.jobs.held_bytes() + self.batch_bytes >= limits.rpc_pending_bytes_max
    }
}

/// If messages are signed, a message without a canonical form is an invalid request (contract §7 "Auth").
fn signable<'t>(
    request: Result<Request<'t>, Refusal<'t>>,
    ambiguous: bool,
) -> Result<Request<'t>, Refusal<'t>> {
    match request {
        Ok(Request { id, .. }) if ambiguous => {
            let failure = Failure::invalid_request("the message has no canonical form and cannot be signed");
            Err(Refusal::Answer(failure, id))
        }
        request => request,
    }
}

/// Answer of the `rpc.` methods, if they are enabled.
fn names(names: impl Iterator<Item = &'static str>) -> Vec<u8> {
    let mut out = b"{\"methods\":[".to_vec();
    for (at, name) in names.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_str(&mut out, name);
    }
    out.extend_from_slice(b"]}");
    out
}
