//! `figures [NAME…]`: measures the figures that `benches/README.md` lists and prints each with its spread.
//!
//! Peers that are compared take turns within one run, in an order that changes from round to round, on one processor.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this program is a report")]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use peerproof::boundary::toolhost::properties;
use peerproof_benches::engine::Engine;
use peerproof_benches::pipe::Pipe;
use peerproof_benches::spread::Spread;
use peerproof_benches::{ECHO, SERVE, memory_hwm_bytes, pin, play, played, workload};
use peerproof_reference::machine::{Event, Machine as _};
use peerproof_reference::toolhost::{Config, Mode, machine};
use rustix::time::{ClockId, clock_gettime};
use serde::de::IgnoredAny;

/// Bytes of the large requests.
const LARGE_BYTES: usize = 1_000_000;

type Figure = fn() -> Result<(), String>;

const FIGURES: [(&str, Figure); 8] = [
    ("pingpong", pingpong),
    ("pipelined", pipelined),
    ("large", large),
    ("decode", decode),
    ("refusal", refusal),
    ("overhead", overhead),
    ("serve-target", serve_target),
    ("fuzz", fuzz),
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

fn start(words: &[&str]) -> Result<Pipe, String> {
    played(words).and_then(|argv| Pipe::start(&argv)).map_err(|error| format!("cannot start a peer: {error}"))
}

/// Two times of one round, measured in either order.
fn turns(
    round: u32,
    mut first: impl FnMut() -> std::io::Result<Duration>,
    mut second: impl FnMut() -> std::io::Result<Duration>,
) -> Result<(f64, f64), String> {
    let gone = |error: std::io::Error| format!("a peer is gone: {error}");
    let (a, b) = if round.is_multiple_of(2) {
        let a = first().map_err(gone)?;
        (a, second().map_err(gone)?)
    } else {
        let b = second().map_err(gone)?;
        (first().map_err(gone)?, b)
    };
    Ok((a.as_secs_f64() * 1e6, b.as_secs_f64() * 1e6))
}

/// The times of two peers over all rounds.
#[derive(Default)]
struct Pair {
    first: Spread,
    second: Spread,
    /// First over second, round by round.
    ratio: Spread,
}

impl Pair {
    fn add(&mut self, (first, second): (f64, f64)) {
        self.first.add(first);
        self.second.add(second);
        self.ratio.add(first / second);
    }

    /// Ratio of the times that nothing disturbed.
    fn best(&self) -> f64 {
        self.first.quantile(0.02) / self.second.quantile(0.02)
    }
}

fn pingpong() -> Result<(), String> {
    let (mut echo, mut serve, line) = (start(ECHO)?, start(SERVE)?, workload::ping());
    let mut pair = Pair::default();
    for round in 0..2000 {
        pair.add(turns(round, || echo.exchange(&line, 200), || serve.exchange(&line, 200))?);
    }
    println!(
        "pingpong: share of the echo peer, 64 B, one processor: {}; undisturbed {:.3} ({:.2} of {:.2} us)",
        pair.ratio,
        pair.best(),
        pair.first.quantile(0.02),
        pair.second.quantile(0.02)
    );
    Ok(())
}

fn pipelined() -> Result<(), String> {
    let (mut one, mut many, line) = (start(SERVE)?, start(SERVE)?, workload::ping());
    let mut pair = Pair::default();
    for round in 0..500 {
        pair.add(turns(round, || one.exchange(&line, 640), || many.pipelined(&line, 64, 10))?);
    }
    println!(
        "pipelined: window 64 over ping-pong, 64 B, one processor: {}; undisturbed {:.3}",
        pair.ratio,
        pair.best()
    );
    Ok(())
}

fn large() -> Result<(), String> {
    let cases =
        [("one string", workload::one_string(LARGE_BYTES)), ("records", workload::records(LARGE_BYTES))];
    for (name, line) in cases {
        let (mut serve, mut echo) = (start(SERVE)?, start(ECHO)?);
        let mut pair = Pair::default();
        for round in 0..300 {
            pair.add(turns(round, || serve.large(&line), || echo.large(&line))?);
        }
        println!(
            "large: wall time over the echo peer, {} bytes, {name}, one processor: {}; undisturbed {:.3} \
             ({:.0} over {:.0} us)",
            line.len(),
            pair.ratio,
            pair.best(),
            pair.first.quantile(0.02),
            pair.second.quantile(0.02)
        );
    }
    Ok(())
}

fn decode() -> Result<(), String> {
    let input = workload::records_input(LARGE_BYTES);
    let line = workload::records(LARGE_BYTES);
    let mut peer = machine(Config::new(Mode::Serve));
    let mut actions = Vec::new();
    let mut pair = Pair::default();
    let mut refused = false;
    for round in 0..300 {
        let answer = || {
            let start = Instant::now();
            peer.handle(Event::Stdin(&line), 0, &mut actions);
            refused |= actions.len() != 1;
            actions.clear();
            Ok(start.elapsed())
        };
        let ignore = || {
            let start = Instant::now();
            serde_json::from_str::<IgnoredAny>(std::hint::black_box(&input))?;
            Ok(start.elapsed())
        };
        pair.add(turns(round, answer, ignore)?);
    }
    if refused {
        return Err("the request was not answered at once".to_owned());
    }
    println!(
        "decode: request decoded and answered in-process, over an IgnoredAny pass over its input, records: {}; \
         undisturbed {:.3} ({:.0} over {:.0} us)",
        pair.ratio,
        pair.best(),
        pair.first.quantile(0.02),
        pair.second.quantile(0.02)
    );
    Ok(())
}

fn refusal() -> Result<(), String> {
    const LINE_BYTES: usize = 100_000_000;
    let mut serve = start(SERVE)?;
    let gone = |error: std::io::Error| format!("the peer is gone: {error}");
    serve.exchange(&workload::ping(), 1).map_err(gone)?;
    let idle = memory_hwm_bytes(serve.pid()).unwrap_or(0);
    let block = vec![b'x'; 1 << 20];
    let mut left = LINE_BYTES;
    while left > 0 {
        let bytes = left.min(block.len());
        serve.write(block.get(..bytes).unwrap_or_default()).map_err(gone)?;
        left -= bytes;
    }
    serve.write(b"\n").map_err(gone)?;
    serve.replies(1).map_err(gone)?;
    serve.exchange(&workload::ping(), 1).map_err(gone)?;
    let peak = memory_hwm_bytes(serve.pid()).unwrap_or(0);
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    println!(
        "refusal: peak RSS after a line of 100 MB was refused: {:.1} MiB (idle {:.1})",
        mib(peak),
        mib(idle)
    );
    Ok(())
}

fn overhead() -> Result<(), String> {
    const EXCHANGES: u32 = 2000;
    let argv = played(SERVE).map_err(|error| error.to_string())?;
    let engine = Engine::new(&argv)?;
    let (plan, line) = (engine.ping_pong(EXCHANGES), workload::ping());
    let mut pair = Pair::default();
    for round in 0..60 {
        let bare = || {
            let start = Instant::now();
            let mut peer = Pipe::start(&argv)?;
            peer.exchange(&line, EXCHANGES)?;
            drop(peer);
            Ok(start.elapsed())
        };
        let checked = || {
            let start = Instant::now();
            engine.check(&plan).map_err(std::io::Error::other)?;
            Ok(start.elapsed())
        };
        pair.add(turns(round, bare, checked)?);
    }
    let per_exchange = |spread: &Spread| spread.quantile(0.02) / f64::from(EXCHANGES);
    println!(
        "overhead: checked exchange as share of a bare loop, 64 B, one processor: {}; undisturbed {:.3} \
         ({:.2} of {:.2} us)",
        pair.ratio,
        pair.best(),
        per_exchange(&pair.first),
        per_exchange(&pair.second)
    );
    Ok(())
}

/// Messages of the fuzz target of serve conversations a second of processor time, without libFuzzer around it.
fn serve_target() -> Result<(), String> {
    let mut rng = peerproof::rng::Rng::new(1);
    let inputs: Vec<Vec<u8>> = (0..64)
        .map(|_| {
            let lines = rng.range(1..=100);
            let line = |rng: &mut peerproof::rng::Rng| {
                let mut line: Vec<u8> =
                    (0..5).map(|_| rng.below(256) as u8).filter(|b| *b != b'\n').collect();
                line.insert(0, rng.below(8) as u8);
                line
            };
            (0..lines).map(|_| line(&mut rng)).collect::<Vec<_>>().join(&b'\n')
        })
        .collect();
    let mut rate = Spread::default();
    for _ in 0..50 {
        let start = clock_gettime(ClockId::ThreadCPUTime);
        let messages: usize = inputs.iter().map(|input| properties::converse(input)).sum();
        let time = clock_gettime(ClockId::ThreadCPUTime) - start;
        rate.add(messages as f64 / (time.tv_sec as f64 + time.tv_nsec as f64 / 1e9));
    }
    println!("serve-target: messages per second of processor time: {rate}");
    Ok(())
}

fn fuzz() -> Result<(), String> {
    let argv = played(SERVE).map_err(|error| error.to_string())?;
    let engine = Engine::new(&argv)?;
    let (mut peer, line) = (start(SERVE)?, workload::ping());
    let mut share = Spread::default();
    let (mut judged, mut exchanged) = (Spread::default(), Spread::default());
    for round in 0..10 {
        let status = engine.fuzz(Duration::from_secs(1), round);
        let time = peer.exchange(&line, 20_000).map_err(|error| format!("the peer is gone: {error}"))?;
        let rate = status.messages as f64 / status.elapsed.as_secs_f64();
        judged.add(rate);
        exchanged.add(1.0 / time.as_secs_f64());
        share.add(rate * time.as_secs_f64());
    }
    println!("fuzz: judged messages/s over the peer's own ping-pong rate, one processor: {share}");
    println!("fuzz: judged messages/s: {judged}; ping-pong exchanges/s: {exchanged}");
    Ok(())
}
