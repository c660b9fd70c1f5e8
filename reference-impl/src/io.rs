//! The shells: the only code of the crate, with the `refpeer` binary, that touches the operating system.

pub mod dispatch;
pub mod faults;
pub mod fetch;
pub mod json_rpc;
pub mod stdio;
pub mod toolhost;

/// Writes one line to standard error, where peers say what is wrong with their arguments.
pub fn complain(error: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{error}");
}
