//! The reference toolhost, held to its contract as any Rust project would do it with its own: each check a test.

use std::path::Path;

fn main() {
    peerproof::test_runner::cargo_test_with("../../corpora/peers/reference.toml", |variables| {
        // The configuration names the program; cargo knows where it was built.
        let folder = Path::new(env!("CARGO_BIN_EXE_peerproof")).parent().map(Path::to_owned);
        let path = variables.remove("PATH").unwrap_or_default();
        let folders = folder.into_iter().chain(std::env::split_paths(&path));
        if let Ok(path) = std::env::join_paths(folders) {
            variables.insert("PATH".to_owned(), path);
        }
    })
}
