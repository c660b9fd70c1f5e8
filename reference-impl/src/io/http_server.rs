//! An HTTP server on a loopback address, for any service.
//!
//! There is one thread per connection, a limited number of them, and one [`Service`] behind them all. The HTTP
//! implementation is our own to limit every byte and every second. Small server libraries limit neither the head of a
//! request nor silent clients.

use std::borrow::Cow;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::StartError;
use super::complain;
use crate::http::{HttpCaps, HttpRequest, HttpStep, RequestReader, reason_phrase};

/// Largest head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Largest body that is read and dropped, in bytes.
const DISCARD_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Connections at the same time. Further ones are refused and closed.
const CONNECTIONS_MAX: usize = 512;
/// Longest idle time of a connection, and longest wait for a client that does not read.
const IDLE: Duration = Duration::from_secs(60);
/// Time for which a client's bytes are read and dropped before the connection is closed, so that it gets the reply.
const LINGER: Duration = Duration::from_millis(500);
/// Pause while the number of connections is at its limit, and after a failed accept.
const PAUSE: Duration = Duration::from_millis(5);
const READ_BYTES: usize = 16 * 1024;

/// Shortest time between a request and its reply, in ms.
static LATE_MS: AtomicU64 = AtomicU64::new(0);

/// Delays every reply of every server in this process by this time after the last byte of its request.
pub fn reply_late(by: Duration) {
    LATE_MS.store(u64::try_from(by.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// Splits `--http` and its address from the arguments.
///
/// # Errors
/// The address is missing or malformed, or is not a loopback address.
pub fn split_http(arguments: &[String]) -> Result<(Option<SocketAddr>, Vec<String>), StartError> {
    let mut rest = arguments.to_vec();
    let Some(at) = rest.iter().position(|argument| argument == "--http") else { return Ok((None, rest)) };
    let needs = "a loopback address such as 127.0.0.1:8080";
    if at + 1 >= rest.len() {
        return Err(StartError::NoValue { option: "--http".to_owned(), needs });
    }
    let text = rest.remove(at + 1);
    rest.remove(at);
    let address: Option<SocketAddr> = text.parse().ok();
    match address.filter(|address| address.ip().is_loopback()) {
        Some(address) => Ok((Some(address), rest)),
        None => Err(StartError::value("--http", needs, &text)),
    }
}

/// An HTTP reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpReply {
    /// Status code.
    pub status: u16,
    /// Value of `Content-Type`, used if there is a body.
    pub content_type: &'static str,
    /// The body; empty for none.
    pub body: Vec<u8>,
    /// True if another request may follow on the connection.
    pub keeps_open: bool,
}

impl HttpReply {
    /// Reply with a JSON body; an empty `body` means none.
    pub fn json(status: u16, body: Vec<u8>, keeps_open: bool) -> Self {
        Self { status, content_type: "application/json", body, keeps_open }
    }

    /// Reply with a status only.
    pub fn empty(status: u16, keeps_open: bool) -> Self {
        Self::json(status, Vec::new(), keeps_open)
    }
}

/// Handler of requests. Many threads may call it at once.
pub trait Service: Send + Sync {
    /// The reply to a request.
    fn respond(&self, request: &HttpRequest) -> HttpReply;

    /// True to ignore `Content-Length` beside chunks. Otherwise the request is refused.
    fn takes_length_beside_chunks(&self) -> bool {
        false
    }
}

/// The seam between HTTP and messages. The default methods change nothing; mutants override them.
pub trait Front: Send + Sync {
    /// Edits a request before it is handled.
    fn request(&self, request: HttpRequest) -> HttpRequest {
        request
    }

    /// Edits a reply before it is sent. `request` is `None` if the bytes were not a valid request.
    fn reply(&self, _request: Option<&HttpRequest>, reply: HttpReply) -> HttpReply {
        reply
    }

    /// Limit of simultaneous connections. If the flag is true, further ones wait; otherwise they are refused.
    fn connections(&self) -> (usize, bool) {
        (CONNECTIONS_MAX, false)
    }

    /// Largest body that is kept, in bytes.
    fn body_bytes_max(&self, bytes_max: usize) -> usize {
        bytes_max
    }

    /// Called with the part of a request that arrived before its connection ended. Returns the request to answer, if
    /// any.
    fn broken_off(&self, _so_far: Option<HttpRequest>) -> Option<HttpRequest> {
        None
    }

    /// Edits the bytes of one read before they are parsed.
    fn incoming<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        Cow::Borrowed(bytes)
    }

    /// First line of the reply, if it is sent before the request is handled; else empty.
    fn foreword(&self, _request: &HttpRequest) -> Vec<u8> {
        Vec::new()
    }

    /// Longest idle time of a connection.
    fn idle(&self) -> Duration {
        IDLE
    }

    /// Bytes to read again after a request that got this status.
    fn unread(&self, _request: &HttpRequest, _status: u16) -> Vec<u8> {
        Vec::new()
    }

    /// True to close connections after a reply that promises to keep them open.
    fn closes_silently(&self) -> bool {
        false
    }
}

/// The correct front.
pub struct Plain;

impl Front for Plain {}

/// State shared by all connections.
struct Shared {
    service: Box<dyn Service>,
    front: Box<dyn Front>,
    caps: HttpCaps,
    connections: AtomicUsize,
}

/// Serves until the process is terminated, with bodies of at most `body_bytes_max` bytes. Returns the exit status if
/// it cannot: 2 for an address in use, else 70. `name` is the name of the program.
pub fn serve(
    name: &str,
    address: SocketAddr,
    body_bytes_max: usize,
    service: Box<dyn Service>,
    front: Box<dyn Front>,
) -> i32 {
    let listener = match TcpListener::bind(address) {
        Ok(listener) => listener,
        Err(error) => {
            complain(&format!("{name}: cannot listen on {address}: {error}"));
            return 2;
        }
    };
    if let Ok(address) = listener.local_addr() {
        complain(&format!("{name}: listening on http://{address}/"));
    }
    let caps = HttpCaps {
        head_bytes_max: HEAD_BYTES_MAX,
        body_bytes_max: front.body_bytes_max(body_bytes_max),
        discard_bytes_max: DISCARD_BYTES_MAX,
        takes_length_beside_chunks: service.takes_length_beside_chunks(),
    };
    let server = Arc::new(Shared { service, front, caps, connections: AtomicUsize::new(0) });
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            thread::sleep(PAUSE);
            continue;
        };
        let (most, waits) = server.front.connections();
        while waits && server.connections.load(Ordering::SeqCst) >= most {
            thread::sleep(PAUSE);
        }
        let is_one_too_many = server.connections.fetch_add(1, Ordering::SeqCst) >= most;
        let own = Arc::clone(&server);
        let served = thread::Builder::new().spawn(move || {
            let mut connection = Connection { server: &own, stream };
            if is_one_too_many {
                if connection.send(&HttpReply::empty(503, false), false, 0) {
                    connection.linger();
                }
            } else {
                connection.serve();
            }
            own.connections.fetch_sub(1, Ordering::SeqCst);
        });
        if served.is_err() {
            server.connections.fetch_sub(1, Ordering::SeqCst);
        }
    }
    70
}

/// One connection.
struct Connection<'a> {
    server: &'a Shared,
    stream: TcpStream,
}

impl Connection<'_> {
    fn serve(&mut self) {
        let timeouts = [
            self.stream.set_read_timeout(Some(self.server.front.idle())),
            self.stream.set_write_timeout(Some(IDLE)),
            self.stream.set_nodelay(true),
        ];
        if timeouts.iter().any(Result::is_err) {
            return;
        }
        let Shared { front, caps, .. } = self.server;
        let mut reader = RequestReader::new(*caps);
        let mut buffer = vec![0; READ_BYTES];
        let late = Duration::from_millis(LATE_MS.load(Ordering::Relaxed));
        while let Ok(count @ 1..) = self.stream.read(&mut buffer) {
            let due = Instant::now() + late;
            let mut came = front.incoming(buffer.get(..count).unwrap_or_default());
            while !came.is_empty() {
                let mut is_head = false;
                let mut foreword = Vec::new();
                let mut unread = Vec::new();
                let mut input = &came[..];
                let taken = reader.take(&mut input);
                let rest = came.len() - input.len();
                came = match came {
                    Cow::Borrowed(bytes) => Cow::Borrowed(bytes.get(rest..).unwrap_or_default()),
                    Cow::Owned(mut bytes) => Cow::Owned(bytes.split_off(rest)),
                };
                let reply = match taken {
                    HttpStep::More => continue,
                    HttpStep::Continue => {
                        if self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").is_err() {
                            return;
                        }
                        continue;
                    }
                    HttpStep::Request(request) => {
                        is_head = request.method == "HEAD";
                        foreword = front.foreword(&request);
                        if self.stream.write_all(&foreword).is_err() {
                            return;
                        }
                        let (reply, left) = self.reply(request);
                        unread = left;
                        reply
                    }
                    HttpStep::Bad(status) => front.reply(None, HttpReply::empty(status, false)),
                };
                thread::sleep(due.saturating_duration_since(Instant::now()));
                if !self.send(&reply, is_head, foreword.len()) {
                    return;
                }
                if !reply.keeps_open || front.closes_silently() {
                    return self.linger();
                }
                if !unread.is_empty() {
                    unread.extend_from_slice(&came);
                    came = Cow::Owned(unread);
                }
            }
        }
        if !reader.is_at_rest()
            && let Some(request) = front.broken_off(reader.so_far())
        {
            let (reply, _) = self.reply(request);
            self.send(&reply, false, 0);
        }
    }

    /// Reply to a request, and the bytes of the request to read again.
    fn reply(&self, request: HttpRequest) -> (HttpReply, Vec<u8>) {
        let request = self.server.front.request(request);
        let reply = self.server.service.respond(&request);
        let reply = self.server.front.reply(Some(&request), reply);
        let unread = self.server.front.unread(&request, reply.status);
        (reply, unread)
    }

    /// Sends a reply without its first `said` bytes, which are sent already. A reply to HEAD has the `Content-Length`
    /// of its body, but no body (RFC 9110 §9.3.2).
    fn send(&mut self, reply: &HttpReply, is_head: bool, said: usize) -> bool {
        let HttpReply { status, content_type, body, keeps_open } = reply;
        let mut text = format!("HTTP/1.1 {status} {}\r\n", reason_phrase(*status));
        if *status == 405 {
            text.push_str("Allow: POST\r\n");
        }
        if !body.is_empty() {
            text.push_str(&format!("Content-Type: {content_type}\r\n"));
        }
        if *status != 204 {
            text.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        if !keeps_open {
            text.push_str("Connection: close\r\n");
        }
        text.push_str("\r\n");
        let mut bytes = text.into_bytes();
        if !is_head {
            bytes.extend_from_slice(body);
        }
        self.stream.write_all(bytes.get(said..).unwrap_or_default()).is_ok()
    }

    /// Drains the connection before it is closed. Closing with unread bytes would destroy the reply in flight (RFC
    /// 9112 §9.6).
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
