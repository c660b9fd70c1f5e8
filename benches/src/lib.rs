//! Shared parts of the benchmarks and the `figures` program: requests, a bare loop over pipes, and figures with spread.

pub mod engine;
pub mod error;
pub mod pair;
pub mod pick;
pub mod pipe;
pub mod rpc;
pub mod spread;
pub mod workload;

use std::ffi::OsString;
use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Pins this thread, and the processes that it starts later, to the last processor it may use.
///
/// # Errors
/// Fails if the kernel refuses.
pub fn pin() -> io::Result<()> {
    let allowed = sched_getaffinity(None)?;
    let mut one = CpuSet::new();
    if let Some(cpu) = (0..CpuSet::MAX_CPU).rev().find(|cpu| allowed.is_set(*cpu)) {
        one.set(cpu);
        sched_setaffinity(None, &one)?;
    }
    Ok(())
}

/// Undoes [`pin`].
///
/// # Errors
/// Fails if the kernel refuses.
pub fn unpin() -> io::Result<()> {
    let mut all = CpuSet::new();
    for cpu in 0..CpuSet::MAX_CPU {
        all.set(cpu);
    }
    Ok(sched_setaffinity(None, &all)?)
}

/// Peak resident memory of a process, bytes.
pub fn memory_hwm_bytes(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Command line that makes this program play a peer, see [`play`].
///
/// # Errors
/// Fails if the path of this program is unknown.
pub fn played(words: &[&str]) -> io::Result<Vec<OsString>> {
    let mut argv = vec![std::env::current_exe()?.into_os_string()];
    argv.extend(words.iter().map(OsString::from));
    Ok(argv)
}

/// Plays a peer if the arguments of this program ask for one: `echo` (the calibration peer, which copies its input) or
/// `peer toolhost …` (the reference). Returns the exit status. Every benchmark calls it first.
pub fn play() -> Option<i32> {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if arguments.get(1).is_some_and(|first| first == "echo") {
        return Some(echo());
    }
    peerproof::hidden(&arguments, &|| std::env::vars_os().collect())
}

/// Begins a benchmark: plays a peer and exits if the arguments ask for that, otherwise pins this thread.
///
/// # Panics
/// Panics if the kernel refuses to pin it.
pub fn peer_or_pinned() {
    if let Some(status) = play() {
        std::process::exit(status);
    }
    pin().expect("one processor");
}

/// Arguments that make [`play`] the calibration peer.
pub const ECHO: &[&str] = &["echo"];

/// Arguments that make [`play`] the reference toolhost.
pub const SERVE: &[&str] = &["peer", "toolhost", "--serve"];

/// Arguments that make [`play`] the reference JSON-RPC server.
pub const RPC: &[&str] = &["peer", "json_rpc", "--stdio"];

/// Copies input to output: the minimum work of a peer, one read and one write.
fn echo() -> i32 {
    let mut block = vec![0; 64 * 1024];
    while let Ok(bytes @ 1..) = rustix::io::read(io::stdin(), &mut block[..]) {
        let mut rest = block.get(..bytes).unwrap_or_default();
        while !rest.is_empty() {
            match rustix::io::write(io::stdout(), rest) {
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                Err(_) => return 0,
            }
        }
    }
    0
}
