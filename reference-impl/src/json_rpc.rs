//! The provider of the json_rpc boundary: a JSON-RPC 2.0 server that executes tasks, makes plans and validates code
//! for an agent (RPC, contract §7).
//!
//! [`machine`] gives the pure peer that speaks lines. Under it lies [`Server`], which takes one body and answers with
//! one body or none, whatever carries them. Both are put together from parts that each can be replaced: the methods,
//! the memory of nonces and the rate limiter ([`Components`]), the limits, choices and features ([`Config`]).
//!
//! A message is checked in this order: size → UTF-8 → JSON → batch shape → request shape → auth → rate → method →
//! params; only then is anything executed.

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
mod validate;

pub use auth::{AuthConfig, HmacVerifier, MemoryNonces, NonceStore, Verifier, signature};
pub use choices::{
    BlankLine, Choices, ErrorStatus, FractionalId, GzipOverHttp, LastLine, NullId, OverSizeBody, ParamsNull,
    ParamsScalar, ResponseToServer, RpcPrefix,
};
pub use context::Context;
pub(crate) use decode::refusal;
pub use execute::MODEL;
pub use gzip::inflate;
pub use jcs::write_jcs;
pub use method::{Answer, Call, Method, MethodTable, Outcome, Step, Task, World};
pub use params::{Members, Named, Params, members};
pub use rate::{RATE_REQUESTS_MAX, RateConfig, RateLimiter, SlidingWindow};
pub use reply::{Failure, FailureKind, ResultText};
pub use roles::methods;
pub use server::{Channel, Output, Server, Ticket};
pub(crate) use session::is_blank;
pub use session::{Lined, Session};

use crate::limits::Limits;
use crate::machine::Machine;

/// What a server can do beyond single calls; each is a claim of the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Features {
    /// Arrays of requests are answered; without it an array is an invalid request.
    pub batch: bool,
    /// A slow call does not hold up the calls behind it.
    pub concurrent: bool,
    /// A task whose params ask for it says on the way what it has so far; without it the wish is ignored.
    pub streaming: bool,
    /// Lines may wrap a compressed message; without it a wrapper is an invalid request.
    pub gzip: bool,
}

impl Default for Features {
    fn default() -> Self {
        Self { batch: true, concurrent: true, streaming: true, gzip: false }
    }
}

/// Everything a server is told at its start.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// Behaviours where the contract allows several.
    pub choices: Choices,
    /// Caps.
    pub limits: Limits,
    /// What it can do.
    pub features: Features,
    /// Who may call; anybody where this is `None`.
    pub auth: Option<AuthConfig>,
    /// How often; without end where this is `None`.
    pub rate_limit: Option<RateConfig>,
    /// Each call is logged on standard error.
    pub logging: bool,
    /// Milliseconds since 1970 at the machine's time 0.
    pub started_unix_ms: u64,
}

/// The replaceable parts of a server.
pub struct Components {
    /// What can be called.
    pub methods: MethodTable,
    /// Checks signatures, where messages have to be signed.
    pub verifier: Option<Box<dyn Verifier>>,
    /// Nonces of signed messages.
    pub nonces: Box<dyn NonceStore>,
    /// Limits the rate of requests, where it is limited.
    pub limiter: Option<Box<dyn RateLimiter>>,
}

impl Components {
    /// The correct parts.
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

/// The correct server on lines.
pub fn machine(config: Config) -> Box<dyn Machine + Send> {
    let components = Components::new(&config);
    machine_with(config, components)
}

/// A server on lines made of `components`.
pub fn machine_with(config: Config, components: Components) -> Box<dyn Machine + Send> {
    Box::new(Session::new(config, components))
}
