//! Requests to the adapter, parsed as they were written, and the allowed replies.

use std::ops::RangeInclusive;

use peerproof_engine::data::carriage::{BodyFraming, Carriage};
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::transcript::Transcript;

use super::TOKEN;
use crate::job::{BYTES_MAX, Job};

/// Statuses that refuse a wrong request.
pub(crate) const CLIENT: &[RangeInclusive<u16>] = &[400..=499];
/// Statuses that refuse a wrong request, or one for something that the adapter does not implement.
const UNKNOWN: &[RangeInclusive<u16>] = &[400..=499, 501..=501];
/// Statuses of any refusal.
const ANY: &[RangeInclusive<u16>] = &[300..=599];

/// SHOULD clause and status for an over-large body.
pub(crate) const LARGE: (&str, &[u16]) = ("QUE-HTTP-10", &[413]);

/// Longest method that every server must read, bytes.
const METHOD_BYTES: usize = 32;

/// Size above which a refusing server may leave the body unread, bytes. Closing the connection may then lose the
/// reply.
const UNREAD_BYTES: usize = 64 << 10;

/// A request.
#[derive(Debug, Clone, Default)]
pub(super) struct Request {
    method: String,
    target: String,
    /// Header fields, names in lower case.
    headers: Vec<(String, String)>,
    lengths: Vec<String>,
    is_chunked: bool,
    is_cut: bool,
    /// True if its declared length is over the limit for jobs.
    is_over: bool,
    /// True if the contract does not cover it: another version, or bytes after the body.
    is_odd: bool,
    /// True if it is not an HTTP request.
    is_garbage: bool,
    body: Vec<u8>,
}

impl Request {
    /// Parses a request. `bytes` is the body, or the whole request if it is carried verbatim.
    pub(super) fn of(how: &Carriage, bytes: &[u8]) -> Self {
        if how.is_verbatim() {
            return Self::verbatim(bytes);
        }
        let mut request = Self {
            method: how.method.clone(),
            target: how.path.clone().unwrap_or_else(|| super::PATH.to_owned()),
            is_odd: how.http_1_0 || how.gzip.is_some(),
            is_cut: how.is_cut(),
            body: bytes.to_vec(),
            ..Self::default()
        };
        request.add_headers(how.headers.iter().map(String::as_str));
        let content_type = how.content_type.clone();
        request.headers.extend(content_type.map(|value| ("content-type".to_owned(), value)));
        match how.framing {
            BodyFraming::Chunked(_) | BodyFraming::ExtendedChunks(_) | BodyFraming::OpenChunks(_) => {
                request.is_chunked = true;
            }
            _ if bytes.is_empty() && how.method != "POST" => {}
            BodyFraming::Short(missing) => request.lengths.push((bytes.len() + missing as usize).to_string()),
            _ => request.lengths.push(bytes.len().to_string()),
        }
        request.is_over = !request.is_chunked && request.lengths.iter().any(|length| is_over(length));
        request
    }

    fn verbatim(bytes: &[u8]) -> Self {
        // Some servers accept bare line feeds.
        let is_odd = has_bare_line_feed(bytes);
        let garbage = || Self { is_garbage: !is_odd, is_odd, ..Self::default() };
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { return garbage() };
        let (head, body) = (&bytes[..end], &bytes[end + 4..]);
        let Ok(head) = std::str::from_utf8(head) else { return garbage() };
        let mut lines = head.split("\r\n");
        let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
        let [method, target, version] = words[..] else { return garbage() };
        let is_malformed = !version.starts_with("HTTP/1.") || method.is_empty() || target.is_empty();
        if is_malformed || lines.clone().any(|it| !it.contains(':')) {
            return garbage();
        }
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        let mut names = lines.clone().filter_map(|line| line.split_once(':')).map(|(name, _)| name);
        let has_host = names.clone().any(|name| name.eq_ignore_ascii_case("host"));
        let is_plain = names.all(|name| !name.is_empty() && name.bytes().all(is_token));
        let mut request = Self {
            method: method.to_owned(),
            target: target.to_owned(),
            is_odd: version != "HTTP/1.1" || !has_host || !is_plain || has_bare_line_feed(head.as_bytes()),
            ..Self::default()
        };
        request.add_headers(lines);
        let length = match &request.lengths[..] {
            [length] => length.parse::<usize>().ok(),
            _ => None,
        };
        match (request.is_chunked, length) {
            (true, _) => match chunks(body) {
                Some((body, is_odd)) => {
                    request.body = body;
                    request.is_odd |= is_odd;
                }
                None => request.is_cut = true,
            },
            (false, Some(length)) => {
                request.is_cut = body.len() < length;
                request.is_odd |= body.len() > length;
                request.body = body[..length.min(body.len())].to_vec();
            }
            (false, None) => request.body = body.to_vec(),
        }
        request.is_over = !request.is_chunked && request.lengths.iter().any(|length| is_over(length));
        request
    }

    fn add_headers<'a>(&mut self, lines: impl Iterator<Item = &'a str>) {
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            let (name, value) = (name.trim().to_ascii_lowercase(), value.trim().to_owned());
            match name.as_str() {
                "content-length" => self.lengths.push(value),
                "transfer-encoding" => {
                    self.is_chunked |= value.eq_ignore_ascii_case("chunked");
                    self.is_odd |= !value.eq_ignore_ascii_case("chunked");
                }
                _ => self.headers.push((name, value)),
            }
        }
    }

    fn header(&self, name: &str) -> Option<&str> {
        let mut own = self.headers.iter().filter(|(known, _)| known == name);
        own.next().map(|(_, value)| value.as_str())
    }

    /// Allowed replies, if the adapter demands `token`.
    pub(crate) fn stand(&self, token: Option<&Token>) -> AllowedReplies {
        if self.is_garbage {
            return AllowedReplies::refused("QUE-HTTP-31", ANY).or_closed().or_silent();
        }
        let mut stand = self.authorized();
        stand.may_close |= self.method.len() > METHOD_BYTES;
        let Some(token) = token.filter(|token| self.header(&token.header) != Some(&token.value)) else {
            return stand;
        };
        // Some servers ignore the case of the scheme and extra blanks.
        if self.header(&token.header).is_some_and(|given| token.may_be(given)) {
            return AllowedReplies { may_refuse: ANY, ..stand };
        }
        let may_close = stand.may_close || self.body.len() > UNREAD_BYTES;
        // A server that does not support `Expect` may refuse it.
        let is_plain = stand.may_refuse.is_empty() && self.header("expect").is_none();
        match () {
            () if stand.is_health => AllowedReplies {
                choice: Some(("health_without_token", "200", "401")),
                clause: "QUE-HTTP-24",
                may_refuse: &[401..=401],
                ..stand
            },
            () if stand.may_put && is_plain => {
                AllowedReplies { may_close, ..AllowedReplies::refused("QUE-TOK-01", &[401..=401]) }
            }
            () => AllowedReplies {
                may_close,
                may_be_silent: stand.may_be_silent,
                ..AllowedReplies::refused("QUE-TOK-01", UNKNOWN)
            },
        }
    }

    /// True for a chunked body without a declared length.
    pub(crate) fn is_in_chunks(&self) -> bool {
        self.is_chunked && self.lengths.is_empty()
    }

    /// True if a length is not a number, or several lengths differ.
    fn has_wrong_length(&self) -> bool {
        let first = self.lengths.first();
        self.lengths.iter().any(|length| !is_decimal(length) || Some(length) != first)
    }

    /// Allowed replies to an authorized request.
    fn authorized(&self) -> AllowedReplies {
        if self.is_odd {
            let stand = AllowedReplies::put("QUE-HTTP-36", Job::read(&self.body)).or_refused(ANY);
            return stand.or_closed().or_fine().or_silent();
        }
        let (path, query) = match self.target.split_once('?') {
            Some((path, _)) => (path, true),
            None => (self.target.as_str(), false),
        };
        // A server that cannot find the end of a request need not look at its path.
        let is_enqueuing = path == super::PATH && self.method == "POST";
        if !is_enqueuing && (self.is_cut || self.is_over || self.has_wrong_length()) {
            return AllowedReplies::refused("QUE-HTTP-36", ANY).or_fine().or_closed().or_silent();
        }
        let plain = path.trim_matches('/').to_ascii_lowercase();
        let is_near = plain == "enqueue" && path != super::PATH
            || path.contains("//")
            || path.contains('%')
            || !path.starts_with('/');
        if is_near || self.method == "HEAD" || self.method == "OPTIONS" {
            return AllowedReplies {
                may_put: self.method == "POST",
                ..AllowedReplies::refused("QUE-HTTP-36", ANY)
            }
            .or_fine();
        }
        if path == super::HEALTH {
            return match self.method.as_str() {
                "GET" => AllowedReplies { is_health: true, ..AllowedReplies::refused("QUE-HTTP-23", &[]) },
                _ => AllowedReplies::refused("QUE-HTTP-36", ANY).or_fine(),
            };
        }
        if path != super::PATH {
            return match self.method.as_str() {
                "GET" | "POST" => AllowedReplies::refused("QUE-HTTP-19", &[404..=404]),
                _ => AllowedReplies::refused("QUE-HTTP-19", UNKNOWN),
            };
        }
        match self.method.as_str() {
            "POST" => self.posted(query),
            "GET" | "PUT" | "DELETE" => AllowedReplies::refused("QUE-HTTP-20", &[404..=405]),
            _ => AllowedReplies::refused("QUE-HTTP-20", UNKNOWN),
        }
    }

    fn posted(&self, query: bool) -> AllowedReplies {
        let job = || Job::read(&self.body);
        let first = self.lengths.first();
        if self.has_wrong_length() || first.is_none() && !self.is_chunked {
            return AllowedReplies::refused("QUE-HTTP-14", if self.is_chunked { UNKNOWN } else { CLIENT })
                .or_closed();
        }
        if self.is_cut && !self.is_over {
            return AllowedReplies::refused("QUE-HTTP-13", ANY).or_closed().or_silent();
        }
        if self.is_over || self.body.len() > BYTES_MAX {
            // An adapter without chunked support need not report the size, and servers need not parse every number.
            let is_number = first.is_some_and(|length| length.parse::<u64>().is_ok());
            let careful = (!self.is_chunked && is_number).then_some(LARGE);
            let refusals = if self.is_chunked { UNKNOWN } else { CLIENT };
            let may_be_silent = self.is_cut;
            return AllowedReplies {
                careful,
                may_be_silent,
                ..AllowedReplies::refused("QUE-HTTP-11", refusals)
            }
            .or_closed();
        }
        let expects = self.header("expect");
        let is_other_expectation = expects.is_some_and(|it| !it.eq_ignore_ascii_case("100-continue"));
        if self.lengths.len() > 1 || is_other_expectation || self.header("content-encoding").is_some() {
            return AllowedReplies::put("QUE-HTTP-36", job()).or_refused(ANY).or_closed();
        }
        let content_type = self.header("content-type").unwrap_or_default();
        let name = content_type.split(';').next().unwrap_or_default().trim();
        let is_json = name.eq_ignore_ascii_case("application/json");
        let mut open: Vec<(&'static str, &'static str, &'static [RangeInclusive<u16>])> = Vec::new();
        if self.is_chunked && first.is_some() {
            open.push(("QUE-HTTP-15", "length_and_chunked", UNKNOWN));
        } else if self.is_chunked {
            open.push(("QUE-HTTP-16", "chunked", UNKNOWN));
        }
        if query {
            open.push(("QUE-HTTP-21", "query_string", &[404..=404]));
        }
        if !is_json {
            open.push(("QUE-HTTP-22", "content_type_other", &[415..=415]));
        }
        let job = job();
        match &job {
            Job::Malformed if open.is_empty() => {
                let careful = Some(("QUE-HTTP-08", &[400_u16, 422][..]));
                return AllowedReplies {
                    careful,
                    nothing: "QUE-HTTP-07",
                    ..AllowedReplies::refused("QUE-HTTP-09", CLIENT)
                };
            }
            Job::Malformed => return AllowedReplies::refused("QUE-HTTP-07", UNKNOWN),
            Job::Barred(_) => open.push(("QUE-JOB-24", "goal_id_with_bar", CLIENT)),
            Job::Halved(_) | Job::Unclear => {
                return AllowedReplies::put("QUE-HTTP-09", job).or_refused(UNKNOWN);
            }
            Job::Right(_) => {}
        }
        let may_close = self.is_chunked && first.is_some();
        let stand = match open[..] {
            [] if expects.is_some() => AllowedReplies::put("QUE-HTTP-17", job),
            [] => AllowedReplies::put("QUE-HTTP-01", job),
            [(clause, key, refusals)] => AllowedReplies {
                choice: Some((key, "accept", "refuse")),
                may_refuse: refusals,
                ..AllowedReplies::put(clause, job)
            },
            _ => AllowedReplies::put("QUE-HTTP-36", job).or_refused(UNKNOWN),
        };
        AllowedReplies { may_close, ..stand }
    }
}

fn is_decimal(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// True if a length exceeds the limit for jobs.
fn is_over(length: &str) -> bool {
    is_decimal(length) && length.parse::<usize>().ok().is_none_or(|bytes| bytes > BYTES_MAX)
}

/// True if a line ends in a bare line feed.
fn has_bare_line_feed(bytes: &[u8]) -> bool {
    memchr::memchr_iter(b'\n', bytes).any(|at| at == 0 || bytes[at - 1] != b'\r')
}

/// A chunked body without its framing. The flag is true for bare line feeds or a trailer. `None` if it is cut off.
fn chunks(mut rest: &[u8]) -> Option<(Vec<u8>, bool)> {
    let (mut body, mut is_odd) = (Vec::new(), false);
    let mut line = |rest: &mut &[u8]| {
        let whole = *rest;
        let end = memchr::memchr(b'\n', whole)?;
        let line = &whole[..end];
        *rest = &whole[end + 1..];
        is_odd |= !line.ends_with(b"\r");
        Some(line.strip_suffix(b"\r").unwrap_or(line).to_vec())
    };
    let mut has_trailer = false;
    loop {
        let size = line(&mut rest)?;
        let size = std::str::from_utf8(&size).ok()?.split(';').next()?.to_owned();
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        if size == 0 {
            break;
        }
        body.extend_from_slice(rest.get(..size)?);
        rest = rest.get(size..)?;
        line(&mut rest).filter(Vec::is_empty)?;
    }
    // The last line feed belongs to the step.
    while rest != b"\r" && !line(&mut rest)?.is_empty() {
        has_trailer = true;
    }
    Some((body, is_odd || has_trailer))
}

/// Allowed replies to a request.
#[derive(Debug, Clone, Default)]
pub(super) struct AllowedReplies {
    /// Clause that any other reply breaks.
    pub clause: &'static str,
    /// Clause that an enqueued job breaks.
    pub nothing: &'static str,
    /// Allows 200, 201 or 202 with a job in the inbox.
    pub may_put: bool,
    /// Allows any 2xx without a job.
    pub may_be_fine: bool,
    /// Allowed refusals.
    pub may_refuse: &'static [RangeInclusive<u16>],
    /// Allows closing the connection instead.
    pub may_close: bool,
    /// Allows no reply on an open connection.
    pub may_be_silent: bool,
    /// True if the adapter declares support for the chunked body.
    pub takes_chunks: bool,
    /// SHOULD clause and the statuses that it asks for.
    pub careful: Option<(&'static str, &'static [u16])>,
    /// Open choice, with its values for acceptance and for refusal.
    pub choice: Option<(&'static str, &'static str, &'static str)>,
    /// True for a health check.
    pub is_health: bool,
    /// The job, if its stored form is known.
    pub job: Option<Json>,
}

impl AllowedReplies {
    fn put(clause: &'static str, job: Job) -> Self {
        Self { clause, nothing: clause, may_put: true, job: job.value(), ..Self::default() }
    }

    fn refused(clause: &'static str, may_refuse: &'static [RangeInclusive<u16>]) -> Self {
        Self { clause, nothing: clause, may_refuse, ..Self::default() }
    }

    fn or_refused(self, may_refuse: &'static [RangeInclusive<u16>]) -> Self {
        Self { may_refuse, ..self }
    }

    fn or_closed(self) -> Self {
        Self { may_close: true, ..self }
    }

    fn or_silent(self) -> Self {
        Self { may_be_silent: true, ..self }
    }

    fn or_fine(self) -> Self {
        Self { may_be_fine: true, ..self }
    }

    /// True if the job must be enqueued.
    pub(crate) fn is_put(&self) -> bool {
        self.may_put && self.may_refuse.is_empty()
    }

    /// True if this status is allowed.
    pub(crate) fn allows(&self, status: u16) -> bool {
        self.is_health && status == 200
            || self.may_put && is_put(status)
            || self.may_be_fine && (200..=299).contains(&status)
            || self.refuses(status)
    }

    /// True if this status is an allowed refusal.
    pub(super) fn refuses(&self, status: u16) -> bool {
        self.may_refuse.iter().any(|range| range.contains(&status))
    }
}

/// True for a status that confirms a job.
pub(crate) fn is_put(status: u16) -> bool {
    (200..=202).contains(&status)
}

/// Token of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    /// The token.
    pub token: String,
    /// Name of its header, in lower case.
    pub header: String,
    /// Value of the header.
    pub value: String,
}

impl Token {
    /// A token in the configured form.
    pub(super) fn new(facts: &Facts, token: &str) -> Self {
        let setting = |name: &str| facts.features.get(TOKEN).and_then(|it| it.get(name)?.as_str());
        let value = setting("value").unwrap_or("Bearer {token}").replace("{token}", token);
        let header = setting("header").unwrap_or("Authorization").to_ascii_lowercase();
        Self { token: token.to_owned(), header, value }
    }

    /// Token of a session.
    pub(super) fn of(transcript: &Transcript, session: usize) -> Option<Self> {
        let spec = transcript.plan.sessions.get(session)?;
        let token = spec.placeholders.get(TOKEN)?;
        Some(Self::new(&transcript.facts, token))
    }

    /// True if some servers accept `given` as well: it differs in the case of the scheme or in blanks.
    fn may_be(&self, given: &str) -> bool {
        let parts = |text: &str| {
            let (scheme, rest) = text.trim().split_once(' ').unwrap_or(("", text));
            (scheme.to_ascii_lowercase(), rest.trim().to_owned())
        };
        parts(given) == parts(&self.value)
    }
}
