//! Driving peers: everything that touches the machine.
//!
//! Lives here: the laboratory that carries out a plan ([`lab`]), transports to child processes, to HTTP servers and to
//! peers in this process ([`transport`]), fixtures around a peer ([`fixture`]), the description of a peer ([`peer`]) and
//! its configuration file ([`config`]), recording between two programs ([`record`]), temporary and private files.
//!
//! The rooms above hand in a plan and get a transcript back.
//!
//! Never here: parsing or judging what a peer says. Bytes are kept as they are.

pub mod config;
pub mod fixture;
pub mod lab;
pub mod machine;
pub mod parallel;
pub mod peer;
pub mod presentation;
pub mod private;
mod process;
pub mod record;
pub mod reference_peers;
pub mod scratch;
pub mod slowdown;
pub mod stored;
pub mod transport;
