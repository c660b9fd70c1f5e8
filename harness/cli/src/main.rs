//! The command line of peerproof.

use std::process::exit;

use peerproof_cli::Context;

fn main() {
    // This binary also plays the programs that peers start and the peers themselves: those come first.
    if let Some(status) =
        peerproof::hidden(&std::env::args_os().collect::<Vec<_>>(), &|| std::env::vars_os().collect())
    {
        exit(status);
    }
    let variables = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    let context = Context::new(variables.collect(), std::env::current_exe());
    exit(peerproof_cli::main(std::env::args_os(), context).code());
}
