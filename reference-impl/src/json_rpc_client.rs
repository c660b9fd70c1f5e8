//! The consumer of the json_rpc boundary: a client that makes the calls of a scenario and writes down how each ended
//! (contract §7 "Client").
//!
//! [`machine`] gives the pure client: it speaks first, takes what the server writes together with the time, and appends
//! a line to its results for each call that has finished. What it is made of can be replaced: where ids come from, how
//! long a retry waits, how answers are read, who signs ([`Components`]).

mod answer;
mod backoff;
mod call;
mod client;
pub mod mutants;
mod parts;
mod scenario;
mod stream;

pub use answer::{Answer, ErrorAnswer, Reader, StrictReader};
pub use backoff::{Backoff, Exponential};
pub use client::Client;
pub use parts::{Components, Counter, HmacSigner, Ids, Signer};
pub use scenario::{CallSpec, Retry, Scenario};

use crate::choices::choices;
use crate::limits::Limits;
use crate::machine::Machine;

/// See [`Choices::null_id_error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NullIdError {
    /// It ends the only call that waits.
    Ends,
    /// Nobody is meant.
    Ignore,
}

/// See [`Choices::server_requests`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerRequest {
    /// Dropped.
    Ignore,
    /// There is no such method.
    Answer,
}

/// See [`Choices::retry_past_timeout`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryPastTimeout {
    /// The error is the outcome, at once.
    Error,
    /// The call waits in vain.
    Timeout,
}

choices! {
    /// An error whose id is null, while one call waits (contract §7 "may end a lone pending call").
    null_id_error: NullIdError = NullIdError::Ends, { "ends" => NullIdError::Ends, "ignore" => NullIdError::Ignore };
    /// A request from the server (contract §7 "may be ignored").
    server_requests: ServerRequest = ServerRequest::Ignore, {
        "ignore" => ServerRequest::Ignore, "answer" => ServerRequest::Answer
    };
    /// A call whose next attempt would come after its timeout.
    retry_past_timeout: RetryPastTimeout = RetryPastTimeout::Error, {
        "error" => RetryPastTimeout::Error, "timeout" => RetryPastTimeout::Timeout
    };
}

/// Everything a client is told at its start.
#[derive(Debug, Clone)]
pub struct Config {
    /// What it is to do.
    pub scenario: Scenario,
    /// Behaviours where the contract allows several.
    pub choices: Choices,
    /// Caps.
    pub limits: Limits,
    /// Seed of jitter and nonces.
    pub rng_seed: u64,
    /// Milliseconds since 1970 at the machine's time 0.
    pub started_unix_ms: u64,
}

/// The correct client.
pub fn machine(config: Config) -> Box<dyn Machine + Send> {
    let components = Components::new(&config);
    machine_with(config, components)
}

/// A client made of `components`.
pub fn machine_with(config: Config, components: Components) -> Box<dyn Machine + Send> {
    Box::new(Client::new(config, components))
}
