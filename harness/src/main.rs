//! The command line of peerproof.

fn main() {}
