//! The shells: the only code of the crate, with the `refpeer` binary, that touches the operating system.

pub mod dispatch;
pub mod fetch;
pub mod stdio;
pub mod toolhost;
