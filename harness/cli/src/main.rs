//! Command line of peerproof.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, exit};

use peerproof_cli::Context;

/// Variable for glibc: size in bytes from which freed blocks are returned to the system at once. By default glibc keeps
/// up to 32 MiB per thread, so that conversations with large messages would hold twice the memory they need.
const GIVEN_BACK_FROM: (&str, &str) = ("MALLOC_MMAP_THRESHOLD_", "1048576");

fn main() {
    // This binary also plays the programs that peers start, and reference peers: these come first.
    let args: Vec<_> = std::env::args_os().collect();
    if let Some(status) = peerproof::hidden(&args, &|| std::env::vars_os().collect()) {
        exit(status);
    }
    let exe = std::env::current_exe();
    // The variable is read when a process starts, so start again. If that fails, go on without it.
    if let (Ok(exe), None) = (&exe, std::env::var_os(GIVEN_BACK_FROM.0)) {
        let (name, value) = GIVEN_BACK_FROM;
        let mut again = Command::new(exe);
        again.args(args.iter().skip(1)).env(name, value);
        if let Some(called) = args.first() {
            again.arg0(called);
        }
        let _ = again.exec();
    }
    let variables = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    let context = Context::new(variables.collect(), exe);
    exit(peerproof_cli::main(args, context).code());
}
