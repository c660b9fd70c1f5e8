//! Stored inputs of a boundary for tests of its properties: findings and seeds of fuzz targets, replayed on stable
//! Rust.

use std::fs;
use std::path::{Path, PathBuf};

use arbitrary::{Arbitrary, Unstructured};
use peerproof_engine::data::rng::Rng;

use crate::input;

/// Maximum number of random bytes for an input.
const BYTES_MAX: u64 = 2_000;

/// All seed inputs, conversations and regressions of a boundary.
pub(crate) fn inputs(boundary: &str) -> Vec<(PathBuf, Vec<u8>)> {
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

/// Runs a property for every input of a boundary and names the one that breaks it.
pub(crate) fn replay(boundary: &str, property: fn(&[u8])) {
    for (path, data) in inputs(boundary) {
        if let Err(panic) = std::panic::catch_unwind(|| property(&data)) {
            panic!("{} breaks the property: {panic:?}", path.display());
        }
    }
}

/// Runs a property with random generators, plain and led by bytes.
pub(crate) fn generated(property: fn(Rng)) {
    let mut bytes = Rng::new(300);
    (0..300).for_each(|seed| property(Rng::new(seed)));
    for _ in 0..50 {
        property(Rng::led(&(0..200).map(|_| bytes.next_u64() as u8).collect::<Vec<_>>()));
    }
}

/// Runs a property with inputs as in a fuzz target: drawn from every stored input of a boundary and from `count` lists
/// of random bytes.
pub(crate) fn drawn<T>(boundary: &str, rng_seed: u64, count: usize, mut property: impl FnMut(T))
where
    T: for<'a> Arbitrary<'a>,
{
    let mut rng = Rng::new(rng_seed);
    let stored = inputs(boundary).into_iter().filter_map(|(_, data)| take(&data));
    let random: Vec<T> = (0..count).filter_map(|_| input::drawn(&mut rng, BYTES_MAX)).collect();
    assert!(random.len() > count / 2, "only {} of {count} lists of bytes make an input", random.len());
    stored.chain(random).for_each(&mut property);
}

fn take<T: for<'a> Arbitrary<'a>>(data: &[u8]) -> Option<T> {
    T::arbitrary_take_rest(Unstructured::new(data)).ok()
}
