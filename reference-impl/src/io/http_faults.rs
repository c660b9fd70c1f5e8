//! Mutants over HTTP: faults of the HTTP side, and all other mutants behind correct HTTP.

use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};
use std::hint::black_box;
use std::io::Read as _;
use std::net::SocketAddr;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use flate2::read::DeflateDecoder;

use super::faults::pause;
use super::http_server::{Front, HttpReply, Plain};
use super::json_rpc::unix_ms;
use super::json_rpc_http::{Exchanges, serve_with};
use crate::http::HttpRequest;
use crate::json::{Policy, Value};
use crate::json_rpc::mutants::Mutant;
use crate::json_rpc::{Components, Config, Failure, Output, Server, Ticket, inflate};
use crate::machine::{Action, Event, Machine, Millis};
use crate::mutant::http::HttpFault;

/// Largest body that is passed to a line-based mutant. It exceeds their limit, so that they refuse it themselves.
const HANDED_OVER_BYTES_MAX: usize = 16 << 20;
/// Size in bytes above which a body is large.
const LARGE_BYTES: usize = 100_000;
/// Size in bytes above which a reply goes through the shared buffer.
const SHARED_BYTES: usize = 300_000;
/// Pause of a reply after its status line.
const SPEECHLESS: Duration = Duration::from_millis(100);
/// Length of a gzip header without a file name, in bytes.
const GZIP_HEAD_BYTES: usize = 10;

/// Runs a mutant as an HTTP server. Returns as [`serve_with`].
pub fn serve_mutant(address: SocketAddr, mutant: &Mutant, mut config: Config) -> i32 {
    config.started_unix_ms = unix_ms();
    if let Some(fault) = mutant.carrier_fault() {
        let exchanges = Box::new(Server::new(config.clone(), Components::new(&config)));
        return serve_with(address, &config, exchanges, faulty(fault));
    }
    let server = Server::new(config.clone(), Components::new(&config));
    let lines = Lines {
        machine: mutant.machine(config.clone()),
        server,
        waiting: VecDeque::new(),
        line: Vec::new(),
        wake_at: None,
        actions: Vec::new(),
    };
    config.limits.rpc_message_bytes_max = HANDED_OVER_BYTES_MAX;
    serve_with(address, &config, Box::new(lines), Box::new(Plain))
}

/// Front with a fault.
pub(super) fn faulty(fault: HttpFault) -> Box<dyn Front> {
    let (broken, replies) = (AtomicBool::new(false), AtomicU32::new(0));
    Box::new(Faulty {
        fault,
        broken,
        replies,
        last: Mutex::default(),
        authorization: OnceLock::new(),
        buffer: Mutex::default(),
    })
}

struct Faulty {
    fault: HttpFault,
    /// True once an input has broken the server.
    broken: AtomicBool,
    /// Number of replies so far.
    replies: AtomicU32,
    /// Threads that have replied, one per connection, and the last reply.
    last: Mutex<(HashSet<ThreadId>, Option<HttpReply>)>,
    /// `Authorization` of the first request.
    authorization: OnceLock<Option<String>>,
    /// The last large body.
    buffer: Mutex<Vec<u8>>,
}

impl Faulty {
    /// Replaces the first reply on a connection by the first reply on the previous connection.
    fn mix(&self, reply: &mut HttpReply) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let own = reply.clone();
        if last.0.insert(thread::current().id())
            && let Some(other) = last.1.replace(own)
        {
            *reply = other;
        }
    }
}

impl Faulty {
    /// Writes a reply to the shared buffer and sends the buffer's content a moment later.
    fn share(&self, reply: &mut HttpReply) {
        let lock = || self.last.lock().unwrap_or_else(PoisonError::into_inner);
        lock().1 = Some(reply.clone());
        pause(SPEECHLESS);
        if let Some(last) = lock().1.clone() {
            *reply = last;
        }
    }
}

impl Front for Faulty {
    fn request(&self, mut request: HttpRequest) -> HttpRequest {
        if self.broken.load(Ordering::SeqCst) {
            loop {
                std::thread::park();
            }
        }
        let authorization = self.authorization.get_or_init(|| request.authorization.clone());
        let is_large = request.body.as_ref().is_some_and(|body| body.len() > LARGE_BYTES);
        match self.fault {
            HttpFault::SpeaksEarly => pause(SPEECHLESS),
            HttpFault::TrustsLarge if is_large && request.authorization.is_none() => {
                request.authorization.clone_from(authorization);
            }
            HttpFault::TrustsChunks if request.is_chunked && request.authorization.is_none() => {
                request.authorization.clone_from(authorization);
            }
            HttpFault::ChunkedIsEmpty if request.is_chunked => request.body = Some(Vec::new()),
            HttpFault::SmallBodies if is_large => request.body = None,
            HttpFault::ExactType
                if request.content_type.as_deref().is_some_and(|name| name.contains(';')) =>
            {
                request.content_type = Some("unknown/unknown".to_owned());
            }
            HttpFault::HoldsBodies if request.body.as_ref().is_some_and(|body| body.len() > 10 << 20) => {
                request.body = None;
            }
            HttpFault::EndsAtDepth => {
                let body = request.body.as_deref().unwrap_or_default();
                if body.iter().filter(|byte| **byte == b'[').count() > 90 {
                    process::exit(1);
                }
            }
            HttpFault::FirstPiece => {
                let first = request.first_piece_bytes;
                request.body.iter_mut().for_each(|body| body.truncate(first));
            }
            HttpFault::SharesBuffer if is_large => {
                let own = request.body.take().unwrap_or_default();
                *self.buffer.lock().unwrap_or_else(PoisonError::into_inner) = own;
                pause(SPEECHLESS);
                request.body = Some(self.buffer.lock().unwrap_or_else(PoisonError::into_inner).clone());
            }
            HttpFault::IgnoresEncoding => request.content_encoding = None,
            HttpFault::SkipsSum if is_packed(&request) => {
                let data = request.body.as_ref().and_then(|body| body.get(GZIP_HEAD_BYTES..));
                let mut text = Vec::new();
                let inflated =
                    data.map(|data| DeflateDecoder::new(data).take(1 << 20).read_to_end(&mut text));
                if let Some(Ok(1..)) = inflated {
                    (request.body, request.content_encoding) = (Some(text), None);
                }
            }
            HttpFault::InflatesFirst if is_packed(&request) => {
                let text = request.body.as_ref().map(|body| inflate(body, usize::MAX - 1));
                drop(black_box(text));
            }
            HttpFault::LongerPaths if request.target.starts_with("/api/v1/process") => {
                request.target.truncate("/api/v1/process".len());
            }
            HttpFault::ShortRead => {
                if let Some(body) = &mut request.body {
                    body.truncate(50);
                }
            }
            _ => {}
        }
        request
    }

    fn reply(&self, request: Option<&HttpRequest>, mut reply: HttpReply) -> HttpReply {
        let is_error = memchr::memmem::find(&reply.body, b"\"error\":").is_some();
        let is_silent = reply.status == 204;
        let is_post = request.is_some_and(|request| request.method == "POST");
        let is_whole = request.is_some_and(|request| request.body.is_some());
        match (self.fault, request) {
            (HttpFault::ResultCreated, _) if reply.status == 200 && !is_error => reply.status = 201,
            (HttpFault::Recodes(from, to), Some(_)) if reply.status == from => reply.status = to,
            (HttpFault::RefusesOld, Some(request)) if request.is_http_1_0 => {
                reply = HttpReply::empty(505, false);
            }
            (HttpFault::RefusesExpect, Some(request)) if request.expects => {
                reply = HttpReply::empty(417, false);
            }
            (HttpFault::RefusalHasBody, Some(_)) if reply.status == 400 => {
                reply.body = b"{\"current_stage\":\"start\",\"outputs\":{}}".to_vec();
            }
            (HttpFault::TellsAuthorization, Some(request)) => {
                let told = request.authorization.as_deref().unwrap_or_default();
                reply.content_type = String::leak(format!("application/json\r\nX-Authorization: {told}"));
            }
            (HttpFault::TextReplies, _) => reply.content_type = "text/plain",
            (HttpFault::MixesReplies, Some(_)) => self.mix(&mut reply),
            (HttpFault::MixesLarge, Some(_)) if reply.body.len() > LARGE_BYTES => self.mix(&mut reply),
            (HttpFault::MixesRequestIds, Some(_)) => {
                let mut other = reply.clone();
                self.mix(&mut other);
                let place = |body: &[u8]| {
                    let at = memchr::memmem::find(body, b"\"request_id\":")?;
                    Some(at..at + b"\"request_id\":\"req_0123456789abcdef\"".len())
                };
                if let (Some(own), Some(theirs)) = (place(&reply.body), place(&other.body)) {
                    reply.body.splice(own, other.body.get(theirs).unwrap_or_default().iter().copied());
                }
            }
            (HttpFault::MarksReplies, Some(_)) => {
                const MAP: &[u8] = b"\"metadata\":{";
                if let Some(at) = memchr::memmem::find(&reply.body, MAP).map(|at| at + MAP.len()) {
                    let is_empty = reply.body.get(at) == Some(&b'}');
                    let mark: &[u8] = if is_empty { b"\"via\":1" } else { b"\"via\":1," };
                    reply.body.splice(at..at, mark.iter().copied());
                }
            }
            (HttpFault::ErrorIsServerError, Some(_)) if is_error => reply.status = 500,
            (HttpFault::NotificationHasBody, _) if is_silent => {
                (reply.status, reply.body) = (200, b"{}".to_vec());
            }
            (HttpFault::NotificationIsServerError, _) if is_silent => reply.status = 500,
            (HttpFault::OversizeIsServerError, Some(_)) if !is_whole => {
                (reply.status, reply.body) = (500, Vec::new());
            }
            (HttpFault::TiresAfterFifty, _) if self.replies.fetch_add(1, Ordering::SeqCst) >= 50 => {
                (reply.status, reply.body) = (200, Vec::new());
            }
            (HttpFault::SmallBodies, Some(_)) if !is_whole => {
                (reply.status, reply.body) = (413, Vec::new());
            }
            (HttpFault::InflatedIsServerError, Some(request))
                if is_packed(request)
                    && memchr::memmem::find(&reply.body, b"MESSAGE_TOO_LARGE").is_some() =>
            {
                (reply.status, reply.body) = (500, Vec::new());
            }
            (HttpFault::OtherMethodIsFine, Some(_)) if !is_post => reply.status = 200,
            (HttpFault::SharesLarge, _) if reply.body.len() > SHARED_BYTES => self.share(&mut reply),
            (HttpFault::OtherTypeIsServerError, _) if reply.status == 415 => reply.status = 500,
            (HttpFault::ClosesEach, _) => reply.keeps_open = false,
            (HttpFault::EndsAtGarbage, None) => process::exit(1),
            (HttpFault::HangsAtGarbage, None) => self.broken.store(true, Ordering::SeqCst),
            _ => {}
        }
        reply
    }

    fn foreword(&self, request: &HttpRequest) -> Vec<u8> {
        if self.fault != HttpFault::SpeaksEarly || request.target != "/enqueue" {
            return Vec::new();
        }
        let job = Value::parse(request.body.as_deref().unwrap_or_default(), 64, &Policy::default());
        let is_job = job.is_ok_and(|job| job.get("goal_id").and_then(Value::as_str).is_some());
        if is_job { b"HTTP/1.1 202 Accepted\r\n".to_vec() } else { Vec::new() }
    }

    fn connections(&self) -> (usize, bool) {
        match self.fault {
            HttpFault::OneConnection => (1, true),
            HttpFault::FewConnections => (20, false),
            _ => Plain.connections(),
        }
    }

    fn body_bytes_max(&self, bytes_max: usize) -> usize {
        if self.fault == HttpFault::HoldsBodies { 64 << 20 } else { bytes_max }
    }

    fn broken_off(&self, so_far: Option<HttpRequest>) -> Option<HttpRequest> {
        match self.fault {
            HttpFault::EndsAtCut => process::exit(1),
            HttpFault::ServesCut => so_far,
            _ => None,
        }
    }

    fn closes_silently(&self) -> bool {
        self.fault == HttpFault::ClosesSilently
    }

    fn idle(&self) -> Duration {
        match self.fault {
            HttpFault::Impatient => Duration::from_millis(250),
            HttpFault::DropsSilent => Duration::from_secs(1),
            _ => Plain.idle(),
        }
    }

    fn unread(&self, request: &HttpRequest, status: u16) -> Vec<u8> {
        match self.fault {
            HttpFault::LeavesBodies if [404, 405].contains(&status) => {
                request.body.clone().unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    fn incoming<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        match self.fault {
            HttpFault::FirstLength => {
                let mut has_length = false;
                let first = |line: &[u8]| match std::mem::replace(&mut has_length, true) {
                    false => without(line, b"-"),
                    true => Vec::new(),
                };
                Cow::Owned(with_lengths(bytes, first))
            }
            HttpFault::LowerCaseSizes => {
                let is_size = |line: &[u8]| {
                    let digits = line.trim_ascii();
                    digits.iter().all(u8::is_ascii_hexdigit) && digits.iter().any(u8::is_ascii_uppercase)
                };
                let lines = bytes.split_inclusive(|byte| *byte == b'\n');
                let seen = lines.flat_map(|line| if is_size(line) { b"?\r\n".as_slice() } else { line });
                Cow::Owned(seen.copied().collect())
            }
            HttpFault::NoExtensions => {
                let lines = bytes.split_inclusive(|byte| *byte == b'\n');
                let has = |line: &[u8]| memchr::memmem::find(line, b";part=1").is_some();
                let seen = lines.flat_map(|line| if has(line) { b"?\r\n".as_slice() } else { line });
                Cow::Owned(seen.copied().collect())
            }
            HttpFault::ExactNames => {
                Cow::Owned(with_lengths(bytes, |line| skip(line, line.starts_with(LENGTH))))
            }
            HttpFault::WantsBlank => {
                let is_tight = |line: &[u8]| line.get(LENGTH.len()).is_some_and(u8::is_ascii_digit);
                Cow::Owned(with_lengths(bytes, |line| skip(line, is_tight(line))))
            }
            HttpFault::LengthOverChunks => {
                let lines = || bytes.split_inclusive(|byte| *byte == b'\n');
                let begins = |line: &[u8], name: &[u8]| {
                    line.get(..name.len()).is_some_and(|own| own.eq_ignore_ascii_case(name))
                };
                let has_length = lines().any(|line| begins(line, LENGTH));
                let is_kept = |line: &&[u8]| !has_length || !begins(line, b"transfer-encoding:");
                Cow::Owned(lines().filter(is_kept).flatten().copied().collect())
            }
            HttpFault::LooseLength => Cow::Owned(with_lengths(bytes, |line| without(line, b"+_"))),
            _ => Cow::Borrowed(bytes),
        }
    }
}

/// Header with the length of a body.
const LENGTH: &[u8] = b"content-length:";

/// Heads with an edited `Content-Length` line.
fn with_lengths(bytes: &[u8], mut edit: impl FnMut(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let is_length =
        |line: &[u8]| line.get(..LENGTH.len()).is_some_and(|name| name.eq_ignore_ascii_case(LENGTH));
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    lines.flat_map(|line| if is_length(line) { edit(line) } else { line.to_vec() }).collect()
}

/// The line, or nothing.
fn skip(line: &[u8], skips: bool) -> Vec<u8> {
    if skips { Vec::new() } else { line.to_vec() }
}

/// A `Content-Length` line without these bytes in its value.
fn without(line: &[u8], bytes: &[u8]) -> Vec<u8> {
    let (name, value) = line.split_at(LENGTH.len());
    name.iter().chain(value.iter().filter(|byte| !bytes.contains(byte))).copied().collect()
}

fn is_packed(request: &HttpRequest) -> bool {
    request.content_encoding.as_deref() == Some("gzip")
}

/// Adapter from bodies to a line-based machine. Each body goes in as a line, and the next output line answers the
/// oldest waiting body. If the machine writes nothing and sets no timer, the reply is empty.
struct Lines {
    machine: Box<dyn Machine + Send>,
    /// Refuses bodies that cannot be passed on.
    server: Server,
    waiting: VecDeque<Ticket>,
    line: Vec<u8>,
    wake_at: Option<Millis>,
    actions: Vec<Action>,
}

impl Lines {
    fn handle(&mut self, event: Event<'_>, now: Millis, out: &mut Vec<Output>) {
        self.machine.handle(event, now, &mut self.actions);
        for action in std::mem::take(&mut self.actions) {
            match action {
                Action::Stdout(bytes) => self.line.extend_from_slice(&bytes),
                Action::Stderr(bytes) => out.push(Output::Log(bytes)),
                Action::WakeAt(at) => self.wake_at = Some(at),
                Action::Exit(status) => process::exit(status),
                Action::Abort => process::abort(),
                _ => {}
            }
        }
        while let Some(end) = memchr::memchr(b'\n', &self.line) {
            let mut body: Vec<u8> = self.line.drain(..=end).collect();
            body.pop();
            if let Some(ticket) = self.waiting.pop_front() {
                let is_error = memchr::memmem::find(&body, b"\"error\":").is_some();
                out.push(Output::Reply { ticket, body: Some(body), is_error });
            }
        }
        if self.wake_at.is_none() {
            let silent = self.waiting.drain(..);
            out.extend(silent.map(|ticket| Output::Reply { ticket, body: None, is_error: false }));
        }
    }
}

impl Exchanges for Lines {
    fn receive(&mut self, body: &[u8], ticket: Ticket, now: Millis, out: &mut Vec<Output>) {
        self.waiting.push_back(ticket);
        // JSON allows either as white space, and neither within a string.
        let mut line: Vec<u8> = body.iter().map(|byte| if *byte == b'\n' { b'\r' } else { *byte }).collect();
        line.push(b'\n');
        self.handle(Event::Stdin(&line), now, out);
    }

    fn refuse(&mut self, why: Failure, ticket: Ticket, out: &mut Vec<Output>) {
        self.server.refuse(ticket, why, out);
    }

    fn run(&mut self, now: Millis, out: &mut Vec<Output>) {
        self.wake_at = None;
        self.handle(Event::Wake, now, out);
    }

    fn wake_at(&self) -> Option<Millis> {
        self.wake_at
    }

    fn is_full(&self) -> bool {
        !self.machine.wants_stdin()
    }
}
