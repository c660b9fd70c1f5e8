//! The reference toolhost against the contract, in process, in virtual time.
#![allow(clippy::unwrap_used, reason = "the helpers are part of the tests")]

mod choices;
mod framing;
mod http;
mod idempotency;
mod leases;
mod peer;
mod requests;
mod run;
mod state;
