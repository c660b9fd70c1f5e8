//! Tests of the reference toolhost against the contract, in process, in virtual time.

mod choices;
mod framing;
mod http;
mod idempotency;
mod leases;
mod peer;
mod requests;
mod run;
mod state;
