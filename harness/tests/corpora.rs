//! Every seed input, conversation and regression of the corpora is replayed through the properties that the fuzz
//! targets check, on stable Rust.

#![allow(clippy::unwrap_used, reason = "clippy takes helpers of an integration test for library code")]

use std::fs;
use std::path::{Path, PathBuf};

use peerproof::boundary::toolhost::properties;

fn inputs() -> Vec<(PathBuf, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpora/toolhost");
    let mut found = Vec::new();
    for folder in ["seeds/accept", "seeds/reject", "seeds/either", "conversations", "regressions"] {
        let Ok(entries) = fs::read_dir(root.join(folder)) else {
            assert_eq!(folder, "regressions", "corpora/toolhost/{folder} is missing");
            continue;
        };
        for entry in entries {
            let path = entry.unwrap().path();
            found.push((path.clone(), fs::read(&path).unwrap()));
        }
    }
    assert!(found.len() > 100, "only {} inputs", found.len());
    found
}

/// Runs a property over every input and names the input that breaks it.
fn replay(property: fn(&[u8])) {
    for (path, data) in inputs() {
        if let Err(panic) = std::panic::catch_unwind(|| property(&data)) {
            panic!("{} breaks the property: {panic:?}", path.display());
        }
    }
}

#[test]
fn frames() {
    replay(properties::frame);
}

#[test]
fn run_mode() {
    replay(properties::run);
}

#[test]
fn serve_mode() {
    replay(properties::serve);
}

#[test]
fn serve_mode_with_small_limits() {
    replay(properties::serve_small);
}

#[test]
fn replies_to_the_dispatcher() {
    replay(properties::dispatcher_reply);
}

#[test]
fn oracles() {
    replay(properties::oracles);
}

#[test]
fn spelled_conversations() {
    let mut rng = peerproof::rng::Rng::new(20);
    for _ in 0..200 {
        let bytes: Vec<u8> = (0..400).map(|_| (rng.next_u64() % 40) as u8).collect();
        properties::serve(&bytes);
        properties::serve_small(&bytes);
    }
}
