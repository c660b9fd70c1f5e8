//! The client side: the harness is the server, well-behaved or hostile as a script demands.
//!
//! A conversation is one client process with one scenario. The transcript holds the client's requests and the
//! results file in which it reports its calls.

pub(crate) mod allowed_outcome;
mod client_conversation;
pub(crate) mod face;
pub(crate) mod generate;
pub(crate) mod observations;
pub(crate) mod outcomes;
mod rules;
pub(crate) mod scenario;
pub(crate) mod scene;
pub(crate) mod script;
pub(crate) mod server;
pub(crate) mod shrink;
mod stream;
#[cfg(test)]
mod tests;

/// Canonical name of the client's command; a configuration may call it `command`.
pub const COMMAND: &str = "client";

/// Name of the call that shows that the client still works.
const CANARY: &str = "canary";

/// Name of the fixture with the scenario.
pub(crate) const SCENARIO: &str = "scenario";

/// Name of the fixture that takes the results.
pub(crate) const RESULTS: &str = "results";
