//! Figures of the policy_driver boundary.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::Instant;

use peerproof_benches::error::FigureError;
use peerproof_benches::pair::{Pair, turns};
use peerproof_benches::pick;
use peerproof_benches::spread::Spread;

/// Overhead of the reference selector: its pick compared with a bare start of the same driver. The cost of setting
/// limits in a separate process is its lower bound.
pub(crate) fn select() -> Result<(), FigureError> {
    let folder = tempfile::tempdir()?;
    let payload = folder.path().join("payload.json");
    fs::write(&payload, pick::payload())?;
    let scripts = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../corpora/peers/python"));
    let python: Vec<OsString> = vec!["python3".into(), scripts.join("policy_driver.py").into()];
    let noop: Vec<OsString> = vec![pick::noop(folder.path())?.into()];
    let limited = pick::limited(&noop[0])?;
    let mut floor = Pair::default();
    for round in 0..1_000 {
        floor.add(turns(round, || pick::bare(&limited, &payload), || pick::bare(&noop, &payload))?);
    }
    show("a start by way of the limits over a bare start and wait, a static no-op", &floor);
    let line = pick::request();
    for (name, words, rounds) in [("a driver in python3", python, 200), ("a static no-op", noop, 1_000)] {
        let mut selector = pick::selector(&words, scripts)?;
        let mut pair = Pair::default();
        for round in 0..rounds {
            pair.add(turns(round, || pick::pick(&mut selector, &line), || pick::bare(&words, &payload))?);
        }
        let what = format!("a pick of the reference selector over a bare start and wait, {name}");
        show(&what, &pair);
    }
    Ok(())
}

fn show(what: &str, pair: &Pair) {
    println!(
        "select: {what}, one processor: {}; undisturbed {:.3} ({:.0} over {:.0} us)",
        pair.ratio,
        pair.best(),
        pair.first.quantile(0.02),
        pair.second.quantile(0.02)
    );
}

/// Speed of the reference at reading a block of 64 KiB.
pub(crate) fn block() -> Result<(), FigureError> {
    const READS: u32 = 50;
    for (name, text) in [("one string", pick::one_string()), ("records", pick::records())] {
        let mut reader = pick::reader();
        let mut speed = Spread::default();
        for _ in 0..300 {
            let start = Instant::now();
            for _ in 0..READS {
                let text = std::hint::black_box(text.as_slice());
                reader.read(text)?;
            }
            speed.add(text.len() as f64 * f64::from(READS) / start.elapsed().as_secs_f64() / 1e6);
        }
        println!("block: MB/s of a block with {} bytes of plain patch, {name}: {speed}", text.len());
    }
    Ok(())
}
