//! The command line of peerproof.

fn main() {
    // This binary also plays the programs that peers start.
    if let Some(status) = peerproof::fixture::actor::dispatch(std::env::args_os()) {
        std::process::exit(status);
    }
}
