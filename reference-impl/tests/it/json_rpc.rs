//! Tests of the reference JSON-RPC server against the specification and the contract, in process, in virtual time.

mod auth;
mod batches;
mod choices;
mod framing;
mod limits;
mod methods;
pub(crate) mod peer;
mod process;
mod requests;
mod specification;
mod streams;
mod timing;
