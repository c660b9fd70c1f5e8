//! Links the binary at a fixed address.
//!
//! It starts itself again for each reference peer and each actor, thousands of times in a run. A binary that can lie anywhere
//! is relocated at each start: 270 pages of tables are copied, which takes longer than the rest of the start.

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout();
    if cfg!(target_os = "linux") {
        out.write_all(b"cargo::rustc-link-arg-bin=peerproof=-no-pie\n")?;
    }
    out.write_all(b"cargo::rerun-if-changed=build.rs\n")
}
