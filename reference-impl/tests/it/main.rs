//! The reference peers against their contracts: as machines in virtual time, and as the processes of `refpeer`.
//!
//! One binary, so that the crate is linked once and all of it runs on as many threads as there are processors.
#![allow(clippy::unwrap_used, reason = "clippy takes helpers of an integration test for library code")]

mod dispatch;
mod envelope;
mod json;
mod json_rpc;
mod json_rpc_client;
mod mcp;
mod policy;
mod python_tool;
mod refpeer;
mod run_log;
mod run_queue;
mod toolhost;

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// The peers of this build.
const REFPEER: &str = env!("CARGO_BIN_EXE_refpeer");

/// Writes a program. A process of its own does: Linux starts no program that anybody holds open for writing, and what this
/// process has open is open for a moment in every child that another test starts.
fn write_program(path: &Path, text: &str) {
    let mut command = Command::new("sh");
    command.args(["-c", "cat >\"$0\" && chmod 755 \"$0\""]).arg(path).stdin(Stdio::piped());
    let mut writer = command.spawn().unwrap();
    writer.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(writer.wait().unwrap().success(), "{}", path.display());
}

/// Whether a process with this id still runs: one that has ended and is not waited for does not.
fn runs(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with(['Z', 'X']))
}
