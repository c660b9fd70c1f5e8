//! The shells: with the `refpeer` binary, the only code of the crate that uses the operating system.

pub(crate) mod asking;
pub mod dispatcher;
pub mod envelope;
pub mod envelope_caller;
pub mod faults;
pub(crate) mod fetch;
pub mod http_faults;
pub mod http_server;
pub mod json_rpc;
pub mod json_rpc_client;
pub(crate) mod json_rpc_http;
pub mod mcp;
mod payload_file;
pub mod policy_driver;
pub mod policy_exec;
mod policy_faults;
pub mod policy_selector;
mod python_guard;
pub mod python_runtime;
mod python_service;
pub mod python_tool;
pub mod run_log;
pub mod run_queue;
mod run_queue_disk;
mod run_queue_genesis;
mod run_queue_worker;
mod start;
pub mod stdio;
pub mod toolhost;

pub use start::StartError;

use crate::choices::ChoiceError;
use crate::limits::Limits;

/// Applies `--choice NAME=VALUE` or `--limit NAME=VALUE`.
///
/// # Errors
/// A sentence that names the malformed argument, or the unknown name or value.
fn set(
    argument: &str,
    value: &str,
    choose: impl FnOnce(&str, &str) -> Result<(), ChoiceError>,
    limits: &mut Limits,
) -> Result<(), StartError> {
    let (name, value) =
        value.split_once('=').ok_or_else(|| StartError::value(argument, "NAME=VALUE", value))?;
    if argument == "--choice" {
        choose(name, value)?;
    } else {
        limits.set(name, value)?;
    }
    Ok(())
}

/// Writes one line to standard error.
pub fn complain(error: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{error}");
}
