//! The consumer of the json_rpc boundary: a client that makes the calls of a scenario and records the outcome of each
//! (contract §7 "Client").
//!
//! [`machine`] returns the pure client. It speaks first, reads the server's output, and appends a line to its results
//! for each finished call. Its parts are replaceable: ids, delays of retries, the reader of responses, and signatures
//! ([`Components`]).

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
    /// The error ends the only pending call.
    Ends,
    /// The error is ignored.
    Ignore,
}

/// See [`Choices::server_requests`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerRequest {
    /// The request is dropped.
    Ignore,
    /// The request is answered with "method not found".
    Answer,
}

/// See [`Choices::retry_past_timeout`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryPastTimeout {
    /// The call ends with the error at once.
    Error,
    /// The call waits for its timeout.
    Timeout,
}

choices! {
    /// Treatment of an error with a null id while one call is pending (contract §7 "may end a lone pending call").
    null_id_error: NullIdError = NullIdError::Ends, { "ends" => NullIdError::Ends, "ignore" => NullIdError::Ignore };
    /// Treatment of a request from the server (contract §7 "may be ignored").
    server_requests: ServerRequest = ServerRequest::Ignore, {
        "ignore" => ServerRequest::Ignore, "answer" => ServerRequest::Answer
    };
    /// Treatment of a call whose next attempt would come after its timeout.
    retry_past_timeout: RetryPastTimeout = RetryPastTimeout::Error, {
        "error" => RetryPastTimeout::Error, "timeout" => RetryPastTimeout::Timeout
    };
}

/// Configuration of a client.
#[derive(Debug, Clone)]
pub struct Config {
    /// Calls to make.
    pub scenario: Scenario,
    /// Chosen behaviour for each open clause.
    pub choices: Choices,
    /// Limits in force.
    pub limits: Limits,
    /// Seed of jitter and nonces.
    pub rng_seed: u64,
    /// Wall-clock time of the machine's time 0, in milliseconds since 1970.
    pub started_unix_ms: u64,
}

/// The correct client.
pub fn machine(config: Config) -> Box<dyn Machine + Send> {
    let components = Components::new(&config);
    machine_with(config, components)
}

/// Client made of `components`.
pub fn machine_with(config: Config, components: Components) -> Box<dyn Machine + Send> {
    Box::new(Client::new(config, components))
}
