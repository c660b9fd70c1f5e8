//! Reference implementation of the agent-tool boundaries that `peerproof` checks.
//!
//! The crate is sans-I/O: every boundary is a [`machine::Machine`] that takes bytes, signals and the time and
//! returns bytes and commands. Only `src/io/` and the `refpeer` binary touch the operating system.

pub mod choices;
pub mod dispatcher;
pub mod frame;
pub mod io;
pub mod json;
pub mod json_rpc;
pub mod limits;
pub mod machine;
pub mod toolhost;
