//! The provider of the json_rpc boundary: a JSON-RPC 2.0 server that executes tasks, makes plans and validates code
//! for an agent (RPC, contract §7).
//!
//! [`machine`] returns the pure peer for lines. Below it, [`Server`] takes one body and answers with one body or none,
//! independent of the transport. Both consist of replaceable parts: the methods, the store of nonces and the rate
//! limiter ([`Components`]), the limits, choices and features ([`Config`]).
//!
//! A message is checked in this order: size → UTF-8 → JSON → batch shape → request shape → auth → rate → method →
//! params. Nothing is executed before all checks have passed.

mod auth;
mod choices;
mod context;
mod decode;
mod exchange;
mod execute;
mod gzip;
mod jcs;
mod job;
mod log;
mod method;
pub mod mutants;
mod params;
mod plan;
mod rate;
mod reply;
mod request;
mod roles;
mod server;
mod session;
mod update;
mod validate;

pub use auth::{AuthConfig, HmacVerifier, MemoryNonces, NonceStore, Verifier, signature};
pub use choices::{
    BlankLine, Choices, ErrorStatus, FractionalId, GzipOverHttp, LastLine, NullId, OverSizeBody, ParamsNull,
    ParamsScalar, ResponseToServer, RpcPrefix,
};
pub use context::Context;
pub(crate) use decode::refusal;
pub(crate) use gzip::inflate;
pub use jcs::write_jcs;
pub use method::{Answer, Call, Method, MethodTable, Outcome, Step, Task, World};
pub use params::{Members, Named, Params, members};
pub(crate) use rate::RATE_REQUESTS_MAX;
pub use rate::{RateConfig, RateLimiter, SlidingWindow};
pub use reply::{Failure, FailureKind, ResultText};
pub use roles::methods;
pub use server::{Channel, Output, Server, Ticket};
pub(crate) use session::is_blank;
pub use session::{Lined, Session};

use crate::limits::Limits;
use crate::machine::Machine;

/// Features of a server beyond single calls. A peer claims each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Features {
    /// Answers arrays of requests. Otherwise an array is an invalid request.
    pub batch: bool,
    /// Runs calls concurrently, so that a slow one does not delay those after it.
    pub concurrent: bool,
    /// Streams the partial output of a task if its params ask for it. Otherwise the request for a stream is ignored.
    pub streaming: bool,
    /// Accepts lines that wrap a compressed message. Otherwise a wrapper is an invalid request.
    pub gzip: bool,
}

impl Default for Features {
    fn default() -> Self {
        Self { batch: true, concurrent: true, streaming: true, gzip: false }
    }
}

/// Configuration of a server.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// Chosen behaviour for each open clause.
    pub choices: Choices,
    /// Limits in force.
    pub limits: Limits,
    /// Claimed features.
    pub features: Features,
    /// Authentication of calls; `None` admits everybody.
    pub auth: Option<AuthConfig>,
    /// Rate limit; `None` for no limit.
    pub rate_limit: Option<RateConfig>,
    /// True to log each call on standard error.
    pub logging: bool,
    /// Wall-clock time of the machine's time 0, in milliseconds since 1970.
    pub started_unix_ms: u64,
}

/// Replaceable parts of a server.
pub struct Components {
    /// Callable methods.
    pub methods: MethodTable,
    /// Verifier of signatures, if messages must be signed.
    pub verifier: Option<Box<dyn Verifier>>,
    /// Nonces of signed messages.
    pub nonces: Box<dyn NonceStore>,
    /// Rate limiter, if there is a limit.
    pub limiter: Option<Box<dyn RateLimiter>>,
}

impl Components {
    /// Creates the correct parts.
    pub fn new(config: &Config) -> Self {
        let Config { limits, choices, .. } = config;
        let verifier =
            |auth: &AuthConfig| Box::new(HmacVerifier::new(auth.clone(), limits)) as Box<dyn Verifier>;
        let limiter =
            |rate| Box::new(SlidingWindow::new(rate, choices.refused_counts)) as Box<dyn RateLimiter>;
        Self {
            methods: methods(),
            verifier: config.auth.as_ref().map(verifier),
            nonces: Box::new(MemoryNonces::new(limits.rpc_nonces_max, limits.rpc_nonce_ttl_ms)),
            limiter: config.rate_limit.map(limiter),
        }
    }
}

/// The correct server for lines.
pub fn machine(config: Config) -> Box<dyn Machine + Send> {
    let components = Components::new(&config);
    machine_with(config, components)
}

/// Server for lines, made of `components`.
pub fn machine_with(config: Config, components: Components) -> Box<dyn Machine + Send> {
    Box::new(Session::new(config, components))
}
