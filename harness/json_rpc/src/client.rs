//! The client side: the harness is the server, well-behaved or hostile as a script says.
//!
//! A conversation is one client process with one scenario. What it asks, and when, is in the transcript; what it says of
//! its calls is in its results file, which the transcript holds as well.

pub mod face;
pub mod fate;
pub mod generate;
mod rules;
pub mod scenario;
pub mod scene;
pub mod script;
pub mod seen;
pub mod server;
pub mod shrink;
mod stream;
#[cfg(test)]
mod tests;
pub mod way;

/// Name under which the command of a client is known; a configuration may call it `command`.
pub const COMMAND: &str = "client";

/// Fixture with the scenario.
pub const SCENARIO: &str = "scenario";

/// Fixture that takes the results.
pub const RESULTS: &str = "results";
