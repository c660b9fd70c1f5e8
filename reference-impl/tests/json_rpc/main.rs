//! The reference JSON-RPC server against the specification and the contract, in process, in virtual time.
#![allow(clippy::unwrap_used, reason = "the helpers are part of the tests")]

mod auth;
mod batches;
mod choices;
mod framing;
mod limits;
mod methods;
mod peer;
mod process;
mod requests;
mod specification;
mod streams;
mod timing;
