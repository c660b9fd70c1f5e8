//! Links the binary at a fixed address.
//!
//! The binary starts itself for each reference peer and actor, thousands of times per run. A position-independent
//! binary is relocated at each start: copying 270 pages of tables takes longer than the rest of the start.

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout();
    if cfg!(target_os = "linux") {
        out.write_all(b"cargo::rustc-link-arg-bin=peerproof=-no-pie\n")?;
    }
    out.write_all(b"cargo::rerun-if-changed=build.rs\n")
}
