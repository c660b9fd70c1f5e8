//! The client side: the harness is the server, well-behaved or hostile as a script demands.
//!
//! A conversation is one client process with one scenario. The transcript holds the client's requests and the
//! results file in which it reports its calls.

pub mod allowed_outcome;
mod client_conversation;
pub mod face;
pub mod generate;
pub mod observations;
pub mod outcomes;
mod rules;
pub mod scenario;
pub mod scene;
pub mod script;
pub mod server;
pub mod shrink;
mod stream;
#[cfg(test)]
mod tests;

/// Canonical name of the client's command; a configuration may call it `command`.
pub const COMMAND: &str = "client";

/// Name of the call that shows that the client still works.
const CANARY: &str = "canary";

/// Name of the fixture with the scenario.
pub const SCENARIO: &str = "scenario";

/// Name of the fixture that takes the results.
pub const RESULTS: &str = "results";
