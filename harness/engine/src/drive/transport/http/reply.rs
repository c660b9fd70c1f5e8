//! Replies of an HTTP/1.1 server, read incrementally and within limits (RFC 9112 §4, §6, §7).

/// Maximum length of a reply's head, and of its trailer.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Maximum length of a chunk-size line.
const CHUNK_LINE_BYTES_MAX: usize = 4 << 10;
/// Maximum number of interim replies.
const INTERIM_MAX: u32 = 16;

/// Complete reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HttpReply {
    pub(super) status: u16,
    pub(super) content_type: Option<String>,
    /// Lines of all heads and trailers.
    pub(super) head: Vec<u8>,
    pub(super) body: Vec<u8>,
    /// Set if another request may follow on the connection.
    pub(super) keeps_open: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReplyState {
    Head,
    Length(u64),
    ChunkSize,
    Chunk(u64),
    ChunkEnd,
    Trailer,
    UntilClose,
    Done,
}

/// Fault that ended reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// Not valid HTTP; described in one phrase.
    Malformed(String),
    /// Body longer than the budget.
    TooLarge,
}

/// Reader of one reply.
#[derive(Debug)]
pub(super) struct ReplyReader {
    state: ReplyState,
    /// Line being read.
    line: Vec<u8>,
    head_bytes: usize,
    interim: u32,
    status: Option<u16>,
    length: Option<u64>,
    chunked: bool,
    http_1_0: bool,
    says_close: bool,
    says_keep: bool,
    content_type: Option<String>,
    head: Vec<u8>,
    body: Vec<u8>,
    body_bytes_max: usize,
    /// Set for a reply to HEAD, which has no body whatever its head says.
    bodyless: bool,
}

impl ReplyReader {
    pub(super) fn new(body_bytes_max: usize, bodyless: bool) -> Self {
        Self {
            state: ReplyState::Head,
            line: Vec::new(),
            head_bytes: 0,
            interim: 0,
            status: None,
            length: None,
            chunked: false,
            http_1_0: false,
            says_close: false,
            says_keep: false,
            content_type: None,
            head: Vec::new(),
            body: Vec::new(),
            body_bytes_max,
            bodyless,
        }
    }

    /// True if no byte of the reply has come.
    pub(super) fn is_untouched(&self) -> bool {
        self.head_bytes == 0 && self.interim == 0
    }

    /// True if an interim reply has come.
    pub(super) fn says_continue(&self) -> bool {
        self.interim > 0
    }

    /// True if a final status has come.
    pub(super) fn has_status(&self) -> bool {
        self.status.is_some_and(|status| status >= 200)
    }

    pub(super) fn is_done(&self) -> bool {
        self.state == ReplyState::Done
    }

    /// Takes bytes; returns how many belong to the reply. The rest comes after its end.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<usize, Fault> {
        let mut at = 0;
        while at < bytes.len() && self.state != ReplyState::Done {
            let rest = &bytes[at..];
            at += match self.state {
                ReplyState::Length(left) | ReplyState::Chunk(left) => self.take_body(rest, left)?,
                ReplyState::UntilClose => self.take_body(rest, u64::MAX)?,
                ReplyState::Head | ReplyState::Trailer => self.take_line(rest, HEAD_BYTES_MAX)?,
                ReplyState::ChunkSize | ReplyState::ChunkEnd => self.take_line(rest, CHUNK_LINE_BYTES_MAX)?,
                ReplyState::Done => 0,
            };
        }
        Ok(at)
    }

    /// Handles the end of the connection.
    pub(super) fn end(&mut self) -> Result<(), Fault> {
        match self.state {
            ReplyState::UntilClose => {
                self.state = ReplyState::Done;
                Ok(())
            }
            ReplyState::Done => Ok(()),
            ReplyState::Head if self.is_untouched() => malformed("the connection was closed without a reply"),
            ReplyState::Head => malformed("the connection was closed in the middle of the head"),
            _ => {
                malformed(&format!("the connection was closed in the middle of the body: {}", self.so_far()))
            }
        }
    }

    /// Describes an incomplete reply.
    pub(super) fn so_far(&self) -> String {
        let Some(status) = self.status else { return "an incomplete HTTP head".to_owned() };
        let body = self.body.len();
        match (self.state, self.length) {
            (ReplyState::Head, _) => format!("an incomplete HTTP head with status {status}"),
            (ReplyState::Length(_), Some(length)) => {
                format!("status {status} and {body} bytes of a body; Content-Length is {length}")
            }
            _ => format!("status {status} and {body} bytes of an incomplete body"),
        }
    }

    /// Reply, once complete.
    pub(super) fn into_reply(self) -> Option<HttpReply> {
        if self.state != ReplyState::Done {
            return None;
        }
        self.into_cut_reply()
    }

    /// Incomplete reply, if its status has come.
    pub(super) fn into_cut_reply(self) -> Option<HttpReply> {
        let delimited = self.bodyless || self.chunked || self.length.is_some();
        let keeps_open = delimited && !self.says_close && (!self.http_1_0 || self.says_keep);
        let Self { content_type, head, body, .. } = self;
        Some(HttpReply { status: self.status?, content_type, head, body, keeps_open })
    }

    fn take_body(&mut self, bytes: &[u8], left: u64) -> Result<usize, Fault> {
        let count = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if self.body.len() + count > self.body_bytes_max {
            return Err(Fault::TooLarge);
        }
        self.body.extend_from_slice(&bytes[..count]);
        let left = left - count as u64;
        self.state = match self.state {
            ReplyState::Length(_) if left == 0 => ReplyState::Done,
            ReplyState::Length(_) => ReplyState::Length(left),
            ReplyState::Chunk(_) if left == 0 => ReplyState::ChunkEnd,
            ReplyState::Chunk(_) => ReplyState::Chunk(left),
            state => state,
        };
        Ok(count)
    }

    fn take_line(&mut self, bytes: &[u8], bytes_max: usize) -> Result<usize, Fault> {
        let end = memchr::memchr(b'\n', bytes);
        let count = end.map_or(bytes.len(), |end| end + 1);
        self.head_bytes += count;
        if self.line.len() + count > bytes_max || self.head_bytes > 2 * HEAD_BYTES_MAX + 16 * self.body.len()
        {
            return malformed("a header line or the whole head is longer than 64 KiB");
        }
        self.line.extend_from_slice(&bytes[..count]);
        if matches!(self.state, ReplyState::Head | ReplyState::Trailer) {
            self.head.extend_from_slice(&bytes[..count]);
        }
        if end.is_some() {
            let line = std::mem::take(&mut self.line);
            let line = line.strip_suffix(b"\n").unwrap_or(&line);
            self.line(line.strip_suffix(b"\r").unwrap_or(line))?;
        }
        Ok(count)
    }

    fn line(&mut self, line: &[u8]) -> Result<(), Fault> {
        match self.state {
            ReplyState::Head if self.status.is_none() => self.status_line(line),
            ReplyState::Head if line.is_empty() => self.end_of_head(),
            ReplyState::Head => self.header(line),
            ReplyState::ChunkSize => {
                let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
                let size = std::str::from_utf8(digits).ok().filter(|digits| is_all(digits, 16));
                let Some(size) = size.and_then(|digits| u64::from_str_radix(digits, 16).ok()) else {
                    return malformed("the size of a chunk is not a hexadecimal number");
                };
                self.state = if size == 0 { ReplyState::Trailer } else { ReplyState::Chunk(size) };
                Ok(())
            }
            ReplyState::ChunkEnd if line.is_empty() => {
                self.state = ReplyState::ChunkSize;
                Ok(())
            }
            ReplyState::ChunkEnd => malformed("a chunk is longer than its size"),
            ReplyState::Trailer if line.is_empty() => {
                self.state = ReplyState::Done;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn status_line(&mut self, line: &[u8]) -> Result<(), Fault> {
        let wrong = || malformed(&format!("no HTTP status line: {:?}", shown(line)));
        let Some(text) = line.strip_prefix(b"HTTP/1.") else { return wrong() };
        self.http_1_0 = match text.first() {
            Some(b'0') => true,
            Some(b'1') => false,
            _ => return wrong(),
        };
        let mut words = text[1..].split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        let status = words.next().and_then(|word| std::str::from_utf8(word).ok());
        match status.filter(|word| word.len() == 3 && is_all(word, 10)).and_then(|word| word.parse().ok()) {
            Some(status @ 100..) => self.status = Some(status),
            _ => return wrong(),
        }
        Ok(())
    }

    fn header(&mut self, line: &[u8]) -> Result<(), Fault> {
        let Some(colon) = memchr::memchr(b':', line) else {
            return malformed(&format!("a header line without a colon: {:?}", shown(line)));
        };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        let value = String::from_utf8_lossy(value).into_owned();
        if name.eq_ignore_ascii_case(b"content-length") {
            let number = Some(value.as_str()).filter(|value| is_all(value, 10)).and_then(|v| v.parse().ok());
            match (number, self.length) {
                (Some(length), None) => self.length = Some(length),
                (Some(length), Some(before)) if length == before => {}
                _ => return malformed(&format!("the value {value:?} of Content-Length is not valid")),
            }
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            let last = value.rsplit(',').next().unwrap_or_default();
            self.chunked = last.trim().eq_ignore_ascii_case("chunked");
        } else if name.eq_ignore_ascii_case(b"connection") {
            let says = |word: &str| value.split(',').any(|item| item.trim().eq_ignore_ascii_case(word));
            self.says_close |= says("close");
            self.says_keep |= says("keep-alive");
        } else if name.eq_ignore_ascii_case(b"content-type") {
            self.content_type = Some(value.chars().take(200).collect());
        }
        Ok(())
    }

    fn end_of_head(&mut self) -> Result<(), Fault> {
        let status = self.status.unwrap_or_default();
        if status < 200 && status != 101 {
            let interim = self.interim + 1;
            if interim > INTERIM_MAX {
                return malformed("too many interim replies");
            }
            let head = std::mem::take(&mut self.head);
            *self = Self { interim, head, ..Self::new(self.body_bytes_max, self.bodyless) };
            return Ok(());
        }
        self.bodyless |= matches!(status, 101 | 204 | 304);
        self.state = match (self.bodyless, self.chunked, self.length) {
            (true, ..) | (false, false, Some(0)) => ReplyState::Done,
            (false, true, _) => ReplyState::ChunkSize,
            (false, false, Some(length)) => ReplyState::Length(length),
            (false, false, None) => ReplyState::UntilClose,
        };
        Ok(())
    }
}

fn malformed<T>(why: &str) -> Result<T, Fault> {
    Err(Fault::Malformed(why.to_owned()))
}

fn is_all(digits: &str, radix: u32) -> bool {
    !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix))
}

fn shown(line: &[u8]) -> String {
    String::from_utf8_lossy(&line[..line.len().min(60)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a reply in pieces of this size; returns it with the number of bytes after its end.
    fn read(text: &str, piece: usize, closes: bool) -> Result<(HttpReply, usize), Fault> {
        let mut reader = ReplyReader::new(1_000, false);
        let mut surplus = 0;
        for piece in text.as_bytes().chunks(piece) {
            surplus += piece.len() - reader.take(piece)?;
        }
        if closes {
            reader.end()?;
        }
        let reply = reader.into_reply().ok_or_else(|| Fault::Malformed("not complete".to_owned()))?;
        Ok((reply, surplus))
    }

    fn body(text: &str, closes: bool) -> (u16, String, bool, usize) {
        let mut all = [1, 2, 7, 10_000].map(|piece| {
            let (reply, surplus) = read(text, piece, closes).unwrap();
            (reply.status, String::from_utf8(reply.body).unwrap(), reply.keeps_open, surplus)
        });
        assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{all:?}");
        std::mem::take(&mut all[0])
    }

    #[test]
    fn every_framing_gives_the_body() {
        let length = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\ncontent-type: application/json\r\n\r\nabcX";
        assert_eq!(body(length, false), (200, "abc".to_owned(), true, 1));
        let chunked = "HTTP/1.1 400 No\r\ntransfer-encoding: gzip, Chunked\r\n\r\n2;a=b\r\nab\r\n0A\r\n0123456789\r\n0\r\nT: 1\r\n\r\n";
        assert_eq!(body(chunked, false), (400, "ab0123456789".to_owned(), true, 0));
        assert_eq!(body("HTTP/1.1 200\n\nabc", true), (200, "abc".to_owned(), false, 0));
        assert_eq!(body("HTTP/1.1 204 No Content\r\n\r\n", false), (204, String::new(), true, 0));
        let interim =
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\n1";
        assert_eq!(body(interim, false), (200, "1".to_owned(), false, 0));
        let old = "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n1";
        assert!(!body(old, false).2);
        assert!(body(&old.replace("\r\n\r\n", "\r\nConnection: keep-alive\r\n\r\n"), false).2);
    }

    #[test]
    fn all_of_each_head_is_kept() {
        let text = "HTTP/1.1 100 Continue\r\nA: 1\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                    2\r\n{}\r\n0\r\nB: 2\r\n\r\n";
        for piece in [1, 7, 10_000] {
            let (reply, _) = read(text, piece, false).unwrap();
            let head = String::from_utf8(reply.head).unwrap();
            assert!(head.contains("A: 1\r\n") && head.contains("B: 2\r\n") && !head.contains("{}"), "{head}");
            assert_eq!(reply.body, b"{}");
        }
    }

    #[test]
    fn what_is_no_reply_is_said_to_be_none() {
        for (text, why) in [
            ("", "without a reply"),
            ("HTTP/1.1 200 OK\r\nContent-Le", "middle of the head"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", "middle of the body"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", "middle of the body"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n", "longer than its size"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", "hexadecimal"),
            ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "Content-Length"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "Content-Length"),
            ("HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "colon"),
            ("HTTP/2 200\r\n\r\n", "status line"),
            ("{\"jsonrpc\":\"2.0\"}\n", "status line"),
        ] {
            for piece in [1, 10_000] {
                match read(text, piece, true) {
                    Err(Fault::Malformed(words)) => assert!(words.contains(why), "{text:?}: {words}"),
                    other => panic!("{text:?}: {other:?}"),
                }
            }
        }
    }

    #[test]
    fn nothing_grows_without_bound() {
        let mut reader = ReplyReader::new(1_000, false);
        let mut head = Ok(0);
        reader.take(b"HTTP/1.1 200 OK\r\n").unwrap();
        for _ in 0..100_000 {
            head = reader.take(b"a: b\r\n");
            if head.is_err() {
                break;
            }
        }
        assert!(matches!(head, Err(Fault::Malformed(_))));
        let endless = format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(1_001));
        assert_eq!(read(&endless, 100, true), Err(Fault::TooLarge));
    }
}
