//! `figures [NAME…]`: measures the figures that `benches/README.md` lists and prints each with its spread.
//!
//! Compared peers take turns within one run, in an order that changes from round to round, on one processor.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this program is a report")]

mod envelope;
mod json_rpc;
mod policy;
mod queue;
mod toolhost;

use std::process::ExitCode;

use peerproof_benches::error::FigureError;
use peerproof_benches::pair::{Pair, start, turns};
use peerproof_benches::{ECHO, pin, play};

/// Size of the large requests, bytes.
const LARGE_BYTES: usize = 1_000_000;

type Figure = fn() -> Result<(), FigureError>;

const FIGURES: [(&str, Figure); 18] = [
    ("pingpong", toolhost::pingpong),
    ("pipelined", toolhost::pipelined),
    ("large", toolhost::large),
    ("decode", toolhost::decode),
    ("refusal", toolhost::refusal),
    ("overhead", toolhost::overhead),
    ("serve-target", toolhost::serve_target),
    ("fuzz", toolhost::fuzz),
    ("rpc-pingpong", json_rpc::pingpong),
    ("rpc-pipelined", json_rpc::pipelined),
    ("rpc-large", json_rpc::large),
    ("envelope", envelope::round_trip),
    ("block", policy::block),
    ("select", policy::select),
    ("enqueue", queue::enqueue),
    ("enqueue-http", queue::enqueue_http),
    ("jobs", queue::jobs),
    ("start", queue::start),
];

fn main() -> ExitCode {
    if let Some(status) = play() {
        std::process::exit(status);
    }
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if let Some(name) = wanted.iter().find(|name| !FIGURES.iter().any(|(known, _)| known == name)) {
        let known: Vec<&str> = FIGURES.iter().map(|(known, _)| *known).collect();
        eprintln!("there is no figure {name:?}; known: {}", known.join(", "));
        return ExitCode::from(2);
    }
    if let Err(error) = pin() {
        eprintln!("cannot keep to one processor: {error}");
    }
    for (name, figure) in FIGURES {
        if !wanted.is_empty() && !wanted.iter().any(|wanted| wanted == name) {
            continue;
        }
        if let Err(error) = figure() {
            eprintln!("{name}: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Speed of a peer at small requests, one by one, compared with the echo peer.
fn pingpong(name: &str, peer: &[&str], line: &[u8]) -> Result<(), FigureError> {
    let (mut echo, mut peer) = (start(ECHO)?, start(peer)?);
    let mut pair = Pair::default();
    for round in 0..2000 {
        pair.add(turns(round, || echo.exchange(line, 200), || peer.exchange(line, 200))?);
    }
    println!(
        "{name}: share of the echo peer, 64 B, one processor: {}; undisturbed {:.3} ({:.2} of {:.2} us)",
        pair.ratio,
        pair.best(),
        pair.first.quantile(0.02),
        pair.second.quantile(0.02)
    );
    Ok(())
}

/// Time of a peer for one large request, compared with the echo peer.
fn large(name: &str, peer: &[&str], of_what: &str, line: &[u8]) -> Result<(), FigureError> {
    let (mut peer, mut echo) = (start(peer)?, start(ECHO)?);
    let mut pair = Pair::default();
    for round in 0..300 {
        pair.add(turns(round, || peer.large(line), || echo.large(line))?);
    }
    println!(
        "{name}: wall time over the echo peer, {} bytes, {of_what}, one processor: {}; undisturbed {:.3} \
         ({:.0} over {:.0} us)",
        line.len(),
        pair.ratio,
        pair.best(),
        pair.first.quantile(0.02),
        pair.second.quantile(0.02)
    );
    Ok(())
}
