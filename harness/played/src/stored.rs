//! The stored inputs of a boundary, for tests of its properties: what fuzz targets find and start from is replayed on stable Rust.

use std::fs;
use std::path::{Path, PathBuf};

use peerproof_engine::rng::Rng;

/// Every seed input, conversation and regression of a boundary.
pub fn inputs(boundary: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpora").join(boundary);
    let mut found = Vec::new();
    for folder in ["seeds/accept", "seeds/reject", "seeds/either", "conversations", "regressions"] {
        let Ok(entries) = fs::read_dir(root.join(folder)) else {
            assert_eq!(folder, "regressions", "corpora/{boundary}/{folder} is missing");
            continue;
        };
        for entry in entries {
            let path = entry.unwrap().path();
            found.push((path.clone(), fs::read(&path).unwrap()));
        }
    }
    assert!(found.len() > 15, "only {} inputs", found.len());
    found
}

/// Runs a property over every input of a boundary, and names the one that breaks it.
pub fn replay(boundary: &str, property: fn(&[u8])) {
    for (path, data) in inputs(boundary) {
        if let Err(panic) = std::panic::catch_unwind(|| property(&data)) {
            panic!("{} breaks the property: {panic:?}", path.display());
        }
    }
}

/// Gives a property generators of random numbers, as they are and led by bytes.
pub fn generated(property: fn(Rng)) {
    let mut bytes = Rng::new(300);
    (0..300).for_each(|seed| property(Rng::new(seed)));
    for _ in 0..50 {
        property(Rng::led(&(0..200).map(|_| bytes.next_u64() as u8).collect::<Vec<_>>()));
    }
}

/// Bytes that spell something, most of them small.
pub fn spelled(rng: &mut Rng, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|_| (rng.next_u64() % 40) as u8).collect()
}
