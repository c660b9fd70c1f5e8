//! The reference toolhost, held to its contract as any Rust project would do it with its own: each check a test. Two folders
//! of checks show it; what the others say of the reference is the matter of `peerproof selftest`.

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
