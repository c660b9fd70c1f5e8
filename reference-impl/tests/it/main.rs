//! Tests of the reference peers against their contracts: as machines in virtual time, and as processes of `refpeer`.
//!
//! There is one binary, so that the crate is linked once and all tests share the processors.
#![allow(clippy::unwrap_used, reason = "clippy takes helpers of an integration test for library code")]

mod dispatcher;
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

/// Path of the reference peers of this build.
const REFPEER: &str = env!("CARGO_BIN_EXE_refpeer");

/// Writes a program through another process. Linux does not start a program that any process holds open for writing,
/// and the open files of this process are briefly open in every child that another test starts.
fn write_program(path: &Path, text: &str) {
    let mut command = Command::new("sh");
    command.args(["-c", "cat >\"$0\" && chmod 755 \"$0\""]).arg(path).stdin(Stdio::piped());
    let mut writer = command.spawn().unwrap();
    writer.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(writer.wait().unwrap().success(), "{}", path.display());
}

/// True if a process with this id is running; false for a zombie.
fn runs(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with(['Z', 'X']))
}
