//! Parser of HTTP/1.1 requests that arrive in pieces, with limits on every part (RFC 9112 §3, §5, §6, §7).
//!
//! A [`RequestReader`] does no I/O. It holds at most one head and one body. It reads a body over the limit to its end
//! and drops it, so that the connection can go on.

/// Limits of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpCaps {
    /// Largest request line and headers together, and largest trailer, in bytes.
    pub head_bytes_max: usize,
    /// Largest body that is kept, in bytes.
    pub body_bytes_max: usize,
    /// Largest body that is read and dropped, in bytes. A longer one ends the connection.
    pub discard_bytes_max: u64,
    /// True to ignore `Content-Length` beside chunks. Otherwise the request is refused.
    pub takes_length_beside_chunks: bool,
}

/// The relevant parts of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HttpRequest {
    /// Method, as spelled.
    pub method: String,
    /// Request target, as spelled.
    pub target: String,
    /// `Content-Type`, if present.
    pub content_type: Option<String>,
    /// `Authorization`, if present.
    pub authorization: Option<String>,
    /// `Content-Encoding`, if present.
    pub content_encoding: Option<String>,
    /// True for a request of HTTP/1.0.
    pub is_http_1_0: bool,
    /// True if the client waits for `100 Continue`.
    pub expects: bool,
    /// True for a chunked body.
    pub is_chunked: bool,
    /// The body; `None` if it is too large.
    pub body: Option<Vec<u8>>,
    /// Number of bytes in the first piece of the body.
    pub first_piece_bytes: usize,
    /// True if the body began to arrive after the head was complete.
    pub is_held_back: bool,
    /// True if another request may follow on the connection.
    pub keeps_open: bool,
}

/// Result of reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HttpStep {
    /// More bytes are needed.
    More,
    /// The client waits for `100 Continue`.
    Continue,
    /// A whole request.
    Request(HttpRequest),
    /// The bytes are not a valid request: the status of the reply, after which the connection ends.
    Bad(u16),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    RequestLine,
    Headers,
    Length(u64),
    ChunkSize,
    Chunk(u64),
    ChunkEnd,
    Trailer,
}

/// Reader of all requests of one connection.
#[derive(Debug)]
pub struct RequestReader {
    caps: HttpCaps,
    state: State,
    line: Vec<u8>,
    head_bytes: usize,
    request: HttpRequest,
    length: Option<u64>,
    has_host: bool,
    says_keep: bool,
    body: Vec<u8>,
    body_bytes: u64,
}

const BAD_REQUEST: u16 = 400;
const TOO_LARGE: u16 = 413;
const HEAD_TOO_LARGE: u16 = 431;
const NOT_IMPLEMENTED: u16 = 501;
const OTHER_VERSION: u16 = 505;
/// Largest line with the size of a chunk, in bytes.
const CHUNK_LINE_BYTES_MAX: usize = 1024;

impl RequestReader {
    /// Creates a reader at the start of a connection.
    pub fn new(caps: HttpCaps) -> Self {
        Self {
            caps,
            state: State::RequestLine,
            line: Vec::new(),
            head_bytes: 0,
            request: HttpRequest { keeps_open: true, ..HttpRequest::default() },
            length: None,
            has_host: false,
            says_keep: false,
            body: Vec::new(),
            body_bytes: 0,
        }
    }

    /// True if no byte of a request has arrived.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.state == State::RequestLine && self.line.is_empty()
    }

    /// Request with the part of its body that has arrived; `None` before its head is complete.
    pub(crate) fn so_far(&self) -> Option<HttpRequest> {
        let is_head = matches!(self.state, State::RequestLine | State::Headers);
        (!is_head).then(|| HttpRequest { body: Some(self.body.clone()), ..self.request.clone() })
    }

    /// Consumes bytes from the front of `input` until there is a result.
    pub fn take(&mut self, input: &mut &[u8]) -> HttpStep {
        self.request.is_held_back |= self.body_bytes == 0 && matches!(self.state, State::Length(_));
        while !input.is_empty() {
            let step = match self.state {
                State::Length(left) | State::Chunk(left) => self.take_body(input, left),
                _ => self.take_line(input),
            };
            match step {
                Ok(HttpStep::More) => {}
                Ok(step) => return step,
                Err(status) => return HttpStep::Bad(status),
            }
        }
        HttpStep::More
    }

    fn take_body(&mut self, input: &mut &[u8], left: u64) -> Result<HttpStep, u16> {
        let count = input.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let (bytes, rest) = input.split_at(count);
        *input = rest;
        if self.body_bytes == 0 {
            self.request.first_piece_bytes = count;
        }
        self.body_bytes += count as u64;
        if self.body_bytes > self.caps.discard_bytes_max {
            return Err(TOO_LARGE);
        }
        if self.body_bytes <= self.caps.body_bytes_max as u64 {
            self.body.extend_from_slice(bytes);
        } else {
            self.body = Vec::new();
        }
        let left = left - count as u64;
        match self.state {
            State::Length(_) if left == 0 => return Ok(self.done()),
            State::Length(_) => self.state = State::Length(left),
            _ if left == 0 => self.state = State::ChunkEnd,
            _ => self.state = State::Chunk(left),
        }
        Ok(HttpStep::More)
    }

    fn take_line(&mut self, input: &mut &[u8]) -> Result<HttpStep, u16> {
        let end = memchr::memchr(b'\n', input);
        let (bytes, rest) = input.split_at(end.map_or(input.len(), |end| end + 1));
        *input = rest;
        let of_head = matches!(self.state, State::RequestLine | State::Headers | State::Trailer);
        if of_head {
            self.head_bytes += bytes.len();
        }
        let longest = if of_head { self.caps.head_bytes_max } else { CHUNK_LINE_BYTES_MAX };
        if self.head_bytes > self.caps.head_bytes_max || self.line.len() + bytes.len() > longest {
            return Err(if of_head { HEAD_TOO_LARGE } else { BAD_REQUEST });
        }
        self.line.extend_from_slice(bytes);
        if end.is_none() {
            return Ok(HttpStep::More);
        }
        let line = std::mem::take(&mut self.line);
        let line = line.strip_suffix(b"\n").unwrap_or(&line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match self.state {
            // Empty lines before a request are skipped (RFC 9112 §2.2).
            State::RequestLine if line.is_empty() => {}
            State::RequestLine => self.request_line(line)?,
            State::Headers if line.is_empty() => return self.end_of_head(),
            State::Headers => self.header(line)?,
            State::ChunkSize => {
                let size = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
                let size = number(size, 16).ok_or(BAD_REQUEST)?;
                self.state = if size == 0 { State::Trailer } else { State::Chunk(size) };
            }
            State::ChunkEnd if line.is_empty() => self.state = State::ChunkSize,
            State::ChunkEnd => return Err(BAD_REQUEST),
            State::Trailer if line.is_empty() => return Ok(self.done()),
            _ => {}
        }
        Ok(HttpStep::More)
    }

    fn request_line(&mut self, line: &[u8]) -> Result<(), u16> {
        let text = std::str::from_utf8(line).map_err(|_| BAD_REQUEST)?;
        let mut words = text.split(' ');
        let (Some(method), Some(target), Some(version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(BAD_REQUEST);
        };
        if method.is_empty() || !method.bytes().all(is_token) || target.is_empty() {
            return Err(BAD_REQUEST);
        }
        self.request.is_http_1_0 = match version {
            "HTTP/1.1" => false,
            "HTTP/1.0" => true,
            _ if version.starts_with("HTTP/") => return Err(OTHER_VERSION),
            _ => return Err(BAD_REQUEST),
        };
        self.request.method = method.to_owned();
        self.request.target = target.to_owned();
        self.state = State::Headers;
        Ok(())
    }

    fn header(&mut self, line: &[u8]) -> Result<(), u16> {
        let text = std::str::from_utf8(line).map_err(|_| BAD_REQUEST)?;
        let (name, value) = text.split_once(':').ok_or(BAD_REQUEST)?;
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(BAD_REQUEST);
        }
        let value = value.trim_matches([' ', '\t']);
        match name.to_ascii_lowercase().as_str() {
            "host" => self.has_host = true,
            "content-type" => self.request.content_type = Some(value.to_owned()),
            "authorization" => self.request.authorization = Some(value.to_owned()),
            "content-encoding" => self.request.content_encoding = Some(value.to_ascii_lowercase()),
            "content-length" => {
                let length = number(value.as_bytes(), 10).ok_or(BAD_REQUEST)?;
                if self.length.is_some_and(|before| before != length) {
                    return Err(BAD_REQUEST);
                }
                self.length = Some(length);
            }
            "transfer-encoding" => {
                if !value.eq_ignore_ascii_case("chunked") {
                    return Err(NOT_IMPLEMENTED);
                }
                self.request.is_chunked = true;
            }
            "connection" => {
                for word in value.split(',') {
                    self.request.keeps_open &= !word.trim().eq_ignore_ascii_case("close");
                    self.says_keep |= word.trim().eq_ignore_ascii_case("keep-alive");
                }
            }
            "expect" => self.request.expects = value.eq_ignore_ascii_case("100-continue"),
            _ => {}
        }
        Ok(())
    }

    fn end_of_head(&mut self) -> Result<HttpStep, u16> {
        // A request with two lengths may be an attempt at smuggling (RFC 9112 §6.1).
        let has_two = self.request.is_chunked && self.length.is_some();
        if has_two && !self.caps.takes_length_beside_chunks || !self.has_host && !self.request.is_http_1_0 {
            return Err(BAD_REQUEST);
        }
        self.request.keeps_open &= !self.request.is_http_1_0 || self.says_keep;
        match self.length {
            _ if self.request.is_chunked => self.state = State::ChunkSize,
            Some(length) if length > 0 => self.state = State::Length(length),
            _ => return Ok(self.done()),
        }
        Ok(if self.request.expects { HttpStep::Continue } else { HttpStep::More })
    }

    fn done(&mut self) -> HttpStep {
        let whole = self.body_bytes <= self.caps.body_bytes_max as u64;
        let mut request = std::mem::take(&mut self.request);
        request.body = whole.then(|| std::mem::take(&mut self.body));
        *self = Self::new(self.caps);
        HttpStep::Request(request)
    }
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn number(digits: &[u8], radix: u32) -> Option<u64> {
    let text = std::str::from_utf8(digits).ok()?;
    let all_digits = !text.is_empty() && text.chars().all(|c| c.is_digit(radix));
    if all_digits { u64::from_str_radix(text, radix).ok() } else { None }
}

/// Reason phrase of a status.
pub(crate) fn reason_phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        405 => "Method Not Allowed",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "Error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPS: HttpCaps = HttpCaps {
        head_bytes_max: 256,
        body_bytes_max: 8,
        discard_bytes_max: 32,
        takes_length_beside_chunks: false,
    };

    /// All results for `text` in pieces of this size.
    fn steps(text: &str, piece: usize) -> Vec<HttpStep> {
        let mut reader = RequestReader::new(CAPS);
        let mut steps = Vec::new();
        for mut piece in text.as_bytes().chunks(piece) {
            while !piece.is_empty() {
                match reader.take(&mut piece) {
                    HttpStep::More => {}
                    HttpStep::Bad(status) => {
                        steps.push(HttpStep::Bad(status));
                        return steps;
                    }
                    HttpStep::Request(request) => {
                        // The sizes of the pieces show only in these two fields.
                        steps.push(HttpStep::Request(HttpRequest {
                            first_piece_bytes: 0,
                            is_held_back: false,
                            ..request
                        }));
                    }
                    step => steps.push(step),
                }
            }
        }
        assert!(reader.is_at_rest(), "{text:?} is not complete");
        steps
    }

    fn requests(text: &str) -> Vec<HttpRequest> {
        let all = [1, 3, 1_000].map(|piece| steps(text, piece));
        assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{all:?}");
        let request = |step: &HttpStep| match step {
            HttpStep::Request(request) => request.clone(),
            other => panic!("{other:?}"),
        };
        all[0].iter().map(request).collect()
    }

    #[test]
    fn bodies_come_by_length_and_in_chunks() {
        let text = "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 3\r\n\r\nabc\
                    \r\nPOST /x HTTP/1.1\r\nhost:a\r\ntransfer-encoding: Chunked\r\n\r\n2;x=y\r\nab\r\n03\r\ncde\r\n0\r\nT: 1\r\n\r\n\
                    GET / HTTP/1.0\n\n";
        let requests = requests(text);
        let [length, chunked, get] = requests.as_slice() else { panic!("{requests:?}") };
        assert_eq!(length.body.as_deref(), Some(&b"abc"[..]));
        assert_eq!(length.content_type.as_deref(), Some("application/json"));
        assert!(length.keeps_open && !length.is_chunked);
        assert_eq!(chunked.body.as_deref(), Some(&b"abcde"[..]));
        assert!(chunked.keeps_open && chunked.is_chunked && chunked.content_type.is_none());
        assert_eq!(
            (get.method.as_str(), get.body.as_deref(), get.keeps_open),
            ("GET", Some(&b""[..]), false)
        );
    }

    #[test]
    fn a_large_body_is_dropped_and_the_next_request_read() {
        let text = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n123456789\
                    POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\nConnection: close\r\n\r\n12345678";
        let requests = requests(text);
        assert_eq!(requests[0].body, None);
        assert_eq!(requests[1].body.as_deref(), Some(&b"12345678"[..]));
        assert!(!requests[1].keeps_open);
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let head = "POST / HTTP/1.1\r\nHost: a\r\n";
        for (text, status) in [
            ("\u{16}\u{3}\u{1}\r\n".to_owned(), 400),
            ("POST  / HTTP/1.1\r\n".to_owned(), 400),
            ("POST / HTTP/2.0\r\n".to_owned(), 505),
            ("{\"jsonrpc\":\"2.0\"}\n".to_owned(), 400),
            ("POST / HTTP/1.1\r\n\r\n".to_owned(), 400),
            (format!("{head}Content-Length: -1\r\n"), 400),
            (format!("{head}Content-Length: 1\r\nContent-Length: 2\r\n"), 400),
            (format!("{head}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"), 400),
            (format!("{head}Transfer-Encoding: gzip\r\n"), 501),
            (format!("{head}Transfer-Encoding: chunked\r\n\r\nx\r\n"), 400),
            (format!("{head}Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n"), 400),
            (format!("{head}no colon\r\n"), 400),
            (format!("{head}a: {}\r\n", "x".repeat(300)), 431),
            (format!("{head}Content-Length: 99\r\n\r\n{}", "x".repeat(99)), 413),
        ] {
            for piece in [1, 1_000] {
                assert_eq!(steps(&text, piece).last(), Some(&HttpStep::Bad(status)), "{text:?}");
            }
        }
    }

    #[test]
    fn what_came_of_a_request_is_known_behind_its_head() {
        let head = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n";
        for (text, body) in [(head.to_owned(), None), (format!("{head}\r\n12"), Some(&b"12"[..]))] {
            let mut reader = RequestReader::new(CAPS);
            assert_eq!(reader.take(&mut text.as_bytes()), HttpStep::More);
            let so_far = reader.so_far();
            assert_eq!(so_far.as_ref().and_then(|request| request.body.as_deref()), body, "{text:?}");
            assert!(so_far.is_none_or(|request| request.target == "/x" && request.first_piece_bytes == 2));
        }
    }

    #[test]
    fn a_client_that_waits_is_told_to_go_on() {
        let text = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n1";
        let steps = steps(text, 1_000);
        assert!(matches!(steps.as_slice(), [HttpStep::Continue, HttpStep::Request(_)]), "{steps:?}");
    }
}
