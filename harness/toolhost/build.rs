//! Rebuilds the crate when a file is added to its corpora, because `include_dir!` tracks only known files.

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    std::io::stdout().write_all(b"cargo::rerun-if-changed=build.rs\ncargo::rerun-if-changed=corpora\n")
}
