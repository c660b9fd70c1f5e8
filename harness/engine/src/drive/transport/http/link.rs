//! TCP connection to a peer: writes requests divided by their chunking, reads replies.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};

use super::reply::{Fault, HttpReply, ReplyReader};
use crate::data::plan::Chunking;
use crate::drive::transport::outbox::Outbox;

/// Maximum number of consecutive writes and reads before others get their turn.
const WRITES_IN_A_ROW: u32 = 512;
const READS_IN_A_ROW: u32 = 16;
/// Time after which a connection that was not accepted is requested again. A server whose queue was full for a moment
/// has not noticed it, and the system would repeat the request only after one, three and seven seconds.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(100);
/// Delay of a held-back body.
const HELD_BACK: Duration = Duration::from_secs(1);
/// Number of pieces of a drawn-out body.
const PIECES: u32 = 4;

/// Exchange to carry: a request with its place in the plan, or bytes without a reply.
#[derive(Debug, Clone)]
pub(super) struct PendingExchange {
    pub(super) step: usize,
    pub(super) of_step: usize,
    pub(super) connection: u32,
    pub(super) bytes: Vec<u8>,
    /// Parts that follow later, in order.
    pub(super) behind: VecDeque<LaterPart>,
    pub(super) chunking: Chunking,
    /// Set if it may be written before the earlier one is answered.
    pub(super) pipelined: bool,
    /// Address to connect to, if not the server's.
    pub(super) host: Option<IpAddr>,
    /// Set for a HEAD request, whose reply has no body.
    pub(super) is_head: bool,
    /// Action after the last byte: awaiting a reply, or the fate of the connection.
    pub(super) then: FollowUp,
    /// Set if it yields a received line in any case.
    pub(super) is_counted: bool,
    /// See [`Carriage::killing`](crate::data::carriage::Carriage::killing).
    pub(super) is_killing: bool,
    /// Set if it asks to close the connection after the reply.
    pub(super) is_last: bool,
    pub(super) queued_at_us: u64,
    /// Set if it was sent before, on a connection that closed without any reply.
    pub(super) retried: bool,
}

/// Part of an exchange that follows later.
#[derive(Debug, Clone)]
pub(super) struct LaterPart {
    after: Duration,
    /// Set if it may follow as soon as the server answers `100 Continue`.
    may_be_called: bool,
    bytes: Vec<u8>,
}

impl LaterPart {
    /// Held-back body.
    pub(super) fn held_back(bytes: Vec<u8>) -> Self {
        Self { after: HELD_BACK, may_be_called: true, bytes }
    }

    /// Bytes that follow after this time.
    pub(super) fn later(bytes: &[u8], after: Duration) -> Self {
        Self { after, may_be_called: false, bytes: bytes.to_vec() }
    }

    /// Body in pieces, the last of which follows after this time.
    pub(super) fn pieces(bytes: &[u8], time: Duration) -> Vec<Self> {
        let piece = |(at, bytes): (u32, &[u8])| Self {
            after: time * at / PIECES,
            may_be_called: false,
            bytes: bytes.to_vec(),
        };
        (1..).zip(bytes.chunks(bytes.len().div_ceil(PIECES as usize).max(1))).map(piece).collect()
    }
}

/// Action after the last byte of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FollowUp {
    /// Await a reply.
    Reply,
    /// Close the sending side and await a reply.
    EndAndReply,
    /// Keep the connection open without awaiting a reply.
    Hold,
    /// Close the connection.
    Close,
}

/// End of an exchange.
#[derive(Debug)]
pub(super) enum ExchangeEnd {
    /// A reply came.
    Reply(HttpReply),
    /// No reply came.
    Failed(ReplyFailure),
    /// No reply was due, and everything is written.
    Unanswered,
}

/// Reason for a missing reply.
#[derive(Debug)]
pub(super) struct ReplyFailure {
    pub(super) fault: Fault,
    /// Set if everything was sent.
    pub(super) wholly_sent: bool,
    /// Set if a reused connection brought no byte of a reply.
    pub(super) is_stale: bool,
}

impl ReplyFailure {
    /// Failure of a connection that was not accepted.
    pub(super) fn unconnected(error: &io::Error) -> Self {
        let why = format!("no connection: {}", error.kind());
        Self { fault: Fault::Malformed(why), wholly_sent: false, is_stale: false }
    }
}

/// State of a connection before its next exchange.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Idle {
    Open,
    /// The peer closed it.
    Closed,
    /// The peer sent something unasked.
    Spoke,
}

/// TCP connection.
#[derive(Debug)]
pub(super) struct Link {
    socket: TcpStream,
    /// Address and time of the connection request, until accepted.
    asked: Option<(SocketAddr, Instant)>,
    outbox: Outbox,
    reader: ReplyReader,
    pub(super) exchange: Option<PendingExchange>,
    /// Number of exchanges that it carried before.
    pub(super) carried: u32,
    wholly_sent: bool,
    begun: Instant,
    /// Number of following exchanges that are already written.
    ahead: usize,
    /// Bytes after the last reply.
    surplus: Vec<u8>,
    /// Set if it can carry no further exchange.
    pub(super) is_over: bool,
    /// Set if it stays open until the session ends.
    pub(super) is_held: bool,
}

impl Link {
    /// Connects, blocking.
    pub(super) fn connect(to: &SocketAddr, patience: Duration) -> io::Result<Self> {
        let socket = TcpStream::connect_timeout(to, patience.max(Duration::from_millis(1)))?;
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        Ok(Self::of(socket, None))
    }

    /// Requests a connection. An exchange begun on it waits until it is accepted.
    pub(super) fn ask(to: &SocketAddr) -> io::Result<Self> {
        Ok(Self::of(asked(to)?, Some((*to, Instant::now()))))
    }

    fn of(socket: TcpStream, asked: Option<(SocketAddr, Instant)>) -> Self {
        Self {
            socket,
            asked,
            outbox: Outbox::default(),
            reader: ReplyReader::new(0, false),
            exchange: None,
            carried: 0,
            wholly_sent: true,
            begun: Instant::now(),
            ahead: 0,
            surplus: Vec::new(),
            is_over: false,
            is_held: false,
        }
    }

    /// True once accepted. Repeats the request if the server has not noticed it.
    fn is_taken(&mut self) -> io::Result<bool> {
        let Some((to, since)) = self.asked else { return Ok(true) };
        if let Some(error) = self.socket.take_error()? {
            return Err(error);
        }
        match self.socket.peer_addr() {
            Ok(_) => {
                self.asked = None;
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::NotConnected => {
                // A distant server may need longer to answer.
                if to.ip().is_loopback() && since.elapsed() >= ASK_AGAIN_AFTER {
                    self.socket = asked(&to)?;
                    self.asked = Some((to, Instant::now()));
                }
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Readiness to wait for.
    pub(super) fn interest(&self) -> PollFlags {
        match self.asked {
            Some(_) => PollFlags::OUT,
            None if self.outbox.is_empty() => PollFlags::IN,
            None => PollFlags::IN | PollFlags::OUT,
        }
    }

    /// True if the next exchange was already written.
    pub(super) fn is_ahead(&self) -> bool {
        self.ahead > 0
    }

    /// True if no byte of a reply has come for this long.
    pub(super) fn waits(&self, time: Duration) -> bool {
        self.exchange.is_some() && self.reader.is_untouched() && self.begun.elapsed() >= time
    }

    /// State of an idle connection.
    pub(super) fn idle(&self) -> Idle {
        let mut byte = [0];
        match rustix::net::recv(&self.socket, &mut byte, RecvFlags::PEEK) {
            Err(Errno::AGAIN) => Idle::Open,
            Ok((0, _)) | Err(_) => Idle::Closed,
            Ok(_) => Idle::Spoke,
        }
    }

    /// Begins an exchange; writes those that `follow` in a pipeline with it.
    pub(super) fn begin<'a>(
        &mut self,
        exchange: PendingExchange,
        body_bytes_max: usize,
        follow: impl Iterator<Item = &'a mut PendingExchange>,
    ) {
        self.reader = ReplyReader::new(body_bytes_max, exchange.is_head);
        self.begun = Instant::now();
        if self.ahead > 0 {
            self.ahead -= 1;
        } else {
            self.outbox = Outbox::default();
            self.outbox.push(exchange.bytes.clone(), exchange.chunking);
            for next in follow {
                self.outbox.push(next.bytes.clone(), next.chunking);
                self.ahead += 1;
            }
        }
        self.wholly_sent = false;
        self.exchange = Some(exchange);
    }

    /// True if the status that triggers the kill of the server has come, but not the end of that reply.
    pub(super) fn is_told_to_kill(&self) -> bool {
        self.exchange.as_ref().is_some_and(|exchange| exchange.is_killing) && self.reader.has_status()
    }

    /// Makes all progress that is possible without blocking; returns the end of the exchange, once.
    pub(super) fn advance(&mut self, buffer: &mut [u8]) -> Option<(PendingExchange, ExchangeEnd)> {
        let (then, is_last) = self.exchange.as_ref().map(|exchange| (exchange.then, exchange.is_last))?;
        match self.is_taken() {
            Ok(true) => {}
            Ok(false) => return None,
            Err(error) => {
                self.is_over = true;
                return self.ended(ExchangeEnd::Failed(ReplyFailure::unconnected(&error)));
            }
        }
        self.write();
        if !matches!(then, FollowUp::Reply | FollowUp::EndAndReply) {
            if self.outbox.is_empty() {
                self.is_over = true;
                self.is_held = then == FollowUp::Hold;
                return self.ended(ExchangeEnd::Unanswered);
            }
            return None;
        }
        match self.read(buffer) {
            Ok(()) if !self.reader.is_done() => None,
            Ok(()) => {
                let reader = std::mem::replace(&mut self.reader, ReplyReader::new(0, false));
                let reply = reader.into_reply()?;
                // A request not written completely before its reply is not wanted.
                self.is_over |= is_last || !reply.keeps_open || !self.wholly_sent;
                self.ended(ExchangeEnd::Reply(reply))
            }
            Err(_) if self.is_told_to_kill() => {
                self.is_over = true;
                let reader = std::mem::replace(&mut self.reader, ReplyReader::new(0, false));
                let reply = reader.into_cut_reply()?;
                self.ended(ExchangeEnd::Reply(reply))
            }
            Err(fault) => {
                self.is_over = true;
                let is_stale = self.carried > 0 && self.reader.is_untouched();
                self.ended(ExchangeEnd::Failed(ReplyFailure {
                    fault,
                    wholly_sent: self.wholly_sent,
                    is_stale,
                }))
            }
        }
    }

    /// Ends an exchange whose reply is incomplete but has begun.
    pub(super) fn give_up(&mut self) -> Option<(PendingExchange, ExchangeEnd)> {
        let awaits =
            |exchange: &PendingExchange| matches!(exchange.then, FollowUp::Reply | FollowUp::EndAndReply);
        if !self.exchange.as_ref().is_some_and(awaits) || self.reader.is_untouched() {
            return None;
        }
        let fault = Fault::Malformed(format!("{}, and no more", self.reader.so_far()));
        self.ended(ExchangeEnd::Failed(ReplyFailure {
            fault,
            wholly_sent: self.wholly_sent,
            is_stale: false,
        }))
    }

    fn ended(&mut self, how: ExchangeEnd) -> Option<(PendingExchange, ExchangeEnd)> {
        self.carried += 1;
        self.exchange.take().map(|exchange| (exchange, how))
    }

    fn write(&mut self) {
        for _ in 0..WRITES_IN_A_ROW {
            if self.outbox.is_empty() && !self.refill() {
                return;
            }
            let Some(chunk) = self.outbox.next() else { return };
            let (length, paced) = (chunk.bytes.len(), chunk.paced);
            match rustix::net::send(&self.socket, chunk.bytes, SendFlags::NOSIGNAL) {
                Ok(written) => {
                    self.outbox.advance(written);
                    if written < length {
                        return;
                    }
                    if paced {
                        // Let the peer read this chunk separately.
                        std::thread::yield_now();
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => {
                    // The peer does not read it, but may have replied.
                    self.outbox.clear();
                    self.is_over = true;
                    return;
                }
            }
        }
    }

    /// Queues the next part; returns false if there is none for now.
    fn refill(&mut self) -> bool {
        let Some(exchange) = self.exchange.as_mut().filter(|_| !self.wholly_sent && !self.is_over) else {
            return false;
        };
        if let Some(next) = exchange.behind.front() {
            let is_called = next.may_be_called && self.reader.says_continue();
            let may_follow = is_called || self.begun.elapsed() >= next.after;
            if may_follow && let Some(next) = exchange.behind.pop_front() {
                // If sent again, it is sent at once.
                exchange.bytes.extend_from_slice(&next.bytes);
                self.outbox.push(next.bytes, exchange.chunking);
            }
            return may_follow;
        }
        if exchange.then == FollowUp::EndAndReply {
            let _ = self.socket.shutdown(Shutdown::Write);
            self.is_over = true;
        }
        self.wholly_sent = true;
        false
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<(), Fault> {
        let ahead = std::mem::take(&mut self.surplus);
        let taken = self.reader.take(&ahead)?;
        if self.reader.is_done() {
            self.keep_surplus(&ahead[taken..]);
            return Ok(());
        }
        for _ in 0..READS_IN_A_ROW {
            match rustix::net::recv(&self.socket, &mut *buffer, RecvFlags::empty()) {
                Ok((0, _)) => return self.reader.end(),
                Ok((count, _)) => {
                    // A peer that writes head and body separately would wait for our acknowledgement of the first.
                    let _ = sockopt::set_tcp_quickack(&self.socket, true);
                    let taken = self.reader.take(&buffer[..count])?;
                    if taken < count {
                        self.keep_surplus(&buffer[taken..count]);
                    }
                    if self.reader.is_done() {
                        return Ok(());
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::CONNRESET) if self.reader.is_untouched() => {
                    return Err(Fault::Malformed("the connection was reset without a reply".to_owned()));
                }
                Err(_) => return Err(Fault::Malformed("the connection was reset".to_owned())),
            }
        }
        Ok(())
    }

    /// Keeps bytes after a reply for the next reply. If none is due, the connection cannot be trusted any more.
    fn keep_surplus(&mut self, bytes: &[u8]) {
        match self.ahead {
            0 => self.is_over |= !bytes.is_empty(),
            _ => self.surplus = bytes.to_vec(),
        }
    }
}

/// Socket with a pending connection request.
fn asked(to: &SocketAddr) -> io::Result<TcpStream> {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, to) {
        Ok(()) | Err(Errno::INPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    let socket = TcpStream::from(socket);
    socket.set_nodelay(true)?;
    Ok(socket)
}
