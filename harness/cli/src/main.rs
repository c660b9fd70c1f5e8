//! The command line of peerproof.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, exit};

use peerproof_cli::Context;

/// The variable by which glibc is told which blocks to give back as soon as they are free, and how large they are, bytes.
/// By itself it keeps what large ones took, up to 32 MiB a thread: conversations about large messages would hold twice
/// what they need.
const GIVEN_BACK_FROM: (&str, &str) = ("MALLOC_MMAP_THRESHOLD_", "1048576");

fn main() {
    // This binary also plays the programs that peers start and the peers themselves: those come first.
    let args: Vec<_> = std::env::args_os().collect();
    if let Some(status) = peerproof::hidden(&args, &|| std::env::vars_os().collect()) {
        exit(status);
    }
    let exe = std::env::current_exe();
    // It is read when a process begins, so this one begins again. Where it cannot, it goes on as it is.
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
