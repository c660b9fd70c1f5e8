//! Start of a server: a free port, its process, and its readiness.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::link::Link;
use super::{HttpConnection, Lane, READ_BYTES};
use crate::data::blame::HarnessFault;
use crate::data::budget::Budget;
use crate::data::transcript::{Awaited, EventKind};
use crate::drive::fixture::{no_births, spawn_guard};
use crate::drive::transport::child::{ChildConnection, ChildSpec};
use crate::drive::transport::inbox::micros;
use crate::drive::transport::{Connection, Log, Until, sleeps_on};

/// Beginning of a server's URL.
pub(crate) const URL_PREFIX: &str = "http://";

/// True if a word of a command line marks a server reached over HTTP.
pub fn is_of_server(word: &str) -> bool {
    word.contains("{port}") || word.contains("{addr}") || word.starts_with(URL_PREFIX)
}

/// Ports for servers, below those that the system assigns to connections.
const PORTS: std::ops::Range<u32> = 15_000..31_000;
/// Ports above them, with which harnesses reserve server ports.
const CLAIMS: std::ops::Range<u32> = 31_000..32_000;
/// Interval between attempts to connect.
const TRY_EVERY: Duration = Duration::from_millis(3);
/// Maximum wait for one connection.
const CONNECT_PATIENCE: Duration = Duration::from_secs(1);

/// Location of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerAddress {
    pub(super) address: SocketAddr,
    /// Value of the `Host` header.
    pub(super) host: String,
    pub(super) path: String,
}

impl ServerAddress {
    /// Parses a URL.
    pub(super) fn of(url: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            format!("{url:?} is not the address of a server, such as http://127.0.0.1:8080/: {why}")
        };
        let rest = url.strip_prefix(URL_PREFIX).ok_or_else(|| wrong("it does not begin with http://"))?;
        let (host, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, "/"),
        };
        if path.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
            return Err(wrong("its path contains characters that are not allowed"));
        }
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let full = if has_port { host.to_owned() } else { format!("{host}:80") };
        let addresses = full.to_socket_addrs().map_err(|error| wrong(&error.to_string()))?;
        let address =
            addresses.into_iter().next().ok_or_else(|| wrong("the host name cannot be resolved"))?;
        Ok(Self { address, host: host.to_owned(), path: path.to_owned() })
    }
}

/// Specification of a server to start.
#[derive(Debug)]
pub struct ServerSpec {
    /// URL to post to.
    pub url: String,
    /// Process to start; `None` if the server already runs.
    pub child: Option<ChildSpec>,
    /// Sign of readiness, besides accepting a connection.
    pub ready: Option<ReadySign>,
}

/// Sign that a server is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadySign {
    /// Text on standard output.
    Stdout(String),
    /// Text on standard error.
    Stderr(String),
    /// Path whose GET returns status 200 to 299, 401 or 403.
    Get(String),
}

impl ReadySign {
    /// Parses the two words of a configuration.
    pub fn of(told: &[String]) -> Option<Self> {
        let [how, text] = told else { return None };
        Some(match how.as_str() {
            "stdout" => Self::Stdout(text.clone()),
            "stderr" => Self::Stderr(text.clone()),
            "get" => Self::Get(text.clone()),
            _ => return None,
        })
    }
}

/// Standard output of a server so far.
#[derive(Default)]
struct StdoutSoFar(Vec<u8>);

impl Log for StdoutSoFar {
    fn record(&mut self, _at_us: u64, kind: EventKind) {
        if let EventKind::Received { bytes } = kind {
            self.0.extend_from_slice(&bytes.0);
        }
    }
}

/// True if a GET of `path` returns status 200 to 299, 401 or 403. False without a reply.
fn serves(place: &ServerAddress, path: &str, patience: Duration) -> bool {
    let ask = || {
        let mut socket = TcpStream::connect_timeout(&place.address, patience)?;
        socket.set_read_timeout(Some(patience))?;
        let host = &place.host;
        write!(socket, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
        let mut head = [0; STATUS_BYTES];
        socket.read_exact(&mut head)?;
        let status = head.strip_prefix(b"HTTP/1.").and_then(|rest| rest.get(2..)).unwrap_or_default();
        std::io::Result::Ok(status.starts_with(b"2") || [b"401", b"403"].iter().any(|key| status == *key))
    };
    ask().unwrap_or(false)
}

/// Length of a reply up to the end of its status, bytes.
const STATUS_BYTES: usize = "HTTP/1.1 200".len();

/// Failure to start a server.
#[derive(Debug)]
pub enum StartFault {
    /// The process ended before it listened, perhaps because the port was taken.
    Ended(String),
    /// Any other reason.
    Other(String),
}

impl StartFault {
    /// Describes the failure in one sentence.
    pub fn sentence(self) -> String {
        match self {
            Self::Ended(sentence) | Self::Other(sentence) => sentence,
        }
    }
}

/// Reserves a free local port until dropped, so that two peers started in parallel never share one. Otherwise the
/// second server would end, and its conversation would reach the first.
#[derive(Debug)]
pub struct FreeAddress {
    address: SocketAddr,
    _claim: TcpListener,
}

impl FreeAddress {
    /// The reserved address.
    pub fn get(&self) -> SocketAddr {
        self.address
    }

    /// Reserves the port at this index, if it is free.
    pub(super) fn take(place: u32) -> Option<Self> {
        let at =
            |port: u32| u16::try_from(port).ok().map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        // Claim first, so that no other harness takes the port between our test and the server's start.
        let claim = at(CLAIMS.start + place % (CLAIMS.end - CLAIMS.start))?;
        let claim = TcpListener::bind(claim).ok()?;
        let address = at(PORTS.start + place)?;
        // A process forked now would hold the test socket open for a moment, and receive the connection meant for the
        // server.
        let _guard = no_births();
        TcpListener::bind(address).ok().map(|_| Self { address, _claim: claim })
    }
}

/// Reserves a free local address. Keep it until the server listens.
///
/// # Errors
/// Fails if no port is free.
pub(crate) fn free_address() -> Result<FreeAddress, HarnessFault> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let count = PORTS.end - PORTS.start;
    // Each process starts at a different index.
    let own = std::process::id().wrapping_mul(7_919);
    for _ in 0..count {
        let place = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_add(own) % count;
        if let Some(free) = FreeAddress::take(place) {
            return Ok(free);
        }
    }
    Err("there is no free port on 127.0.0.1".into())
}

/// Placeholders of a command line that starts a server.
pub fn placeholders(address: SocketAddr) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("port".to_owned(), address.port().to_string()),
        ("addr".to_owned(), address.to_string()),
    ])
}

/// Starts a server and waits until it accepts a connection.
///
/// # Errors
/// Fails if it cannot be started, ends, or does not listen in time.
pub fn start(start: &ServerSpec, budget: &Budget, log: &mut dyn Log) -> Result<HttpConnection, StartFault> {
    let place = ServerAddress::of(&start.url).map_err(StartFault::Other)?;
    let started = Instant::now();
    let mut child = match &start.child {
        None => None,
        Some(spec) => {
            let _guard = spawn_guard();
            let child = ChildConnection::spawn(spec, budget, log);
            Some(child.map_err(|error| StartFault::Other(error.to_string()))?)
        }
    };
    let patience = budget.start_up;
    let mut said = StdoutSoFar::default();
    let link = loop {
        let has = |bytes: &[u8], text: &str| memchr::memmem::find(bytes, text.as_bytes()).is_some();
        let is_ready = match &start.ready {
            None => true,
            Some(ReadySign::Stdout(text)) => child.is_none() || has(&said.0, text),
            Some(ReadySign::Stderr(text)) => {
                child.as_ref().is_none_or(|child| has(child.stderr_so_far(), text))
            }
            Some(ReadySign::Get(path)) => serves(&place, path, CONNECT_PATIENCE),
        };
        let not_ready = || Err(std::io::Error::other("the condition `ready` did not become true"));
        match if is_ready { Link::connect(&place.address, CONNECT_PATIENCE) } else { not_ready() } {
            Ok(link) => break link,
            Err(error) if started.elapsed() >= patience || child.is_none() || budget.is_interrupted() => {
                let url = &start.url;
                if let Some(child) = child.as_ref().filter(|_| started.elapsed() >= patience) {
                    let waited_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
                    let (awaited, slept) = (Awaited::Frames, sleeps_on(child));
                    let kind = EventKind::DeadlinePassed { awaited, waited_ms, slept };
                    log.record(micros(started.elapsed()), kind);
                }
                return Err(StartFault::Other(format!(
                    "nothing listens at {url} after {} ms: {}",
                    started.elapsed().as_millis(),
                    if is_ready { error.kind().to_string() } else { error.to_string() }
                )));
            }
            Err(_) => {}
        }
        if let Some(child) = &mut child {
            child.pump(Until::Elapsed(TRY_EVERY), TRY_EVERY, &mut said);
            if let Some(exit) = child.exit() {
                return Err(StartFault::Ended(format!(
                    "the server ended before it listened at {}: {exit}",
                    start.url
                )));
            }
        }
    };
    let now = Instant::now();
    Ok(HttpConnection {
        place,
        child,
        started,
        looked_at: now,
        budget: budget.clone(),
        lanes: BTreeMap::from([(0, Lane { link: Some(link), ..Lane::default() })]),
        aside: Vec::new(),
        buffer: vec![0; READ_BYTES],
        partial: Vec::new(),
        frames: 0,
        body_bytes: 0,
        over_budget: false,
        has_failed: false,
        close_requested: false,
        dismissed: false,
        signalled: false,
        finished: false,
    })
}
