//! Checks of the reference toolhost as tests, as in any Rust project. Two folders of checks suffice;
//! `peerproof selftest` covers the others.

use peerproof::{Suite, SuiteError};

fn main() -> Result<(), SuiteError> {
    let program = env!("CARGO_BIN_EXE_peerproof");
    Suite::from_config("../../corpora/peers/reference.toml")?
        .command("run", [program, "peer", "toolhost", "--run", "{aid}"])?
        .command("serve", [program, "peer", "toolhost", "--serve"])?
        .filter("toolhost/run/process")
        .filter("toolhost/serve/chunking")
        .run()
}
