//! HTTP GET and POST over a plain socket, with one deadline for the whole exchange.

use std::io::{self, BufRead, BufReader, Read, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

use crate::machine::{FetchError, Fetched, PostOrder};

/// Parameters of an `Action::Fetch`.
#[derive(Debug, Clone)]
pub(crate) struct FetchOrder {
    /// Host name or address, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Path and query.
    pub path: String,
    /// Value of the `Host` header.
    pub host_header: String,
    /// Largest accepted body, in bytes.
    pub body_bytes_max: usize,
    /// Time limit for the whole exchange, in ms. A name lookup cannot be interrupted.
    pub timeout_ms: u64,
}

/// Largest status line with headers, and largest size line of a chunk, in bytes.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Sends a GET and returns the reply.
///
/// # Errors
/// A sentence that names the failure: lookup, connection, time, size, or a malformed reply.
pub(crate) fn fetch(order: &FetchOrder) -> Result<Fetched, FetchError> {
    let head = format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: refpeer\r\nAccept: */*\r\nConnection: close\r\n\r\n",
        order.path, order.host_header
    );
    let to = Server { host: &order.host, port: order.port };
    let taken = Taken { bytes_max: order.body_bytes_max, cut: false, went_on: &|deadline| deadline };
    exchange(to, head.as_bytes(), taken, order.timeout_ms).map_err(failed)
}

/// POSTs a JSON text and returns the reply.
///
/// # Errors
/// As for [`fetch`].
pub(crate) fn post(order: &PostOrder) -> Result<Fetched, FetchError> {
    post_as(order, "application/json", false, &|deadline| deadline).map_err(failed)
}

fn failed(error: io::Error) -> FetchError {
    FetchError(error.to_string())
}

/// [`post`] with this `Content-Type`. With `takes_cut`, a body that ends before its `Content-Length` is accepted.
/// `went_on` gives the deadline after each read.
///
/// # Errors
/// `TimedOut` after the deadline, `InvalidData` for a malformed or too large reply, and errors of the operating
/// system.
pub(crate) fn post_as(
    order: &PostOrder,
    content_type: &str,
    takes_cut: bool,
    went_on: &dyn Fn(Instant) -> Instant,
) -> io::Result<Fetched> {
    let authorization = order.authorization.as_ref();
    let authorization = authorization.map(|value| format!("Authorization: {value}\r\n")).unwrap_or_default();
    let mut request = format!(
        "POST {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: refpeer\r\nAccept: application/json\r\n{authorization}\
         Content-Type: {content_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        order.path,
        order.host_header,
        order.body.len()
    )
    .into_bytes();
    request.extend_from_slice(&order.body);
    let to = Server { host: &order.host, port: order.port };
    let taken = Taken { bytes_max: order.body_bytes_max, cut: takes_cut, went_on };
    exchange(to, &request, taken, order.timeout_ms)
}

/// Bodies that are accepted.
#[derive(Clone, Copy)]
struct Taken<'a> {
    /// Largest size in bytes.
    bytes_max: usize,
    /// True to accept a body that ends before its `Content-Length`.
    cut: bool,
    /// Deadline after each read.
    went_on: &'a dyn Fn(Instant) -> Instant,
}

struct Server<'a> {
    host: &'a str,
    port: u16,
}

fn exchange(
    Server { host, port }: Server<'_>,
    request: &[u8],
    taken: Taken<'_>,
    timeout_ms: u64,
) -> io::Result<Fetched> {
    let deadline = Instant::now() + Duration::from_millis(timeout_ms);
    let addresses = (host, port).to_socket_addrs();
    let addresses =
        addresses.map_err(|error| io::Error::new(error.kind(), format!("cannot look up {host}: {error}")))?;
    let mut last = io::Error::other(format!("{host} has no address"));
    for address in addresses {
        let connected = left(deadline).and_then(|left| TcpStream::connect_timeout(&address, left));
        match connected {
            Ok(stream) => {
                return talk(request, stream, deadline, taken);
            }
            Err(error) => {
                last = io::Error::new(error.kind(), format!("cannot connect to {address}: {error}"));
            }
        }
    }
    Err(last)
}

fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::Error::new(io::ErrorKind::TimedOut, "no reply in time")) } else { Ok(left) }
}

fn talk(
    mut request: &[u8],
    mut stream: TcpStream,
    deadline: Instant,
    taken: Taken<'_>,
) -> io::Result<Fetched> {
    while !request.is_empty() {
        stream.set_write_timeout(Some(left(deadline)?))?;
        match stream.write(request) {
            Ok(count) => request = request.get(count..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // A server may reply before it has read everything, and close. Its reply counts.
            Err(error) if is_closed(&error) => break,
            Err(error) => return Err(late(error)),
        }
    }
    read_reply(BufReader::new(Timed { stream, deadline, went_on: taken.went_on }), taken)
}

fn is_closed(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

/// Turns `WouldBlock`, the error of a socket timeout, into `TimedOut`.
fn late(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => io::Error::new(io::ErrorKind::TimedOut, "no reply in time"),
        _ => error,
    }
}

/// Socket whose reads end at a deadline.
struct Timed<'a> {
    stream: TcpStream,
    deadline: Instant,
    went_on: &'a dyn Fn(Instant) -> Instant,
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(left(self.deadline)?))?;
        let read = self.stream.read(buffer).map_err(late)?;
        self.deadline = (self.went_on)(self.deadline);
        Ok(read)
    }
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("malformed HTTP reply: {what}"))
}

/// Line without its line ending, of at most `bytes_max` bytes.
fn read_line(reader: &mut impl BufRead, bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    reader.take(bytes_max as u64 + 2).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection ended without a word"));
    }
    if line.pop() != Some(b'\n') {
        return Err(malformed("a line is cut short or too long"));
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(line)
}

/// The parts of a reply's head that determine its body.
struct Head {
    status: u16,
    location: Option<String>,
    chunked: bool,
    length: Option<usize>,
}

fn read_head(reader: &mut impl BufRead) -> io::Result<Head> {
    let mut room = HEAD_BYTES_MAX;
    let mut line = |room: &mut usize| {
        let line = read_line(reader, *room)?;
        *room = room.saturating_sub(line.len() + 2);
        Ok::<_, io::Error>(String::from_utf8_lossy(&line).into_owned())
    };
    let first = line(&mut room)?;
    let status =
        first.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)).and_then(|code| code.parse().ok());
    let status = status.filter(|status| (100..600).contains(status)).ok_or_else(|| malformed("no status"))?;
    let mut head = Head { status, location: None, chunked: false, length: None };
    loop {
        let field = line(&mut room)?;
        if field.is_empty() {
            return Ok(head);
        }
        let (name, value) = field.split_once(':').ok_or_else(|| malformed("a header has no colon"))?;
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "location" => head.location = Some(value.to_owned()),
            "transfer-encoding" => head.chunked = value.to_ascii_lowercase().ends_with("chunked"),
            "content-length" => {
                head.length = Some(value.parse().map_err(|_| malformed("content-length is no number"))?);
            }
            _ => {}
        }
    }
}

fn read_reply(mut reader: impl BufRead, taken: Taken<'_>) -> io::Result<Fetched> {
    let body_bytes_max = taken.bytes_max;
    let mut head = read_head(&mut reader)?;
    while head.status < 200 {
        head = read_head(&mut reader)?;
    }
    let too_large = || {
        io::Error::new(io::ErrorKind::InvalidData, format!("the body has more than {body_bytes_max} bytes"))
    };
    let mut body = Vec::new();
    if matches!(head.status, 204 | 304) {
        // These replies have no body, whatever their headers.
    } else if head.chunked {
        loop {
            let line = read_line(&mut reader, HEAD_BYTES_MAX)?;
            let line = String::from_utf8_lossy(&line);
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).map_err(|_| malformed("chunk size is no number"))?;
            if size == 0 {
                break;
            }
            if size > body_bytes_max - body.len() {
                return Err(too_large());
            }
            take(&mut reader, size, &mut body)?;
            if !read_line(&mut reader, 0)?.is_empty() {
                return Err(malformed("a chunk is longer than its size"));
            }
        }
    } else if let Some(length) = head.length {
        if length > body_bytes_max {
            return Err(too_large());
        }
        match take(&mut reader, length, &mut body) {
            Err(error) if taken.cut && error.kind() == io::ErrorKind::InvalidData => {}
            taken => taken?,
        }
    } else {
        reader.take(body_bytes_max as u64 + 1).read_to_end(&mut body)?;
        if body.len() > body_bytes_max {
            return Err(too_large());
        }
    }
    Ok(Fetched { status: head.status, location: head.location, body })
}

fn take(reader: &mut impl BufRead, bytes: usize, body: &mut Vec<u8>) -> io::Result<()> {
    let read = reader.take(bytes as u64).read_to_end(body)?;
    if read == bytes { Ok(()) } else { Err(malformed("the body is cut short")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(bytes: &str) -> Result<(u16, Option<String>, String), FetchError> {
        let reply = read_reply(bytes.as_bytes(), Taken { bytes_max: 8, cut: false, went_on: &|at| at })
            .map_err(failed)?;
        Ok((reply.status, reply.location, String::from_utf8_lossy(&reply.body).into_owned()))
    }

    #[test]
    fn reads_a_body_by_length_chunks_or_end() {
        let ok = |body: &str| Ok((200, None, body.to_owned()));
        assert_eq!(reply("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdef"), ok("abc"));
        assert_eq!(reply("HTTP/1.0 200\n\nabc"), ok("abc"));
        assert_eq!(
            reply("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n1\r\nd\r\n0\r\n\r\n"),
            ok("abcd")
        );
        assert_eq!(reply("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"), ok(""));
        let moved = (302, Some("/x".to_owned()), String::new());
        assert_eq!(reply("HTTP/1.1 302 Found\r\nlocation: /x \r\n\r\n"), Ok(moved));
    }

    #[test]
    fn refuses_too_much_and_too_little() {
        for bytes in [
            "",
            "HTTP/1.1 200 OK\r\n",
            "SSH-2.0-x\r\n\r\n",
            "HTTP/1.1 200 OK\r\nx\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n123456789",
            "HTTP/1.1 200 OK\r\n\r\n123456789",
            "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
        ] {
            assert!(reply(bytes).is_err(), "{bytes:?}");
        }
        let endless = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(HEAD_BYTES_MAX));
        assert!(reply(&endless).is_err());
    }
}
