//! Peer reached by HTTP POST: each line of a conversation is the body of a request, each body of a reply a line.
//!
//! Requests with one connection number are sent one after the other, each after the reply to the one before. Other
//! numbers are other connections and do not wait for each other. A late reply delays nothing: its connection is still
//! read, and later requests use a new one. Bodies are not interpreted here.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use self::link::{ExchangeEnd, FollowUp, Idle, LaterPart, Link, PendingExchange, ReplyFailure};
use self::reply::{Fault, HttpReply};
use self::start::ServerAddress;
pub use self::start::{FreeAddress, ReadySign, ServerSpec, StartFault, is_of_server, placeholders, start};
pub(crate) use self::start::{URL_PREFIX, free_address};
use super::child::ChildConnection;
use super::inbox::micros;
use super::{Connection, Log, Pumped, Source, Until, Waiting, gave_up, wait_for};
use crate::data::budget::Budget;
use crate::data::carriage::{BodyFraming, Carriage};
use crate::data::plan::Chunking;
use crate::data::transcript::{Awaited, Bytes, EventKind, Exit};

mod link;
mod reply;
mod start;

/// Size of one read.
const READ_BYTES: usize = 64 << 10;
/// Interval for looking at the process.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Time for a process to end after it has closed its connections.
const DYING: Duration = Duration::from_millis(1_000);
/// Time without a reply after which idle connections are closed in favour of a waiting one.
const KEPT_WAITING: Duration = Duration::from_millis(100);
/// Maximum number of connections held open or still read besides those in use.
const ASIDE_MAX: usize = 1_024;

/// Requests of one connection number.
#[derive(Debug, Default)]
struct Lane {
    queue: VecDeque<PendingExchange>,
    link: Option<Link>,
    /// See [`Carriage::stays`].
    stays: bool,
}

/// Server, with its process if the harness started it.
#[derive(Debug)]
pub struct HttpConnection {
    place: ServerAddress,
    child: Option<ChildConnection>,
    started: Instant,
    looked_at: Instant,
    budget: Budget,
    lanes: BTreeMap<u32, Lane>,
    /// Connections with late replies, and those held open.
    aside: Vec<Link>,
    buffer: Vec<u8>,
    /// Unfinished line, and the number of received lines.
    partial: Vec<u8>,
    frames: u64,
    body_bytes: usize,
    over_budget: bool,
    /// Set if a request failed and none was answered since.
    has_failed: bool,
    close_requested: bool,
    /// Set once the process was asked to end because the conversation is over. Its exit then means nothing.
    dismissed: bool,
    signalled: bool,
    finished: bool,
}

/// Recorder that drops events of a server's standard streams, because the conversation does not use them.
struct StreamFilter<'a> {
    log: &'a mut dyn Log,
    dismissed: bool,
}

impl Log for StreamFilter<'_> {
    fn record(&mut self, at_us: u64, kind: EventKind) {
        let of_streams = matches!(
            kind,
            EventKind::Received { .. }
                | EventKind::StdoutClosed
                | EventKind::StdinClosed
                | EventKind::StdinBroken { .. }
        );
        // A signal ends it, so it cannot clean up.
        let of_the_end = matches!(
            kind,
            EventKind::Exited { .. }
                | EventKind::Killed
                | EventKind::LeakedProcess { .. }
                | EventKind::LeftFile { .. }
        );
        if !(of_streams || self.dismissed && of_the_end) {
            self.log.record(at_us, kind);
        }
    }
}

impl HttpConnection {
    fn lane(&mut self, connection: u32) -> &mut Lane {
        self.lanes.entry(connection).or_default()
    }

    /// Queues the lines that `bytes` complete, each as a request of its own.
    fn queue_lines(&mut self, step: usize, bytes: &[u8], chunking: Chunking) {
        let mut rest = bytes;
        let mut of_step = 0;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            self.partial.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            let body = std::mem::take(&mut self.partial);
            self.queue_body(step, of_step, &body, chunking, &Carriage::post());
            of_step += 1;
        }
        self.partial.extend_from_slice(rest);
    }

    fn queue_body(&mut self, step: usize, of_step: usize, body: &[u8], chunking: Chunking, how: &Carriage) {
        let then = match how.framing {
            // Some servers take an end of input after a whole request for the end of their client, and drop the reply.
            BodyFraming::Verbatim if is_whole(body) => FollowUp::Reply,
            BodyFraming::Short(_) | BodyFraming::OpenChunks(_) | BodyFraming::Verbatim => {
                FollowUp::EndAndReply
            }
            BodyFraming::Length | BodyFraming::Chunked(_) | BodyFraming::ExtendedChunks(_) => FollowUp::Reply,
            BodyFraming::Held => FollowUp::Hold,
            BodyFraming::Cut => FollowUp::Close,
        };
        let (mut bytes, mut behind) = (Vec::new(), VecDeque::new());
        if how.is_verbatim() {
            bytes.extend_from_slice(body);
        } else {
            let (head, body) = self.request(body, how);
            bytes = head;
            match (how.drawn_out_ms, how.pause) {
                (0, Some(pause)) => {
                    let (first, rest) = body.split_at(pause.after_bytes.min(body.len()));
                    bytes.extend_from_slice(first);
                    behind.push_back(LaterPart::later(rest, Duration::from_millis(pause.ms)));
                }
                (0, None) if how.held_back => behind.push_back(LaterPart::held_back(body)),
                (0, None) => bytes.extend(body),
                (ms, _) => behind.extend(LaterPart::pieces(&body, Duration::from_millis(ms))),
            }
        }
        let exchange = PendingExchange {
            step,
            of_step,
            connection: how.connection,
            bytes,
            behind,
            chunking,
            pipelined: how.pipelined,
            host: how.host,
            is_head: how.method == "HEAD",
            is_counted: how.counted,
            is_killing: how.killing,
            then,
            is_last: how.headers.iter().any(|line| line.eq_ignore_ascii_case("Connection: close")),
            queued_at_us: self.now_us(),
            // A deliberately cut request means nothing the second time.
            retried: how.is_cut(),
        };
        let lane = self.lane(how.connection);
        lane.stays |= how.stays;
        lane.queue.push_back(exchange);
    }

    /// Closes idle connections while another one waits: a server may serve a connection to its end before it accepts
    /// the next.
    fn leave_idle(&mut self) {
        let is_used = |lane: &Lane| {
            lane.stays
                || !lane.queue.is_empty()
                || lane.link.as_ref().is_some_and(|link| link.exchange.is_some())
        };
        if self.lanes.values().any(|lane| lane.link.as_ref().is_some_and(|link| link.waits(KEPT_WAITING))) {
            self.lanes.retain(|_, lane| is_used(lane));
        }
    }

    /// Head of a request, and its body as framed.
    fn request(&self, body: &[u8], how: &Carriage) -> (Vec<u8>, Vec<u8>) {
        let ServerAddress { host, path, .. } = &self.place;
        let path = how.path.as_ref().unwrap_or(path);
        let version = if how.http_1_0 { "1.0" } else { "1.1" };
        let mut head = format!(
            "{} {path} HTTP/{version}\r\nHost: {host}\r\nUser-Agent: peerproof\r\nAccept: application/json\r\n",
            how.method
        );
        if let Some(content_type) = &how.content_type {
            head.push_str(&format!("Content-Type: {content_type}\r\n"));
        }
        if how.gzip.is_some() {
            head.push_str("Content-Encoding: gzip\r\n");
        }
        how.headers.iter().for_each(|line| head.push_str(&format!("{line}\r\n")));
        let packed = how.gzip.and_then(|packing| packing.pack(body).ok());
        let body = packed.as_deref().unwrap_or(body);
        let mut bytes = Vec::new();
        match how.framing {
            BodyFraming::Chunked(size)
            | BodyFraming::ExtendedChunks(size)
            | BodyFraming::OpenChunks(size) => {
                let (extension, trailer) = match how.framing {
                    BodyFraming::ExtendedChunks(_) => (";part=1;word=\"a b\"", "X-Sent-By: peerproof\r\n"),
                    _ => ("", ""),
                };
                head.push_str("Transfer-Encoding: chunked\r\n");
                for (number, chunk) in body.chunks((size as usize).max(1)).enumerate() {
                    // Alternate upper and lower case: digits of either case are valid (RFC 9112 §7.1).
                    let size = format!("{:x}", chunk.len());
                    let size = if number % 2 == 0 { size.to_uppercase() } else { size };
                    bytes.extend(format!("{size}{extension}\r\n").into_bytes());
                    bytes.extend_from_slice(chunk);
                    bytes.extend(b"\r\n");
                }
                if !how.is_cut() {
                    bytes.extend(format!("0{extension}\r\n{trailer}\r\n").into_bytes());
                }
            }
            _ if body.is_empty() && how.method != "POST" => {}
            framing => {
                let missing = if let BodyFraming::Short(missing) = framing { missing as usize } else { 0 };
                head.push_str(&format!("Content-Length: {}\r\n", body.len() + missing));
                bytes.extend_from_slice(body);
            }
        }
        head.push_str("\r\n");
        (how.spelling.of(head).into_bytes(), bytes)
    }

    /// Makes all progress that is possible without blocking.
    fn advance(&mut self, log: &mut dyn Log) {
        let numbers: Vec<u32> = self.lanes.keys().copied().collect();
        for number in numbers {
            // Continue as long as replies arrive at once.
            while self.advance_lane(number, log) {}
        }
        let mut aside = std::mem::take(&mut self.aside);
        for link in &mut aside {
            if let Some((exchange, how)) = link.advance(&mut self.buffer) {
                self.conclude(exchange, how, link.carried, log);
            }
        }
        // Drop connections whose late reply has come; keep those held open.
        aside.retain(|link| link.exchange.is_some() || link.is_held);
        aside.append(&mut self.aside);
        self.aside = aside;
    }

    /// Advances one connection number; returns true if an exchange ended, so that the next can begin.
    fn advance_lane(&mut self, number: u32, log: &mut dyn Log) -> bool {
        let room = self.budget.stdout_bytes_max.saturating_sub(self.body_bytes);
        let Some(lane) = self.lanes.get_mut(&number) else { return false };
        let is_free = lane.link.as_ref().is_none_or(|link| link.exchange.is_none());
        if is_free && lane.queue.is_empty() {
            return false;
        }
        let mut ended_while_idle = false;
        if is_free && let Some(link) = &lane.link {
            let idle = if link.is_over || link.is_ahead() { Idle::Open } else { link.idle() };
            ended_while_idle = idle == Idle::Closed;
            if link.is_over || idle != Idle::Open {
                lane.link = None;
            }
        }
        if is_free && let Some(exchange) = lane.queue.pop_front() {
            if ended_while_idle {
                // Equivalent to an end that is noticed only after the next request was sent.
                let kind = EventKind::HttpFailed {
                    step: exchange.step,
                    of_step: exchange.of_step,
                    connection: number,
                    reason: "the connection was closed without a reply".to_owned(),
                    wholly_sent: false,
                    will_retry: true,
                };
                log.record(micros(self.started.elapsed()), kind);
            }
            let link = match lane.link.take() {
                Some(link) => Ok(link),
                None => {
                    let mut address = self.place.address;
                    exchange.host.into_iter().for_each(|host| address.set_ip(host));
                    Link::ask(&address)
                }
            };
            match link {
                Ok(mut link) => {
                    let lane = self.lane(number);
                    let ahead = lane.queue.iter_mut().take_while(|next| next.pipelined);
                    link.begin(exchange, room, ahead);
                    lane.link = Some(link);
                }
                Err(error) => {
                    self.conclude(exchange, ExchangeEnd::Failed(ReplyFailure::unconnected(&error)), 0, log);
                    return true;
                }
            }
        }
        let buffer = &mut self.buffer;
        let Some(link) = self.lanes.get_mut(&number).and_then(|lane| lane.link.as_mut()) else {
            return false;
        };
        let ended = link.advance(buffer);
        let (carried, is_over) = (link.carried, link.is_over);
        let is_to_die = link.is_told_to_kill()
            || matches!(&ended, Some((exchange, ExchangeEnd::Reply(_))) if exchange.is_killing);
        if is_to_die && !self.signalled {
            self.signal("KILL", log);
        }
        let Some((exchange, how)) = ended else { return false };
        match exchange.then {
            // Close it at once, in case the server waits for that.
            FollowUp::Reply | FollowUp::EndAndReply if is_over => self.lane(number).link = None,
            FollowUp::Reply | FollowUp::EndAndReply => {}
            FollowUp::Hold => {
                let link = self.lane(number).link.take();
                if self.aside.len() < ASIDE_MAX {
                    self.aside.extend(link);
                }
            }
            FollowUp::Close => self.lane(number).link = None,
        }
        self.conclude(exchange, how, carried, log);
        true
    }

    /// Records the end of an exchange.
    fn conclude(&mut self, exchange: PendingExchange, how: ExchangeEnd, carried: u32, log: &mut dyn Log) {
        let at_us = self.now_us();
        let PendingExchange { step, of_step, connection, .. } = exchange;
        match how {
            ExchangeEnd::Unanswered => {}
            ExchangeEnd::Reply(HttpReply { status, content_type, head, body, keeps_open }) => {
                let kind = EventKind::HttpReply {
                    step,
                    of_step,
                    connection,
                    reused: carried > 1,
                    status,
                    content_type,
                    head: Bytes(head),
                    body_bytes: body.len() as u64,
                    body: (!is_line(&body)).then(|| Bytes(body.clone())),
                    keeps_open,
                    took_us: at_us.saturating_sub(exchange.queued_at_us),
                };
                log.record(at_us, kind);
                self.has_failed = false;
                self.body_bytes += body.len();
                if let Some(line) = line_of(body).or_else(|| exchange.is_counted.then(|| b"\n".to_vec())) {
                    self.frames += 1;
                    log.record(at_us, EventKind::Received { bytes: Bytes(line) });
                }
            }
            ExchangeEnd::Failed(ReplyFailure { fault, wholly_sent, is_stale }) => {
                let will_retry = is_stale && !exchange.retried && !self.is_gone();
                let reason = match fault {
                    Fault::Malformed(reason) => reason,
                    Fault::TooLarge => {
                        let bytes_max = self.budget.stdout_bytes_max as u64;
                        log.record(at_us, EventKind::StdoutOverflow { bytes_max, lines_max: None });
                        self.over_budget = true;
                        "the body is longer than the budget".to_owned()
                    }
                };
                let kind =
                    EventKind::HttpFailed { step, of_step, connection, reason, wholly_sent, will_retry };
                log.record(at_us, kind);
                self.has_failed |= !will_retry;
                if !will_retry && exchange.is_counted {
                    self.frames += 1;
                    log.record(at_us, EventKind::Received { bytes: Bytes(b"\n".to_vec()) });
                }
                if will_retry {
                    self.lane(connection).queue.push_front(PendingExchange { retried: true, ..exchange });
                }
            }
        }
    }

    /// Drains the process's streams and notices its end.
    fn look(&mut self, log: &mut dyn Log) {
        self.looked_at = Instant::now();
        let dismissed = self.dismissed;
        if let Some(child) = &mut self.child {
            child.look(&mut StreamFilter { log, dismissed });
            self.over_budget |= child.is_over_budget();
        }
    }

    fn is_gone(&self) -> bool {
        self.child.as_ref().is_some_and(|child| child.has_ended())
    }

    fn is_idle(&self) -> bool {
        self.aside.iter().all(|link| link.exchange.is_none())
            && self.is_written()
            && self.lanes.values().all(|lane| lane.link.as_ref().is_none_or(|link| link.exchange.is_none()))
    }

    fn is_written(&self) -> bool {
        self.lanes.values().all(|lane| lane.queue.is_empty())
    }

    fn settled(&self, until: Until) -> Option<Pumped> {
        // Output before the kill is read to its end.
        let is_read_on = |lane: &Lane| lane.link.as_ref().is_some_and(Link::is_told_to_kill);
        let gone = self.is_gone() && !self.lanes.values().any(is_read_on);
        Some(match until {
            _ if self.over_budget => Pumped::OverBudget,
            Until::Frames(frames) if self.frames >= frames => Pumped::Reached,
            Until::Written if self.is_written() => Pumped::Reached,
            Until::Exited if gone || self.child.is_none() && self.is_idle() => Pumped::Reached,
            Until::Frames(_) | Until::Written if gone => Pumped::Gone,
            // Everything was answered with fewer frames than awaited: waiting brings no more.
            Until::Frames(_) if self.is_idle() => Pumped::Nothing(Awaited::Frames),
            _ => return None,
        })
    }

    fn give_up(&mut self, until: Until, log: &mut dyn Log) -> Pumped {
        match until {
            Until::Frames(_) => {
                // The next request must not wait behind a late reply.
                for lane in self.lanes.values_mut() {
                    if lane.link.as_ref().is_some_and(|link| link.exchange.is_some())
                        && self.aside.len() < ASIDE_MAX
                    {
                        self.aside.extend(lane.link.take());
                    }
                }
                gave_up(until)
            }
            // Nothing says how a server ends after a conversation.
            Until::Exited if !self.signalled => {
                self.dismiss(log);
                Pumped::Reached
            }
            _ => gave_up(until),
        }
    }

    /// Gives a process whose last connection failed some time to end, so that its own end is recorded before the
    /// harness asks for it.
    fn await_own_end(&mut self, log: &mut dyn Log) {
        let may_be_dying = self.has_failed && self.child.is_some() && !self.dismissed && !self.signalled;
        let until = Instant::now() + if may_be_dying { DYING } else { Duration::ZERO };
        self.look(log);
        while !self.is_gone() && Instant::now() < until && !self.budget.is_interrupted() {
            std::thread::sleep(LOOK_EVERY);
            self.look(log);
        }
    }

    /// Asks the process to end.
    fn dismiss(&mut self, log: &mut dyn Log) {
        if self.dismissed || self.signalled {
            return;
        }
        self.await_own_end(log);
        self.dismissed = true;
        let lanes = self.lanes.values_mut().filter_map(|lane| lane.link.as_mut());
        let begun: Vec<_> =
            lanes.chain(&mut self.aside).filter_map(|link| Some((link.give_up()?, link.carried))).collect();
        for ((exchange, how), carried) in begun {
            self.conclude(exchange, how, carried, log);
        }
        if let Some(child) = &mut self.child {
            child.signal("TERM", &mut Silent);
        }
    }

    /// Connections on which a reply is awaited.
    fn links(&self) -> Vec<Source<'_>> {
        let links = self.lanes.values().filter_map(|lane| lane.link.as_ref()).chain(&self.aside);
        links.filter(|link| link.exchange.is_some()).map(|link| (link.fd(), link.interest())).collect()
    }
}

/// Recorder that discards everything.
struct Silent;

impl Log for Silent {
    fn record(&mut self, _at_us: u64, _kind: EventKind) {}
}

/// True if a request as written has an end that its head announces: its last chunk, or its only length.
fn is_whole(request: &[u8]) -> bool {
    let Some(end) = memchr::memmem::find(request, b"\r\n\r\n") else { return false };
    let (head, body) = (String::from_utf8_lossy(&request[..end]).to_ascii_lowercase(), &request[end + 4..]);
    let values = |name: &'static str| {
        let lines = head.split("\r\n").filter_map(|line| line.split_once(':'));
        lines.filter(move |(known, _)| *known == name).map(|(_, value)| value.trim())
    };
    if values("transfer-encoding").next().is_some() {
        let mut rest = body;
        return loop {
            let Some(end) = memchr::memmem::find(rest, b"\r\n") else { break false };
            let size =
                std::str::from_utf8(&rest[..end]).ok().and_then(|size| usize::from_str_radix(size, 16).ok());
            let Some(behind) = size.and_then(|size| rest[end + 2..].get(size..)?.strip_prefix(b"\r\n"))
            else {
                break false;
            };
            if size == Some(0) {
                break behind.is_empty();
            }
            rest = behind;
        };
    }
    let mut lengths = values("content-length").map(str::parse);
    lengths.next() == Some(Ok(body.len())) && lengths.next().is_none()
}

/// True if a received line represents the body exactly.
fn is_line(body: &[u8]) -> bool {
    memchr::memchr(b'\n', body).is_none() && !body.last().is_some_and(u8::is_ascii_whitespace)
}

/// Converts a body to a line: line feeds become carriage returns, which are equivalent in JSON. `None` for white space
/// only.
fn line_of(mut body: Vec<u8>) -> Option<Vec<u8>> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    let kept = body.trim_ascii_end().len();
    body.truncate(kept);
    body.iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b'\r');
    body.push(b'\n');
    Some(body)
}

impl Connection for HttpConnection {
    fn queue(&mut self, bytes: Vec<u8>, chunking: Chunking) {
        self.queue_step(0, bytes, chunking, None);
    }

    fn queue_step(&mut self, step: usize, bytes: Vec<u8>, chunking: Chunking, how: Option<&Carriage>) {
        match how {
            _ if self.close_requested => {}
            None => self.queue_lines(step, &bytes, chunking),
            Some(how) => {
                let body =
                    if how.is_verbatim() { &bytes[..] } else { bytes.strip_suffix(b"\n").unwrap_or(&bytes) };
                self.queue_body(step, 0, body, chunking, how);
            }
        }
    }

    fn close_stdin(&mut self) {
        self.close_requested = true;
    }

    fn pump_beside(&mut self, waiting: Waiting<'_>, log: &mut dyn Log) -> Option<Pumped> {
        let Waiting { until, beside, .. } = waiting;
        let life_left = self.budget.connection.saturating_sub(self.started.elapsed());
        let end = Instant::now() + waiting.patience(life_left);
        let mut called = false;
        loop {
            self.advance(log);
            self.leave_idle();
            if self.is_gone() || self.looked_at.elapsed() >= LOOK_EVERY {
                self.look(log);
            }
            if until == Until::Exited && self.close_requested && self.is_idle() {
                self.dismiss(log);
            }
            if self.budget.is_interrupted() {
                return Some(Pumped::Interrupted);
            }
            if let Some(pumped) = self.settled(until) {
                return Some(pumped);
            }
            let now = Instant::now();
            if now >= end {
                return Some(self.give_up(until, log));
            }
            if called {
                return None;
            }
            let own = self.links();
            let ready = wait_for(&[&own, beside].concat(), (end - now).min(LOOK_EVERY));
            called = ready.into_iter().skip(own.len()).any(|is_ready| is_ready);
        }
    }

    fn sources(&self) -> Vec<Source<'_>> {
        let of_child = self.child.as_ref().map(Connection::sources).unwrap_or_default();
        [self.links(), of_child].concat()
    }

    fn attend(&mut self, log: &mut dyn Log) {
        self.advance(log);
        self.look(log);
    }

    fn signal(&mut self, name: &str, log: &mut dyn Log) {
        self.signalled = true;
        if let Some(child) = &mut self.child {
            child.signal(name, log);
        }
    }

    fn memory_hwm_bytes(&mut self) -> Option<u64> {
        self.child.as_mut().and_then(Connection::memory_hwm_bytes)
    }

    fn cpu_time(&self) -> Option<Duration> {
        self.child.as_ref().and_then(Connection::cpu_time)
    }

    fn is_asleep(&self) -> bool {
        self.child.as_ref().is_some_and(|child| child.sleeps_alone(Some(self.place.address.port())))
    }

    fn pid(&self) -> Option<i32> {
        self.child.as_ref().and_then(Connection::pid)
    }

    fn exit(&self) -> Option<Exit> {
        self.child.as_ref().and_then(Connection::exit)
    }

    fn is_over(&self) -> bool {
        self.child.as_ref().is_some_and(Connection::is_over)
    }

    fn now_us(&self) -> u64 {
        micros(self.started.elapsed())
    }

    fn finish(&mut self, log: &mut dyn Log) {
        if std::mem::replace(&mut self.finished, true) {
            return;
        }
        self.await_own_end(log);
        self.lanes.clear();
        self.aside.clear();
        let dismissed = !self.signalled;
        if let Some(child) = &mut self.child {
            child.finish(&mut StreamFilter { log, dismissed });
        }
    }
}

#[cfg(test)]
mod tests;
